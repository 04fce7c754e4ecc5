"""The model search behind `solver="auto"`: its parts against plain references, and what it chooses."""

import tracemalloc
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpursuit import PursuitClassifierCV, PursuitRegressorCV, as_design, datasets
from skpursuit.estimators.cross_validation import Folds
from skpursuit.estimators.model_search import classifier_search as classes
from skpursuit.estimators.model_search import fold_least_squares as squared_folds
from skpursuit.estimators.model_search import search
from skpursuit.estimators.model_search import squared_search as squared
from skpursuit.estimators.model_search.search import ScaledData
from skpursuit.problem.losses import Logistic, Multinomial


def problem(seed=0, n=60, d=8, targets=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    y = X[:, :2] @ rng.standard_normal((2, targets)) + rng.standard_normal((n, targets))
    return X, y - y.mean(axis=0)


def scaled(X, y, fit_intercept=True):
    centre = np.zeros(X.shape[1]) if sp.issparse(X) or not fit_intercept else X.mean(axis=0)
    return ScaledData(X, y, centre, np.full(X.shape[1], 2.0), fit_intercept, np.zeros(y.shape[1]), 0.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array])
def test_gram_matrices_and_gram_columns_agree_with_sums_over_rows(form, weighted, fit_intercept, monkeypatch):
    X, y = problem(targets=2)
    weights = np.random.default_rng(1).random(60) + 0.5 if weighted else None
    folds = Folds.of(list(KFold(3, shuffle=True, random_state=0).split(X)), 60, weights)
    data = scaled(form(X), y, fit_intercept)
    kinds = [squared_folds.GramLeastSquares(data, folds), squared_folds.FoldLeastSquares(data, folds)]
    monkeypatch.setattr(squared_folds, "FEW_ROWS", 1)
    kinds.append(squared_folds.FoldLeastSquares(data, folds))  # keeps Gram columns of all folds
    support, coef = np.array([[0, 3], [2, 1], [4, 5]]), np.random.default_rng(2).standard_normal((3, 2, 2))
    Z = X / 2.0
    for f, (train, test) in enumerate(zip(folds.train, folds.test)):
        used = fit_intercept
        Zc = Z - used * np.average(Z, axis=0, weights=train)
        yc = y - used * np.average(y, axis=0, weights=train)
        left = yc - Zc[:, support[f]] @ coef[f]
        for kind in kinds:
            np.testing.assert_allclose(
                kind.gram_columns(support[:, 0])[f], (Zc * train[:, None]).T @ Zc[:, support[f, 0]]
            )
            part = Zc[:, support[f]]
            np.testing.assert_allclose(
                kind.support_grams(support)[f], (part * train[:, None]).T @ part, atol=1e-9
            )
            np.testing.assert_allclose(
                kind.gradient(support, coef)[f], (Zc * train[:, None]).T @ left, atol=1e-9
            )
            np.testing.assert_allclose(kind.losses(support, coef)[f], test @ (left**2).sum(axis=1) / 2)
    rows = [kind.row_losses(support, coef) for kind in kinds]
    np.testing.assert_allclose(rows, rows[:1] * 3)
    assert rows[0] @ folds.test_weight == pytest.approx(kinds[0].losses(support, coef).sum())


@pytest.mark.parametrize("kind", [squared_folds.GramLeastSquares, squared_folds.FoldLeastSquares])
def test_far_columns_that_are_constant_in_a_fold_move_nothing(kind):
    X, y = problem(2, n=12)
    X[:, :2] = 1e15 / 3, 1e14 / 7
    X[0, :2] = -1e15, 1e14  # tested by the first fold
    fits = kind(scaled(X, y), Folds.of(list(KFold(3).split(X)), 12, np.linspace(0.3, 1.2, 12)))
    assert not fits.gram_columns(np.array([2, 2, 2]))[0, :2].any()
    for _, (_, coef) in squared.boosting_path(fits, 8):
        assert np.abs(coef[0]).max() < 1e3


