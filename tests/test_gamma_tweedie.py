"""Gamma and Tweedie losses are those of scikit-learn, as losses and as fits."""

import numpy as np
import pytest
from sklearn.linear_model import GammaRegressor, TweedieRegressor
from sklearn.metrics import mean_tweedie_deviance

from skpursuit import OMP, Gamma, PursuitRegressor, Tweedie, minimize


def amounts(seed, zeros=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 5))
    y = np.exp(X @ [0.5, -0.3, 0.0, 0.2, 0.0] + 0.3) * rng.gamma(2.0, 0.5, 300)
    return X, y * (rng.random(300) > 0.3) if zeros else y


@pytest.mark.parametrize("power", [1.0, 1.3, 1.5, 1.9, 2.0])
def test_it_is_half_the_deviance_with_its_derivatives(power):
    X, y = amounts(0, zeros=power < 2)
    z = 0.5 * X[:, 0]
    loss = Tweedie(power)
    half = 0.5 * mean_tweedie_deviance(y, np.exp(z), power=power)
    assert loss.value(y, z).mean() == pytest.approx(half, rel=1e-10)
    step = 1e-5
    slope = (loss.value(y, z + step) - loss.value(y, z - step)) / (2 * step)
    np.testing.assert_allclose(loss.residual(y, z), slope, rtol=1e-6, atol=1e-8)
    bend = (loss.residual(y, z + step) - loss.residual(y, z - step)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(y, z), bend, rtol=1e-6, atol=1e-8)


def test_gamma_keeps_its_digits_at_the_target_and_does_not_warn_far_away():
    y = np.array([2.0, 2.0, 2.0])
    z = np.log(2.0) - np.array([0.0, 1e-9, 1e-3])
    np.testing.assert_allclose(Gamma().value(y, z)[1:], [0.5e-18, np.expm1(1e-3) - 1e-3], rtol=1e-6)
    for loss in (Gamma(), Tweedie(1.5)):
        assert np.isinf(loss.value(y, np.full(3, -5000.0))).all()
        assert (loss.value(y, np.full(3, 700.0)) > 100).all()
    assert np.isfinite(Tweedie(1.5).value(np.zeros(3), np.full(3, -5000.0))).all()


@pytest.mark.parametrize(("name", "power"), [("gamma", 2.0), ("tweedie", 1.5)])
def test_fits_equal_those_of_scikit_learn(name, power):
    for seed in range(3):
        X, y = amounts(seed, zeros=name == "tweedie")
        weights = np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
        for ridge in (0.0, 0.1):
            given = {"alpha": ridge, "solver": "newton-cholesky", "tol": 1e-10, "max_iter": 1000}
            kind = GammaRegressor(**given) if name == "gamma" else TweedieRegressor(power=power, **given)
            reference = kind.fit(X, y, weights)
            model = PursuitRegressor(loss=name, scale="none", n_nonzero_coefs=5, ridge=ridge).fit(
                X, y, weights
            )
            np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-5, atol=1e-7)
            assert model.intercept_ == pytest.approx(reference.intercept_, rel=1e-5)
            np.testing.assert_allclose(model.predict(X), reference.predict(X), rtol=1e-5)


def test_bad_targets_are_refused():
    X, y = amounts(0, zeros=True)
    with pytest.raises(ValueError, match="Gamma loss needs targets > 0, got 0; use 'tweedie' for zeros"):
        minimize(X, y, OMP(2), loss="gamma")
    with pytest.raises(ValueError, match="targets >= 0"):
        minimize(X, y - 1, OMP(2), loss="tweedie")
