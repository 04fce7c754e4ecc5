"""How fast certified OMP is: whole fits against exact BLAS selection, one process, one thread.

    python benchmarks/certified_speed.py [part ...] [--seeds 5] [--base REV] [--check]

A part is a family of problems; without any all of them run, which takes some eight minutes. Times are
processor seconds, the best of some runs that take turns, with compiled kernels and touched memory; figures
are medians over seeds. "fresh" is a fit to an array, codes included, "prepared" one to a design that served
another target. Every certified fit must give the atoms of the exact one. Some parts are wanted so many times
as fast as BLAS, others so many times as fast as the certified fits of an earlier commit (`--base`, which is
measured in a process of its own; "none" leaves it out). `--check` is what `make bench-check` runs: one part
and two seeds, and the exit code is 1 where a ratio to BLAS is below its floor.
"""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from timing import best_times  # limits BLAS and the kernels to one thread
from trees import HERE, start, unpacked

from skpursuit import OMP, as_design, datasets, minimize

Figures = dict[str, float]
N, D = 5000, 10_000


def gaussian(seed: int, n: int = N, d: int = D, k: int = 50, **given: Any) -> tuple[np.ndarray, ...]:
    """Columns of unit norm, k of them with noise of so many dB below; X, y and the coefficients."""
    return datasets.make_sparse_signal(n, d, k, random_state=seed, **given)


def with_signal(X: np.ndarray, seed: int, k: int = 50) -> tuple[np.ndarray, ...]:
    """K columns of X with Gaussian coefficients, and noise 3 dB below."""
    rng = np.random.default_rng([1, seed])
    w = np.zeros(X.shape[1])
    w[rng.choice(len(w), k, replace=False)] = rng.standard_normal(k)
    signal, noise = X @ w, rng.standard_normal(len(X))
    return X, signal + noise * np.linalg.norm(signal) / np.linalg.norm(noise) * 10 ** (-3 / 20), w


def entries(draw: str, seed: int) -> tuple[np.ndarray, ...]:
    """Independent entries of another distribution, or columns that depend on their neighbours."""
    rng = np.random.default_rng(seed)
    if draw == "t(4)":
        return with_signal(rng.standard_t(4, (N, D)), seed)
    if draw == "cauchy":
        return with_signal(rng.standard_cauchy((N, D)), seed)
    if draw == "binary":
        return with_signal((rng.random((N, D)) < 0.3).astype(float), seed)
    X = rng.standard_normal((N, D))
    if draw == "near":  # every second column is a copy of its neighbour but for a thousandth
        X[:, 1::2] = X[:, ::2] + 1e-3 * X[:, 1::2]
    else:
        for j in range(1, D):
            X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.7**2) * X[:, j]
    return with_signal(X, seed)


@dataclass(frozen=True)
class Part:
    """A family of problems, and the atoms that a fit takes."""

    make: Callable[..., tuple[np.ndarray, ...]]
    k: int = 50
    fresh_only: bool = True


PARTS = {
    "gaussian": Part(gaussian, fresh_only=False),
    "k=200": Part(partial(gaussian, k=200), 200),
    "float32": Part(partial(gaussian, dtype=np.float32)),
    "20000x20000": Part(partial(gaussian, n=20_000, d=20_000)),
    "SNR 1": Part(partial(gaussian, snr=1.0)),
    "k=100": Part(partial(gaussian, k=100), 100),
    **{name: Part(partial(entries, name)) for name in ("AR(.7)", "t(4)", "cauchy", "binary", "near")},
}
# Ratios to exact BLAS that are wanted, those that `--check` insists on, and ratios to the earlier commit.
WANTED = {
    "gaussian, C order": 13.0,
    "gaussian, F order": 10.0,
    "gaussian, prepared": 18.0,
    "gaussian, scikit-learn": 13.0,
    "k=200": 10.0,
    "float32": 8.0,
    "20000x20000": 13.0,
}
FLOORS = {
    "gaussian, C order": 6.5,
    "gaussian, F order": 6.5,
    "gaussian, prepared": 9.0,
    "gaussian, scikit-learn": 8.5,
}
FASTER = {"SNR 1": 1.7, "k=100": 1.7, "AR(.7)": 1.7}
FASTER |= dict.fromkeys(("t(4)", "cauchy", "binary", "near"), 0.95)
BEFORE = "d3981e6"  # the last commit whose products were made step by step
CHECKED = ("gaussian",)