def test_columns_in_blocks_give_the_same_models(monkeypatch):
    X, y, _ = datasets.make_sparse_signal(40, 700, 3, snr=1.0, random_state=3)
    whole = PursuitRegressorCV(null_test=False).fit(X, y)
    monkeypatch.setattr(search, "BLOCK_ENTRIES", 2000)
    blocks = PursuitRegressorCV(null_test=False).fit(X, y)
    np.testing.assert_allclose(blocks.cv_losses_["loss"], whole.cv_losses_["loss"], rtol=1e-9)
    np.testing.assert_allclose(blocks.coef_, whole.coef_, atol=1e-9)


def test_a_very_wide_X_is_searched_with_few_tables_of_its_width():
    """Fresh memory cost most of the time: there were 78 such tables."""
    X, y, _ = datasets.make_sparse_signal(10, 60_000, 2, random_state=0)
    PursuitRegressorCV().fit(X[:, :100], y)
    tracemalloc.start()
    PursuitRegressorCV().fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 25 * 10 * 8 * X.shape[1]  # of 10 folds


@pytest.mark.parametrize("ridge", [1e-4, 0.3])
def test_greedy_and_swapped_models_are_ridge_fits_of_their_supports(ridge):
    X, y = problem(3)
    folds = Folds.of([(np.arange(40), np.arange(40, 60))], 60, None)
    data = scaled(X, y)
    known = squared_folds.GramLeastSquares(data, folds)
    one_by_one = squared.greedy_path(known, ridge, [1, 2, 3, 4, 5, 6])
    several = squared.greedy_path(known, ridge, [1, 2, 4, 6], normalised=False)
    for models in (one_by_one, several, squared.swap_path(known, ridge, 6)):
        for size, (support, coef) in models:
            columns = X[:40][:, support[0]] / 2.0
            plain = Ridge(alpha=40 * ridge, tol=1e-10).fit(columns, y[:40, 0])
            assert len(set(support[0])) == size
            np.testing.assert_allclose(coef[0, :, 0], plain.coef_, rtol=1e-4, atol=1e-6)


def test_an_exchange_lowers_the_objective_as_far_as_any_single_one_can():
    ridge = 0.1
    for seed in range(30):
        X, y = problem(seed, d=7)
        known = squared_folds.GramLeastSquares(
            scaled(X, y), Folds.of([(np.arange(60), np.arange(5))], 60, None)
        )
        Z = (X - X.mean(axis=0)) / 2.0

        def objective(columns, Z=Z, y=y):
            gram = Z[:, columns].T @ Z[:, columns] + 60 * ridge * np.eye(len(columns))
            b = Z[:, columns].T @ y[:, 0]
            return -b @ np.linalg.solve(gram, b)

        *_, (_, (support, _)) = squared.swap_path(known, ridge, 3)
        chosen = support[0].tolist()
        others = [j for j in range(7) if j not in chosen]
        swapped = [objective([*(c for c in chosen if c != i), j]) for i in chosen for j in others]
        assert objective(chosen) <= min(swapped) + 1e-5 * (y**2).sum()


