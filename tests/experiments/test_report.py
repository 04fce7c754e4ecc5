"""The page: everything on it, nothing from elsewhere, and fit for a phone in a real browser."""

import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from page_sample import METHODS, sample_page
from tests.browser import browse, needs_browser

from skpursuit.experiments.report import Cell, Figure, Page, Section, Table, render
from skpursuit.experiments.scales import make_scale, number
from skpursuit.experiments.svg import HEIGHT, N_STYLES, WIDTH, Panel, Series, describe, draw, marker

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Reader(HTMLParser):
    """Checks that tags are closed in order, and keeps what the tests look at."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def html():
    return render(sample_page())


@pytest.fixture(scope="module")
def page(html):
    return Reader(html)


def test_every_figure_has_three_described_panels_a_caption_and_its_numbers(page):
    assert len(page.all("figure")) == len(page.all("figcaption")) == len(page.all("details")) == 1
    plots = [attrs for attrs in page.all("svg") if attrs.get("role") == "img"]
    assert len(plots) == 3
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    for attrs in plots:
        assert set(attrs["aria-labelledby"].split()) <= ids
    assert len(page.all("table")) == 4
    assert "".join(page.text).count("certified") >= 5


def test_ids_are_unique_and_links_lead_somewhere(page):
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"][1:] for attrs in page.all("a")} <= set(ids)


def test_nothing_comes_from_elsewhere_and_nothing_runs(html, page):
    assert page.all("script") == []
    addresses = [v for _, attrs in page.tags for k, v in attrs.items() if k in ("src", "href")]
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert "http:" not in html
    assert "https:" not in html
    assert "@import" not in html
    assert "url(" not in html


def test_texts_are_escaped_and_backticks_are_code():
    hostile = "<script>alert(1)</script> & `x < y`"
    section = Section(
        hostile, [hostile], [Table(hostile, hostile, [hostile], [[hostile], [Cell(hostile, note='"')]])]
    )
    panel = Panel(hostile, hostile, [Series(hostile, [1], [1])])
    out = render(
        Page(
            hostile,
            [hostile],
            [(hostile, hostile)],
            [section, Section("f", [], [Figure(hostile, hostile, [panel])])],
        )
    )
    assert Reader(out).all("script") == []
    assert "<code>x &lt; y</code>" in out


def test_a_label_looks_the_same_in_every_figure():
    first = Panel("a", "x", [Series("one", [1], [1]), Series("two", [1], [2])])
    second = Panel("b", "x", [Series("two", [1], [2])])
    figures = [Figure("f", "", [first]), Figure("g", "", [second])]
    out = render(Page("p", sections=[Section("s", [], figures)]))
    legends = re.findall(r'<li class="k(\d)">.*?</svg>(\w+)</li>', out)
    assert legends == [("0", "one"), ("1", "two"), ("1", "two")]


def test_groups_must_span_the_columns():
    with pytest.raises(ValueError, match="groups span 2 columns of 3"):
        render(Page("p", sections=[Section("s", [], [Table("t", "", "abc", [], [("g", 2)])])]))


def drawn(panel):
    return ET.fromstring(draw(panel, {series.label: i for i, series in enumerate(panel.series)}, "k"))


def places(svg):
    numbers = [
        (float(x), float(y))
        for path in svg.iter("path")
        for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d"))
    ]
    assert numbers
    return numbers


@pytest.mark.parametrize("log", [False, True])
def test_lines_stay_inside_and_points_keep_their_order(log):
    panel = Panel("t", "x", [Series("a", [1, 10, 100], [0.001, 5, 1000])], x_log=log, y_log=log)
    svg = drawn(panel)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places(svg))
    line = [
        tuple(map(float, point.split()))
        for path in svg.iter("path")
        if path.get("class") == "line"
        for point in path.get("d")[1:].split("L")
    ]
    assert len(line) == 3
    assert line[0][0] < line[1][0] < line[2][0]
    assert line[0][1] > line[1][1] > line[2][1]
    if log:
        assert line[1][0] - line[0][0] == pytest.approx(line[2][0] - line[1][0], abs=0.2)


def test_gaps_break_the_line_and_what_a_log_axis_cannot_show_is_left_out():
    svg = drawn(
        Panel(
            "t", "x", [Series("a", [1, 2, 3, 4], [1, None, 0.0, 2], [1, 1, 1, 1], [2, 2, 2, 2])], y_log=True
        )
    )
    line = next(path for path in svg.iter("path") if path.get("class") == "line")
    assert line.get("d").count("M") == 2
    assert len(list(svg.iter("circle"))) == 2


@pytest.mark.parametrize(
    "series", [[], [Series("a", [], [])], [Series("a", [1], [math.nan])], [Series("a", [2, 3], [0, 0])]]
)
def test_panels_without_much_to_show(series):
    assert drawn(Panel("t", "x", series)).tag == "svg"
    assert drawn(Panel("t", "x", series, x_log=True, y_log=True)).tag == "svg"


def test_markers_differ_so_that_colour_is_not_needed():
    assert len({marker(style, 10, 10) for style in range(N_STYLES)}) == N_STYLES


def test_words_for_those_who_do_not_see_the_lines():
    panel = Panel("t", "x", [Series("a", [1, 2], [0.5, 0.25]), Series("b", [3], [7])])
    assert describe(panel) == "a: 0.5 at 1, 0.25 at 2. b: 7 at 3."
    assert describe(Panel("t", "x", [])) == "No data."


@pytest.mark.parametrize(
    ("value", "plain", "padded"),
    [
        (None, "–", "–"),
        (math.nan, "–", "–"),
        (0.5, "0.5", "0.500"),
        (1.0, "1", "1.00"),
        (0.0, "0", "0"),
        (3, "3", "3"),
        (123.456, "123", "123"),
        (12345.6, "12\u202f346", "12\u202f346"),
        (-2, "\u22122", "\u22122"),
        (1e-5, "1e\u221205", "1e\u221205"),
        (True, "yes", "yes"),
    ],
)
def test_numbers_for_people(value, plain, padded):
    assert number(value) == plain
    assert number(value, pad=True) == padded


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.2, 0.3), (-5, 5000), (1e-6, 3e-6), (97, 100)])
@pytest.mark.parametrize("log", [False, True])
def test_axes_have_a_few_ticks_inside(low, high, log):
    scale = make_scale([low, high], 0, 100, log)
    assert 2 <= len(scale.ticks) <= 11
    assert all(0 <= scale(tick) <= 100 for tick in scale.ticks)


@needs_browser
@pytest.mark.parametrize("width", [360, 1200])
def test_in_a_browser_figures_show_nothing_complains_and_nothing_sticks_out(tmp_path, html, width):
    unfolded = html.replace("<details>", "<details open>")
    inner, scroll, plots, console = browse(tmp_path, unfolded, width)
    assert console == []
    assert scroll <= inner <= width
    assert len(plots) == 3
    assert min(plots) > (250 if width == 360 else 300)


@needs_browser
def test_the_browser_would_have_noticed(tmp_path):
    bad = '<body><div style="width:900px">x</div><script>console.error("no")</script>'
    inner, scroll, plots, console = browse(tmp_path, bad, 360)
    assert scroll > inner
    assert plots == []
    assert len(console) == 1


@needs_browser
def test_the_browser_holds_the_page_to_its_promise_of_no_network(tmp_path, html):
    spoiled = html.replace("</main>", '<img src="http://127.0.0.1:9/x.png" alt=""></main>')
    assert any("Content Security Policy" in line for line in browse(tmp_path, spoiled, 360)[3])


def test_the_sample_uses_every_look():
    assert len(METHODS) == N_STYLES
