"""Results as a report needs them: read and checked once, so that whatever draws them can rely on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import audio, text, toy
from .methods import LABELS, settings_of
from .settings import LARGEST, StoreError, lost_settings, read_settings
from .store import Row, Value, read_rows

TEXTS = ("collection", "method", "status")


@dataclass(frozen=True)
class Results:
    """The rows of one study, its settings, and the machines it was run on."""

    rows: list[Row]
    settings: dict[str, Any]
    about: list[dict[str, Any]]


@dataclass(frozen=True)
class Kind:
    """What a value must be, for a program and in words."""

    fits: Callable[[Value], bool]
    words: str

    def or_nothing(self) -> Kind:
        """The same, or an empty field."""
        return Kind(lambda value: value is None or self.fits(value), f"{self.words}, or empty")


def _is_number(value: Value) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 <= value < LARGEST  # type: ignore[operator]


def _is_whole(value: Value) -> bool:
    return _is_number(value) and isinstance(value, int)


NUMBER = Kind(_is_number, "a number of at least 0")
WHOLE = Kind(_is_whole, "a whole number of at least 0")
COUNT = Kind(lambda value: _is_whole(value) and value != 0, "a whole number of at least 1")
SHARE = Kind(lambda value: _is_number(value) and value <= 1, "a number from 0 to 1")  # type: ignore[operator]
METHOD = Kind(lambda value: value in LABELS, "a method of this version")
NAME = Kind(bool, "a name")


@dataclass(frozen=True)
class Layout:
    """How the results of a study are laid out.

    Attributes
    ----------
    columns : tuple of str
        All columns, in their order.
    kinds : dict
        What the values of the columns are that a report looks at.
    settings : dict
        The settings that a report looks at, and their types.
    needed : callable
        Columns that may not be empty for a given method, beside those of `kinds` that never may.
    """

    columns: tuple[str, ...]
    kinds: dict[str, Kind]
    settings: dict[str, type] = field(default_factory=dict)
    needed: Callable[[str], tuple[str, ...]] = lambda method: ()


def _kinds(given: dict[str, Kind], numbers: Iterable[str]) -> dict[str, Kind]:
    return {"method": METHOD, "seconds": NUMBER, **given, **dict.fromkeys(numbers, NUMBER.or_nothing())}


_TOY = Layout(
    toy.COLUMNS,
    _kinds(
        {"n": COUNT, "d": COUNT, "k": COUNT, "trial": WHOLE},
        ("stability", "budget", "f_measure", "same_atoms", "share_read", "iterations"),
    ),
    needed=settings_of,
)
_AUDIO = Layout(
    audio.COLUMNS,
    _kinds(
        {"first": WHOLE, "count": COUNT, "atoms": COUNT, "error": NUMBER, "error_square": NUMBER},
        ("share_read", "same_atoms"),
    ),
    {"recording": str},
)
_TEXT = Layout(
    text.COLUMNS,
    _kinds(
        {"collection": NAME, "split": WHOLE, "n_train": COUNT, "d": COUNT, "k": COUNT, "accuracy": SHARE},
        ("accuracy_all", "share_read"),
    ),
    {"generated": bool},
)
LAYOUTS = {
    **dict.fromkeys(("omp", "cosamp", "fw", "budget", "scaling"), _TOY),
    "audio": _AUDIO,
    "text": _TEXT,
}


def read_results(folder: Path, name: str) -> Results | None:
    """Read and check the results of a study; None if there are none yet.

    Raises
    ------
    StoreError
        If they are damaged, not those of the study, or if nothing says what they are of.
    """
    path, layout = folder / f"{name}.csv", LAYOUTS[name]
    if not path.is_file() or not (rows := _read(path, layout)):
        return None
    settings = read_settings(path)
    if settings is None:
        raise lost_settings(path)
    for key, kind in layout.settings.items():
        if not isinstance(settings.values.get(key), kind):
            raise StoreError(
                path, f"its settings do not say {key!r}", "use another folder, or delete the file"
            )
    return Results(rows, settings.values, settings.about)


def _read(path: Path, layout: Layout) -> list[Row]:
    header = ",".join(["cell", "part", *layout.columns]).encode() + b"\n"
    try:
        with open(path, "rb") as file:
            begins = file.read(len(header))
        if header.startswith(begins) and begins != header:  # killed before its first row
            return []
        if begins == header:
            rows = read_rows(path, TEXTS)
            _check(path, rows, layout)
            return rows
    except OSError as error:
        raise StoreError(path, f"it cannot be read ({error.strerror})", "name another folder") from None
    problem = "these are not results of `skpursuit reproduce`"
    raise StoreError(path, problem, "delete the file, or name another folder")


def _check(path: Path, rows: list[Row], layout: Layout) -> None:
    """Refuse the first value that is not of its column's kind."""
    for line, row in enumerate(rows, start=2):
        for name, kind in layout.kinds.items():
            if not kind.fits(row[name]):
                raise _wrong(path, line, name, row[name], kind.words)
        for name in layout.needed(str(row["method"])):
            if row[name] is None:
                raise _wrong(path, line, name, None, "a number")


def _wrong(path: Path, line: int, name: str, value: Value, words: str) -> StoreError:
    found = "empty" if value in (None, "") else repr(value)[:40]
    remedy = "delete the lines of that cell and run `skpursuit reproduce` again"
    return StoreError(path, f"line {line}: {name} is {found}, not {words}", remedy)
