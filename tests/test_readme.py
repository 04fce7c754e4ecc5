"""The examples of README and site run and print what they say; what the documents name is there."""

import builtins
import contextlib
import inspect
import io
import re
import sys
from pathlib import Path

import pytest

import skpursuit

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"
FILES = (README, ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md"), *DOCS.glob("[!_]*/*.md"))
PAGES = [str(path.relative_to(ROOT)) for path in FILES]
PYTHON = re.compile(r"```python\n(.*?)```\n(?:\n```\n(.*?)```\n)?", re.S)  # and what it prints
EXAMPLES = [page for page in PAGES if PYTHON.search((ROOT / page).read_text()) and "extending" not in page]
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.S)


def run_examples(page):
    """Run the blocks of a page in one namespace."""
    names: dict = {"__name__": page}
    for code, expected in PYTHON.findall((ROOT / page).read_text(encoding="utf-8")):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, page, "exec"), names)
        assert out.getvalue() == expected, code


def test_examples_print_what_they_say_after_a_plain_install(tmp_path, monkeypatch):
    extras = ("click", "dask", "jinja2", "matplotlib", "msgspec", "pandas", "polars", "pyarrow", "soundfile")

    def plain(name, *more, whole=builtins.__import__, **given):
        if name.split(".")[0] in extras:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return whole(name, *more, **given)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(builtins, "__import__", plain)
    run_examples(README.name)
    assert len(PYTHON.findall(README.read_text())) >= 3


@pytest.mark.parametrize("page", [page for page in EXAMPLES if page != README.name])
def test_examples_of_the_pages_print_what_they_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    try:
        run_examples(page)
    except ModuleNotFoundError as missing:  # of the projects that this one works with
        pytest.skip(f"{missing.name} is not installed")


sys.path.insert(0, str(DOCS))
import figures  # noqa: E402

UNIT = r"(?:x\b| ?%| (?:times|ms|s|seconds?|minutes|points|[KMG]B)\b)"
MEASURED = re.compile(rf"(?<![\w.\"^/-])\d*[\d.,]*\d{UNIT}|(?<![\w./v-])\d*\.\d+(?![\w.])")
#: Numbers in sentences that look measured and are not: settings, limits, arithmetic and versions.
GIVEN = {
    "README.md": "3.11",
    "CONTRIBUTING.md": "3.11, 25.1",
    "docs/dask.md": "40 %, 256 MB, 32 MB, 2 GB, 80 MB, 1913 MB, 30 s, 120 s, 10 s, 655 MB, 100 GB",
    "docs/default_models.md": "8 %, 0.35 %",
    "docs/guarantees.md": "0.5, 0.9, 0.16, 4.2, 0.85, 0.001, 1 %, 0.01 %",  # some are printed by its example
    "docs/large_data.md": "2 GB, 2 %, 12 GB, 1.5, 3 GB, 100 GB",
    "docs/model_choice.md": "1 %, .99",
    "docs/performance.md": "0.03, 2 %",
    "docs/when_sampling_fails.md": ".9, 1 %",
    "docs/coming_from/glmnet.md": "5 times",
    "docs/coming_from/stability_selection.md": "0.5",
}
#: A page that a command writes whole, which another test compares, and those of the studies of the paper.
OTHERS = ("docs/benchmarks.md", "docs/paper.md", "docs/results/README.md")


@pytest.mark.parametrize("page", PAGES)
def test_figures_are_those_of_the_tables_in_docs(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert figures.filled(text) == text, "python docs/figures.py"
    assert not re.search(r"^ *<!--= ", text, re.M)  # such a line would not be part of its sentence
    comments, code = re.compile(r"<!--.*?-->", re.S), re.compile("`[^`]*`")
    for untold in (figures.BLOCK, figures.FIGURE, comments, BLOCK, code):
        text = untold.sub("", text)
    typed = set(MEASURED.findall(text)) - set(GIVEN.get(page, "").split(", "))
    assert typed == set() or page in OTHERS


def test_a_figure_follows_its_table():
    text = '<!--= fits["a fit of 50 atoms", "minimize"].ratio | .3f -->9.9<!----> and '
    filled = figures.filled(text + "<!-- table: nothing() -->\n<!-- end -->")
    assert "-->1.000<!----> and " in filled
    assert "| 100 x 2000 |" in filled
    with pytest.raises(KeyError, match="has 0 rows of no problem"):
        figures.filled('<!--= fits["no problem", "minimize"].ratio -->1<!---->')


def test_the_front_picture_says_what_was_measured():
    last = {name: figures.CASES["landing"]["k=200", name] for name in ("exact", "auto")}
    picture = (DOCS / "pictures" / "speed.svg").read_text(encoding="utf-8")
    for column in ("ms", "bytes"):
        assert f"{float(last['exact'][column]) / float(last['auto'][column]):.0f} times" in picture


def test_every_public_name_has_a_place_and_an_example_in_the_reference():
    text = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("api/*.md"))
    listed = set(re.findall(r"^   ([\w.]+)$", text, re.M))
    used = set(re.findall(r"\w+", "".join(code for code, _ in PYTHON.findall(text))))
    public = set()
    for name in set(skpursuit.__all__) - {"__version__"}:
        thing = getattr(skpursuit, name)
        own = [n for n, t in vars(thing).items() if getattr(t, "__module__", "") == f"skpursuit.{name}"]
        of_module = {f"{name}.{one}" for one in own if not one.startswith("_")}
        public |= of_module if inspect.ismodule(thing) else {name}
    assert sorted(public - listed) == []
    assert sorted(name for name in public if name.split(".")[-1] not in used) == []


@pytest.mark.parametrize("name", ["demo", "test"])
def test_the_two_commands_exist(name):
    assert f"make {name}" in README.read_text()
    assert re.search(rf"^{name}:", (README.parent / "Makefile").read_text(), re.M)


def test_it_is_short():
    assert len(README.read_text().splitlines()) <= 160


def test_quick_names_tests_that_are_there():
    listed = re.search(r"^QUICK_TESTS = (.*?)\n\n", (ROOT / "Makefile").read_text(), re.M | re.S).group(1)
    names = listed.replace("\\", " ").split()
    assert len(names) > 5
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_every_command_and_option_of_the_readme_exists():
    from skpursuit.apps.cli import main

    shell = "".join(code for kind, code in BLOCK.findall(README.read_text()) if kind == "sh")
    lines = re.findall(r"^skpursuit .*?(?=\s+#|$)", shell, re.M)
    words = [call.split() for line in lines for call in line.split(" && ")]
    assert {"fit", "predict", "reproduce", "report"} <= {call[1] for call in words}
    for _, name, *arguments in words:
        known = {option for parameter in main.commands[name].params for option in parameter.opts}
        assert {word for word in arguments if word.startswith("-")} <= known


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_exists(page):
    text = (ROOT / page).read_text()
    there = {
        str(path)
        for folder in ("src", "benchmarks", "examples", "tests", "docs")
        for path in (ROOT / folder).rglob("*.py")
    }
    named = set(re.findall(r"(?<![\w/.])[\w/]+\.py\b", text))
    assert [name for name in named if not any(path.endswith("/" + name) for path in there)] == []
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not target(page, link).exists()] == []


def target(page, link):
    """The file of a link; pages and pictures of the gallery are made of its examples."""
    if link.endswith("gallery/index.rst"):
        return ROOT / "examples" / "gallery" / "README.txt"
    made = re.search(r"gallery/(?:images/sphx_glr_)?(plot_\w+?)(?:_001)?\.\w+$", link)
    return ROOT / "examples" / "gallery" / f"{made[1]}.py" if made else (ROOT / page).parent / link


def test_every_file_and_name_of_the_page_about_the_paper_exists():
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    rows = [
        line.strip("| ").split(" | ")
        for line in text.splitlines()
        if line.startswith("| ") and ".py`" in line
    ]
    assert len(rows) > 45
    for row in rows:
        place = next(cell for cell in row if ".py`" in cell)
        files = re.findall(r"`([\w/]+\.(?:py|toml))`", place)
        after = place + " " + " ".join(row[row.index(place) + 1 :])
        names = [n for n in re.findall(r"`([A-Za-z_]\w*)`", after)]
        source = "".join((ROOT / "src" / "skpursuit" / file).read_text(encoding="utf-8") for file in files)
        assert names, row
        for name in names:
            assert re.search(rf"^\s*(?:class|def) {name}\b|^\s*{name}: ", source, re.M), (files, name)
    for said in re.findall(r"`(examples/[^`]+\.py)`", text):
        assert (ROOT / said).exists()