def test_boosting_goes_to_least_squares():
    X, y = problem(4, n=200, d=4)
    known = squared_folds.GramLeastSquares(
        scaled(X, y), Folds.of([(np.arange(200), np.arange(5))], 200, None)
    )
    *_, (_, (support, coef)) = squared.boosting_path(known, 4)
    full = np.zeros(4)
    full[support[0]] = coef[0, :, 0]
    exact = np.linalg.lstsq((X - X.mean(axis=0)) / 2.0, y[:, 0], rcond=None)[0]
    np.testing.assert_allclose(full, exact, atol=1e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("form", ["direct", "many", "sparse"])
def test_newton_reaches_the_ridge_optimum(form, fit_intercept, monkeypatch):
    monkeypatch.setattr(classes, "MAX_DIRECT_COLUMNS", 0 if form == "many" else 100)
    rng = np.random.default_rng(5)
    X = rng.standard_normal((150, 6)) * (rng.random((150, 6)) < 0.5)
    codes = (X[:, 0] + rng.standard_normal(150) > 0).astype(int) + (X[:, 1] > 0.5)
    weights, lines = rng.integers(0, 3, 150).astype(float), np.vstack([X.T, np.ones(150)])
    signs = np.where(codes[:, None] == np.arange(3), 1.0, -1.0)
    for loss, y in ((Logistic(), signs), (Multinomial(), codes)):
        model = classes.FoldClassifier(loss, y, 3, weights, fit_intercept)
        for new in (np.arange(2), np.arange(2, 6)):
            model.add(new)
            for _ in range(15):
                model.fit(sp.csr_array(lines) if form == "sparse" else lines, 0.1)
        exact = LogisticRegression(
            C=10 / weights.sum(), tol=1e-10, max_iter=1000, fit_intercept=fit_intercept
        )
        goals = [codes] if loss.couples_targets else (signs > 0).T
        z = [exact.fit(X, goal, sample_weight=weights).decision_function(X) for goal in goals]
        z = z[0] if loss.couples_targets else np.column_stack(z)
        np.testing.assert_allclose(model.z, z, atol=0.02)


def test_the_true_features_are_found_and_noise_has_none():
    rng = np.random.default_rng(16)
    X = rng.standard_normal((200, 100))
    z = X[:, [3, 50]] @ [1.0, -1.0]
    model = PursuitRegressorCV().fit(X, z + 0.5 * rng.standard_normal(200))
    assert sorted(model.support_.tolist()) == [3, 50]
    assert model.choice_["k"] == 2
    assert model.choice_["t_null"] > 5
    classes = PursuitClassifierCV().fit(X, z + 0.5 * rng.logistic(size=200) > 0)
    assert {3, 50} <= set(classes.support_.tolist())
    rng = np.random.default_rng(17)
    for nothing in (
        PursuitRegressorCV().fit(X, rng.standard_normal(200)),
        PursuitClassifierCV().fit(X, rng.random(200) > 0.4),
    ):
        assert nothing.choice_["family"] == "null"
        assert nothing.choice_["t_null"] <= 0 or nothing.choice_["p_null"] > 0.08
        assert nothing.n_nonzero_coefs_ == 0
        assert not nothing.coef_.any()
    guardless = PursuitRegressorCV(null_test=False).fit(X, rng.standard_normal(200))
    assert guardless.n_nonzero_coefs_ > 0


def test_what_a_standard_error_gives_for_fewer_features():
    folds = Folds.of(list(KFold(3).split(np.arange(6.0))), 6, None)
    arena = SimpleNamespace(folds=folds, n_features=lambda model: model)

    def made(features, loss):
        each = 2 * np.array([loss - 0.1, loss, loss + 0.1])
        given = search.HeldOutLoss(features, each, lambda: np.full(6, loss))
        return search.Candidate(arena, "greedy", 0.1, features, given)

    few, fewer, best, other = made(6, 1.04), made(8, 1.005), made(9, 1.0), made(3, 1.05)
    paths = [[few, fewer, best, made(12, 1.01)], [made(1, 1.07), other, made(5, 1.001)]]
    assert best.standard_error == pytest.approx(0.1 / np.sqrt(3))
    assert search.choose_candidate(paths, "one_se", 2.5)[0] is other
    assert search.choose_candidate(paths, "best", 2.5)[0] is fewer  # of the path of the best
    assert search.choose_candidate(paths, "best", 2.2)[0] is best  # it would give more than .35 % of 1.2
    assert search.choose_candidate(paths, "best", None)[0] is best
    paths[0][0].scores, best.scores = few.fold_scores, np.full(3, np.nan)  # a number is lower than none
    assert search.choose_candidate([[best, few]], "best", None)[0] is few


def test_the_table_of_losses_and_one_standard_error_over_the_folds():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((100, 12))
    y = X @ 0.8 ** np.arange(12) + 2 * rng.standard_normal(100)
    few = PursuitRegressorCV(solver="omp", selection="one_se", max_nonzero_coefs=12).fit(X, y)
    mean, best = few.scores_.mean(axis=0), few.scores_.mean(axis=0).argmax()
    within = mean[best] - few.scores_[:, best].std(ddof=1) / np.sqrt(5)
    assert few.n_nonzero_coefs_ == np.flatnonzero(mean >= within)[0] + 1 < best + 1
    model = PursuitRegressorCV(cv=4).fit(X, y)
    table = model.cv_losses_
    assert {"boost", "greedy", "swap", "relaxed"} <= set(table["family"])
    assert len({len(column) for column in table.values()}) == 1
    losses = -model.scores_.mean(axis=0)
    assert np.isclose(losses[:, None], table["loss"], rtol=1e-9).any(axis=1).all()
    other = PursuitRegressorCV(cv=4).fit(np.asfortranarray(X), y)
    assert (other.choice_, other.coef_.tolist()) == (model.choice_, model.coef_.tolist())  # the same bits


def test_boosted_classifiers_take_as_many_steps_on_all_rows_as_on_the_folds(monkeypatch):
    monkeypatch.setattr(search, "BEST_SE", 0.0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((62, 2))
    y = X[:, 0] + 0.5 * rng.standard_normal(62) > 0
    model = PursuitClassifierCV(ridges=[1.0]).fit(X, y)  # too large: boosting wins, where it has arrived
    boosted = model.cv_losses_["family"] == "boost"
    assert model.choice_["family"] == "boost"
    assert len(model.path_sizes_) == model.scores_.shape[1] == boosted.sum()
    place = model.cv_losses_["loss"][boosted].argmin()
    np.testing.assert_array_equal(model.coef_path_[place], model.coef_[0, model.path_features_])


@pytest.mark.parametrize("multi_class", ["ovr", "ovr_shared", "multinomial"])
def test_many_classes_sparse_X_and_weights(multi_class):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((150, 12)) * (rng.random((150, 12)) < 0.7)
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.2 * rng.standard_normal((150, 3)), axis=1)]
    how = {"multi_class": multi_class, "scale": "column"}
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    dense = PursuitClassifierCV(cv=cv, **how).fit(X, y)
    sparse = PursuitClassifierCV(cv=cv, **how).fit(sp.csr_array(X), y)
    assert dense.score(X, y) > 0.8
    np.testing.assert_allclose(sparse.predict_proba(X), dense.predict_proba(X), atol=0.05)
    weights = rng.integers(0, 3, 150)
    rows = np.repeat(np.arange(150), weights)
    folds = np.arange(150) % 3
    given = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(3)]
    again = [(np.flatnonzero(folds[rows] != f), np.flatnonzero(folds[rows] == f)) for f in range(3)]
    weighted = PursuitClassifierCV(cv=given, **how).fit(X, y, sample_weight=weights)
    repeated = PursuitClassifierCV(cv=again, **how).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)


