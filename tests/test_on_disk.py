"""A checkpoint that a user has on disk: one of the present format goes on, one of another format is refused.

The file in `fixtures` keeps the format honest: where it no longer goes on, the format has changed and its
number in `loop/checkpoint.py` must be raised. `python -m tests.test_on_disk` then writes the file again.
"""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from skpursuit import OMP, minimize

KEPT = Path(__file__).parent / "fixtures" / "checkpoint"
STOPPED_AFTER = 3


def run(path=None, **given):
    """A pursuit of whole numbers, the same on every machine."""
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 10, (30, 20)).astype(float)
    y = X[:, [2, 5, 7, 11, 13]] @ np.array([5.0, -4.0, 3.0, 2.0, 1.0]) + rng.integers(-9, 10, 30)
    return minimize(X, y, OMP(n_nonzero_coefs=6), "exact", random_state=0, checkpoint=path, **given)


def stopped(path):
    """The same, stopped on the way."""
    return run(path, callback=lambda record: record.iteration == STOPPED_AFTER - 1)


def test_a_checkpoint_of_the_present_format_goes_on(tmp_path):
    path = tmp_path / "run"
    shutil.copy(KEPT, path)
    whole, resumed = run(), run(path)
    assert resumed.support.tolist() == whole.support.tolist()
    assert [record.selected for record in resumed.history] == [record.selected for record in whole.history]
    assert resumed.n_iter == whole.n_iter > STOPPED_AFTER
    np.testing.assert_allclose(resumed.coef, whole.coef, rtol=1e-12)


@pytest.mark.parametrize("number", ["1", "99", ""])
def test_a_checkpoint_of_another_format_is_refused_with_a_sentence_and_kept(number, tmp_path):
    path = tmp_path / "run"
    content = re.sub(rb"\d+(?=\n)", number.encode(), KEPT.read_bytes(), count=1)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"has format {number} and is not a checkpoint of this version; "):
        run(path)
    assert path.read_bytes() == content  # it may still serve the version that wrote it


if __name__ == "__main__":
    KEPT.unlink()
    stopped(KEPT)
