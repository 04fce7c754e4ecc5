"""The sketch finds what matters and calls it a guess; auto picks among exact ones and explains itself."""

import contextlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import (
    OMP,
    Auto,
    Certified,
    CoSaMP,
    Exact,
    FrankWolfe,
    L1Ball,
    MatchingPursuit,
    Sketch,
    as_design,
    datasets,
    minimize,
)
from skpursuit.selectors import auto

from ..support.asking import Group, Question, Signed, ask, picked, predicted
from ..support.data import memory_estimate, view
from ..support.process import run_code


def test_sketch_finds_the_atoms_and_reads_little():
    X, y, _ = datasets.make_sparse_signal(1000, 2000, 20, random_state=0)
    exact = minimize(X, y, OMP(n_nonzero_coefs=20), "exact")
    sketch = minimize(X, y, OMP(n_nonzero_coefs=20), "sketch")
    assert len(set(exact.support) & set(sketch.support)) >= 19
    assert {record.certificate for record in sketch.history} == {"heuristic"}
    guessing = ask(Sketch(last=1), X, y)
    assert guessing.bytes_read <= 0.05 * X.nbytes


def test_sketch_on_sparse_views_targets_and_bad_arguments():
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((60, 40)), rng.standard_normal((60, 2))
    assert len(minimize(sp.csr_array(X), Y[:, 0], OMP(n_nonzero_coefs=3), "sketch").support) == 3
    exact = minimize(X, Y, OMP(n_nonzero_coefs=3), "exact", sample_weight=np.arange(60.0))
    sketch = minimize(X, Y, OMP(n_nonzero_coefs=3), "sketch", sample_weight=np.arange(60.0))
    assert exact.support.tolist() == sketch.support.tolist()  # 40 columns: all are computed exactly
    for given in ({"second": 0.0}, {"second": 2.0}, {"last": 0}, {"drift": -0.1}, {"drift": 1.0}):
        with pytest.raises(ValueError, match="must be"):
            Sketch(**given)


def planted(n, d, seed):
    """A residual with one column that stands out, and a direction of its length to move it in."""
    rng = np.random.default_rng(seed)
    X, r, move = rng.standard_normal((n, d)), rng.standard_normal(n), rng.standard_normal(n)
    r += 0.5 * X[:, 7]
    return X, r, move * np.linalg.norm(r) / np.linalg.norm(move)


def test_sketch_ranks_all_columns_only_when_the_residual_has_changed():
    n, d, size = 256, 2000, 200
    X, r, move = planted(n, d, 3)
    design, selector = as_design(X), Sketch(last=10)
    first = ask(selector, design, r)
    assert len(first.memory["cols"]) == size
    assert first.entries_read == n * (d + size + first.recomputed)
    near = ask(selector, design, r + 0.2 * move, memory=first.memory)
    assert near.entries_read == n * (size + near.recomputed)
    assert near.memory is first.memory
    far = ask(selector, design, r + 0.4 * move, memory=first.memory)
    assert far.entries_read == n * (d + size + far.recomputed)
    anew = ask(Sketch(last=10, drift=0.0), design, r + 0.2 * move, memory=first.memory)
    assert anew.entries_read == n * (d + size + anew.recomputed)
    other = ask(selector, design, r[:, None], score=Group(), memory=first.memory)
    assert other.entries_read == n * (d + size + other.recomputed)


def test_sketch_ranks_all_columns_when_those_of_its_shortlist_are_no_longer_ahead():
    n, d = 256, 2000
    X, r, _ = planted(n, d, 5)
    design, selector = as_design(X), Sketch(last=10)
    first = ask(selector, design, r)
    assert first.indices.tolist() == [7]
    best = first.memory["cols"][np.argsort(-first.memory["scores"])[:185]]
    answer = ask(selector, design, r, exclude=best, memory=first.memory)
    assert answer.entries_read >= n * d  # 15 of the list were left, and no better than the others
    behind = {**first.memory, "least": np.array(np.inf)}
    assert ask(selector, design, r, memory=behind).entries_read >= n * d
    wild = {**first.memory, "scores": first.memory["scores"] + 1e3}
    assert ask(selector, design, r, memory=wild).entries_read >= n * d