def test_several_classes_are_multinomial_where_the_families_compete():
    X, y = load_iris(return_X_y=True)
    model = PursuitClassifierCV().fit(X, y)
    assert (model.multi_class_, model.support_.ndim) == ("multinomial", 1)
    for other in ({"solver": "omp"}, {"loss": "squared"}, {"multi_class": "ovr"}):
        one = PursuitClassifierCV(max_nonzero_coefs=2, **other).fit(X, y)
        assert (one.multi_class_, len(one.support_)) == ("ovr", 3)
    design, parts = as_design(X), as_design([[X[:, :1], X[:, 1:]]])
    centred = design.with_view(design.view.compose(centre=X.mean(axis=0)))
    for given in (parts, centred, as_design(aslinearoperator(X))):
        with pytest.warns(UserWarning, match='X is not a plain array in memory, so solver="auto" is "omp"'):
            one = PursuitClassifierCV().fit(given, y)
        assert (one.multi_class_, one.choice_["family"]) == ("ovr", "omp")


def test_splitters_targets_and_lists_of_solvers():
    X, y = problem(9, n=90, d=12, targets=2)
    assert PursuitRegressorCV().fit(X, y).coef_.shape == (2, 12)
    PursuitRegressorCV(cv=TimeSeriesSplit(3)).fit(X, y[:, 0])
    several = PursuitRegressorCV(solver=["omp", "cosamp"], cv=3).fit(X, y[:, 0])
    assert set(several.cv_losses_["family"]) == {"omp", "cosamp"}


