"""Arguments that must be refused, and what a refusal must be: a sentence that names an argument."""

from __future__ import annotations

import re

ARGUMENTS = (
    *("X", "y", "sample_weight", "weights", "n_nonzero_coefs", "max_nonzero_coefs", "selector", "solver", "loss"),
    *("forced", "radius", "tol", "rtol", "ridge", "constraint", "positive", "batch_size", "step_size", "delta"),
    *("Gram", "Xy", "norms_squared", "dictionary", "signals", "n_splits", "cv", "scoring", "column", "max_iter"),
    *("fit_intercept", "normalize", "lazy", "warm_start", "checkpoint", "callback", "random_state", "stop", "eps"),
    *("Huber", "features", "samples", "classes", "labels", "targets", "gram", "CoSaMP", "ErrorBound", "budget"),
)
NAMED = re.compile(r"\b(" + "|".join(ARGUMENTS) + r")\b")


class RefusedRight(Exception):
    """The case must be refused, was, and in the right way."""


def judge_refusal(error, table, where):
    """What is wrong with an exception, as a list of (check, message)."""
    kind, text = type(error).__name__, str(error)
    told = f"{kind}: {text[:200]} [{where.strip().splitlines()[-1].strip() if where.strip() else ''}]"
    if not isinstance(error, (ValueError, TypeError)) or kind == "LinAlgError":
        return [("raised", told)]
    if len(text.split()) < 4 or not NAMED.search(text) or "zero-size" in text or "broadcast" in text:
        return [("unclear", told)]
    if table.notes.get("refuse") or table.notes.get("may refuse") or table.extreme:
        return []
    return [("refused", told)]


PROGRAMS = {}
