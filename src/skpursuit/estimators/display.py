"""`PathDisplay`: the coefficients, the scores and the choice of a cross-validated pursuit in one figure.

It follows scikit-learn's displays: `from_estimator` takes what it shows from a fitted estimator, `plot` draws
it, and the matplotlib objects stay as attributes for those who want to change them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpursuit._text import write
from skpursuit.estimators.checks import criterion_of
from skpursuit.numerics.arrays import Floats
from skpursuit.parameters import as_array, check_count, check_instance, check_number, shown
from skpursuit.problem.losses import as_loss

MANY = 40  # ratio of the largest to the smallest number from which the axis is logarithmic
APART = 0.055  # least distance of two names at line ends, as a share of the axis


@dataclass(kw_only=True, eq=False, repr=False)
class PathDisplay:
    """Path of a cross-validated pursuit, drawn as scikit-learn's displays are.

    Make one by `from_estimator`; `plot` draws it again.

    Parameters
    ----------
    coef_path : ndarray of shape (n_path, n_path_features) or (n_path, n_targets, n_path_features)
    scores : ndarray of shape (n_folds, n_scores)
        The larger the better; there may be more of them than models of the path.
    n_nonzero_coefs : int
        The chosen number of coefficients.
    feature_names : sequence of str, optional
        Names of the features of the path.
    score_name : str
        What is drawn of the scores.
    sizes : ndarray of shape (n_scores,), optional
        Number of coefficients of each model. Default: 1, 2, ...
    scales : ndarray of shape (n_path_features,), optional
        Standard deviations of the features, which make their coefficients comparable.
    score_factor : float
        What the scores are multiplied with to be drawn, -1 for those that are minus a loss.
    chosen : int, optional
        Place of the chosen model. Default: the first with `n_nonzero_coefs` coefficients.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of two matplotlib Axes
        Coefficients above, scores below.
    lines_ : list of matplotlib Line2D
        One for each feature of the path.
    names_ : list of matplotlib Annotation
        Names at the ends of lines.
    mean_line_ : matplotlib Line2D
        Mean score.
    choice_lines_ : list of matplotlib Line2D
        The chosen number, in both axes.
    one_se_ : int or None
        The smallest number whose mean score is within one standard error of the best.

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
    sizes: Any = None
    scales: Any = None
    score_factor: float = 1.0
    chosen: int | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, ax: Any = None, axes: Any = None, n_labels: int = 8
    ) -> Self:
        """Draw the path of a `PursuitRegressorCV`, `PursuitClassifierCV` or `OrthogonalMatchingPursuitCV`.

        Parameters
        ----------
        estimator : fitted estimator
        feature_names : sequence of str of length n_features, optional
            Default: the names seen in `fit`, else x0, x1, ...
        ax : matplotlib Axes or two of them, optional
            Where to draw; a single one gives its place to two.
        axes : sequence of two matplotlib Axes, optional
            Another word for `ax`.
        n_labels : int
            Features named in the figure: those with the largest chosen coefficients.
        """
        if not getattr(estimator, "keeps_path", False):
            raise TypeError(
                "a path needs PursuitRegressorCV, PursuitClassifierCV or OrthogonalMatchingPursuitCV, got "
                f"{estimator!r}"
            )
        check_is_fitted(estimator, "coef_path_")
        names = feature_names if feature_names is not None else getattr(estimator, "feature_names_in_", None)
        if names is not None and len(names) != estimator.n_features_in_:
            raise ValueError(f"feature_names has {len(names)} names for {estimator.n_features_in_} features")
        columns, known = estimator.path_features_, vars(estimator)
        labels = [f"x{j}" if names is None else str(names[j]) for j in columns]
        name, factor = _score_name(estimator)
        display = cls(
            coef_path=estimator.coef_path_,
            scores=estimator.scores_,
            n_nonzero_coefs=int(estimator.n_nonzero_coefs_),
            feature_names=labels,
            score_name=name,
            sizes=known.get("path_sizes_"),
            scales=known.get("path_scales_"),
            score_factor=factor,
        )
        if display.sizes is not None:
            display._keep_one_of_each_size()
        return display.plot(axes if ax is None else ax, n_labels=n_labels)

    def _keep_one_of_each_size(self) -> None:
        """Of boosted models with equally many features keep the chosen one, else the last."""
        sizes, place = self._sizes(), self._place()
        last = np.append(sizes[1:] != sizes[:-1], True)
        kept = np.where(sizes == sizes[place], np.arange(len(sizes)) == place, last)
        self.coef_path, self.scores = self.coef_path[kept], self.scores[:, kept]
        self.sizes = sizes[kept]

    def plot(self, ax: Any = None, *, n_labels: int = 8) -> Self:
        """Draw coefficients above and scores below.

        Parameters
        ----------
        ax : matplotlib Axes or two of them, optional
            A single one gives its place to two. Default: a new figure.
        n_labels : int
            Features named in the figure.
        """
        self._check(n_labels)
        self.axes_ = _two_axes(ax)
        self.figure_ = self.axes_[0].figure
        self._draw_coefficients(self.axes_[0], n_labels)
        self._draw_scores(self.axes_[1])
        sizes = self._sizes()
        for part in self.axes_:
            if sizes.max() > MANY * max(sizes.min(), 1):
                part.set_xscale("log")
            else:
                part.xaxis.get_major_locator().set_params(integer=True)
        look, chosen = {"color": "0.35", "linestyle": "--", "linewidth": 1}, sizes[self._place()]
        self.choice_lines_ = [part.axvline(chosen, **look) for part in self.axes_]
        self._name_lines(self.axes_[0])
        return self

    def _check(self, n_labels: int) -> None:
        for name, dimensions in (("coef_path", (2, 3)), ("scores", (2,))):
            table = as_array(name, getattr(self, name))
            if table.ndim not in dimensions or table.dtype.kind not in "fiu":
                raise ValueError(f"{name} must be a table of numbers, got {shown(table)}")
        points, features = np.shape(self.scores)[1], np.shape(self.coef_path)[-1]
        for name, length in (("sizes", points), ("scales", features)):
            given = getattr(self, name)
            if given is not None and (
                np.shape(given) != (length,) or as_array(name, given).dtype.kind not in "fiu"
            ):
                raise ValueError(f"{name} must be {length} numbers, got {shown(given)}")
        check_count("n_nonzero_coefs", self.n_nonzero_coefs, optional=False, least=0)
        if self.n_nonzero_coefs > self._sizes().max(initial=0):
            raise ValueError(f"n_nonzero_coefs is {self.n_nonzero_coefs}, more than any size of the path")
        names = self.feature_names
        if names is not None and np.shape(names) not in ((0,), (features,)):
            raise ValueError(f"feature_names must be {features} names, got {shown(names)}")
        check_instance("score_name", self.score_name, str, '"accuracy"')
        check_number("score_factor", self.score_factor, "(-inf, inf)")
        check_count("chosen", self.chosen, least=0)
        if self.chosen is not None and self.chosen >= points:
            raise ValueError(f"chosen must be below {points}, got {self.chosen}")
        check_count("n_labels", n_labels, optional=False, least=0)

    def _sizes(self) -> Floats:
        points = np.shape(self.scores)[1]
        return np.arange(1, points + 1) if self.sizes is None else as_array("sizes", self.sizes)

    def _place(self) -> int:
        """The place of the chosen model among the scores; the best one where nothing was chosen."""
        if self.chosen is not None:
            return self.chosen
        sizes = self._sizes()
        found = np.flatnonzero((sizes == self.n_nonzero_coefs) | (self.n_nonzero_coefs not in sizes))
        return int(found[np.argmax(self.scores.mean(axis=0)[found])])

    def _draw_coefficients(self, ax: Any, n_labels: int) -> None:
        """One line a feature; of several targets or classes, the one with the largest coefficient."""
        path = np.asarray(self.coef_path) * (1.0 if self.scales is None else np.asarray(self.scales))
        if path.ndim == 3:
            largest = np.abs(path).max(axis=0).argmax(axis=0)
            path = path[:, largest, np.arange(path.shape[2])]
        row = np.abs(path[min(self._place(), len(path) - 1)])
        named = {int(j) for j in np.argsort(-row, kind="stable")[:n_labels] if row[j] > 0}
        sizes, self.lines_ = self._sizes()[: len(path)], []
        for j, values in enumerate(path.T):
            look = {"linewidth": 1.7, "zorder": 3} if j in named else {"color": "0.75", "linewidth": 0.7}
            marker = "o" if j in named and len(sizes) <= MANY else None
            drawn = np.where(values != 0, values, np.nan)
            self.lines_ += ax.plot(sizes, drawn, marker=marker, markersize=3, **look)
        self._named = sorted(named, key=lambda j: -row[j])
        ax.axhline(0.0, color="0.6", linewidth=0.8)
        ax.set_ylabel("coefficient" if self.scales is None else "coefficient × standard deviation")

    def _name_lines(self, ax: Any) -> None:
        """Write names to the right of the last point of their lines, moved apart where they would overlap."""
        names = self.feature_names
        if names is None or len(names) == 0:
            names = [f"x{j}" for j in range(len(self.lines_))]
        drawn = ((self.lines_[j].get_ydata(), j) for j in self._named)
        ends = sorted((float(values[np.isfinite(values)][-1]), j) for values, j in drawn)
        low, high = ax.get_ylim()
        heights = _spread([(value - low) / (high - low) for value, _ in ends])
        look = {"xycoords": "axes fraction", "va": "center", "fontsize": "small", "annotation_clip": False}
        self.names_ = [
            write(ax.annotate("", (1.01, height), color=self.lines_[j].get_color(), **look), names[j])
            for height, (_, j) in zip(heights, ends)
        ]

    def _draw_scores(self, ax: Any) -> None:
        sizes, drawn = self._sizes(), np.asarray(self.scores) * self.score_factor
        mean, place = drawn.mean(axis=0), self._place()
        (self.mean_line_,) = ax.plot(sizes, mean, marker="o", markersize=3, color="C0")
        self.one_se_ = None
        if len(drawn) > 1:
            error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
            ax.fill_between(sizes, mean - error, mean + error, color="C0", alpha=0.2, linewidth=0)
            scores = self.scores.mean(axis=0)
            best = int(np.argmax(scores))
            within = scores >= scores[best] - error[best] / abs(self.score_factor or 1.0)
            self.one_se_ = int(sizes[within].min())
            if self.one_se_ < sizes[place]:
                ax.axvline(self.one_se_, color="0.55", linestyle=":", linewidth=1)
                where = {"xycoords": ("data", "axes fraction"), "xytext": (3, 0), "va": "top"}
                look = {"textcoords": "offset points", "fontsize": "small", "color": "0.4"}
                ax.annotate(f"within 1 SE: {self.one_se_}", (self.one_se_, 0.96), **where, **look)
        ax.plot([sizes[place]], [mean[place]], marker="o", color="C3", linestyle="none", zorder=4)
        words = f"chosen: {self.n_nonzero_coefs}" if self.n_nonzero_coefs else "chosen: nothing"
        beside = {"xytext": (6, 10 if self.score_factor < 0 else -14), "textcoords": "offset points"}
        ax.annotate(words, (sizes[place], mean[place]), color="C3", **beside)
        write(ax.set_ylabel(""), self.score_name)
        ax.set_xlabel("number of non-zero coefficients")


