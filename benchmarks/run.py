"""The benchmarks: python benchmarks/run.py CASE [options], or --list for the cases.

A case is a row of a table in `cases/`: problems, and functions that solve each of them. The functions of a
problem are timed in turns in one process, best of some repeats, medians over seeds; a ratio above 1 means
faster than the first function (or than the fastest of those marked =). One thread unless OMP_NUM_THREADS
says otherwise. The exit code is 1 if a ratio is below its limit or a result is wrong. `--quick` runs tiny
problems once, to see that a case works. `--write` puts what was measured into docs/figures, from where
`python docs/figures.py` takes the figures of the pages.
"""

from __future__ import annotations

from common import BALLAST, CORETYPE, PROCESSOR, THREADS, Mismatch, Race, best_times, record  # isort: skip  # before NumPy

import argparse
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from cases import CASES

Row = dict[str, Any]


def race(problem: Race, seeds: int, repeats: int, quick: bool) -> tuple[list[Row], list[str]]:
    """Time the functions of a problem and print a line for each: a row of each, and what is wrong."""
    found: dict[str, list[tuple[float, float, dict[str, float]]]] = {}
    wrong, rows = [], []
    for seed in range(seeds):
        functions, facts = problem.make(seed)
        versus = [name for name in problem.versus if name in functions] or list(functions)[:1]
        times, results = best_times(functions, repeats, problem.elapsed, problem.limited)
        base = min(times[name] for name in versus)
        for name, time in times.items():
            try:
                figures = problem.figures(name, results, facts)
            except Mismatch as error:
                wrong.append(f"{problem.name}, {name}, seed {seed}: {error}")
                figures = {}
            found.setdefault(name, []).append((time, base / time, figures))
        del functions, facts, results
    print(problem.name, flush=True)
    for name, runs in found.items():
        ms, ratio = 1e3 * np.median([run[0] for run in runs]), float(np.median([run[1] for run in runs]))
        row: Row = {"problem": problem.name, "method": name, "ms": ms, "ratio": ratio, "seeds": seeds}
        least, told = problem.limits.get(name), []
        for key in runs[0][2]:
            values = [run[2][key] for run in runs if key in run[2]]
            error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
            row |= {key: float(np.mean(values))} | ({f"{key} ±": error} if error else {})
            told.append(f"{key} {row[key]:.4g}" + (f" ± {error:.1g}" if error else ""))
        if least and not quick:
            told.append(f"at least {least:.2f} is wanted")
            if ratio < least:
                wrong.append(f"{problem.name}, {name}: {ratio:.2f} is below {least:.2f}")
        mark = "=" if name in versus else " "
        print(f"  {mark}{name:<33}{ms:>10.2f} ms{ratio:>8.2f}x  {', '.join(told)}", flush=True)
        rows.append(row)
    return rows, wrong


def run(found: Iterator[Race | Row | str], given: argparse.Namespace) -> int:
    """All that a case yields: problems, rows that it measured itself, and sentences about what is wrong."""
    rows: list[Row] = []
    wrong: list[str] = []
    for one in found:
        if isinstance(one, str):
            wrong.append(one)
        elif isinstance(one, dict):
            told = (f"{key} {v:.4g}" if isinstance(v, float) else f"{key} {v}" for key, v in one.items())
            print("  " + ", ".join(told), flush=True)
            rows.append(one)
        elif given.only in one.name:
            more, failed = race(one, given.seeds, given.repeats, given.quick)
            rows, wrong = rows + more, wrong + failed
        if given.write and not given.quick:
            record(given.case, rows)
    for name in dict.fromkeys(row["method"] for row in rows):
        ratios = [row["ratio"] for row in rows if row["method"] == name and "seeds" in row]
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
    parser.add_argument("--write", action="store_true", help="into docs/figures/CASE.csv (costs: tuning.py)")
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
