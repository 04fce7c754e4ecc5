"""What a column is, and how it becomes features.

Each kind is a small value that a model keeps and that reads a raw column: `encode` returns one number per
row and feature. `guess` (in `guessing`) makes them from a training file; a new file is read by the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow
import pyarrow.compute as pc
from scipy.sparse import csr_array

from .errors import show
from .spelling import NO, ORDERS, YES, Calendar, Texts, times, value_of, values_of

MISSING_LEVEL = "(missing)"
OTHER_LEVEL = "(other)"
PARTS = ("days", "month", "weekday", "hour")


@dataclass
class Found:
    """What was met while a column was read.

    Attributes
    ----------
    missing, strays, unseen : int
        Cells that are empty, that hold a text of another kind, or a category that is not known.
    row, cell : int, str
        The first stray or unseen one.
    first_missing : int
        The first row without a value.
    matched : int
        Cells that are what they should be.
    """

    missing: int = 0
    strays: int = 0
    unseen: int = 0
    row: int = 0
    cell: str = ""
    first_missing: int = 0
    matched: int = 0

    def gaps(self, where: np.ndarray) -> None:
        """Count missing cells."""
        self.missing = int(where.sum())
        self.first_missing = int(np.argmax(where)) + 1 if self.missing else 0

    def others(self, where: np.ndarray, raw: Any, unseen: bool = False) -> None:
        """Count strays, or categories that are not known."""
        count = int(where.sum())
        if count:
            self.row = int(np.argmax(where)) + 1
            self.cell = str(raw[self.row - 1].as_py())
        self.unseen, self.strays = (count, 0) if unseen else (0, count)


def is_text(raw: Any) -> bool:
    """Whether a raw column holds texts."""
    return bool(pyarrow.types.is_string(raw.type))


def as_texts(raw: Any) -> Texts:
    """Return a raw column of any type as texts: 1 for 1.0, true and false."""
    if is_text(raw):
        return raw if isinstance(raw, Texts) else Texts(raw)
    if pyarrow.types.is_floating(raw.type):
        return Texts(
            pyarrow.array(
                [None if v is None or v != v else spell(v) for v in raw.to_pylist()], pyarrow.string()
            )
        )
    return Texts(raw.cast(pyarrow.string()))


def spell(value: float) -> str:
    """Return the text of a number as files write it: 1 for 1.0, all digits that tell it from others."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**63 else str(value)


@dataclass(frozen=True)
class Kind:
    """A column of one kind; ``fill`` replaces what is missing, None refuses it."""

    name: str
    kind: ClassVar[str] = ""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        raise NotImplementedError

    def encode(self, raw: Any) -> tuple[Any, Found]:
        """Return features of a raw column, as an array of shape (rows, features), and what was met."""
        raise NotImplementedError

    def words(self) -> str:
        """Say what the column was taken for."""
        return self.kind

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "kind": self.kind,
            **{k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()},
        }


