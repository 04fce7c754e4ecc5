"""The public names, their parameters, defaults, methods and fitted attributes are those of `public_face.txt`.

After an intended change `python -m tests.test_public_face --update` writes the file again; its diff shows
what users will notice, and the changelog says it.
"""

import difflib
import inspect
import sys
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

import skpursuit

SNAPSHOT = Path(__file__).with_name("public_face.txt")


def public_face():
    """All of it as lines: names start at the margin, what belongs to them is indented."""
    lines = []
    for name in sorted(skpursuit.__all__):
        lines += [*described(name, getattr(skpursuit, name)), ""]
    for name, value in fitted().items():
        lines += [f"{name} has", *attributes(value), ""]
    return lines


def described(name, value):
    """A public name with its parameters and methods."""
    if isinstance(value, str):
        return [f"{name}: text"]
    if inspect.ismodule(value):
        inside = {key: part for key, part in vars(value).items() if belongs(part, value.__name__)}
        parts = [described(f"{name}.{key}", part) for key, part in sorted(inside.items())]
        return [f"module {name}", *(f"    {line}" for part in parts for line in part)]
    if isinstance(value, type) and issubclass(value, Enum):
        return [f"enumeration {name}", *(f"    {member.name}" for member in value), *members(value)]
    if isinstance(value, type):
        # Values are set up and handed over; what the package then calls on them is its own affair.
        is_value = is_dataclass(value) and value.__dataclass_params__.eq
        return [f"class {name}", *parameters(value), *([] if is_value else members(value))]
    return [f"function {name}", *parameters(value)]


def belongs(part, home):
    """Whether a public function or class is defined in this module or below it."""
    defined = str(getattr(part, "__module__", ""))
    named = not getattr(part, "__name__", "_").startswith("_")
    return named and callable(part) and (defined == home or defined.startswith(f"{home}."))


def parameters(function):
    """One parameter a line, with its default and, where it is not the usual one, its kind."""
    kinds = {"KEYWORD_ONLY": " (by keyword)", "POSITIONAL_ONLY": " (by position)"}
    made = {part.name: part.default_factory() for part in factories(function)}
    lines = []
    for part in inspect.signature(function).parameters.values():
        star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(part.kind.name, "")
        default = "" if part.default is part.empty else f" = {made.get(part.name, part.default)!r}"
        lines.append(f"    {star}{part.name}{default}{kinds.get(part.kind.name, '')}")
    return lines


def factories(kind):
    """Fields of a dataclass whose default is made anew each time."""
    return (
        [part for part in fields(kind) if part.default_factory is not MISSING] if is_dataclass(kind) else []
    )


def members(kind):
    """Methods with their parameters, and properties, that classes of the package define."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("skpursuit")]
    names = {name for base in ours for name in vars(base) if not name.startswith("_")}
    lines = []
    for name in sorted(names):
        value = inspect.getattr_static(kind, name)
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if inspect.isfunction(value):
            given = [line.strip().removesuffix(" (by keyword)") for line in parameters(value)[1:]]
            lines.append(f"    .{name}({', '.join(given)})")
        elif isinstance(value, property) or hasattr(value, "fn"):
            lines.append(f"    .{name}")
    return lines


def fitted():
    """Every estimator after a fit to a small problem, and a result of `minimize` with one of its records."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 12))
    y = X[:, 3] - 2 * X[:, 7] + 0.1 * rng.standard_normal(40)
    Y, iris = np.column_stack([y, -y]), load_iris(return_X_y=True)
    two = iris[0], iris[1] == 1
    k = {"n_nonzero_coefs": 2}
    models = {
        "OrthogonalMatchingPursuit": skpursuit.OrthogonalMatchingPursuit(**k).fit(X, y),
        "OrthogonalMatchingPursuit, 2 targets": skpursuit.OrthogonalMatchingPursuit(**k).fit(X, Y),
        "OrthogonalMatchingPursuitCV": skpursuit.OrthogonalMatchingPursuitCV(max_iter=4).fit(X, y),
        "PursuitRegressor": skpursuit.PursuitRegressor(**k).fit(X, y),
        "PursuitRegressor, 2 targets": skpursuit.PursuitRegressor(shared_support=False, **k).fit(X, Y),
        "PursuitRegressor, 2 targets that share": skpursuit.PursuitRegressor(**k).fit(X, Y),
        "PursuitRegressorCV": skpursuit.PursuitRegressorCV(max_nonzero_coefs=4).fit(X, y),
        "PursuitRegressorCV, bic": skpursuit.PursuitRegressorCV(solver="omp", scoring="bic").fit(X, y),
        "PursuitClassifier, 2 classes": skpursuit.PursuitClassifier(**k).fit(*two),
        "PursuitClassifier, 3 classes": skpursuit.PursuitClassifier(**k).fit(*iris),
        "PursuitClassifier, multinomial": skpursuit.PursuitClassifier(multi_class="multinomial", **k).fit(
            *iris
        ),
        "PursuitClassifierCV": skpursuit.PursuitClassifierCV(max_nonzero_coefs=2).fit(*two),
        "PursuitCoder": skpursuit.PursuitCoder(X, 2).fit(),
        "DictionaryLearner": skpursuit.DictionaryLearner(8, 2, max_iter=2, random_state=0).fit(X),
    }
    result = skpursuit.minimize(X, y, skpursuit.OMP(2))
    return models | {"Result": result, "Record": result.history[0]}


def attributes(value):
    """The names that a fit leaves, or the fields of a result, and what they hold."""
    names = vars(value) if not hasattr(value, "get_params") else [n for n in dir(value) if n.endswith("_")]
    shown = [name for name in names if not name.startswith("_") and hasattr(value, name)]
    return [f"    {name}: {held(getattr(value, name))}" for name in shown]


def held(value):
    """The type of a value; of an array its numbers and shape, of a list its first item."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array {value.shape}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {held(value[0]) if value else 'nothing'}"
    return type(value).__name__


def test_the_public_face_is_the_one_on_record():
    recorded = SNAPSHOT.read_text().splitlines()
    changes = list(difflib.unified_diff(recorded, public_face(), "recorded", "now", lineterm="", n=3))
    assert not changes, "\n".join(
        [*changes, "", "If this is intended: python -m tests.test_public_face --update"]
    )


if __name__ == "__main__":
    if "--update" in sys.argv:
        SNAPSHOT.write_text("\n".join(public_face()) + "\n")
    else:
        sys.stdout.write("\n".join(public_face()) + "\n")
