"""Results as a report needs them: checked once, so that whatever draws them can rely on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from . import audio, text, toy
from .methods import settings_of
from .store import LARGEST, StoreError, Study, Value, read_study

NUMBER, WHOLE, COUNT = (
    "a number of at least 0",
    "a whole number of at least 0",
    "a whole number of at least 1",
)
SHARE, NAME = "a number from 0 to 1", "a name"


@dataclass(frozen=True)
class Layout:
    """How the results of a study are laid out: its columns, what they hold, the settings that are shown.

    A column in `maybe` may be empty, unless the method needs it.
    """

    columns: tuple[str, ...]
    kinds: dict[str, str]
    maybe: frozenset[str]
    settings: dict[str, type] = field(default_factory=dict)


def _layout(
    columns: tuple[str, ...], kinds: dict[str, str], maybe: Iterable[str], **settings: type
) -> Layout:
    extra = tuple(maybe)
    every = {"method": NAME, "seconds": NUMBER, **kinds, **dict.fromkeys(extra, NUMBER)}
    return Layout(columns, every, frozenset(extra), settings)


_TOY = _layout(
    toy.COLUMNS,
    {"n": COUNT, "d": COUNT, "k": COUNT, "trial": WHOLE},
    ("stability", "budget", "f_measure", "same_atoms", "share_read", "iterations"),
)
LAYOUTS = {
    **dict.fromkeys(("omp", "cosamp", "fw", "budget", "scaling"), _TOY),
    "audio": _layout(
        audio.COLUMNS,
        {"first": WHOLE, "count": COUNT, "atoms": COUNT, "error": NUMBER, "error_square": NUMBER},
        ("share_read", "same_atoms"),
        recording=str,
    ),
    "text": _layout(
        text.COLUMNS,
        {"collection": NAME, "split": WHOLE, "n_train": COUNT, "d": COUNT, "k": COUNT, "accuracy": SHARE},
        ("accuracy_all", "share_read"),
        generated=bool,
    ),
}


def read_results(folder: Path, name: str) -> Study | None:
    """Read and check the results of a study; None if there are none yet.

    Raises
    ------
    StoreError
        If they are damaged, not those of the study, or if nothing says what they are of.
    """
    layout, study = LAYOUTS[name], read_study(folder, name)
    if study is None or not study.cells:
        return None
    path = folder / f"{name}.jsonl"
    if study.columns != layout.columns:
        raise StoreError(
            path, "these are not results of this study", "delete the file, or name another folder"
        )
    for key, wanted in layout.settings.items():
        if not isinstance(study.settings.get(key), wanted):
            problem = f"its settings do not say {key!r}"
            raise StoreError(path, problem, "use another folder, or delete the file")
    for number, row in enumerate(study.rows, start=1):
        needed = settings_of(str(row["method"])) if layout is _TOY else ()
        for column, kind in layout.kinds.items():
            empty = row[column] is None and column in layout.maybe and column not in needed
            if not empty and not _fits(row[column], kind):
                found = "empty" if row[column] in (None, "") else repr(row[column])[:40]
                remedy = "delete the line of that cell and run `skpursuit reproduce` again"
                raise StoreError(path, f"row {number}: {column} is {found}, not {kind}", remedy)
    return study


def _fits(value: Value, kind: str) -> bool:
    if kind == NAME:
        return isinstance(value, str) and bool(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < LARGEST:
        return False
    if kind in (WHOLE, COUNT):
        return isinstance(value, int) and value >= (kind == COUNT)
    return kind != SHARE or value <= 1
