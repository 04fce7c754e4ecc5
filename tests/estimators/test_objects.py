"""A solver or loss object works wherever its name does, and gives the same model."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris

import skpursuit as sk

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 12))
Y = X[:, 3] - 2 * X[:, 7] + 0.5 * X[:, 1] + 0.3 * RNG.standard_normal(80)
KINDS = {"omp": sk.OMP, "mp": sk.MatchingPursuit, "cosamp": sk.CoSaMP, "grasp": sk.GraSP}
MULTINOMIAL = {"multi_class": "multinomial"}
#: Estimators with a name, and what replaces the name and the parameters that go into the object.
MODELS = [
    *(
        (sk.PursuitRegressor(solver=name, n_nonzero_coefs=3), {"solver": kind(3), "n_nonzero_coefs": None})
        for name, kind in KINDS.items()
    ),
    *(
        (sk.PursuitRegressorCV(solver=name, max_nonzero_coefs=4), {"solver": kind()})
        for name, kind in KINDS.items()
    ),
    (sk.PursuitRegressor(solver="fw"), {"solver": sk.FrankWolfe(sk.L1Ball(1.0))}),
    *(
        (
            sk.PursuitClassifier(n_nonzero_coefs=2, ridge=0.005, fit_intercept=intercept, **MULTINOMIAL),
            {"solver": sk.OMP(2, ridge=0.005), "n_nonzero_coefs": None, "ridge": None},
        )
        for intercept in (True, False)
    ),
    (
        sk.PursuitClassifierCV(solver="omp", ridges=0.005, scoring="bic", **MULTINOMIAL),
        {"solver": sk.OMP(ridge=0.005), "ridges": "auto"},
    ),
    (sk.PursuitClassifier(loss="logistic", n_nonzero_coefs=2), {"loss": sk.Logistic()}),
    (sk.PursuitClassifier(loss="squared", n_nonzero_coefs=2), {"loss": sk.Squared()}),
    (sk.PursuitClassifier(n_nonzero_coefs=2, **MULTINOMIAL), {"loss": sk.Logistic()}),
]


@pytest.mark.parametrize(("model", "objects"), MODELS, ids=repr)
def test_an_object_gives_the_model_of_its_name(model, objects):
    data = load_iris(return_X_y=True) if is_classifier(model) else (X, Y)
    named, given = clone(model).fit(*data), clone(model).set_params(**objects).fit(*data)
    assert named.status_ == given.status_
    for name in ("coef_", "intercept_", "scores_", "coef_path_"):
        np.testing.assert_array_equal(getattr(named, name, 0), getattr(given, name, 0))


def test_frank_wolfe_has_no_path():
    with pytest.raises(ValueError, match="solvers that take n_nonzero_coefs"):
        sk.PursuitRegressorCV(solver=sk.FrankWolfe(sk.L1Ball(2.0))).fit(X, Y)
