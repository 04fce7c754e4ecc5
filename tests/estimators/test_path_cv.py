"""Choosing the number of coefficients, and drawing the choice."""

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import KFold

from skpursuit import (
    OMP,
    MatchingPursuit,
    OrthogonalMatchingPursuitCV,
    PathDisplay,
    PursuitClassifier,
    PursuitClassifierCV,
    PursuitRegressor,
    PursuitRegressorCV,
    datasets,
)
from skpursuit.estimators import linear_fit

PLAIN = {"solver": "omp", "null_test": False}  # every number of columns, as a pursuit finds them


@pytest.fixture
def signal():
    X, y, _ = datasets.make_sparse_signal(120, 40, 4, snr=10.0, random_state=0)
    return X * 2 + 1, y + 3


@pytest.fixture
def classes():
    return make_classification(240, 20, n_informative=5, n_classes=3, random_state=0)


def test_no_size_is_run_beyond_the_one_at_which_a_path_ends(signal, monkeypatch):
    runs, fit = [], linear_fit.fit_linear
    monkeypatch.setattr(linear_fit, "fit_linear", lambda *args: runs.append(args) or fit(*args))
    model = PursuitRegressorCV(solver="cosamp", max_nonzero_coefs=25).fit(*signal)
    assert len(model.path_sizes_) < 25
    assert len(runs) == (5 + 1) * len(model.path_sizes_)  # on each fold, and on all samples


@pytest.mark.parametrize("solver", ["omp", "mp", "cosamp"])
def test_scores_are_those_of_a_fit_for_each_fold_and_number(signal, solver):
    X, y = signal
    given = MatchingPursuit(max_iter=40) if solver == "mp" else solver
    model = PursuitRegressorCV(**PLAIN | {"solver": given}, max_nonzero_coefs=5).fit(X, y)
    assert model.scores_.shape == (5, 5)
    for i, (train, test) in enumerate(KFold(5).split(X)):
        for k in range(1, 6):
            if solver == "mp" and k < 5:
                continue  # models on the way to five are not those of a run that stops earlier
            single = PursuitRegressor(solver=solver, n_nonzero_coefs=k, max_iter=40).fit(X[train], y[train])
            error = 0.5 * mean_squared_error(y[test], single.predict(X[test]))
            assert model.scores_[i, k - 1] == pytest.approx(-error, rel=1e-9)
    assert model.n_nonzero_coefs_ == model.scores_.mean(axis=0).argmax() + 1


def test_the_chosen_model_is_a_fit_of_that_size(signal):
    X, y = signal
    model = PursuitRegressorCV(**PLAIN).fit(X, y)
    single = PursuitRegressor(n_nonzero_coefs=model.n_nonzero_coefs_).fit(X, y)
    np.testing.assert_allclose(model.coef_, single.coef_, atol=1e-10)
    assert model.intercept_ == pytest.approx(single.intercept_)
    assert model.support_.tolist() == single.support_.tolist()
    for k in (1, 3, 10):
        step = PursuitRegressor(n_nonzero_coefs=k).fit(X, y)
        np.testing.assert_allclose(model.coef_path_[k - 1], step.coef_[model.path_features_], atol=1e-10)


@pytest.mark.parametrize("criterion", ["aic", "bic", "ebic"])
def test_information_criteria_against_their_definition(signal, criterion):
    X, y = signal
    n, d = X.shape
    model = PursuitRegressorCV(**PLAIN, scoring=criterion, max_nonzero_coefs=6).fit(X, y)
    from math import comb, log

    for k in range(1, 7):
        single = PursuitRegressor(n_nonzero_coefs=k).fit(X, y)
        value = n * log(mean_squared_error(y, single.predict(X)))
        value += {"aic": 2 * k, "bic": k * log(n), "ebic": k * log(n) + 2 * log(comb(d, k))}[criterion]
        assert model.scores_[0, k - 1] == pytest.approx(-value)
    assert model.n_nonzero_coefs_ == model.scores_[0].argmax() + 1


