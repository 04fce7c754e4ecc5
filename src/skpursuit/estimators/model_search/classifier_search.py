"""The search over classifiers, and regressions with other losses: greedy and boosted models of all folds.

At each size the columns with the largest gradient join the support, one at a time up to 10 and then more, and
a few Newton steps from the last model fit all coefficients (`fit/newton.py`). A fit on all rows takes the
same number of steps at the same sizes: a model that is fitted more closely than those of the folds predicts
worse. Boosting moves one coefficient at a time, by a fifth of the step that a bound on the curvature allows:
it shrinks as an l1 penalty does, and wins where a signal is weak or has many columns and few rows. It goes on
among the likely columns for longer and longer before it looks at all of them again, which hardly changes its
way.

Two classes are one problem, and so are several that share their columns. One-vs-rest is one problem for each
class; these share size and ridge.
"""

import copy
from collections.abc import Iterable, Iterator

import numpy as np
from scipy.sparse import issparse

from skpursuit.estimators.cross_validation import Folds
from skpursuit.estimators.linear_fit import LinearFit, average_fits
from skpursuit.estimators.model_search.search import (
    BOOST_WORK,
    TYPICAL_SIZES,
    Candidate,
    CandidateSearch,
    HeldOutLoss,
    ScaledData,
    early_stopped_path,
    search_ridges,
    size_schedule,
    top_columns,
)
from skpursuit.fit.newton import fit_outputs
from skpursuit.numerics.arrays import NO_COLUMNS, Compressed, Floats, Indices
from skpursuit.problem.default_sparsity import MAX_PATH_SIZE
from skpursuit.problem.losses import Loss
from skpursuit.problem.problem import Derivatives, SampleLosses
from skpursuit.progress import current_monitor

CLASS_RIDGES, SMALLER, LARGER = 0.1, (0.01, 1e-3, 1e-4), (1.0,)
CLASS_ONE_BY_ONE, CLASS_SIZE_RATIO = 10, 1.4
NEWTON_STEPS, NULL_STEPS = 3, 20  # of a model at each size, and of the model without columns
NEWTON_TOL = 1e-4
KEPT_LOSSES = 2**13  # samples of which they are kept from one fit to the next
MAX_DIRECT_COLUMNS = 125  # dense coefficients up to which Newton's equations are solved directly
CLASS_SHRINKAGE, MAX_BOOST_STEPS = 0.2, 1000
WORKING_SET_SIZE = 64  # columns of each model with the largest gradients, among which boosting goes on
AGAIN = 8  # until all columns are looked at again, after this share of the steps so far
BOOST_RECORDS = np.unique(np.geomspace(1, MAX_BOOST_STEPS, 35).astype(int)).tolist()
BOOST_RISE_SE = 2.0  # standard errors by which their loss must have risen: it may fall a second time
MAX_BOOST_ENTRIES = 2e7  # entries of X times folds
BOOST_TOL = 0.025  # share of the largest step: boosting ends once all steps are as small


class FoldClassifier:
    """A model of one problem on the training rows of one fold; predictions z (n, m) are of all rows."""

    def __init__(self, loss: Loss, y: Floats, outputs: int, weights: Floats, fit_intercept: bool) -> None:
        self.samples, self.weights = SampleLosses(y, loss, weights), weights
        self.fit_intercept = fit_intercept
        each = range(0 if loss.couples_targets else outputs)
        self.apart = [self.samples.target(t) for t in each] or [self.samples]
        self.columns, self.total = NO_COLUMNS, float(weights.sum())
        self.coef: Floats = np.zeros((0, outputs))
        self.intercept: Floats = np.zeros(outputs)
        self.z: Floats = np.zeros((len(weights), outputs))
        self.losses: list[Derivatives] = []  # of the outputs at z, where a fit left them
        if fit_intercept:
            self.fit(np.ones((1, len(weights))), 0.0, NULL_STEPS)

    def add(self, new: Indices) -> None:
        """Columns join the support, with coefficients of zero."""
        self.columns = np.concatenate([self.columns, new])
        self.coef = np.vstack([self.coef, np.zeros((len(new), self.coef.shape[1]))])

    def fit(self, rows: Floats | Compressed, ridge: float, max_iter: int = NEWTON_STEPS) -> None:
        """Some Newton steps on the support; `rows` are all columns, the last of them ones."""
        used, k, w = self.columns, len(self.coef), self.coef
        penalty = np.full(k + self.fit_intercept, ridge * self.total)
        if self.fit_intercept:
            used, w = np.append(used, rows.shape[0] - 1), np.vstack([w, self.intercept])
            penalty[k] = 0.0
        unknowns = w.size if self.samples.loss.couples_targets else len(w)
        by_products = issparse(rows) or unknowns > MAX_DIRECT_COLUMNS
        rules = penalty, NEWTON_TOL, max_iter, by_products
        w, self.z, losses = fit_outputs(rows[used], self.apart, w, self.z, *rules, self.losses)
        self.losses, self.coef = losses if len(self.z) <= KEPT_LOSSES else [], w[:k]
        if self.fit_intercept:
            self.intercept = w[k]


