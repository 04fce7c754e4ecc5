"""`PursuitFeatureSelector`: features for a pipeline, chosen by a pursuit.

One run orders features by when they enter; cross-validation may choose how many are taken. With `n_resamples`
the run is repeated on random halves of the samples, all on one prepared design (stability selection). Halves
are drawn from the samples in an order that their values fix, so that the order of the rows does not change
what is chosen.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from skpursuit.data.sources import is_out_of_core, make_design
from skpursuit.estimators.base import (
    CheckedSamples,
    ColumnParameters,
    LinearBase,
    lazy_on_dask,
    match_columns,
    monitored,
    naming_columns,
)
from skpursuit.estimators.classifier import PursuitClassifierCV
from skpursuit.estimators.linear_fit import FitConfig, fit_linear
from skpursuit.estimators.parameter_rules import COLUMN_RULES, check_parameters, is_auto
from skpursuit.estimators.regressor import PursuitRegressorCV
from skpursuit.estimators.sklearn_types import BaseEstimator, SelectorMixin
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.parameters import RandomSource, seed_of, warn_user
from skpursuit.problem import default_sparsity as sparsity
from skpursuit.problem.losses import LOSSES, Loss, as_loss
from skpursuit.problem.problem import guess_classes
from skpursuit.progress import current_monitor
from skpursuit.selectors import Selector
from skpursuit.solvers import Solver

KEYS = 8  # columns that order rows with equal targets
MOST_EQUAL = 8  # a bootstrap hardly counts a row more often; weights of classes or strata are often larger


@dataclass(kw_only=True, eq=False, repr=False)
class PursuitFeatureSelector(SelectorMixin, ColumnParameters, LinearBase, BaseEstimator):
    """Keep the features that a pursuit takes first.

    Parameters
    ----------
    n_features_to_select : int or "cv", optional
        k. Default: ``min(n_samples, n_features, max(10, n_features // 10), 100)``. "cv" takes the features,
        or with resamples their number, of the sparsest model within a standard error of the best that
        `PursuitRegressorCV` (`PursuitClassifierCV` for logistic loss) finds; that may be none.
    n_resamples : int, default=0
        Random halves of the samples for stability selection, in complementary pairs; 0 for one run on all.
    threshold : float, default=0.75
        With resamples: the share of them in which a feature must be among the first k, above 0.5.
    cv : int, splitter or iterable, optional
        Folds for "cv"; default 5.
    loss : {"auto", "squared", "logistic", ...} or Loss
        "auto": squared loss of numbers, logistic loss of two classes, and squared loss of a column of 0 and 1
        for each of three classes or more ("cv": multinomial loss). Text, truth values, and integers with two
        values, or with up to 20 that occur twice or more on average, are classes; floats are numbers; doubts
        are said. "squared" takes integers as numbers; "logistic" takes them and whole floats as classes, of
        which it fits three or more together ("multinomial").
    ridge, scale, selector, verbose, time_limit
        As in `PursuitRegressor`.
    feature_groups, always_include, exclude
        As in `PursuitRegressor`: `n_features_to_select` counts groups, and with "cv" greedy models compete.
    random_state : int, RandomState, Generator or None
        Seed of the resamples.

    Attributes
    ----------
    loss_ : str or Loss
        The loss that was taken, by its name if it has one.
    classes_ : ndarray or None
        The labels, where y was taken as classes.
    scores_ : ndarray of shape (n_features,)
        Without resamples 1 for the feature that entered first, 1 - 1/k for the second and so on, 0 for those
        that never did; with resamples the share of them in which the feature was among the first k.
    support_ : ndarray of int
        Chosen features in order of entry, with "cv" as the chosen model has them, or by decreasing share.
    error_bound_ : float
        With resamples: bound on the expected number of features chosen by mistake; else NaN.
    n_features_in_, feature_names_in_
        As in `PursuitRegressor`.

    Notes
    -----
    Halves come in complementary pairs (Shah and Samworth 2013). Each run chooses at most k of d features (or
    groups, without those that are always included or excluded), so the expected number of features without
    an effect that reach the threshold is at most ``k**2 / ((2 * threshold - 1) * d)``, if such features are
    exchangeable and are chosen no more often than by chance (Meinshausen and Buehlmann 2010). That is
    `error_bound_`: lower k or raise the threshold to make it small. For a k that "cv" chose it is a guide.

    Weights that are all whole numbers from 1 to 8, with 1 among them, are taken as counts: a sample of weight
    2 is two equal samples, which may come into different halves. The bound then supposes that they were two
    observations. Any other weights multiply the loss of samples that stay whole, so multiply weights that
    look like counts and are not by some number, such as 0.5.

    `transform` and `inverse_transform` take Dask collections too, and are lazy on them; `transform` reads the
    chosen columns alone of a path or a design.

    Examples
    --------
    >>> from skpursuit import PursuitFeatureSelector, datasets
    >>> X, y, w = datasets.make_sparse_signal(200, 100, 5, snr=20.0, random_state=0)
    >>> PursuitFeatureSelector(n_features_to_select=5).fit(X, y).get_support().nonzero()[0].tolist() == (
    ...     w.nonzero()[0].tolist()
    ... )
    True
    >>> stable = PursuitFeatureSelector(n_features_to_select=8, n_resamples=20, random_state=0).fit(X, y)
    >>> len(stable.support_), stable.transform(X).shape
    (5, (200, 5))
    """

    n_features_to_select: int | str | None = None
    n_resamples: int = 0
    threshold: float = 0.75
    cv: object = None
    loss: str | Loss = "auto"
    ridge: float | None = None
    scale: str = "auto"
    selector: str | Selector = "auto"
    random_state: RandomSource = None

    @property
    def score(self) -> Any:
        """A selector has none."""
        raise AttributeError("PursuitFeatureSelector has no score; put an estimator behind it in a pipeline")

    @monitored
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        check_parameters(self)
        samples = self._check_samples(X, y, sample_weight, multi_output=True)
        loss, targets = self._targets(samples.y)
        self.loss_ = next((name for name, kind in LOSSES.items() if type(loss) is kind), loss)
        own = {"loss": loss.resolved(targets), "random_state": seed_of(self.random_state)}
        config, ordered = FitConfig.from_estimator(self, **own), None
        plain = config.plain_solver(samples.base)
        n, d, least = samples.base.shape[0], plain.n_candidates(samples.base), plain.n_included
        k: Any = self.n_features_to_select
        if isinstance(k, str):
            ordered = self._chosen_by_cv(samples, loss, targets, plain)
            k = plain.size(ordered)
        elif k is None:
            k = max(sparsity.for_feature_selector(n, d, samples.weights), least)
        else:
            k = sparsity.clip_to_available("n_features_to_select", k, d, least=least)
        config = replace(config, n_nonzero_coefs=max(k, 1))
        self.error_bound_ = float("nan")
        if self.n_resamples and k:
            self.scores_ = self._shares(config, samples, targets)
            chosen = np.flatnonzero(self.scores_ >= self.threshold)
            free = d - least - plain.size(np.array(plain.exclude, dtype=np.intp))
            self.error_bound_ = float((k - least) ** 2 / ((2 * self.threshold - 1) * max(free, 1)))
            self.support_ = chosen[np.argsort(-self.scores_[chosen], kind="stable")]
            return self
        if ordered is None:
            ordered = fit_linear(config, samples.base, targets, samples.weights).columns
        self.support_, self.scores_ = ordered, np.zeros(samples.base.shape[1])
        groups = ordered if plain.groups is None else plain.groups.labels[ordered]
        _, first, group = np.unique(groups, return_index=True, return_inverse=True)
        self.scores_[ordered] = 1.0 - np.searchsorted(np.sort(first), first[group]) / max(k, 1)
        return self

    def _chosen_by_cv(self, samples: CheckedSamples, loss: Loss, targets: Floats, plain: Solver) -> Indices:
        """The features of the sparsest model within a standard error of the best."""
        kind: Any = PursuitClassifierCV if loss.gives_probability else PursuitRegressorCV
        together = {"loss": "logistic", "multi_class": "multinomial"}
        losses = together if loss == as_loss("logistic").for_classes() else {"loss": loss}
        free = plain.chooses_freely and not loss.has_flat_pieces
        model = kind(
            solver="auto" if free and is_auto(self.selector) else "omp",
            ridges="auto" if self.ridge is None else self.ridge,
            selection="one_se",
            verbose=False,
            **{name: getattr(self, name) for name in ("selector", "cv", "scale", "random_state")},
            **{name: getattr(plain, name) for name in COLUMN_RULES[:3]},
            **losses,
        )
        X: object = samples.base
        weights, kept = samples.weights, samples.kept
        if samples.X is not None:  # all rows, because `cv` may name them
            places = np.maximum(np.cumsum(kept) - 1, 0)
            X, targets = samples.X, targets[places]
            weights = None if weights is None else np.where(kept, weights[places], 0.0)
        return model.fit(X, targets, weights).support_

    def _targets(self, y: np.ndarray) -> tuple[Loss, Any]:
        """The loss, and y as it takes it; several classes become one column of 0 and 1 each, or numbers."""
        y = np.array(y.tolist()) if y.dtype.kind == "O" else y
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        auto, (are_classes, doubt) = is_auto(self.loss), guess_classes(y)
        of_classes = are_classes and isinstance(self.n_features_to_select, str)
        loss = as_loss(("logistic" if of_classes else "squared") if auto else self.loss)
        if auto and doubt:
            warn_user(doubt)
        if loss.gives_probability and y.ndim == 1:
            check_classification_targets(y)
            are_classes = True
        elif not auto and y.dtype.kind in "iu":
            are_classes = False
        self.classes_: np.ndarray | None = None
        if not are_classes:
            return loss, loss.check_targets(np.asarray(y, dtype=np.float64))
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) == 2 and not loss.couples_targets:
            return as_loss("logistic") if auto else loss, np.where(codes == 1, 1.0, -1.0)
        if loss.quadratic:
            return loss, np.eye(len(self.classes_))[codes]
        together = loss if loss.couples_targets else loss.for_classes()
        if together is None or len(self.classes_) < 2:
            raise ValueError(f"loss {self.loss!r} needs two classes, got {len(self.classes_)}")
        return together, codes

    def _shares(self, config: FitConfig, samples: CheckedSamples, targets: Floats) -> Floats:
        """The share of resamples in which each feature was among the first k."""
        units, given = _units(samples, targets)
        n, d = len(units), samples.base.shape[1]
        if n < 4:
            raise ValueError(f"n_resamples needs at least 4 samples, got n_samples = {n}")
        rng, counts, watch = np.random.default_rng(config.random_state), np.zeros(d), current_monitor()
        watch.set_total(self.n_resamples)
        for done in range(self.n_resamples):
            if done and watch.out_of_time():
                return counts / done
            watch.set_message("resample {} of {}", done + 1, self.n_resamples)
            if done % 2 == 0:
                order = rng.permutation(n)
            half = units[order[: n // 2] if done % 2 == 0 else order[n // 2 : 2 * (n // 2)]]
            weights = np.bincount(half, minlength=len(given)) * given
            counts[fit_linear(config, samples.base, targets, weights).columns] += 1
            watch.advance_by()
        return counts / self.n_resamples

    @lazy_on_dask
    def transform(self, X: object) -> object:
        if not is_out_of_core(X):
            with naming_columns(X):
                return super().transform(X)
        check_is_fitted(self, "support_")
        design = make_design(X)
        chosen = match_columns(design, self, np.flatnonzero(self.get_support()))
        return np.ascontiguousarray(design.columns(chosen, cache=False).T)

    @lazy_on_dask
    def inverse_transform(self, X: object) -> object:
        return super().inverse_transform(X)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        return np.isin(np.arange(self.n_features_in_), self.support_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _units(samples: CheckedSamples, targets: Floats) -> tuple[Indices, Floats]:
    """What halves are drawn from: rows, ordered by their values, and the weight of a row that is drawn once.

    Halves of rows are independent whatever the weights mean, and halves of counted rows only if they are
    counts; so weights must look like counts to be taken for them.
    """
    n, d = samples.base.shape
    weights = np.ones(n) if samples.weights is None else samples.weights
    values = samples.base.columns(np.arange(min(d, KEYS)), cache=False)
    order = np.lexsort((*values, *np.reshape(targets, (n, -1)).T))
    if weights.min() == 1 and weights.max() <= MOST_EQUAL and np.array_equal(weights, np.rint(weights)):
        return np.repeat(order, weights[order].astype(np.intp)), np.ones(n)
    return order, weights
