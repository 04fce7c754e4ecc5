"""How numbers and truth values are spelled in files: which texts are numbers, and one text for a number."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import numpy as np

#: Spellings of a missing value in text files.
MISSING = frozenset({"", "?", "NA", "N/A", "#N/A", "na", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None"})

_TRUTH = {"true": Decimal(1), "false": Decimal(0)}


def parse_number(text: str) -> float:
    """Return the number a text spells; ValueError if none.

    Python's own reading is wider: it takes ``1_2`` for 12, and digits of other scripts.
    """
    if not is_plain(text):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def is_plain(text: str) -> bool:
    """Whether Python reads no more into a text (or several, joined) than other programs do."""
    return "_" not in text and (text.isascii() or text.strip().isascii())


def to_number(field: str) -> float | None:
    """Return the number a field spells, NaN if it is missing, None if it is neither."""
    try:
        return parse_number(field)
    except ValueError:
        return np.nan if field.strip() in MISSING else None


def spell(value: bool | float | Decimal) -> str:
    """Return the text of a value as files write it: ``1`` for 1.0, all digits that tell it from others."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return str(int(value))
    return str(value)


def value_of(label: str) -> Decimal | None:
    """Return the exact value of a label that spells a number or a truth value, else None."""
    if label.lower() in _TRUTH:
        return _TRUTH[label.lower()]
    try:
        value = Decimal(label)
    except InvalidOperation:
        return None
    return value if is_plain(label) and value.is_finite() else None


def values_of(labels: Sequence[str]) -> list[Decimal] | None:
    """Return the values of labels if each spells one and no two the same, else None."""
    values = [value for value in map(value_of, labels) if value is not None]
    return values if len(set(values)) == len(labels) else None
