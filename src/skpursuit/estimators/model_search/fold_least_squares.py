"""Least squares on all folds at once: what the families of models need to know of X and y.

Columns of X are centred and scaled over all rows; each fold then centres them again by its own training rows,
in formulas. `FoldLeastSquares` keeps a scaled copy of X and the Gram columns that were asked for: those of
all folds come from one product. `GramLeastSquares` keeps the Gram matrix of every fold's training and test
rows. One pass over X gives those of the test rows, and the training ones by subtraction; they give the
held-out error of any model without X.

Shapes: F folds, n rows, d columns, m targets. A model of all folds is `support` (F, k) and `coef` (F, k, m).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import diags_array, hstack, issparse

from skpursuit.estimators.cross_validation import Folds
from skpursuit.estimators.model_search.search import ScaledData, column_blocks
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.tuning import MOMENT_BLOCK, MOMENT_ROWS

MAX_GRAM_ENTRIES = 4e7  # entries of all Gram matrices together
MAX_GRAM_WIDTH = 600  # columns up to which Gram matrices pay though there are fewer rows
PREFETCH_COLUMNS = 16  # Gram columns of the best scores, made together with one that is missing
CACHE_BYTES = 2**28  # Gram columns of wide X
FEW_ROWS = 64  # below which a Gram column is made as fast as it is copied out of a cache


class FoldLeastSquares:
    """A scaled copy of X, and Gram columns of all folds for the atoms that were asked for.

    Of each fold it has the weight, means, products of the centred columns with y and their squares. Means
    (F, d) and (F, m) are of the training rows, zero without an intercept; `xy` is (F, d, m), and `squares`
    (F, d) is the diagonal of the Gram matrix. Columns whose norms are at most `noise` are constant: `squares`
    are 1 there, and products with all others zero.
    """

    entries_read: int = 0

    def __init__(self, data: ScaledData, folds: Folds, scaled: Any = None) -> None:
        self.data, self.folds = data, folds
        X = self.X = data.block() if scaled is None else scaled
        train, y = folds.train, data.y
        sum_x = np.asarray(train @ X)
        xy = np.stack([np.asarray((train * line) @ X) for line in y.T], axis=2)
        if issparse(X):
            squares = np.asarray(train @ X.multiply(X))
        else:
            squares = np.hstack([train @ X[:, some] ** 2 for some in column_blocks(*X.shape)])
        self._centre(sum_x, train @ y, xy, squares, train @ (y**2).sum(axis=1))
        self.sum_x = sum_x
        self._cache: dict[int, Floats] = {}
        room = int(CACHE_BYTES // (8 * len(train) * X.shape[1]))
        self._room = room if room >= 2 * PREFETCH_COLUMNS and X.shape[0] >= FEW_ROWS else 0
        held = float(np.count_nonzero(folds.test)) * X.shape[1]
        self._tests: list[tuple[Indices, Floats]] = []  # rows that a fold tests, and these rows of X
        complements = (train + folds.test == folds.weights).all()
        if self._room and complements and not issparse(X) and 0 < 8 * held <= CACHE_BYTES:
            tests = [np.flatnonzero(test) for test in folds.test]
            self._tests = [(rows, X[rows]) for rows in tests]

    def _centre(self, sum_x: Floats, sum_y: Floats, xy: Floats, squares: Floats, yy: Floats) -> None:
        """Set the attributes from sums over training rows."""
        used = float(self.data.fit_intercept)
        self.weight = self.folds.train.sum(axis=1)
        self.mean_x = used * sum_x / self.weight[:, None]
        self.mean_y = used * sum_y / self.weight[:, None]
        self.xy = xy - sum_x[:, :, None] * self.mean_y[:, None, :]
        self.squares = squares - sum_x * self.mean_x
        self.yy = np.maximum(yy - (sum_y * self.mean_y).sum(axis=1), 0.0)
        self.noise = np.sqrt(self.weight / self.folds.shape[1])[:, None] * self.data.noise
        self.constant = np.nonzero(self.squares <= np.maximum(1e-10 * squares, self.noise**2))
        self.squares[self.constant] = 1.0
        self.xy[self.constant] = 0.0

    @property
    def shape(self) -> tuple[int, int, int]:
        """Folds, columns and targets."""
        return self.xy.shape[0], self.xy.shape[1], self.xy.shape[2]

    def intercepts(self, support: Indices, coef: Floats) -> Floats:
        """Intercepts (F, m) that belong to the coefficients."""
        lines = np.arange(len(support))[:, None]
        return self.mean_y - np.einsum("fk,fkm->fm", self.mean_x[lines, support], coef)

    def _residuals(self, support: Indices, coef: Floats, rows: slice) -> Floats:
        """Targets less predictions of some rows, (rows, F, m)."""
        used, places = np.unique(support, return_inverse=True)
        table = np.zeros((len(used), *self.mean_y.shape))  # of the columns that occur in a fold
        np.add.at(table, (places.reshape(support.shape), np.arange(len(coef))[:, None]), coef)
        predicted = self._times(rows, used, table.reshape(len(used), -1)).reshape(-1, *self.mean_y.shape)
        predicted += self.intercepts(support, coef)
        return self.data.y[rows, None, :] - predicted

    def row_losses(self, support: Indices, coef: Floats) -> Floats:
        """Loss of each sampled row by the models that did not see it, summed over targets."""
        rows = self.folds.sampled_rows
        squares = (self._residuals(support, coef, rows) ** 2).sum(axis=2)
        return 0.5 * self.folds.mean_row_losses(squares * self.folds.test.T[rows])

    def gram_columns(self, atoms: Indices, scores: Floats | None = None) -> Floats:
        """Gram columns (F, d): of atom f in fold f. `scores` (F, d) tell which may be asked for next."""
        missing = sorted(set(atoms.tolist()) - self._cache.keys())
        room = min(self._room, self.shape[1]) - len(self._cache) - len(missing)
        if missing and room < 0:  # each fold its own column
            centred = self._lines(atoms) - self.mean_x[np.arange(len(atoms)), atoms, None]
            found = np.asarray((self.folds.train * centred) @ self.X)
            found[self.constant] = 0.0
            return found
        if missing and scores is not None and room >= PREFETCH_COLUMNS:  # with those likely to come next
            best = scores.max(axis=0)
            best[[*missing, *self._cache]] = -1.0
            missing += np.argpartition(best, -PREFETCH_COLUMNS)[-PREFETCH_COLUMNS:].tolist()
        if missing:
            self._cache.update(self._make(np.array(missing)))
        return np.array([self._cache[j][f] for f, j in enumerate(atoms.tolist())])

    def _lines(self, atoms: Indices) -> Floats:
        """Columns as the rows of an array, for products with all others."""
        self.entries_read += self.X.size
        found = self.X[:, atoms]
        return np.asarray(found.toarray() if issparse(found) else found).T

    def _make(self, atoms: Indices) -> dict[int, Floats]:
        lines = self._lines(atoms)
        if self._tests:  # all rows less those that are tested: 3 passes where 10 folds would take 10
            found, every = np.empty((len(atoms), *self.sum_x.shape)), (self.folds.weights * lines) @ self.X
            for f, (rows, X) in enumerate(self._tests):
                tested = (self.folds.test[f, rows] * lines[:, rows]) @ X
                tested += self.mean_x[f, atoms, None] * self.sum_x[f]
                np.subtract(every, tested, out=found[:, f])
        else:
            spread = (self.folds.train[None] * lines[:, None, :]).reshape(-1, lines.shape[1])
            found = np.asarray(self.X.T @ spread.T).T.reshape(len(atoms), len(self.weight), -1)
            found -= self.sum_x[None] * self.mean_x[:, atoms].T[:, :, None]
        fold, atom = self.constant
        found[:, fold, atom] = 0.0
        return dict(zip(atoms.tolist(), found))

    def support_grams(self, support: Indices) -> Floats:
        """Gram matrices of the supports, (F, k, k)."""
        found = []
        for f, s in enumerate(support):
            part = self.X[:, s]
            weights = self.folds.train[f]
            gram = part.T @ (diags_array(weights) @ part if issparse(part) else weights[:, None] * part)
            gram = gram.toarray() if issparse(gram) else gram
            found.append(gram - np.outer(self.sum_x[f, s], self.mean_x[f, s]))
        return np.array(found)

    def _times(self, rows: slice, used: Indices, table: Floats) -> Floats:
        """The scaled columns `used` of some rows times a table."""
        return np.asarray(self.X[:, used][rows] @ table)

    def gradient(self, support: Indices, coef: Floats) -> Floats:
        """Products of the columns with the residuals, (F, d, m)."""
        self.entries_read += self.X.size
        left = self._residuals(support, coef, slice(None))
        left *= self.folds.train.T[:, :, None]
        g = np.asarray(left.reshape(len(left), -1).T @ self.X).reshape(*self.mean_y.shape, -1)
        g = np.ascontiguousarray(g.transpose(0, 2, 1))
        g[self.constant] = 0.0
        return g

    def losses(self, support: Indices, coef: Floats) -> Floats:
        """Half of the sum of squared errors on the test rows of each fold, (F,)."""
        squares = (self._residuals(support, coef, slice(None)) ** 2).sum(axis=2)
        return 0.5 * (squares * self.folds.test.T).sum(axis=0)

    def all_rows(self) -> FoldLeastSquares:
        """The same for one fold of all rows."""
        return FoldLeastSquares(self.data, Folds.of_all_rows(self.folds.weights), self.X)


class GramLeastSquares(FoldLeastSquares):
    """Gram matrices of training and test rows; `moments` are those of [X, y, 1] on the rows of each."""

    def __init__(self, data: ScaledData, folds: Folds, total: Floats | None = None) -> None:
        self.data, self.folds = data, folds
        if total is None and not folds.test.any():
            total = self._moments(folds.weights)
        if total is None:
            self.test_moments = np.array([self._moments(test) for test in folds.test])
            self.total, train = self._train_moments()
        else:
            self.test_moments, self.total, train = np.zeros_like(total)[None], total, total[None]
        d, m = data.X.shape[1], data.y.shape[1]
        x, y = slice(0, d), slice(d, d + m)
        yy = np.trace(train[:, y, y], axis1=1, axis2=2)
        squares = np.diagonal(train[:, x, x], axis1=1, axis2=2)
        self._centre(train[:, x, -1], train[:, y, -1], train[:, x, y], squares, yy)
        self.gram = train[:, x, -1:] * self.mean_x[:, None, :]
        np.subtract(train[:, x, x], self.gram, out=self.gram)
        fold, atom = self.constant
        self.gram[fold, atom] = self.gram[fold, :, atom] = 0.0
        self.gram[fold, atom, atom] = 1.0

    def _train_moments(self) -> tuple[Floats, Floats]:
        """Moments of all rows, and of the training rows: the difference where they are all but the test."""
        folds = self.folds
        repeats = folds.test_weight[0] / folds.weights[0]
        if np.allclose(folds.test_weight, repeats * folds.weights, rtol=1e-12) and repeats > 0:
            total = self.test_moments.sum(axis=0) / repeats
        else:
            total = self._moments(folds.weights)
        parts = zip(self.test_moments, folds.train, folds.test)
        train = [
            total - held if np.array_equal(rest + test, folds.weights) else self._moments(rest)
            for held, rest, test in parts
        ]
        return total, np.array(train)

    def _moments(self, weights: Floats) -> Floats:
        rows = np.flatnonzero(weights)
        X, y, used = self.data.X, self.data.y, weights[rows]
        self.entries_read += len(rows) * X.shape[1]
        size = X.shape[1] + y.shape[1] + 1
        if issparse(X):
            rest = np.column_stack([y[rows], np.ones(len(rows))])
            sparse = hstack([self.data.block(rows), rest], "csc")
            return (sparse.T @ (diags_array(used) @ sparse)).toarray()
        total, step = np.zeros((size, size)), max(MOMENT_ROWS, MOMENT_BLOCK // size)
        equal = len(rows) > 0 and bool((used == used[0]).all())
        buffer = np.empty((min(step, len(rows)), size))  # stays in the cache
        for start in range(0, len(rows), step):
            some: Indices | slice = rows[start : start + step]
            block = buffer[: len(rows) - start]
            if len(rows) == len(weights):  # blocks of X are not copied
                some = slice(start, start + step)
            self.data.block(some, block[:, : X.shape[1]])
            block[:, X.shape[1] : -1], block[:, -1] = y[some], 1.0
            if not equal:
                block *= np.sqrt(weights[some])[:, None]
            total += block.T @ block
        return total * used[0] if equal else total

    def gram_columns(self, atoms: Indices, scores: Floats | None = None) -> Floats:
        return self.gram[np.arange(len(atoms)), atoms]

    def support_grams(self, support: Indices) -> Floats:
        return _blocks(self.gram, support)

    def _times(self, rows: slice, used: Indices, table: Floats) -> Floats:
        data, table = self.data, table / self.data.scale[used, None]
        part = data.X[rows]
        part = part[:, used] if issparse(part) else part.take(used, axis=1)  # in C order, as X may be in F
        return np.asarray(part @ table) - data.centre[used] @ table

    def gradient(self, support: Indices, coef: Floats) -> Floats:
        moved = [g.take(s, axis=0).T @ w for g, s, w in zip(self.gram, support, coef)]
        return self.xy - np.array(moved)

    def losses(self, support: Indices, coef: Floats) -> Floats:
        """Residuals are a linear form of the columns, y and 1, so their squares are one of the moments."""
        n_folds, d, m = self.shape
        rest, minus = np.arange(d, d + m + 1), -np.eye(m)
        places = np.hstack([support, np.broadcast_to(rest, (n_folds, m + 1))])
        intercepts = self.intercepts(support, coef)[:, None]
        form = np.concatenate([coef, np.broadcast_to(minus, (n_folds, m, m)), intercepts], axis=1)
        return 0.5 * np.maximum((form * (_blocks(self.test_moments, places) @ form)).sum(axis=(1, 2)), 0.0)

    def all_rows(self) -> GramLeastSquares:
        return GramLeastSquares(self.data, Folds.of_all_rows(self.folds.weights), self.total)


def _blocks(matrices: Floats, places: Indices) -> Floats:
    """The rows and columns `places` (F, k) of square matrices (F, d, d)."""
    n_folds, d, _ = matrices.shape
    rows = (np.arange(n_folds)[:, None] * d + places) * d
    return matrices.ravel().take(rows[:, :, None] + places[:, None, :])


def fold_least_squares(data: ScaledData, folds: Folds) -> FoldLeastSquares:
    """Gram matrices where they are small or X is tall, else Gram columns."""
    n, d = data.X.shape
    if 2 * folds.shape[0] * d**2 <= MAX_GRAM_ENTRIES and d <= max(n, MAX_GRAM_WIDTH):
        return GramLeastSquares(data, folds)
    return FoldLeastSquares(data, folds)
