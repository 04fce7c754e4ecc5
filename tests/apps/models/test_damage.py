"""A few of the cases of benchmarks/damage_model.py: wrong content under a right checksum."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import damage_model

CASES, SEED = 200, 7


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return folder, damage_model.prepare(folder)


def test_wrong_content_is_refused_or_gives_finite_predictions(prepared):
    folder, files = prepared
    came = {
        case: damage_model.check(path, content, folder)
        for case, path, content in damage_model.cases(files, CASES, SEED)
    }
    assert {case: told for case, told in came.items() if told[1]} == {}
    assert {what for what, _ in came.values()} == {"answer", "refused"}


def test_what_is_not_damaged_is_read(prepared):
    folder, files = prepared
    assert {damage_model.check(path, path.read_bytes(), folder) for path in files} == {("answer", "")}


def test_the_same_seed_is_the_same_damage(prepared):
    content = prepared[1][0].read_bytes()
    one, other = (damage_model.damage(content, np.random.default_rng(3)) for _ in range(2))
    assert one == other != content
