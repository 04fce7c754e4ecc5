"""The one exception that a bad table raises, and how values are shown in it."""

from __future__ import annotations

from .._files import FileError


class TableError(FileError):
    """A table that cannot be used."""


def show(value: object, limit: int = 40) -> str:
    """Return a value quoted for a message, cut if it is long, control characters escaped."""
    text = repr(str(value))
    return text if len(text) <= limit else text[: limit - 4] + "...'"


def listing(names: list[str] | tuple[str, ...], limit: int = 8) -> str:
    """Return the first few names for a message, and how many more there are."""
    shown = ", ".join(show(name) for name in names[:limit])
    more = len(names) - limit
    return f"{shown} and {more} more" if more > 0 else shown