def test_sketch_keeps_a_shortlist_for_many_columns_targets_and_views():
    X, r, move = planted(300, 3000, 6)
    rng = np.random.default_rng(6)
    R, score = np.stack([r, rng.standard_normal(300)], axis=1), Group()
    X[:, [40, 41]] += 0.4 * r[:, None]
    for design in (as_design(X), view(X, centre=X.mean(axis=0), root=np.full(300, 2.0))):
        for given in ({}, {"k": 3}, {"score": Signed()}, {"score": score}):
            first = R if given.get("score") is score else r
            small = 0.05 * (move if first.ndim == 1 else move[:, None])
            sign = -1.0 if isinstance(given.get("score"), Signed) else 1.0
            held = ask(Sketch(), design, sign * first, **given)
            later = Question(sign * (first + small), memory=held.memory, **given)
            answer = ask(Sketch(), design, later)
            assert answer.entries_read < X.size
            assert answer.memory is held.memory
            assert set(answer.indices) == set(ask(Exact(), design, later).indices)


def test_matching_pursuit_with_a_sketch_goes_on_where_the_residual_comes_to_rest():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 500))
    y = X[:, :150] @ (0.05 * rng.standard_normal(150)) + rng.standard_normal(600)
    selector = Sketch(last=5)
    kept = minimize(X, y, MatchingPursuit(max_iter=600), selector)
    anew = minimize(X, y, MatchingPursuit(max_iter=600), replace(selector, drift=0.0))
    gradients = [np.abs(X.T @ (X @ result.coef - y)).max() for result in (kept, anew)]
    assert kept.objective < 1.1 * anew.objective
    assert gradients[0] < 1.5 * gradients[1]
    assert sum(record.entries_read < X.size for record in kept.history) > 150


def test_sketch_never_chooses_what_is_excluded():
    rng = np.random.default_rng(4)
    X, r = rng.standard_normal((64, 300)), rng.standard_normal(64)
    design, selector = as_design(X), Sketch(second=0.1, last=5)
    taken: list[int] = []
    memory = None
    for _ in range(300):  # until nothing is left
        answer = ask(selector, design, r, exclude=taken, memory=memory)
        memory = answer.memory
        taken += answer.indices.tolist()
    assert sorted(taken) == list(range(300))
    assert len(ask(selector, design, r, exclude=np.arange(300)).indices) == 0


@pytest.mark.parametrize("stop_at", [1, 4, 7])
def test_sketch_resumes_with_its_shortlist(tmp_path, stop_at):
    X, y, _ = datasets.make_sparse_signal(400, 3000, 15, random_state=1)
    solver, selector = OMP(n_nonzero_coefs=15), Sketch(second=0.05, last=3, drift=0.5)
    whole = minimize(X, y, solver, selector)
    path = tmp_path / "run"
    halted = minimize(
        X, y, solver, selector, checkpoint=path, callback=lambda record: record.iteration == stop_at
    )
    assert halted.n_iter == stop_at + 1
    after = minimize(X, y, solver, selector, checkpoint=path)
    assert after.support.tolist() == whole.support.tolist()
    reads = [record.entries_read for record in whole.history]
    assert [record.entries_read for record in after.history] == reads
    assert min(reads) < X.size <= max(reads)  # some steps ranked all columns, some did not


@pytest.mark.filterwarnings("error")
def test_sketch_is_silent_on_very_large_numbers():
    X, y, _ = datasets.make_sparse_signal(200, 400, 5, snr=20.0, random_state=0)
    plain = minimize(X, y, OMP(n_nonzero_coefs=5), "sketch")
    large = minimize(X * 1e150, y * 1e150, OMP(n_nonzero_coefs=5), "sketch")
    assert set(large.support) == set(plain.support)


