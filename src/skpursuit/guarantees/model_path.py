"""A path as audits and proofs see it: a problem, and columns in the order in which they were taken."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skpursuit.data import Design, split_target
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.parameters import check_flag, check_indices, check_nonnegative
from skpursuit.problem.losses import Loss, as_loss
from skpursuit.problem.problem import Problem, make_problem
from skpursuit.problem.targets import check_targets_range, checked_targets

NOT_OF_THIS_DATA = (
    "the path does not lead to its own objectives on this X and y: they are other data, or its solver is not "
    "OMP, or it used weights or a ridge; have the run weigh itself: minimize(..., audit=True)"
)


class ModelPath(NamedTuple):
    """Columns in the order in which a pursuit on a problem took them; `forced` ones were there before.

    `objectives` are those that a run recorded after each step, where it did.
    """

    problem: Problem
    columns: Indices
    forced: tuple[int, ...] = ()
    objectives: Floats | None = None


def read_path(
    X: Any, y: Any, path: Any, loss: str | Loss, ridge: float = 0.0, fit_intercept: bool = False
) -> ModelPath:
    """The path of a `Result`, a fitted estimator or a list of columns, checked against X and y.

    An estimator brings its own loss, ridge, scaling and intercept.
    """
    check_nonnegative("ridge", ridge, optional=False)
    check_flag("fit_intercept", fit_intercept)
    of_estimator = getattr(path, "model_path", None)
    if of_estimator is not None:
        return of_estimator(X, y)
    design, y = split_target(X, y)
    y, chosen = checked_targets(y, design.shape[0]), as_loss(loss)
    check_targets_range(y)
    columns, objectives = _columns(path, design.shape[1])
    view, forced = design.view, ()
    if fit_intercept and chosen.quadratic:
        view, y = view.compose(centre=design.survey(spreads=False).means), y - y.mean(axis=0)
    elif fit_intercept:
        view, forced = view.compose(constant=True), (design.shape[1],)
    problem = make_problem(design.with_view(view), y, chosen, None, ridge)
    return ModelPath(problem, columns, forced, objectives)


def _columns(path: Any, d: int) -> tuple[Indices, Floats | None]:
    """The columns of a result, with the objectives of its steps, or those of a list."""
    history, objectives = getattr(path, "history", None), None
    if history is not None:
        steps = [record for record in history if record.selected]
        path, objectives = [one.selected[-1] for one in steps], np.array([one.objective for one in steps])
        if len(set(path)) < len(path) or any(one.gap is not None for one in steps):
            raise ValueError(NOT_OF_THIS_DATA)
    elif getattr(path, "get_params", None) is not None:
        name = type(path).__name__
        raise TypeError(f"{name} does not say in which order it took its columns; give them as a list")
    check_indices("path", path)
    columns = np.asarray(path, dtype=np.intp)
    if not len(columns):
        raise ValueError("path has no columns; give at least one")
    if columns.max() >= d:
        raise ValueError(f"path names column {columns.max()}, but X has {d} columns, from 0 to {d - 1}")
    return columns, objectives
