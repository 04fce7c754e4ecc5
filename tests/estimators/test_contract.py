"""scikit-learn's own estimator checks, on every estimator: none fails, none is skipped."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

import skpursuit as sp

ESTIMATORS = [
    sp.OrthogonalMatchingPursuit(),
    sp.OrthogonalMatchingPursuitCV(),
    sp.PursuitRegressor(),
    sp.PursuitRegressor(solver="mp", max_iter=50),
    sp.PursuitRegressor(solver="cosamp"),
    sp.PursuitRegressor(solver="fw", radius=100.0, normalize=True, max_iter=30),
    sp.PursuitRegressor(shared_support=True),
    sp.PursuitRegressor(loss="poisson"),
    sp.PursuitClassifier(),
    sp.PursuitClassifier(solver="grasp"),
    sp.PursuitClassifier(solver="cosamp", loss="squared"),
    sp.PursuitClassifier(multi_class="multinomial"),
    sp.PursuitClassifier(loss="squared", shared_support=True),
    sp.PursuitRegressorCV(),
    sp.PursuitRegressorCV(criterion="ebic"),
    sp.PursuitRegressorCV(loss="poisson"),
    sp.PursuitClassifierCV(),
    sp.PursuitClassifierCV(multi_class="multinomial", scoring="accuracy"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
# Some checks ask for more atoms than their data bear, and scikit-learn's own OMP warns there too.
@pytest.mark.filterwarnings("ignore:Orthogonal matching pursuit ended prematurely:RuntimeWarning")
def test_estimator_checks(estimator):
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    assert len(results) > 40
    wrong = [(r["check_name"], r["status"], r["exception"]) for r in results if r["status"] != "passed"]
    assert wrong == []
