"""What users have on disk from earlier versions: checkpoints and results. Model files are in `models`.

A checkpoint of the present format goes on, one of an older format is refused with a sentence that says what
to do. `python -m tests.test_on_disk` writes a checkpoint of the present format beside the older ones; the
results were written by `tests/cli/small_studies.py reproduce ... --trials 1`.
"""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from skpursuit import OMP, minimize
from skpursuit.cli import main

FIXTURES = Path(__file__).parent / "fixtures"
CHECKPOINTS = sorted(FIXTURES.glob("checkpoint-*"))
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


def format_of(path):
    """The first line of a checkpoint."""
    return path.read_bytes().partition(b"\n")[0].decode()


def test_there_are_checkpoints_of_all_formats():
    assert [format_of(path).split()[-1] for path in CHECKPOINTS][:5] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("kept", CHECKPOINTS, ids=lambda path: path.name)
def test_a_checkpoint_goes_on_or_is_refused_with_a_sentence(kept, tmp_path):
    path, present = tmp_path / "run", tmp_path / "present"
    shutil.copy(kept, path)
    stopped(present)
    if format_of(kept) != format_of(present):
        words = (
            f"has format {format_of(kept)[-1]} and is not a checkpoint of this version; name another file or"
        )
        with pytest.raises(ValueError, match=words):
            run(path)
        assert path.read_bytes() == kept.read_bytes()  # it may still serve the version that wrote it
        return
    whole, resumed = run(), run(path)
    assert resumed.support.tolist() == whole.support.tolist()
    assert [record.selected for record in resumed.history] == [record.selected for record in whole.history]
    assert resumed.n_iter == whole.n_iter > STOPPED_AFTER
    np.testing.assert_allclose(resumed.coef, whole.coef, rtol=1e-12)


def test_the_present_format_is_among_those_kept(tmp_path):
    stopped(tmp_path / "run")
    assert format_of(tmp_path / "run") in [format_of(path) for path in CHECKPOINTS]


def test_results_of_the_first_version_are_reported(tmp_path):
    folder = shutil.copytree(FIXTURES / "results", tmp_path / "results")
    done = CliRunner().invoke(main, ["report", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    page = Path(json.loads(done.stdout)["page"]).read_text()
    titles = re.findall("<h2[^>]*>([^<]*)", page)
    studies = {"Orthogonal matching pursuit", "CoSaMP", "Frank-Wolfe", "The budget of halving", "Scaling"}
    assert studies | {"Sound", "Text"} <= set(titles)
    machine = json.loads((folder / "omp.json").read_text())["about"][0]
    assert machine["processor"] in page


if __name__ == "__main__":
    new = FIXTURES / "new"
    stopped(new)
    new.rename(FIXTURES / f"checkpoint-{format_of(new).split()[-1]}")
