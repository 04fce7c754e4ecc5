"""How people spell numbers, dates, yes and no, and nothing at all; columns are read as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc

#: Spellings of a missing value, in lower case.
MISSING = (
    "", "?", "??", "-", "--", "---", "–", "—", ".", "..", "...", "*", "na", "n/a", "#n/a", "#na", "n.a.",
    "n. a.", "n.v.", "nan", "-nan", "#nan", "null", "(null)", "none", "nil", "nat", "<na>", "<null>", "k.a.",
    "k. a.", "k.a", "keine angabe", "missing", "fehlt", "(blank)", "(leer)", "#div/0!", "#value!", "#wert!",
    "#ref!", "#bezug!", "#name?", "#num!", "#zahl!", "#null!", "n/d", "s/d", "nd",
)  # fmt: skip
YES = frozenset(
    ("yes", "y", "true", "t", "ja", "j", "wahr", "oui", "o", "vrai", "si", "sí", "s", "sì", "sim",
     "verdadero", "da", "да", "tak", "ano", "igen", "kyllä", "evet", "on", "x", "✓", "✔", "はい", "是", "예"),
)  # fmt: skip
NO = frozenset(
    ("no", "n", "false", "f", "nein", "falsch", "non", "faux", "não", "nao", "falso", "net", "нет", "nie",
     "ne", "nem", "ei", "hayır", "hayir", "off", "nee", "nej", "✗", "✘", "いいえ", "否", "아니요", "όχι"),
)  # fmt: skip
CURRENCY = r"(?:US\$|R\$|C\$|A\$|\$|€|£|¥|₹|₽|₩|zł|Kč|kr\.?|CHF|EUR|USD|GBP|JPY|SEK|NOK|DKK|PLN|AUD|CAD|Fr\.)"
MOST_VOTES = 200  # columns that decide about the decimal sign
_GAP = "[ \u00a0\u202f\u2009'’]"  # between groups of three digits
_SIGN = "[+\u2212-]?"
_WHOLE = {
    ".": rf"(?:\d{{1,3}}(?:(?:,|{_GAP})\d{{3}})+|\d+)",
    ",": rf"(?:\d{{1,3}}(?:(?:\.|{_GAP})\d{{3}})+|\d+)",
}
NUMBER = {
    decimal: rf"{_SIGN} ?(?:{whole}(?:[{decimal}]\d*)?|[{decimal}]\d+)(?:[eE][+-]?\d+)?"
    for decimal, whole in _WHOLE.items()
}
#: Texts that can only be read with one of the two decimal signs.
_ONLY = (
    f"^{_SIGN}"
    r"(?:\d+P(?:\d{1,2}|\d{4,})|\d{4,}P\d+|0P\d+|P\d+|\d{1,3}(?:G\d{3}){2,}"
    r"|\d{1,3}(?:G\d{3})+P\d*)$"
)
ONLY = {".": _ONLY.replace("P", r"\.").replace("G", ","), ",": _ONLY.replace("P", ",").replace("G", r"\.")}
_UNIT = r"(?P<after>[^\d\s.,;:/\\()+-][^\d\s;:()]{0,9})?"
WITH_UNIT = {
    decimal: re.compile(rf"^{_SIGN}(?P<before>{CURRENCY})? ?[(]?{number}[)]?-?\s?{_UNIT}$")
    for decimal, number in NUMBER.items()
}


def parse_number(text: str) -> float:
    """Return the number a text spells; ValueError if none. Python itself reads more: 1_2, other scripts."""
    if not is_plain(text):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def is_plain(text: str) -> bool:
    """Whether Python reads no more into a text (or several, joined) than other programs do."""
    return "_" not in text and (text.isascii() or text.strip().isascii())


def value_of(label: str) -> Decimal | None:
    """Return the exact value of a label that spells a number or a truth value, else None."""
    if label.lower() in ("true", "false"):
        return Decimal(label.lower() == "true")
    try:
        value = Decimal(label)
    except InvalidOperation:
        return None
    return value if is_plain(label) and value.is_finite() else None


def values_of(labels: Sequence[str]) -> list[Decimal] | None:
    """Return the values of labels if each spells one and no two the same, else None."""
    values = [value for value in map(value_of, labels) if value is not None]
    return values if len(set(values)) == len(labels) else None


class Texts:
    """A column of texts: trimmed, with missing values known, and as few different texts as there are.

    Attributes
    ----------
    array : pyarrow.Array of strings
        The column; null where a value is missing.
    """

    def __init__(self, array: Any):
        array = array.combine_chunks() if isinstance(array, pyarrow.ChunkedArray) else array
        self._given = array
        self.n_rows = len(array)
        self.type = array.type

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, row: int) -> Any:
        return self._given[row]

    def head(self, rows: int) -> Texts:
        """Return the first rows."""
        return Texts(self._given.slice(0, rows))

    def to_pylist(self) -> list[str | None]:
        """Return the texts as they were given."""
        return self._given.to_pylist()

    @cached_property
    def array(self) -> Any:
        trimmed = pc.utf8_trim_whitespace(self._given)
        missing = pc.is_in(pc.utf8_lower(trimmed), pyarrow.array(MISSING))
        return pc.if_else(missing, pyarrow.scalar(None, pyarrow.string()), trimmed)

    @cached_property
    def plain(self) -> np.ndarray | None:
        """The column as numbers if all of it is plain ones, or empty; else None."""
        given = self._given
        if given.null_count == 0 and len(given) and not _starts_like_a_number(given[0].as_py()):
            return None  # mostly: before a whole column is looked at
        try:
            empty = pc.equal(given, "")
            if pc.any(empty).as_py():
                given = pc.if_else(empty, pyarrow.scalar(None, pyarrow.string()), given)
            found = pc.cast(given, pyarrow.float64()).to_numpy(zero_copy_only=False)
        except pyarrow.ArrowInvalid:
            return None
        return None if np.isinf(found).any() else found

    @cached_property
    def coded(self) -> tuple[np.ndarray, list[str]]:
        """Codes (-1: missing) and the different texts, in the order they come."""
        found = self.array.dictionary_encode()
        codes = found.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes, found.dictionary.to_pylist()

    @cached_property
    def n_known(self) -> int:
        """How many values are not missing."""
        return self.n_rows - self.array.null_count

    @cached_property
    def _has_points(self) -> bool:
        return bool(pc.any(pc.match_substring(self._given, ".")).as_py())

    def numbers(self, decimal: str = ".", unit: str = "") -> tuple[np.ndarray, np.ndarray]:
        """Return the column as numbers, NaN where there is none, and where some other text is instead."""
        if not unit and self.plain is not None and (decimal == "." or not self._has_points):
            return self.plain, np.zeros(self.n_rows, dtype=bool)
        texts = pc.replace_substring_regex(self.array, r"^\((.*)\)$", r"-\1")  # accountants
        if unit:
            mark = re.escape(unit).replace("/", r"\/")
            texts = pc.replace_substring_regex(
                texts, rf"^({_SIGN})\s*{mark}\s*|\s*{mark}\s*([)]?-?)$", r"\1\2"
            )
        texts = pc.replace_substring_regex(texts, r"^([\d.,]+)-$", r"-\1")  # SAP
        good = pc.match_substring_regex(texts, f"^{NUMBER[decimal]}$")
        texts = pc.if_else(good, texts, pyarrow.scalar(None, pyarrow.string()))
        texts = pc.replace_substring_regex(texts, rf"{_GAP}|[{'.' if decimal == ',' else ','}]", "")
        texts = pc.replace_substring(pc.replace_substring(texts, ",", "."), "\u2212", "-")
        values = pc.cast(texts, pyarrow.float64()).to_numpy(zero_copy_only=False)
        strays = pc.and_(pc.is_valid(self.array), pc.is_null(texts)).to_numpy(zero_copy_only=False)
        return np.where(np.isinf(values), np.nan, values), strays | np.isinf(values)

    def units(self, decimal: str) -> list[str]:
        """Return the signs and units that numbers carry here, the most frequent first; "" is none."""
        codes, labels = self.coded
        counts: dict[str, int] = {}
        sizes = np.bincount(codes[codes >= 0], minlength=len(labels))
        for label, size in list(zip(labels, sizes.tolist()))[:2000]:
            if match := WITH_UNIT[decimal].match(re.sub(r"^\((.*)\)$", r"-\1", label)):
                mark = match["before"] or match["after"] or ""
                counts[mark] = counts.get(mark, 0) + size
        return sorted(counts, key=lambda mark: -counts[mark])


def _starts_like_a_number(text: str) -> bool:
    return not text or text[0] in "+-.0123456789nN"


def decimal_sign(columns: Iterable[Texts], european: bool) -> str:
    """Decide between decimal point and comma for a whole file; `european` where its numbers do not tell."""
    votes = {".": 0, ",": 0}
    every = list(columns)
    for texts in every[:: 1 + len(every) // MOST_VOTES]:
        if texts.plain is None or (texts.plain % 1).any():
            sample = texts.head(20_000).array
            bare = pc.replace_substring_regex(sample, rf"{_GAP}|%|{CURRENCY}", "")
            for sign in votes:
                votes[sign] += bool(pc.any(pc.match_substring_regex(bare, ONLY[sign])).as_py())
    if votes["."] == votes[","]:
        return "," if european else "."
    return max(votes, key=lambda sign: votes[sign])


# -- dates ------------------------------------------------------------------------------------------

_TIME = (
    r"(?:(?:T|[ ,]+)(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,]\d+)?)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
    r"\s*(?:Uhr|Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?"
)
_MONTH_NAMES = (
    ("jan", "jän", "ene", "gen"), ("feb", "fév", "fev"), ("mar", "mär", "mrz"), ("apr", "avr", "abr"),
    ("may", "mai", "mag", "maj"), ("jun", "jui", "giu"), ("jul", "lug"), ("aug", "aoû", "ago"),
    ("sep", "set"), ("oct", "okt", "ott", "out"), ("nov",), ("dec", "dez", "dic", "déc"),
)  # fmt: skip
_MONTHS = {name: month for month, names in enumerate(_MONTH_NAMES, start=1) for name in names}
_DATES = {
    "ymd": re.compile(rf"(?P<y>\d{{4}})[-/.](?P<m>\d{{1,2}})(?:[-/.](?P<d>\d{{1,2}}))?{_TIME}"),
    "dmy": re.compile(
        rf"(?P<d>\d{{1,2}})(?:[./-] ?)(?P<m>\d{{1,2}})(?:[./-] ?)(?P<y>\d{{4}}|\d{{2}}){_TIME}"
    ),
    "mdy": re.compile(
        rf"(?P<m>\d{{1,2}})(?:[./-] ?)(?P<d>\d{{1,2}})(?:[./-] ?)(?P<y>\d{{4}}|\d{{2}}){_TIME}"
    ),
    "dMy": re.compile(
        rf"(?P<d>\d{{1,2}})[. -]*(?P<m>[^\W\d_]{{3,9}})\.?[., -]*(?P<y>\d{{4}}|\d{{2}}){_TIME}"
    ),
    "Mdy": re.compile(
        rf"(?P<m>[^\W\d_]{{3,9}})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? +(?P<y>\d{{4}}){_TIME}"
    ),
    "compact": re.compile(r"(?P<y>(?:19|20)\d\d)(?P<m>[01]\d)(?P<d>[0-3]\d)"),
    "time": re.compile(
        r"(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2}))?\s*(?P<half>[AaPp]\.?[Mm]\.?)?(?: Uhr)?"
    ),
}
ORDERS = tuple(_DATES)


def date_orders(labels: Sequence[str]) -> dict[str, float]:
    """Return the share of texts that each order of day, month and year can read."""
    return {order: float(np.mean([_when(label, order) is not None for label in labels])) for order in ORDERS}


def times(texts: Texts, order: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a column as days since 1970 (NaN: none), and where some other text is instead."""
    codes, labels = texts.coded
    days = np.array([*(_days(_when(label, order)) for label in labels), np.nan], dtype=float)[codes]
    return days, np.isnan(days) & (codes >= 0)


