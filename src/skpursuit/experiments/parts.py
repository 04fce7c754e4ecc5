"""What a page of results is made of: plain values, which `figures` and a template turn into a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

Content = str | int | float | None


@dataclass(frozen=True)
class Cell:
    """A table cell that is worth a look: ``tone`` is "good" or "bad", and ``note`` says it in words."""

    content: Content
    tone: str = ""
    note: str = ""


@dataclass(frozen=True)
class Series:
    """One line of a panel: a method, its points (None is a gap), and the spread around them, if known."""

    method: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


@dataclass(frozen=True)
class Panel:
    """One plot: lines over a common axis; ``y_include`` are values that the vertical axis shows anyway."""

    title: str
    x_label: str
    series: Sequence[Series]
    x_log: bool = False
    y_log: bool = False
    y_include: Sequence[float] = ()


@dataclass(frozen=True)
class Figure:
    """Panels side by side that share their lines: usually recovery, time, and the share of X read."""

    title: str
    caption: str
    panels: Sequence[Panel]
    kind: ClassVar[str] = "figure"


@dataclass(frozen=True)
class Table:
    """A table; the first column names the rows. ``groups``: heads above columns, and how many each spans."""

    title: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Content | Cell]]
    groups: Sequence[tuple[str, int]] = ()
    words: bool = False  # cells hold sentences, which may be broken
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        spans = sum(span for _, span in self.groups)
        if spans not in (0, len(self.columns)):
            raise ValueError(f"groups span {spans} columns of {len(self.columns)}")

    def cells(self) -> list[list[Cell]]:
        """All cells, as such."""
        return [[c if isinstance(c, Cell) else Cell(c) for c in row] for row in self.rows]


@dataclass(frozen=True)
class Facts:
    """Terms and what they are: machine, versions, seeds."""

    title: str
    items: Mapping[str, Content]
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Note:
    """A remark set apart: data that are generated, a protocol that favours one side."""

    text: str
    kind: ClassVar[str] = "note"


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    title: str
    text: Sequence[str] = ()
    items: Sequence[Figure | Table | Facts | Note] = ()


@dataclass(frozen=True)
class Page:
    """Everything the page says: its headline, words, claims, the few numbers to see first, and the rest."""

    title: str
    summary: Sequence[str] = ()
    warning: str = ""
    highlights: Sequence[tuple[str, str]] = ()
    sections: Sequence[Section] = ()
    footer: str = ""
