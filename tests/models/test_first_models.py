"""Model files of the first format still predict what they predicted when they were written."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from skpursuit.cli import main

FOLDER = Path(__file__).parent / "first_models"


@pytest.mark.parametrize("model", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_model_of_the_first_format_still_predicts(model):
    wanted = json.loads(model.with_suffix(".predictions").read_text())
    done = CliRunner().invoke(main, ["predict", str(model), str(FOLDER / wanted["file"]), "--json"])
    assert done.exit_code == 0, done.output
    found = [row["prediction"] for row in json.loads(done.stdout)]
    if isinstance(wanted["predictions"][0], str):
        assert found == wanted["predictions"]
    else:
        np.testing.assert_allclose(found, wanted["predictions"], rtol=1e-12)
