"""Importing the package is light."""

import subprocess
import sys

import pytest


def test_heavy_modules_load_only_when_used():
    code = (
        "import sys, skpursuit; from skpursuit import minimize, OMP, as_design, Exact, datasets;"
        "heavy = [m for m in ('sklearn', 'numba', 'matplotlib', 'pandas') if m in sys.modules];"
        "assert not heavy, heavy; assert 'minimize' in dir(skpursuit)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_there():
    import skpursuit

    for name in skpursuit.__all__:
        assert getattr(skpursuit, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = skpursuit.nothing