ScaledFit = tuple[Indices, Floats, Floats]  # columns, their coefficients and the intercept, of scaled columns
Models = list[list[FoldClassifier]]  # for each fold one of every problem


class ClassifierSearch(CandidateSearch[list[list[ScaledFit]]]):
    """Evaluates classifiers on the folds by their loss, with at most `most` columns.

    Targets are labels -1 and +1, (n,) or (n, m), or class numbers of a loss that couples its outputs.
    """

    def __init__(
        self, data: ScaledData, loss: Loss, targets: list[Floats], folds: Folds, most: int | None
    ) -> None:
        self.data, self.loss, self.folds = data, loss, folds
        shapes = [loss.prediction_shape(y) for y in targets]
        self.vectors = [shape == () for shape in shapes]
        self.outputs = [int(np.prod(shape)) for shape in shapes]
        self.targets = [y[:, None] if vector else y for y, vector in zip(targets, self.vectors)]
        self.rows, d = data.lines(), data.X.shape[1]
        allowed = max(1, int((2 if loss.gives_probability else 0.5) * folds.n_effective))
        self.max_size = min(d, allowed, MAX_PATH_SIZE) if most is None else min(d, most)
        small = not issparse(self.rows) and data.X.size * folds.shape[0] <= MAX_BOOST_ENTRIES
        self.boosts = small and max(self.outputs) == 1 and loss.smoothness is not None  # a safe step is known
        self.begun = self._begun(folds)

    def null_model(self) -> HeldOutLoss:
        return self._evaluate(self.begun)

    def fold_fits(self, model: list[list[ScaledFit]]) -> list[list[LinearFit]]:
        return [
            [self.data.original(*fit, vector) for fit, vector in zip(fits, self.vectors)] for fits in model
        ]

    def candidate_paths(self, ridges: str | list[float]) -> Iterator[list[Candidate]]:
        """The boosted path, and those of some ridges."""
        many = 4 if isinstance(ridges, str) else len(ridges)
        current_monitor().set_total(TYPICAL_SIZES * (many + BOOST_WORK * self.boosts))
        if self.boosts:
            found = ((step, self._evaluate(models)) for step, models in self._boosted(self._started()))
            yield early_stopped_path(self, "boost", 0.0, found, turned=BOOST_RISE_SE)
        yield from search_ridges(self._path, ridges, CLASS_RIDGES, SMALLER, LARGER)

    def _path(self, ridge: float) -> list[Candidate]:
        models = ((size, self._evaluate(models)) for size, models in self._grown(self._started(), ridge))
        return early_stopped_path(self, "greedy", ridge, models)

    def averaged_with(
        self, models: Iterable[list[list[ScaledFit]]], other: list[list[ScaledFit]]
    ) -> Iterator[HeldOutLoss]:
        found = self._started()
        for model in models:
            for growth, *pairs in zip(found, model, other):
                for one, *fits in zip(growth, *pairs):
                    one.columns, one.coef, one.intercept = average_fits([LinearFit(*fit) for fit in fits])[:3]
                    one.z = self.rows[one.columns].T @ one.coef + one.intercept
            yield self._evaluate(found)

    def refit(self, path: list[Candidate]) -> list[list[LinearFit]]:
        whole = self._begun(Folds.of_all_rows(self.folds.weights))
        boosted = path[0].family == "boost"
        found = self._boosted(whole, ends=False) if boosted else self._grown(whole, path[0].ridge)
        return [self.fold_fits(_fitted(models))[0] for _, (_, models) in zip(path, found)]

    def _begun(self, folds: Folds) -> Models:
        intercept = self.data.fit_intercept
        return [
            [FoldClassifier(self.loss, y, m, train, intercept) for y, m in zip(self.targets, self.outputs)]
            for train in folds.train
        ]

    def _started(self) -> Models:
        return [[copy.copy(model) for model in each] for each in self.begun]

    def _grown(self, models: Models, ridge: float) -> Iterator[tuple[int, Models]]:
        every = [model for each in models for model in each]
        for size in size_schedule(self.max_size, CLASS_ONE_BY_ONE, CLASS_SIZE_RATIO):
            self._add(every, size)
            for model in every:
                model.fit(self.rows, ridge)
            yield size, models

    def _add(self, every: list[FoldClassifier], size: int) -> None:
        """Let the columns with the largest gradients join, of all folds and problems by one product."""
        if self.loss.couples_targets:
            residuals = np.hstack([model.samples.residual(model.z) for model in every])
        else:
            residuals = _weights_of(every) * self.loss.residual(*_side_by_side(every))
        slopes = self._products(residuals)
        edges = np.cumsum([model.coef.shape[1] for model in every])[:-1]
        for model, part in zip(every, np.split(slopes, edges, axis=1)):
            score = np.abs(part[:, 0]) if part.shape[1] == 1 else np.sqrt((part**2).sum(axis=1))
            score[model.columns] = -1.0
            model.add(top_columns(score, size - len(model.columns)))

    def _products(self, r: Floats) -> Floats:
        """Products of all columns with r."""
        self.entries_read += self.data.X.size
        return np.asarray(self.rows @ r)[:-1]

    def _boosted(self, models: Models, ends: bool = True) -> Iterator[tuple[int, Models]]:
        """Steps, in units of a bound of the curvature, along the largest gradients; it `ends` on arrival."""
        every = [model for each in models for model in each]
        (y, z), weights = _side_by_side(every), _weights_of(every)
        unit = (self.loss.smoothness or 1.0) * weights.sum(axis=0)
        intercepts = np.array([model.intercept[0] for model in every])
        coef, each = np.zeros((self.data.X.shape[1], len(every))), np.arange(len(every))
        again, steepest = 1, 0.0
        for step in range(1, MAX_BOOST_STEPS + 1):
            r = weights * self.loss.residual(y, z)
            if step == again:
                sizes, few = np.abs(self._products(r)), min(WORKING_SET_SIZE, len(coef))
                likely = np.flatnonzero((sizes >= np.partition(sizes, -few, axis=0)[-few]).any(axis=1))
                if 2 * len(likely) > len(coef):  # a copy of most of X would be as large as X
                    likely = np.arange(len(coef))
                rows = self.rows[likely if len(likely) < len(coef) else slice(len(coef))]
                again = step + 1 + step // AGAIN
            slopes = rows @ r
            best = np.abs(slopes).argmax(axis=0)
            change = -CLASS_SHRINKAGE * slopes[best, each] / unit
            coef[likely[best], each] += change
            z += rows[best].T * change
            if self.data.fit_intercept:
                shift = -(weights * self.loss.residual(y, z)).sum(axis=0) / unit
                z += shift
                intercepts += shift
            steepest = max(steepest, np.abs(change).max())
            if step in BOOST_RECORDS:
                for p, model in enumerate(every):
                    model.columns = np.flatnonzero(coef[:, p])
                    model.coef, model.z = coef[model.columns, p : p + 1], z[:, p : p + 1]
                    model.intercept = intercepts[p : p + 1].copy()
                yield step, models
                if ends and np.abs(change).max() <= BOOST_TOL * steepest:
                    return

    def _evaluate(self, models: Models) -> HeldOutLoss:
        """The models with the losses on their test rows, summed over problems and outputs."""
        if self.loss.couples_targets:
            losses = np.array([sum(self.loss.value(m.samples.y, m.z) for m in each) for each in models])
        else:
            value = self.loss.value(*_side_by_side([model for each in models for model in each]))
            losses = value.reshape(len(value), len(models), -1).sum(axis=2).T
        weighted = (losses * self.folds.test).T
        rows = self.folds.mean_row_losses(weighted[self.folds.sampled_rows])
        return HeldOutLoss(_fitted(models), weighted.sum(axis=0), lambda: rows)


def _side_by_side(every: list[FoldClassifier]) -> tuple[Floats, Floats]:
    """Targets and predictions of models whose outputs are not coupled, one column for each output."""
    return np.hstack([model.samples.y for model in every]), np.hstack([model.z for model in every])


def _weights_of(every: list[FoldClassifier]) -> Floats:
    """The weights of the rows for each column of `_side_by_side`."""
    return np.stack([model.weights for model in every for _ in range(model.z.shape[1])], axis=1)


def _fitted(models: Models) -> list[list[ScaledFit]]:
    return [[(model.columns, model.coef, model.intercept) for model in each] for each in models]
