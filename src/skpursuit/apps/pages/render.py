"""Self-contained HTML pages and terminal texts: Jinja2 templates, with matplotlib figures as inline SVG.

Figures are drawn in placeholder colours that become CSS variables, so one figure serves light and dark
screens and paper. Pages use no script and no network.
"""

from __future__ import annotations

import io
import math
import re
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup, escape

from skpursuit._text import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, SOFT, RULE, CARD, ACCENT, GOOD, BAD = (
    "#010203", "#040506", "#070809", "#0a0b0c", "#0d0e0f", "#101112", "#131415",
)  # fmt: skip
#: Stand-ins of the colours of lines; style sheets call them --c0, --c1, ...
COLOURS = tuple(f"#20{i:02x}30" for i in range(24))
_NAMES = ("ink", "soft", "rule", "card", "accent", "good", "bad")
_VARIABLES = dict(zip((INK, SOFT, RULE, CARD, ACCENT, GOOD, BAD), _NAMES))
_VARIABLES |= {colour: f"c{i}" for i, colour in enumerate(COLOURS)}
_RC_PARAMS: Any = {
    "text.color": INK, "axes.labelcolor": SOFT, "xtick.color": SOFT, "ytick.color": SOFT,
    "axes.edgecolor": SOFT, "axes.facecolor": "none", "figure.facecolor": "none", "grid.color": RULE,
    "font.size": 10, "axes.grid": True, "axes.grid.axis": "y", "axes.spines.top": False,
    "axes.spines.right": False, "axes.spines.left": False, "ytick.left": False, "axes.axisbelow": True,
}  # fmt: skip


def render(template: str, **values: Any) -> str:
    """Fill in a template of this package; whatever is filled in is escaped, but for figures."""
    css = files(__package__).joinpath("templates/page.css").read_text(encoding="utf-8")
    page = render_text(template, css=Markup(css), **values)
    return re.sub(r'<table(?! class="confusion").*?</table>', _labelled, page, flags=re.S)


def _labelled(table: re.Match[str]) -> str:
    """Return a table whose cells name their columns, for screens on which rows are no lines."""
    head, _, body = table[0].partition("</thead>")
    groups = re.findall(r'<t[hd][^>]* colspan="(\d+)"[^>]*>(.*?)</t', head)
    names = [name for span, name in groups for _ in range(int(span))]
    heads = re.findall(r'<th scope="col">(.*?)</th>', head)
    labels = [f"{name}, {one}" if name else one for name, one in zip(names or [""] * len(heads), heads)]

    def row(cells: re.Match[str]) -> str:
        rest = iter(labels)
        return re.sub("<(td|th)", lambda tag: f'{tag[0]} data-label="{next(rest)}"', cells[0])

    body = re.sub(r"<tr>.*?</tr>", row, body, flags=re.S)
    return f"{head.replace('<table', '<table data-rows', 1)}</thead>{body}"


def render_text(template: str, marks: str = "\u202f.", **values: object) -> str:
    """Fill in a template; only in HTML is anything escaped. See `format_number` for ``marks``."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=template.endswith(".html"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    numbers = {"number": partial(format_number, marks=marks), "percent": partial(format_percent, marks=marks)}
    environment.filters |= {**numbers, "inline_code": inline_code, "quoted": quoted, "one_line": one_line}
    return environment.get_template(template).render(values) + "\n"


def quoted(name: object, limit: int = 40) -> str:
    """Return a name in a sentence: cut if it is long, and in quotes."""
    return f"“{one_line(name, limit)}”"


def inline_code(text: str) -> Markup:
    """Escape a text; what stands between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def new_figure(width: float, height: float, panels: int = 1) -> tuple[Figure, Any]:
    """Return a figure of some inches and its axes, in the looks of the page."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_RC_PARAMS):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(1, panels, squeeze=False)[0]


def to_svg(figure: Figure, name: str, described: str) -> Markup:
    """Return a figure as an inline SVG element with a title; ids are salted with the name."""
    import matplotlib

    buffer = io.StringIO()
    how: Any = {"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif"}
    with matplotlib.rc_context(how):
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = buffer.getvalue()
    head, _, rest = text[text.index("<svg") :].partition(">")
    view = re.search(r'viewBox="[^"]*"', head)
    rest = re.sub(r"<metadata>.*?</metadata>", "", rest, flags=re.S).replace("xlink:href", "href")
    rest = re.sub(r"<[^>]*>", lambda tag: _restyled(tag[0], name), rest)  # and no text between tags
    rest = re.sub(r"\n\s+", "\n", rest)
    return Markup(f'<svg role="img" aria-label="{escape(described)}" {view[0] if view else ""}>{rest}')


def _restyled(tag: str, name: str) -> str:
    """Return a tag of SVG with salted ids, the font of the page and its colours."""
    tag = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", tag)
    tag = re.sub(r"font: [^;\"]*?(\d+)px[^;\"]*", r"font-size: \1px", tag)
    tag = re.sub(r" font-family: [^;\"]*;", "", tag)
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)  # hundredths of a point are seen by nobody
    for colour, variable in _VARIABLES.items():
        tag = tag.replace(colour, f"var(--{variable})")
    return tag


def format_number(value: float | str | None, digits: int = 3, marks: str = "\u202f.") -> str:
    """Spell a number for people: a few digits, a dash for nothing.

    ``marks`` are those between thousands and before decimals.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    size = abs(value)
    if isinstance(value, int) and size < 1e7:
        text = f"{value:,}"
    elif size >= 10**digits and size < 1e9:
        text = f"{value:,.0f}"
    elif 1e-3 <= size < 10**digits:
        text = f"{value:#,.{digits}g}".rstrip(".")
    else:
        text = f"{value:.{digits - 1}g}" if value else "0"
    return text.translate(str.maketrans(",.-", f"{marks}\u2212"))


def format_percent(share: float, marks: str = "\u202f.") -> str:
    """Spell a share as percent; what is nearly all is not all."""
    text = f"{100 * share:.3g}\u202f%" if not 0.9995 <= share < 1 else ">\u202f99.9\u202f%"
    return text.translate(str.maketrans(".-", f"{marks[1]}\u2212"))