def chosen(X, y, solver, **given):
    return min(costs := predicted(X, y, solver, **given), key=costs.get)


def test_auto_follows_its_cost_model():
    rng = np.random.default_rng(2)
    small, large = rng.standard_normal((50, 80)), np.ones((2000, 6000)) + np.eye(2000, 6000)
    y = rng.standard_normal(2000)
    import numba  # noqa: F401  (loaded, so that its import is no cost)

    assert repr(chosen(small, y[:50], OMP(n_nonzero_coefs=5))) == "Exact()"
    assert repr(chosen(large, y, OMP(n_nonzero_coefs=100))) == repr(Certified())
    assert repr(chosen(large, y, FrankWolfe(L1Ball(1.0), max_iter=5000))).startswith("Gram")
    assert repr(chosen(sp.csr_array(large > 1), y, OMP(n_nonzero_coefs=5))) == "Exact()"
    assert isinstance(chosen(large, y, OMP(n_nonzero_coefs=100), heuristic=True), Sketch)


def test_auto_loads_kernels_for_a_short_fit_only_in_a_process_that_has_worked_for_long(monkeypatch):
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    medium = as_design(np.ones((2000, 6000))), np.ones(2000), OMP(n_nonzero_coefs=100)
    tiny = as_design(np.ones((50, 80))), np.ones(50), OMP(5)
    choices = {}
    for worked in (0.0, 1.0, 100.0):
        monkeypatch.setattr(auto, "process_time", lambda worked=worked: worked)
        assert not isinstance(picked(Auto(), *tiny), Certified)
        choices[worked] = isinstance(picked(Auto(), *medium), Certified)
    assert choices == {0.0: False, 1.0: False, 100.0: True}
    assert auto.price_of_loading() == 0.0


def test_what_auto_picks_is_fitted_to_the_solver():
    import numba  # noqa: F401  (loaded, so that its import is no cost)

    problem = as_design(np.ones((2000, 6000))), np.ones(2000), CoSaMP(50)
    assert picked(Auto(), *problem) == Exact()  # a few products cost no more than codes
    problem[0].codes(fine=True)
    assert picked(Auto(), *problem) == picked(Certified(), *problem) != Certified()


def test_auto_tells_why_and_answers_exactly():
    X, y, _ = datasets.make_sparse_signal(300, 900, 10, random_state=1)
    auto, exact = (minimize(X, y, OMP(n_nonzero_coefs=10), s) for s in (Auto(), "exact"))
    assert auto.support.tolist() == exact.support.tolist()
    assert auto.selector.startswith("auto: ")
    assert "exact" in auto.selector
    assert "\n" not in auto.selector


def test_small_problems_never_load_a_compiler():
    code = (
        "import numpy as np, sys; from skpursuit import minimize, OMP, CoSaMP, FrankWolfe, L1Ball, StoIHT;"
        "rng = np.random.default_rng(0); X = rng.standard_normal((50, 80)); y = rng.standard_normal(50);"
        "solvers = OMP(n_nonzero_coefs=5), CoSaMP(n_nonzero_coefs=5), FrankWolfe(L1Ball(1.0)), StoIHT(5);"
        "[minimize(X, y, s) for s in solvers]; assert 'numba' not in sys.modules"
    )
    run_code(code)


def test_auto_tells_the_most_memory_it_may_keep():
    design = as_design(np.zeros((300, 40)))
    assert memory_estimate(design) == max(memory_estimate(design, name) for name in ("gram", "certified")) > 0


def test_memory_that_can_be_had_counts_cached_files(monkeypatch):
    told = auto.free_memory()
    with contextlib.suppress(FileNotFoundError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
        assert told == pytest.approx(available, rel=0.5)
    monkeypatch.setattr(auto, "MEMINFO", "/no/such/file")
    assert 2**20 < auto.free_memory() <= told * 2
