"""Fitted models for people: `summary()` as text, and `PathDisplay`, the figure of a cross-validated pursuit.

The summary has the features with the largest effects first, with their coefficients and, where the fit knows
the spreads of the features, what a change of one standard deviation does; notebooks show it too. The display
follows scikit-learn's: `from_estimator` takes what it shows from a fitted estimator, `plot` draws it, and the
matplotlib objects stay as attributes for those who want to change them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from skpursuit._text import write
from skpursuit.estimators.parameter_rules import criterion_of
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.parameters import short_repr

if TYPE_CHECKING:
    from skpursuit.guarantees.certify import Proof
    from skpursuit.problem.state import Audit

LINEAR_SIZES = 100  # numbers of coefficients up to which their axis is not logarithmic


class SummaryMixin:
    """Adds `summary()` and a table to the HTML that notebooks show."""

    coef_: Floats
    intercept_: Floats | float

    def summary(self, n_features: int = 20, guarantees: Iterable[Audit | Proof] = ()) -> str:
        """A small table of the model as text, the features with the largest effects first.

        Of several targets or classes a feature shows the one where it does most, and in how many more it has
        coefficients: "age [b] +2".

        Parameters
        ----------
        n_features : int
            Lines of the table.
        guarantees : list of Audit or Proof
            What `audit` and `certify` say about this model, a line for each.
        """
        check_is_fitted(self, "coef_")
        coef, known = np.atleast_2d(self.coef_), vars(self)
        used, effects = np.flatnonzero(coef.any(axis=0)), coef.copy()
        intercepts = ", ".join(f"{value:.4g}" for value in np.ravel(self.intercept_)[:5])
        more = ", ..." if np.size(self.intercept_) > 5 else ""
        head = [type(self).__name__, f"{len(used)} of {coef.shape[1]} features, intercept {intercepts}{more}"]
        if "choice_" in known:
            choice = known["choice_"]
            head.insert(1, f"chosen: {choice['family']}, ridge {choice['ridge']:g}")
            if "t_null" in choice:
                head[1] += f", {choice['t_null']:.1f} standard errors better than a constant"
            if choice["family"] == "null":
                head[1] = f"no feature predicts better than the constant (t = {choice['t_null']:.1f})"
        head += [one.sentence for one in guarantees]
        if len(used) == 0:
            return "\n".join(head)
        titles = ["feature", "coefficient"]
        if "path_scales_" in known:
            effects[:, known["path_features_"]] *= known["path_scales_"]
            titles.append("standardised")
        rows, largest, names = [titles], np.abs(effects).argmax(axis=0), known.get("feature_names_in_")
        order = used[np.argsort(-np.abs(effects[largest[used], used]), kind="stable")]
        for j in order[:n_features].tolist():
            t, name = largest[j], f"x{j}" if names is None else str(names[j])
            name += _output(known, t, coef[:, j]) * (len(coef) > 1)
            rows.append([name, f"{coef[t, j]:.4g}", f"{effects[t, j]:+.4g}"])
        width = max(len(row[0]) for row in rows)
        cells = [[row[0].ljust(width), *(f"{c:>12}" for c in row[1 : len(titles)])] for row in rows]
        lines = ["  ".join(row) for row in cells]
        rest = [f"... and {len(used) - n_features} more"] * (len(used) > n_features)
        rule = "-" * len(lines[0])
        return "\n".join([*head, rule, lines[0], rule, *lines[1:], *rest])

    def _html_repr(self) -> str:
        """scikit-learn's diagram, and below it the summary of a fitted model."""
        diagram = estimator_html_repr(self)
        return f"{diagram}<pre>{escape(self.summary())}</pre>" if "coef_" in vars(self) else diagram


