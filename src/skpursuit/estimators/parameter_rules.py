"""Which values each parameter of an estimator may have, and which do nothing beside others.

A parameter has one meaning in every estimator, so scikit-learn's constraints of its values are found by its
name; an estimator whose parameter differs says so (`**own`). An estimator with a parameter that has no
constraint cannot be fitted at all, so that none is left unchecked.

A parameter that would do nothing beside the others is refused (`cv` is warned about): `_no_effect` lists them
all and says what to write instead. Parameters that change no result (`n_jobs`, `verbose`, a seed where
nothing is drawn) are welcome everywhere.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from skpursuit.parameters import short_repr
from skpursuit.problem.losses import as_loss
from skpursuit.selectors import SELECTORS, Selector
from skpursuit.solvers import SOLVERS, Solver, solver_class, solver_names


def is_auto(value: object) -> bool:
    """Whether a parameter is left to the estimator."""
    return isinstance(value, str) and value == "auto"


CRITERIA = ("aic", "bic", "ebic")


class Number(Interval):
    """An interval without True, False and numbers that NumPy cannot hold."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether a value is in it."""
        most = 2**63 - 1 if self.type is Integral else sys.float_info.max
        return bool(not isinstance(val, bool) and super().is_satisfied_by(val) and abs(val) <= most)


COUNT = Number(Integral, 1, None, closed="left")
COUNT_OR_ZERO = Number(Integral, 0, None, closed="left")
SIZE = Number(Real, 0, None, closed="left")


def one_of(*words: str) -> StrOptions:
    """One of these words, listed in this order."""
    return StrOptions(dict.fromkeys(words).keys())


