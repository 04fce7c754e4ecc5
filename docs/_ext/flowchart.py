"""Flow charts in pages: blocks marked `mermaid` become pictures that need no network and no script.

Of mermaid's language this knows what the pages use: `flowchart TD`, boxes `id["text<br>more"]`, questions
`id{"text"}`, and arrows `a --> b` with or without a label. Boxes stand in rows by their longest way from a
root."""

import re
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

LETTER, LINE, PAD, GAP, ROW = 6.9, 18, 10, 14, 48
NODE = r"(\w+)(?:\[\"(.*?)\"\]|\{\"(.*?)\"\})?"
EDGE = re.compile(rf"{NODE}\s*-->(?:\|(.*?)\|)?\s*{NODE}$")


@dataclass
class Box:
    """A node of the chart; without lines it only bends a long arrow."""

    lines: list[str] = field(default_factory=list)
    question: bool = False
    rank: int = 0
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self):
        return max((len(line) for line in self.lines), default=0) * LETTER + (2 * PAD if self.lines else 0)

    @property
    def height(self):
        return len(self.lines) * LINE + PAD if self.lines else 0


def read(text):
    """Boxes by name, and arrows as (from, to, label)."""
    boxes, arrows = {}, []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("flowchart"):
            continue
        found = EDGE.match(line)
        parts = [found.groups()[:3], found.groups()[4:]] if found else [re.fullmatch(NODE, line).groups()]
        for name, plain, asked in parts:
            box = boxes.setdefault(name, Box([name]))
            if plain or asked:
                box.lines, box.question = (plain or asked).split("<br>"), bool(asked)
        if found:
            arrows.append((found[1], found[5], found[4] or ""))
    return boxes, arrows


def reaches(arrows, start, end):
    """Whether arrows lead from one box to another."""
    known = {start}
    for _ in arrows:
        known |= {b for a, b, _label in arrows if a in known}
    return end in known


def laid_out(boxes, arrows):
    """Give every box its place; long arrows become chains through boxes without text."""
    back = {(start, end) for start, end, _ in arrows if reaches(arrows, end, start)}
    back = {(start, end) for start, end in back if list(boxes).index(end) < list(boxes).index(start)}
    arrows = [(*((b, a) if (a, b) in back else (a, b)), label) for a, b, label in arrows]
    for _ in boxes:
        for start, end, _label in arrows:
            boxes[end].rank = max(boxes[end].rank, boxes[start].rank + 1)
    chains, steps = [], []
    for start, end, label in arrows:
        chain = [start]
        for rank in range(boxes[start].rank + 1, boxes[end].rank):
            boxes[f"{start}:{end}:{rank}"] = Box(rank=rank)
            chain.append(f"{start}:{end}:{rank}")
        chains.append(([*chain, end], label, (end, start) in back))
        steps += zip([*chain, end], [*chain, end][1:])
    rows = [
        [name for name in boxes if boxes[name].rank == r]
        for r in range(1 + max(b.rank for b in boxes.values()))
    ]
    for sweep in range(8):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            place = {}
            for i, name in enumerate(row):
                near = [a if b == name else b for a, b in steps if name in (a, b)]
                near = [one for one in near if (boxes[one].rank < boxes[name].rank) == (sweep % 2 == 0)]
                place[name] = sum(boxes[one].x for one in near) / len(near) if near else boxes[name].x + i
            row.sort(key=place.get)
            _spread(boxes, row, place)
    y = 4.0
    for row in rows:
        tall = max(boxes[name].height for name in row)
        for name in row:
            boxes[name].y = y + tall / 2
        y += tall + ROW
    left = min(box.x - box.width / 2 for box in boxes.values()) - 6
    for box in boxes.values():
        box.x -= left
    return chains, max(box.x + box.width / 2 for box in boxes.values()) + 6, y - ROW + 4


def _spread(boxes, row, place):
    """Put a row as near as possible to where its boxes want to be, without overlaps."""
    right = None
    for name in row:
        box, wanted = boxes[name], place[name]
        box.x = wanted if right is None else max(wanted, right + GAP + box.width / 2)
        right = box.x + box.width / 2
    shift = sum(place[name] - boxes[name].x for name in row) / len(row)
    for name in row:
        boxes[name].x += shift


def drawn(text, title):
    """The chart as SVG; colours are those of the page."""
    boxes, arrows = read(text)
    chains, width, height = laid_out(boxes, arrows)
    out = []
    for chain, label, backwards in chains:
        points = [boxes[name] for name in chain]
        path = f"M {points[0].x:.0f} {points[0].y + points[0].height / 2:.0f}"
        for a, b in pairwise(points):
            top, low = a.y + a.height / 2, b.y - b.height / 2
            path += f" C {a.x:.0f} {(top + low) / 2:.0f} {b.x:.0f} {(top + low) / 2:.0f} {b.x:.0f} {low:.0f}"
        at = "start" if backwards else "end"
        out.append(f'<path class="arrow" d="{path}" marker-{at}="url(#tip)"/>')
        if label:
            a, b = points[0], points[1]
            x, y = a.x + 0.7 * (b.x - a.x), (a.y + a.height / 2 + b.y - b.height / 2) / 2 + 12
            out.append(f'<text class="said" x="{x:.0f}" y="{y:.0f}">{escape(label)}</text>')
    for box in (box for box in boxes.values() if box.lines):
        left, top, kind = box.x - box.width / 2, box.y - box.height / 2, "asked" if box.question else "box"
        out.append(
            f'<rect class="{kind}" x="{left:.0f}" y="{top:.0f}" width="{box.width:.0f}" '
            f'height="{box.height:.0f}" rx="{14 if box.question else 5}"/>'
        )
        for i, line in enumerate(box.lines):
            y = box.y + (i - (len(box.lines) - 1) / 2) * LINE + 5
            out.append(f'<text x="{box.x:.0f}" y="{y:.0f}">{escape(line)}</text>')
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    tip += 'orient="auto-start-reverse">'
    tip += '<path d="M 0 0 L 8 4 L 0 8 z"/></marker>'
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    size += f' style="min-width: {0.8 * width:.0f}px"'
    return (
        f'<div class="chart"><svg role="img" aria-label="{escape(title)}" {size}><defs>{tip}</defs>'
        f"{''.join(out)}</svg></div>"
    )


class Chart(SphinxDirective):
    """A block ```mermaid of a page."""

    has_content = True

    def run(self):
        text = "\n".join(self.content)
        names = " / ".join(box.lines[0] for box in read(text)[0].values() if box.lines)
        return [nodes.raw("", drawn(text, "Flow chart: " + names), format="html")]


def setup(app):
    app.add_directive("mermaid", Chart)
    app.connect("config-inited", lambda app, config: config.myst_fence_as_directive.add("mermaid"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
