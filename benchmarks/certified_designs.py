"""OMP, certified against exact, on designs of all kinds: python benchmarks/certified_designs.py [design ...].

The atoms must be the same. Music is read from ../shared/data, or from the folder in SKPURSUIT_DATA.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from timing import best_times  # limits BLAS and the kernels to one thread

from skpursuit import OMP, Certified, as_design, datasets, minimize
from skpursuit.apps.studies.loaders import DataError, find_audio
from skpursuit.selectors import Bound, Query, Selection
from skpursuit.selectors.query import Memory

K = 50
DATA = Path(os.environ.get("SKPURSUIT_DATA", Path(__file__).parents[2] / "shared" / "data"))
Problem = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Watched(Certified):
    """Certified selection that notes how many columns each answer had to compute exactly."""

    recomputed: list[int] = field(default_factory=list)

    def answer(self, bound: Bound, query: Query, memory: Memory) -> Selection:
        answer = super().answer(bound, query, memory)
        self.recomputed.append(answer.recomputed)
        return answer


def gaussian(n: int, d: int, dtype: type = np.float64) -> Problem:
    X, y, _ = datasets.make_sparse_signal(n, d, K, dtype=dtype, random_state=0)
    return X, y


def with_signal(X: np.ndarray) -> Problem:
    """K columns of X with Gaussian coefficients, and as much noise as makes 3 dB."""
    rng = np.random.default_rng(1)
    y = X[:, rng.choice(X.shape[1], K, replace=False)] @ rng.standard_normal(K)
    noise = rng.standard_normal(len(y))
    return X, y + noise * np.linalg.norm(y) / np.linalg.norm(noise) * 10 ** (-3 / 20)


def correlated(n: int, d: int) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X += 3.0 * rng.standard_normal((n, 1))
    return with_signal(X)


def cauchy(n: int, d: int) -> Problem:
    return with_signal(np.random.default_rng(0).standard_cauchy((n, d)))


def music() -> Problem:
    """Pieces of a recording as atoms, and a later piece as the signal."""
    pieces = find_audio(DATA).pieces
    pieces = pieces[np.linalg.norm(pieces, axis=1) > 0]
    return np.ascontiguousarray(pieces[:-1].T), pieces[-1].copy()


DESIGNS: dict[str, Callable[[], Problem]] = {
    "tall": lambda: gaussian(100_000, 2000),
    "wide": lambda: gaussian(500, 200_000),
    "correlated": lambda: correlated(5000, 10_000),
    "cauchy": lambda: cauchy(5000, 10_000),
    "float32": lambda: gaussian(5000, 10_000, np.float32),
    "music": music,
}


def report(name: str) -> bool:
    """Print one line; whether the atoms are the same."""
    try:
        X, y = DESIGNS[name]()
    except DataError as error:
        print(f"{name:<12}skipped: {error}")
        return True
    solver, watched = OMP(n_nonzero_coefs=K), Watched()
    D = as_design(X)
    exact, certified = minimize(D, y, solver, "exact"), minimize(D, y, solver, watched)
    same = exact.support.tolist() == certified.support.tolist()
    times = best_times(
        {
            "exact": lambda: minimize(X, y, solver, "exact"),
            "certified": lambda: minimize(X, y, solver, "certified"),
            "exact prepared": lambda: minimize(D, y, solver, "exact"),
            "certified prepared": lambda: minimize(D, y, solver, "certified"),
        }
    )
    share = np.mean(watched.recomputed) / X.shape[1]
    shape = f"{X.shape[0]} x {X.shape[1]}"
    fresh = times["exact"] / times["certified"]
    prepared = times["exact prepared"] / times["certified prepared"]
    atoms = f"{len(exact.support)} {'same' if same else 'DIFFER'}"
    print(f"{name:<12}{shape:>15}{atoms:>10}{share:>11.4%}{fresh:>8.2f}x{prepared:>9.2f}x", flush=True)
    return same


if __name__ == "__main__":
    print(f"OMP k={K}, one thread, best of 3; times of exact over those of certified;")
    print("columns: share of the columns that an answer computes exactly")
    print(f"{'design':<12}{'size':>15}{'atoms':>10}{'columns':>11}{'fresh':>9}{'prepared':>10}")
    if not all([report(name) for name in sys.argv[1:] or DESIGNS]):
        sys.exit("certified atoms differ from exact ones")
