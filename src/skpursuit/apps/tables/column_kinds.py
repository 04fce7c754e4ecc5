"""The kinds of columns, and the features each gives.

A kind is a small msgspec Struct, stored with a model and checked when it is read. `encode` returns the
features of a column, one number per row and feature, for new files as for the training file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import numpy as np
from scipy.sparse import csr_array

from .columns import Matrix, RawColumn
from .errors import quote
from .parsing import BOOLEAN_WORDS_OR_DIGITS, LIMITS, ORDERS, calendar_part, folded, value_of

MISSING_LEVEL = "(missing)"
OTHER_LEVEL = "(other)"
PARTS = ("days", "month", "weekday", "hour", "hours")  # the last of durations


@dataclass(frozen=True)
class CellCounts:
    """What was met while a column was read."""

    missing: int = 0  # cells that are empty
    strays: int = 0  # cells that hold a text of another kind
    unseen: int = 0  # cells that hold a category that is not known
    row: int = 0  # the first stray or unseen one
    cell: str = ""  # what it holds
    first_missing: int = 0  # the first row without a value
    matched: int = 0  # cells that are what they should be

    @classmethod
    def of(cls, column: RawColumn, missing: np.ndarray, others: np.ndarray, name: str) -> CellCounts:
        """Count cells that are missing, and those that are others: "strays" or "unseen"."""
        gaps, odd = int(np.count_nonzero(missing)), int(np.count_nonzero(others))
        met: dict[str, Any] = {"missing": gaps, name: odd, "matched": len(missing) - gaps - odd}
        if gaps:
            met |= {"first_missing": int(missing.argmax()) + 1}
        if odd:
            met |= {"row": int(others.argmax()) + 1, "cell": column.cell(int(others.argmax()))}
        return cls(**met)


class ColumnKind(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """A column of one kind.

    ``fill`` of a kind that has it replaces what is missing; None refuses it. The types of fields are those
    that are accepted from a file.
    """

    name: str

    @property
    def kind(self) -> str:
        """The name of the kind, in files too."""
        return str(self.__struct_config__.tag)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return ()

    @property
    def all_levels(self) -> tuple[str, ...]:
        """Levels that a cell may have, with and without a feature; nothing of numbers."""
        return ()

    def compare(self, feature: str, used: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """Return the level that a feature is about, and those that have none of the features in use."""
        if not self.all_levels:
            return "", ()
        others = (level for level in self.all_levels if f"{self.name}={level}" not in used)
        return feature.removeprefix(f"{self.name}="), tuple(others)

    def encode(self, column: RawColumn) -> tuple[Matrix, CellCounts]:
        """Return features of a column, as an array of shape (rows, features), and what was met."""
        raise NotImplementedError

    def describe(self) -> str:
        """Say what the column was taken for."""
        return self.kind

    def describe_missing(self) -> list[str]:
        """Say what becomes of missing cells."""
        return ["a level of their own"]


class MeasuredKind(ColumnKind, frozen=True):
    """What numbers and dates share: one value per row, a fill, and a flag feature for missing ones."""

    fill: float | None = None
    flag: bool = False

    @property
    def parts_named(self) -> tuple[str, ...]:
        """Names of the features of a value."""
        return (self.name,)

    def read(self, column: RawColumn) -> tuple[np.ndarray, np.ndarray]:
        """Return the values, NaN where there is none, and where some other text is instead."""
        raise NotImplementedError

    def parts_of(self, values: np.ndarray) -> np.ndarray:
        """Return the features of values."""
        return values[:, None]

    @property
    def features(self) -> tuple[str, ...]:
        return (*self.parts_named, *([f"{self.name} is missing"] if self.flag else []))

    def describe_missing(self) -> list[str]:
        return [f"filled by {self.fill_in_words}", *(["and marked"] if self.flag else [])]

    @property
    def fill_in_words(self) -> str:
        """What missing cells are filled by, as people write it."""
        return f"{self.fill:.6g}".replace(".", getattr(self, "decimal", "."))

    def values(self, column: RawColumn) -> tuple[np.ndarray, CellCounts]:
        """Return the values, NaN where there is none, and what was met."""
        values, strays = self.read(column)
        return values, CellCounts.of(column, np.isnan(values) & ~strays, strays, "strays")

    def encode(self, column: RawColumn) -> tuple[Matrix, CellCounts]:
        values, found = self.values(column)
        missing = np.isnan(values)
        if self.fill is not None and found.missing + found.strays:
            values = np.where(missing, self.fill, values)
        parts = self.parts_of(values)
        return (np.column_stack([parts, missing]) if self.flag else parts), found


class Number(MeasuredKind, frozen=True, tag="number"):
    """Numbers, perhaps with a decimal comma, thousands separators, and a sign or unit."""

    decimal: str = "."
    unit: str = ""
    whole: bool = False  # whether all of them were
    gaps: tuple[float, ...] = ()  # numbers that stand for a missing value

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise ValueError("a decimal sign is . or ,")

    def read(self, column: RawColumn) -> tuple[np.ndarray, np.ndarray]:
        values, strays = column.numbers(self.decimal, self.unit)
        return (np.where(np.isin(values, self.gaps), np.nan, values) if self.gaps else values), strays

    def describe(self) -> str:
        comma = "decimal comma" if self.decimal == "," and not self.whole else ""
        gaps = " and ".join(f"{gap:g}" for gap in self.gaps)
        means = f"{gaps} mean{'s' * (len(self.gaps) == 1)} missing" if gaps else ""
        unit = f"some are limits ({self.unit})" if self.unit in LIMITS else self.unit
        return ", ".join(filter(None, ("number", unit, comma, means)))


class Ordinal(MeasuredKind, frozen=True, tag="ordinal"):
    """Words with an order, as their place in it: 1, 2, ..."""

    levels: tuple[
        tuple[str, ...], ...
    ] = ()  # from the least to the most; several spellings may share a place

    def read(self, column: RawColumn) -> tuple[np.ndarray, np.ndarray]:
        codes, labels = column.factorized
        place = {folded(word): float(i) for i, words in enumerate(self.levels, 1) for word in words}
        values = np.array([*(place.get(folded(label), np.nan) for label in labels), np.nan])[codes]
        return values, np.isnan(values) & (codes >= 0)

    def describe(self) -> str:
        low, high = quote(self.levels[0][0]), quote(self.levels[-1][0])
        return f"ordered, {len(self.levels)} levels from {low} to {high}"

    @property
    def fill_in_words(self) -> str:
        low, high = (
            quote(self.levels[to_whole(self.fill or 1) - 1][0]) for to_whole in (math.floor, math.ceil)
        )
        return low if low == high else f"between {low} and {high}"


class Date(MeasuredKind, frozen=True, tag="date"):
    """Days and times, as a few numbers: days since the first one, the month, the weekday, the hour."""

    order: str = "ymd"
    first: float = 0.0
    parts: tuple[str, ...] = PARTS[:3]

    def __post_init__(self) -> None:
        if self.order not in ORDERS or not set(self.parts) <= set(PARTS):
            raise ValueError("a date has a known order and known parts")

    @property
    def parts_named(self) -> tuple[str, ...]:
        since = {"days": f"days since {np.datetime64(int(self.first), 'D')}"}
        return tuple(f"{self.name} ({since.get(part, part)})" for part in self.parts)

    def read(self, column: RawColumn) -> tuple[np.ndarray, np.ndarray]:
        return column.days(self.order)

    def parts_of(self, values: np.ndarray) -> np.ndarray:
        return np.column_stack([calendar_part(part, values, self.first) for part in self.parts])

    def describe(self) -> str:
        orders = {"dmy": "date, day.month.year", "mdy": "date, month/day/year", "time": "time of day"}
        return orders.get(self.order, "duration" if self.order == "duration" else "date")

    @property
    def fill_in_words(self) -> str:
        return "the median date"


class Category(ColumnKind, frozen=True, tag="category"):
    """Categories: one feature for each level that is shown."""

    levels: tuple[str, ...] = ()  # the known ones
    #: those with a feature; may hold `MISSING_LEVEL` and `OTHER_LEVEL`, which rare ones are counted to
    shown: tuple[str, ...] = ()
    fill: str | None = ""  # the level of missing cells; "" is none of them, None refuses them
    fold: bool = False  # whether case and blanks do not count

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={level}" for level in self.shown)

    @property
    def all_levels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.levels, *self.shown)))

    def encode(self, column: RawColumn) -> tuple[Matrix, CellCounts]:
        codes, labels = column.factorized
        place = {level: i for i, level in enumerate(self.shown)}
        known = self.levels_of(labels)
        where = [place.get(OTHER_LEVEL if level is None else level, -1) for level in known]
        at = np.array([*where, place.get(self.fill or "", -1)])[codes]
        rows = np.flatnonzero(at >= 0)
        table = csr_array((np.ones(rows.size), (rows, at[rows])), shape=(len(codes), len(self.shown)))
        unseen = np.array([*(level is None for level in known), False])[codes]
        return table, CellCounts.of(column, codes < 0, unseen, "unseen")

    def levels_of(self, labels: Sequence[str]) -> list[str | None]:
        """Return the level of each label, None if it is not known.

        Formats differ in how they write a number or a truth value (1 and 1.0, true and 1): where all levels
        spell values, and no two of them the same, a label that is not among them goes by its value.
        """
        if self.fold:
            own = {folded(level): level for level in self.levels}
            return [own.get(folded(label)) for label in labels]
        by_value: dict[object, str] = dict(zip(map(value_of, self.levels), self.levels))
        if None in by_value or len(by_value) < len(self.levels):
            by_value = {}
        known = set(self.levels)
        return [label if label in known else by_value.get(value_of(label)) for label in labels]

    def describe(self) -> str:
        rare = f", rare ones together as {OTHER_LEVEL}" if OTHER_LEVEL in self.shown else ""
        return f"category, {len(self.levels)} levels{rare}{', in any case' if self.fold else ''}"


class YesNo(ColumnKind, frozen=True, tag="yes/no"):
    """Yes and no in any language, a category of two levels; one feature, that of yes."""

    yes: str = "yes"
    no: str = "no"
    own_level: bool = False  # of missing cells
    fill: str | None = ""

    @property
    def features(self) -> tuple[str, ...]:
        return (f"{self.name}={self.yes}", *([f"{self.name}={MISSING_LEVEL}"] if self.own_level else []))

    @property
    def all_levels(self) -> tuple[str, ...]:
        return (self.no, self.yes, *([MISSING_LEVEL] if self.own_level else []))

    def encode(self, column: RawColumn) -> tuple[Matrix, CellCounts]:
        codes, labels = column.factorized
        truths = [BOOLEAN_WORDS_OR_DIGITS.get(label.casefold()) for label in labels]
        yes = np.array([*(truth is True for truth in truths), False])[codes]
        unseen = np.array([*(truth is None for truth in truths), False])[codes]
        table = np.column_stack([yes, codes < 0]) if self.own_level else yes[:, None]
        return table.astype(float), CellCounts.of(column, codes < 0, unseen, "unseen")


class DroppedColumn(ColumnKind, frozen=True, tag="left out"):
    """A column that is not used, and why."""

    reason: str = "not wanted"

    def describe(self) -> str:
        return f"left out: {self.reason}"


AnyKind: TypeAlias = Number | Ordinal | Date | YesNo | Category | DroppedColumn