def _spread(heights: list[float]) -> list[float]:
    """Ascending heights moved apart, around where they were."""
    placed = np.array(heights)
    for _ in range(50):
        gaps = APART - np.diff(placed)
        if not (gaps > 1e-9).any():
            break
        moves = np.maximum(gaps, 0.0) / 2
        placed[:-1] -= moves
        placed[1:] += moves
    return placed.tolist()


def _two_axes(ax: Any) -> Any:
    """Two axes: new ones, those given, or two in the place of one."""
    stacked: Any = {"height_ratios": (3, 2)}
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            needs = "PathDisplay draws with matplotlib, which is not installed; pip install 'skpursuit[cli]'"
            raise ImportError(needs) from None
        return plt.subplots(2, 1, sharex=True, figsize=(7.5, 6), layout="constrained", **stacked)[1]
    given = np.asarray(ax, dtype=object)
    if given.ndim == 0:
        ax.set_axis_off()
        grid = ax.get_subplotspec().subgridspec(2, 1, **stacked)
        top = ax.figure.add_subplot(grid[0])
        return np.array([top, ax.figure.add_subplot(grid[1], sharex=top)])
    if given.shape != (2,):
        raise ValueError(f"ax must be one or two Axes, got an array of shape {given.shape}")
    return given


def _score_name(estimator: Any) -> tuple[str, float]:
    """What is drawn of the scores, in its own units, and the factor that makes it of them."""
    parameters = estimator.get_params(deep=False)
    scoring = parameters.get("scoring")
    if criterion_of(parameters):
        return scoring.upper(), -1.0
    if isinstance(scoring, str):
        loss = scoring.startswith("neg_")
        return scoring.removeprefix("neg_").replace("_", " "), -1.0 if loss else 1.0
    if scoring is not None:
        return "score", 1.0
    if "loss" not in parameters:
        return "mean squared error", -1.0
    squared = as_loss(parameters["loss"]).quadratic
    return ("mean squared error", -2.0) if squared else (f"mean {parameters['loss']} loss", -1.0)
