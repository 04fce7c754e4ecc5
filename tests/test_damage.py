"""Damaged files of every format: the right answer, or words; benchmarks/damage.py has a thousand of each."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import damage

#: Cases that once ended in a traceback, or without a word.
FOUND = {
    "npy": (1, 81, 85, 7411000465),
    "checkpoint": (11, 14, 20, 26, 35, 38),
    "codes_index": (0, 3, 11, 22),
}


#: Cases of each format, and of each model: there are many kinds of damage to JSON.
CASES, MODEL_CASES = 8, 20


@pytest.mark.parametrize("name", damage.FORMATS)
def test_damaged_files_are_read_right_or_refused_in_words(tmp_path, name):
    form = damage.FORMATS[name](tmp_path)
    files = damage.files_below(tmp_path)
    answer = form.read()
    outcomes = set()
    count = MODEL_CASES if form.damage else CASES
    for case in (*range(5000, 5000 + count), *FOUND.get(name, ())):
        damage.restore(tmp_path, files)
        what, came, fault = damage.run_case(form, files[form.path], answer, case)
        outcomes.add(came)
        assert not fault, f"{name}, case {case}, {what}, {came}: {fault}"
    assert "refused" in outcomes


@pytest.mark.parametrize("name", ["parquet", "parquet_table"])
def test_pages_of_parquet_files_are_compared_with_their_checksums(tmp_path, name):
    form = damage.FORMATS[name](tmp_path)
    content = form.path.read_bytes()
    place = content.index(damage.np.float64(damage.numbers()[0][0, 1]).tobytes())
    form.path.write_bytes(content[:place] + b"\1" + content[place + 1 :])
    with pytest.raises(Exception, match=r"t\.parquet.*(cannot be read|damaged)"):
        form.read()