@pytest.mark.parametrize("seed", range(50))
def test_loo_is_the_mean_error_of_refits_without_each_row(seed):
    rng = np.random.default_rng(seed)
    n, d, m, intercept = int(rng.integers(12, 40)), int(rng.integers(3, 30)), seed % 3, bool(seed % 2)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2, d) + 5.0 * rng.integers(2)
    y = X[:, :2] @ rng.standard_normal((2, m) if m else 2) + rng.standard_normal((n, m) if m else n)
    how = {"fit_intercept": intercept, "max_nonzero_coefs": 3, "shared_support": seed % 4 > 1}
    model = PursuitRegressorCV(solver="omp", scoring="loo", **how).fit(X, y)
    for k, coef in enumerate(model.coef_path_):
        total = 0.0
        for line, target in zip(np.atleast_2d(coef), y.reshape(n, -1).T):
            A = X[:, model.path_features_[line != 0]]
            A = np.column_stack([A, np.ones(n)]) if intercept else A
            left_out = [np.delete(np.arange(n), i) for i in range(n)]
            fits = [np.linalg.lstsq(A[rows], target[rows])[0] for rows in left_out]
            error = np.mean([(target[i] - A[i] @ w) ** 2 for i, w in enumerate(fits)])
            unit = np.linalg.norm(A - A.mean(axis=0) * intercept, axis=0) / np.sqrt(n)
            C = (A - A.mean(axis=0) * intercept) / np.where(unit > 0, unit, 1.0)
            C[:, k + 1 :] = 1.0
            P = A.shape[1]
            total += error * n / (n - P) * (1 + np.trace(np.linalg.inv(C.T @ C / n)) / n)
        assert model.scores_[0, k] == pytest.approx(-total, rel=1e-9)
    assert model.n_nonzero_coefs_ == model.scores_[0].argmax() + 1
    counts = rng.integers(1, 4, n)
    weighted = PursuitRegressorCV(solver="omp", scoring="loo", **how).fit(X, y, counts)
    repeated = PursuitRegressorCV(solver="omp", scoring="loo", **how).fit(
        np.repeat(X, counts, 0), np.repeat(y, counts, 0)
    )
    np.testing.assert_allclose(weighted.scores_, repeated.scores_, rtol=1e-9)


@pytest.mark.parametrize(
    "how",
    [{"solver": "sp"}, {"ridges": 0.1}, {"loss": "huber"}, {"positive": True}, {"solver": OMP(ridge=1.0)}],
)
def test_loo_of_other_models_than_least_squares_is_refused(signal, how):
    with pytest.raises(ValueError, match="is of least squares"):
        PursuitRegressorCV(**{"solver": "omp", "scoring": "loo"} | how).fit(*signal)


def test_a_criterion_counts_features_of_groups_and_says_where_it_is_undefined(signal):
    X, y = signal
    model = PursuitRegressorCV(solver="omp", scoring="bic", feature_groups=np.arange(X.shape[1]) // 2).fit(
        X, y
    )
    assert model.n_nonzero_coefs_ == len(model.support_) == 2 * (model.scores_[0].argmax() + 1)
    lone = np.eye(len(y))[:, :1]
    with pytest.raises(ValueError, match="single rows decide coefficients"):
        PursuitRegressorCV(solver="omp", scoring="loo").fit(lone, y + 100 * lone[:, 0])


def test_bic_of_a_classifier_is_a_likelihood():
    X, y = load_breast_cancer(return_X_y=True)
    model = PursuitClassifierCV(solver="omp", scoring="bic", scale="column", max_nonzero_coefs=3).fit(X, y)
    single = PursuitClassifier(scale="column", n_nonzero_coefs=3).fit(X, y)
    expected = 2 * log_loss(y, single.predict_proba(X), normalize=False) + 3 * np.log(len(y))
    assert model.scores_[0, 2] == pytest.approx(-expected, rel=1e-4)  # it is not finished


