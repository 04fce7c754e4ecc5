"""The page about a model: whole, without script or network, and readable in a real browser."""

import csv
import hashlib
import html
import json
import re
from pathlib import Path

import numpy as np
import pytest

from skpursuit._text import one_line
from skpursuit.apps.models.model_file import load_model
from skpursuit.apps.pages.render import format_percent
from tests.apps.browser import Reader, browse, check_self_contained, needs_browser
from tests.apps.tables.six_kinds import daily_sales, german_export, hospital, likert_survey
from tests.support.process import invoke

MESSY = Path(__file__).parents[1] / "tables" / "messy"
TABLES = {"homes.csv": "Sold Price", "churn.csv": "Churn"}


@pytest.fixture(scope="module", params=TABLES)
def page(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "model.html"
    arguments = ["fit", str(MESSY / request.param), "--target", TABLES[request.param]]
    done = invoke(*arguments, "--report", path, "--json")
    return request.param, path.read_text(), json.loads(done.stdout)


def test_it_says_what_was_found_and_how_sure_it_is(page):
    name, text, told = page
    words = html.unescape(text)
    assert f"What “{TABLES[name]}” depends on" in words
    assert "in rows that the model had not seen" in words.replace("30 rows", "rows").replace(
        "40 rows", "rows"
    )
    for effect in told["effects"]:
        assert effect["feature"] in words
        assert effect["low"] <= effect["high"]
        assert 0 <= effect["chosen"] <= 1
    assert ("Predicted against actual classes" in words) == (name == "churn.csv")
    assert "left out: an identifier" in words
    assert told["all_features"] is not None


def test_it_begins_with_plain_sentences_and_lists_every_size(page):
    name, text, told = page
    words = html.unescape(text)
    plain = re.findall(r"<li>([^<]*)</li>", words.partition("<section>")[0])
    assert len(plain) == min(3, len(told["features"]))
    effect, sentence = told["effects"][0], plain[0]
    assert effect["feature"].partition("=")[0] in sentence
    if name == "homes.csv":
        assert ("adds $" if effect["raw"][0] > 0 else "takes off $") in sentence
    else:
        assert f"multiplies the odds of “{told['classes'][-1]}” by " in sentence
    rows = re.findall(r"<tr><th [^>]*>(\d+)(?: \(this model\))?</th>", words[: words.index('id="fit"')])
    assert [int(k) for k in rows] == [size["k"] for size in told["path"]]
    assert f"{told['k']} (this model)" in words


def test_nothing_comes_from_elsewhere_and_nothing_runs(page):
    check_self_contained(page[1])


def test_names_and_cells_cannot_inject_anything(tmp_path):
    evil = "<script>alert(1)</script>"
    rows = [f"{i},{evil if i % 2 else '<b>'},{i % 7},{evil + str(i % 3)}" for i in range(60)]
    (tmp_path / "t.csv").write_text(f"x,{evil},<img src=x onerror=y>,{evil} y\n" + "\n".join(rows))
    out = tmp_path / "p.html"
    invoke("fit", tmp_path / "t.csv", "--target", f"{evil} y", "--report", out)
    tags = [tag for tag, _ in Reader(out.read_text()).tags]
    assert not {"script", "img", "b"} & set(tags)


@needs_browser
@pytest.mark.parametrize("width", [360, 1200])
def test_in_a_browser_nothing_complains_and_nothing_sticks_out(tmp_path, page, width):
    unfolded = page[1].replace("<details>", "<details open>")
    inner, scroll, plots, console = browse(tmp_path, unfolded, width)
    assert console == []
    assert scroll <= inner <= width
    assert len(plots) >= 3
    assert min(plots) > 250


def test_a_model_that_tells_nothing_says_so(tmp_path):
    rng = np.random.default_rng(0)
    lines = [",".join(f"{v:.3f}" for v in row) for row in rng.normal(size=(300, 41))]
    names = [*(f"x{j}" for j in range(40)), "y"]
    (tmp_path / "t.csv").write_text("\n".join([",".join(names), *lines]))
    paths = [str(tmp_path / name) for name in ("t.csv", "m.html")]
    done = invoke("fit", paths[0], "--target", "y", "--report", paths[1], "-k", "3")
    assert "no better than the best constant: nothing that tells 'y' was found" in done.output
    text = (tmp_path / "m.html").read_text()
    assert "The model is no better than the best constant" in text
    assert ">Column</th>" in text
    assert "And 0 more" not in text


MARKUP = (r"$\frac{a}$", "$$", r"b_\$$%", "[bold]c[/bold]", "[/]", "d\x1b[1m", "e\ne", "#010203", "f" * 500)
TITLE = r'$\x$ <b>&amp; #010203 id="x"'


@pytest.mark.parametrize("classes", [False, True])
def test_names_and_labels_are_no_markup(tmp_path, classes):
    X = np.random.default_rng(0).standard_normal((80, len(MARKUP)))
    y = X @ np.arange(1, len(MARKUP) + 1)
    if classes:
        y = np.where(y > 0, f"no {TITLE}", f"yes {TITLE}")
    with open(tmp_path / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([[*MARKUP, TITLE], *([*row, t] for row, t in zip(X.tolist(), y.tolist()))])
    model, page = tmp_path / "m.json", tmp_path / "p.html"
    files = ["--out", str(model), "--report", str(page)]
    done = invoke("fit", tmp_path / "t.csv", "--target", TITLE, *files, catch_exceptions=False)
    assert all(one_line(name) in done.stdout for name in MARKUP)
    found = re.findall(r"<(?:text|h3)[^>]*>([^<]*)</(?:text|h3)>", page.read_text())
    texts = list(map(html.unescape, found))
    label = one_line(f"yes {TITLE}", 24)
    assert (f"predicted chance of “{label}”" if classes else f"Actual “{TITLE}”") in texts


def test_a_figure_that_fails_costs_nobody_the_model(tmp_path, monkeypatch):
    def fail(*args):
        raise RuntimeError("no figure")

    monkeypatch.setattr("skpursuit.apps.models.model_page.model_page", fail)
    files = ["--out", str(tmp_path / "m.json"), "--report", str(tmp_path / "p.html")]
    done = invoke("fit", MESSY / "homes.csv", "--target", "Sold Price", *files, code=1)
    assert str(done.exception) == "no figure"
    assert load_model(tmp_path / "m.json").features


def made(folder, make):
    """Fit one of the six kinds of tables; return its file, its page as text, and what was printed."""
    path, target, _ = make(folder, np.random.default_rng(0))
    done = invoke("fit", path, "--target", target, "--report", folder / "p.html")
    return path, html.unescape((folder / "p.html").read_text()), done.stdout


def cells(page, label):
    """Return the rows of the table of a label below its head, each a list of texts."""
    table = page.partition(f'aria-label="{label}"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.S)
    return [[re.sub(r"<[^>]*>", "", one) for one in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]


def number(text):
    """Read a number as a German page spells it."""
    return float(re.sub(r"[^\d,-]", "", text.replace("\u2212", "-")).replace(",", "."))


def test_a_german_export_is_reported_in_its_units_and_its_numbers(tmp_path):
    path, page, _ = made(tmp_path, german_export)
    assert re.search(r"Each extra m² of “Wohnfläche” adds 2\.[34]\d\d\u202f€\.", page)
    assert re.search(r"Each step up in “Lage” \(from “einfach” to “gut”\) adds \d\d\.\d{3}\u202f€\.", page)
    assert ["Balkon: ja", "“nein”"] in [row[:2] for row in cells(page, "Effects")]
    assert hashlib.sha256(path.read_bytes()).hexdigest() in page
    assert f"<code>skpursuit fit {path} --target Kaufpreis" in page
    head, *terms, said, actual = cells(page, "One prediction")
    assert sum(number(term) for _, term in terms) == pytest.approx(number(said[1]), abs=30)
    prices = [number(line.rpartition(";")[2]) for line in path.read_bytes().decode("cp1252").splitlines()[2:]]
    assert number(actual[1]) == round(prices[int(head[0].split()[1]) - 1])
    assert any(re.match(r"Lage is \d \((einfach|mittel|gut)\) × 27", name) for name, _ in terms)
    worst = cells(page, "Worst rows")[1:]
    assert [number(row[1]) for row in worst] == [round(prices[int(row[0]) - 1]) for row in worst]
    off = [abs(number(row[3])) for row in worst]
    assert (len(off), off) == (10, sorted(off, reverse=True))
    assert all("±" in row[1] for row in cells(page, "Sizes")[1:])


def test_parts_of_dates_have_plain_sentences(tmp_path):
    page = made(tmp_path, daily_sales)[1]
    assert re.search(r"Each day later in the week, from Monday on, of “Date” adds \$6\d\.\d\d\.", page)
    assert re.search(r"“Promo” being “yes” instead of “no” adds \$2\d\d", page)
    assert format_percent(-0.0727) == "\u22127.27\u202f%"


def test_of_a_rare_class_the_first_sentence_says_how_much_is_found(tmp_path):
    _, page, told = made(tmp_path, hospital)
    assert re.search(r"Each extra unit of “Age” multiplies the odds of “yes” by 1\.\d\d", page)
    assert re.search(r"“Smoker” being “yes” instead of “no” multiplies the odds of “yes” by \d", page)
    hits, rows = re.search(r"<p>\s*The model finds (\d+) of the (\d+) rows with “yes”", page).groups()
    assert f"{hits} of the {rows} rows of class 'yes' are found in cross-validation" in told
    table = cells(page, "Thresholds")[1:]
    assert [row[3].split()[0] for row in table if row[0].startswith("50")] == [hits]
    called = [int(row[1]) for row in table]
    assert called == sorted(called, reverse=True)
    assert "Share of right calls" in page


def test_several_classes_and_small_units_have_plain_sentences_too(tmp_path):
    rng = np.random.default_rng(0)
    wage, x = rng.normal(40_000, 9000, 150).round(), rng.normal(size=150).round(2)
    team = np.array(["law", "shop", "desk"])[np.argmax(np.c_[wage / 4000, x + 10, rng.normal(9, 1, 150)], 1)]
    rows = zip(wage.tolist(), x.tolist(), team.tolist())
    (tmp_path / "t.csv").write_text("wage,x,team\n" + "".join(f"{w:.0f},{v},{t}\n" for w, v, t in rows))
    invoke("fit", tmp_path / "t.csv", "--target", "team", "--report", tmp_path / "p.html")
    page = html.unescape((tmp_path / "p.html").read_text())
    assert re.search(
        r"Each extra 1,000 of “wage” multiplies the odds of “law” by [12]\.\d+, against an", page
    )


def test_what_is_suspicious_about_a_table_is_told(tmp_path):
    rng, n, path, page = np.random.default_rng(0), np.arange(120), tmp_path / "t.csv", tmp_path / "p.html"
    x, z, town = rng.normal(50, 9, 120).round(2), rng.normal(size=120).round(3), n % 3
    y = (3 * x + 9 * z + rng.normal(size=120) + 4 * (town == 2)).round(2)
    columns = {"x": x, "z": z, "z2": 2 * z + rng.normal(0, 0.001, 120).round(4), "net": (0.84 * y).round(3)}
    columns |= {"town": np.array(["north", "North", "west"])[town], "gaps": np.where(town, "", z), "y": y}
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values()))]
    path.write_text("\n".join([*lines, lines[7], lines[9], ""]))

    def told(target, *more):
        files = ["fit", str(path), "--target", target, "--report", str(page)]
        return invoke(*files, *more).stdout

    found = told("y")
    assert "possible leak: “net” alone tells 100% of the variance of the target, which is 1.19 times" in found
    assert "leave it out: `--drop net`" in found
    found = told("y", "--drop", "net")
    assert "possible leak" not in found
    for words in (
        "2 rows are the same as other ones, in every column and the target",
        "says nearly the same as “z",
        "“gaps” has no usable value in 81 rows",
        "“town” has levels that differ in case or blanks only, such as “North” and “north”",
    ):
        assert words in found
        assert words in html.unescape(page.read_text())
    assert "`--column town=fold` makes one of them" in found
    assert "differ in case" not in told("y", "--drop", "net", "--column", "town=fold")
    leak = [f"{i % 13},{'ab'[i % 2]},{'left' if i % 2 else 'right'}" for i in range(60)]
    path.write_text("\n".join(["x,code,side", *leak]))
    assert "possible leak: “code” alone tells 100% of the rows" in told("side")


@needs_browser
def test_long_names_are_cut_and_nothing_is_clipped_at_380_pixels(tmp_path):
    assert "Q2: The staff were helpful and took the…”" in made(tmp_path, likert_survey)[1]
    unfolded = (tmp_path / "p.html").read_text().replace("<details>", "<details open>")
    inner, scroll, plots, console = browse(tmp_path, unfolded, 380)
    assert (console, len(plots)) == ([], 4)
    assert scroll <= inner <= 380
