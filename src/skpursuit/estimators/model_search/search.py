"""Models of several families compete on the same folds, and one is chosen.

A path of models, from small to large, is followed until its held-out loss has clearly turned. The smallest
mean loss alone is a poor criterion between families: where a signal is weak it favours small greedy models by
luck. So the best model with few columns and the best boosted one are compared by a paired test, and where
neither is clearly better, their mean is taken. The threshold was fixed on data that no reported figure comes
from. On the path of the best model one with fewer features is taken where it is as good in all but name.

Whether the targets depend on X at all is a permutation test that needs no model. The residuals of the best
constant are permuted over the rows, and two numbers say how much X has to say about them: the largest product
of a column with the residuals, where few columns matter, and the leave-one-out error of ridge regression, for
the best of some ridges, where many columns do, or several only together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array, issparse, vstack

from skpursuit.estimators.base import CheckedSamples
from skpursuit.estimators.cross_validation import Folds, effective_rows, paired_t
from skpursuit.estimators.linear_fit import SQUARED, LinearFit, average_fits, standardize
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.tuning import SMALL_BLOCK
from skpursuit.progress import current_monitor

PATH_PATIENCE = 8  # sizes without a new best before a path may end
RISE_SE = 1.0  # standard errors by which the loss must have risen by then
FAMILY_T = 1.5  # t from which the boosted model, or that with few columns, is taken alone
BEST_SE, BEST_SHARE = 0.25, 0.0035  # what "best" gives for fewer features: standard errors, share of its gain
BLOCK_ENTRIES = 2**18  # of tables that are worked on at a time
SAME = 1e-9  # relative difference of losses that may be rounding: two families often find the same models
TYPICAL_SIZES, BOOST_WORK = 17, 6  # models of a usual path, and paths that take as long as a boosted one
N_PERMUTATIONS = 99
CLIP_LIMIT = 3.0  # mean absolute residuals beyond which a residual counts as this many
MAX_RIDGE_RANK = 1000  # rows or columns, whichever are fewer, up to which ridge regression is tried
LOO_RIDGES = (0.01, 0.1, 1.0, 10.0, 100.0)  # in units of the mean eigenvalue
DIGITS = 30  # bits of means and scales, so that the order in which X was summed does not show

Model = TypeVar("Model")  # the models of all folds, as a search knows them


class ScaledData(NamedTuple):
    """X, targets (n, m), and what is subtracted from the columns of X and divides them."""

    X: Any
    y: Floats
    centre: Floats
    scale: Floats
    fit_intercept: bool
    offset: Floats  # (m,), subtracted from the targets
    noise: Floats  # the norm below which a scaled column is only rounding of its mean

    @classmethod
    def of(cls, samples: CheckedSamples, y: Floats, scale: str, fit_intercept: bool) -> Self:
        """The data of an estimator: rows that count, scaled columns, targets as a table less their means."""
        # A large sparse X is not centred, because it would not be sparse any more; each fold does it in
        # formulas, which cost digits. A small one is made dense.
        X: Any = samples.X
        X = X if samples.kept.all() else X[samples.kept]
        if issparse(X) and X.shape[0] * X.shape[1] <= SMALL_BLOCK:
            X = X.toarray()
        table = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        data = standardize(samples.base, table, SQUARED, samples.weights, fit_intercept, scale)
        centre = 0.0 * data.centre if issparse(X) else _rounded(data.centre)
        noise = data.design.noise_floor(np.arange(X.shape[1]))
        return cls(X, data.y, centre, _rounded(data.scale), fit_intercept, np.asarray(data.offset), noise)

    def block(self, rows: Indices | slice = slice(None), out: Floats | None = None) -> Any:
        """Some rows of X as the models see it, into `out`; a sparse X stays sparse and is not centred."""
        if issparse(self.X):
            return csc_array(self.X[rows].astype(np.float64)) @ diags_array(1.0 / self.scale)
        found = np.subtract(self.X[rows], self.centre, out=out, order="C")
        return found if (self.scale == 1.0).all() else np.divide(found, self.scale, out=found)

    def lines(self) -> Any:
        """The columns that `block` gives as the rows of an array, and a row of ones behind them."""
        n, d = self.X.shape
        if issparse(self.X):
            return csr_array(vstack([self.block().T, np.ones((1, n))]))
        lines, step = np.ones((d + 1, n)), max(1, BLOCK_ENTRIES // d)
        for start in range(0, n, step):
            some = slice(start, start + step)
            lines[:d, some] = self.block(some).T
        return lines

    def original(self, columns: Indices, coef: Floats, intercept: Floats, vector: bool) -> LinearFit:
        """A model of scaled columns, with coefficients (k, m), as one of X; of one target if a `vector`."""
        coef = coef / self.scale[columns, None]
        intercept = intercept - self.centre[columns] @ coef
        return LinearFit(columns, *((coef[:, 0], intercept[0]) if vector else (coef, intercept)))


def _rounded(values: Floats) -> Floats:
    """Numbers of `DIGITS` bits: which of them serves is all the same, but not that all runs take one."""
    shift = DIGITS - np.frexp(values)[1]
    return np.ldexp(np.rint(np.ldexp(values, shift)), -shift)


def size_schedule(most: int, single: int, growth: float) -> list[int]:
    """1, 2, ..., `single`, then larger by a factor."""
    sizes = list(range(1, min(single, most) + 1))
    while sizes[-1] < most:
        sizes.append(min(most, max(sizes[-1] + 1, int(sizes[-1] * growth))))
    return sizes


def column_blocks(lines: int, d: int) -> Iterator[slice]:
    """All of d columns in order, so many at a time that temporary tables of so many lines stay in the cache.

    Tables of a million columns are otherwise made of fresh pages each time, which costs more than the sums.
    """
    width = max(1, BLOCK_ENTRIES // lines)
    return (slice(start, start + width) for start in range(0, d, width))


def top_columns(score: Floats, count: int) -> Indices:
    """The columns with the largest scores, in order of their number; the first of equals."""
    if count == 1:
        return np.array([score.argmax()])
    least = np.partition(score, len(score) - count)[len(score) - count]
    above, equal = np.flatnonzero(score > least), np.flatnonzero(score == least)
    return np.sort(np.concatenate([above, equal[: count - len(above)]]))


class HeldOutLoss(NamedTuple, Generic[Model]):
    """Models of all folds as an arena knows them, the losses on test rows, by folds, and what gives rows'."""

    model: Model
    fold_losses: Floats
    rows: Callable[[], Floats]


