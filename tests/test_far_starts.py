"""Fits that begin far from their minimum, or on flat ground."""

import numpy as np
import pytest
from scipy.optimize import minimize as reference

import skpursuit as sk


@pytest.mark.parametrize("seed", range(12))
def test_huber_reaches_its_minimum_from_any_distance_in_any_unit(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3)) * 2.0 ** rng.integers(-30, 30)
    scale = 10.0 ** rng.uniform(0, 4)
    y = scale * (X @ [3.0, -2.0, 1.0] / np.abs(X).max() + 0.1 * rng.standard_normal(60))
    result = sk.minimize(X, y, (sk.OMP, sk.GraSP)[seed % 2](3), loss="huber")
    unit, loss = np.abs(X).max(), sk.Huber()

    def objective(w):
        return float(loss.value(y, X @ w / unit * scale).sum())

    best = reference(objective, np.zeros(3), method="Powell", options={"xtol": 1e-9, "ftol": 1e-13}).fun
    assert result.objective <= best * (1 + 1e-5) + 1e-9


@pytest.mark.parametrize("k", [8, 9, 20])
def test_separable_classes_end(k):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((9, 30)), np.sign(rng.standard_normal(9))
    result = sk.minimize(X, y, sk.OMP(k), "exact", "logistic")
    assert result.status.ok
    assert result.objective < 1e-10


@pytest.mark.parametrize("solver", ["omp", "cosamp"])
def test_codes_over_nearly_dependent_atoms_keep_their_digits(solver):
    rng = np.random.default_rng(1)
    atoms = rng.standard_normal((6, 20))
    atoms[3] = atoms[0] + 1e-6 * atoms[3]
    signals = rng.standard_normal((40, 6)) @ atoms + rng.standard_normal((40, 20))
    codes = sk.PursuitCoder(atoms, n_nonzero_coefs=6, solver=solver).transform(signals).toarray()
    for code, signal in zip(codes, signals):
        used = np.flatnonzero(code)
        if solver == "omp" and len(used) == 6:
            fitted = atoms.T @ np.linalg.lstsq(atoms.T, signal, rcond=None)[0]
            assert np.linalg.norm(code @ atoms - fitted) <= 1e-8 * np.linalg.norm(signal)
        assert np.linalg.norm(atoms[used] @ (signal - code @ atoms)) <= 1e-6 * np.linalg.norm(signal)


def test_ties_of_the_gram_matrix_go_to_the_lowest_column_for_targets_nearly_orthogonal_to_all():
    rng = np.random.default_rng(3)
    for _ in range(200):
        x = rng.standard_normal((12, 3))
        X = x[:, [0, 1, 0, 2, 1, 0]] * rng.choice([-1.0, 1.0], 6)
        y = rng.standard_normal(12)
        y -= x @ np.linalg.lstsq(x, y, rcond=None)[0] * (1 - 1e-9)
        model = sk.OrthogonalMatchingPursuit(n_nonzero_coefs=1, fit_intercept=False, precompute=True).fit(
            X, y
        )
        assert model.coef_.nonzero()[0].tolist() in ([0], [1], [3])


def test_scores_that_are_not_finite_do_not_win():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)

    def scoring(model, X, y):
        return np.nan if np.count_nonzero(model.coef_) == 2 else -np.count_nonzero(model.coef_)

    assert sk.PursuitRegressorCV(scoring=scoring).fit(X, y).n_nonzero_coefs_ == 1
    with pytest.raises(ValueError, match="no number of coefficients has a finite score"):
        sk.PursuitRegressorCV(solver="omp", scoring=lambda model, X, y: np.nan).fit(X, y)
    far, near = (sk.PursuitRegressorCV().fit(X, unit * (X[:, 0] + y)) for unit in (1e90, 1.0))
    np.testing.assert_allclose(far.coef_ / 1e90, near.coef_, rtol=1e-9)
