"""The pages on extending show the files that the package uses, and the lines that name them everywhere.

After a change of such a file `python -m tests.test_extending --update` writes it into its page again.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from skpursuit import PursuitRegressor, minimize
from tests.support.process import invoke

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "skpursuit"
REGISTRIES = {
    "loss": "problem/losses/__init__.py",
    "selector": "selectors/__init__.py",
    "solver": "solvers/__init__.py",
    "source": "data/sources.py",
}
SHOWN = re.compile(r"`(src/\S+\.py)`:\n\n```python\n(.*?)```\n", re.S)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 12))
Y = X[:, 3] - 2 * X[:, 7] + 0.1 * RNG.standard_normal(600)


def page(name):
    return ROOT / "docs" / "extending" / f"{name}.md"


@pytest.mark.parametrize("name", REGISTRIES)
def test_a_page_shows_the_whole_file_and_the_line_of_the_registry(name):
    text = page(name).read_text()
    ((path, code),) = SHOWN.findall(text)
    assert code == (ROOT / path).read_text()
    registered = re.search(r"## 2\..*?```python\n(.*?)```", text, re.S).group(1)
    assert registered in (SOURCE / REGISTRIES[name]).read_text()


def test_the_small_selector_of_its_page_does_what_it_says(capsys):
    code, told = re.search(
        r"```python\n(.*?)```\n\n```\n(.*?)```", page("selector").read_text(), re.S
    ).groups()
    exec(compile(code, "selector.md", "exec"), {"__name__": "selector"})
    assert capsys.readouterr().out == told


def test_names_work_in_minimize_and_estimators():
    for options in ({"loss": "quantile"}, {"solver": "sp"}, {"selector": "lucb"}):
        given = {"solver": "omp", "random_state": 0} | options
        assert minimize(X, Y, **given).support.tolist() == [7]
        model = PursuitRegressor(n_nonzero_coefs=2, **given).fit(X, Y)
        assert sorted(model.support_) == [3, 7]


@pytest.mark.parametrize("options", [{"loss": "none"}, {"solver": "none"}, {"selector": "none"}])
def test_messages_about_unknown_names_offer_them(options):
    offered = {"loss": "quantile", "solver": "sp", "selector": "lucb"}[next(iter(options))]
    given = {"solver": "omp"} | options
    with pytest.raises(ValueError, match=rf"\b{offered}\b"):
        minimize(X, Y, **given)
    with pytest.raises(ValueError, match=rf"\b{offered}\b"):
        PursuitRegressor(**given).fit(X, Y)


def test_the_command_line_lists_them(tmp_path):
    np.savetxt(
        tmp_path / "t.csv",
        np.column_stack([X, Y]),
        delimiter=",",
        header=",".join("abcdefghijkly"),
        comments="",
    )
    told = invoke("info").output
    for kind, kinds, name in (
        ("loss", "losses", "quantile"),
        ("solver", "solvers", "sp"),
        ("selector", "selectors", "lucb"),
    ):
        assert re.search(rf"{kinds} .*\b{name}\b", told)
        done = invoke("fit", tmp_path / "t.csv", "--target=y", "--solver=omp", f"--{kind}=none", code=2)
        assert re.search(rf"--{kind} 'none' is not known; use one of .*\b{name}\b", done.output)


if __name__ == "__main__" and "--update" in sys.argv:
    for name in REGISTRIES:
        text = page(name).read_text()
        path, code = SHOWN.search(text).groups()
        page(name).write_text(text.replace(code, (ROOT / path).read_text()))
