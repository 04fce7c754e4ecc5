"""Importing the package is light, and so is a small fit."""

import pytest

from .support.process import run_code


def test_heavy_modules_load_only_when_used():
    run_code(
        "import sys, numpy as np, skpursuit\n"
        "from skpursuit import CoSaMP, Exact, FrankWolfe, L1Ball, OMP, StoIHT, datasets, minimize\n"
        "heavy = [m for m in ('sklearn', 'numba', 'matplotlib', 'pandas') if m in sys.modules]\n"
        "assert not heavy, heavy; assert 'minimize' in dir(skpursuit)\n"
        "rng = np.random.default_rng(0); X = rng.standard_normal((50, 80)); y = rng.standard_normal(50)\n"
        "for solver in (OMP(5), CoSaMP(5), FrankWolfe(L1Ball(1.0)), StoIHT(5)): minimize(X, y, solver)\n"
        "skpursuit.PursuitRegressor(n_nonzero_coefs=3).fit(X, y).predict(X)\n"
        "assert not {'numba', 'dask'} & set(sys.modules)"
    )


def test_every_public_name_is_there():
    import skpursuit

    for name in skpursuit.__all__:
        assert getattr(skpursuit, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = skpursuit.nothing