def _when(label: str, order: str) -> datetime | None:
    match = _DATES[order].fullmatch(label)
    if match is None:
        return None
    part = {"y": "1970", "m": "1", "d": "1", "H": "0", "M": "0", "S": "0", "half": ""}
    part |= {name: text for name, text in match.groupdict().items() if text}
    month = _MONTHS.get(part["m"][:3].lower()) if part["m"].isalpha() else int(part["m"])
    year, hour = int(part["y"]), int(part["H"])
    year += 0 if year > 99 else 2000 if year < 50 else 1900
    if part["half"]:
        hour = hour % 12 + (12 if part["half"][0] in "pP" else 0)
    try:
        return datetime(year, month or 0, int(part["d"]), hour, int(part["M"]), int(part["S"]))
    except ValueError:
        return None


def _days(when: datetime | None) -> float:
    return np.nan if when is None else (when - datetime(1970, 1, 1)).total_seconds() / 86400


@dataclass(frozen=True)
class Calendar:
    """Numbers that stand for moments: which there are, and how they come from days since 1970."""

    days: np.ndarray

    def part(self, name: str, first: float) -> np.ndarray:
        """Return days since the first one, the month, the weekday (Monday is 1) or the hour; NaN stays."""
        known = np.where(np.isnan(self.days), 0.0, self.days)
        whole = np.floor(known).astype("int64")
        if name == "days":
            values = known - first
        elif name == "month":
            values = (whole.astype("M8[D]").astype("M8[M]").astype("int64") % 12 + 1).astype(float)
        elif name == "weekday":
            values = ((whole + 3) % 7 + 1).astype(float)
        else:
            values = np.round((known - whole) * 24, 4)
        return np.where(np.isnan(self.days), np.nan, values)
