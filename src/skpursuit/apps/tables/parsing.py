"""Numbers, dates, booleans, orders and missing values as tables spell them; words.toml has the words.

Numbers are parsed by regular expressions over a whole column, dates once for each distinct text.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc

_WORDS: dict[str, Any] = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
#: Spellings of a missing value, in lower case.
MISSING = tuple(_WORDS["missing"])
#: What the names of columns look like that hold identifiers, surely identifiers, codes of digits, dates.
NAMES = [re.compile(pattern, re.I) for pattern in _WORDS["names"]]
GAPS_BELOW, GAPS_ABOVE = _WORDS["gaps_below"], _WORDS["gaps_above"]
TOTALS = frozenset(_WORDS["totals"])
#: Words for yes and no, in lower case; where a column is known to hold them, digits may say it too.
BOOLEAN_WORDS = {**dict.fromkeys(_WORDS["yes"], True), **dict.fromkeys(_WORDS["no"], False)}
BOOLEAN_WORDS_OR_DIGITS = {**BOOLEAN_WORDS, "1": True, "0": False}
#: Scales of words, each word with its place, and the scale of grades, of columns that are called so.
_SCALES = [
    {word: place for place, words in enumerate(scale) for word in words.split("|")}
    for scale in (*_WORDS["orders"], _WORDS["grades"])
]
_GRADED = re.compile(r"grade|rating|mark|note\b|zensur|klasse", re.I)
_MONTHS = {name: month for month, names in enumerate(_WORDS["months"], start=1) for name in names}
LIMITS = tuple(_WORDS["limits"])
_CURRENCY, _LIMIT, _SCALE = (
    f"(?:{'|'.join(map(re.escape, sorted(_WORDS[name], key=len, reverse=True)))})"
    for name in ("currencies", "limits", "scales")
)


def folded(text: str) -> str:
    """Return a text without what people write now so and now so: case and blanks."""
    return " ".join(text.casefold().split())


def spellings(labels: Iterable[str]) -> dict[str, list[str]]:
    """Return labels by what they are but for case and blanks."""
    found: dict[str, list[str]] = {}
    for label in labels:
        found.setdefault(folded(label), []).append(label)
    return found


def ordered_levels(labels: Sequence[str], name: str, said: str | None) -> tuple[tuple[str, ...], ...]:
    """Return labels from the least to the most, together those of one place; empty where no order is known.

    ``said`` is None where nobody has called the column ordered, else the order (a,b,c) or empty; then the
    first number of each label may tell it, too.
    """
    groups = spellings(labels)
    scales = _SCALES if _GRADED.search(name) else _SCALES[:-1]
    if said:
        scales = [{folded(word): place for place, word in enumerate(said.split(","))}]
    place = next((scale for scale in scales if groups.keys() <= scale.keys()), None)
    if place is None and said == "":
        numbers = {text: re.search(r"\d+(?:\.\d+)?", text) for text in groups}
        place = {t: 2 * float(n[0]) - t.startswith("<") for t, n in numbers.items() if n}  # type: ignore[misc]
    if place is None or groups.keys() - place.keys() or len(groups) < 2 + (said is None):
        return ()
    places = sorted({place[text] for text in groups})
    return tuple(
        tuple(label for text, own in groups.items() if place[text] == one for label in own) for one in places
    )


# -- numbers ----------------------------------------------------------------------------------------

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
UNAMBIGUOUS = {
    ".": _ONLY.replace("P", r"\.").replace("G", ","),
    ",": _ONLY.replace("P", ",").replace("G", r"\."),
}
_UNIT = r"(?P<after>[^\d\s.,;:/\\()+-](?:[^\d\s;:()]|(?<=[\w/])\d){0,9}?)?"  # kg, m2, l/100km
_WITH_UNIT = {
    decimal: re.compile(
        rf"'?(?P<limit>{_LIMIT})?\s?{_SIGN}(?P<before>{_CURRENCY})?\s?{number}-?\s?(?:{_SCALE}(?!\w))?\s?{_UNIT}-?"
    )
    for decimal, number in NUMBER.items()
}
#: Accountants write (5) for -5, $(5) for -$5, and $ - for nothing.
_BRACKETS = rf"^({_CURRENCY})?\s?\((.*)\)$"
_NOTHING = rf"^({_CURRENCY})\s*[-–—]$"
#: What is taken away around a number, in this order: Excel's mark of a text, brackets; then units; then the
#: ends of prices such as 5,- and 5.–, and the sign that SAP writes behind (5- for -5).
_MARKS = {"^'": "", _BRACKETS: r"-\1\2", _NOTHING: r"\1 0"}
_ENDS = {r"[.,](?:--?|[–—])$": "", r"^([^+-].*)-$": r"-\1"}


def parse_numbers(texts: pyarrow.Array, decimal: str, unit: str) -> tuple[np.ndarray, np.ndarray]:
    """Return texts as numbers, NaN where there is none, and where some other text is instead."""
    mark = re.escape(unit).replace("/", r"\/")
    beside = {rf"^{_LIMIT}\s*": "", rf"^({_SIGN})\s*{mark}\s*|\s*{mark}\s*([)]?-?)$": r"\1\2"}
    found = texts
    for pattern, instead in (_MARKS | (beside if unit else {}) | _ENDS).items():
        found = pc.replace_substring_regex(found, pattern, instead)
    scaled = pc.extract_regex(found, rf"^(?P<number>.*\d)\s?(?P<scale>{_SCALE})$")
    found = pc.coalesce(pc.struct_field(scaled, "number"), found)
    good = pc.match_substring_regex(found, f"^{NUMBER[decimal]}$")
    found = pc.if_else(good, found, pyarrow.scalar(None, pyarrow.string()))
    found = pc.replace_substring_regex(found, rf"{_GAP}|[{'.' if decimal == ',' else ','}]", "")
    found = pc.replace_substring(pc.replace_substring(found, ",", "."), "\u2212", "-")
    values = pc.cast(found, pyarrow.float64()).to_numpy(zero_copy_only=False)
    if scaled.null_count < len(scaled):
        scales = pc.struct_field(scaled, "scale").to_pylist()
        values = values * np.array([_WORDS["scales"].get(scale, 1.0) for scale in scales])
    strays = pc.and_(pc.is_valid(texts), pc.is_null(found)).to_numpy(zero_copy_only=False)
    return np.where(np.isinf(values), np.nan, values), strays | np.isinf(values)


def unit_of(text: str, decimal: str) -> str | None:
    """Return the sign or unit beside a number, "" if there is none; None if the text is no number."""
    match = _WITH_UNIT[decimal].fullmatch(re.sub(_NOTHING, r"\1 0", re.sub(_BRACKETS, r"-\1\2", text)))
    return None if match is None else match["before"] or match["after"] or match["limit"] or ""


def decimal_signs(texts: pyarrow.Array) -> list[str]:
    """Return the decimal signs, of point and comma, without which some of the texts could not be read.

    Few prices have three decimals, and those are of litres: where all have three digits behind a sign, and
    some have several before it, it is not the decimal one.
    """
    bare = pc.replace_substring_regex(texts, rf"{_GAP}|%|{_CURRENCY}", "")
    found = [
        sign for sign, only in UNAMBIGUOUS.items() if pc.any(pc.match_substring_regex(bare, only)).as_py()
    ]
    if not found and pc.any(pc.match_substring_regex(texts, rf"^{_SIGN}\s?{_CURRENCY}|{_CURRENCY}$")).as_py():
        for sign, other in (".,", ",."):
            signed = bare.filter(pc.fill_null(pc.match_substring(bare, sign), False))
            thousands = pc.match_substring_regex(signed, rf"^{_SIGN}\d{{1,3}}(?:[{sign}]\d{{3}})+$")
            large = pc.match_substring_regex(signed, rf"\d\d[{sign}]")
            found += [other] if pc.any(large).as_py() and pc.all(thousands).as_py() else []
    return found


def value_of(label: str) -> Decimal | None:
    """Return the exact value of a label that spells a number or a truth value, else None."""
    if label.lower() in ("true", "false"):
        return Decimal(label.lower() == "true")
    try:
        value = Decimal(label)
    except InvalidOperation:
        return None
    plain = (
        "_" not in label and label.strip().isascii()
    )  # Python reads more into texts than other programs do
    return value if plain and value.is_finite() else None


# -- dates ------------------------------------------------------------------------------------------

_TIME = (
    r"(?:(?:T|[ ,]+)(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,]\d+)?)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
    r"\s*(?:Uhr|(?:Z|UTC|GMT|[A-Z]{2,3}T)?(?:[+-]\d{1,2}(?::?\d{2})?)?)(?: ?\[[\w/]+\])?)?"
)
_DAY, _MONTH, _YEAR, _DOT = r"(?P<d>\d{1,2})", r"(?P<m>\d{1,2})", r"(?P<y>\d{4}|\d{2})", "[./-] ?"
_NAME, _WEEKDAY = r"(?P<m>[^\W\d_]{3,9})", r"(?:[^\W\d_]{2,10}[.,]{1,2} ?)?"
_SPANS = (r" ?d\w*,?", r" ?(?:h|[Ss]td)\w*\.?", r" ?m(?:in\w*)?\.?", r" ?s(?:ec\w*)?\.?")  # days to seconds
_DATES = {
    "ymd": rf"(?P<y>\d{{4}})[-/.]{_MONTH}(?:[-/.]{_DAY})?{_TIME}",
    "dmy": f"{_WEEKDAY}{_DAY}{_DOT}{_MONTH}{_DOT}{_YEAR}{_TIME}",
    "mdy": f"{_WEEKDAY}{_MONTH}{_DOT}{_DAY}{_DOT}{_YEAR}{_TIME}",
    "dMy": rf"{_WEEKDAY}{_DAY}[. -]*{_NAME}\.?[., -]*{_YEAR}{_TIME}",
    "Mdy": rf"{_WEEKDAY}{_NAME}\.? {_DAY}(?:st|nd|rd|th)?,? +(?P<y>\d{{4}}){_TIME}",
    "My": rf"{_NAME}\.?[-' ](?P<y>\d{{4}}|(?<! )\d{{2}})",
    "yq": r"(?P<y>(?:19|20)\d\d)[-/ ]?[QqTt](?P<q>[1-4])",
    "qy": r"[QqTt](?P<q>[1-4])[-/ ](?P<y>(?:19|20)\d\d)",  # T103 is a machine
    "duration": r"(?=.*\d)" + " ?".join(rf"(?:(?P<{part}>\d+){span})?" for part, span in zip("DHMS", _SPANS)),
    "compact": r"(?P<y>(?:19|20)\d\d)(?P<m>[01]\d)(?P<d>[0-3]\d)",
    "time": r"(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2}))?\s*(?P<half>[AaPp]\.?[Mm]\.?)?(?: Uhr)?",
}
ORDERS = tuple(_DATES)
#: Orders that no other text can be taken for, so that a column may mix them with its own.
_BEYOND_DOUBT = ("ymd", "dMy", "Mdy", "My", "yq", "qy")
_ALONE = ("time", "duration", "compact")  # orders that are mixed with no other
#: What a column of durations must hold somewhere, such as 1h 5m: 5m alone may be of metres.
TWO_SPANS = re.compile("|".join(rf"\d+{one} ?\d+{two}" for one, two in itertools.pairwise(_SPANS)))
_PATTERNS = {order: re.compile(pattern) for order, pattern in _DATES.items()}


def parse_days(label: str, order: str) -> float:
    """Return what a text spells in a column of an order, in days since 1970; NaN if it is no moment."""
    for pattern in (order, *(_BEYOND_DOUBT if order not in _ALONE else ())):
        if match := _PATTERNS[pattern].fullmatch(label):
            part = {"y": "1970", "m": "1", "d": "1", "H": "0", "M": "0", "S": "0", "half": ""}
            part |= {name: text for name, text in match.groupdict().items() if text}
            if pattern == "duration":
                hours = int(part["H"]) + (int(part["M"]) + int(part["S"]) / 60) / 60
                return int(part.get("D", 0)) + hours / 24
            if "q" in part:
                part["m"] = str(3 * int(part["q"]) - 2)
            month = _MONTHS.get(part["m"][:3].lower()) if part["m"].isalpha() else int(part["m"])
            year, hour = int(part["y"]), int(part["H"])
            year += 0 if year > 99 else 2000 if year < 50 else 1900
            if part["half"]:
                hour = hour % 12 + (12 if part["half"][0] in "pP" else 0)
            try:
                when = datetime(year, month or 0, int(part["d"]), hour, int(part["M"]), int(part["S"]))
                return (when - datetime(1970, 1, 1)).total_seconds() / 86400
            except ValueError:
                continue
    return float("nan")


def calendar_part(name: str, moments: np.ndarray, first: float) -> np.ndarray:
    """Return days since the first one, the month, the weekday (Monday is 1), the hour or hours; NaN stays."""
    known = np.nan_to_num(moments)
    whole = np.floor(known).astype("int64")
    values = {
        "days": lambda: known - first,
        "month": lambda: whole.astype("M8[D]").astype("M8[M]").astype("int64") % 12 + 1.0,
        "weekday": lambda: (whole + 3) % 7 + 1.0,
        "hour": lambda: np.round((known - whole) * 24, 4),
        "hours": lambda: known * 24,
    }
    return np.where(np.isnan(moments), np.nan, values[name]())