@dataclass(kw_only=True, eq=False, repr=False)
class PathDisplay:
    """Path of a cross-validated pursuit, drawn as scikit-learn's displays are.

    Make one by `from_estimator`; `plot` draws it again.

    Parameters
    ----------
    coef_path : ndarray of shape (n_path, n_path_features)
    scores : ndarray of shape (n_folds, n_scores)
        There may be more of them than models of the path.
    n_nonzero_coefs : int
        The chosen number of coefficients.
    sizes : ndarray of shape (n_scores,), optional
        Number of coefficients of each model. Default: 1, 2, ...
    one_se : int, optional
        The smallest number whose mean score is within one standard error of the best.
    feature_names : sequence of str, optional
        Names of the features of the path. Default: x0, x1, ...
    score_name : str
        What the scores are.
    audit : Audit, optional
        Draws the rho of each step below the coefficients.
    proof : Proof, optional
        Draws the band between objective and lower bound behind the scores.

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
    sizes: Indices | None = None
    one_se: int | None = None
    feature_names: list[str] | None = None
    score_name: str = "score"
    audit: Audit | None = None
    proof: Proof | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: list[str] | None = None,
        ax: Any = None,
        n_labels: int = 8,
        audit: Audit | None = None,
        proof: Proof | None = None,
    ) -> Self:
        """Draw the path of a `PursuitRegressorCV`, `PursuitClassifierCV` or `OrthogonalMatchingPursuitCV`.

        Parameters
        ----------
        estimator : fitted estimator
        feature_names : sequence of str of length n_features, optional
            Default: the names seen in `fit`, else x0, x1, ...
        ax : two matplotlib Axes, optional
            Where to draw. Default: a new figure.
        n_labels : int
            Features named in the figure: those with the largest chosen coefficients.
        audit, proof : Audit and Proof, optional
            Of this estimator.
        """
        if getattr(estimator, "path_scores", None) is None:
            kinds = "PursuitRegressorCV, PursuitClassifierCV or OrthogonalMatchingPursuitCV"
            raise TypeError(f"a path needs {kinds}, got {estimator!r}")
        check_is_fitted(estimator, "coef_path_")
        known, scores, chosen = vars(estimator), estimator.scores_, int(estimator.n_nonzero_coefs_)
        names = known.get("feature_names_in_") if feature_names is None else feature_names
        if names is not None and len(names) != estimator.n_features_in_:
            raise ValueError(f"feature_names has {len(names)} names for {estimator.n_features_in_} features")
        sizes = known.get("path_sizes_", np.arange(1, scores.shape[1] + 1))
        mean, error = _mean_and_error(scores)
        final = estimator.coef_[..., estimator.path_features_]
        away = np.abs(estimator.coef_path_ - final)
        place = int(away.sum(axis=tuple(range(1, away.ndim))).argmin())
        last = np.append(sizes[1:] != sizes[:-1], True)  # boosted models may have equally many features
        shown = np.where(sizes == chosen, np.arange(len(sizes)) == place, last)
        path = estimator.coef_path_[shown[: len(estimator.coef_path_)]] * estimator.path_scales_
        labels = [f"x{j}" if names is None else str(names[j]) for j in estimator.path_features_]
        if path.ndim == 3:  # of several targets or classes the one where a feature does most in the end
            most = np.where(final.any(axis=0), np.abs(final), np.abs(path).max(axis=0)).argmax(axis=0)
            path = path[:, most, np.arange(path.shape[2])]
            labels = [name + _output(known, t, w) for name, t, w in zip(labels, most, final.T)]
        scoring, sign, name = known.get("scoring"), 1.0, "score"
        if scoring is None or criterion_of(known):
            sign, name = -1.0, estimator.path_scores if scoring is None else scoring.upper()
        elif isinstance(scoring, str):
            name = scoring.replace("_", " ")
        within = sizes[mean >= mean.max() - error[mean.argmax()]]
        return cls(
            coef_path=path,
            scores=sign * scores[:, shown],
            n_nonzero_coefs=chosen,
            sizes=sizes[shown],
            one_se=int(within.min()) if len(scores) > 1 else None,
            feature_names=labels,
            score_name=name,
            audit=audit,
            proof=proof,
        ).plot(ax, n_labels=n_labels)

    def plot(self, ax: Any = None, *, n_labels: int = 8) -> Self:
        """Draw coefficients (times standard deviations) above and scores below.

        Parameters
        ----------
        ax, n_labels
            As in `from_estimator`.
        """
        from matplotlib.ticker import MaxNLocator

        path, (mean, error) = np.asarray(self.coef_path), _mean_and_error(self.scores)
        names = [f"x{j}" for j in range(path.shape[1])] if self.feature_names is None else self.feature_names
        sizes = np.arange(1, len(mean) + 1) if self.sizes is None else np.asarray(self.sizes)
        beside = {"loc": "center left", "bbox_to_anchor": (1, 0.5)} if ax is None else {}  # there is room
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(2, 1, sharex=True, figsize=(7.5, 6), layout="constrained")[1]
        if np.shape(ax) != (2,):
            raise ValueError(f"ax must be two Axes, got {short_repr(ax)}")
        self.axes_, self.figure_, self.lines_ = np.asarray(ax), ax[0].figure, []
        (top, bottom), place = ax, int(np.argmin(np.abs(sizes - self.n_nonzero_coefs)))
        largest = np.abs(path[min(place, len(path) - 1)]) if len(path) else np.zeros(path.shape[1])
        named = [j for j in np.argsort(-largest, kind="stable")[:n_labels].tolist() if largest[j] > 0]
        for j, values in enumerate(path.T):
            look = {"marker": ".", "zorder": 3} if j in named else {"color": "0.75", "linewidth": 0.7}
            self.lines_ += top.plot(sizes[: len(path)], np.where(values != 0, values, np.nan), **look)
        legend = top.legend([self.lines_[j] for j in named], [""] * len(named), fontsize="small", **beside)
        for text, j in zip(legend.get_texts(), named):
            write(text, names[j])
        top.set_ylabel("coefficient × standard deviation")
        (self.mean_line_,) = bottom.plot(sizes, mean, marker=".")
        bottom.fill_between(sizes, mean - error, mean + error, alpha=0.2, linewidth=0)
        within = "" if self.one_se is None else f", within one standard error: {self.one_se}"
        within = ", nothing predicts better than a constant" if self.n_nonzero_coefs == 0 else within
        bottom.set_title(f"chosen: {self.n_nonzero_coefs}{within}", fontsize="medium")
        write(bottom.set_ylabel(""), self.score_name)
        bottom.set_xlabel("number of non-zero coefficients")
        if sizes.max() > LINEAR_SIZES:
            bottom.set_xscale("log")
        else:
            bottom.xaxis.set_major_locator(MaxNLocator(integer=True))
        if self.audit is not None:
            below, rho = top.twinx(), self.audit.rho
            below.step(np.arange(1, len(rho) + 1), rho, where="mid", color="0.35", linewidth=1)
            below.set(ylim=(0, 4), yticks=(0, 1), ylabel="rho")
        if self.proof is not None:
            behind, bounds = bottom.twinx(), (self.proof.lower_bound, self.proof.objective)
            behind.fill_between(np.arange(1, len(bounds[0]) + 1), *bounds, color="C2", alpha=0.3)
            behind.set_ylabel("objective, to its lower bound")
        chosen = sizes[place] if self.n_nonzero_coefs else 0
        self.choice_lines_ = [part.axvline(chosen, color="0.35", linestyle="--") for part in ax]
        return self


def _output(known: dict[str, Any], t: int, coef: Floats) -> str:
    """The target or class where a feature does most, and in how many more it has a coefficient."""
    more = int(np.count_nonzero(coef)) - 1
    return f" [{known['classes_'][t] if 'classes_' in known else t}]" + f" +{more}" * (more > 0)


def _mean_and_error(scores: Floats) -> tuple[Floats, Floats]:
    """Mean over the folds and its standard error."""
    scores = np.asarray(scores)
    return scores.mean(axis=0), scores.std(axis=0) / np.sqrt(max(1, len(scores) - 1))
