"""The main job on a built-in problem: one line per way of finding the atoms."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skpursuit.datasets import make_sparse_signal
from skpursuit.loop import minimize
from skpursuit.metrics import f_measure
from skpursuit.selectors import NAMES
from skpursuit.solvers.pursuit import OMP

SHOWN = ("exact", "auto")


@dataclass(frozen=True)
class Line:
    """One selector on the demo problem."""

    selector: str
    seconds: float
    ratio: float
    share_read: float
    same_atoms: int
    f_measure: float
    certificate: str


def fit_lines(
    n: int, d: int, k: int, seed: int = 0, progress: Callable[[str], Any] | None = None
) -> list[Line]:
    """Fit one toy problem with each selector, best of two runs each, exact BLAS first."""
    X, y, w = make_sparse_signal(n, d, k, random_state=seed)
    lines: list[Line] = []
    exact_support: set[int] = set()
    for name in [shown for shown in SHOWN if shown in NAMES]:
        if progress is not None:
            progress(name)
        seconds = np.inf
        for _ in range(2):
            began = time.perf_counter()
            result = minimize(X, y, OMP(n_nonzero_coefs=k), name, random_state=seed)
            seconds = min(seconds, time.perf_counter() - began)
        exact_support = exact_support or set(result.support.tolist())
        lines.append(
            Line(
                selector=name,
                seconds=seconds,
                ratio=(lines[0].seconds if lines else seconds) / seconds,
                share_read=result.bytes_read / (result.n_iter * X.nbytes),
                same_atoms=len(exact_support & set(result.support.tolist())),
                f_measure=f_measure(w, result.coef),
                certificate=result.history[-1].certificate,
            )
        )
    return lines
