"""The ridge of estimators: of scaled features, never of the intercept, refused where it would do nothing."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from skpursuit import OMP, FrankWolfe, L1Ball, PursuitClassifier, PursuitRegressor


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


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial", "huber", "poisson"])
def test_with_normalize_it_is_of_the_coefficients_of_scaled_features(loss):
    for seed in range(3):
        X, y = data(seed, loss)
        spread = X.std(axis=0)
        for ridge in (0.0001, 0.01):
            given = {"n_nonzero_coefs": X.shape[1], "ridge": ridge}
            ours = model_for(loss, scale="column", **given).fit(X, y)
            by_hand = model_for(loss, **given).fit((X - X.mean(axis=0)) / spread, y)
            np.testing.assert_allclose(ours.coef_ * spread, by_hand.coef_, rtol=1e-4, atol=1e-6)
            expected = by_hand.intercept_ - by_hand.coef_ @ (X.mean(axis=0) / spread)
            np.testing.assert_allclose(ours.intercept_, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("solver", ["omp", "cosamp", "grasp", "sp"])
def test_with_squared_loss_it_is_that_of_scikit_learn(solver):
    for seed in range(5):
        X, y = data(seed, "squared")
        weights = np.random.default_rng(seed).uniform(0, 3, len(y)) * (np.arange(len(y)) % 5 > 0)
        for normalize in (False, True):
            how = {"ridge": 0.3, "scale": "column" if normalize else "none", "max_iter": 10}
            model = PursuitRegressor(solver=solver, n_nonzero_coefs=5, **how).fit(X, y, weights)
            centre = np.average(X, axis=0, weights=weights)
            spread = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weights)) if normalize else 1.0
            reference = Ridge(0.3 * weights.sum()).fit((X - centre) / spread, y, weights)
            np.testing.assert_allclose(model.coef_ * spread, reference.coef_, rtol=1e-8, atol=1e-10)
            expected = reference.intercept_ - model.coef_ @ centre
            np.testing.assert_allclose(model.intercept_, expected, rtol=1e-8)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "multinomial", "huber", "poisson"])
def test_a_large_one_leaves_the_intercept_of_no_features(loss, normalize):
    for seed in range(4):
        X, y = data(seed, loss)
        given = {"n_nonzero_coefs": 3, "scale": "column" if normalize else "none"}
        model = model_for(loss, ridge=1e7, **given).fit(X, y)
        assert np.abs(X * model.coef_[..., None, :]).max() < 1e-3
        if loss == "huber":
            free = model_for(loss, **given).fit(np.zeros_like(X), y)
            np.testing.assert_allclose(model.intercept_, free.intercept_, atol=1e-3)
        elif loss == "poisson":
            np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-3)
        else:
            rates = np.unique(y, return_counts=True)[1] / len(y)
            np.testing.assert_allclose(model.predict_proba(X), np.tile(rates, (len(y), 1)), atol=1e-3)


def test_the_default_is_a_little_for_probabilities_and_none_for_others():
    for loss, meant in (("logistic", 0.03), ("multinomial", 0.03), ("huber", 0.0), ("squared", 0.0)):
        for normalize in (False, True):
            X, y = data(1, loss)
            ridges = {}, {"ridge": meant if normalize else meant / len(y)}
            models = [
                model_for(loss, n_nonzero_coefs=3, scale="column" if normalize else "none", **r).fit(X, y)
                for r in ridges
            ]
            np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
            np.testing.assert_array_equal(models[0].intercept_, models[1].intercept_)


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (PursuitRegressor(ridge=0.1, solver="mp", loss="huber"), "with solver 'mp'; leave it out or use one"),
        (PursuitRegressor(ridge=0.1, solver="fw", loss="poisson"), "with solver 'fw'"),
        (PursuitClassifier(ridge=0.1, solver=OMP(2)), r"with a solver object; .*, as in OMP\(ridge"),
        (PursuitClassifier(ridge=0.1, solver=FrankWolfe(L1Ball(1.0))), "with a solver object"),
    ],
)
def test_it_is_refused_where_it_has_no_effect(model, remedy):
    X, y = data(0, "logistic")
    with pytest.raises(ValueError, match=f"ridge=0[.]1 has no effect {remedy}"):
        model.fit(X, y)
    for ridge in (0.0, None):
        model.set_params(ridge=ridge).fit(X, y)
