"""Certified selection: the atoms of exact selection on every kind of design, with honest counts."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import OMP, Certified, CoSaMP, Exact, as_design, datasets, minimize

from ..support import data
from ..support.asking import Absolute, Group, Question, Signed, ask
from ..support.data import some_rows, view, with_intercept

AUDIO = Path(__file__).parents[3] / "shared" / "data" / "audio" / "classical_16k_8192.flac"


def gaussian(rng, n, d):
    return rng.standard_normal((n, d))


def correlated(rng, n, d):
    return rng.standard_normal((n, d)) + 3.0 * rng.standard_normal((n, 1))


def heavy_tailed(rng, n, d):
    return rng.standard_cauchy((n, d))


def offset(rng, n, d):
    return 1000.0 + rng.standard_normal((n, d))


def scaled(rng, n, d):
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-6, 6, d)


def duplicated(rng, n, d):
    return rng.standard_normal((n, d))[:, rng.integers(0, max(1, d // 2), d)]


def with_zeros(rng, n, d):
    return np.where(rng.random((n, d)) < 0.1, rng.standard_normal((n, d)), 0.0)


KINDS = [gaussian, correlated, heavy_tailed, offset, scaled, duplicated, with_zeros]


def layouts(X):
    return [X, np.asfortranarray(X), X.astype(np.float32), np.repeat(X, 2, axis=1)[:, ::2]]


@pytest.mark.parametrize("make", KINDS)
def test_omp_atoms_are_those_of_exact_on_150_problems_each(make, monkeypatch):
    rng = np.random.default_rng(KINDS.index(make))
    steps = recomputed = 0
    for trial in range(150):
        if trial == 75:  # half of them by products made ahead, as for large X
            monkeypatch.setattr("skpursuit.numerics.tuning.CODES_WORTH", 0)
            monkeypatch.setattr("skpursuit.numerics.tuning.SUM_TERMS", 0)
        n, d = int(rng.integers(2, 300)), int(rng.integers(2, 200))
        X = layouts(make(rng, n, d))[trial % 4]
        y = rng.standard_normal(n) * 10.0 ** rng.uniform(-100, 100)
        solver = OMP(n_nonzero_coefs=min(n, d, 8))
        exact, certified = minimize(X, y, solver, "exact"), minimize(X, y, solver, "certified")
        assert certified.support.tolist() == exact.support.tolist()
        assert {record.certificate for record in certified.history} <= {"exact", "none"}
        steps += certified.n_iter
        recomputed += sum(record.entries_read > n * d for record in certified.history)
    assert recomputed > 0  # the proof is put to use: intervals alone do not decide every step
    assert steps > 500


def test_few_columns_are_recomputed_on_a_gaussian_design():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1000, 2000)), rng.standard_normal(1000)
    design = as_design(X)
    counts = []
    for seed in range(20):
        r = np.random.default_rng(seed).standard_normal(1000)
        answer = ask(Certified(), design, r)
        assert answer.indices.tolist() == ask(Exact(), design, r).indices.tolist()
        counts.append(answer.recomputed)
        assert answer.bytes_read <= 0.15 * X.nbytes
    assert np.median(counts) <= 0.1 * 2000
    assert max(counts) > 1
    result = minimize(design, y, OMP(n_nonzero_coefs=20), "certified")
    assert result.bytes_read <= 20 * 0.15 * X.nbytes


@pytest.mark.parametrize("score", [Absolute(), Signed(), Group()])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_top_k_scores_and_exclusions(score, k):
    rng = np.random.default_rng(k)
    for _ in range(20):
        X = rng.standard_normal((60, 90))
        r = rng.standard_normal((60, 3) if isinstance(score, Group) else 60)
        question = Question(r, k, score, exclude=rng.choice(90, 20, replace=False))
        design = as_design(X)
        wanted = ask(Exact(), design, question).indices.tolist()
        assert ask(Certified(), design, question).indices.tolist() == wanted


def test_one_twin_serves_views_and_folds():
    rng = np.random.default_rng(3)
    X = 1000.0 + rng.standard_normal((120, 80))
    base = as_design(X)
    for fold in range(4):
        root = (np.arange(120) % 4 != fold).astype(float)
        centre = (root @ X) / root.sum()
        scale = np.sqrt(root @ (X - centre) ** 2)
        part = some_rows(base, np.flatnonzero(root))
        for design in (view(base, centre, scale, root), with_intercept(base), part):
            r = rng.standard_normal(design.shape[0])
            answer = ask(Certified(), design, r, k=5)
            assert answer.indices.tolist() == ask(Exact(), design, r, k=5).indices.tolist()
            g, bound = data.estimate(design, r)
            exact = data.dense(design).T @ r.astype(np.longdouble)
            assert (np.abs(g - exact) <= bound).all()
            fine, finer = data.refine(design, r, np.arange(0, 80, 7))
            assert (np.abs(fine - exact[::7][: len(fine)]) <= finer).all()
        assert data.codes(view(base, centre)) is data.codes(base)
    assert len(data.kept_codes(base)) == 1


def test_sparse_and_operator_designs_answer_by_the_exact_product():
    from scipy.sparse.linalg import aslinearoperator

    rng = np.random.default_rng(4)
    X = with_zeros(rng, 50, 70)
    r = rng.standard_normal(50)
    for source in (sp.csr_array(X), sp.csc_array(X), aslinearoperator(X)):
        design = as_design(source)
        answer = ask(Certified(), design, r, k=3)
        assert answer.indices.tolist() == ask(Exact(), design, r, k=3).indices.tolist()
        assert answer.certificate == "exact"
        assert data.memory_estimate(design, "certified") == 0
    assert data.memory_estimate(as_design(X), "certified") >= X.size


def test_cosamp_iterates_are_identical():
    rng = np.random.default_rng(5)
    for _ in range(20):
        X = rng.standard_normal((150, 300))
        y = X[:, rng.choice(300, 10)] @ rng.standard_normal(10) + 0.3 * rng.standard_normal(150)
        exact = minimize(X, y, CoSaMP(n_nonzero_coefs=10, max_iter=8), "exact")
        certified = minimize(X, y, CoSaMP(n_nonzero_coefs=10, max_iter=8), "certified")
        assert [set(r.selected) for r in exact.history] == [set(r.selected) for r in certified.history]
        np.testing.assert_array_equal(exact.coef, certified.coef)


def test_delta_form_fails_no_more_often_than_delta():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 60))
    y = rng.standard_normal(40)
    solver = OMP(n_nonzero_coefs=5)
    exact = minimize(X, y, solver, "exact").support.tolist()
    failures = 0
    for seed in range(200):
        result = minimize(X, y, solver, Certified(delta=0.5, seed=seed))
        assert {record.certificate for record in result.history} == {"delta"}
        failures += result.support.tolist() != exact
    assert failures <= 0.5 * 200


def test_delta_intervals_miss_within_delta_and_not_never():
    """At a delta large enough to see failures, single intervals fail, and no more often than promised."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((30, 40))
    r = rng.standard_normal(30)
    exact = X.T @ r
    missed = []
    for seed in range(200):
        g, bound = data.estimate(as_design(X), r, seed, np.log(0.9))
        missed.append(np.mean(np.abs(g - exact) > bound))
    assert 0 < np.mean(missed) <= 0.9


