"""Runs on complex X and y: the real problem that a solver sees, and the way back from what it finds.

Each complex column is a group of two real ones (`data/complex_tile.py`), so solvers that know groups solve
complex problems, and their numbers of columns are those of complex ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from skpursuit.data import Design
from skpursuit.data.complex_tile import as_real
from skpursuit.data.options import column_indices
from skpursuit.numerics.arrays import Indices
from skpursuit.parameters import as_array, short_repr
from skpursuit.problem.column_groups import ColumnGroups
from skpursuit.problem.losses import Loss, as_loss
from skpursuit.problem.problem import checked_weights
from skpursuit.solvers import Solver, as_solver

REAL_PARAMETERS = {"positive": False, "swaps": False, "score": "correlation", "feature_groups": None}


def real_problem(
    design: Design, y: object, solver: str | Solver, loss: str | Loss, sample_weight: object
) -> tuple[object, Solver, object]:
    """Targets, solver and weights of the real problem; what complex numbers cannot have is refused."""
    y, solver, d = as_array("y", y, is_real=False), as_solver(solver), design.shape[1] // 2
    if not design.is_complex:
        raise TypeError("y is complex and X is real; give both alike, as in X.astype(complex) or y.real")
    if y.dtype.kind != "c":
        raise TypeError("X is complex and y is real; give both alike, as in y.astype(complex)")
    if not as_loss(loss).quadratic:
        raise ValueError(f"complex X and y need the loss 'squared', got {loss!r}")
    own = vars(solver)
    if "feature_groups" not in own:
        known = "OMP, MatchingPursuit, CoSaMP, GraSP or SubspacePursuit"
        raise ValueError(f"{type(solver).__name__} does not take complex X; use {known}")
    for name, plain in REAL_PARAMETERS.items():
        value = own.get(name, plain)
        if not (value is plain or (plain is not None and value == plain)):
            raise ValueError(f"{name}={short_repr(value)} is for real X; complex X needs {plain!r}")
    given: dict[str, Any] = {"feature_groups": ColumnGroups(np.repeat(np.arange(d), 2))}
    for name in own.keys() & {"always_include", "exclude"}:
        given[name] = tuple(2 * j for j in column_indices(name, own[name], d, design.names))
    if "ridge" in own:
        given["ridge"] = own["ridge"] / 2  # beside a mean over twice as many rows
    if y.ndim not in (1, 2) or 2 * len(y) != design.shape[0]:
        raise ValueError(f"y has shape {y.shape} and X has {design.shape[0] // 2} rows; they must agree")
    if sample_weight is not None:
        sample_weight = np.repeat(checked_weights(sample_weight, len(y)), 2)
    return as_real(y), replace(solver, **given), sample_weight  # type: ignore[type-var]


def complex_columns(columns: Iterable[int]) -> Indices:
    """The complex columns of real ones, each once, in their order."""
    return np.array(list(dict.fromkeys(j // 2 for j in columns)), dtype=np.intp)
