"""Finding out what columns are, from their values, their names, and how the rest of the file is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow

from .errors import show
from .kinds import (
    MISSING_LEVEL,
    OTHER_LEVEL,
    PARTS,
    Category,
    Date,
    Kind,
    LeftOut,
    Number,
    YesNo,
    as_texts,
    is_text,
)
from .spelling import NO, YES, Calendar, Texts, date_orders, decimal_sign

MOSTLY = 0.95  # share of cells that must be of a kind; the others count as missing
FEW_STRAYS = 3  # different texts in a column of numbers that are taken for marks of missing values
MANY_MISSING = 0.05  # share of rows from which that a value is missing may tell something
SMALL_CATEGORY = 20  # levels that are all kept
MOST_LEVELS = 50
RARE = 0.005  # share of rows that a level of a larger category must have, and at least
FEWEST = 4  # rows
UNIQUE = 0.8  # share of different texts from which a column names its rows
MEDIAN_ROWS = 20_000  # of a column without missing values that give the median for later files
WORDS = 40  # characters on average, from which texts are prose
SAMPLE = 500  # different texts that are tried as dates

_IDENTIFIER = re.compile(
    r"(?:^|[\W_])(?:id|nr|no|number|nummer|key|uuid|guid|index|idx|row|zeile|ref|serial|phone|tel|telefon|fax|iban"
    r"|isbn|ssn|mls)(?:[\W_]|$)|\bunnamed: \d+|^column 1$|^row$|[a-z]I[Dd]$",
    re.I,
)
_CODE = re.compile(
    r"(?:^|[\W_])(?:zip|zipcode|zip_code|postal|postcode|plz|postleitzahl|cep|fips|area_code|sic|naics|icd)(?:[\W_]|$)",
    re.I,
)
_DATE_NAME = re.compile(r"date|datum|dat\b|day|tag|fecha|jour|time|zeit|am$", re.I)

#: What a user may say of a column.
SAID = ("number", "category", "yesno", "date", "dmy", "mdy", "ymd", "time", "drop")


@dataclass(frozen=True)
class EncodingOptions:
    """Choices made when columns are turned into features.

    Attributes
    ----------
    target : str or None
        The target column; None takes the ``y`` stored beside a matrix.
    kinds : dict of str to str
        What a user says of columns: one of `SAID`.
    impute : bool
        Whether missing values are filled; else a column with any is a problem.
    decimal : str or None
        The decimal sign of the file; None finds it out.
    """

    target: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    impute: bool = True
    decimal: str | None = None


def guess_kinds(raw: Mapping[str, Any], wishes: EncodingOptions) -> dict[str, Kind]:
    """Return the kind of every raw column."""
    texts = {name: as_texts(column) for name, column in raw.items() if is_text(column)}
    orders = {name: _orders(name, one) for name, one in texts.items() if name not in wishes.kinds}
    european = any(
        max(o, key=lambda order: o[order]) == "dmy" and o["dmy"] >= MOSTLY > o["mdy"] for o in orders.values()
    )
    decimal = wishes.decimal or decimal_sign(
        [t for n, t in texts.items() if max(orders.get(n, {"": 0.0}).values()) < 0.5], european
    )
    day_first = european or decimal == ","
    guesses = {
        name: _Guess(name, column, texts.get(name), decimal, day_first, orders.get(name), wishes)
        for name, column in raw.items()
    }
    return {
        name: guess.kind() if name != wishes.target else guess.target() for name, guess in guesses.items()
    }


def _orders(name: str, texts: Texts) -> dict[str, float]:
    """Return the share of a column that each order of day, month and year can read."""
    if texts.plain is not None and not _DATE_NAME.search(name):
        return {"ymd": 0.0, "dmy": 0.0, "mdy": 0.0}
    first = [text for text in texts.head(50).array.to_pylist() if text is not None]
    if first and not any(re.search(r"\d", text) and len(text) < 40 for text in first):
        return {"ymd": 0.0, "dmy": 0.0, "mdy": 0.0}
    labels = texts.coded[1]
    step = max(1, len(labels) // SAMPLE)
    return date_orders(labels[::step]) if labels else {"ymd": 0.0, "dmy": 0.0, "mdy": 0.0}


@dataclass
class _Guess:
    """One column and all that helps to say what it is."""

    name: str
    raw: Any
    texts: Texts | None
    decimal: str
    day_first: bool
    orders: dict[str, float] | None
    wishes: EncodingOptions

    def kind(self) -> Kind:
        said = self.wishes.kinds.get(self.name)
        if said == "drop":
            return LeftOut(self.name, "as asked")
        if said is not None:
            return self._said(said)
        if self.texts is None:
            return self._typed()
        if self.texts.plain is None and self.texts.n_known == 0:
            return LeftOut(self.name, "empty")
        return self._date() or self._yes_no() or self._number() or self._category()

    def target(self) -> Kind:
        """What a target is: a number, yes or no, or classes; never left out."""
        found = self.kind()
        if isinstance(found, LeftOut | Date):
            number = (self._number() if self.texts is not None else None) or Number(self.name, self.decimal)
            found = number if isinstance(number, Number) and number.values(self.raw)[1].matched else found
        return replace(found, fill=None, flag=False) if isinstance(found, Number) else found

    def _said(self, said: str) -> Kind:
        if said == "number":
            unit = "" if self.texts is None else next((u for u in self.texts.units(self.decimal) if u), "")
            return self._number_of(Number(self.name, self.decimal, unit), forced=True)
        if said == "category":
            return self._category(forced=True)
        if said == "yesno":
            return self._yes_no(forced=True) or YesNo(self.name)
        if said == "date" and self.texts is not None:
            orders = _orders(self.name + " date", self.texts)
            said = self._best(orders)
        return self._dates("ymd" if said == "date" else said, forced=True)

    def _typed(self) -> Kind:
        types = pyarrow.types
        if self.raw.null_count == len(self.raw):
            return LeftOut(self.name, "empty")
        if types.is_timestamp(self.raw.type):
            return self._dates("ymd")
        if types.is_boolean(self.raw.type):
            return self._yes_no(forced=True) or YesNo(self.name)
        return self._number_of(Number(self.name))

    # -- numbers

    def _number(self) -> Kind | None:
        texts = self.texts
        assert texts is not None
        if texts.plain is not None and (self.decimal == "." or not (texts.plain % 1).any()):
            if self._is_code():
                return None
            return self._number_of(Number(self.name, self.decimal))
        other = "." if self.decimal == "," else ","
        for decimal in (
            self.decimal,
            other,
        ):  # the other one only if it is beyond doubt: nothing else can be read
            for unit in dict.fromkeys(("", *texts.units(decimal)[:2])):
                _, strays = texts.numbers(decimal, unit)
                good = texts.n_known - int(strays.sum())
                if good and self._nearly(good, strays) and not self._is_code():
                    return self._number_of(Number(self.name, decimal, unit))
        return None

    def _nearly(self, good: int, strays: np.ndarray) -> bool:
        """Whether a column is numbers but for slips of the pen, or for a few marks that mean missing."""
        assert self.texts is not None
        if good >= MOSTLY * self.texts.n_known:
            return True
        codes, labels = self.texts.coded
        odd = len(np.unique(codes[strays]))
        return odd <= FEW_STRAYS and good >= 0.5 * self.texts.n_known and len(labels) - odd > SMALL_CATEGORY

    def _is_code(self) -> bool:
        """Whether digits are names: postal codes, or anything of a fixed length that may begin with 0."""
        assert self.texts is not None
        if _CODE.search(self.name):
            return True
        first = [text for text in self.texts.head(2000).array.to_pylist() if text]
        same = len({len(text) for text in first}) == 1 and all(text.isdigit() for text in first)
        return same and len(first[0]) > 1 and any(text[0] == "0" for text in first)

    def _number_of(self, column: Number, forced: bool = False) -> Kind:
        values, found = column.values(self.raw)
        known = values[~np.isnan(values)]
        if not known.size:
            return LeftOut(self.name, "no cell is a number" if forced else "empty")
        reason = (
            ""
            if forced or self.name == self.wishes.target
            else self._useless(known, found.missing + found.strays)
        )
        if not reason:
            sample = known if found.missing + found.strays else known[:MEDIAN_ROWS]
            fill = float(np.median(sample)) if self.wishes.impute else None
            return replace(column, fill=fill, flag=self._many(found.missing + found.strays))
        return LeftOut(self.name, reason)

    def _many(self, missing: int) -> bool:
        """Whether so much is missing that the fact may tell something."""
        return self.wishes.impute and missing >= max(MANY_MISSING * len(self.raw), FEWEST + 1)

    def _useless(self, known: np.ndarray, missing: int) -> str:
        if np.all(known == known[0]):
            return (
                ""
                if missing >= MANY_MISSING * len(self.raw)
                else f"the same value in every row, {known[0]:g}"
            )
        whole = bool(np.all(known[:100] % 1 == 0) and np.all(known % 1 == 0))
        if (
            whole
            and len(np.unique(known)) == len(known) > 2 * FEWEST
            and missing == 0
            and (_IDENTIFIER.search(self.name) or self._counts_rows(known))
        ):
            return "an identifier: another number in every row"
        return ""

    def _counts_rows(self, known: np.ndarray) -> bool:
        return bool(self.name == "column 1" and np.all(np.diff(known) == 1))

    # -- dates

    def _best(self, orders: dict[str, float]) -> str:
        """The order that reads most; where day and month look alike, that of the rest of the file."""
        preferred = ("ymd", "dmy", "mdy") if self.day_first else ("ymd", "mdy", "dmy")
        return max((*preferred, *(o for o in orders if o not in preferred)), key=lambda order: orders[order])

    def _date(self) -> Kind | None:
        assert self.orders is not None
        best = self._best(self.orders)
        if self.orders[best] < MOSTLY or (best == "compact" and not _DATE_NAME.search(self.name)):
            return None
        return self._dates(best)

    def _dates(self, order: str, forced: bool = False) -> Kind:
        column = Date(self.name, order)
        days, found = column.values(self.raw)
        known = days[~np.isnan(days)]
        if not known.size:
            return LeftOut(self.name, "no cell is a date")
        first = 0.0 if order == "time" else float(np.floor(known.min()))
        parts = [part for part in PARTS if len(np.unique(Calendar(known).part(part, first))) > 1]
        parts = [part for part in parts if (part == "hour") == (order == "time") or order != "time"]
        if not parts:
            return LeftOut(self.name, "the same date in every row")
        fill = float(np.median(known)) if self.wishes.impute else None
        flag = self._many(found.missing + found.strays)
        return replace(column, first=first, parts=tuple(parts), fill=fill, flag=flag)

    # -- categories

    def _yes_no(self, forced: bool = False) -> Kind | None:
        texts = self.texts or as_texts(self.raw)
        if texts is self.texts and texts.plain is not None and not forced:
            return None
        codes, labels = texts.coded
        yes = [label for label in labels if label.casefold() in YES or (forced and label == "1")]
        no = [label for label in labels if label.casefold() in NO or (forced and label == "0")]
        gaps = int((codes < 0).sum())
        if not yes or (len(yes) + len(no) < len(labels) and not forced):
            return None
        if not no and gaps < MANY_MISSING * len(codes):
            return LeftOut(self.name, f"the same value in every row, {show(yes[0])}")
        counts = {label: int((codes == labels.index(label)).sum()) for label in yes}
        spelled = max(counts, key=lambda label: counts[label])
        own = bool(gaps and no and self.wishes.impute)
        return YesNo(self.name, spelled, own, "" if self.wishes.impute else None)

    def _category(self, forced: bool = False) -> Kind:
        texts = self.texts or as_texts(self.raw)
        codes, labels = texts.coded
        counts = np.bincount(codes[codes >= 0], minlength=len(labels))
        gaps = len(codes) - int(counts.sum())
        if len(labels) == 1 and gaps < MANY_MISSING * len(codes):
            return LeftOut(self.name, f"the same value in every row, {show(labels[0])}")
        if not forced and (reason := self._names_rows(labels, int(counts.sum()))):
            return LeftOut(self.name, reason)
        levels = sorted(labels)
        shown = levels
        if len(labels) > SMALL_CATEGORY:
            least = max(FEWEST, RARE * len(codes))
            by_count = sorted(range(len(labels)), key=lambda i: (-counts[i], labels[i]))[:MOST_LEVELS]
            shown = levels = sorted(labels[i] for i in by_count if counts[i] >= least)
            if not shown:
                reason = f"{len(labels)} different texts, none of them in {least:.0f} rows"
                return LeftOut(self.name, reason)
            shown = [*shown, OTHER_LEVEL] if len(shown) < len(labels) else shown
        elif len(labels) == 2 and not gaps:
            shown = levels[1:]
        impute = self.wishes.impute
        own = [MISSING_LEVEL] if gaps and impute and len(labels) > 1 else []
        fill = None if not impute else MISSING_LEVEL if own else ""
        return Category(self.name, tuple(levels), (*shown, *own), fill)

    def _names_rows(self, labels: list[str], known: int) -> str:
        """Why a column of texts says nothing about other rows; empty if it may."""
        length = float(np.mean([len(label) for label in labels[:1000]]))
        if len(labels) > max(UNIQUE * known, 2 * FEWEST) or (length > WORDS and len(labels) > 0.5 * known):
            prose = length > WORDS or np.mean([label.count(" ") for label in labels[:1000]]) > 3
            what = "free text" if prose else "an identifier"
            return f"{what}: {len(labels)} different texts in {known} rows"
        return ""
