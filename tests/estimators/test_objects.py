"""A solver or loss object works wherever its name does, and gives the same model."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from skpursuit import (
    OMP,
    CoSaMP,
    FrankWolfe,
    GraSP,
    L1Ball,
    Logistic,
    MatchingPursuit,
    PursuitClassifier,
    PursuitClassifierCV,
    PursuitRegressor,
    PursuitRegressorCV,
    Squared,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 12))
Y = X[:, 3] - 2 * X[:, 7] + 0.5 * X[:, 1] + 0.3 * RNG.standard_normal(80)
IRIS = load_iris(return_X_y=True)


def assert_same_model(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    assert one.status_ == other.status_


@pytest.mark.parametrize(
    ("name", "solver"),
    [("omp", OMP(3)), ("mp", MatchingPursuit(3)), ("cosamp", CoSaMP(3)), ("grasp", GraSP(3))],
)
def test_solver_objects_of_regressors(name, solver):
    named = PursuitRegressor(solver=name, n_nonzero_coefs=3).fit(X, Y)
    assert_same_model(named, PursuitRegressor(solver=solver).fit(X, Y))
    named = PursuitRegressorCV(solver=name, max_nonzero_coefs=4).fit(X, Y)
    given = PursuitRegressorCV(solver=solver, max_nonzero_coefs=4).fit(X, Y)
    assert_same_model(named, given)
    np.testing.assert_array_equal(named.scores_, given.scores_)
    np.testing.assert_array_equal(named.coef_path_, given.coef_path_)


def test_the_object_of_frank_wolfe():
    named = PursuitRegressor(solver="fw").fit(X, Y)
    assert_same_model(named, PursuitRegressor(solver=FrankWolfe(L1Ball(1.0))).fit(X, Y))
    with pytest.raises(ValueError, match="solver needs a number of coefficients, as omp, mp, cosamp, grasp"):
        PursuitRegressorCV(solver=FrankWolfe(L1Ball(2.0))).fit(X, Y)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_multinomial_classes_with_a_solver_object(fit_intercept):
    options = {"multi_class": "multinomial", "fit_intercept": fit_intercept}
    named = PursuitClassifier(n_nonzero_coefs=2, ridge=0.005, **options).fit(*IRIS)
    given = PursuitClassifier(solver=OMP(2, ridge=0.005), **options).fit(*IRIS)
    assert_same_model(named, given)
    np.testing.assert_array_equal(named.predict_proba(IRIS[0]), given.predict_proba(IRIS[0]))
    assert given.coef_.shape == (3, 4)
    assert given.score(*IRIS) > 0.9


def test_multinomial_path_with_a_solver_object():
    options = {"multi_class": "multinomial", "scoring": "bic"}
    named = PursuitClassifierCV(ridges=0.005, **options).fit(*IRIS)
    given = PursuitClassifierCV(solver=OMP(ridge=0.005), **options).fit(*IRIS)
    assert_same_model(named, given)
    np.testing.assert_array_equal(named.scores_, given.scores_)


def test_loss_objects_of_classifiers():
    for name, loss in (("logistic", Logistic()), ("squared", Squared())):
        named = PursuitClassifier(loss=name, n_nonzero_coefs=2).fit(*IRIS)
        assert_same_model(named, PursuitClassifier(loss=loss, n_nonzero_coefs=2).fit(*IRIS))
    named = PursuitClassifier(multi_class="multinomial", n_nonzero_coefs=2).fit(*IRIS)
    given = PursuitClassifier(loss=Logistic(), multi_class="multinomial", n_nonzero_coefs=2).fit(*IRIS)
    assert_same_model(named, given)
