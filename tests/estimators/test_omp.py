"""The drop-in against scikit-learn's own orthogonal matching pursuit."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model as reference

import skpursuit as sp


def random_problem(rng):
    """Data, and what to ask of both libraries: no more atoms than the centred rows bear."""
    n, d, m = int(rng.integers(10, 60)), int(rng.integers(4, 60)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 2.0, d) + rng.standard_normal(d)
    Y = rng.standard_normal((n, m))
    limit = [
        {"n_nonzero_coefs": int(rng.integers(1, min(n, d) // 2 + 1))},
        {"tol": float(rng.uniform(0.4, 1.2) * (Y**2).sum(axis=0).min())},
        {},
    ][rng.integers(3)]
    return X, Y, limit


def check_same(ours, theirs):
    assert type(ours.n_iter_) is type(theirs.n_iter_)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.n_nonzero_coefs_ == theirs.n_nonzero_coefs_
    assert ours.n_features_in_ == theirs.n_features_in_
    assert ours.coef_.shape == theirs.coef_.shape
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
    assert np.array_equal(ours.coef_ != 0, theirs.coef_ != 0)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-8)


def fitted(make, *data, **parameters):
    """The model and the texts of the warnings its fit gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(**parameters).fit(*data)
    return model, {str(w.message) for w in caught}


def test_the_estimator_equals_scikit_learns_on_300_problems():
    rng = np.random.default_rng(0)
    for trial in range(300):
        X, Y, limit = random_problem(rng)
        y = Y[:, 0] if trial % 3 == 0 else Y
        limit |= {"fit_intercept": bool(trial % 2), "precompute": [True, False, "auto"][trial % 3]}
        ours, our_warnings = fitted(sp.OrthogonalMatchingPursuit, X, y, **limit)
        theirs, their_warnings = fitted(reference.OrthogonalMatchingPursuit, X, y, **limit)
        check_same(ours, theirs)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-8)
        if "tol" not in limit or limit["precompute"] is True:
            assert our_warnings == their_warnings
        else:  # scikit-learn warns of a tol that all columns do not reach only when it uses the Gram matrix
            assert our_warnings >= their_warnings