@dataclass(frozen=True)
class Number(Kind):
    """Numbers, perhaps with a decimal comma, thousands separators, and a sign or unit."""

    decimal: str = "."
    unit: str = ""
    fill: float | None = None
    flag: bool = False
    kind: ClassVar[str] = "number"

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, *_flag(self))

    def values(self, raw: Any) -> tuple[np.ndarray, Found]:
        """Return the numbers, NaN where there is none."""
        found = Found()
        strays = np.zeros(len(raw), dtype=bool)
        if is_text(raw):
            values, strays = as_texts(raw).numbers(self.decimal, self.unit)
        else:
            values = pc.cast(raw, pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
            strays = np.isinf(values)
            values = np.where(strays, np.nan, values)
        found.gaps(np.isnan(values) & ~strays)
        found.others(strays, raw)
        found.matched = len(values) - found.missing - found.strays
        return values, found

    def encode(self, raw: Any) -> tuple[Any, Found]:
        values, found = self.values(raw)
        return _filled(values[:, None], self.fill, self.flag), found

    def words(self) -> str:
        comma = "decimal comma" if self.decimal == "," else ""
        return ", ".join(filter(None, ("number", self.unit, comma)))


@dataclass(frozen=True)
class Date(Kind):
    """Days and times, as a few numbers: days since the first one, the month, the weekday, the hour."""

    order: str = "ymd"
    first: float = 0.0
    parts: tuple[str, ...] = PARTS[:3]
    fill: float | None = None
    flag: bool = False
    kind: ClassVar[str] = "date"

    @property
    def features(self) -> tuple[str, ...]:
        since = str(np.datetime64(int(self.first), "D"))
        names = {"days": f"days since {since}"}
        return (*(f"{self.name} ({names.get(part, part)})" for part in self.parts), *_flag(self))

    def values(self, raw: Any) -> tuple[np.ndarray, Found]:
        """Return days since 1970, NaN where there are none."""
        found = Found()
        if is_text(raw):
            days, strays = times(as_texts(raw), self.order)
        else:
            moments = pc.cast(raw, pyarrow.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
            days = moments.astype("M8[us]").astype("int64") / 86_400e6
            days[np.isnat(moments)] = np.nan
            strays = np.zeros(len(raw), dtype=bool)
        found.gaps(np.isnan(days) & ~strays)
        found.others(strays, raw)
        found.matched = len(days) - found.missing - found.strays
        return days, found

    def encode(self, raw: Any) -> tuple[Any, Found]:
        days, found = self.values(raw)
        missing = np.isnan(days)
        if self.fill is not None:
            days = np.where(missing, self.fill, days)
        table = np.column_stack([Calendar(days).part(name, self.first) for name in self.parts])
        return np.column_stack([table, missing]) if self.flag else table, found

    def words(self) -> str:
        orders = {"dmy": "day.month.year", "mdy": "month/day/year", "time": "time of day"}
        return ", ".join(filter(None, ("date" if self.order != "time" else "", orders.get(self.order, ""))))


@dataclass(frozen=True)
class YesNo(Kind):
    """Yes and no in any language; one feature, that of yes."""

    yes: str = "yes"
    own_level: bool = False
    fill: str | None = ""
    kind: ClassVar[str] = "yes/no"

    @property
    def features(self) -> tuple[str, ...]:
        return (f"{self.name}={self.yes}", *((f"{self.name}={MISSING_LEVEL}",) if self.own_level else ()))

    def encode(self, raw: Any) -> tuple[Any, Found]:
        codes, labels = as_texts(raw).coded
        lower = [label.casefold() for label in labels]
        yes = np.array([*(text in YES or text == "1" for text in lower), False])[codes]
        known = np.array([*(text in YES or text in NO or text in "10" for text in lower), True])[codes]
        found = Found(matched=int((known & (codes >= 0)).sum()))
        found.gaps(codes < 0)
        found.others(~known, raw, unseen=True)
        table = np.column_stack([yes, codes < 0]) if self.own_level else yes[:, None]
        return table.astype(float), found


@dataclass(frozen=True)
class Category(Kind):
    """Categories: one feature for each level that is shown.

    Attributes
    ----------
    levels : tuple of str
        The known ones.
    shown : tuple of str
        Those with a feature; may hold `MISSING_LEVEL` and `OTHER_LEVEL`, which rare ones are counted to.
    fill : str or None
        The level of missing cells; "" is none of them, None refuses them.
    """

    levels: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    fill: str | None = ""
    kind: ClassVar[str] = "category"

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={level}" for level in self.shown)

    def encode(self, raw: Any) -> tuple[Any, Found]:
        codes, labels = as_texts(raw).coded
        place = {level: i for i, level in enumerate(self.shown)}
        known = self._known(labels)
        where = [place.get(level, -1) if level is not None else place.get(OTHER_LEVEL, -1) for level in known]
        found = Found(matched=int(sum(np.array([*(level is not None for level in known), False])[codes])))
        found.gaps(codes < 0)
        found.others(np.array([*(level is None for level in known), False])[codes], raw, unseen=True)
        at = np.array([*where, place.get(self.fill or "", -1)])[codes]
        rows = np.flatnonzero(at >= 0)
        return csr_array((np.ones(rows.size), (rows, at[rows])), shape=(len(codes), len(self.shown))), found

    def _known(self, labels: Sequence[str]) -> list[str | None]:
        """Return the level of each label.

        Formats differ in how they write a number or a truth value (1 and 1.0, true and 1): where all levels
        spell values, and no two of them the same, a label that is not among them goes by its value.
        """
        known, values = set(self.levels), values_of(self.levels)
        by_value = {} if values is None else dict(zip(values, self.levels))
        return [label if label in known else by_value.get(value_of(label)) for label in labels]  # type: ignore[arg-type]

    def words(self) -> str:
        rare = OTHER_LEVEL in self.shown
        return f"category, {len(self.levels)} levels" + (
            f", rare ones together as {OTHER_LEVEL}" if rare else ""
        )


@dataclass(frozen=True)
class LeftOut(Kind):
    """A column that is not used, and why."""

    reason: str = "not wanted"
    kind: ClassVar[str] = "left out"

    @property
    def features(self) -> tuple[str, ...]:
        return ()

    def words(self) -> str:
        return f"left out: {self.reason}"


KINDS: dict[str, type[Kind]] = {one.kind: one for one in (Number, Date, YesNo, Category, LeftOut)}


def kind_from_dict(stored: dict[str, Any]) -> Kind:
    """Undo `to_dict`; KeyError, TypeError or ValueError if parts are missing or wrong."""
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
    made = KINDS[given.pop("kind")](**given)
    texts = [getattr(made, name, "") for name in ("name", "unit", "yes", "reason")]
    lists = [*getattr(made, "levels", ()), *getattr(made, "shown", ())]
    fill, numeric = getattr(made, "fill", None), isinstance(made, Number | Date)
    if not all(isinstance(text, str) for text in (*texts, *lists)):
        raise TypeError(f"names and levels are texts in {show(stored)}")
    if fill is not None and (
        not isinstance(fill, int | float if numeric else str) or (numeric and not np.isfinite(fill))
    ):
        raise TypeError(f"a missing value cannot be filled by {show(fill)}")
    if isinstance(made, Number) and made.decimal not in (".", ","):
        raise ValueError("a decimal sign is . or ,")
    if isinstance(made, Date) and (
        made.order not in ORDERS or not set(made.parts) <= set(PARTS) or not np.isfinite(made.first)
    ):
        raise ValueError("a date has an order, a first day, and known parts")
    return made


def _flag(column: Number | Date) -> tuple[str, ...]:
    return (f"{column.name} is missing",) if column.flag else ()


def _filled(values: np.ndarray, fill: float | None, flag: bool) -> np.ndarray:
    missing = np.isnan(values)
    filled = values if fill is None or not missing.any() else np.where(missing, fill, values)
    return np.column_stack([filled, missing]) if flag else filled
