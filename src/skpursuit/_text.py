"""Text that users give (names, labels, titles) is never markup, in figures, pages or terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.text import Text


def one_line(text: object, limit: int = 60) -> str:
    """Return a text of any content on one line, cut if it is long."""
    line = "".join(letter if letter.isprintable() else " " for letter in str(text))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def write(place: Text, text: object, limit: int = 60) -> Text:
    """Set a text of matplotlib to one line that is neither a formula nor TeX, and return it."""
    place.set(text=one_line(text, limit), parse_math=False, usetex=False)
    return place