@pytest.mark.parametrize("scoring", [None, "r2", "bic"])
def test_where_the_largest_number_is_the_best_more_are_tried_up_to_the_users(scoring):
    rng = np.random.default_rng(10)
    X = rng.standard_normal((120, 30))
    y = X[:, :17] @ rng.choice([-1.0, 1.0], 17) + 0.1 * rng.standard_normal(120)
    for most, found in ((None, 17), (5, 5)):
        model = PursuitRegressorCV(solver="omp", scoring=scoring, max_nonzero_coefs=most).fit(X, y)
        assert found <= model.n_nonzero_coefs_ <= found + 2 * (most is None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scoring": "bic"}, "scoring='bic' compares the models of one run, so solver="),
        ({"loss": "quantile"}, "loss='quantile' has hardly any curvature, so solver="),
        ({"solver": ["auto", "cosamp"]}, "several solvers are compared, so solver="),
        ({"solver": "omp", "max_nonzero_coefs": 9}, "max_nonzero_coefs is 9 but X has 8 columns"),
        ({"time_limit": 0}, "stopped by time_limit=0"),
    ],
)
def test_a_warning_comes_once_and_points_at_the_line_of_the_user(given, message):
    X, y = problem(1)
    for one in (PursuitRegressorCV(**given), make_pipeline(StandardScaler(), PursuitRegressorCV(**given))):
        with pytest.warns((UserWarning, ConvergenceWarning), match=message) as told:
            one.fit(X, y[:, 0])
        assert [one.filename for one in told] == [__file__]


@pytest.mark.parametrize("loss", ["huber", "poisson", "squared"])
def test_the_default_is_the_same_search_for_every_smooth_loss(loss):
    X = np.random.default_rng(4).standard_normal((150, 12))
    counts = 1.0 + np.random.default_rng(5).poisson(1000 * np.exp(X[:, :2] @ [0.7, -0.5]))
    y = {"huber": np.log(counts), "squared": np.log(counts)[:, None] * [1, -2]}.get(loss, counts)
    model = PursuitRegressorCV(loss=loss, shared_support=loss != "squared").fit(X, y)
    assert ("boost" in model.cv_losses_["family"]) == (loss != "poisson")  # whose curvature has no bound
    assert model.choice_["family"] in ("greedy", "boost", "mean")
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="whose models ask no selector; write solver='omp'"):
        clone(model).set_params(selector="exact").fit(X, y)


def test_pursuits_of_a_tall_X_by_gram_matrices_are_those_of_the_solver(monkeypatch):
    from skpursuit.estimators import pursuit_cv as path_cv

    X, y = problem(11, n=400, d=7)
    plain = PursuitRegressorCV(solver="omp", scale="none").fit(X, y[:, 0])
    monkeypatch.setattr(path_cv, "MIN_GRAM_ENTRIES", 0)
    by_gram = PursuitRegressorCV(solver="omp", scale="none").fit(X, y[:, 0])
    np.testing.assert_allclose(by_gram.scores_, plain.scores_, rtol=1e-7)
    np.testing.assert_allclose(by_gram.coef_, plain.coef_)


