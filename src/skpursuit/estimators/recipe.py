"""From the parameters of an estimator to a run, and from the run to a linear model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

import skpursuit
from skpursuit.data import Design
from skpursuit.data.base import Floats, Indices
from skpursuit.estimators.folds import Model
from skpursuit.estimators.intercept import Shifted, best_constant
from skpursuit.estimators.linear import Frame, clipped, make_frame
from skpursuit.loop.run import Run, make_run
from skpursuit.problem.losses import Loss, Squared, as_loss
from skpursuit.problem.state import Result, State
from skpursuit.selectors import Selector
from skpursuit.solvers.base import Solver
from skpursuit.solvers.pursuit import OMP

RIDGED = ("omp", "grasp")  # solvers whose fits have a penalty
CLASS_RIDGE = 0.03  # chosen on text collections, see the README


@dataclass(frozen=True)
class Fit:
    """A fitted linear model: columns in order of selection, their coefficients, intercept, and the run."""

    columns: Indices
    coef: Floats
    intercept: Any
    result: Result


@dataclass(frozen=True)
class Recipe:
    """What the pursuit estimators are asked to do, whatever the data. Whoever makes one checks the values."""

    solver: str | Solver = "omp"
    selector: str | Selector = "auto"
    loss: str | Loss = "squared"
    n_nonzero_coefs: int | None = None
    tol: float | None = None
    fit_intercept: bool = True
    normalize: bool = False
    max_iter: int | None = None
    radius: float = 1.0
    ridge: float | None = None
    random_state: Any = None

    @classmethod
    def of(cls, estimator: Any, **changes: Any) -> Self:
        """Take the parameters an estimator has under these names."""
        names = [f.name for f in fields(cls) if hasattr(estimator, f.name)]
        return cls(**({name: getattr(estimator, name) for name in names} | changes))

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", as_loss(self.loss))
        self._check_ridge()

    def _check_ridge(self) -> None:
        """Refuse a ridge that was given and would have no effect."""
        if not self.ridge:
            return
        useless = f"ridge={self.ridge:g} has no effect with"
        if isinstance(self.solver, Solver):
            raise ValueError(f"{useless} a solver object; give it to the solver, as in OMP(ridge=0.1)")
        if self.solver not in RIDGED:
            raise ValueError(f"{useless} solver {self.solver!r}; leave it out or use {' or '.join(RIDGED)}")
        if isinstance(self.loss, Squared):
            raise ValueError(f"{useless} squared loss; leave it out")

    @property
    def penalty(self) -> float:
        """The ridge that was given, or a little for losses of classes, which may be separable."""
        if self.ridge is not None:
            return self.ridge
        classes = hasattr(self.loss, "probability") or hasattr(self.loss, "probabilities")
        return CLASS_RIDGE if classes else 0.0

    def sparsity(self, base: Design, weights: Floats | None) -> int:
        """The number of coefficients: by default min(n, d, max(10, d // 10)), or min(n, d) with `tol`.

        Weights may be counts: then n is their sum, as if the samples were repeated.
        """
        n, d = base.shape
        if self.n_nonzero_coefs is not None:
            return clipped("n_nonzero_coefs", self.n_nonzero_coefs, d)
        if weights is not None:
            n = int(max(np.count_nonzero(weights), min(weights.sum(), d)))
        return min(n, d) if self.tol is not None else min(n, d, max(10, d // 10))

    def fit(
        self,
        base: Design,
        y: Any,
        weights: Floats | None = None,
        start: Model | None = None,
        steps: list[Model] | None = None,
    ) -> Fit:
        """Fit one problem; `steps` receives the model after every iteration."""
        problem = self._pose(base, y, weights)
        run = problem.run(replace(self, n_nonzero_coefs=self.sparsity(base, weights)), start)
        if steps is not None:
            run.watch = lambda state: steps.append(
                problem.model(run.units.state(run.solver.finish(run.problem, state)))
            )
        run.go()
        return Fit(*problem.model(run.units.state(run.state)), run.result())

    def _pose(self, base: Design, y: Any, weights: Floats | None) -> Posed:
        """The intercept: by centring (squared loss), a forced column (OMP) or a shift (other solvers)."""
        loss: Any = self.loss
        forced = isinstance(self.solver, OMP) or self.solver == "omp"
        if isinstance(loss, Squared) or forced or not self.fit_intercept:
            return Posed(make_frame(base, y, loss, weights, self.fit_intercept, self.normalize), loss)
        frame = make_frame(base, y, loss, weights, False, self.normalize)
        shift = best_constant(loss, frame.y, frame.weights)
        return Posed(frame, Shifted(loss, shift), shift)

    def solver_for(self, frame: Frame, start: Model | None) -> Solver:
        """The solver object; columns that must be in the model are forced where the solver knows how."""
        forced = frame.forced
        if isinstance(self.solver, Solver):
            if not forced:
                return self.solver
            assert isinstance(self.solver, OMP)
            k = self.solver.n_nonzero_coefs
            return replace(
                self.solver,
                forced=(*forced, *self.solver.forced),
                n_nonzero_coefs=None if k is None else k + 1,
            )
        assert self.n_nonzero_coefs is not None
        k = self.n_nonzero_coefs
        if self.solver == "omp":
            kept = () if start is None else tuple(int(j) for j in start[0][:k])
            return OMP(
                k + len(forced), self.tol, max_iter=self.max_iter, forced=(*forced, *kept), ridge=self.penalty
            )
        return _OTHERS[self.solver](self, k)


@dataclass(frozen=True)
class Posed:
    """A recipe's problem on given data, with the way from a state to a model of X."""

    frame: Frame
    loss: Any
    shift: Any = None

    def run(self, recipe: Recipe, start: Model | None) -> Run:
        """A run that is ready to go, from an earlier model if there is one."""
        frame = self.frame
        solver = recipe.solver_for(frame, start)
        run = make_run(
            frame.design, frame.y, solver, recipe.selector, self.loss, frame.weights, recipe.random_state
        )
        if start is not None and not isinstance(solver, OMP):
            coef = frame.scaled(start[0], start[1])
            if solver.admits(coef):
                run.start_from(start[0], coef)
        return run

    def model(self, state: State) -> Model:
        """Columns, coefficients and intercept."""
        frame = self.frame
        columns, coef, intercept = frame.model(state.support, state.coef)
        if self.shift is not None:
            intercept += best_constant(self.loss.loss, frame.y, frame.weights, state.z, self.shift)
        return columns, coef, intercept


def _limited(recipe: Recipe, **given: Any) -> dict[str, Any]:
    return given if recipe.max_iter is None else given | {"max_iter": recipe.max_iter}


_OTHERS: dict[str, Callable[[Recipe, int], Solver]] = {
    "mp": lambda r, k: skpursuit.MatchingPursuit(**_limited(r, n_nonzero_coefs=k, tol=r.tol)),
    "cosamp": lambda r, k: skpursuit.CoSaMP(**_limited(r, n_nonzero_coefs=k, tol=r.tol)),
    "grasp": lambda r, k: skpursuit.GraSP(**_limited(r, n_nonzero_coefs=k, tol=r.tol, ridge=r.penalty)),
    "fw": lambda r, k: skpursuit.FrankWolfe(skpursuit.L1Ball(r.radius), **_limited(r, tol=r.tol)),
}
