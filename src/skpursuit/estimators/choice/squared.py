"""The contest of linear models under squared loss: boosted, greedy and swapped ones.

`SquaredArena` judges models of all folds and leads their coefficients back to X as it was given. Targets are
divided by their largest entry meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skpursuit.estimators.choice import families
from skpursuit.estimators.choice.contest import Arena, Candidate, Judged, expect_paths, follow, search_ridges
from skpursuit.estimators.choice.squared_folds import ScaledData, SquaredFolds, squared_folds
from skpursuit.estimators.folds import Folds
from skpursuit.estimators.linear_fit import LinearFit
from skpursuit.numerics.arrays import Floats, Indices

RIDGE, SMALLER, LARGER = 0.1, (1e-6,), (0.3, 1.0, 3.0)
SWAP_RIDGES = (1e-4, 0.3)

Model = tuple[Indices, Floats]  # support (F, k) and coefficients (F, k, m)


class SquaredArena(Arena):
    """Judges linear models on the folds by their squared error.

    Targets (n, m) of the data are centred where there is an intercept; `vector` tells that they are one
    vector, so that coefficients are too, and `most` is the largest number of columns.
    """

    def __init__(self, data: ScaledData, folds: Folds, vector: bool, most: int | None) -> None:
        self.unit = float(np.abs(data.y).max()) or 1.0
        self.folds, self.vector = folds, vector
        self.squared = squared_folds(data._replace(y=data.y / self.unit), folds)
        d = data.X.shape[1]
        allowed = max(1, int(folds.rows // 2))
        self.most = min(d, allowed, families.MOST_COLUMNS) if most is None else min(d, most)
        self.limited = most is None and self.most < min(d, folds.rows - 1)
        self.sparse_x = issparse(data.X)

    def judged(self, model: Model) -> Judged:
        """Squared errors on the test rows, in units of `unit`."""
        return Judged(model, self.squared.errors(*model), partial(self.squared.row_losses, *model))

    @property
    def loss_unit(self) -> float:  # type: ignore[override]
        """What the losses are to be multiplied with: the loss `Squared` is half of a squared error."""
        return 0.5 * self.unit * self.unit  # infinite for huge targets

    def features(self, model: Model) -> float:
        """Number of columns with coefficients, on average over the folds."""
        return float(model[1].any(axis=2).sum(axis=1).mean())

    def null(self) -> Judged:
        """The model without columns."""
        n_folds, _, targets = self.squared.shape
        return self.judged((np.zeros((n_folds, 1), dtype=np.intp), np.zeros((n_folds, 1, targets))))

    def fits(self, model: Model, folds: SquaredFolds | None = None) -> list[list[LinearFit]]:
        """The models of each fold as models of X and y as they were given."""
        folds = self.squared if folds is None else folds
        support, coef = model
        data, intercepts, found = folds.data, folds.intercepts(support, coef), []
        for s, w, intercept in zip(support, coef, intercepts):
            real = w.any(axis=1)
            s, w = s[real], self.unit * w[real] / data.scale[s[real], None]
            b = data.offset + self.unit * intercept - data.centre[s] @ w
            found.append([LinearFit(s, w[:, 0], b[0]) if self.vector else LinearFit(s, w, b)])
        return found

    def paths(self, ridges: Any) -> Iterator[list[Candidate]]:
        """Paths of all families; `ridges` is "auto" or a list of those to try."""
        few = ["greedy"] * 5 if isinstance(ridges, str) else ["greedy"] * 3 * len(ridges)
        expect_paths("boost", *few)
        yield self._path("boost", 0.0)
        if isinstance(ridges, str):
            yield from search_ridges(lambda ridge: self._path("greedy", ridge), RIDGE, SMALLER, LARGER)
            ridges, kinds = SWAP_RIDGES, ["swap"]
        else:
            kinds = ["greedy", "swap"]
        for family in kinds:
            for ridge in ridges:
                path = self._path(family, ridge)
                yield path
                if family == "swap" and ridge > families.LEAST_RIDGE:
                    models = ((one.size, families.relaxed(self.squared, one.judged.model)) for one in path)
                    yield self.followed("relaxed", ridge, models)

    def _path(self, family: str, ridge: float) -> list[Candidate]:
        return self.followed(family, ridge, self._models(self.squared, family, ridge))

    def followed(
        self, family: str, ridge: float, models: Iterable[tuple[int, Model]], **how: Any
    ) -> list[Candidate]:
        """The candidates of models of growing size."""
        return follow(self, family, ridge, ((size, self.judged(one)) for size, one in models), **how)

    def _models(self, folds: SquaredFolds, family: str, ridge: float) -> Iterator[tuple[int, Model]]:
        if family == "boost":
            models = families.boost(folds, self.most)
        elif family == "greedy":
            models = families.greedy(
                folds, ridge, families.growing_sizes(self.most), normalised=not self.sparse_x
            )
        else:
            models = families.swap(
                folds, ridge, families.swap_sizes(self.folds.rows, folds.shape[1], self.most)
            )
        found = ((size, (support, coef)) for size, support, coef in models)
        return (
            ((size, families.relaxed(folds, model)) for size, model in found)
            if family == "relaxed"
            else found
        )

    def means(self, models: Iterable[Model], other: Model) -> Iterator[Judged]:
        """The means of each model with the other one."""
        n_folds, _, targets = self.squared.shape
        lines = np.arange(n_folds)[:, None]
        for model in models:
            used = np.union1d(model[0], other[0])
            coef = np.zeros((n_folds, len(used), targets))
            for support, part in (model, other):
                coef[lines, np.searchsorted(used, support)] += 0.5 * part
            support = families.padded_support(coef)
            yield self.judged((used[support], coef[lines, support]))

    def refit(self, path: list[Candidate]) -> list[list[LinearFit]]:
        """The models of a path, fitted on all rows by the same schedule."""
        whole = self.squared.whole()
        sizes = {candidate.size for candidate in path}
        models = self._models(whole, path[0].family, path[0].ridge)
        found = []
        for size, model in models:
            if size in sizes:
                found.append(self.fits(model, whole)[0])
            if size >= path[-1].size:
                break
        return found + found[-1:] * (len(path) - len(found))

    @property
    def entries_read(self) -> int:  # type: ignore[override]
        """Entries of X that were read."""
        return self.squared.entries_read
