"""The number of threads changes no bit of a run."""

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import skpursuit as sk
from skpursuit.data import dense_tile
from skpursuit.numerics import threads

CHOICES = {
    "halving": "halving",
    "halving-random": "halving-random",
    "greedy": "greedy",
    "greedy 5%": sk.Greedy(stop=sk.Stability(0.05)),
    "uniform": "uniform",
    "certified": "certified",
    "quantized": "quantized",
}


@pytest.fixture(scope="module")
def problem():
    X, y, _ = sk.datasets.make_sparse_signal(600, 1100, 10, random_state=0)
    return X, y


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize("name", CHOICES)
def test_a_pursuit_has_the_same_bits_on_one_and_two_threads(problem, name, layout, monkeypatch):
    X, y = problem
    monkeypatch.setattr(
        threads, "MIN_PARALLEL_WORK", 1000
    )  # or a problem this small would stay on one thread
    handed = []
    submit = threads._executor
    monkeypatch.setattr(threads, "_executor", lambda size: handed.append(size) or submit(size))
    results = []
    for count in (1, 2, 3):
        handed.clear()
        with threadpool_limits(count):
            solver = sk.OMP(n_nonzero_coefs=10)
            results.append(sk.minimize(sk.as_design(layout(X)), y, solver, CHOICES[name], random_state=3))
        assert (max(handed, default=0) > 0) == (count > 1 and layout is not sp.csr_array)
    for other in results[1:]:
        assert other.support.tolist() == results[0].support.tolist()
        assert other.coef.tobytes() == results[0].coef.tobytes()
        assert other.entries_read == results[0].entries_read
        assert [record.objective for record in other.history] == [
            record.objective for record in results[0].history
        ]


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_statistics_and_products_have_the_same_bits_on_all_threads(layout, monkeypatch):
    rng = np.random.default_rng(0)
    X, R = layout(rng.standard_normal((1300, 90))), rng.standard_normal((1300, 30))
    monkeypatch.setattr(threads, "MIN_PARALLEL_WORK", 1000)
    monkeypatch.setattr(dense_tile.tuning, "PIECE_ENTRIES", 2**14)
    found = []
    for count in (1, 2, 3):
        with threadpool_limits(count):
            design = sk.as_design(X, check=False)
            survey, means = design.survey(), sk.as_design(X, check=False).survey(spreads=False).means
            parts = survey.means, means, survey.squares, design.norms(1), design.product(R)
        found.append([part.tobytes() for part in parts])
    assert found[0] == found[1] == found[2]


def tall():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40000, 30)) + 1
    return X, X[:, :8].sum(axis=1) + rng.standard_normal(len(X))


RUNS = {
    "matching pursuit": lambda X, y: sk.minimize(X, y, sk.MatchingPursuit(max_iter=20)).coef,
    "grasp": lambda X, y: sk.minimize(X, y, sk.GraSP(6, max_iter=2), loss="huber").coef,
    "grasp, fitted again": lambda X, y: (
        sk.minimize(X, y, sk.GraSP(6, max_iter=2, refit=True), loss="huber").coef
    ),
    "omp, another loss": lambda X, y: sk.minimize(X, y, sk.OMP(6), loss="huber").coef,
    "cosamp": lambda X, y: sk.minimize(X, y, sk.CoSaMP(6)).coef,
    "regressor": lambda X, y: sk.PursuitRegressor(n_nonzero_coefs=20).fit(X, y).coef_,
    "drop-in": lambda X, y: sk.OrthogonalMatchingPursuit(n_nonzero_coefs=20).fit(X, y).coef_,
    "drop-in, X^T X": lambda X, y: sk.orthogonal_mp(X, y, n_nonzero_coefs=20, precompute=True),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_tall_problem_has_the_same_bits_on_one_and_two_threads(name):
    X, y = tall()
    found = []
    for count in (1, 2):
        with threadpool_limits(count):
            found.append(RUNS[name](X, y).tobytes())
    assert found[0] == found[1]
