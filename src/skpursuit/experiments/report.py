"""One self-contained page from plain data: figures, tables and words; no script, no network.

Every figure comes with its numbers in a table, every line with a marker of its own shape, and every plot with
a description, so that the page can be read on a phone, on paper, without colours and without eyes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from .scales import number
from .svg import N_STYLES, Panel, draw, swatch

Content = str | int | float | None


@dataclass(frozen=True)
class Cell:
    """A table cell that is worth a look: ``tone`` is "good" or "bad", and ``note`` says it in words."""

    content: Content
    tone: str = ""
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """Panels side by side that share their lines: usually recovery, time, and the share of X read."""

    title: str
    caption: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Table:
    """A table; the first column names the rows.

    Attributes
    ----------
    title, caption : str
        What it shows.
    columns : sequence of str
        Heads of the columns.
    rows : sequence of sequences
        Strings, numbers, None for what is not known, or `Cell`.
    groups : sequence of (str, int)
        Heads above the columns and how many columns each spans; they add up to all columns.
    """

    title: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Content | Cell]]
    groups: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True)
class Facts:
    """Terms and what they are: machine, versions, seeds."""

    title: str
    items: Mapping[str, Content]


@dataclass(frozen=True)
class Note:
    """A remark set apart: data that are generated, a protocol that favours one side."""

    text: str


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    title: str
    text: Sequence[str] = ()
    items: Sequence[Figure | Table | Facts | Note] = ()


@dataclass(frozen=True)
class Page:
    """Everything the page says.

    Attributes
    ----------
    title : str
        Its headline.
    summary : sequence of str
        Paragraphs below it; `` `code` `` is set as code.
    highlights : sequence of (value, label)
        The few numbers to see first.
    sections : sequence of Section
        The rest.
    footer : str
        The last line.
    """

    title: str
    summary: Sequence[str] = ()
    highlights: Sequence[tuple[str, str]] = ()
    sections: Sequence[Section] = ()
    footer: str = ""


def render(page: Page) -> str:
    """Return the page as one HTML document."""
    styles = _styles(page)
    links = "".join(f'<li><a href="#s{i}">{escape(s.title)}</a></li>' for i, s in enumerate(page.sections))
    tiles = "".join(
        f'<li><span class="value">{escape(value)}</span><span class="label">{_rich(label)}</span></li>'
        for value, label in page.highlights
    )
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # The page needs nothing from anywhere, and the browser is told to hold it to that.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; ',
        "style-src 'unsafe-inline'; img-src data:\">",
        f'<link rel="icon" href="data:,"><title>{escape(page.title)}</title><style>{_css()}</style></head>',
        '<body><a class="skip" href="#content">Skip to the content</a>',
        f'<header><h1>{escape(page.title)}</h1><div class="lead">{_paragraphs(page.summary)}</div>',
        f'<ul class="tiles">{tiles}</ul>' if tiles else "",
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header><main id="content">',
        *(_section(section, f"s{i}", styles) for i, section in enumerate(page.sections)),
        f"</main><footer>{_rich(page.footer)}</footer></body></html>\n",
    ]
    return "".join(parts)


def _styles(page: Page) -> dict[str, int]:
    """Give every label one look for the whole page, in order of appearance."""
    figures = [item for section in page.sections for item in section.items if isinstance(item, Figure)]
    labels = [series.label for figure in figures for panel in figure.panels for series in panel.series]
    return {label: i % N_STYLES for i, label in enumerate(dict.fromkeys(labels))}


def _css() -> str:
    text = files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    # Pointing at a legend entry fades the other lines of that figure.
    hover = "".join(
        f"figure:has(.k{i}:hover) .panels .s:not(.s{i}) {{ opacity: .12; }}\n" for i in range(N_STYLES)
    )
    return text.replace("/*HOVER*/", hover)


def _section(section: Section, key: str, styles: Mapping[str, int]) -> str:
    items = "".join(_item(item, f"{key}-{i}", styles) for i, item in enumerate(section.items))
    head = f'<h2 id="{key}">{escape(section.title)}</h2>'
    return f'<section aria-labelledby="{key}">{head}{_paragraphs(section.text)}{items}</section>'


def _item(item: Figure | Table | Facts | Note, key: str, styles: Mapping[str, int]) -> str:
    match item:
        case Figure():
            return _figure(item, key, styles)
        case Table():
            return f'<div class="block">{_heading(item, key)}{_table(item)}</div>'
        case Facts():
            terms = "".join(f"<dt>{escape(k)}</dt><dd>{_content(v)}</dd>" for k, v in item.items.items())
            return f'<div class="block"><h3>{escape(item.title)}</h3><dl>{terms}</dl></div>'
        case Note():
            return f'<p class="note">{_rich(item.text)}</p>'


def _heading(item: Figure | Table, key: str) -> str:
    caption = f'<p class="caption">{_rich(item.caption)}</p>' if item.caption else ""
    return f'<h3 id="{key}-h">{escape(item.title)}</h3>{caption}'


def _figure(figure: Figure, key: str, styles: Mapping[str, int]) -> str:
    labels = dict.fromkeys(series.label for panel in figure.panels for series in panel.series)
    legend = "".join(
        f'<li class="k{styles[name]}">{swatch(styles[name])}{escape(name)}</li>' for name in labels
    )
    panels = "".join(
        f'<div><h4 aria-hidden="true">{escape(panel.title)}</h4>{draw(panel, styles, f"{key}-{i}")}</div>'
        for i, panel in enumerate(figure.panels)
    )
    data = "".join(f"<h4>{escape(table.title)}</h4>{_table(table)}" for table in _data_tables(figure))
    return (
        f'<figure aria-labelledby="{key}-h"><figcaption>{_heading(figure, key)}</figcaption>'
        f'<ul class="legend" aria-label="Lines">{legend}</ul><div class="panels">{panels}</div>'
        f"<details><summary>The numbers of this figure</summary>{data}</details></figure>"
    )


def _data_tables(figure: Figure) -> list[Table]:
    """Return the numbers behind each panel: one row per line, one column per x."""
    return [_data_table(panel) for panel in figure.panels]


def _data_table(panel: Panel) -> Table:
    xs = sorted({x for line in panel.series for x in line.x})
    rows = [[line.label, *map(dict(zip(line.x, line.y)).get, xs)] for line in panel.series]
    return Table(panel.title, "", [panel.x_label, *map(number, xs)], rows)


def _table(table: Table) -> str:
    edges = _group_edges(table)
    label = escape(table.title, quote=True)
    body = "".join(f"<tr>{_row(row, edges)}</tr>" for row in table.rows)
    head = "".join(
        f'<th scope="col"{_edge(i in edges)}>{escape(name)}</th>' for i, name in enumerate(table.columns)
    )
    groups = "".join(
        f'<th scope="colgroup" colspan="{span}"{_edge(bool(name))}>{escape(name)}</th>'
        if name
        else f'<td colspan="{span}"></td>'
        for name, span in table.groups
    )
    top = f"<tr>{groups}</tr>" if groups else ""
    # The frame scrolls, not the page; it takes the focus so that the keyboard can scroll it too.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table aria-label="{label}">'
        f"<thead>{top}<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _group_edges(table: Table) -> set[int]:
    """Return the columns that begin a group."""
    spans = [span for _, span in table.groups]
    if spans and sum(spans) != len(table.columns):
        raise ValueError(f"groups span {sum(spans)} columns of {len(table.columns)}")
    return {sum(spans[:i]) for i, (name, _) in enumerate(table.groups) if name}


def _edge(begins: bool) -> str:
    return ' class="group"' if begins else ""


def _row(row: Sequence[Content | Cell], edges: set[int]) -> str:
    cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
    first = f'<th scope="row">{_content(cells[0].content)}</th>'
    return first + "".join(_cell(cell, i in edges) for i, cell in enumerate(cells[1:], start=1))


def _cell(cell: Cell, begins: bool) -> str:
    classes = " ".join(name for name in ("group" if begins else "", cell.tone) if name)
    shown = f' class="{classes}"' if classes else ""
    title = f' title="{escape(cell.note, quote=True)}"' if cell.note else ""
    return f"<td{shown}{title}>{_content(cell.content)}</td>"


def _content(value: Content) -> str:
    return _rich(value) if isinstance(value, str) else number(value, pad=True)


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{_rich(text)}</p>" for text in texts)


def _rich(text: str) -> str:
    """Escape a text; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
