"""`PursuitSelector`: features for a pipeline, chosen by a pursuit.

One run of orthogonal matching pursuit orders features by when they enter, and the first k are taken. With
`n_resamples` the run is repeated on random halves of the samples, all on one prepared design, and a feature
is taken if it was among the first k in a large share of them (stability selection). Complementary halves come
in pairs (Shah, Samworth 2013); the expected number of features taken by mistake is at most
k^2 / ((2 threshold - 1) d), where features without an effect are exchangeable (Meinshausen, Buehlmann 2010).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import type_of_target

from skpursuit.estimators.base import LinearBase, Samples
from skpursuit.estimators.checks import check_parameters
from skpursuit.estimators.linear_fit import FitConfig, fit_linear
from skpursuit.estimators.sklearn_types import BaseEstimator, SelectorMixin
from skpursuit.loop.run import seed_of
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.blas import one_thread
from skpursuit.problem import sparsity
from skpursuit.problem.losses import Loss, Squared, as_loss
from skpursuit.selectors import Selector


@dataclass(kw_only=True, eq=False, repr=False)
class PursuitSelector(SelectorMixin, LinearBase, BaseEstimator):
    """Keep the features that a pursuit takes first.

    Parameters
    ----------
    n_features_to_select : int, optional
        k. Default: ``min(n_samples, n_features, max(10, n_features // 10))``.
    n_resamples : int, default=0
        Random halves of the samples for stability selection, in complementary pairs; 0 for one run on all.
    threshold : float, default=0.75
        With resamples: the share of them in which a feature must be among the first k, above 0.5.
    loss : {"auto", "squared", "logistic", ...} or Loss
        "auto": logistic for labels of two classes that are no numbers or are -1 and 1, else squared loss.
    ridge : float, optional
        Penalty of (ridge / 2) ||w||^2 beside the mean loss, of scaled features with `normalize`.
    normalize : bool, default=True
        Whether features compete as if all had the same spread.
    selector : str or Selector
        How the best columns are found; see `minimize`.
    random_state : int, RandomState, Generator or None
        Seed of the resamples.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Without resamples 1 for the feature that entered first, 1 - 1/k for the second and so on, 0 for those
        that never did; with resamples the share of them in which the feature was among the first k.
    support_ : ndarray of int
        Chosen features in order of entry, or by decreasing share.
    error_bound_ : float
        With resamples: bound on the expected number of features chosen by mistake; else NaN.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when X has column names.

    Examples
    --------
    >>> from skpursuit import PursuitSelector, datasets
    >>> X, y, w = datasets.make_sparse_signal(200, 100, 5, snr=20.0, random_state=0)
    >>> PursuitSelector(n_features_to_select=5).fit(X, y).get_support().nonzero()[0].tolist() == (
    ...     w.nonzero()[0].tolist()
    ... )
    True
    >>> stable = PursuitSelector(n_features_to_select=8, n_resamples=20, random_state=0).fit(X, y)
    >>> len(stable.support_), stable.transform(X).shape
    (5, (200, 5))
    """

    n_features_to_select: int | None = None
    n_resamples: int = 0
    threshold: float = 0.75
    loss: str | Loss = "auto"
    ridge: float | None = None
    normalize: bool = True
    selector: str | Selector = "auto"
    random_state: Any = None

    @property
    def score(self) -> Any:
        """A selector has none."""
        raise AttributeError("PursuitSelector has no score; put an estimator behind it in a pipeline")

    @one_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, or labels of classes.
        sample_weight : array-like of shape (n_samples,), optional
        """
        check_parameters(self, loss=lambda _, value: is_auto(value) or as_loss(value))
        samples = self._check_samples(X, y, sample_weight, multi_output=True)
        loss, targets = self._targets(samples.y)
        n, d = samples.base.shape
        if self.n_features_to_select is None:
            k = sparsity.for_pursuit(n, d, False, samples.weights)
        else:
            k = sparsity.clipped("n_features_to_select", self.n_features_to_select, d)
        config = FitConfig(
            loss=loss,
            selector=self.selector,
            n_nonzero_coefs=k,
            normalize=self.normalize,
            ridge=self.ridge,
            random_state=seed_of(self.random_state),
        )
        self.error_bound_ = float("nan")
        if self.n_resamples:
            self.scores_ = self._shares(config, samples, targets)
            chosen = np.flatnonzero(self.scores_ >= self.threshold)
            self.error_bound_ = float(k**2 / ((2 * self.threshold - 1) * d))
            self.support_ = chosen[np.argsort(-self.scores_[chosen], kind="stable")]
        else:
            self.support_ = fit_linear(config, samples.base, targets, samples.weights).columns
            self.scores_ = np.zeros(d)
            self.scores_[self.support_] = 1.0 - np.arange(len(self.support_)) / k
        return self

    def _targets(self, y: Any) -> tuple[Loss, Any]:
        """The loss and y as it takes it; several classes become one column each of squared loss."""
        kind = type_of_target(y)
        labels = kind in ("binary", "multiclass") and (y.dtype.kind in "OUSb" or kind == "binary")
        if labels:
            classes, codes = np.unique(y, return_inverse=True)
            if len(classes) == 2 and self.loss in ("auto", "logistic"):
                return as_loss("logistic"), np.where(codes == 1, 1.0, -1.0)
            if y.dtype.kind in "OUSb":
                return Squared(), np.eye(len(classes))[codes]
        loss = as_loss("squared" if is_auto(self.loss) else self.loss)
        return loss, loss.check_targets(np.asarray(y, dtype=np.float64))

    def _shares(self, config: FitConfig, samples: Samples, targets: Any) -> Floats:
        """The share of resamples in which each feature was among the first k."""
        n, d = samples.base.shape
        if n < 4:
            raise ValueError(f"n_resamples needs at least 4 samples, got n_samples = {n}")
        rng, counts = np.random.default_rng(config.random_state), np.zeros(d)
        given = np.ones(n) if samples.weights is None else samples.weights
        halves: list[Indices] = []
        while len(halves) < self.n_resamples:
            order = rng.permutation(n)
            halves += [order[: n // 2], order[n // 2 : 2 * (n // 2)]]
        for rows in halves[: self.n_resamples]:
            weights = np.zeros(n)
            weights[rows] = given[rows]
            counts[fit_linear(config, samples.base, targets, weights).columns] += 1
        return counts / self.n_resamples

    def _get_support_mask(self) -> Any:
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.support_] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


def is_auto(value: object) -> bool:
    """Whether a parameter is left to the estimator."""
    return isinstance(value, str) and value == "auto"
