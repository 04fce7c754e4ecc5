"""scikit-learn's own estimator checks, on every class of estimators: none fails, none is skipped."""

from unittest import SkipTest

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import skpursuit as sp

CLASSES = [
    sp.OrthogonalMatchingPursuit(),
    sp.OrthogonalMatchingPursuitCV(),
    sp.PursuitRegressor(),
    sp.PursuitFeatureSelector(),
    sp.PursuitClassifier(),
    sp.PursuitRegressorCV(),
    sp.PursuitClassifierCV(),
    sp.DictionaryLearner(),
]
VARIANTS = [
    sp.PursuitRegressor(solver="mp", max_iter=50),
    sp.PursuitRegressor(solver="cosamp"),
    sp.PursuitRegressor(
        solver=sp.FrankWolfe(sp.L1Ball(100.0), max_iter=30), scale="column", shared_support=False
    ),
    sp.PursuitRegressor(loss="poisson"),
    sp.PursuitFeatureSelector(n_resamples=4),
    sp.PursuitFeatureSelector(n_features_to_select="cv"),
    sp.PursuitClassifier(solver="grasp"),
    sp.PursuitClassifier(solver="cosamp", loss="squared"),
    sp.PursuitClassifier(multi_class="multinomial"),
    sp.PursuitClassifier(loss="squared", multi_class="ovr_shared"),
    sp.PursuitRegressorCV(solver="omp", scoring="ebic"),
    sp.PursuitRegressorCV(loss="poisson", ridges=0.01, cv=2),
    sp.PursuitClassifierCV(multi_class="multinomial", ridges=0.01),
]
#: Features of the signals that a check of a coder makes, if not 3: its atoms must have as many.
WIDTHS = {
    **dict.fromkeys(("check_estimators_overwrite_params", "check_estimators_fit_returns_self"), 2),
    **dict.fromkeys(("check_readonly_memmap_input", "check_fit_idempotent"), 2),
    **dict.fromkeys(("check_fit_check_is_fitted", "check_n_features_in"), 2),
    **dict.fromkeys(("check_n_features_in_after_fitting", "check_positive_only_tag_during_fit"), 4),
    **dict.fromkeys(("check_estimators_dtypes", "check_transformers_unfitted_stateless"), 5),
    **dict.fromkeys(("check_dtype_object", "check_fit2d_1sample", "check_array_api_input"), 10),
    "check_fit2d_1feature": 1,
}
OF_THE_FIT = (
    "train", "weight", "dtypes", "1sample", "1feature", "idempotent", "subset", "order", "sparse",
    "one_label", "multioutput", "predictions", "decision",
)  # fmt: skip
pytestmark = [
    # Some checks ask for more atoms than their data bear, and scikit-learn's own OMP warns there too.
    pytest.mark.filterwarnings("ignore:Orthogonal matching pursuit ended prematurely:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:cv=.* has no effect"),  # the checks set it everywhere
    pytest.mark.filterwarnings("ignore:No features were selected:UserWarning"),
]


def coder(width):
    return sp.PursuitCoder(np.random.default_rng(0).standard_normal((5, width)), 2)


@parametrize_with_checks(CLASSES)
def test_estimator_checks(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"skipped: {reason}")


@pytest.mark.parametrize("check", [check for _, check in estimator_checks_generator(coder(3))])
def test_coder_checks(check):
    name = getattr(check, "func", check).__name__
    try:
        check(coder(WIDTHS.get(name, 3)))
    except SkipTest as reason:
        pytest.fail(f"skipped: {reason}")


@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_variants_pass_the_checks_of_the_fit(variant):
    checks = [
        (estimator, check)
        for estimator, check in estimator_checks_generator(variant)
        if any(part in getattr(check, "func", check).__name__ for part in OF_THE_FIT)
    ]
    assert len(checks) > 10
    for estimator, check in checks:
        check(estimator)