def test_cross_validation_equals_scikit_learns_on_300_problems():
    rng = np.random.default_rng(1)
    for trial in range(300):
        X, Y, _ = random_problem(rng)
        options = {"cv": [None, 3, 4][trial % 3], "fit_intercept": bool(trial % 2)}
        options["max_iter"] = None if trial % 5 else min(X.shape[1], len(X) // 3)
        ours, our_warnings = fitted(sp.OrthogonalMatchingPursuitCV, X, Y[:, 0], **options)
        theirs, their_warnings = fitted(reference.OrthogonalMatchingPursuitCV, X, Y[:, 0], **options)
        check_same(ours, theirs)
        assert our_warnings == their_warnings


@pytest.mark.parametrize("return_path", [False, True])
@pytest.mark.filterwarnings("ignore:Orthogonal matching pursuit ended prematurely:RuntimeWarning")
def test_the_functions_equal_scikit_learns_on_300_problems(return_path):
    rng = np.random.default_rng(2)
    for trial in range(300):
        X, Y, limit = random_problem(rng)
        X, y = X - X.mean(axis=0), Y[:, 0] if trial % 3 == 0 else Y
        if return_path and "tol" in limit:
            y = Y[:, 0]  # scikit-learn's fails when targets have paths of different lengths
        given = limit | {"return_path": return_path, "return_n_iter": True}
        ours, sizes = sp.orthogonal_mp(X, y, **given)
        theirs, their_sizes = reference.orthogonal_mp(X, y, **given)
        assert sizes == their_sizes
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
        if X.shape[1] < 10 and not limit:
            continue  # scikit-learn's default is no atom at all there
        given["norms_squared"] = np.atleast_1d((y**2).sum(axis=0))
        ours, sizes = sp.orthogonal_mp_gram(X.T @ X, X.T @ y, **given)
        theirs, their_sizes = reference.orthogonal_mp_gram(X.T @ X, X.T @ y, **given)
        assert sizes == their_sizes
        np.testing.assert_allclose(ours, theirs, atol=1e-8)


@pytest.fixture
def text_like():
    rng = np.random.default_rng(3)
    X = sparse.random_array((120, 80), density=0.1, rng=rng, format="csr")
    return X, X @ rng.standard_normal(80) + 0.1 * rng.standard_normal(120)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("make", [sp.OrthogonalMatchingPursuit, sp.OrthogonalMatchingPursuitCV])
def test_sparse_X_gives_what_dense_X_gives(text_like, layout, make):
    X, y = text_like
    ours = make().fit(X.asformat(layout), y)
    check_same(ours, make().fit(X.toarray(), y))
    np.testing.assert_allclose(ours.predict(X.asformat(layout)), ours.predict(X.toarray()))


def test_more_coefficients_than_columns_are_clipped_with_a_warning():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    with pytest.warns(UserWarning, match="n_nonzero_coefs is 9 but X has 4 columns; using 4"):
        model = sp.OrthogonalMatchingPursuit(n_nonzero_coefs=9).fit(X, y)
    assert model.n_nonzero_coefs_ == model.n_iter_ == 4
    with pytest.warns(UserWarning, match="using 4"):
        assert np.count_nonzero(sp.orthogonal_mp(X, y, n_nonzero_coefs=9)) == 4
    with pytest.warns(UserWarning, match="using 4"):
        assert np.count_nonzero(sp.orthogonal_mp_gram(X.T @ X, X.T @ y, n_nonzero_coefs=9)) == 4


def test_a_repeated_column_is_skipped_and_the_lowest_index_wins():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((40, 10))
    X = np.hstack([X, X])
    y = X[:, :10] @ rng.standard_normal(10) + rng.standard_normal(40)
    for coef in (
        sp.orthogonal_mp(X, y, n_nonzero_coefs=8),
        sp.orthogonal_mp_gram(X.T @ X, X.T @ y, n_nonzero_coefs=8),
    ):
        assert np.count_nonzero(coef[:10]) == 8
        assert not coef[10:].any()


def test_wrong_arguments_are_refused():
    X, y = np.eye(4), np.arange(4.0)
    with pytest.raises(ValueError, match="norms_squared must be 3 numbers of at least 0"):
        sp.orthogonal_mp_gram(np.eye(4), np.ones((4, 3)), tol=0.1, norms_squared=[4.0])
    with pytest.raises(ValueError, match="give norms_squared"):
        sp.orthogonal_mp_gram(X, y, tol=1.0)
    with pytest.raises(ValueError, match="Gram must be square"):
        sp.orthogonal_mp_gram(X[:3], y)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        sp.OrthogonalMatchingPursuitCV().fit(X, y, groups=y)


def test_groups_reach_the_splitter_when_routing_is_on():
    import sklearn
    from sklearn.model_selection import GroupKFold

    rng = np.random.default_rng(8)
    X, y, groups = rng.standard_normal((40, 10)), rng.standard_normal(40), np.repeat(np.arange(8), 5)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = sp.OrthogonalMatchingPursuitCV(cv=GroupKFold(4)).fit(X, y, groups=groups)
    listed = sp.OrthogonalMatchingPursuitCV(cv=list(GroupKFold(4).split(X, y, groups))).fit(X, y)
    check_same(routed, listed)


def test_as_many_atoms_as_asked_for_are_not_too_few():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(
            sp.orthogonal_mp(np.eye(3), np.array([3.0, 2, 1]), n_nonzero_coefs=3), [3, 2, 1]
        )
        for scale in (1e-90, 1e90):
            X, y = scale * np.random.default_rng(0).standard_normal((40, 8)), np.arange(40.0)
            assert np.count_nonzero(sp.OrthogonalMatchingPursuit(n_nonzero_coefs=3).fit(X, y).coef_) == 3
    with pytest.warns(RuntimeWarning, match="prematurely"):
        sp.orthogonal_mp(np.eye(3), np.array([3.0, 2, 0]), n_nonzero_coefs=3)


def test_targets_that_are_text_and_too_few_features():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    for kind in (sp.OrthogonalMatchingPursuit, sp.OrthogonalMatchingPursuitCV):
        np.testing.assert_array_equal(kind().fit(X, y.astype(str)).coef_, kind().fit(X, y).coef_)
        with pytest.raises(ValueError, match="y must be numbers"):
            kind().fit(X, ["a"] * 40)
    with pytest.raises(ValueError, match="minimum of 2"):
        sp.OrthogonalMatchingPursuitCV().fit(X[:, :1], y)
