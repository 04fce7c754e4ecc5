"""Checks of parameters: one function for each kind of value, for every class and function of the library.

A check takes the name of a parameter and its value. It raises TypeError for a value of the wrong kind and
ValueError for one that is out of range; the message names the parameter, says what it must be and shows what
was given. Solvers, selectors, stop rules, sets and losses check what they are made with; estimators check in
`fit`, as scikit-learn's do (`estimators/parameter_rules.py` says which parameter is of which kind). What is
doubtful is warned about at the user's line (`warn_user`).
"""

import inspect
import os
import warnings
from collections.abc import Collection, Iterable, Sized
from numbers import Integral, Real

import numpy as np

RandomSource = int | np.random.Generator | np.random.RandomState | None  # gives a seed
MAX_INT64 = 2**63 - 1
PASSED = ("skpursuit", "sklearn", "joblib", "contextlib")  # packages that a warning is not about
MAX_REPR_LENGTH = 80  # characters of a value in a message


def check_count(name: str, value: object, optional: bool = True, least: int = 1) -> None:
    """Refuse anything but a whole number of at least `least` that NumPy can hold (or None)."""
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number{_or_none(optional)}, got {short_repr(value)}")
    if int(value) < least:
        raise ValueError(f"{name} must be at least {least}, got {short_repr(value)}")
    if int(value) > MAX_INT64:
        raise ValueError(f"{name} must be at most {MAX_INT64}, got {short_repr(value)}")


def check_number(name: str, value: object, interval: str = "[0, inf)", optional: bool = False) -> None:
    """Refuse anything but a number of an interval such as "(0, 1]" (or None)."""
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number{_or_none(optional)}, got {short_repr(value)}")
    number = _as_float(value)
    low, high = (float(end) for end in interval[1:-1].split(","))
    above = low <= number if interval[0] == "[" else low < number
    below = number <= high if interval[-1] == "]" else number < high
    if not (above and below):
        raise ValueError(f"{name} must be {_in_words(interval)}, got {short_repr(value)}")


def check_nonnegative(name: str, value: object, optional: bool = True) -> None:
    """Refuse anything but a finite number of at least 0 (or None)."""
    check_number(name, value, "[0, inf)", optional)


def check_flag(name: str, value: object) -> None:
    """Refuse anything but True and False: text such as "no" would count as True."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {short_repr(value)}")


def check_choice(name: str, value: object, known: Iterable[str]) -> None:
    """Refuse anything but one of the known names."""
    if not isinstance(value, str) or value not in known:
        kind = ValueError if isinstance(value, str) else TypeError
        raise kind(f"{name} must be one of {', '.join(known)}, got {short_repr(value)}")


def check_columns(name: str, value: object) -> None:
    """Refuse anything but a collection of distinct numbers of columns, or their names."""
    if isinstance(value, (list, tuple, np.ndarray)):
        value = [j for j in value if not isinstance(j, str)]
    check_indices(name, value)


def check_groups(name: str, value: object) -> None:
    """Refuse anything but a collection, of labels or of lists of columns, or None."""
    wrong = isinstance(value, (str, bytes, dict, set)) or getattr(value, "ndim", 1) == 0
    if value is not None and (wrong or not isinstance(value, Sized)):
        raise TypeError(f"{name} must be a label per column or lists of columns, got {short_repr(value)}")


def check_indices(name: str, value: object) -> None:
    """Refuse anything but a collection of distinct whole numbers of at least 0."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Collection) or getattr(value, "ndim", 1) != 1:
        raise TypeError(f"{name} must be a list of column numbers, got {short_repr(value)}")
    if any(isinstance(j, (bool, np.bool_)) or not isinstance(j, Integral) for j in value):
        raise TypeError(f"{name} must hold whole numbers, got {short_repr(value)}")
    if any(j < 0 for j in value) or len({int(j) for j in value}) < len(value):
        raise ValueError(f"{name} must hold distinct column numbers of at least 0, got {short_repr(value)}")


def seed_of(random_state: RandomSource) -> int:
    """One whole number from None, a whole number of at least 0, a RandomState or a Generator."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    check_count("random_state", random_state, least=0)
    return int(random_state)


def check_methods(name: str, value: object, methods: Iterable[str], example: str) -> None:
    """Refuse an object that lacks one of these methods or attributes, and a class in place of an object."""
    if isinstance(value, type):
        raise TypeError(f"{name} must be an object such as {example}, got the class {value.__name__}")
    missing = [method for method in methods if not hasattr(value, method)]
    if missing:
        raise TypeError(
            f"{name} must be an object such as {example}, "
            f"got {short_repr(value)}, without {', '.join(missing)}"
        )


def check_path(name: str, value: object) -> None:
    """Refuse what cannot be the path of a file."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise TypeError(f"{name} must be the path of a file, got {short_repr(value)}")
    if "\0" in os.fspath(value):
        raise ValueError(f"{name} holds a NUL character, which no file name has, got {short_repr(value)}")


def check_unmasked(**given: object) -> None:
    """Refuse masked entries in the values of these names: NumPy would take what lies under the mask."""
    for name, value in given.items():
        if np.ma.is_masked(value):
            raise TypeError(f"{name} is a masked array with missing entries; fill them: {name}.filled(...)")


def as_array(name: str, value: object, is_real: bool = True) -> np.ndarray:
    """The value as an array without gaps: no masked entries, rows of one length; and real if it `is_real`."""
    check_unmasked(**{name: value})
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} is not a table of numbers: {error}; give rows of one length") from None
    if array.dtype.kind == "c" and is_real:
        raise TypeError(f"{name} is complex; only minimize and orthogonal_mp take complex X and y")
    return array


def short_repr(value: object) -> str:
    """The value in one short line of a message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= MAX_REPR_LENGTH else f"{text[: MAX_REPR_LENGTH - 4]} ..."


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside this library and what it is called through."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PASSED:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _as_float(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond the range of floats
        return -np.inf if value < 0 else np.inf


def _or_none(optional: bool) -> str:
    return " or None" if optional else ""


def _in_words(interval: str) -> str:
    low, high = interval[1:-1].split(", ")
    least = f"{'at least' if interval[0] == '[' else 'above'} {low}"
    if high == "inf":
        return least if interval[-1] == "]" else f"{least} and finite"
    return f"{least} and {'at most' if interval[-1] == ']' else 'below'} {high}"
