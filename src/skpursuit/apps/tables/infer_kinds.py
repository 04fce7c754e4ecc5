"""Infer what each column holds, from its values, its name and the rest of the file.

First the decimal sign and the order of day and month are inferred for the whole file (`_infer_locale`). Then
each column is tried as dates, as yes/no and as numbers; otherwise it is a category or is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow
from msgspec.structs import replace

from . import parsing
from .column_kinds import (
    MISSING_LEVEL,
    OTHER_LEVEL,
    PARTS,
    AnyKind,
    Category,
    Date,
    DroppedColumn,
    Number,
    Ordinal,
    YesNo,
)
from .columns import RawColumn
from .errors import TableProblem, quote

MIN_PARSED_SHARE = 0.95  # share of cells that must be of a kind; the others count as missing
FEW_STRAYS = 3  # different texts in a column of numbers that are taken for marks of missing values
MANY_MISSING = 0.05  # share of rows from which that a value is missing may tell something
SMALL_CATEGORY = 20  # levels that are all kept
MAX_LEVELS = 50
MIN_LEVEL_SHARE = 0.005  # share of rows that a level of a larger category must have, and at least
MIN_LEVEL_ROWS = 4  # rows
MIN_MISSING_CODES = 3  # rows with a number that stands for a missing value, which is this many times
MISSING_CODE_RATIO = 5  # as large as any other number
MIN_UNIQUE_SHARE = 0.8  # share of different texts from which a column names its rows
MIN_PROSE_LENGTH = 40  # characters on average, from which texts are prose
MAX_DATE_TEXTS = 500  # different texts that are tried as dates, if one has fewer than
LONG_NUMBER = 1e7  # from which whole numbers of as many digits, all different, are names
MAX_DATE_LENGTH = 50  # characters
MAX_DECIMAL_COLUMNS = 200  # columns that decide about the decimal sign, by
MAX_DECIMAL_ROWS = 4000

_IDENTIFIER, _NAMED_ID, _CODE, _DATE_NAME = parsing.NAMES


@dataclass(frozen=True)
class EncodingOptions:
    """Choices made when columns are turned into features."""

    target: str | None = None  # the target column; None takes the ``y`` stored as such
    kinds: Mapping[str, str] = field(default_factory=dict)  # what a user says of columns
    impute: bool = True  # whether missing values are filled; else a column with any is a problem
    decimal: str | None = None  # the decimal sign of the file; None finds it out


def infer_kinds(raw: Mapping[str, RawColumn], options: EncodingOptions) -> dict[str, AnyKind]:
    """Return the kind of every column."""
    shares = {name: _shares(name, column) for name, column in raw.items()}
    decimal, day_first = _infer_locale(raw, shares, options)
    kinds = {}
    for name, column in raw.items():
        guess = ColumnInference(name, column, shares[name], decimal, day_first, options)
        kinds[name] = guess.target() if name == options.target else guess.kind()
    return kinds


def _shares(name: str, column: RawColumn) -> dict[str, float]:
    """Return the share of a column that each order of day, month and year can read."""
    none = dict.fromkeys(parsing.ORDERS, 0.0)
    if not column.is_text or (column.plain_numbers is not None and not _DATE_NAME.search(name)):
        return none
    if not any(re.search(r"\d", text) and len(text) < MAX_DATE_LENGTH for text in column.head(50) or "0"):
        return none
    labels = column.factorized[1]
    some = labels[:: max(1, len(labels) // MAX_DATE_TEXTS)]
    days = {order: [parsing.parse_days(label, order) for label in some] for order in parsing.ORDERS}
    return {order: float(np.mean(np.isfinite(found))) for order, found in days.items()} if some else none


def _infer_locale(
    raw: Mapping[str, RawColumn], shares: Mapping[str, dict[str, float]], options: EncodingOptions
) -> tuple[str, bool]:
    """Return the decimal sign of a file, and whether its dates begin with the day.

    Columns that can be read with one sign only vote. Where they do not tell, dates that begin with the day
    are taken for a sign of the decimal comma, and the other way round.
    """
    guessed = {name: share for name, share in shares.items() if name not in options.kinds}
    european = any(
        share["dmy"] >= MIN_PARSED_SHARE > max(share["mdy"], share["ymd"]) for share in guessed.values()
    )
    voters = [
        column
        for name, column in raw.items()
        if column.is_text and (name in options.kinds or max(shares[name].values()) < 0.5)
    ]
    count = {".": 0, ",": 0}
    for column in voters[:: 1 + len(voters) // MAX_DECIMAL_COLUMNS]:
        if column.plain_numbers is None or (column.plain_numbers % 1).any():
            for sign in parsing.decimal_signs(RawColumn(column.values.slice(0, MAX_DECIMAL_ROWS)).texts):
                count[sign] += 1
    comma = count[","] > count["."] or (count[","] == count["."] and european)
    decimal = options.decimal or ("," if comma else ".")
    return decimal, european or decimal == ","


@dataclass
class ColumnInference:
    """One column and all that helps to say what it is."""

    name: str
    column: RawColumn
    shares: dict[str, float]
    decimal: str
    day_first: bool
    options: EncodingOptions

    def kind(self) -> AnyKind:
        said = self.options.kinds.get(self.name)
        if said == "drop":
            return DroppedColumn(self.name, "as asked")
        if said is not None:
            return self._said(said)
        if not (self.column.is_text and self.column.plain_numbers is not None) and self.column.n_known == 0:
            return DroppedColumn(self.name, "empty")
        if not self.column.is_text:
            return self._typed()
        return self._date() or self._yes_no() or self._number() or self._ordered() or self._category()

    def target(self) -> AnyKind:
        """What a target is: a number, yes or no, or classes; never left out."""
        found = self.kind()
        if isinstance(found, DroppedColumn | Date):
            number = (self._number() if self.column.is_text else None) or Number(self.name)
            readable = isinstance(number, Number) and number.values(self.column)[1].matched
            found = number if readable else found
        return replace(found, fill=None, flag=False) if isinstance(found, Number | Ordinal) else found

    def _said(self, said: str) -> AnyKind:
        if said == "number":
            unit = next((unit for unit in self.column.units(self.decimal) if unit), "")
            return self._measured(Number(self.name, decimal=self.decimal, unit=unit), forced=True)
        if said == "category":
            return self._category(forced=True)
        if said == "fold":
            return self._category(forced=True, fold=True)
        if said.startswith("ordinal"):
            return self._ordered(said.partition(":")[2]) or self._category()
        if said == "yesno":
            return self._yes_no(forced=True) or YesNo(self.name)
        order = self._order(_shares(f"{self.name} date", self.column)) if said == "date" else said
        return self._measured(Date(self.name, order=order), forced=True)

    def _typed(self) -> AnyKind:
        if pyarrow.types.is_timestamp(self.column.type):
            return self._measured(Date(self.name), forced=True)
        if pyarrow.types.is_boolean(self.column.type):
            return self._yes_no(forced=True) or YesNo(self.name)
        if pyarrow.types.is_integer(self.column.type) and self._has_long_numbers():
            return self._category()
        return self._measured(Number(self.name, unit=self.column.unit))

    # -- numbers

    def _number(self) -> AnyKind | None:
        column = self.column
        if self._is_code():
            return None
        if column.plain_numbers is not None and (self.decimal == "." or not (column.plain_numbers % 1).any()):
            return self._measured(Number(self.name, decimal=self.decimal, unit=column.unit))
        other = "." if self.decimal == "," else ","  # only if nothing else can be read
        for decimal in (self.decimal, other):
            strays = {unit: column.numbers(decimal, unit)[1] for unit in ("", *column.units(decimal)[:2])}
            unit = min(strays, key=lambda unit: strays[unit].sum())
            if self._nearly(strays[unit]):
                return self._measured(Number(self.name, decimal=decimal, unit=unit or column.unit))
        return None

    def _nearly(self, strays: np.ndarray) -> bool:
        """Whether a column is numbers but for slips of the pen, or for a few marks that mean missing."""
        known = self.column.n_known
        good = known - int(strays.sum())
        if good >= MIN_PARSED_SHARE * known:
            return good > 0
        codes, labels = self.column.factorized
        odd = len(np.unique(codes[strays]))
        return odd <= FEW_STRAYS and good >= 0.5 * known and len(labels) - odd > SMALL_CATEGORY

    def _is_code(self) -> bool:
        """Whether digits are names: postal codes, or anything of a fixed length that may begin with 0."""
        if _CODE.search(self.name) or self._has_long_numbers():
            return True
        given = filter(None, self.column.values.slice(0, 2000).to_pylist())
        if not re.search(r"^\s*0\w", "\n".join(given), re.M):
            return False
        first = self.column.head(2000)
        same = len({len(text) for text in first}) == 1 and all(text.isalnum() for text in first)
        return same and len(first[0]) > 1 and any(text[0] == "0" for text in first)

    def _has_long_numbers(self) -> bool:
        """Whether whole numbers have so many digits that one of float64 would lose some: they are names."""
        numbers = self.column.plain_numbers if self.column.is_text else self.column.numbers()[0]
        large = numbers is not None and bool((np.abs(numbers) >= 2**53).any())
        return large and any(len(text) > 15 and text.isdigit() for text in self.column.head(2000))

    def _measured(self, kind: Number | Ordinal | Date, forced: bool = False) -> AnyKind:
        """Return a column of numbers or dates with what fills its gaps; left out if it tells nothing."""
        values, found = kind.values(self.column)
        known = values[~np.isnan(values)]
        if isinstance(kind, Number) and known.size:
            whole = kind.decimal == "," and bool(np.all(known % 1 == 0))
            gaps = () if forced else _gaps(known)
            kind = replace(kind, whole=whole, gaps=gaps) if whole or gaps else kind
            if gaps:
                values, found = kind.values(self.column)
                known = values[~np.isnan(values)]
        missing = found.missing + found.strays
        if not known.size:
            what = "date" if isinstance(kind, Date) else "number"
            return DroppedColumn(self.name, f"no cell is a {what}" if forced else "empty")
        if isinstance(kind, Date):
            kind = self._with_parts(kind, known)
            if not kind.parts:
                return DroppedColumn(self.name, "the same date in every row")
        elif not forced and self.name != self.options.target and (reason := self._useless(known, missing)):
            return DroppedColumn(self.name, reason)
        if not self.options.impute:
            return kind
        many = missing >= max(MANY_MISSING * len(self.column), MIN_LEVEL_ROWS + 1)
        low, high = (known.size - 1) // 2, known.size // 2
        median = np.partition(known, (low, high))[[low, high]].sum() / 2  # np.median is slow for few rows
        return replace(kind, fill=float(median), flag=many)

    def _useless(self, known: np.ndarray, missing: int) -> str:
        if np.all(known == known[0]):
            few = missing < MANY_MISSING * len(self.column)
            return f"the same value in every row, {known[0]:g}" if few else ""
        if missing or len(known) <= 2 * MIN_LEVEL_ROWS or np.any(known[:100] % 1) or np.any(known % 1):
            return ""
        different, steps = len(np.unique(known)), np.diff(known)
        low, high = np.abs(known).min(), np.abs(known).max()
        # A counter may have begun long before its first row, as years have, or be shuffled; long numbers have
        # as many digits.
        along = np.ptp(np.sign(steps)) == 0 or np.ptp(known) == len(known) - 1
        counts = low > 1000 and high < 1.5 * low and not 1500 < low < 2100 and along
        named = counts or (low >= LONG_NUMBER and len(f"{low:.0f}") == len(f"{high:.0f}"))
        named = np.all(steps == 1) if self.name == "column 1" else named or _IDENTIFIER.search(self.name)
        if named and different == len(known):
            return "an identifier: another number in every row"
        if _NAMED_ID.search(self.name) and different > max(MAX_LEVELS, 0.1 * len(known)):
            return f"an identifier by its name: {different} different numbers in {len(known)} rows"
        return ""

    # -- dates

    def _order(self, shares: dict[str, float]) -> str:
        """The order that reads most; where day and month look alike, that of the rest of the file."""
        preferred = ("ymd", "dmy", "mdy") if self.day_first else ("ymd", "mdy", "dmy")
        return max((*preferred, *parsing.ORDERS), key=lambda order: shares[order])

    def _date(self) -> AnyKind | None:
        order = self._order(self.shares)
        if self.shares[order] < MIN_PARSED_SHARE or (order == "compact" and not _DATE_NAME.search(self.name)):
            return None
        if order == "duration" and not any(map(parsing.TWO_SPANS.search, self.column.factorized[1])):
            return None
        return self._measured(Date(self.name, order=order), forced=True)

    def _with_parts(self, kind: Date, known: np.ndarray) -> Date:
        """Return a kind of dates with its first day, and the parts that are not the same in every row."""
        alone = {"time": ["hour"], "duration": ["hours"]}.get(kind.order)
        first = 0.0 if alone else float(np.floor(known.min()))
        monthly = bool((known.astype("M8[D]") == known.astype("M8[D]").astype("M8[M]")).all())
        parts = alone or [part for part in PARTS[:4] if part != "weekday" or not monthly]
        varying = [part for part in parts if len(np.unique(parsing.calendar_part(part, known, first))) > 1]
        return replace(kind, first=first, parts=tuple(varying))

    # -- categories

    def _yes_no(self, forced: bool = False) -> AnyKind | None:
        if not forced and self.column.plain_numbers is not None:
            return None
        codes, labels = self.column.factorized
        words = parsing.BOOLEAN_WORDS_OR_DIGITS if forced else parsing.BOOLEAN_WORDS
        truths = [words.get(label.casefold()) for label in labels]
        yes, no = ([label for label, t in zip(labels, truths) if t is truth] for truth in (True, False))
        gaps = int((codes < 0).sum())
        if not yes or (None in truths and not forced):
            return None
        if not no and gaps < MANY_MISSING * len(codes):
            return DroppedColumn(self.name, f"the same value in every row, {quote(yes[0])}")
        counts = dict(zip(labels, self.column.counts.tolist()))
        said = [max(words, key=lambda label: counts[label]) for words in (yes, no) if words]
        own = bool(gaps and no and self.options.impute)
        return YesNo(self.name, said[0], said[-1] if no else "no", own, "" if self.options.impute else None)

    def _ordered(self, said: str | None = None) -> AnyKind | None:
        """Words of a scale that is known, or that a user says; as a target they are classes unless said."""
        texts = self.column.factorized[1]
        labels = [texts[i] for i in np.argsort(-self.column.counts, kind="stable").tolist()]
        if said is None and (self.name == self.options.target or len(labels) > SMALL_CATEGORY):
            return None
        if levels := parsing.ordered_levels(labels, self.name, said):
            return self._measured(Ordinal(self.name, levels=levels), forced=True)
        if said is not None:
            raise TableProblem("no order", name=self.name, levels=labels, order=",".join(sorted(labels)[:9]))
        return None

    def _category(self, forced: bool = False, fold: bool = False) -> AnyKind:
        column = self.column.folded() if fold else self.column
        (codes, labels), counts = column.factorized, column.counts
        gaps = len(codes) - int(counts.sum())
        if not labels:
            return DroppedColumn(self.name, "empty")
        if len(labels) == 1 and gaps < MANY_MISSING * len(codes):
            return DroppedColumn(self.name, f"the same value in every row, {quote(labels[0])}")
        if not forced and (reason := self._names_rows(labels, int(counts.sum()))):
            return DroppedColumn(self.name, reason)
        levels = shown = sorted(labels)
        if len(labels) > SMALL_CATEGORY:
            least = max(MIN_LEVEL_ROWS, MIN_LEVEL_SHARE * len(codes))
            by_count = sorted(range(len(labels)), key=lambda i: (-counts[i], labels[i]))[:MAX_LEVELS]
            levels = sorted(labels[i] for i in by_count if counts[i] >= least)
            if not levels:
                return DroppedColumn(
                    self.name, f"{len(labels)} different texts, none of them in {least:.0f} rows"
                )
            shown = [*levels, OTHER_LEVEL] if len(levels) < len(labels) else levels
        elif len(labels) == 2 and not gaps:
            shown = levels[1:]
        own = [MISSING_LEVEL] if gaps and self.options.impute and len(labels) > 1 else []
        fill = None if not self.options.impute else MISSING_LEVEL if own else ""
        return Category(self.name, tuple(levels), (*shown, *own), fill, fold)

    def _names_rows(self, labels: list[str], known: int) -> str:
        """Why a column of texts says nothing about other rows; empty if it may."""
        length = float(np.mean([len(label) for label in labels[:1000]]))
        if len(labels) > max(MIN_UNIQUE_SHARE * known, 2 * MIN_LEVEL_ROWS) or (
            length > MIN_PROSE_LENGTH and len(labels) > 0.5 * known
        ):
            prose = length > MIN_PROSE_LENGTH or np.mean([label.count(" ") for label in labels[:1000]]) > 3
            what = "free text" if prose else "an identifier"
            return f"{what}: {len(labels)} different texts in {known} rows"
        return ""


def _gaps(known: np.ndarray) -> tuple[float, ...]:
    """Return the numbers that stand for missing values, as statistics programs write them."""
    gaps: tuple[float, ...] = ()
    if known.min() in parsing.GAPS_BELOW:
        below = known[known < 0]
        if MIN_MISSING_CODES <= below.size < 0.5 * known.size and np.isin(below, parsing.GAPS_BELOW).all():
            gaps = tuple(np.unique(below).tolist())
    if (top := known.max()) in parsing.GAPS_ABOVE:
        rest = known[known < top]
        several = MIN_MISSING_CODES <= known.size - rest.size < 0.5 * known.size
        if several and MISSING_CODE_RATIO * rest.max() < top:
            gaps += (float(top),)
    return gaps
