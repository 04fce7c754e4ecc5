"""The page: everything on it, nothing from elsewhere, and fit for a phone in a real browser."""

import math
import re
import xml.etree.ElementTree as ET

import pytest
from tests.apps.browser import Reader, browse, check_self_contained, needs_browser

from skpursuit.apps.pages.render import format_number
from skpursuit.apps.studies.methods import METHODS, RESULT_COLUMNS
from skpursuit.apps.studies.report import Panel, describe, draw_panel, line_style, render_page
from skpursuit.apps.studies.results import ResultsFile
from skpursuit.apps.studies.statistics import Curve

HOSTILE = "<script>alert(1)</script> & `x < y`"
SET = {"stability": 0.02, "budget": 0.2}


def toy_rows(methods):
    for i, method in enumerate(methods):
        for k in (10, 50, 100, 200, 400):
            for trial in (0, 1):
                place = {"n": 500, "d": 1000, "k": k, "trial": trial, "snr": 3.0, "method": method, **SET}
                found = {"f_measure": max(0.0, 1 - 0.001 * i * k / 4), "same_atoms": 1.0, "iterations": k}
                yield {**place, **found, "seconds": 1e-4 * (1 + i) * k + trial, "share_read": 1 / (1 + i)}


def write(folder, name, rows, settings=None):
    about = {"processor": HOSTILE, "numpy": "2.0", "a long word": "x" * 120}
    columns = tuple(RESULT_COLUMNS.get(name, RESULT_COLUMNS["toy"]))
    with ResultsFile(folder / f"{name}.jsonl", columns, settings or {"sizes": "small"}, about) as store:
        for i, row in enumerate(rows):
            store.append(f"c{i}", [row])


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    write(folder, "omp", toy_rows((*METHODS, "mine", HOSTILE)))
    heard = {"first": 0, "count": 8, "atoms": 16, "error": 0.25, "error_square": 0.07, "seconds": 0.5}
    rows = [{**heard, "method": method} for method in (*METHODS, HOSTILE)]
    write(folder, "audio", rows, {"recording": f"generated {HOSTILE}"})
    read = {"collection": HOSTILE, "split": 0, "n_train": 9, "d": 7, "k": 10, "accuracy": 0.5, "seconds": 2.0}
    rows = [{**read, "method": method} for method in (*METHODS, HOSTILE)]
    write(folder, "text", rows, {"generated": True})
    course = {"n": 9, "d": 5, "k": 1, "trial": 0, "rank": 1, "read": 0.1}
    rows = [
        {**course, "method": method, "rows_read": rows, "left": 5, "winner": 0.5, "second": 0.1}
        for method in ("halving", HOSTILE)
        for rows in (1.0, 4.5, 9.0)
    ]
    write(folder, "race", rows)
    return render_page(folder)[0]


@pytest.fixture(scope="module")
def page(html):
    return Reader(html)


def test_every_figure_has_described_panels_a_caption_and_its_numbers(page):
    assert len(page.all("figure")) == len(page.all("figcaption")) == len(page.all("details")) == 2
    plots = [attrs for attrs in page.all("svg") if attrs.get("role") == "img"]
    assert len(plots) == 3 + 2
    assert sum(" against k, atoms. " in attrs["aria-label"] for attrs in plots) == 3
    assert sum(" against rows read. " in attrs["aria-label"] for attrs in plots) == 2
    words = "".join(page.text)
    assert words.count("certified") >= 5
    assert "halving, energy order: finds the winner, reads 10% of X" in words


def test_rows_of_tables_are_as_wide_as_their_heads(html):
    tables = re.findall(r"<table.*?</table>", html, re.S)
    assert len(tables) == 1 + 2 + 3 + 1 + 1 + 1 + 1
    for table in tables:
        widths = set()
        for row in re.findall(r"<tr>.*?</tr>", table, re.S):
            spans = sum(int(span) - 1 for span in re.findall(r'colspan="(\d+)"', row))
            widths.add(len(re.findall("<t[hd]", row)) + spans)
        assert len(widths) == 1


def test_ids_are_unique_links_lead_somewhere_and_nothing_comes_from_elsewhere(html, page):
    check_self_contained(html)
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    assert {attrs["href"][1:] for attrs in page.all("a")} <= ids


def test_texts_are_escaped_wherever_they_come_from(html, page):
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt; &amp; ") > 10
    assert "<script" not in html
    assert page.all("script") == []
    assert "<code>x &lt; y</code>" in html  # of the machine


def drawn(panel):
    return ET.fromstring(str(draw_panel(panel, "k")))


@pytest.mark.parametrize(
    "lines", [[], [Curve("a", [], [])], [Curve("a", [1], [math.nan])], [Curve("a", [2, 3], [0, 0])]]
)
def test_panels_without_much_to_show(lines):
    assert drawn(Panel("t", "x", lines)).tag == "svg"
    assert drawn(Panel("t", "x", lines, x_log=True, y_log=True)).tag == "svg"


def test_lines_end_in_their_names_and_colours_belong_to_methods():
    gap = Curve("halving", [1, 2, 3], [1, math.nan, 2], [1, 1, 1], [2, 2, 2])
    svg = drawn(Panel("t", "x", [gap, Curve("q", [1], [0.5])]))
    texts = [text.text for text in svg.iter("text")]
    assert {"halving", "q"} <= set(texts)
    assert line_style("halving") == line_style("halving") != line_style("greedy")
    assert len({line_style(method) for method in METHODS}) == len(METHODS)
    assert line_style("mine")[0] not in {line_style(method)[0] for method in METHODS}
    text = str(draw_panel(Panel("t", "x", [Curve("exact", [1, 2], [1, 2])]), "k"))  # of the page's colours
    assert "var(--c0)" in text
    assert "http:" not in text
    assert "<metadata" not in text


def test_words_for_those_who_do_not_see_the_lines():
    panel = Panel("t", "x", [Curve("a", [1, 2], [0.5, 0.25]), Curve("b", [3], [7])])
    assert describe(panel) == "a: 0.500 at 1, 0.250 at 2. b: 7 at 3."
    assert describe(Panel("t", "x", [])) == "No data."


def test_numbers_for_people():
    spelled = {
        None: "–",
        math.nan: "–",
        0.5: "0.500",
        2.0: "2.00",
        0.0: "0",
        3: "3",
        123.456: "123",
        "a": "a",
    }
    spelled |= {12345.6: "12\u202f346", -2: "\u22122", 1e-5: "1e\u221205", True: "yes"}
    assert {value: format_number(value) for value in spelled} == spelled
    assert format_number(1234.5, 5, ".,") == "1.234,5"


@needs_browser
@pytest.mark.parametrize("width", [360, 1200])
def test_in_a_browser_figures_show_nothing_complains_and_nothing_sticks_out(tmp_path, html, width):
    unfolded = html.replace("<details>", "<details open>")
    inner, scroll, plots, console = browse(tmp_path, unfolded, width)
    assert console == []
    assert scroll <= inner <= width
    assert len(plots) == 5
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
