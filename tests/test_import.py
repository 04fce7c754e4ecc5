"""Importing the package is light."""

import pytest

from .support.process import run_code


def test_heavy_modules_load_only_when_used():
    run_code(
        "import sys, skpursuit; from skpursuit import minimize, OMP, as_design, Exact, datasets;"
        "heavy = [m for m in ('sklearn', 'numba', 'matplotlib', 'pandas') if m in sys.modules];"
        "assert not heavy, heavy; assert 'minimize' in dir(skpursuit)"
    )


def test_every_public_name_is_there():
    import skpursuit

    for name in skpursuit.__all__:
        assert getattr(skpursuit, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = skpursuit.nothing