class CandidateSearch(ABC, Generic[Model]):
    """Makes the models of families and evaluates them on the folds."""

    folds: Folds
    max_size: int  # the largest number of columns that is tried
    entries_read: int = 0  # entries of X that were read

    @abstractmethod
    def candidate_paths(self, ridges: str | list[float]) -> Iterator[list[Candidate]]:
        """Paths of all families; `ridges` is "auto" or a list of those to try."""

    @abstractmethod
    def refit(self, path: list[Candidate]) -> list[list[LinearFit]]:
        """The models of a path fitted on all rows by the same schedule, one for each problem."""

    @abstractmethod
    def null_model(self) -> HeldOutLoss[Model]:
        """The models without columns."""

    @abstractmethod
    def fold_fits(self, model: Model) -> list[list[LinearFit]]:
        """For each fold the models of all problems, in terms of X and y as they were given."""

    def widened(self) -> CandidateSearch[Model] | None:
        """A search over more columns, where no limit of the user or of the data stands against it."""
        return None

    def averaged_with(self, models: Iterable[Model], other: Model) -> Iterator[HeldOutLoss[Model]]:
        """The means of each model with the other one; none where no models are boosted."""
        return iter(())

    def n_features(self, model: Model) -> float:
        """Number of columns with coefficients, on average over the folds; they come first in each fit."""
        folds: Any = model
        return float(np.mean([max(len(fit[0]) for fit in fits) for fits in folds]))


@dataclass(eq=False)
class Candidate:
    """Models of one family, ridge and size on all folds, and how good they are on the rows held out."""

    search: CandidateSearch
    family: str
    ridge: float
    size: int  # coefficients, or steps of boosting
    evaluation: HeldOutLoss
    scores: Floats | None = None  # of a scorer, one for each fold
    config: Any = None  # what makes the path again

    @cached_property
    def held_out_loss(self) -> float:
        """Mean loss over the tests."""
        return float(self.evaluation.fold_losses.sum() / self.search.folds.test_weight.sum())

    @property
    def compared_loss(self) -> float:
        """What is compared: minus the mean score of a scorer, or the mean loss over the tests."""
        return self.held_out_loss if self.scores is None else -float(self.scores.mean())

    @property
    def fold_scores(self) -> Floats:
        """Scores of a scorer, or minus the mean loss of each fold."""
        if self.scores is not None:
            return self.scores
        return -self.evaluation.fold_losses / self.search.folds.test.sum(axis=1)

    @property
    def standard_error(self) -> float:
        """Standard error of what is compared, over the folds."""
        scores = self.fold_scores
        size = float(np.abs(scores).max()) or 1.0  # squares stay within range
        return float((scores / size).std() / np.sqrt(max(1, len(scores) - 1))) * size

    @cached_property
    def rows(self) -> Floats:
        """Loss of each row by the models that did not see it."""
        return self.evaluation.rows()

    @cached_property
    def n_features(self) -> float:
        """Columns with coefficients, on average over the folds."""
        return self.search.n_features(self.evaluation.model)

    def t_statistic_against(self, other: Candidate) -> float:
        """How many standard errors this is better than another: over rows, or folds with a scorer."""
        folds = self.search.folds
        if self.scores is None or other.scores is None:
            known, better = other.held_out_loss, other.held_out_loss - self.held_out_loss
            gains, weights = other.rows - self.rows, folds.test_weight[folds.sampled_rows]
            n = effective_rows(folds.weights[folds.test_weight > 0])
        else:
            known, better = other.compared_loss, other.compared_loss - self.compared_loss
            gains, weights, n = self.scores - other.scores, np.ones(len(self.scores)), len(self.scores) - 1.0
        same = n == 0 or abs(better) <= SAME * abs(known)
        return 0.0 if same else paired_t(better, gains, weights, n)