def measured(part: str, seed: int, alone: bool = False) -> Figures:
    """Milliseconds of the fits of one problem, by name; those that others are compared with begin with =.

    With `alone` only that of a fresh certified fit.
    """
    (X, y, w), solver = PARTS[part].make(seed), OMP(n_nonzero_coefs=PARTS[part].k)
    certified = lambda: minimize(X, y, solver, "certified")  # noqa: E731
    found, fits = certified().support.tolist(), {part: certified}
    if not PARTS[part].fresh_only:
        F, design = np.asfortranarray(X), as_design(X)
        minimize(design, y, solver, "certified")
        others = iter([X @ np.roll(w, shift) + (y - X @ w) for shift in range(1, 9)])
        fits = {
            f"{part}, C order": certified,
            f"{part}, F order": lambda: minimize(F, y, solver, "certified"),
            f"{part}, prepared": lambda: minimize(design, next(others), solver, "certified"),
        }
    times = best_times(fits, 3)
    if not alone:
        from sklearn.linear_model import orthogonal_mp

        atoms: list[list[int]] = []
        rivals = {"=exact": lambda: atoms.append(minimize(X, y, solver, "exact").support.tolist())}
        if not PARTS[part].fresh_only:
            rivals["=scikit-learn"] = lambda: orthogonal_mp(X, y, n_nonzero_coefs=50)
        times |= best_times(rivals, 1 if X.size > N * D else 2)
        if found != atoms[0]:
            raise SystemExit(f"{part}, seed {seed}: certified atoms differ from exact ones")
    return {name: 1000 * seconds for name, seconds in times.items()}


def figures(part: str, seeds: int) -> tuple[Figures, Figures]:
    """Medians over seeds: milliseconds, and ratios to exact BLAS or to scikit-learn."""
    runs = [measured(part, seed) for seed in range(seeds)]
    times = {name: float(np.median([run[name] for run in runs])) for name in runs[0]}
    rivals = {name: "=exact" for name in times if not name.startswith("=")}
    ratios = {name: float(np.median([run[of] / run[name] for run in runs])) for name, of in rivals.items()}
    if "=scikit-learn" in times:
        name = f"{part}, C order"
        versus = [run["=scikit-learn"] / run[name] for run in runs]
        ratios[f"{part}, scikit-learn"] = float(np.median(versus))
    return times, ratios


def of_commit(revision: str, part: str, seeds: int) -> float:
    """Milliseconds that an earlier commit takes for the certified fits of a part."""
    given = (__file__, part, "--seeds", str(seeds), "--json")
    worker = start(unpacked(revision), *given, stdout=subprocess.PIPE)
    told = worker.communicate()[0]
    if worker.returncode:
        raise SystemExit("the worker of the earlier commit failed")
    return json.loads(told.splitlines()[-1])


def processor() -> str:
    """Its name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main() -> int:
    """Measure and print; 1 if a floor was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help=", ".join(PARTS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--base", metavar="REV", default=BEFORE, help="an earlier commit, or none")
    parser.add_argument("--check", action="store_true", help="short, and with an exit code")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    parts = given.parts or list(CHECKED if given.check else PARTS)
    seeds = 2 if given.check else given.seeds
    if given.json:
        fits = [measured(parts[0], seed, alone=True) for seed in range(seeds)]
        print(json.dumps(np.median([fit[parts[0]] for fit in fits])))
        return 0
    print(f"Certified OMP, one thread, median of {seeds} seeds, {processor()}, {HERE.name}")
    print(f"{'fit':<24}{'ms':>8}{'ratio':>8}{'wanted':>8}{'floor':>8}   {given.base}: ratio, wanted")
    missed = []
    for part in parts:
        times, ratios = figures(part, seeds)
        for name, ratio in ratios.items():
            wanted, floor = WANTED.get(name), FLOORS.get(name)
            shown = "".join(f"{number:>8.1f}" if number else " " * 8 for number in (ratio, wanted, floor))
            took, then = times.get(name, times.get("=scikit-learn", 0.0)), ""
            if name in FASTER and given.base != "none":
                then = f"{of_commit(given.base, part, seeds) / took:>8.2f}{FASTER[name]:>8.2f}"
            print(f"{name:<24}{took:>8.1f}{shown}{then}", flush=True)
            if floor is not None and ratio < floor:
                missed.append(name)
        print(f"{part}, exact BLAS".ljust(24) + f"{times['=exact']:>8.1f}", flush=True)
    if given.check and missed:
        print("below the floor:", ", ".join(missed))
    return int(given.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
