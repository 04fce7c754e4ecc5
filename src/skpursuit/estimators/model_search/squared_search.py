"""The search over linear models under squared loss: three families, each a path of models on all folds.

`boost` is matching pursuit with a small step: the column that fits the residual best moves by a tenth of its
least-squares step. It shrinks much as the lasso does, and wins where a signal is dense or weak. `greedy`
takes the column that lowers the ridge objective most, and fits all taken columns anew; beyond 20 columns it
takes several at a time, by their gradient. `swap` adds columns in the same way and exchanges a column
for another while that lowers the objective: it finds the few true columns among correlated ones. Its ridge
helps to find them and shrinks them, so `relaxed` fits the same columns without.

The engine would start one run for each fold, size and ridge; here a step of all folds is a few products of
small arrays, and a fit of 500 x 200 tries 400 models on 10 folds in the time in which the engine starts 100
runs. What is shared is the gain of an exchange (`fit/swaps.py`).

Each family is a generator of sizes with `(support, coef)`; support (F, k) may name a column twice or with
coefficient 0. The schedule depends on the size of the data alone, so a fit on all rows goes the way of the
folds.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import takewhile

import numpy as np
from scipy.sparse import issparse

from skpursuit.estimators.cross_validation import Folds
from skpursuit.estimators.linear_fit import LinearFit
from skpursuit.estimators.model_search.fold_least_squares import (
    FoldLeastSquares,
    fold_least_squares,
)
from skpursuit.estimators.model_search.search import (
    BOOST_WORK,
    TYPICAL_SIZES,
    Candidate,
    CandidateSearch,
    HeldOutLoss,
    ScaledData,
    column_blocks,
    early_stopped_path,
    search_ridges,
    size_schedule,
    top_columns,
)
from skpursuit.fit.swaps import gains
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.problem.default_sparsity import MAX_PATH_SIZE
from skpursuit.progress import current_monitor

FoldCoefs = tuple[Indices, Floats]  # support (F, k) and coefficients (F, k, m)
Models = Iterator[tuple[int, FoldCoefs]]

SQUARED_RIDGES, SMALLER, LARGER = 0.1, (1e-6,), (0.3, 1.0, 3.0)
SWAP_RIDGES = (1e-4, 0.3)
STEP = 0.1
MAX_STEPS = 1000
ONE_BY_ONE = 20  # sizes up to which columns are taken one at a time
SIZE_RATIO = 1.3  # of the sizes beyond
MAX_SWAP_SIZE = 25
MAX_SWAPS = 5  # at one size
LEAST_RIDGE = 1e-4  # of relaxed models
GRAM_JITTER = 1e-8  # keeps supports with equal columns solvable
MIN_RESIDUAL_SHARE = 1e-3  # share of a column outside the support below which it counts as this much
MIN_RESIDUAL_SHARE_SWAP = 1e-2
EXPLAINED = 1e-10  # share of the largest squared score below which only rounding orders columns
MIN_SWAP_GAIN = 1e-6  # share of |y|^2 that an exchange must gain


class SquaredSearch(CandidateSearch[FoldCoefs]):
    """Evaluates linear models on the folds by their squared error.

    Targets (n, m) of the data are centred where there is an intercept; `vector` tells that they are one
    vector, so that coefficients are too, and `most` is the largest number of columns.
    """

    def __init__(self, data: ScaledData, folds: Folds, vector: bool, most: int | None) -> None:
        self.folds, self.vector = folds, vector
        self.squared = fold_least_squares(data, folds)
        d = data.X.shape[1]
        allowed = max(1, int(folds.n_effective // 2))
        self.max_size = min(d, allowed, MAX_PATH_SIZE) if most is None else min(d, most)

    def evaluate(self, model: FoldCoefs) -> HeldOutLoss:
        """Halves of squared errors on the test rows, as `Squared` counts them."""
        return HeldOutLoss(model, self.squared.losses(*model), partial(self.squared.row_losses, *model))

    def n_features(self, model: FoldCoefs) -> float:
        return float(model[1].any(axis=2).sum(axis=1).mean())

    def null_model(self) -> HeldOutLoss:
        n_folds, _, targets = self.squared.shape
        return self.evaluate((np.zeros((n_folds, 1), dtype=np.intp), np.zeros((n_folds, 1, targets))))

    def fold_fits(self, model: FoldCoefs, folds: FoldLeastSquares | None = None) -> list[list[LinearFit]]:
        """The models of each fold as models of X and y as they were given."""
        folds = self.squared if folds is None else folds
        found = []
        for support, coef, intercept in zip(*model, folds.intercepts(*model)):
            real = coef.any(axis=1)
            intercept = folds.data.offset + intercept
            found.append([folds.data.original(support[real], coef[real], intercept, self.vector)])
        return found

    def candidate_paths(self, ridges: str | list[float]) -> Iterator[list[Candidate]]:
        paths = 5 if isinstance(ridges, str) else 3 * len(ridges)
        current_monitor().set_total(TYPICAL_SIZES * (paths + BOOST_WORK))
        yield self._path("boost", 0.0)
        yield from search_ridges(partial(self._path, "greedy"), ridges, SQUARED_RIDGES, SMALLER, LARGER)
        for ridge in SWAP_RIDGES if isinstance(ridges, str) else ridges:
            path = self._path("swap", ridge)
            yield path
            if ridge > LEAST_RIDGE:
                models = ((one.size, refit_without_ridge(self.squared, one.evaluation.model)) for one in path)
                yield self._path("relaxed", ridge, models)

    def _path(self, family: str, ridge: float, models: Models | None = None) -> list[Candidate]:
        models = self._models(self.squared, family, ridge) if models is None else models
        return early_stopped_path(self, family, ridge, ((size, self.evaluate(one)) for size, one in models))

    def _models(self, folds: FoldLeastSquares, family: str, ridge: float) -> Models:
        if family == "boost":
            return boosting_path(folds, self.max_size)
        if family == "greedy":
            sizes = size_schedule(self.max_size, ONE_BY_ONE, SIZE_RATIO)
            return greedy_path(folds, ridge, sizes, normalised=not issparse(folds.data.X))
        d, rows = folds.shape[1], self.folds.n_effective
        most = max(3, min(MAX_SWAP_SIZE, int(0.8 * rows / np.log(max(d, 3)))))
        models = swap_path(folds, ridge, min(self.max_size, most, max(1, d - 1)))
        if family == "swap":
            return models
        return ((size, refit_without_ridge(folds, model)) for size, model in models)

    def averaged_with(self, models: Iterable[FoldCoefs], other: FoldCoefs) -> Iterator[HeldOutLoss]:
        n_folds, _, targets = self.squared.shape
        lines = np.arange(n_folds)[:, None]
        for model in models:
            used = np.union1d(model[0], other[0])
            coef = np.zeros((n_folds, len(used), targets))
            for support, part in (model, other):
                coef[lines, np.searchsorted(used, support)] += 0.5 * part
            support = padded_support(coef)
            yield self.evaluate((used[support], coef[lines, support]))

    def refit(self, path: list[Candidate]) -> list[list[LinearFit]]:
        whole, sizes = self.squared.all_rows(), {candidate.size for candidate in path}
        models = self._models(whole, path[0].family, path[0].ridge)
        models = takewhile(lambda model: model[0] <= path[-1].size, models)
        found = [self.fold_fits(model, whole)[0] for size, model in models if size in sizes]
        return found + found[-1:] * (len(path) - len(found))

    @property
    def entries_read(self) -> int:  # type: ignore[override]
        """Entries of X that were read."""
        return self.squared.entries_read


def boosting_path(folds: FoldLeastSquares, most: int) -> Models:
    """Models after some numbers of small steps, with at most `most` columns in any fold."""
    n_folds, d, targets = folds.shape
    lines = np.arange(n_folds)
    g, coef = folds.xy.copy(), np.zeros((n_folds, d, targets))
    sizes = row_norms(g)
    least = 1e-6 * sizes.max(axis=1)
    records = set(np.round(np.geomspace(1, MAX_STEPS, 40)).astype(int).tolist())
    for step in range(1, MAX_STEPS + 1):
        atoms = sizes.argmax(axis=1)
        ended = bool((sizes[lines, atoms] <= least).all())
        move = STEP * g[lines, atoms] / folds.squares[lines, atoms, None]
        coef[lines, atoms] += move
        gram = folds.gram_columns(atoms, sizes)
        for some in column_blocks(n_folds, d):
            g[:, some] -= gram[:, some, None] * move[:, None, :]
            sizes[:, some] = row_norms(g[:, some])
        if step in records:
            support = padded_support(coef)
            if support.shape[1] > most:
                return
            yield step, (support, coef[lines[:, None], support])
            if ended:
                return


def row_norms(g: Floats) -> Floats:
    """Norms over the targets."""
    return np.abs(g[:, :, 0]) if g.shape[2] == 1 else np.sqrt(squared_norms(g))


def squared_norms(g: Floats) -> Floats:
    """Their squares."""
    return g[:, :, 0] ** 2 if g.shape[2] == 1 else (g**2).sum(axis=2)


def padded_support(coef: Floats) -> Indices:
    """Columns of each fold with coefficients; shorter lists go on with columns that have none."""
    taken = np.count_nonzero(coef, axis=2) > 0
    most = max(1, int(taken.sum(axis=1).max()))
    free = [np.flatnonzero(~line[: 2 * most]) for line in taken]
    return np.array([np.append(np.flatnonzero(line), rest)[:most] for line, rest in zip(taken, free)])


def greedy_path(
    folds: FoldLeastSquares,
    ridge: float,
    sizes: list[int],
    normalised: bool = True,
    jitter: float = GRAM_JITTER,
) -> Models:
    """Ridge models on growing supports; unless `normalised`, columns compete by their gradient alone."""
    # With every size, no ridge and no jitter the latter are those of orthogonal matching pursuit.
    n_folds = folds.shape[0]
    lines, penalty = np.arange(n_folds)[:, None], folds.weight[:, None] * ridge
    support, g = np.empty((n_folds, 0), dtype=np.intp), folds.xy
    if normalised:
        run = _StepwiseSearch(folds, ridge, min(ONE_BY_ONE, sizes[-1]), MIN_RESIDUAL_SHARE)
        for size in sizes[:ONE_BY_ONE]:
            run.add(size, 0)
            yield size, run.model(size)
        support, g, sizes = run.support, run.g, sizes[ONE_BY_ONE:]
    least = EXPLAINED * normalised * squared_norms(folds.xy).max(axis=1, keepdims=True)
    for size in sizes:
        score = np.where((score := squared_norms(g)) < least, 0.0, score)
        score[lines, support] = -1.0
        new = np.array([top_columns(line, size - support.shape[1]) for line in score])
        support = np.hstack([support, new])
        matrix = add_to_diagonal(folds.support_grams(support), folds.weight, penalty, jitter)
        coef = np.linalg.solve(matrix, folds.xy[lines, support])
        yield size, (support, coef)
        if size < sizes[-1]:
            g = folds.gradient(support, coef)


def add_to_diagonal(matrix: Floats, weight: Floats, penalty: Floats, jitter: float = GRAM_JITTER) -> Floats:
    """Matrices with what is added to their diagonals, those of columns of any size."""
    places = np.arange(matrix.shape[1])
    own = matrix[:, places, places]
    matrix[:, places, places] += penalty + jitter * np.maximum(own, weight[:, None])
    return matrix


def refit_without_ridge(folds: FoldLeastSquares, model: FoldCoefs) -> FoldCoefs:
    """The same columns, fitted without a ridge."""
    support = model[0]
    matrix = add_to_diagonal(folds.support_grams(support), folds.weight, LEAST_RIDGE * folds.weight[:, None])
    return support, np.linalg.solve(matrix, folds.xy[np.arange(len(support))[:, None], support])


def swap_path(folds: FoldLeastSquares, ridge: float, most: int) -> Models:
    """Ridge models of each size after exchanges of columns."""
    run = _StepwiseSearch(folds, ridge, most, MIN_RESIDUAL_SHARE_SWAP)
    for size in range(1, most + 1):
        run.add(size, MAX_SWAPS)
        yield size, run.model(size)


class _StepwiseSearch:
    """Supports of all folds with the Gram columns of their atoms; folds that changed are solved again."""

    def __init__(self, folds: FoldLeastSquares, ridge: float, most: int, least: float) -> None:
        n_folds, d, targets = folds.shape
        self.folds, self.penalty = folds, folds.weight * ridge
        self.support = np.zeros((n_folds, most), dtype=np.intp)
        self.rows = np.zeros((n_folds, most, d))
        self.coef = np.zeros((n_folds, most, targets))
        self.taken = np.zeros((n_folds, d), dtype=bool)
        self.g = folds.xy.copy()
        self.left = folds.squares + self.penalty[:, None]
        self.floor = least * folds.squares
        self.worth = MIN_SWAP_GAIN * folds.yy

    def model(self, size: int) -> FoldCoefs:
        """The models of this size."""
        return self.support[:, :size].copy(), self.coef[:, :size].copy()

    def add(self, size: int, swaps: int) -> None:
        """Add a column to every fold, then exchange up to so many while the objective falls."""
        score = np.empty_like(self.left)
        for some in column_blocks(*score.shape):
            left = np.maximum(self.left[:, some], self.floor[:, some])
            np.divide(squared_norms(self.g[:, some]), left, out=score[:, some])
        score[self.taken] = -1.0
        active = np.arange(len(score))
        self._put(active, np.full(len(active), size - 1), score.argmax(axis=1))
        for left in reversed(range(swaps + 1)):
            active, places, atoms = self._solve(active, size, exchange=size > 1 and left > 0)
            if len(active) == 0:
                return
            self.taken[active, self.support[active, places]] = False
            self._put(active, places, atoms)

    def _put(self, active: Indices, places: Indices, atoms: Indices) -> None:
        every = self.support[:, 0].copy()
        every[active] = atoms
        self.support[active, places] = atoms
        gram = self.folds.gram_columns(every)
        for f, place in zip(active, places):
            self.rows[f, place] = gram[f]
        self.taken[active, atoms] = True

    def _solve(self, active: Indices, size: int, exchange: bool) -> tuple[Indices, Indices, Indices]:
        """Fit the folds again, with A = (G_SS + n ridge)^-1; then look for the best exchange of each.

        Returns folds that gain by one, the place in the support that gives way, and the new column.
        """
        folds, support = self.folds, self.support[active, :size]
        matrix = self.rows[active[:, None, None], np.arange(size)[:, None], support[:, None, :]]
        inverse = np.linalg.inv(add_to_diagonal(matrix, folds.weight[active], self.penalty[active, None]))
        coef = self.coef[active, :size] = inverse @ folds.xy[active[:, None], support]
        pivots = np.diagonal(inverse, axis1=1, axis2=2)
        best, atoms = np.full(pivots.shape, -1.0), np.zeros(pivots.shape, dtype=np.intp)
        for some in column_blocks(pivots.size, folds.shape[1]):
            rows = self.rows[active, :size, some]
            products = inverse @ rows
            self.g[active, some] = folds.xy[active, some] - rows.transpose(0, 2, 1) @ coef
            inside = np.einsum("fkd,fkd->fd", rows, products)
            self.left[active, some] = folds.squares[active, some] + self.penalty[active, None] - inside
            if exchange:
                g, left, floor = (part[active, some] for part in (self.g, self.left, self.floor))
                gain = gains(products, pivots, coef, g, left, floor)
                gain.transpose(0, 2, 1)[self.taken[active, some]] = -1.0
                here = gain.argmax(axis=2)
                found = np.take_along_axis(gain, here[:, :, None], axis=2)[:, :, 0]
                better = found > best
                best[better], atoms[better] = found[better], some.start + here[better]
        places, lines = best.argmax(axis=1), np.arange(len(active))
        pays = best[lines, places] > self.worth[active]
        return active[pays], places[pays], atoms[lines, places][pays]