def early_stopped_path(
    arena: CandidateSearch,
    family: str,
    ridge: float,
    models: Iterable[tuple[int, HeldOutLoss]],
    patience: int = PATH_PATIENCE,
    turned: float = RISE_SE,
    config: Any = None,
) -> list[Candidate]:
    """The candidates of a path, up to where its loss has clearly turned."""
    path: list[Candidate] = []
    best, since, watch = None, 0, current_monitor()
    for size, evaluation in models:
        watch.set_message("{} models with ridge {:g}, size {}", family, ridge, size)
        found = Candidate(arena, family, ridge, size, evaluation, config=config)
        path.append(found)
        watch.advance_by(BOOST_WORK / 2 if family == "boost" else 1.0)
        if watch.out_of_time():
            break
        if best is None or is_lower(found.compared_loss, best.compared_loss):
            best, since = found, 0
            continue
        since += 1
        if since >= patience and best.t_statistic_against(found) > turned:
            break
    return path


def is_lower(loss: float, other: float) -> bool:
    """Whether a loss is lower than another by more than rounding; a number is lower than none."""
    return loss < (other - SAME * abs(other) if np.isfinite(other) else np.inf)


def best_candidate(candidates: Iterable[Candidate]) -> Candidate:
    """The candidate with the smallest loss, the first of those equal to rounding; NaN is no loss."""
    several = list(candidates)
    losses = [one.compared_loss if np.isfinite(one.compared_loss) else np.inf for one in several]
    return next(one for one, loss in zip(several, losses) if not is_lower(min(losses), loss))


def search_ridges(
    paths: Callable[[float], list[Candidate]],
    ridges: str | list[float],
    start: float,
    down: Iterable[float],
    up: Iterable[float],
) -> Iterator[list[Candidate]]:
    """Paths of given ridges; for "auto" of `start`, then of smaller ones while they improve, else larger."""
    if not isinstance(ridges, str):
        yield from map(paths, ridges)
        return
    best = paths(start)
    yield best
    lowest = best_candidate(best).compared_loss
    for towards in (down, up):
        improved = False
        for ridge in towards:
            path = paths(ridge)
            yield path
            loss = best_candidate(path).compared_loss
            if not is_lower(loss, lowest):
                break
            lowest, improved = loss, True
        if improved:
            return


def path_containing(paths: list[list[Candidate]], one: Candidate) -> list[Candidate]:
    """The path that a candidate is on."""
    return next(path for path in paths if one in path)


def average_families(paths: list[list[Candidate]]) -> list[Candidate]:
    """Where neither boosted models nor others are clearly better: the means of the former and the best other.

    Boosted models stand for dense signals, all others for sparse ones.
    """
    kinds = [[path for path in paths if (path[0].family == "boost") is boosts] for boosts in (True, False)]
    if not all(kinds):
        return []
    boosted, few = (best_candidate(one for path in kind for one in path) for kind in kinds)
    if not abs(few.t_statistic_against(boosted)) <= FAMILY_T:
        return []
    path, others = path_containing(paths, boosted), path_containing(paths, few)
    models = few.search.averaged_with((one.evaluation.model for one in path), few.evaluation.model)
    sparse = others[: others.index(few) + 1]
    return [
        replace(one, family="mean", ridge=few.ridge, evaluation=evaluation, config=(path[: i + 1], sparse))
        for i, (one, evaluation) in enumerate(zip(path, models))
    ]


def shown_path(paths: list[list[Candidate]], one: Candidate) -> list[Candidate]:
    """The path that a candidate is on; for a mean that of its sparse member, and then the mean."""
    return path_containing(paths, one) if one.family != "mean" else [*one.config[1], one]


