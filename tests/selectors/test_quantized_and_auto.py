"""Quantized selection finds what matters and calls it a guess; auto picks among exact ones."""

import contextlib
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import skpursuit as sk
from skpursuit.data import options as memory
from skpursuit.selectors import auto

from ..support.asking import GroupNorm, Question, Signed, ask, picked, predicted
from ..support.data import view


def test_quantized_finds_the_atoms_and_reads_little():
    X, y, _ = sk.datasets.make_sparse_signal(1000, 2000, 20, random_state=0)
    exact = sk.minimize(X, y, sk.OMP(n_nonzero_coefs=20), "exact")
    quantized = sk.minimize(X, y, sk.OMP(n_nonzero_coefs=20), "quantized")
    assert len(set(exact.support) & set(quantized.support)) >= 19
    assert {record.certificate for record in quantized.history} == {"heuristic"}
    assert sum(record.bytes_read for record in quantized.history) <= 0.6 * X.nbytes


def test_quantized_on_sparse_X_weights_and_targets():
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((60, 40)), rng.standard_normal((60, 2))
    assert len(sk.minimize(sp.csr_array(X), Y[:, 0], sk.OMP(n_nonzero_coefs=3), "quantized").support) == 3
    exact = sk.minimize(X, Y, sk.OMP(n_nonzero_coefs=3), "exact", sample_weight=np.arange(60.0))
    quantized = sk.minimize(X, Y, sk.OMP(n_nonzero_coefs=3), "quantized", sample_weight=np.arange(60.0))
    assert exact.support.tolist() == quantized.support.tolist()  # 40 columns: all are computed exactly


def planted(n, d, seed):
    """A residual with one column that stands out, and a direction of its length to move it in."""
    rng = np.random.default_rng(seed)
    X, r, move = rng.standard_normal((n, d)), rng.standard_normal(n), rng.standard_normal(n)
    r += 0.5 * X[:, 7]
    return X, r, move * np.linalg.norm(r) / np.linalg.norm(move)


def test_quantized_looks_at_all_columns_only_when_the_residual_has_changed():
    n, d = 256, 2000
    X, r, move = planted(n, d, 3)
    design, selector = sk.as_design(X), sk.Quantized(max_recomputed=40)
    first = ask(selector, design, r)
    assert first.columns.tolist() == [7]
    assert first.entries_read == n * (d + first.n_recomputed)
    near = ask(selector, design, r + 0.05 * move, memory=first.memory)
    assert near.entries_read == n * near.n_recomputed
    assert near.memory["scores"] is first.memory["scores"]
    far = ask(selector, design, move, memory=first.memory)
    assert far.entries_read > n * d
    taken = np.argsort(-first.memory["scores"])[:500]
    beyond = ask(selector, design, r, exclude=taken, memory=first.memory)
    assert beyond.columns.tolist() == ask(sk.Exact(), design, r, exclude=taken).columns.tolist()


def test_quantized_keeps_its_look_for_targets_and_views():
    X, r, move = planted(300, 3000, 6)
    rng = np.random.default_rng(6)
    R, score = np.stack([r, rng.standard_normal(300)], axis=1), GroupNorm()
    X[:, [40, 41]] += 0.4 * r[:, None]
    for design in (sk.as_design(X), view(X, centre=X.mean(axis=0), root=np.full(300, 2.0))):
        for given in ({}, {"score": Signed()}, {"score": score}):
            first = R if given.get("score") is score else r
            small = 0.05 * (move if first.ndim == 1 else move[:, None])
            sign = -1.0 if isinstance(given.get("score"), Signed) else 1.0
            held = ask(sk.Quantized(), design, sign * first, **given)
            later = Question(sign * (first + small), memory=held.memory, **given)
            answer = ask(sk.Quantized(), design, later)
            assert answer.entries_read < X.size
            assert answer.memory["scores"] is held.memory["scores"]
            assert set(answer.columns) == set(ask(sk.Exact(), design, later).columns)


def test_matching_pursuit_with_a_quantized_goes_on_where_the_residual_comes_to_rest():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 500))
    y = X[:, :150] @ (0.05 * rng.standard_normal(150)) + rng.standard_normal(600)
    result = sk.minimize(X, y, sk.MatchingPursuit(max_iter=600), "quantized")
    exact = sk.minimize(X, y, sk.MatchingPursuit(max_iter=600), "exact")
    gradients = [np.abs(X.T @ (X @ fit.coef - y)).max() for fit in (result, exact)]
    assert result.objective < 1.01 * exact.objective
    assert gradients[0] < 1.5 * gradients[1]
    assert sum(record.entries_read < X.size for record in result.history) > 150