@pytest.mark.parametrize("solver", ["omp", "mp", "cosamp"])
def test_runs_of_solvers_end_once_the_loss_has_turned(solver, monkeypatch):
    from skpursuit.estimators.model_search import solver_search as solvers

    rng = np.random.default_rng(12)
    X = rng.standard_normal((100, 60))
    y = X[:, :3] @ [2.0, -1.0, 1.0] + 0.5 * rng.standard_normal(100)
    given = {"solver": solver, "max_nonzero_coefs": 40}
    whole = PursuitRegressorCV(scoring="neg_mean_squared_error", **given).fit(X, y)
    model = PursuitRegressorCV(**given).fit(X, y)
    assert whole.scores_.shape == (5, 40)
    length = model.scores_.shape[1]
    assert 8 <= length < 35
    assert model.cv_losses_["size"].tolist() == list(range(1, length + 1))
    assert np.isfinite(model.cv_losses_["loss"]).all()
    assert model.n_nonzero_coefs_ == whole.n_nonzero_coefs_
    if solver != "mp":  # models on the way depend on where it ends
        np.testing.assert_allclose(model.scores_, 0.5 * whole.scores_[:, :length])
    np.testing.assert_allclose(model.coef_, whole.coef_)
    threaded = PursuitRegressorCV(n_jobs=2, **given).fit(X, y)
    monkeypatch.setattr(solvers, "MOST_BYTES", 0)
    one_by_one = PursuitRegressorCV(**given).fit(X, y)
    for other in (threaded, one_by_one):
        np.testing.assert_array_equal(other.scores_, model.scores_)
        np.testing.assert_array_equal(other.coef_, model.coef_)


def test_classes_of_unequal_paths_end_together():
    rng = np.random.default_rng(13)
    X = rng.standard_normal((120, 40))
    y = np.digitize(X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(120), [-0.7, 0.7])
    whole, model = (
        PursuitClassifierCV(solver="omp", max_nonzero_coefs=30, scoring=scoring).fit(X, y)
        for scoring in ("neg_log_loss", None)
    )
    assert model.scores_.shape[1] < whole.scores_.shape[1] == 30
    assert model.choice_["family"] == "omp"
    assert {0, 1} <= set(np.concatenate(model.support_).tolist())


def test_of_models_that_rounding_alone_tells_apart_the_first_is_best():
    rng = np.random.default_rng(0)
    rows, noise = rng.random(60), 1e-16 * rng.standard_normal(60)
    folds = Folds.of(list(KFold(3).split(rows)), 60, None)
    arena, losses = SimpleNamespace(folds=folds), [rows + 1e-15, rows + noise, rows + 0.1]
    first, second, worse = (
        search.Candidate(
            arena, "swap", 0.0, 2, search.HeldOutLoss(None, folds.test @ each, lambda each=each: each)
        )
        for each in losses
    )
    assert second.held_out_loss < first.held_out_loss
    assert search.best_candidate([worse, first, second]) is first
    assert second.t_statistic_against(first) == 0.0
    assert first.t_statistic_against(worse) > 1e6
    for one, scores in ((first, losses[0][:6]), (second, losses[1][:6])):
        one.scores = -scores
    assert search.best_candidate([first, second]) is first
    assert second.t_statistic_against(first) == 0.0


