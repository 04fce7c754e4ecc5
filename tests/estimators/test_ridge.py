"""The ridge: never of the intercept, and refused where it would do nothing."""

import numpy as np
import pytest

from skpursuit import (
    OMP,
    FrankWolfe,
    GraSP,
    L1Ball,
    PursuitClassifier,
    PursuitClassifierCV,
    PursuitRegressor,
    PursuitRegressorCV,
    StoGradMP,
    minimize,
)


def data(seed, loss, n=120, d=5):
    """Features of different sizes and means, and targets of a loss."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) + rng.uniform(-2, 2, d)) * 10.0 ** rng.uniform(-1, 1, d)
    z = (X - X.mean(axis=0)) @ (rng.standard_normal(d) / X.std(axis=0)) + rng.standard_normal(n)
    if loss == "multinomial":
        return X, np.digitize(z, [-1.0, 1.0])
    return X, {"logistic": z > 0.5, "poisson": np.floor(np.exp(np.clip(z, -3, 3)))}.get(loss, z)


def model_for(loss, **given):
    if loss == "multinomial":
        return PursuitClassifier(multi_class="multinomial", **given)
    return PursuitClassifier(**given) if loss == "logistic" else PursuitRegressor(loss=loss, **given)


@pytest.mark.parametrize("loss", ["logistic", "multinomial", "huber", "poisson"])
def test_with_normalize_it_is_of_the_coefficients_of_scaled_features(loss):
    for seed in range(3):
        X, y = data(seed, loss)
        norms = np.linalg.norm(X - X.mean(axis=0), axis=0)
        for ridge in (0.01, 1.0):
            given = {"n_nonzero_coefs": X.shape[1], "ridge": ridge}
            ours = model_for(loss, normalize=True, **given).fit(X, y)
            by_hand = model_for(loss, **given).fit((X - X.mean(axis=0)) / norms, y)
            np.testing.assert_allclose(ours.coef_ * norms, by_hand.coef_, rtol=1e-4, atol=1e-6)
            expected = by_hand.intercept_ - by_hand.coef_ @ (X.mean(axis=0) / norms)
            np.testing.assert_allclose(ours.intercept_, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "multinomial", "huber", "poisson"])
def test_a_large_one_leaves_the_intercept_of_no_features(loss, normalize):
    for seed in range(4):
        X, y = data(seed, loss)
        given = {"n_nonzero_coefs": 3, "normalize": normalize}
        model = model_for(loss, ridge=1e9, **given).fit(X, y)
        assert np.abs(X * model.coef_[..., None, :]).max() < 1e-3
        if loss == "huber":
            free = model_for(loss, **given).fit(np.zeros_like(X), y)
            np.testing.assert_allclose(model.intercept_, free.intercept_, atol=1e-3)
        elif loss == "poisson":
            np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-3)
        else:
            rates = np.unique(y, return_counts=True)[1] / len(y)
            np.testing.assert_allclose(model.predict_proba(X), np.tile(rates, (len(y), 1)), atol=1e-3)


def test_a_base_rate_survives_it():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((600, 4)), np.arange(600) < 10
    probability = PursuitClassifier(n_nonzero_coefs=2, ridge=100.0).fit(X, y).predict_proba(X)[:, 1]
    assert probability.mean() == pytest.approx(10 / 600, rel=1e-3)


def test_the_default_is_a_little_for_probabilities_and_none_for_others():
    for loss, meant in (("logistic", 0.03), ("multinomial", 0.03), ("huber", 0.0), ("poisson", 0.0)):
        X, y = data(1, loss)
        default, given = (model_for(loss, n_nonzero_coefs=3, **r).fit(X, y) for r in ({}, {"ridge": meant}))
        np.testing.assert_array_equal(default.coef_, given.coef_)
        np.testing.assert_array_equal(default.intercept_, given.intercept_)


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (PursuitRegressor(ridge=0.1), "squared loss; leave it out"),
        (PursuitRegressorCV(ridge=0.1), "squared loss; leave it out"),
        (PursuitRegressor(ridge=0.1, solver="grasp"), "squared loss; leave it out"),
        (
            PursuitRegressor(ridge=0.1, solver="mp", loss="huber"),
            "solver 'mp'; leave it out or use omp or grasp",
        ),
        (PursuitRegressor(ridge=0.1, solver="fw", loss="poisson"), "solver 'fw'"),
        (PursuitClassifier(ridge=0.1, loss="squared"), "squared loss"),
        (PursuitClassifier(ridge=0.1, solver="cosamp", loss="squared"), "solver 'cosamp'"),
        (PursuitClassifierCV(ridge=0.1, solver="mp"), "solver 'mp'"),
        (
            PursuitClassifier(ridge=0.1, solver=OMP(2)),
            r"a solver object; give it to the solver, as in OMP\(ridge",
        ),
        (PursuitClassifier(ridge=0.1, solver=FrankWolfe(L1Ball(1.0))), "a solver object"),
    ],
)
def test_it_is_refused_where_it_has_no_effect(model, remedy):
    X, y = data(0, "logistic")
    with pytest.raises(ValueError, match=f"ridge=0[.]1 has no effect with {remedy}"):
        model.fit(X, y)
    for ridge in (0.0, None):
        model.set_params(ridge=ridge, max_iter=5).fit(X, y)


@pytest.mark.parametrize("kind", [OMP, GraSP, StoGradMP])
def test_solvers_refuse_it_with_squared_loss(kind):
    X, y = data(0, "huber")
    with pytest.raises(ValueError, match=r"ridge=0\.1 has no effect with squared loss"):
        minimize(X, y, kind(2, ridge=0.1))
    minimize(X, y, kind(2, ridge=0.1), loss="huber")