FLAGS = (
    *("fit_intercept", "shared_support", "null_test", "refit"),
    *("copy", "copy_X", "copy_Gram", "copy_Xy", "return_path", "return_n_iter"),
)
CONSTRAINTS: dict[str, object] = {
    **dict.fromkeys(FLAGS, ("boolean",)),
    **dict.fromkeys(("n_nonzero_coefs", "max_nonzero_coefs", "n_components", "max_iter"), (COUNT, None)),
    "batch_size": [COUNT],
    "memory_limit": [COUNT, str],
    **dict.fromkeys(("tol", "ridge", "time_limit"), (SIZE, None)),
    "ridges": [one_of("auto"), SIZE, list, tuple, np.ndarray],
    "scale": [one_of("auto", "column", "none")],
    "solver": [one_of(*SOLVERS), Solver],
    "selector": [one_of(*SELECTORS), Selector],
    "loss": "no_validation",  # `as_loss` takes objects of users
    "n_features_to_select": [COUNT, one_of("cv"), None],
    "n_resamples": [COUNT_OR_ZERO],
    "threshold": [Number(Real, 0.5, 1, closed="right")],
    "selection": [one_of("best", "one_se")],
    "precompute": ["boolean", one_of("auto")],
    "multi_class": [one_of("ovr", "ovr_shared", "multinomial")],
    "class_weight": [dict, one_of("balanced"), None],
    "cv": ["cv_object"],
    "scoring": [str, callable, None],
    "callback": [callable, None],
    "n_jobs": [Number(Integral, None, -1, closed="right"), COUNT, None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["boolean", COUNT_OR_ZERO, one_of("auto")],
}


PATH_SOLVERS = [one_of("auto", *SOLVERS), Solver, list, tuple]  # those that know a number of coefficients


def check_parameters(estimator: Any, **own: object) -> None:
    """Check what is not as by default; `own` has constraints that differ from those of their names."""
    defaults = _parameters(estimator.__class__)
    given = {name: getattr(estimator, name) for name in defaults}
    new = {name: value for name, value in given.items() if value is not defaults[name]}
    check_values(type(estimator).__name__, own, **new)
    plain = bool, int, float, str, np.generic  # those that may equal a default without being it
    changed = {name for name, value in new.items() if not isinstance(value, plain) or value != defaults[name]}
    for names, reason in _no_effect(given, changed) if changed else ():
        idle = [name for name in names if name in changed]
        if idle:
            listed = ", ".join(f"{name}={short_repr(given[name])}" for name in idle)
            message = f"{listed} {'has' if len(idle) == 1 else 'have'} no effect {reason}"
            if idle != ["cv"]:
                raise ValueError(message)
            warnings.warn(message, UserWarning, stacklevel=4)  # scikit-learn's checks set it everywhere


def check_values(caller: str, own: Mapping[str, object], **given: Any) -> None:
    """Check values by the constraints of their names, and the parts of those that have parts."""
    constraints = {name: own[name] if name in own else CONSTRAINTS[name] for name in given}
    validate_parameter_constraints(constraints, given, caller)
    ridges, weights = given.get("ridges", 0.0), given.get("class_weight") or {}
    if (np.ndim(ridges) and not all(SIZE.is_satisfied_by(one) for one in ridges)) or np.size(ridges) == 0:
        raise ValueError(f"ridges must be numbers of at least 0, one or several, got {short_repr(ridges)}")
    if isinstance(weights, dict) and not all(SIZE.is_satisfied_by(one) for one in weights.values()):
        raise ValueError(f"class_weight must have numbers of at least 0, got {short_repr(weights)}")
    if "solver" in given and own.get("solver") is PATH_SOLVERS:
        able = solver_names(lambda kind: kind.takes_sparsity)
        for one in _solvers(given) or [None]:
            if not (one.takes_sparsity if isinstance(one, Solver) else one in ("auto", *able)):
                raise ValueError(
                    f"solver needs a number of coefficients, as {', '.join(able)} have; got {short_repr(one)}"
                )
    if isinstance(given.get("scoring"), str) and given["scoring"] not in CRITERIA:
        from sklearn.metrics import get_scorer

        get_scorer(given["scoring"])  # its message names the parameter
    if "loss" in given and not ("loss" in own and is_auto(given["loss"])):
        as_loss(given["loss"])


@cache
def _parameters(kind: type) -> dict[str, object]:
    """The parameters of an estimator, which scikit-learn reads from its signature, and their defaults."""
    return {name: known.default for name, known in inspect.signature(kind).parameters.items()}


Given = Mapping[str, Any]  # the parameters of an estimator


def criterion_of(given: Given) -> str | None:
    """The information criterion that `scoring` names, if it does."""
    scoring = given.get("scoring")
    return scoring if isinstance(scoring, str) and scoring in CRITERIA else None


def _solvers(given: Given) -> list[Any]:
    solver = given.get("solver", "omp")
    return list(solver) if isinstance(solver, (list, tuple)) else [solver]


def _no_effect(given: Given, changed: set[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Parameters that have no effect beside the others, and why; `changed` are not as they are by default."""
    solvers, criterion = _solvers(given), criterion_of(given)
    ridge = bool(changed & {"ridge", "ridges"}) and bool(np.any(given.get("ridges", given.get("ridge"))))
    for solver in solvers:
        if isinstance(solver, Solver):
            into = "with a solver object; give it to the solver, as in OMP"
            yield ("n_nonzero_coefs", "tol", "max_iter"), f"{into}(n_nonzero_coefs=5, max_iter=20)"
            if ridge:
                yield ("ridge", "ridges"), f"{into}(ridge=0.1)"
        elif solver != "auto":
            if ridge and not solver_class(solver).supports_ridge:
                able = ", ".join(solver_names(lambda kind: kind.supports_ridge))
                yield ("ridge", "ridges"), f"with solver {solver!r}; leave it out or use one of {able}"
            if "n_nonzero_coefs" in changed and not solver_class(solver).takes_sparsity:
                instead = "limit max_iter instead: an iteration adds at most one column"
                yield ("n_nonzero_coefs",), f"with solver {solver!r}; {instead}"
    if "selector" in changed and solvers == ["auto"] and not criterion:
        loss = as_loss(given["loss"])
        if loss.quadratic or loss.gives_probability:
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
