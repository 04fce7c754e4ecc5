"""What benchmarks/same_bits.py takes for intended: no more than the changelog says."""

import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
CAUSES = tomllib.loads((ROOT / "benchmarks/intended.toml").read_text())["cause"]
ANSWER = {
    ".coef": np.array([0.0, 1.0, 3.0]),
    ".support": np.array([1, 2]),
    ".status": "COMPLETE",
    ".selected[0]": np.array([2, 1]),
    ".certificates[0]": "exact",
    ".entries_read": 100,
}


@pytest.fixture
def same_bits(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield pytest.importorskip("same_bits")
    for name in ("same_bits", "trees"):
        sys.modules.pop(name, None)


def test_the_changelog_has_every_cause():
    told = " ".join((ROOT / "CHANGELOG.md").read_text().split())
    assert [cause["why"] for cause in CAUSES if f"- {cause['why']}" not in told] == []


@pytest.mark.parametrize("name", ["pairs_of_minimize/omp, squared, C, exact", "large/cosamp, certified, F"])
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".coef", np.array([1e-20, 1.0, 3.0])),
        (".coef", np.array([0.0, 1.0, 3.0 + 1e-14])),
        (".support", np.array([1, 0])),
        (".status", "STALLED"),
        (".selected[0]", np.array([2, 0])),
        (".certificates[0]", "heuristic"),
        (".entries_read", 101),
    ],
)
def test_what_is_not_listed_is_told(same_bits, name, path, value):
    different, _ = same_bits.compare({name: ANSWER}, {name: ANSWER | {path: value}})
    _, rest = same_bits.sort_out(different, CAUSES)
    assert [part.path for part in rest[name]] == [path]


def test_what_is_listed_is_counted(same_bits):
    name = "large/cosamp, certified, F"
    now = ANSWER | {".selected[0]": np.array([1, 2]), ".entries_read": 99}
    different, fewer = same_bits.compare({name: ANSWER}, {name: now})
    causes, rest = same_bits.sort_out(different, CAUSES)
    assert rest == {}
    assert fewer == sum(causes.values()) == 1
