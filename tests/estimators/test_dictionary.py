"""Learned dictionaries: the error falls, unused atoms are replaced, and scikit-learn's contract holds."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from skpursuit import DictionaryLearner, PursuitCoder
from skpursuit.coding import dictionary_update as update_rule


def planted(m=1500, d=24, n=16, k=2, seed=0):
    """Signals made of k of d unit-norm atoms."""
    rng = np.random.default_rng(seed)
    atoms = rng.standard_normal((d, n))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    codes = np.zeros((m, d))
    for row in codes:
        row[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(1, 2, k)
    return atoms, codes @ atoms


def learner(**changes):
    options = {"n_components": 24, "n_nonzero_coefs": 2, "batch_size": 100, "random_state": 0}
    return DictionaryLearner(**{**options, **changes})


def test_planted_atoms_are_found():
    atoms, signals = planted()
    model = learner(max_iter=20).fit(signals)
    assert model.components_.shape == (24, 16)
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert model.errors_[-1] < 0.2 * model.errors_[0]
    assert np.mean(np.abs(atoms @ model.components_.T).max(axis=1) > 0.99) > 0.7
    assert model.n_iter_ == len(model.errors_) == 20


def test_update_never_raises_the_quadratic_objective():
    rng = np.random.default_rng(1)
    atoms = rng.standard_normal((150, 30))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    codes = rng.standard_normal((400, 150)) * (rng.random((400, 150)) < 0.05)
    codes[:, 7] = 0
    signals = codes @ atoms + 0.5 * rng.standard_normal((400, 30))
    before, start = np.sum((signals - codes @ atoms) ** 2), atoms.copy()
    update_rule.update_atoms(atoms, codes.T @ codes, codes.T @ signals)
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1)
    np.testing.assert_array_equal(atoms[7], start[7])
    assert np.sum((signals - codes @ atoms) ** 2) < before


def test_update_in_blocks_equals_one_atom_after_the_other():
    rng = np.random.default_rng(2)
    atoms = rng.standard_normal((100, 20))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    codes, signals = rng.standard_normal((300, 100)), rng.standard_normal((300, 20))
    A, B = codes.T @ codes, codes.T @ signals
    expected = atoms.copy()
    for j in range(100):
        moved = expected[j] + (B[j] - A[j] @ expected) / A[j, j]
        expected[j] = moved / np.linalg.norm(moved)
    update_rule.update_atoms(atoms, A, B)
    np.testing.assert_allclose(atoms, expected, atol=1e-10)


def test_unused_atoms_are_replaced():
    _, signals = planted()
    model = learner(max_iter=1).fit(np.zeros((50, 16)) + signals[0])
    before = model.n_replaced_
    for _ in range(10):
        model.partial_fit(signals[:500])
    assert model.n_replaced_ > before
    assert np.unique(model.transform(signals).indices).size > 20


def test_the_same_on_any_number_of_threads_and_for_the_same_seed():
    _, signals = planted(400)
    first = learner(max_iter=3, n_jobs=1).fit(signals)
    np.testing.assert_array_equal(learner(max_iter=3, n_jobs=2).fit(signals).components_, first.components_)
    np.testing.assert_array_equal(clone(first).fit(signals).components_, first.components_)
    assert not np.array_equal(learner(max_iter=3, random_state=1).fit(signals).components_, first.components_)


def test_partial_fit_goes_on_after_a_pickle():
    _, signals = planted()
    model = learner().partial_fit(signals[:700])
    again = pickle.loads(pickle.dumps(model))
    for each in (model, again):
        each.partial_fit(signals[700:])
    np.testing.assert_array_equal(model.components_, again.components_)
    assert len(model.errors_) == model.n_iter_ == 2


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_scale_does_not_matter(scale):
    _, signals = planted(300)
    plain, scaled = learner(max_iter=2).fit(signals), learner(max_iter=2).fit(signals * scale)
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-8)
    assert scaled.errors_ == pytest.approx(plain.errors_)


def test_single_precision_stays_single():
    _, signals = planted(300)
    model = learner(max_iter=2).fit(signals.astype(np.float32))
    assert model.components_.dtype == np.float32
    assert model.transform(signals.astype(np.float32)).dtype == np.float32


def test_callback_hears_every_batch():
    _, signals = planted(250)
    calls = []
    learner(max_iter=2, callback=lambda *told: calls.append(told)).fit(signals)
    assert calls == [(done, 500) for done in (100, 200, 250, 350, 450, 500)]


def test_round_trip_and_names():
    _, signals = planted()
    model = learner(max_iter=15).fit(signals)
    codes = model.transform(signals)
    assert np.all(np.diff(codes.indptr) <= 2)
    left = signals - model.inverse_transform(codes)
    assert np.sum(left**2) < 0.2 * np.sum(signals**2)
    assert list(model.get_feature_names_out()[:1]) == ["dictionarylearner0"]


def test_codes_follow_score_and_sign():
    _, signals = planted(300)
    rules = {}, {"atom_score": "gain"}, {"positive": True}
    plain, gain, positive = (learner(n_nonzero_coefs=4, **rule).fit(signals) for rule in rules)
    assert not np.allclose(gain.components_, plain.components_)
    codes = PursuitCoder(gain.components_, 4, atom_score="gain").transform(signals)
    assert (gain.transform(signals) != codes).nnz == 0
    assert positive.transform(signals).data.min() > 0
    with pytest.raises(ValueError, match="leave atom_score='correlation'"):
        learner(positive=True, atom_score="gain").fit(signals)


def test_atoms_forget_the_codes_of_bad_first_atoms():
    """A twelfth pass is not held back by what the first one found."""
    _, signals = planted(1500, 48, 16, 3)
    errors = learner(n_components=48, n_nonzero_coefs=3, max_iter=12).fit(signals).errors_
    assert errors[-1] < 0.3 * errors[0]


def test_too_many_coefficients_warn_once():
    with pytest.warns(UserWarning, match="n_nonzero_coefs is 30 but the dictionary has 24 atoms") as caught:
        learner(n_nonzero_coefs=30, max_iter=2).fit(planted(150)[1])
    assert len(caught) == 1


def test_zero_signals_learn_nothing_and_do_not_fail():
    model = learner(max_iter=2).fit(np.zeros((20, 16)))
    assert np.isfinite(model.components_).all()
    assert model.errors_ == [0.0, 0.0]
