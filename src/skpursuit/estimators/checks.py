"""Which values each parameter of an estimator may have: one table for all of them, used in `fit`.

A parameter has one meaning in every estimator, so its rule is found by its name; an estimator whose parameter
differs says so (`**other`). An estimator with a parameter that has no rule cannot be fitted at all, so that
none is left unchecked.

A parameter that would do nothing beside the others is refused (`cv` is warned about). `NO_EFFECT` has such
parameters, and for each group a function that says where they have no effect and what to write instead.
Parameters that change no result (`n_jobs`, `verbose`, a seed where nothing is drawn) are welcome everywhere.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from numbers import Integral, Real
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
from skpursuit.solvers import SOLVERS, Solver, solver_kind, solver_names

Rule = Callable[[str, Any], object]  # raises, or all is well

CRITERIA = ("aic", "bic", "ebic")
MULTI_CLASS = ("ovr", "ovr_shared", "multinomial")

a_count = partial(check_count, optional=False)


def a_choice(*known: str) -> Rule:
    """The rule of a parameter that is one of these names."""
    return lambda name, value: check_choice(name, value, known)


def check_parameters(estimator: Any, **other: Rule) -> None:
    """Check all parameters of an estimator; `other` has the rules that differ from those of their names."""
    defaults = _parameters(estimator.__class__)
    given = {name: getattr(estimator, name) for name in defaults}
    check_values(RULES | other if other else RULES, **given)
    for names, why in NO_EFFECT:
        changed = [name for name in names if name in given and _differ(given[name], defaults[name])]
        reason = why(given) if changed else None
        if reason:
            listed = ", ".join(f"{name}={shown(given[name])}" for name in changed)
            message = f"{listed} {'has' if len(changed) == 1 else 'have'} no effect {reason}"
            if changed != ["cv"]:
                raise ValueError(message)
            warnings.warn(message, UserWarning, stacklevel=4)  # scikit-learn's checks set it everywhere


def _differ(value: Any, default: Any) -> bool:
    plain = bool, int, float, str, np.generic
    return value is not default and not (
        isinstance(value, plain) and isinstance(default, plain) and value == default
    )


@cache
def _parameters(kind: Any) -> dict[str, Any]:
    """The parameters of an estimator, which scikit-learn reads from its signature, and their defaults."""
    known = inspect.signature(kind).parameters
    return {name: known[name].default for name in kind._get_param_names()}


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


def check_ridges(name: str, value: Any) -> None:
    """The word "auto", or one or some numbers of at least 0."""
    if isinstance(value, Real) and not isinstance(value, bool):
        return check_size(name, value)
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
    """None, a criterion, the name of a scorer, or a function (estimator, X, y)."""
    if isinstance(value, str) and value not in CRITERIA:
        from sklearn.metrics import get_scorer

        get_scorer(value)  # its message names the parameter
    elif not isinstance(value, str):
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
    *("fit_intercept", "normalize", "shared_support", "null_test", "refit"),
    *("copy", "copy_X", "copy_Gram", "copy_Xy", "return_path", "return_n_iter"),
)
RULES: dict[str, Rule] = {
    **dict.fromkeys(FLAGS, check_flag),
    "scale": a_choice("auto", "column", "none"),
    "solver": check_solver,
    "selector": lambda name, value: (isinstance(value, str) and value == "auto") or as_selector(value),
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
    "ridge": check_size,
    "ridges": check_ridges,
    "selection": a_choice("best", "sparse"),
    "forget": partial(check_size, optional=False),
    "verbose": check_verbose,
    "time_limit": check_size,
    "precompute": check_precompute,
    "multi_class": a_choice(*MULTI_CLASS),
    "class_weight": check_class_weight,
    "cv": check_splitter,
    "scoring": check_scoring,
    "callback": check_function,
    "n_jobs": check_workers,
    "random_state": check_seed,
}


Given = Mapping[str, Any]  # the parameters of an estimator


def criterion_of(given: Given) -> str | None:
    """The information criterion that `scoring` names, if it does."""
    scoring = given.get("scoring")
    return scoring if isinstance(scoring, str) and scoring in CRITERIA else None


def _solvers(given: Given) -> list[Any]:
    solver = given.get("solver", "omp")
    return list(solver) if isinstance(solver, (list, tuple)) else [solver]


def _beside_an_object(given: Given) -> str | None:
    if any(isinstance(one, Solver) for one in _solvers(given)):
        return "with a solver object; give it to the solver, as in OMP(n_nonzero_coefs=5, max_iter=20)"
    return None


def _no_ridge(given: Given) -> str | None:
    for solver in _solvers(given) if np.any(given.get("ridges", given.get("ridge"))) else []:
        if isinstance(solver, Solver):
            return "with a solver object; give it to the solver, as in OMP(ridge=0.1)"
        if solver != "auto" and not solver_kind(solver).can_ridge:
            able = ", ".join(solver_names(lambda kind: kind.can_ridge))
            return f"with solver {solver!r}; leave it out or use one of {able}"
    return None


def _no_sparsity(given: Given) -> str | None:
    (solver,) = _solvers(given)
    if solver_kind(solver).has_sparsity:
        return None
    return f"with solver {solver!r}; limit max_iter instead: an iteration adds at most one column"


def _no_selector(given: Given) -> str | None:
    if _solvers(given) != ["auto"] or criterion_of(given):
        return None
    loss = as_loss(given["loss"])
    contest = loss.quadratic or loss.gives_probability
    return "with solver='auto', whose models ask no selector; write solver='omp'" if contest else None


def _no_folds(given: Given) -> str | None:
    if criterion_of(given):
        return f"with scoring={given['scoring']!r}, which has no folds; leave it out or use another scoring"
    if given.get("n_features_to_select", "cv") != "cv":
        return "without folds; write n_features_to_select='cv' or leave it out"
    return None


def _no_contest(given: Given) -> str | None:
    if criterion_of(given) and (len(_solvers(given)) > 1 or np.size(given["ridges"]) > 1):
        return f"with scoring={given['scoring']!r} beyond the first; give one"
    return None


def _no_resamples(given: Given) -> str | None:
    return None if given["n_resamples"] else "without resamples; write n_resamples=50 or leave it out"


def _not_cosamp(given: Given) -> str | None:
    by_omp = "refit" in given and given["solver"] == "omp"
    return "with solver='omp'; leave it out or use 'cosamp'" if by_omp else None


NO_EFFECT: tuple[tuple[tuple[str, ...], Callable[[Given], str | None]], ...] = (
    (("n_nonzero_coefs", "tol", "max_iter"), _beside_an_object),
    (("ridge", "ridges"), _no_ridge),
    (("n_nonzero_coefs",), _no_sparsity),
    (("selector",), _no_selector),
    (("cv", "selection"), _no_folds),
    (("solver", "ridges"), _no_contest),
    (("threshold",), _no_resamples),
    (("max_iter", "refit"), _not_cosamp),
)
