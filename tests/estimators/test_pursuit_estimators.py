"""PursuitRegressor and PursuitClassifier: what they compute, and how they fit into scikit-learn programs."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import DataConversionWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression

import skpursuit as sk
from skpursuit.interop.skops import trusted_types
from skpursuit.problem.losses import as_loss


@pytest.fixture
def signal():
    X, y, w = sk.datasets.make_sparse_signal(150, 60, 4, snr=15.0, random_state=0)
    return X * 3 + 1, y + 5, w


@pytest.fixture
def classes():
    return make_classification(300, 30, n_informative=6, n_classes=3, random_state=0)


@pytest.mark.parametrize("solver", ["omp", "mp", "cosamp", "grasp", "fw"])
@pytest.mark.parametrize("normalize", [False, True])
def test_every_solver_is_minimize_on_centred_data(signal, solver, normalize):
    X, y, _ = signal
    size = {} if solver == "fw" else {"n_nonzero_coefs": 4}
    model = sk.PursuitRegressor(
        solver=solver, **size, max_iter=30, scale="column" if normalize else "none"
    ).fit(X, y)
    centred = X - X.mean(axis=0)
    scale = X.std(axis=0) if normalize else np.ones(60)
    reference = {
        "omp": sk.OMP(4),
        "mp": sk.MatchingPursuit(4, max_iter=30),
        "cosamp": sk.CoSaMP(4, max_iter=30),
        "grasp": sk.GraSP(4, max_iter=30),
        "fw": sk.FrankWolfe(sk.L1Ball(1.0), max_iter=30),
    }[solver]
    result = sk.minimize(centred / scale, y - y.mean(), reference)
    np.testing.assert_allclose(model.coef_, result.coef / scale, atol=1e-10)
    assert model.support_.tolist() == result.support.tolist()
    assert model.status_ is result.status
    assert model.n_iter_ == result.n_iter == len(model.history_)
    assert model.entries_read_ == result.entries_read
    np.testing.assert_allclose(model.predict(X), centred @ model.coef_ + y.mean())


def test_counts_of_two_targets_and_of_one_column():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 10))
    Y = rng.poisson(np.exp(1.0 + 0.5 * X[:, [2, 5]])).astype(float)
    model = sk.PursuitRegressor(loss="poisson", n_nonzero_coefs=1, shared_support=False)
    both = model.fit(X, Y)
    assert [s.tolist() for s in both.support_] == [[2], [5]]
    assert both.predict(X).shape == Y.shape
    with pytest.warns(DataConversionWarning, match="column-vector"):
        one = model.fit(X, Y[:, :1])
    assert one.coef_.shape == (10,)


@pytest.mark.parametrize("solver", ["omp", "mp", "grasp"])
@pytest.mark.parametrize("loss", ["huber", "poisson"])
def test_intercepts_of_other_losses_leave_no_slope(solver, loss):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 10))
    y = rng.poisson(np.exp(1.0 + 0.5 * X[:, 2])).astype(float)
    model = sk.PursuitRegressor(solver=solver, loss=loss, n_nonzero_coefs=2, max_iter=20).fit(X, y)
    predicted = model.predict(X)
    slope = predicted - y if loss == "poisson" else np.clip(predicted - y, -1.35, 1.35)
    assert abs(slope.sum()) < 1e-4
    assert 2 in model.support_[: 1 + (solver == "grasp")]  # which are in the order of X
    if loss == "poisson":
        assert model.intercept_ == pytest.approx(1.0, abs=0.15)


def test_targets_share_a_support_or_have_one_each():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 20))
    Y = X[:, [3, 7]] + 0.1 * rng.standard_normal((80, 2))
    each = sk.PursuitRegressor(n_nonzero_coefs=1, shared_support=False).fit(X, Y)
    assert [s.tolist() for s in each.support_] == [[3], [7]]
    assert each.status_ == [sk.Status.COMPLETE] * 2
    shared = sk.PursuitRegressor(n_nonzero_coefs=2).fit(X, Y)
    assert sorted(shared.support_.tolist()) == [3, 7]
    chosen = sk.PursuitRegressorCV(shared_support=False, scoring="r2", max_nonzero_coefs=3).fit(X, Y)
    assert [s[0] for s in chosen.support_] == [3, 7]
    for model in (each, shared, chosen):
        assert model.coef_.shape == (2, 20)
        assert model.intercept_.shape == (2,)
        assert model.predict(X).shape == (80, 2)
        assert model.score(X, Y) > 0.9


@pytest.mark.parametrize("names", [["no", "yes", "yes"], ["low", "mid", "top"]])
def test_logistic_models_are_the_optimum_on_their_features(classes, names):
    X, y = classes[0], np.array(names)[classes[1]]
    given = {"multi_class": "multinomial", "ridge": 1e-2, "scale": "none"}
    model = sk.PursuitClassifier(n_nonzero_coefs=4, **given).fit(X, y)
    reference = LogisticRegression(C=100 / len(y), tol=1e-10, max_iter=5000).fit(X[:, model.support_], y)
    np.testing.assert_allclose(model.coef_[:, model.support_], reference.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-5)
    probabilities = reference.predict_proba(X[:, model.support_])
    np.testing.assert_allclose(model.predict_proba(X), probabilities, atol=1e-6)
    assert (len(model.support_), set(model.predict(X))) == (4, set(names))


def test_one_vs_rest_is_one_binary_problem_a_class(classes):
    X, y = classes
    model = sk.PursuitClassifier(n_nonzero_coefs=3).fit(X, y)
    for k in range(3):
        single = sk.PursuitClassifier(n_nonzero_coefs=3).fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], single.coef_[0], atol=1e-8)
        assert model.support_[k].tolist() == single.support_.tolist()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert (model.predict_proba(X).argmax(axis=1) == model.predict(X)).all()
    shared = sk.PursuitClassifier(n_nonzero_coefs=3, multi_class="ovr_shared").fit(X, y)
    assert np.flatnonzero(shared.coef_.any(axis=0)).tolist() == sorted(shared.support_.tolist())


def test_probabilities_exist_only_where_the_loss_has_them(classes):
    X, y = classes
    assert not hasattr(sk.PursuitClassifier(loss="squared"), "predict_proba")
    assert hasattr(sk.PursuitClassifier(loss=sk.Logistic()), "predict_proba")
    np.testing.assert_allclose(
        np.exp(sk.PursuitClassifier().fit(X, y).predict_log_proba(X)),
        sk.PursuitClassifier().fit(X, y).predict_proba(X),
    )


def test_class_weights_are_sample_weights(classes):
    X, y = classes
    weighted = sk.PursuitClassifier(class_weight={0: 3.0, 1: 1.0, 2: 0.5}).fit(X, y)
    by_hand = sk.PursuitClassifier().fit(X, y, sample_weight=np.array([3.0, 1.0, 0.5])[y])
    np.testing.assert_allclose(weighted.coef_, by_hand.coef_)
    assert not np.allclose(weighted.coef_, sk.PursuitClassifier().fit(X, y).coef_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_in_and_feature_names_out(signal, frame):
    X, y, _ = signal
    names = [f"x{j}" for j in range(60)]
    table = frame({name: X[:, j] for j, name in enumerate(names)})
    model = sk.PursuitRegressor(n_nonzero_coefs=4).fit(table, y)
    assert model.feature_names_in_.tolist() == names
    selected = SelectFromModel(model, threshold=1e-10).fit(table, y)
    assert selected.get_feature_names_out().tolist() == [names[j] for j in sorted(model.support_)]
    np.testing.assert_allclose(
        model.predict(table), sk.PursuitRegressor(n_nonzero_coefs=4).fit(X, y).predict(X)
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "kind", [sk.PursuitRegressor, sk.PursuitFeatureSelector, sk.OrthogonalMatchingPursuitCV]
)
def test_messages_name_the_column(signal, frame, kind):
    X, y, _ = signal
    good = {name: X[:, j] for j, name in enumerate("abcd")}
    text, gap = frame(good | {"c": ["x"] * 150}), frame(good | {"d": np.full(150, np.nan)})
    model = kind().fit(frame(good), y)
    use = getattr(model, "transform", None) or model.predict
    told = "column 'c' of X: could not convert string to float: 'x'"
    with pytest.raises(ValueError, match=told):
        clone(model).fit(text, y)
    if use == getattr(model, "predict", None):  # a feature selector hands on what it is given
        with pytest.raises(ValueError, match=told):
            use(text)
    with pytest.raises(TypeError, match="column 'b' of X holds times"):
        clone(model).fit(pd.DataFrame(good | {"b": np.arange(150).astype("M8[s]")}), y)
    with pytest.raises(ValueError, match=r"first in column 3, row 0 \('d'\)"):
        clone(model).fit(gap, y)
    with pytest.raises(ValueError, match="column 'd' of X: Input X contains NaN"):
        use(gap)


STORED = [
    sk.PursuitRegressor(n_nonzero_coefs=3, loss=sk.Huber(1.5)),
    sk.PursuitRegressor(solver=sk.FrankWolfe(sk.L1Ball(3.0)), selector=sk.Uniform(), random_state=0),
    sk.PursuitClassifier(n_nonzero_coefs=3, selector=sk.Exact()),
    sk.PursuitClassifierCV(cv=2),
    sk.PursuitRegressorCV(cv=2, solver=sk.OMP(n_nonzero_coefs=3)),
    sk.OrthogonalMatchingPursuitCV(),
    sk.PursuitFeatureSelector(),
    sk.DictionaryLearner(5, n_nonzero_coefs=2, random_state=0),
]


@pytest.mark.parametrize("model", STORED)
def test_models_clone_pickle_and_go_through_skops(model, classes):
    X, y = classes
    fitted = clone(model).fit(X, y)
    stored = skops.io.dumps(fitted)
    use = "predict" if hasattr(fitted, "predict") else "transform"
    for copy in (pickle.loads(pickle.dumps(fitted)), skops.io.loads(stored, trusted=trusted_types())):
        found, expected = (sparse.coo_array(getattr(one, use)(X)).toarray() for one in (copy, fitted))
        np.testing.assert_array_equal(found, expected)
        known = [name for name in ("status_", "history_") if name in vars(fitted)]
        assert [getattr(copy, name) for name in known] == [getattr(fitted, name) for name in known]
    assert repr(clone(fitted)) == repr(model)


def test_sparse_X_is_dense_X():
    rng = np.random.default_rng(4)
    X = sparse.random_array((200, 50), density=0.1, rng=rng, format="csr")
    y = (X @ rng.standard_normal(50) > 0).astype(int)
    plain, column = {"scale": "none"}, {"scale": "column"}
    for options in (plain, column, column | {"loss": "squared"}, plain | {"solver": "grasp"}):
        model = sk.PursuitClassifier(n_nonzero_coefs=5, **options)
        lean, full = clone(model).fit(X, y), clone(model).fit(X.toarray(), y)
        np.testing.assert_allclose(lean.coef_, full.coef_, atol=1e-8)
        np.testing.assert_allclose(lean.decision_function(X), full.decision_function(X.toarray()), atol=1e-8)


def test_wrong_parameters_are_refused(classes):
    X, y = classes
    for model, message in (
        (sk.PursuitRegressor(loss="absolute"), "unknown loss 'absolute'"),
        (sk.PursuitClassifier(loss="log_loss"), "unknown loss 'log_loss'; did you mean 'logistic'"),
        (sk.PursuitRegressor(loss="poison"), "did you mean 'poisson'"),
        (sk.PursuitClassifier(multi_class="multinomial", solver="mp"), "needs solver='omp'"),
        (sk.PursuitClassifier(multi_class="multinomial", solver=sk.MatchingPursuit(2)), "needs solver='omp'"),
        (sk.PursuitClassifier(multi_class="multinomial", loss="squared"), "needs loss='logistic'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        sk.PursuitClassifier().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="one class only with a weight above zero"):
        sk.PursuitClassifier(class_weight={False: 0.0, True: 1.0}).fit(X, y == 0)
    with pytest.warns(UserWarning, match="using 30"):  # two of them are combinations of others
        assert len(sk.PursuitRegressor(n_nonzero_coefs=31).fit(X, y).support_) == 28


@pytest.mark.parametrize("loss", ["huber", "poisson"])
def test_grasp_fits_each_of_several_targets_on_one_support(signal, loss):
    X, y, _ = signal
    Y = np.abs(np.column_stack([y, y[::-1] + 3]))
    X = X / 10
    model = sk.PursuitRegressor(solver="grasp", loss=loss, n_nonzero_coefs=3).fit(X, Y)
    for t in range(2):
        z = X @ model.coef_[t] + model.intercept_[t]
        mean = Y[:, t].mean()
        constant = np.log(mean) if loss == "poisson" else np.median(Y[:, t])
        losses = as_loss(loss).value(Y[:, t], z), as_loss(loss).value(Y[:, t], np.full(len(X), constant))
        assert losses[0].sum() < losses[1].sum()
    assert np.count_nonzero(np.any(model.coef_ != 0, axis=0)) == 3


def constant_column(kind, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 1000))
    X = rng.standard_normal((n, 4)).astype(np.float32 if kind == "float32" else np.float64)
    X[:, 0] = rng.choice([1000.0, 5.0, 0.1, 1e8, -3e-7])
    y = X[:, 1] + rng.standard_normal(n)
    return {"F": np.asfortranarray, "csr": sparse.csr_array}.get(kind, np.asarray)(X), y, rng.random(n)


@pytest.mark.parametrize("kind", ["C", "F", "csr", "float32"])
def test_a_constant_column_has_no_part_in_a_model_with_an_intercept(kind):
    models = [sk.PursuitRegressor(solver=solver, n_nonzero_coefs=4) for solver in ("omp", "mp", "cosamp")]
    models += [clone(model).set_params(scale="none") for model in models]
    models += [sk.PursuitRegressor(loss="huber", n_nonzero_coefs=4, scale="column")]
    models += [sk.OrthogonalMatchingPursuit(n_nonzero_coefs=4, precompute=known) for known in (True, False)]
    models += [sk.OrthogonalMatchingPursuitCV(max_iter=4)]
    for seed in range(4):
        X, y, weights = constant_column(kind, seed)
        for i, model in enumerate(models):
            for given in (None, weights)[(seed + i) % 2 :][:1]:
                # the drop-in says that a column is missing
                with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
                    assert model.fit(X, y, sample_weight=given).coef_[0] == 0.0, (model, seed, given is None)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 0, 1, 2]])
def test_columns_that_differ_by_an_offset_depend_on_each_other(order):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 3))
    X, y = np.column_stack([Z, 1e6 - Z[:, 0]])[:, order], Z[:, 0] + 0.1 * rng.standard_normal(200)
    for solver in ("omp", "cosamp"):
        model = sk.PursuitRegressor(solver=solver, n_nonzero_coefs=4).fit(X, y)
        assert np.abs(model.coef_).max() < 2.0
        assert np.count_nonzero(model.coef_) == 3
    far = sk.PursuitRegressor(n_nonzero_coefs=3).fit(Z + 1e6, y)  # not so those that vary by a millionth
    np.testing.assert_allclose(far.coef_, sk.PursuitRegressor(n_nonzero_coefs=3).fit(Z, y).coef_, atol=1e-6)


def test_a_constant_target_needs_no_columns():
    X = np.random.default_rng(0).standard_normal((1000, 3))
    for target in (np.full(1000, 0.1), np.full((1000, 2), [0.1, 1e8])):
        model = sk.PursuitRegressor().fit(X, target)
        assert not model.coef_.any()
        np.testing.assert_allclose(model.predict(X), target, rtol=1e-12)


@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_columns_that_are_small_beside_their_means_are_kept(layout):
    rng = np.random.default_rng(0)
    z = rng.standard_normal(20000)
    X = np.column_stack([1.7e12 + 60 * z, rng.standard_normal((20000, 3))])  # times in milliseconds
    y = z + 0.1 * rng.standard_normal(20000)
    models = [
        sk.PursuitRegressor(n_nonzero_coefs=1, scale="column", solver=s) for s in ("omp", "mp", "cosamp")
    ]
    models += [sk.OrthogonalMatchingPursuit(n_nonzero_coefs=1, precompute=known) for known in (True, False)]
    for model in models:
        assert model.fit(layout(X), y).score(layout(X), y) > 0.98
    far = sk.PursuitRegressor(n_nonzero_coefs=1).fit(X[:, 1:], 1.7e12 + X[:, 1])
    assert far.coef_[0] == pytest.approx(1.0, rel=1e-2)


def test_a_column_with_a_large_mean_does_not_make_others_dependent():
    rng = np.random.default_rng(0)
    t, a = rng.uniform(0, 60, 20000), rng.standard_normal(20000)
    b = a + 0.002 * rng.standard_normal(20000)
    y = 50 * t + 3 * a + 1000 * (b - a) + 0.01 * rng.standard_normal(20000)
    plain = sk.PursuitRegressor(n_nonzero_coefs=3).fit(np.column_stack([t, a, b]), y).coef_
    X = np.column_stack([1.7e9 + t, a, b])
    for model in (
        sk.PursuitRegressor(n_nonzero_coefs=3),
        sk.PursuitRegressor(n_nonzero_coefs=3, loss="huber", scale="column"),
        sk.OrthogonalMatchingPursuit(n_nonzero_coefs=3, precompute=True),
        sk.OrthogonalMatchingPursuit(n_nonzero_coefs=3, precompute=False),
    ):
        np.testing.assert_allclose(model.fit(X, y).coef_, plain, rtol=1e-2)


def noisy(n=400):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 12))
    return X, 2 * X[:, 3] - X[:, 7] + 0.5 * X[:, 11] + rng.standard_normal(n)


@pytest.mark.parametrize("level", [0.1, 0.9])
@pytest.mark.parametrize(
    "model", [sk.PursuitRegressor(n_nonzero_coefs=3), sk.PursuitRegressorCV(solver="omp")], ids=str
)
def test_a_quantile_is_that_of_y_in_any_unit(model, level):
    X, y = noisy()
    true = clone(model).set_params(loss=sk.Quantile(level)).fit(X, y)
    assert abs((y <= true.predict(X)).mean() - level) < 0.02
    for unit in (1e-5, 1e5):
        ours = clone(true).fit(X, unit * y)
        np.testing.assert_array_equal(ours.support_, true.support_)
        np.testing.assert_allclose(ours.coef_, unit * true.coef_, rtol=1e-5)
        assert (unit * y <= ours.predict(X)).mean() == pytest.approx((y <= true.predict(X)).mean(), abs=0.005)


@pytest.mark.parametrize(
    ("model", "attribute"),
    [
        (sk.PursuitRegressorCV(solver="omp", cv=3), "scores_"),
        (sk.PursuitRegressor(n_nonzero_coefs=3), "coef_"),
        (sk.PursuitFeatureSelector(n_features_to_select=3, n_resamples=6, random_state=0), "scores_"),
    ],
    ids=str,
)
def test_all_folds_and_halves_have_the_width_of_the_samples_that_count(model, attribute):
    X, y = noisy()
    weights = np.arange(400.0) % 3
    y = np.where(weights > 0, y, 1e6 * y)
    width = sk.Quantile().resolved(y[weights > 0]).width
    ours, true = (
        clone(model).set_params(loss=loss).fit(X, y, weights)
        for loss in (sk.Quantile(0.8), sk.Quantile(0.8, width))
    )
    np.testing.assert_array_equal(getattr(ours, attribute), getattr(true, attribute))