def refit_path(path: list[Candidate]) -> list[list[LinearFit]]:
    """The models of a shown path fitted on all rows, one for each problem."""
    if path[-1].family != "mean":
        return path[0].search.refit(path)
    boosted, sparse = path[-1].config
    fits = refit_path(sparse)
    return [*fits, [average_fits(list(pair)) for pair in zip(refit_path(boosted)[-1], fits[-1])]]


def choose_candidate(
    paths: list[list[Candidate]], selection: str, null_loss: float | None
) -> tuple[Candidate, float]:
    """The chosen candidate, and t against the runner-up, the best of other paths.

    Means stand before other families. With "one_se" it is the sparsest of all within a standard error of the
    best; else, where the loss of no features is given, the sparsest of its path that gives next to nothing.
    """
    candidates = [one for path in paths for one in path]
    means = [one for one in candidates if one.family == "mean" and np.isfinite(one.compared_loss)]
    best = best_candidate(candidates if selection == "one_se" else means or candidates)
    if selection == "one_se":
        best = _sparsest(candidates, best.compared_loss + best.standard_error)
    elif null_loss is not None:
        given = BEST_SE * best.standard_error
        if best.scores is None:
            gain = max(0.0, null_loss - best.held_out_loss)
            given = max(min(given, BEST_SHARE * gain), SAME * gain)  # beyond those digits all fits are exact
        best = _sparsest(path_containing(paths, best), best.compared_loss + given)
    others = [one for path in paths if best not in path for one in path]
    other = best_candidate(others or [one for one in candidates if one is not best] or [best])
    return best, best.t_statistic_against(other) if other is not best else 0.0


def _sparsest(candidates: list[Candidate], limit: float) -> Candidate:
    """The candidate with the fewest features whose loss is within a limit, of several the best."""
    within = [one for one in candidates if one.compared_loss <= limit + SAME * abs(limit)]
    fewest = min(one.n_features for one in within)
    return best_candidate(one for one in within if one.n_features == fewest)


def permutation_p_value(data: ScaledData, residuals: Floats, rows: slice) -> float:
    """Chance that unrelated targets look as related to X as these, from some rows.

    Residuals (n, m), slopes of the losses at the best constants, are permuted. Without an intercept their
    means count, so that they change signs instead.
    """
    r = residuals[rows] / (np.abs(residuals).max(axis=0) + np.finfo(float).tiny)
    most = CLIP_LIMIT * np.abs(r).mean(axis=0)
    r = np.clip(r, -most, most)
    rng, lines = np.random.default_rng(0), np.arange(len(residuals))[rows]
    signs = rng.choice([-1.0, 1.0], (N_PERMUTATIONS, len(r), 1))
    permutations = [rng.permutation(r) if data.fit_intercept else r * sign for sign in signs]
    table = np.stack([r, *permutations], axis=1).reshape(len(r), -1)  # (n, permutations * m)
    X = data.block(lines)
    columns, largest = X.T.tocsr() if issparse(X) else X.T, np.zeros(table.shape[1])
    for some in column_blocks(table.shape[1], X.shape[1]):
        np.maximum(largest, np.abs(np.asarray(columns[some] @ table)).max(axis=0), out=largest)
    evidence = [largest.reshape(N_PERMUTATIONS + 1, -1).max(axis=1)]
    if not issparse(X) and min(X.shape) <= MAX_RIDGE_RANK:
        evidence.append(-_left_out_error(X, table, data.fit_intercept))
    ranks = [np.count_nonzero(line >= line[:, None], axis=1) for line in evidence]
    best = np.min(ranks, axis=0)  # a permutation has the better rank of both, as the data have
    return float(np.mean(best <= best[0]))


def _left_out_error(X: Floats, table: Floats, fit_intercept: bool) -> Floats:
    """Squared errors of predictions of each row by ridge regression on the others, with the best ridge."""
    n = len(X)
    X, table = (part - part.mean(axis=0) * fit_intercept for part in (X, table))
    if X.shape[1] < n:
        values, vectors = np.linalg.eigh(X.T @ X)
        basis = X @ vectors / np.sqrt(np.maximum(values, np.finfo(float).tiny))
    else:
        values, basis = np.linalg.eigh(X @ X.T)
    real = values > 1e-9 * values[-1]
    values, basis = values[real], basis[:, real]
    coef, errors, typical = basis.T @ table, [], values.sum() / max(1, len(values))
    for ridge in LOO_RIDGES:
        shrunk = values / (values + ridge * typical)
        left = np.maximum(1 - basis**2 @ shrunk - fit_intercept / n, 1e-6)
        wrong = (table - basis @ (shrunk[:, None] * coef)) / left[:, None]
        errors.append((wrong**2).sum(axis=0).reshape(N_PERMUTATIONS + 1, -1).sum(axis=1))
    return np.min(errors, axis=0)
