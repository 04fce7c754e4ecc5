"""Which values each parameter of an estimator may have, and which do nothing beside others.

A parameter has one meaning in every estimator, so the rule of its values is found by its name; an estimator
whose parameter differs says so (`**own`), and one with a parameter that has no rule cannot be fitted at all.
Losses are checked by `as_loss`, where they are used.

A parameter that would do nothing beside the others is refused (`cv` is warned about) by `_no_effect`. Those
that change no result (`n_jobs`, `verbose`, a seed where nothing is drawn) are welcome everywhere.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from skpursuit.parameters import MAX_INT64, short_repr, warn_user
from skpursuit.selectors import SELECTORS, Selector
from skpursuit.solvers import SOLVERS, Solver, solver_class, solver_names

Rule = tuple[str, Callable[[Any], bool]]  # what a value must be, in words and as a test
MAX_FLOAT = sys.float_info.max
SOURCES = (np.random.RandomState, np.random.Generator)
CRITERIA = ("aic", "bic", "ebic", "loo")
COLUMN_RULES = ("feature_groups", "always_include", "exclude", "positive")  # which columns a model may have


class ParameterError(ValueError, TypeError):
    """A parameter has a value that it cannot have; as in scikit-learn, both kinds of error at once."""


def is_auto(value: object) -> bool:
    """Whether a parameter is left to the estimator."""
    return isinstance(value, str) and value == "auto"


def _is_whole(value: object, least: int) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and least <= int(value) <= MAX_INT64


def _are_sizes(values: Collection[object]) -> bool:
    """Whether there are values, and all of them are finite numbers of at least 0."""
    numbers: list[Any] = [v for v in values if isinstance(v, Real) and not isinstance(v, bool)]
    return 0 < len(numbers) == len(values) and all(0 <= v <= MAX_FLOAT for v in numbers)


def one_of(*words: str) -> Rule:
    """One of these words."""
    return " or ".join(map(repr, words)), lambda v: isinstance(v, str) and v in words


def either(rule: Rule, more: str, holds: Callable[[Any], bool]) -> Rule:
    """A rule that allows something more."""
    return f"{rule[0]} or {more}", lambda v: holds(v) or rule[1](v)


def or_none(rule: Rule) -> Rule:
    """A rule that allows None too."""
    return either(rule, "None", lambda v: v is None)


def _know_sparsity(value: object) -> bool:
    several = value if isinstance(value, (list, tuple)) else [value]
    known = ("auto", *solver_names(lambda kind: kind.takes_sparsity))
    able = [v.takes_sparsity if isinstance(v, Solver) else isinstance(v, str) and v in known for v in several]
    return len(able) > 0 and all(able)


def _are_columns(value: object) -> bool:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Collection):
        return False
    return all(isinstance(one, str) or _is_whole(one, 0) for one in value)


def _is_scoring(value: object) -> bool:
    from sklearn.metrics import get_scorer_names

    return value in (*CRITERIA, *get_scorer_names()) if isinstance(value, str) else callable(value)


def _are_folds(value: object) -> bool:
    several = isinstance(value, Iterable) or getattr(value, "split", None) is not None
    return _is_whole(value, 2) or (several and not isinstance(value, (str, bytes)))


FLAG: Rule = "True or False", lambda v: isinstance(v, (bool, np.bool_))
COUNT: Rule = "a whole number of at least 1", lambda v: _is_whole(v, 1)
COUNT_OR_ZERO: Rule = "a whole number of at least 0", lambda v: _is_whole(v, 0)
SIZE: Rule = "a number of at least 0", lambda v: _are_sizes([v])
FLAGS = (
    *("fit_intercept", "shared_support", "null_test", "refit", "positive"),
    *("copy", "copy_X", "copy_Gram", "copy_Xy", "return_path", "return_n_iter"),
)
RULES: dict[str, Rule | None] = {
    **dict.fromkeys(FLAGS, FLAG),
    **dict.fromkeys(("n_nonzero_coefs", "max_nonzero_coefs", "n_components", "max_iter"), or_none(COUNT)),
    "batch_size": COUNT,
    **dict.fromkeys(("tol", "ridge", "time_limit"), or_none(SIZE)),
    "ridges": either(
        SIZE,
        "several or 'auto'",
        lambda v: is_auto(v) or (isinstance(v, (list, tuple, np.ndarray)) and _are_sizes(v)),
    ),
    "scale": one_of("auto", "column", "none"),
    "solver": either(one_of(*SOLVERS), "a Solver", lambda v: isinstance(v, Solver)),
    "selector": either(one_of(*SELECTORS), "a Selector", lambda v: isinstance(v, Selector)),
    "loss": None,
    "n_features_to_select": or_none(either(COUNT, "'cv'", one_of("cv")[1])),
    "n_resamples": COUNT_OR_ZERO,
    "threshold": ("above 0.5 and at most 1", lambda v: _are_sizes([v]) and 0.5 < v <= 1),
    "selection": one_of("best", "one_se"),
    **dict.fromkeys(("always_include", "exclude"), ("a list of features by number or name", _are_columns)),
    "feature_groups": None,  # `read_groups` knows the features
    "precompute": either(FLAG, "'auto'", is_auto),
    "multi_class": one_of("auto", "ovr", "ovr_shared", "multinomial"),
    "class_weight": either(
        one_of("balanced"),
        "a dict of numbers of at least 0 or None",
        lambda v: v is None or (isinstance(v, dict) and _are_sizes([0, *v.values()])),
    ),
    "cv": or_none(("a number of folds of at least 2, a splitter, splits", _are_folds)),
    "scoring": or_none(("'aic', 'bic', 'ebic', 'loo', the name of a scorer, a function", _is_scoring)),
    "callback": or_none(("a function", callable)),
    "n_jobs": or_none(("a whole number other than 0", lambda v: _is_whole(v, -MAX_INT64) and v != 0)),
    "random_state": either(
        or_none(COUNT_OR_ZERO), "a RandomState or a Generator", lambda v: isinstance(v, SOURCES)
    ),
    "verbose": either(COUNT_OR_ZERO, "True, False or 'auto'", lambda v: is_auto(v) or FLAG[1](v)),
}
PATH_SOLVERS: Rule = "'auto' or solvers that take n_nonzero_coefs, as 'omp' does", _know_sparsity


def check_parameters(estimator: Any, **own: Rule | None) -> None:
    """Check what is not as by default; `own` has rules that differ from those of their names."""
    defaults = {part.name: part.default for part in fields(estimator)}
    given = {name: getattr(estimator, name) for name in defaults}
    new = {name: value for name, value in given.items() if value is not defaults[name]}
    check_values(own, **new)
    plain = bool, int, float, str, np.generic  # those that may equal a default without being it
    changed = {name for name, value in new.items() if not isinstance(value, plain) or value != defaults[name]}
    for names, reason in _no_effect(given, changed) if changed else ():
        idle = [name for name in names if name in changed]
        if idle:
            listed = ", ".join(f"{name}={short_repr(given[name])}" for name in idle)
            message = f"{listed} {'has' if len(idle) == 1 else 'have'} no effect {reason}"
            if idle != ["cv"]:
                raise ValueError(message)
            warn_user(message, UserWarning)  # scikit-learn's checks set it everywhere


def check_values(own: Mapping[str, Rule | None], **given: object) -> None:
    """Check values by the rules of their names."""
    for name, value in given.items():
        rule = own[name] if name in own else RULES[name]
        if rule is not None and not rule[1](value):
            raise ParameterError(f"{name} must be {rule[0]}, got {short_repr(value)}")


Given = Mapping[str, Any]  # the parameters of an estimator


def criterion_of(given: Given) -> str | None:
    """The information criterion that `scoring` names, if it does."""
    scoring = given.get("scoring")
    return scoring if isinstance(scoring, str) and scoring in CRITERIA else None


def _no_effect(given: Given, changed: set[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Parameters that have no effect beside the others, and why; `changed` are not as they are by default."""
    solver, criterion = given.get("solver", "omp"), criterion_of(given)
    solvers = list(solver) if isinstance(solver, (list, tuple)) else [solver]
    ridge = bool(changed & {"ridge", "ridges"}) and bool(np.any(given.get("ridges", given.get("ridge"))))
    for solver in solvers:
        if isinstance(solver, Solver):
            into = "with a solver object; give it to the solver, as in OMP"
            yield ("n_nonzero_coefs", "tol", "max_iter"), f"{into}(n_nonzero_coefs=5, max_iter=20)"
            yield COLUMN_RULES, f"{into}(exclude=[3])"
            if ridge:
                yield ("ridge", "ridges"), f"{into}(ridge=0.1)"
        elif solver == "auto":
            yield COLUMN_RULES, "with solver='auto'; write solver='omp'"
        else:
            for name in changed & {*COLUMN_RULES}:
                parts = fields(solver_class(solver))  # type: ignore[arg-type]
                if name not in {part.name for part in parts}:
                    yield (name,), f"with solver {solver!r}; leave it out or write solver='omp'"
            if ridge and not solver_class(solver).supports_ridge:
                able = ", ".join(solver_names(lambda kind: kind.supports_ridge))
                yield ("ridge", "ridges"), f"with solver {solver!r}; leave it out or use one of {able}"
            if "n_nonzero_coefs" in changed and not solver_class(solver).takes_sparsity:
                instead = "limit max_iter instead: an iteration adds at most one column"
                yield ("n_nonzero_coefs",), f"with solver {solver!r}; {instead}"
    if "selector" in changed and solvers == ["auto"] and not criterion:
        yield ("selector",), "with solver='auto', whose models ask no selector; write solver='omp'"
    if criterion:
        leave = "which has no folds; leave it out or use another scoring"
        yield ("cv", "selection"), f"with scoring={criterion!r}, {leave}"
        if len(solvers) > 1 or np.size(given["ridges"]) > 1:
            yield ("solver", "ridges"), f"with scoring={criterion!r} beyond the first; give one"
    if given.get("n_features_to_select", "cv") != "cv":
        yield ("cv",), "without folds; write n_features_to_select='cv' or leave it out"
    if not given.get("n_resamples", 1):
        yield ("threshold",), "without resamples; write n_resamples=50 or leave it out"
    if "refit" in given and given["solver"] == "omp":
        yield ("transform_max_iter", "refit"), "with solver='omp'; leave it out or use 'cosamp'"