def test_quantized_never_chooses_what_is_excluded():
    rng = np.random.default_rng(4)
    X, r = rng.standard_normal((64, 300)), rng.standard_normal(64)
    design, selector = sk.as_design(X), sk.Quantized(max_recomputed=5)
    taken: list[int] = []
    memory = None
    for _ in range(300):  # until nothing is left
        answer = ask(selector, design, r, exclude=taken, memory=memory)
        memory = answer.memory
        taken += answer.columns.tolist()
    assert sorted(taken) == list(range(300))
    assert len(ask(selector, design, r, exclude=np.arange(300)).columns) == 0


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_quantized_resumes_with_its_guesses_or_its_look(tmp_path, loss):
    X, y, _ = sk.datasets.make_sparse_signal(400, 3000, 15, random_state=1)
    given = {"solver": sk.OMP(n_nonzero_coefs=15), "selector": sk.Quantized(max_recomputed=50), "loss": loss}
    whole = sk.minimize(X, y, **given)
    path = tmp_path / "run"
    for stop_at in (1, 4, 7):
        halted = sk.minimize(X, y, checkpoint=path, callback=lambda r, at=stop_at: r.iteration == at, **given)
        assert halted.n_iter == stop_at + 1
    after = sk.minimize(X, y, checkpoint=path, **given)
    assert after.support.tolist() == whole.support.tolist()
    reads = [record.entries_read for record in whole.history]
    assert [record.entries_read for record in after.history] == reads
    assert min(reads) < X.size < max(reads)  # some steps looked at all columns, some did not


def chosen(X, y, solver):
    return min(costs := predicted(X, y, solver), key=costs.get)


def test_auto_follows_its_cost_model():
    rng = np.random.default_rng(2)
    small, large = rng.standard_normal((50, 80)), np.ones((2000, 6000)) + np.eye(2000, 6000)
    y = rng.standard_normal(2000)
    import numba  # noqa: F401  (loaded, so that its import is no cost)

    assert repr(chosen(small, y[:50], sk.OMP(n_nonzero_coefs=5))) == "Exact()"
    assert repr(chosen(large, y, sk.OMP(n_nonzero_coefs=100))) == repr(sk.Certified())
    assert repr(chosen(large, y, sk.FrankWolfe(sk.L1Ball(1.0), max_iter=5000))).startswith("Gram")
    assert repr(chosen(sp.csr_array(large > 1), y, sk.OMP(n_nonzero_coefs=5))) == "Exact()"


def test_auto_loads_kernels_for_a_short_fit_only_in_a_process_that_has_worked_for_long(monkeypatch):
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    medium = sk.as_design(np.ones((2000, 6000))), np.ones(2000), sk.OMP(n_nonzero_coefs=100)
    tiny = sk.as_design(np.ones((50, 80))), np.ones(50), sk.OMP(5)
    choices = {}
    for worked in (0.0, 1.0, 100.0):
        monkeypatch.setattr(auto, "process_time", lambda worked=worked: worked)
        assert not isinstance(picked(sk.Auto(), *tiny), sk.Certified)
        choices[worked] = isinstance(picked(sk.Auto(), *medium), sk.Certified)
    assert choices == {0.0: False, 1.0: False, 100.0: True}
    assert auto.kernel_load_seconds() == 0.0


def test_what_auto_picks_is_fitted_to_the_solver():
    import numba  # noqa: F401  (loaded, so that its import is no cost)

    problem = sk.as_design(np.ones((2000, 6000))), np.ones(2000), sk.CoSaMP(50)
    assert picked(sk.Auto(), *problem) == sk.Exact()  # a few products cost no more than codes
    problem[0].codes(fine=True)
    assert picked(sk.Auto(), *problem) == picked(sk.Certified(), *problem) == sk.Certified()


def test_auto_tells_why_and_answers_exactly():
    X, y, _ = sk.datasets.make_sparse_signal(300, 900, 10, random_state=1)
    auto, exact = (sk.minimize(X, y, sk.OMP(n_nonzero_coefs=10), s) for s in (sk.Auto(), "exact"))
    assert auto.support.tolist() == exact.support.tolist()
    assert auto.selector.startswith("auto: ")
    assert "exact" in auto.selector
    assert "\n" not in auto.selector


def test_memory_that_can_be_had_counts_cached_files(monkeypatch):
    told = memory.available_memory()
    with contextlib.suppress(FileNotFoundError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
        assert told == pytest.approx(available, rel=0.5)
    monkeypatch.setattr(memory, "MEMINFO", "/no/such/file")
    assert 2**20 < memory.available_memory() <= told * 2
