"""A fitted linear model in words: `summary()`, also shown in notebooks.

Both show what was fitted and, with the largest effects first, the features with their coefficients and what a
change of one standard deviation does, where the fit knows the spreads.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from skpursuit.guarantees.certify import Proof
from skpursuit.numerics.arrays import Floats
from skpursuit.problem.state import Audit

MAX_FEATURES_SHOWN = 20  # features in a table


class FeatureRow(NamedTuple):
    """One feature: its name, what it belongs to (a class or a target), coefficient and standardised one."""

    name: str
    output: str
    coef: float
    effect: float


class SummaryMixin:
    """Adds `summary()` and a table to the HTML that notebooks show."""

    coef_: Floats
    intercept_: Any

    def summary(self, n_features: int = MAX_FEATURES_SHOWN, guarantees: Iterable[Audit | Proof] = ()) -> str:
        """A small table of the model as text, the features with the largest effects first.

        Parameters
        ----------
        n_features : int
            Lines of the table.
        guarantees : list of Audit or Proof
            What `audit` and `certify` say about this model, a line for each.
        """
        check_is_fitted(self, "coef_")
        lines = _lines(self)
        head = [type(self).__name__, *_facts(self), *(one.sentence for one in guarantees)]
        titles = ("feature", "coefficient", "standardised")
        body: list[tuple[str, ...]] = [titles if _knows_spreads(self) else titles[:2]]
        for line in lines[:n_features]:
            name = f"{line.name} [{line.output}]" if line.output else line.name
            body.append((name, f"{line.coef:.4g}", f"{line.effect:+.4g}")[: len(body[0])])
        widths = [max(len(row[i]) for row in body) for i in range(len(body[0]))]
        table = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))])
            for row in body
        ]
        more = [f"... and {len(lines) - n_features} more"] if len(lines) > n_features else []
        rule = "-" * len(table[0])
        return "\n".join([*head, rule, table[0], rule, *table[1:], *more] if lines else head)

    def _html_repr(self) -> str:
        """scikit-learn's diagram, and below it the summary of a fitted model."""
        diagram = estimator_html_repr(self)
        return f"{diagram}<pre>{escape(self.summary())}</pre>" if "coef_" in vars(self) else diagram


def _knows_spreads(model: Any) -> bool:
    return "path_scales_" in vars(model)


def _lines(model: Any) -> list[FeatureRow]:
    """One line for each feature: of several outputs the one where it does most."""
    coef = np.atleast_2d(model.coef_)
    spreads = np.ones(coef.shape[1])
    if _knows_spreads(model):
        spreads[model.path_features_] = model.path_scales_
    names = vars(model).get("feature_names_in_")
    effects, found = coef * spreads, []
    for j in np.flatnonzero(coef.any(axis=0)).tolist():
        t = int(np.argmax(np.abs(effects[:, j])))
        output = ""
        if len(coef) > 1:
            output = str(vars(model)["classes_"][t] if "classes_" in vars(model) else t)
        name = f"x{j}" if names is None else str(names[j])
        found.append(FeatureRow(name, output, float(coef[t, j]), float(effects[t, j])))
    return sorted(found, key=lambda line: -abs(line.effect))


def _facts(model: Any) -> list[str]:
    """What was fitted and chosen, in sentences."""
    used, d = np.count_nonzero(np.atleast_2d(model.coef_).any(axis=0)), np.shape(model.coef_)[-1]
    intercept = ", ".join(f"{value:.4g}" for value in np.ravel(model.intercept_)[:5])
    facts = [
        f"{used} of {d} features, intercept {intercept}{', ...' if np.size(model.intercept_) > 5 else ''}"
    ]
    choice = vars(model).get("choice_")
    if choice is None:
        return facts
    if choice["family"] == "null":
        return [f"no feature predicts better than the constant (t = {choice['t_null']:.1f}); {facts[0]}"]
    against = f", {choice['t_null']:.1f} standard errors better than a constant" if "t_null" in choice else ""
    return [f"chosen: {choice['family']}, ridge {choice['ridge']:g}{against}", *facts]
