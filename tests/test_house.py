"""Limits on the shape of the library, so that it cannot slide back; docs/architecture.md says why.

Each limit is one constant. A limit may be lowered when the library has become simpler, and is not raised.
"""

from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from tests.support.walk import certified_steps

ROOT = Path(__file__).parents[1]

CALLS_ACROSS_FILES = 36


@pytest.mark.parametrize("shape", [(1000, 2000), (3000, 6000)], ids=["pass over codes", "sum of products"])
def test_a_step_is_a_short_walk(shape):
    quietest = min(certified_steps(*shape), key=len)
    assert len(quietest) <= CALLS_ACROSS_FILES, "\n".join(map(str, quietest))


def test_imports_go_down_only(capsys):
    kept = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0
    assert kept, capsys.readouterr().out
