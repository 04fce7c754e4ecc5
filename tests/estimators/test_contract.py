"""scikit-learn's own estimator checks, on every estimator: none fails, none is skipped."""

from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import skpursuit as sp

ESTIMATORS = [
    sp.OrthogonalMatchingPursuit(),
    sp.OrthogonalMatchingPursuitCV(),
    sp.PursuitRegressor(),
    sp.PursuitRegressor(solver="mp", max_iter=50),
    sp.PursuitFeatureSelector(),
    sp.PursuitFeatureSelector(n_resamples=4),
    sp.PursuitFeatureSelector(n_features_to_select="cv"),
    sp.PursuitRegressor(solver="cosamp"),
    sp.PursuitRegressor(
        solver=sp.FrankWolfe(sp.L1Ball(100.0), max_iter=30), scale="column", shared_support=False
    ),
    sp.PursuitRegressor(shared_support=False),
    sp.PursuitRegressor(loss="poisson"),
    sp.PursuitClassifier(),
    sp.PursuitClassifier(solver="grasp"),
    sp.PursuitClassifier(solver="cosamp", loss="squared"),
    sp.PursuitClassifier(multi_class="multinomial"),
    sp.PursuitClassifier(loss="squared", multi_class="ovr_shared"),
    sp.PursuitRegressorCV(),
    sp.PursuitRegressorCV(scoring="ebic"),
    sp.PursuitRegressorCV(loss="poisson"),
    sp.PursuitClassifierCV(),
    sp.PursuitClassifierCV(multi_class="multinomial", scoring="accuracy"),
    sp.DictionaryLearner(),
]


@parametrize_with_checks(ESTIMATORS)
# Some checks ask for more atoms than their data bear, and scikit-learn's own OMP warns there too.
@pytest.mark.filterwarnings("ignore:Orthogonal matching pursuit ended prematurely:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:the best number of coefficients:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:cv=.* has no effect")  # the checks set it everywhere
@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
def test_estimator_checks(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"skipped: {reason}")
