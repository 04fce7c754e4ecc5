"""Which values each parameter of an estimator may have: one table for all of them, used in `fit`.

A parameter has one meaning in every estimator, so its rule is found by its name; an estimator whose parameter
differs says so (`**other`). An estimator with a parameter that has no rule cannot be fitted at all, so that
none is left unchecked. Which values go together is checked where they meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from numbers import Integral
from typing import Any

import numpy as np

from skpursuit.parameters import (
    check_choice,
    check_count,
    check_flag,
    check_function,
    check_number,
    check_seed,
    check_size,
    shown,
)
from skpursuit.problem.losses import as_loss
from skpursuit.selectors import as_selector
from skpursuit.solvers import SOLVERS, Solver, solver_names

Rule = Callable[[str, Any], object]  # raises, or all is well

CRITERIA = ("cv", "aic", "bic", "ebic")
MULTI_CLASS = ("ovr", "multinomial")

a_count = partial(check_count, optional=False)


def a_choice(*known: str) -> Rule:
    """The rule of a parameter that is one of these names."""
    return lambda name, value: check_choice(name, value, known)


def check_parameters(estimator: Any, **other: Rule) -> None:
    """Check all parameters of an estimator; `other` has the rules that differ from those of their names."""
    given = {name: getattr(estimator, name) for name in _parameters(estimator.__class__)}
    check_values(RULES | other if other else RULES, **given)


@cache
def _parameters(kind: Any) -> list[str]:
    """Names of the parameters of an estimator, which scikit-learn reads from its signature."""
    return kind._get_param_names()


def check_values(rules: Mapping[str, Rule], **given: Any) -> None:
    """Check values by the rules of their names."""
    for name, value in given.items():
        rules[name](name, value)


def check_solver(name: str, value: Any) -> None:
    """A name of a solver, or a Solver."""
    if not isinstance(value, Solver):
        check_choice(name, value, SOLVERS)


def check_path_solvers(name: str, value: Any) -> None:
    """The word "auto", or one or several solvers that can be told their number of coefficients."""
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError(f"{name} must name at least one solver, got {shown(value)}")
        for one in value:
            check_path_solver(name, one)
    elif isinstance(value, str):
        check_choice(name, value, ("auto", *solver_names(lambda kind: kind.has_sparsity)))
    else:
        check_path_solver(name, value)


def check_path_solver(name: str, value: Any) -> None:
    """A solver, or the name of one, that can be told its number of coefficients."""
    able = solver_names(lambda kind: kind.has_sparsity)
    if not isinstance(value, Solver):
        check_choice(name, value, able)
    elif not value.has_sparsity:
        raise ValueError(
            f"{name} needs a number of coefficients, as {', '.join(able)} have; got {shown(value)}"
        )


def check_optional_flag(name: str, value: Any) -> None:
    """True, False or None."""
    if value is not None:
        check_flag(name, value)


def check_ridges(name: str, value: Any) -> None:
    """The word "auto", or some numbers of at least 0."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return check_choice(name, value, ("auto",))
    if len(list(value)) == 0:
        raise ValueError(f"{name} must have at least one number, got {shown(value)}")
    for one in value:
        check_size(name, one, optional=False)


def check_word_or_count(name: str, value: Any, word: str, optional: bool = True) -> None:
    """A certain word, or a whole number of at least 1."""
    if isinstance(value, str):
        return check_choice(name, value, (word,))
    check_count(name, value, optional=optional)


def check_guard(name: str, value: Any) -> None:
    """The word "auto", None, or a number of at least 0."""
    if isinstance(value, str):
        return check_choice(name, value, ("auto",))
    check_size(name, value)


def check_precompute(name: str, value: Any) -> None:
    """True, False or "auto"."""
    if not isinstance(value, str):
        check_flag(name, value)
    elif value != "auto":
        raise ValueError(f"{name} must be True, False or 'auto', got {shown(value)}")


def check_class_weight(name: str, value: Any) -> None:
    """None, "balanced", or a weight of at least 0 for each label."""
    if value is None:
        return
    if not isinstance(value, Mapping):
        return check_choice(name, value, ("balanced",))
    for label, weight in value.items():
        check_size(f"{name}[{label!r}]", weight, optional=False)


def check_splitter(name: str, value: Any) -> None:
    """None, a number of folds, a splitter, or an iterable of (training rows, test rows)."""
    if value is None or isinstance(value, Integral):
        return check_count(name, value, least=2)
    listed = isinstance(value, Iterable) or callable(getattr(value, "split", None))
    if not listed or isinstance(value, (str, bytes, Mapping)):
        raise TypeError(f"{name} must be a number of folds, a splitter or some splits, got {shown(value)}")


def check_scoring(name: str, value: Any) -> None:
    """None, the name of a scorer, or a function (estimator, X, y)."""
    if isinstance(value, str):
        from sklearn.metrics import get_scorer

        get_scorer(value)  # its message names the parameter
    else:
        check_function(name, value)


def check_workers(name: str, value: Any) -> None:
    """None or a whole number that is not 0, as joblib takes it."""
    check_count(name, value, least=-(2**31))
    if value == 0:
        raise ValueError(f"{name} must not be 0; use 1 for one thread, -1 for all")


def check_verbose(name: str, value: Any) -> None:
    """The word "auto", a flag, or a level of at least 0."""
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    elif not isinstance(value, (bool, np.bool_)):
        check_count(name, value, optional=False, least=0)


FLAGS = (
    *("fit_intercept", "normalize", "shared_support", "warm_start", "refit"),
    *("copy", "copy_X", "copy_Gram", "copy_Xy", "return_path", "return_n_iter"),
)
RULES: dict[str, Rule] = {
    **dict.fromkeys(FLAGS, check_flag),
    "scale": a_choice("auto", "column", "none"),
    "solver": check_solver,
    "selector": lambda name, value: as_selector(value),
    "loss": lambda name, value: as_loss(value),
    "n_nonzero_coefs": check_count,
    "max_nonzero_coefs": check_count,
    "n_components": check_count,
    "n_features_to_select": partial(check_word_or_count, word="cv"),
    "n_resamples": partial(check_count, optional=False, least=0),
    "threshold": partial(check_number, interval="(0.5, 1]"),
    "max_iter": check_count,
    "batch_size": a_count,
    "memory_limit": a_count,
    "tol": check_size,
    "radius": partial(check_number, interval="(0, inf)"),
    "ridge": check_size,
    "ridges": check_ridges,
    "selection": a_choice("best", "sparse", "average"),
    "null_guard": check_guard,
    "cv_repeats": partial(check_word_or_count, word="auto", optional=False),
    "forget": partial(check_size, optional=False),
    "verbose": check_verbose,
    "time_limit": check_size,
    "precompute": check_precompute,
    "multi_class": a_choice(*MULTI_CLASS),
    "criterion": a_choice(*CRITERIA),
    "class_weight": check_class_weight,
    "cv": check_splitter,
    "scoring": check_scoring,
    "callback": check_function,
    "n_jobs": check_workers,
    "random_state": check_seed,
}