def test_the_delta_form_is_narrower_than_the_proof():
    rng = np.random.default_rng(8)
    X, r = rng.standard_normal((5000, 20)), rng.standard_normal(5000)
    design = as_design(X)
    _, proven = data.estimate(design, r)
    _, likely = data.estimate(design, r, 0, np.log(1e-6 / 20))
    assert (likely < 0.6 * proven).all()


def test_the_delta_form_reads_one_byte_where_many_columns_are_asked_for():
    X, y, _ = datasets.make_sparse_signal(400, 600, 5, random_state=0)
    proof, delta = (minimize(X, y, CoSaMP(5, max_iter=2), Certified(delta=d)) for d in (0.0, 0.1))
    assert (delta.support == proof.support).all()
    assert delta.bytes_read < 0.75 * proof.bytes_read
    assert delta.prepared_bytes < proof.prepared_bytes


def test_repeated_runs_are_the_same_and_bad_delta_is_refused():
    rng = np.random.default_rng(9)
    X, y = rng.standard_normal((80, 90)), rng.standard_normal(80)
    one, two = (minimize(X, y, OMP(n_nonzero_coefs=9), "certified") for _ in range(2))
    assert one.coef.tobytes() == two.coef.tobytes()
    assert one.entries_read == two.entries_read
    for delta in (-0.1, 1.0, "x"):
        with pytest.raises((TypeError, ValueError), match="delta"):
            Certified(delta=delta)


@pytest.mark.parametrize(("n", "d"), [(20000, 100), (50, 4000)])
def test_tall_and_wide(n, d):
    rng = np.random.default_rng(10)
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    solver = OMP(n_nonzero_coefs=10)
    exact, certified = minimize(X, y, solver, "exact"), minimize(X, y, solver, "certified")
    assert exact.support.tolist() == certified.support.tolist()


@pytest.mark.skipif(not AUDIO.exists(), reason="the music file is not here")
def test_music_frames_as_atoms():
    soundfile = pytest.importorskip("soundfile")
    pieces, _ = soundfile.read(AUDIO, frames=1024 * 900, dtype="float64")
    pieces = pieces.reshape(-1, 1024)
    pieces = pieces[np.linalg.norm(pieces, axis=1) > 0]
    X, targets = np.ascontiguousarray(pieces[:800].T), pieces[800:820]
    design = as_design(X)
    for y in targets:
        solver = OMP(n_nonzero_coefs=15)
        exact, certified = minimize(design, y, solver, "exact"), minimize(design, y, solver, "certified")
        assert exact.support.tolist() == certified.support.tolist()


def test_nan_is_refused_whatever_the_selector():
    X = np.ones((10, 5))
    X[3, 2] = np.nan
    for selector in ("certified", "sketch", "auto", "halving", "greedy"):
        with pytest.raises(ValueError, match=r"NaN or infinity|not finite"):
            minimize(X, np.ones(10), OMP(n_nonzero_coefs=1), selector)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d"), [(100_000, 2000), (500, 200_000)])
def test_atoms_of_exact_on_a_tall_and_a_wide_design(n, d):
    X, y, _ = datasets.make_sparse_signal(n, d, 10, random_state=0)
    design, solver = as_design(X), OMP(n_nonzero_coefs=10)
    exact, certified = minimize(design, y, solver, "exact"), minimize(design, y, solver, "certified")
    assert certified.support.tolist() == exact.support.tolist()
    assert {record.certificate for record in certified.history} == {"exact"}
    assert certified.bytes_read < 0.3 * exact.bytes_read


def test_one_twin_rounded_at_random_is_kept_at_a_time():
    design = as_design(np.random.default_rng(0).standard_normal((40, 30)))
    plain = data.codes(design)
    for seed in (1, 2, 3):
        data.codes(design, seed)
    assert data.kept_codes(design) == [None, 3]
    assert data.codes(design) is plain
