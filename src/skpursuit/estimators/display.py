"""`PathDisplay`: the coefficients, the scores and the choice of a cross-validated pursuit in one figure.

It follows scikit-learn's displays: `from_estimator` takes what it shows from a fitted estimator, `plot` draws
it, and the matplotlib objects stay as attributes for those who want to change them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpursuit.estimators.path_cv import PathCVMixin
from skpursuit.numerics.arrays import Floats
from skpursuit.parameters import as_array, check_count, check_instance, shown


@dataclass(kw_only=True, eq=False, repr=False)
class PathDisplay:
    """Path of a cross-validated pursuit, drawn as scikit-learn's displays are.

    Make one by `from_estimator`; `plot` draws it again.

    Parameters
    ----------
    coef_path : ndarray of shape (K, n_path_features) or (K, n_targets, n_path_features)
    scores : ndarray of shape (n_folds, K)
        The larger the better.
    n_nonzero_coefs : int
        The chosen number of coefficients.
    feature_names : sequence of str
        Names of the features of the path.
    score_name : str
        What the scores are.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of two matplotlib Axes
        Coefficients above, scores below.
    lines_ : list of matplotlib Line2D
        One for each feature of the path.
    mean_line_ : matplotlib Line2D
        Mean score.
    choice_lines_ : list of matplotlib Line2D
        The chosen number, in both axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from skpursuit import PathDisplay, PursuitRegressorCV, datasets
    >>> X, y, w = datasets.make_sparse_signal(200, 40, 3, snr=20.0, random_state=0)
    >>> display = PathDisplay.from_estimator(PursuitRegressorCV().fit(X, y))
    >>> len(display.axes_)
    2
    """

    coef_path: Floats
    scores: Floats
    n_nonzero_coefs: int
    feature_names: Any = None
    score_name: str = "score"

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, axes: Any = None, n_labels: int = 8
    ) -> Self:
        """Draw the path of a fitted `PursuitRegressorCV` or `PursuitClassifierCV`.

        Parameters
        ----------
        estimator : fitted estimator
        feature_names : sequence of str of length n_features, optional
            Default: the names seen in `fit`, else x0, x1, ...
        axes : sequence of two matplotlib Axes, optional
        n_labels : int
            Features named in the figure: those with the largest chosen coefficients.
        """
        if not isinstance(estimator, PathCVMixin):
            raise TypeError(f"a path needs PursuitRegressorCV or PursuitClassifierCV, got {estimator!r}")
        check_is_fitted(estimator, "coef_path_")
        names = feature_names if feature_names is not None else getattr(estimator, "feature_names_in_", None)
        if names is not None and len(names) != estimator.n_features_in_:
            raise ValueError(f"feature_names has {len(names)} names for {estimator.n_features_in_} features")
        columns = estimator.path_features_
        labels = [f"x{j}" if names is None else str(names[j]) for j in columns]
        display = cls(
            coef_path=estimator.coef_path_,
            scores=estimator.scores_,
            n_nonzero_coefs=estimator.n_nonzero_coefs_,
            feature_names=labels,
            score_name=_score_name(estimator),
        )
        return display.plot(axes, n_labels=n_labels)

    def plot(self, axes: Any = None, *, n_labels: int = 8) -> Self:
        """Draw coefficients above and scores below.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, optional
            Default: a new figure.
        n_labels : int
            Features named in the figure.
        """
        self._check(n_labels)
        if axes is None:
            plt = _pyplot()
            _, axes = plt.subplots(
                2, 1, sharex=True, figsize=(7, 6), height_ratios=(3, 2), layout="constrained"
            )
        self.axes_ = np.asarray(axes)
        if self.axes_.shape != (2,):
            raise ValueError(f"axes must be two Axes, got an array of shape {self.axes_.shape}")
        self.figure_ = self.axes_[0].figure
        self._draw_coefficients(self.axes_[0], n_labels)
        self._draw_scores(self.axes_[1])
        chosen = {"color": "0.35", "linestyle": "--", "linewidth": 1}
        self.choice_lines_ = [ax.axvline(self.n_nonzero_coefs, **chosen) for ax in self.axes_]
        return self

    def _check(self, n_labels: int) -> None:
        for name, dimensions in (("coef_path", (2, 3)), ("scores", (2,))):
            table = as_array(name, getattr(self, name))
            if table.ndim not in dimensions or table.dtype.kind not in "fiu":
                raise ValueError(f"{name} must be a table of numbers, got {shown(table)}")
        check_count("n_nonzero_coefs", self.n_nonzero_coefs, optional=False)
        if self.n_nonzero_coefs > np.shape(self.scores)[1]:
            raise ValueError(f"n_nonzero_coefs is {self.n_nonzero_coefs}, more than scores has columns")
        names, features = self.feature_names, np.shape(self.coef_path)[-1]
        if names is not None and np.shape(names) not in ((0,), (features,)):
            raise ValueError(f"feature_names must be {features} names, got {shown(names)}")
        check_instance("score_name", self.score_name, str, '"accuracy"')
        check_count("n_labels", n_labels, optional=False, least=0)

    def _sizes(self) -> Floats:
        return np.arange(1, self.scores.shape[1] + 1)

    def _draw_coefficients(self, ax: Any, n_labels: int) -> None:
        """One line a feature; of several targets or classes, the one with the largest coefficient."""
        path = np.asarray(self.coef_path)
        if path.ndim == 3:
            largest = np.abs(path).max(axis=0).argmax(axis=0)
            path = path[:, largest, np.arange(path.shape[2])]
        names = self.feature_names
        if names is None or len(names) == 0:
            names = [f"x{j}" for j in range(path.shape[1])]
        row = np.abs(path[self.n_nonzero_coefs - 1])
        named = {int(j) for j in np.argsort(-row, kind="stable")[:n_labels] if row[j] > 0}
        self.lines_ = []
        for j, values in enumerate(path.T):
            look = {"label": names[j], "linewidth": 1.6} if j in named else {"color": "0.7", "linewidth": 0.8}
            shown = np.where(values != 0, values, np.nan)
            marker = "o" if j in named else None
            self.lines_ += ax.plot(self._sizes(), shown, marker=marker, markersize=3, **look)
        ax.axhline(0.0, color="0.6", linewidth=0.8)
        ax.set_ylabel("coefficient")
        if named:
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")

    def _draw_scores(self, ax: Any) -> None:
        sizes, mean = self._sizes(), self.scores.mean(axis=0)
        (self.mean_line_,) = ax.plot(sizes, mean, marker="o", markersize=3, color="C0")
        if len(self.scores) > 1:
            error = self.scores.std(axis=0, ddof=1) / np.sqrt(len(self.scores))
            ax.fill_between(sizes, mean - error, mean + error, color="C0", alpha=0.2, linewidth=0)
        best = mean[self.n_nonzero_coefs - 1]
        ax.plot([self.n_nonzero_coefs], [best], marker="o", color="C3", linestyle="none")
        ax.annotate(
            f"k = {self.n_nonzero_coefs}",
            (self.n_nonzero_coefs, best),
            xytext=(6, -14),
            textcoords="offset points",
            color="C3",
        )
        ax.set_ylabel(self.score_name)
        ax.set_xlabel("number of non-zero coefficients")
        ax.xaxis.get_major_locator().set_params(integer=True)


def _score_name(estimator: Any) -> str:
    if estimator.criterion != "cv":
        return f"minus {estimator.criterion.upper()}"
    if estimator.scoring is None:
        return "minus mean loss"
    return estimator.scoring if isinstance(estimator.scoring, str) else "score"


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "PathDisplay draws with matplotlib, which is not installed; pip install 'skpursuit[cli]'"
        ) from None
    return plt