def test_weights_are_repeated_samples(signal):
    X, y = signal
    weights = np.random.default_rng(1).integers(1, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    splits = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    repeated = [(np.flatnonzero(np.isin(rows, a)), np.flatnonzero(np.isin(rows, b))) for a, b in splits]
    for one, other in (({"cv": splits}, {"cv": repeated}), ({"scoring": "ebic"}, {"scoring": "ebic"})):
        weighted = PursuitRegressorCV(**PLAIN, **one).fit(X, y, sample_weight=weights)
        plain = PursuitRegressorCV(**PLAIN, **other).fit(X[rows], y[rows])
        np.testing.assert_allclose(weighted.scores_, plain.scores_, rtol=1e-8)


def test_the_display_draws_the_path_the_scores_and_the_choice(signal):
    X, y = signal
    names = [f"gene {j}" for j in range(40)]
    model = PursuitRegressorCV(**PLAIN).fit(pd.DataFrame(X, columns=names), y)
    display = PathDisplay.from_estimator(model, n_labels=3)
    top, bottom = display.axes_
    assert len(display.lines_) == len(model.path_features_)
    np.testing.assert_allclose(display.mean_line_.get_ydata(), -model.scores_.mean(axis=0))
    assert [line.get_xdata()[0] for line in display.choice_lines_] == [model.n_nonzero_coefs_] * 2
    labels = [text.get_text() for text in top.get_legend().get_texts()]
    assert len(labels) == 3
    assert set(labels) <= {names[j] for j in model.support_}
    assert bottom.get_ylabel() == "mean loss"
    assert display.one_se <= model.n_nonzero_coefs_
    drawn = np.nan_to_num([line.get_ydata() for line in display.lines_])
    np.testing.assert_allclose(drawn.T, model.coef_path_ * X.std(axis=0)[model.path_features_])
    again = display.plot(plt.subplots(2)[1])
    assert again is display
    assert display.axes_[0] is not top
    with pytest.raises(ValueError, match="ax must be two Axes"):
        display.plot(plt.subplots(3)[1])
    plt.close("all")


def test_the_display_of_a_default_model_and_of_the_drop_in(signal):
    X, y = signal
    rng = np.random.default_rng(0)
    for model, label in (
        (PursuitRegressorCV().fit(X, y), "mean loss"),
        (PursuitRegressorCV().fit(X, rng.standard_normal(120)), "mean loss"),
        (PursuitRegressorCV(loss="huber", selection="one_se").fit(X, y), "mean loss"),
        (OrthogonalMatchingPursuitCV(max_iter=8).fit(X, y), "mean squared error"),
        (PursuitClassifierCV(scoring="accuracy").fit(X, y > 3), "accuracy"),
    ):
        display = PathDisplay.from_estimator(model)
        assert display.axes_[1].get_ylabel() == label
        sizes = display.mean_line_.get_xdata()
        assert sizes[0] <= 2  # a mean has the path of its sparse member
        assert (np.diff(sizes) > 0).all()
        if chosen := model.n_nonzero_coefs_:
            ys = [np.nan_to_num(line.get_ydata()) for line in display.lines_]
            drawn = [values[sizes[: len(values)] == chosen] for values in ys]
            effects = np.ravel(model.coef_)[model.path_features_] * model.path_scales_
            np.testing.assert_allclose(np.ravel(drawn), effects, atol=1e-12)
        assert (display.mean_line_.get_ydata() >= 0).all()
        display.figure_.canvas.draw()
    plt.close("all")


def test_a_summary_names_the_features_and_escapes_them(signal, classes):
    X, y = signal
    names = [f"<b>{j}</b>" for j in range(40)]
    model = PursuitRegressorCV().fit(pd.DataFrame(X, columns=names), y)
    text, page = model.summary(), model._repr_html_()
    largest = model.path_features_[np.argmax(np.abs(model.coef_[model.path_features_] * model.path_scales_))]
    assert text.splitlines()[0] == "PursuitRegressorCV"
    assert text.split("-\n")[-1].startswith(names[largest])
    assert f"<b>{largest}" not in page
    assert f"&lt;b&gt;{largest}" in page
    assert "and" in model.summary(1).splitlines()[-1]
    assert "x3" in PursuitRegressor(n_nonzero_coefs=40).fit(X, y).summary(40)
    three = PursuitClassifierCV(multi_class="multinomial").fit(*classes)
    assert "[1] +2" in three.summary()
    nothing = PursuitRegressorCV().fit(X, np.random.default_rng(3).standard_normal(120))
    assert "no feature predicts better" in nothing.summary()
    assert "standardised" in model._repr_html_()
    assert "standardised" not in PursuitRegressor()._repr_html_()


def test_the_display_of_many_classes(classes):
    X, y = classes
    model = PursuitClassifierCV(solver="omp", scoring="bic", max_nonzero_coefs=4).fit(X, y)
    display = PathDisplay.from_estimator(model)
    assert display.axes_[1].get_ylabel() == "BIC"
    assert len(display.lines_) == len(model.path_features_)
    label = display.axes_[0].get_legend().get_texts()[0].get_text()  # the class where it does most
    coef = model.coef_[:, int(label.split(" [")[0][1:])]
    more = np.count_nonzero(coef) - 1
    assert label.endswith(f" [{np.abs(coef).argmax()}]" + (f" +{more}" if more else ""))
    plt.close("all")


def test_names_of_a_display_are_no_formulas_are_counted_and_may_be_an_array(signal):
    X, y = signal
    model = PursuitRegressorCV(solver="omp", max_nonzero_coefs=3, scoring="bic").fit(X, y)
    names = np.array([rf"$\frac{{{j}}}$" for j in range(X.shape[1])])
    display = PathDisplay.from_estimator(model, feature_names=names)
    display.figure_.draw_without_rendering()
    texts = display.axes_[0].get_legend().get_texts()
    assert {text.get_text() for text in texts} <= set(names)
    assert not any(text.get_usetex() or text.get_parse_math() for text in texts)
    with pytest.raises(ValueError, match="feature_names has 2 names"):
        PathDisplay.from_estimator(model, feature_names=["a", "b"])
    with pytest.raises(TypeError, match="PursuitRegressorCV"):
        PathDisplay.from_estimator(PursuitRegressor().fit(X, y))


@pytest.mark.parametrize("size", [1e-90, 1e90])
@pytest.mark.parametrize(
    "model",
    [
        PursuitRegressorCV(),
        PursuitRegressorCV(solver="omp"),
        PursuitRegressorCV(solver="omp", scoring="bic"),
        PursuitRegressorCV(solver="omp", selection="one_se", ridges=[0.0, 0.1]),
        OrthogonalMatchingPursuitCV(max_iter=8),
    ],
)
def test_the_sizes_of_X_and_of_targets_do_not_choose(signal, model, size):
    X, y = signal
    plain = clone(model).fit(X, y)
    assert 1 < np.count_nonzero(plain.coef_) < 40
    np.testing.assert_allclose(clone(model).fit(X, y * size).coef_ / size, plain.coef_, rtol=1e-6)
    if isinstance(model, PursuitRegressorCV):
        X = sparse.csr_array(X)
        plain, scaled = clone(model).fit(X, y), clone(model).fit(X * size, y)
        np.testing.assert_allclose(scaled.coef_ * size, plain.coef_, rtol=1e-6)
