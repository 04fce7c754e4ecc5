"""Exchanges at the end of a pursuit: none is left that would pay, and nothing ever gets worse."""

import numpy as np
import pytest

from skpursuit import OMP, Multinomial, PursuitRegressor, datasets, minimize
from skpursuit.estimators.linear_fit import FitConfig, fitted_path


def made(seed, targets=(), n=50, d=30, rho=0.8):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    w = np.zeros((d, *targets))
    w[rng.choice(d, 5, replace=False)] = rng.choice([-1.0, 1.0], (5, *targets))
    return X, X @ w + 0.5 * rng.standard_normal((n, *targets))


def value(X, y, support, penalty):
    lifted = np.vstack([X[:, support], np.sqrt(penalty) * np.eye(len(support))])
    w = np.linalg.lstsq(lifted, np.concatenate([y, np.zeros((len(support), *y.shape[1:]))]), rcond=None)[0]
    return 0.5 * np.sum((X[:, support] @ w - y) ** 2) + 0.5 * penalty * np.sum(w**2)


def test_no_exchange_that_pays_is_left():
    better = 0
    for seed in range(60):
        targets, ridge = ((), (), (2,))[seed % 3], (0.0, 0.05)[seed % 2]
        X, y = made(seed, targets)
        selector = ("exact", "gram", "certified")[seed % 3] if seed % 10 == 0 else "exact"
        plain = minimize(X, y, OMP(5, ridge=ridge), selector)
        result = minimize(X, y, OMP(5, ridge=ridge, swaps=True), selector)
        penalty, S = len(y) * ridge, result.support.tolist()
        assert len(set(S)) == 5
        here = value(X, y, S, penalty)
        told = result.objective + 0.5 * penalty * np.sum(result.coef**2)
        assert told == pytest.approx(here, rel=1e-8)
        before = value(X, y, plain.support.tolist(), penalty)
        assert here <= before * (1 + 1e-12)
        better += here < before
        others = [j for j in range(X.shape[1]) if j not in S]
        least = min(value(X, y, [*S[:i], *S[i + 1 :], j], penalty) for i in range(5) for j in others)
        assert least >= here - 1e-6 * 0.5 * np.sum(y**2)
    assert better > 15


def test_it_helps_on_correlated_columns():
    found = {False: [], True: []}
    for seed in range(8):
        X, y, w = datasets.make_sparse_signal(150, 200, 8, snr=10.0, random_state=seed)
        X = np.cumsum(X, axis=1)
        X /= np.linalg.norm(X, axis=0)
        y = X @ w + 0.05 * np.random.default_rng(seed).standard_normal(150)
        for swaps in found:
            found[swaps].append(minimize(X, y, OMP(8, swaps=swaps)).objective)
    assert np.mean(found[True]) < 0.8 * np.mean(found[False])


@pytest.mark.parametrize("loss", ["logistic", "huber", "poisson", "gamma", "tweedie", Multinomial()])
def test_other_losses_get_no_worse_and_often_better(loss):
    better = 0
    for seed in range(8):
        X, z = made(seed, n=120)
        if loss == "logistic":
            y = np.where(z + np.random.default_rng(seed).standard_normal(120) > 0, 1.0, -1.0)
        elif isinstance(loss, Multinomial):
            y = np.digitize(z, [-1.0, 1.0])
        else:
            y = z if loss == "huber" else 1.0 + np.floor(np.exp(np.clip(z, -2, 2)))
        plain, result = (
            minimize(X, y, OMP(4, ridge=0.01, swaps=swaps), loss=loss) for swaps in (False, True)
        )
        values = [r.objective + 0.005 * len(y) * np.sum(r.coef**2) for r in (plain, result)]
        assert values[1] <= values[0] * (1 + 1e-9)
        assert len(result.support) == 4
        better += values[1] < values[0] * (1 - 1e-4)
    assert better


@pytest.mark.parametrize("loss", ["poisson", "logistic"])  # whose curvature changes fast, among few columns
def test_no_exchange_of_another_loss_that_pays_is_left(loss):
    for seed in (4, 7):
        rng = np.random.default_rng(seed)
        if loss == "poisson":
            X, z = made(seed, n=120)
            y = rng.poisson(np.exp(np.clip(z, -3, 3))).astype(float)
        else:
            X = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 8)) + 0.5 * rng.standard_normal(
                (80, 8)
            )
            y = np.where(X @ rng.standard_normal(8) + rng.logistic(size=80) > 0, 1.0, -1.0)
        k, d = (5, 30) if loss == "poisson" else (3, 8)

        def fitted(columns, X=X, y=y, k=k, **how):
            result = minimize(X[:, columns], y, OMP(k, ridge=0.01, **how), loss=loss)
            return result, result.objective + 0.005 * len(y) * np.sum(result.coef**2)

        result, here = fitted(np.arange(d), swaps=True)
        S = result.support.tolist()
        others = [j for j in range(d) if j not in S]
        for i in range(k):
            assert min(fitted([*S[:i], *S[i + 1 :], j])[1] for j in others) > here * (1 - 1e-3)
    everything = fitted(np.arange(8), k=8, swaps=True)[0]
    assert sorted(everything.support.tolist()) == list(range(8))


def test_forced_columns_stay_and_weights_count():
    for seed in range(6):
        X, y = made(seed)
        result = minimize(X, y, OMP(5, always_include=(7, 20), swaps=True))
        assert result.support[:2].tolist() == [7, 20]
        weights = np.random.default_rng(seed).integers(0, 3, len(y))
        rows = np.repeat(np.arange(len(y)), weights)
        weighted = minimize(X, y, OMP(5, ridge=0.1, swaps=True), sample_weight=weights)
        repeated = minimize(X[rows], y[rows], OMP(5, ridge=0.1, swaps=True))
        np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-8, atol=1e-10)


def test_duplicates_and_dependent_columns_do_no_harm():
    X, y = made(1)
    X = np.column_stack([X, X, np.zeros(len(y)), X[:, :3] @ np.ones((3, 2))])
    for k in (1, 6, 30):
        result = minimize(X, y, OMP(k, swaps=True))
        assert np.linalg.matrix_rank(X[:, result.support]) == len(result.support) == k
        assert result.objective <= minimize(X, y, OMP(k)).objective * (1 + 1e-9)


def test_a_finished_model_of_a_path_is_that_of_its_own_run():
    X, y = made(3)
    config = FitConfig(solver=OMP(swaps=True), fit_intercept=False)
    path = fitted_path(config, PursuitRegressor()._check_samples(X, y, None).base, [y], None, 6)
    for k, (fit,) in enumerate(path, start=1):
        for found, swaps in ((fit, False), (fit.finished(), True)):
            assert found.columns.tolist() == minimize(X, y, OMP(k, swaps=swaps)).support.tolist()


def test_what_is_read_at_the_end_counts_and_what_is_refused():
    X, y = made(5)
    whole = minimize(X, y, OMP(6, swaps=True), "exact")
    assert whole.entries_read > sum(record.entries_read for record in whole.history)
    with pytest.raises(ValueError, match="both signs; leave out positive"):
        minimize(X, y, OMP(6, swaps=True, positive=True))
    with pytest.raises(TypeError, match="swaps must be True or False"):
        OMP(6, swaps="end")