@pytest.mark.parametrize("classes", [False, True])
def test_where_neither_kind_is_clearly_better_their_mean_is_taken(classes, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 20))
    f = X[:, :3] @ [1.0, -1.0, 0.5] + rng.standard_normal(60)
    kind, y = (PursuitClassifierCV, f > 0) if classes else (PursuitRegressorCV, f)
    parts = {}

    def keep(paths, found=search.average_families):
        parts["paths"], parts["means"] = list(paths), found(paths)
        return parts["means"]

    monkeypatch.setattr("skpursuit.estimators.pursuit_cv.average_families", keep)
    monkeypatch.setattr(search, "FAMILY_T", np.inf)  # always in doubt
    monkeypatch.setattr(search, "BEST_SE", 0.0)
    model = kind(cv=4).fit(X, y)
    boosted, means = parts["paths"][0], parts["means"]
    few = search.best_candidate(one for path in parts["paths"][1:] for one in path)
    chosen = search.best_candidate(means)
    place = means.index(chosen)
    assert model.choice_["family"] == "mean"
    assert model.choice_["ridge"] == few.ridge
    assert len(means) == len(boosted) == (model.cv_losses_["family"] == "mean").sum()
    for one, mean in zip(boosted, means):  # a convex loss of a mean is at most the mean of the losses
        assert mean.compared_loss <= (one.compared_loss + few.compared_loss) / 2 + 1e-12
    for fold in range(chosen.search.folds.shape[0]):
        each = [one.search.fold_fits(one.evaluation.model)[fold][0] for one in (boosted[place], few, chosen)]
        z = [X[:, fit.columns] @ np.ravel(fit.coef) + fit.intercept for fit in each]
        np.testing.assert_allclose(z[2], (z[0] + z[1]) / 2, atol=1e-9)
        if not classes:
            tested = chosen.search.folds.test[fold]
            error = tested @ (y - z[2]) ** 2 / 2
            assert chosen.evaluation.fold_losses[fold] == pytest.approx(error)
    others = search.path_containing(parts["paths"], few)
    on_all = [(boosted, boosted[place]), (others, few), (search.shown_path([means], chosen), chosen)]
    whole = [search.refit_path(path)[path.index(one)][0] for path, one in on_all]
    assert model.scores_.shape[1] == len(model.path_sizes_) == others.index(few) + 2  # the sparse one's path
    np.testing.assert_array_equal(model.coef_path_[-1], np.ravel(model.coef_)[model.path_features_])
    z = [X[:, fit.columns] @ np.ravel(fit.coef) + fit.intercept for fit in whole]
    np.testing.assert_allclose(z[2], (z[0] + z[1]) / 2, atol=1e-9)
    shown = model.decision_function(X) if classes else model.predict(X)
    np.testing.assert_allclose(shown, z[2], atol=1e-9)


def chance(X, y, fit_intercept=True):
    centre = X.mean(axis=0) if fit_intercept else np.zeros(X.shape[1])
    data = ScaledData(X, y[:, None], centre, X.std(axis=0), fit_intercept, np.zeros(1), 0.0)
    return search.permutation_p_value(data, (y - y.mean() * fit_intercept)[:, None], slice(None))


def test_the_chance_of_no_relation_is_known_where_there_is_none_and_small_where_there_is_one():
    draws = [np.random.default_rng(seed) for seed in range(60)]
    p = np.array([chance(rng.standard_normal((30, 40)), rng.random(30) < 0.3) for rng in draws])
    assert 0.3 < np.mean(p) < 0.7
    assert np.mean(p <= 0.1) <= 0.2
    rng = np.random.default_rng(100)
    X, noise = rng.standard_normal((100, 400)), rng.standard_normal(100)
    assert chance(X, 0.6 * X[:, 7] + noise) <= 0.02  # one column
    assert chance(X[:, :60], X[:, :60] @ np.full(60, 0.2) + noise) <= 0.02  # many weak ones
    hidden = 10 * rng.standard_normal((100, 1)) + X[:, :1]
    together = np.hstack([hidden, hidden - X[:, :1], rng.standard_normal((100, 3))])
    assert chance(together, X[:, 0] + 0.3 * noise) <= 0.02  # two that say something together only
    about_one = 1 + 0.1 * rng.standard_normal((50, 3))
    assert chance(about_one, np.ones(50) + 0.1 * rng.standard_normal(50), fit_intercept=False) <= 0.02


