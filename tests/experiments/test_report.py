"""The page: everything on it, nothing from elsewhere, and fit for a phone in a real browser."""

import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from page_sample import sample_page
from tests.browser import browse, needs_browser

from skpursuit.experiments.figures import describe, draw, look
from skpursuit.experiments.figures import render_page as render
from skpursuit.experiments.methods import LABELS
from skpursuit.experiments.parts import Cell, Figure, Page, Panel, Section, Series, Table
from skpursuit.pages import number

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
    assert all(" against k, atoms. " in attrs["aria-label"] for attrs in plots)
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
    assert not re.search(r"url\((?!#)", html)


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
            hostile,
            [(hostile, hostile)],
            [section, Section("f", [], [Figure(hostile, hostile, [panel])])],
        )
    )
    assert Reader(out).all("script") == []
    assert "<code>x &lt; y</code>" in out


def test_groups_must_span_the_columns():
    with pytest.raises(ValueError, match="groups span 2 columns of 3"):
        render(Page("p", sections=[Section("s", [], [Table("t", "", "abc", [], [("g", 2)])])]))


def drawn(panel):
    return ET.fromstring(str(draw(panel, "k")))


@pytest.mark.parametrize(
    "series", [[], [Series("a", [], [])], [Series("a", [1], [math.nan])], [Series("a", [2, 3], [0, 0])]]
)
def test_panels_without_much_to_show(series):
    assert drawn(Panel("t", "x", series)).tag == "svg"
    assert drawn(Panel("t", "x", series, x_log=True, y_log=True)).tag == "svg"


def test_lines_end_in_their_names_and_colours_belong_to_methods():
    panel = Panel(
        "t", "x", [Series("halving", [1, 2, 3], [1, None, 2], [1, 1, 1], [2, 2, 2]), Series("q", [1], [0.5])]
    )
    svg = drawn(panel)
    texts = [text.text for text in svg.iter("text")]
    assert {"halving", "q"} <= set(texts)
    assert look("halving") == look("halving") != look("greedy")
    assert len({look(method) for method in LABELS}) == len(LABELS)
    assert look("mine")[0] not in {look(method)[0] for method in LABELS}


def test_figures_take_their_colours_from_the_page():
    text = str(draw(Panel("t", "x", [Series("exact", [1, 2], [1, 2])]), "k"))
    assert "var(--c0)" in text
    assert "http:" not in text
    assert "<metadata" not in text


def test_words_for_those_who_do_not_see_the_lines():
    panel = Panel("t", "x", [Series("a", [1, 2], [0.5, 0.25]), Series("b", [3], [7])])
    assert describe(panel) == "a: 0.500 at 1, 0.250 at 2. b: 7 at 3."
    assert describe(Panel("t", "x", [])) == "No data."


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"),
        (math.nan, "–"),
        (0.5, "0.500"),
        (1.0, "1.00"),
        (0.0, "0"),
        (3, "3"),
        (123.456, "123"),
        (12345.6, "12\u202f346"),
        (-2, "\u22122"),
        (1e-5, "1e\u221205"),
        (True, "yes"),
        ("a", "a"),
    ],
)
def test_numbers_for_people(value, words):
    assert number(value) == words


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
