"""`PursuitFeatureSelector`: features in order of entry, and stable ones."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from skpursuit import OMP, PursuitClassifier, PursuitFeatureSelector, PursuitRegressor, datasets, minimize


@pytest.fixture(scope="module")
def signal():
    return datasets.make_sparse_signal(150, 60, 4, snr=5.0, random_state=0)


def test_features_are_those_of_the_pursuit_in_order_of_entry(signal):
    X, y, _ = signal
    chooser = PursuitFeatureSelector(n_features_to_select=6).fit(X, y)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = minimize(standard, y - y.mean(), OMP(6)).support
    assert chooser.support_.tolist() == expected.tolist()
    np.testing.assert_allclose(chooser.scores_[expected], [1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])
    assert chooser.get_support(indices=True).tolist() == sorted(expected)
    assert np.isnan(chooser.error_bound_)
    sparse = PursuitFeatureSelector(n_features_to_select=6).fit(csr_array(X), y)
    assert sparse.support_.tolist() == expected.tolist()
    assert sparse.transform(csr_array(X)).shape == (150, 6)


def test_names_frames_and_pipelines(signal):
    pd = pytest.importorskip("pandas")
    X, y, w = signal
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(60)])
    chooser = PursuitFeatureSelector(n_features_to_select=4).set_output(transform="pandas").fit(frame, y)
    names = [f"f{j}" for j in np.flatnonzero(w)]
    assert chooser.get_feature_names_out().tolist() == names
    assert chooser.transform(frame).columns.tolist() == names
    model = make_pipeline(PursuitFeatureSelector(n_features_to_select=4), LinearRegression()).fit(X, y)
    assert model.score(X, y) > 0.7


def test_stable_features_are_the_true_ones_and_noise_has_few(signal):
    X, y, w = signal
    chooser = PursuitFeatureSelector(n_features_to_select=8, n_resamples=30, random_state=0).fit(X, y)
    assert sorted(chooser.support_) == np.flatnonzero(w).tolist()
    assert chooser.scores_.max() <= 1.0
    assert chooser.scores_.sum() == pytest.approx(8.0)
    assert chooser.error_bound_ == pytest.approx(64 / (0.5 * 60))
    again = PursuitFeatureSelector(n_features_to_select=8, n_resamples=30, random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.scores_, chooser.scores_)
    mistakes = []
    for seed in range(10):
        noise = np.random.default_rng(seed).standard_normal(150)
        found = PursuitFeatureSelector(n_features_to_select=3, n_resamples=20, random_state=0).fit(X, noise)
        mistakes.append(len(found.support_))
    assert np.mean(mistakes) <= found.error_bound_


def test_classes():
    X, y, w = datasets.make_logistic_signal(600, 30, 3, random_state=1)
    labels = np.where(y > 0, "yes", "no")
    chooser = PursuitFeatureSelector(n_features_to_select=3).fit(X, labels)
    assert sorted(chooser.support_) == np.flatnonzero(w).tolist()
    three = np.array(["a", "b", "c"])[np.digitize(X[:, 4], np.quantile(X[:, 4], [0.3, 0.6]))]
    for k, loss in ((1, "squared"), ("cv", "multinomial")):
        model = PursuitFeatureSelector(n_features_to_select=k).fit(X, three)
        assert (model.support_[0], model.loss_) == (4, loss)
    assert not hasattr(model, "summary")  # a selector has no model


def chosen(y, k=1, **given):
    X = np.random.default_rng(0).standard_normal((len(y), 5))
    return PursuitFeatureSelector(n_features_to_select=k, **given).fit(X, y)


def test_what_y_is_shows_in_its_type():
    three = np.repeat([3, 7, 5], 40)
    for y in (three, three.astype(str), three.astype(str).astype(object), three.astype(object)):
        model = chosen(y)
        assert model.loss_ == "squared"
        assert len(model.classes_) == 3
    for y in (three == 3, three[:80]):
        assert (chosen(y).loss_, len(chosen(y).classes_)) == ("logistic", 2)
    for y in (three + 0.5, np.arange(120), np.stack([three, three], axis=1)):
        assert (chosen(y).loss_, chosen(y).classes_) == ("squared", None)
    with pytest.raises(ValueError, match="loss 'huber' needs two classes, got 3"):
        chosen(three.astype(str), loss="huber")


@pytest.mark.parametrize(("count", "taken"), [(15, "classes"), (30, "numbers"), (2.0, "numbers")])
def test_a_doubtful_y_is_told_once_and_loss_settles_it(count, taken):
    y = np.arange(120) % count
    with pytest.warns(UserWarning, match=f'taken as {taken}; loss="squared"') as told:
        model = PursuitFeatureSelector().fit(np.eye(120), y)
    assert [one.filename for one in told] == [__file__]
    assert (model.classes_ is None) == (taken == "numbers")
    assert chosen(y, loss="squared").classes_ is None  # without a warning
    assert len(chosen(y, loss="logistic").classes_) == count


def test_classes_by_number_are_those_by_name():
    X, y = load_digits(return_X_y=True)
    models = [PursuitFeatureSelector(n_features_to_select=6).fit(X, labels) for labels in (y, y.astype(str))]
    assert models[0].support_.tolist() == models[1].support_.tolist()
    together = PursuitFeatureSelector(n_features_to_select=3, loss="logistic").fit(X, y)
    model = PursuitClassifier(n_nonzero_coefs=3, multi_class="multinomial").fit(X, y)
    assert (together.loss_, together.support_.tolist()) == ("multinomial", model.support_.tolist())


def test_the_default_takes_at_most_a_hundred_features():
    X = np.random.default_rng(0).standard_normal((150, 1101))
    assert len(PursuitFeatureSelector().fit(X[:, 1:], X[:, 0]).support_) == 100


@pytest.mark.parametrize("model", [PursuitRegressor(n_nonzero_coefs=4), PursuitFeatureSelector()])
def test_by_default_units_of_dense_columns_do_not_matter_and_sparse_ones_keep_theirs(signal, model):
    X, y, _ = signal
    scaled = X * 10.0 ** np.random.default_rng(0).uniform(-3, 3, 60)
    entered = [model.fit(A, y).support_.tolist() for A in (X, scaled, csr_array(scaled))]
    assert entered[0] == entered[1] != entered[2]
    assert entered[2] == clone(model).set_params(scale="none").fit(scaled, y).support_.tolist()


def test_cross_validation_chooses_the_number(signal):
    X, y, w = signal
    chooser = PursuitFeatureSelector(n_features_to_select="cv").fit(X, y)
    assert set(np.flatnonzero(w)) <= set(chooser.support_.tolist())
    assert len(chooser.support_) < 15
    stable = PursuitFeatureSelector(n_features_to_select="cv", n_resamples=20, random_state=0).fit(X, y)
    assert stable.error_bound_ == pytest.approx(len(chooser.support_) ** 2 / (0.5 * 60))
    classes = PursuitFeatureSelector(n_features_to_select="cv").fit(csr_array(X), np.where(y > 0, "a", "b"))
    assert len(classes.support_) > 0
    assert set(classes.support_.tolist()) <= set(np.flatnonzero(w))
    noise = np.random.default_rng(1).standard_normal(150)
    assert len(PursuitFeatureSelector(n_features_to_select="cv").fit(X, noise).support_) == 0


def test_halves_do_not_depend_on_the_order_of_rows_nor_on_how_equal_rows_are_counted(signal):
    X, y, _ = signal
    rng = np.random.default_rng(2)
    counts, order = rng.integers(1, 4, 150), rng.permutation(150)
    chooser = PursuitFeatureSelector(n_features_to_select=6, n_resamples=6, random_state=0)
    repeated = chooser.fit(X.repeat(counts, axis=0), y.repeat(counts)).scores_
    weighted = chooser.fit(X[order], y[order], sample_weight=counts[order]).scores_
    np.testing.assert_array_equal(repeated, weighted)


@pytest.mark.parametrize("weight", [2.0, 1000.0, 0.5])
def test_weights_that_are_no_counts_leave_samples_in_one_half(weight):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 40))
    y = 0.3 * X[:, 0] + 0.2 * X[:, 1] + rng.standard_normal(100)
    chooser = PursuitFeatureSelector(n_features_to_select=5, n_resamples=20, random_state=0)
    plain = chooser.fit(X, y).scores_
    np.testing.assert_array_equal(chooser.fit(X, y, np.full(100, weight)).scores_, plain)
    strata = np.where(np.arange(100) % 2, 1.0, 1000.0)
    whole = chooser.fit(X, y, strata).scores_
    np.testing.assert_array_equal(whole, chooser.fit(X, y, strata / 2).scores_)
    assert whole.max() < 1
