"""Which features a model may have: groups, features that are always or never in it, and signs."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls
from sklearn.base import clone

from skpursuit import (
    OMP,
    PursuitClassifier,
    PursuitClassifierCV,
    PursuitFeatureSelector,
    PursuitRegressor,
    PursuitRegressorCV,
    audit,
    certify,
    minimize,
)

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((200, 12)), columns=[f"c{j}" for j in range(12)])
Y = X.c1 + X.c2 - 2 * X.c5 + 0.3 * X.c7 + 0.5 * RNG.standard_normal(200)
GROUPS = [["c1", "c2"], ["c5", "c6"], ["c8", "c9", "c10"]]
NUMBERS = [[1, 2], [5, 6], [8, 9, 10]]


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_groups_by_name_and_number_are_those_of_the_solver(loss):
    kind = PursuitClassifier if loss == "logistic" else PursuitRegressor
    y = Y > 0 if loss == "logistic" else Y
    for solver in ("omp", "grasp", "sp")[: 3 if loss == "squared" else 2]:
        model = kind(n_nonzero_coefs=2, feature_groups=GROUPS, loss=loss, solver=solver)
        named = clone(model).fit(X, y)
        numbered = clone(model).set_params(feature_groups=NUMBERS).fit(X.to_numpy(), np.array(y))
        assert set(named.support_) == {1, 2, 5, 6}
        assert named.coef_.tobytes() == numbered.coef_.tobytes()
    path = (PursuitClassifierCV if loss == "logistic" else PursuitRegressorCV)(
        solver="omp", feature_groups=GROUPS, always_include=["c0"], exclude=["c7"], loss=loss
    ).fit(X, y)
    assert {0, 1, 2, 5, 6} <= set(path.support_)
    assert 7 not in path.path_features_
    assert [np.count_nonzero(w) for w in path.coef_path_.reshape(len(path.coef_path_), -1)][:3] == [1, 3, 5]


@pytest.mark.parametrize("make", [PursuitRegressor, PursuitRegressorCV])
def test_features_that_are_in_every_model_and_in_none(make):
    model = make(solver="omp", always_include=["c7", "c0"], exclude=["c5"]).fit(X, Y)
    assert model.support_[:2].tolist() == [7, 0]
    assert model.coef_[5] == 0
    if make is PursuitRegressorCV:
        assert [np.count_nonzero(w) for w in model.coef_path_][:4] == [2, 2, 3, 4]
        by_criterion = clone(model).set_params(scoring="bic").fit(X, Y)
        assert set(by_criterion.support_) >= {0, 1, 2, 7}
    else:
        plain = X.drop(columns="c5")
        expected = PursuitRegressor(always_include=["c7", "c0"]).fit(plain, Y)
        np.testing.assert_allclose(model.predict(X), expected.predict(plain), atol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_other_solvers_have_features_in_every_model_too(loss):
    kind, y = (PursuitClassifier, Y > 0) if loss == "logistic" else (PursuitRegressor, Y)
    for solver in ("grasp", "cosamp", "sp")[: 3 if loss == "squared" else 1]:
        model = kind(solver=solver, n_nonzero_coefs=4, always_include=["c7", "c0"], exclude=["c5"]).fit(X, y)
        named = kind(n_nonzero_coefs=5, always_include=model.support_, exclude=["c5"]).fit(X, y)
        assert {0, 7} <= set(model.support_)
        assert model.coef_.ravel()[5] == 0
        assert len(model.support_) == 4
        assert np.corrcoef(X @ model.coef_.ravel(), X @ named.coef_.ravel())[0, 1] > 0.95
    many = PursuitClassifier(solver="grasp", multi_class="multinomial", n_nonzero_coefs=3)
    assert {1, 2, 5} == set(many.fit(X, np.digitize(Y, [-1, 1])).support_)


@pytest.mark.parametrize("solver", ["omp", "cosamp", "grasp", "sp", "mp"])
def test_positive_coefficients_are_those_of_scipy(solver):
    model = PursuitRegressor(positive=True, n_nonzero_coefs=12, solver=solver).fit(X, Y)
    expected = nnls((X - X.mean()).to_numpy(), (Y - Y.mean()).to_numpy())[0]
    np.testing.assert_allclose(model.coef_, expected, atol=1e-10)


def test_a_path_of_positive_models_and_features_that_a_selector_may_have():
    path = PursuitRegressorCV(solver="omp", positive=True, null_test=False).fit(X, Y)
    assert (path.coef_path_ >= 0).all()
    given = {"feature_groups": GROUPS, "always_include": ["c7"], "exclude": ["c5"]}
    chosen = PursuitFeatureSelector(n_features_to_select=2, **given).fit(X, Y)
    assert chosen.support_.tolist()[0] == 7
    assert set(chosen.support_) == {1, 2, 7}
    np.testing.assert_allclose(chosen.scores_[[7, 1, 2, 5]], [1, 0.5, 0.5, 0])
    halves = clone(chosen).set_params(n_resamples=10, random_state=0, threshold=0.9).fit(X, Y)
    assert {1, 2, 7} == set(halves.support_)
    assert halves.error_bound_ == pytest.approx(1 / (0.8 * 6))
    for loss, y in (("squared", Y), ("logistic", Y > 0)):
        by_folds = clone(chosen).set_params(n_features_to_select="cv", loss=loss).fit(X, y)
        assert {1, 2, 7} <= set(by_folds.support_)
        assert not {5, 6} & set(by_folds.support_)
    many = PursuitFeatureSelector(always_include=[*range(11)]).fit(X, Y)
    assert set(many.support_[:11]) == set(range(11))


def test_solvers_take_names_of_columns_on_disk(tmp_path):
    X.assign(y=Y).to_parquet(tmp_path / "x.parquet")
    by_name = minimize(tmp_path / "x.parquet", "y", OMP(3, feature_groups=GROUPS, exclude=["c5"]))
    by_number = minimize(X.to_numpy(), Y.to_numpy(), OMP(3, feature_groups=NUMBERS, exclude=[5]))
    framed = minimize(X, Y, OMP(3, feature_groups=GROUPS, exclude=["c5"]))
    assert by_name.support.tolist() == by_number.support.tolist() == framed.support.tolist()
    assert not {5, 6} & set(by_name.support)
    with pytest.raises(ValueError, match="exclude names 'c5', which several columns have"):
        minimize(X.rename(columns={"c6": "c5"}), Y, OMP(3, exclude=["c5"]))


@pytest.mark.parametrize("rule", [{"feature_groups": GROUPS}, {"exclude": [1]}, {"positive": True}])
def test_models_that_may_not_have_all_columns_are_not_audited(rule):
    for weigh in (audit, certify):
        with pytest.raises(ValueError, match="audit and certify know no feature_groups"):
            weigh(X, Y, PursuitRegressor(n_nonzero_coefs=2, **rule).fit(X, Y))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PursuitRegressor(feature_groups=GROUPS, solver="fw"), "no effect with solver 'fw'"),
        (PursuitRegressor(always_include=["c0"], solver="mp"), "no effect with solver 'mp'"),
        (PursuitRegressor(positive=True, solver="stoiht"), "no effect with solver 'stoiht'"),
        (PursuitRegressor(exclude=[3], solver="fw"), "no effect with solver 'fw'"),
        (PursuitRegressorCV(feature_groups=GROUPS), "no effect with solver='auto'; write solver='omp'"),
        (PursuitRegressor(solver=OMP(3), exclude=[1]), "give it to the solver"),
        (PursuitRegressor(exclude=["zz"]), "exclude names 'zz', which X does not have; the names are"),
        (PursuitRegressor(exclude="c1"), "exclude must be a list of features"),
        (PursuitRegressor(exclude=["c1"], always_include=["c1"]), "both name column 1"),
        (PursuitRegressor(feature_groups=[["c1"], ["c1"]]), "names column 'c1' twice"),
        (PursuitRegressor(positive=True, loss="huber"), "positive=True needs squared loss"),
        (PursuitRegressor(n_nonzero_coefs=1, always_include=[1, 2]), "always_include names 2 columns"),
        (
            PursuitRegressorCV(solver="omp", max_nonzero_coefs=2, always_include=[1, 2, 3]),
            "names 3 columns but max_nonzero_coefs is 2; raise it",
        ),
        (
            PursuitRegressorCV(solver=["mp", OMP(always_include=[1, 2, 3])], max_nonzero_coefs=2),
            "names 3 columns but max_nonzero_coefs is 2; raise it",
        ),
        (PursuitFeatureSelector(n_features_to_select=1, always_include=[1, 2]), "n_features_to_select is 1"),
        (PursuitFeatureSelector(exclude=["zz"]), "exclude names 'zz', which X does not have"),
    ],
)
def test_what_cannot_be_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