def test_columns_of_zeros_have_no_relation_to_anything():
    data = ScaledData(np.zeros((9, 3)), np.zeros((9, 1)), np.zeros(3), np.ones(3), True, 0.0, 0.0)
    assert search.permutation_p_value(data, np.arange(-4.0, 5.0)[:, None], slice(None)) == 1.0


@pytest.mark.parametrize("d", [4, 40])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_error_of_ridge_regression_without_a_row_is_that_of_a_fit_without_it(
    d, fit_intercept, monkeypatch
):
    rng = np.random.default_rng(d)
    X, y = rng.standard_normal((12, d)), rng.standard_normal(12)
    X -= X.mean(axis=0) * fit_intercept
    values = np.linalg.svd(X)[1] ** 2
    values = values[values > 1e-9 * values[0]]
    monkeypatch.setattr(search, "LOO_RIDGES", (0.5,))
    monkeypatch.setattr(search, "N_PERMUTATIONS", 0)
    found = search._left_out_error(X, y[:, None], fit_intercept)
    error = 0.0
    for i in range(12):
        rest = np.arange(12) != i
        plain = Ridge(alpha=0.5 * values.mean(), fit_intercept=fit_intercept).fit(X[rest], y[rest])
        error += float(plain.predict(X[i : i + 1])[0] - y[i]) ** 2
    np.testing.assert_allclose(found, [error])


@pytest.mark.parametrize(
    ("kind", "weighted"),
    [
        *(("dense", True), ("float32", False), ("whole numbers", True), ("csr", False), ("csr", True)),
        *(("file", False), ("mapped", True), ("parquet", False), ("parquet", True)),
    ],
)
def test_a_design_of_an_array_in_memory_competes_like_the_array(tmp_path, kind, weighted):
    X, y, _ = datasets.make_sparse_signal(80, 10, 3, snr=3.0, random_state=0)
    X = np.rint(8 * X) if kind == "whole numbers" else X
    X = {"float32": X.astype(np.float32), "csr": sp.csr_array(np.where(X > 0, X, 0))}.get(kind, X)
    given = as_design(X.astype(int) if kind == "whole numbers" else X)
    if kind in ("file", "mapped"):
        np.save(tmp_path / "x.npy", X)
        given = tmp_path / "x.npy" if kind == "file" else np.load(tmp_path / "x.npy", mmap_mode="r")
    elif kind == "parquet":
        given = tmp_path / "x.parquet"
        pd.DataFrame(X, columns=[f"x{j}" for j in range(10)]).to_parquet(given)
    weights = np.arange(80.0) % 4 if weighted else None
    for model, target in (
        (PursuitRegressorCV(cv=3), y),
        (PursuitClassifierCV(cv=3), np.where(y > 0, "up", "down")),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            ours, true = clone(model).fit(given, target, weights), clone(model).fit(X, target, weights)
        assert ours.choice_["family"] == true.choice_["family"] != "omp"
        np.testing.assert_allclose(ours.coef_, true.coef_, rtol=1e-9, atol=1e-12)
        if kind in ("csr", "mapped") and isinstance(model, PursuitRegressorCV):
            by_hand = clone(model).set_params(scoring=lambda model, X, y: model.score(X, y))
            np.testing.assert_array_equal(
                by_hand.fit(given, target).scores_, clone(by_hand).fit(X, target).scores_
            )


def test_reads_of_a_search_are_counted_once_for_all_classes(monkeypatch):
    X, y = load_iris(return_X_y=True)
    products, count = classes.ClassifierSearch._products, []
    monkeypatch.setattr(
        classes.ClassifierSearch, "_products", lambda self, r: count.append(1) or products(self, r)
    )
    model = PursuitClassifierCV().fit(X, y)
    assert model.entries_read_ == len(count) * X.size
