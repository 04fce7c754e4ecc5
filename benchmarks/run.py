"""The benchmarks: python benchmarks/run.py CASE [options], or --list for the cases.

A case is a row of a table in `cases/`: problems, and functions that solve each of them. The functions of a
problem are timed in turns in one process, best of some repeats, medians over seeds; a ratio above 1 means
faster than the first function (or than the fastest of those marked =). One thread unless OMP_NUM_THREADS
says otherwise. The exit code is 1 if a ratio is below its limit or a result is wrong. `--quick` runs tiny
problems once, to see that a case works.
"""

from __future__ import annotations

from common import BALLAST, CORETYPE, PROCESSOR, THREADS, Mismatch, Race, best_times  # isort: skip  # before NumPy

import argparse
import sys
import warnings
from collections.abc import Iterator

import numpy as np
from cases import CASES


def race(problem: Race, seeds: int, repeats: int, quick: bool) -> tuple[dict[str, float], list[str]]:
    """Time the functions of a problem and print a line for each: ratios by name, and what is wrong."""
    seconds: dict[str, list[float]] = {}
    ratios: dict[str, list[float]] = {}
    figures: dict[str, list[dict[str, float]]] = {}
    wrong = []
    for seed in range(seeds):
        functions, facts = problem.make(seed)
        versus = [name for name in problem.versus if name in functions] or list(functions)[:1]
        times, results = best_times(functions, repeats, problem.elapsed, problem.limited)
        base = min(times[name] for name in versus)
        for name, time in times.items():
            seconds.setdefault(name, []).append(time)
            ratios.setdefault(name, []).append(base / time)
            try:
                figures.setdefault(name, []).append(problem.figures(name, results, facts))
            except Mismatch as error:
                wrong.append(f"{problem.name}, {name}, seed {seed}: {error}")
        del functions, facts, results
    median = {name: float(np.median(found)) for name, found in ratios.items()}
    print(problem.name, flush=True)
    for name, ratio in median.items():
        least = problem.limits.get(name)
        known = figures.get(name) or [{}]
        told = ", ".join(f"{key} {spread([one[key] for one in known])}" for key in known[0])
        if least and not quick:
            told += f"  (at least {least:.2f})"
            if ratio < least:
                wrong.append(f"{problem.name}, {name}: {ratio:.2f} is below {least:.2f}")
        mark = "=" if name in versus else " "
        usual = 1e3 * np.median(seconds[name])
        print(f"  {mark}{name:<33}{usual:>10.2f} ms{ratio:>8.2f}x  {told}", flush=True)
    return median, wrong


def spread(values: list[float]) -> str:
    """Mean and standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values):.4g}" + (f" ± {error:.1g}" if error else "")


def run(problems: Iterator[Race], given: argparse.Namespace) -> int:
    """All problems of a case, and the mean ratios where there are several."""
    every: dict[str, list[float]] = {}
    wrong: list[str] = []
    for problem in problems:
        if given.only in problem.name:
            median, failed = race(problem, given.seeds, given.repeats, given.quick)
            wrong += failed
            for name, ratio in median.items():
                every.setdefault(name, []).append(ratio)
    for name, ratios in every.items():
        if len(ratios) > 2:
            mean = np.exp(np.mean(np.log(ratios)))
            print(f"{name}, {len(ratios)} problems: geometric mean {mean:.3f}, worst {min(ratios):.2f}")
    for line in wrong:
        print(f"WRONG {line}")
    return int(bool(wrong))


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and run one case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("case", nargs="?", choices=CASES, metavar="CASE")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    parser.add_argument("--quick", action="store_true", help="tiny problems, once")
    parser.add_argument("--only", default="", metavar="TEXT", help="problems with this in their name")
    parser.add_argument("--seeds", type=int, help="problems of each kind (the case has a default)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each function; the best counts")
    parser.add_argument("--write", action="store_true", help="costs, guarantees: write them into their files")
    files = parser.add_argument_group("files")
    files.add_argument("--folder", default=".", help="where files of X are written (they are removed)")
    files.add_argument("--shape", type=int, nargs=2, default=(60_000, 25_000), metavar=("N", "D"))
    files.add_argument("--memory-limit", default="3GB")
    files.add_argument("--exact-steps", type=int, default=6, help="measured steps of exact selection")
    files.add_argument("--fit", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.list or given.case is None:
        for name, (about, *_) in CASES.items():
            print(f"{name:<12}{about}")
        return 0
    _, function, seeds = CASES[given.case]
    given.seeds, given.repeats = (1, 1) if given.quick else (given.seeds or seeds, given.repeats)
    if not given.fit:
        print(f"{given.case}: {PROCESSOR}, OPENBLAS_CORETYPE {CORETYPE}, {THREADS} thread(s), ", end="")
        print(f"best of {given.repeats}, median of {given.seeds} seed(s), {BALLAST / 1e6:.0f} MB of ballast")
    warnings.simplefilter("ignore")  # of rivals that do not converge
    found = function(given)
    return found if isinstance(found, int) else run(found, given)


if __name__ == "__main__":
    sys.exit(main())
