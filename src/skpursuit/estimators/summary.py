"""A fitted linear model as text: `summary()`, also shown in notebooks.

The features with the largest effects come first, with their coefficients and, where the fit knows the spreads
of the features, what a change of one standard deviation does.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from skpursuit.numerics.arrays import Floats

if TYPE_CHECKING:
    from skpursuit.guarantees.certify import Proof
    from skpursuit.problem.state import Audit


class SummaryMixin:
    """Adds `summary()` and a table to the HTML that notebooks show."""

    coef_: Floats
    intercept_: Floats | float

    def summary(self, n_features: int = 20, guarantees: Iterable[Audit | Proof] = ()) -> str:
        """A small table of the model as text, the features with the largest effects first.

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
        rows, largest = [titles], np.abs(effects).argmax(axis=0)
        order = used[np.argsort(-np.abs(effects[largest[used], used]), kind="stable")]
        for j in order[:n_features].tolist():  # of several outputs the one where it does most
            t, name = (
                largest[j],
                str(known["feature_names_in_"][j]) if "feature_names_in_" in known else f"x{j}",
            )
            name += f" [{known['classes_'][t] if 'classes_' in known else t}]" * (len(coef) > 1)
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
