"""Speculated paths: what they answer is what exact selection answers, to the bit, and they are used."""

import numpy as np
import pytest

from skpursuit import OMP, Certified, Checkpoint, Exact, MatchingPursuit, as_design, datasets, minimize
from skpursuit.selectors import speculation
from skpursuit.selectors.speculation import CodeErrorBounds, SpeculativePursuit

from ..support import data

PROBLEMS = 8


@pytest.fixture
def served(monkeypatch):
    """Counts of the questions that a path answered, and of all."""
    counts, answer = {"served": 0, "asked": 0}, SpeculativePursuit.answer

    def counted(self, query):
        found = answer(self, query)
        counts["asked"] += 1
        counts["served"] += found is not None
        return found

    monkeypatch.setattr(SpeculativePursuit, "answer", counted)
    return counts


def with_copies(rng, X):
    d = X.shape[1]
    X[:, rng.choice(d, d // 2)] = X[:, rng.choice(d, d // 2)] * rng.choice([1.0, -1.0], d // 2)
    return X


def nearly_equal(rng, X):
    n, d = X.shape
    apart = 10.0 ** rng.uniform(-16, -6) * rng.standard_normal((n, d // 2))
    X[:, rng.choice(d, d // 2)] = X[:, rng.choice(d, d // 2)] + apart
    return X


def neighbours(rng, X):
    for j in range(1, X.shape[1]):
        X[:, j] = 0.95 * X[:, j - 1] + np.sqrt(1 - 0.95**2) * X[:, j]
    return X


def orthogonal(rng, X):
    m = min(X.shape)
    X[:, :m] = np.linalg.qr(X)[0][:, :m]
    return X


def low_rank(rng, X):
    n, d = X.shape
    rank = int(rng.integers(2, min(n, d) // 2 + 3))
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))


FAMILIES = {
    "gaussian": lambda rng, X: X,
    "small integers": lambda rng, X: rng.integers(-1, 2, X.shape).astype(float),
    "copies": with_copies,
    "nearly equal": nearly_equal,
    "t(4)": lambda rng, X: rng.standard_t(4, X.shape),
    "cauchy": lambda rng, X: rng.standard_cauchy(X.shape),
    "scaled": lambda rng, X: X * 10.0 ** rng.uniform(-6, 6, X.shape[1]),
    "binary": lambda rng, X: (rng.random(X.shape) < 0.3).astype(float),
    "neighbours": neighbours,
    "orthogonal": orthogonal,
    "low rank": low_rank,
    "float32": lambda rng, X: X.astype(np.float32),
    "Fortran": lambda rng, X: np.asfortranarray(X),
    "strided": lambda rng, X: np.repeat(X, 2, axis=1)[:, ::2],
    "offset": lambda rng, X: X + 100 * rng.standard_normal(X.shape[1]),
}
NOT_OFTEN = {"low rank", "offset"}  # columns that nearly depend on others end a path


def posed(rng, family):
    """X, y and how many columns to take: with little noise or much, or none at all."""
    n = int(rng.integers(5, 900 if rng.random() < 0.3 else 200))
    X = FAMILIES[family](rng, rng.standard_normal((n, int(rng.integers(5, 400)))))
    d, k = X.shape[1], int(rng.integers(1, min(*X.shape, 40)))
    columns = rng.choice(d, k, replace=False)
    y = X[:, columns].astype(np.float64) @ rng.choice([rng.standard_normal(k), np.sign(columns - d / 2)])
    size = float(rng.choice([0.0, 10.0 ** rng.uniform(-14, 0.5)])) * np.linalg.norm(y) / np.sqrt(n)
    return X, y + size * rng.standard_normal(n), k


def assert_same(one, other):
    """The same path, to the bit; what was read aside."""
    assert one.support.tolist() == other.support.tolist()
    assert (one.status, one.n_iter) == (other.status, other.n_iter)
    assert one.coef.tobytes() == other.coef.tobytes()
    assert one.objective == other.objective
    assert one.dropped.tolist() == other.dropped.tolist()
    assert [r.certificate for r in one.history] == [r.certificate for r in other.history]


@pytest.mark.parametrize("count", [PROBLEMS, pytest.param(40 * PROBLEMS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILIES)
def test_paths_are_those_of_exact_selection(family, count, served):
    rng = np.random.default_rng(list(FAMILIES).index(family))
    for _ in range(count):
        X, y, k = posed(rng, family)
        solver = OMP(n_nonzero_coefs=k)
        assert_same(minimize(X, y, solver, Certified()), minimize(X, y, solver, Exact()))
    assert served["served"] > (0 if family in NOT_OFTEN else 0.8 * served["asked"])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pass_over_the_codes_at_every_step_chooses_the_same(family, monkeypatch):
    monkeypatch.setattr(speculation.tuning, "MAX_POOR_ROUNDS", 0)
    rng = np.random.default_rng([3, list(FAMILIES).index(family)])
    recomputed = 0
    for _ in range(PROBLEMS):
        X, y, k = posed(rng, family)
        found = minimize(X, y, OMP(n_nonzero_coefs=k), Certified())
        assert_same(found, minimize(X, y, OMP(n_nonzero_coefs=k), Exact()))
        recomputed += sum(record.entries_read > X.size for record in found.history)
    assert recomputed or family in ("small integers", "binary")  # whose codes are exact


SOLVERS = {
    "to the rank": lambda rng, n, d: OMP(n_nonzero_coefs=min(n, d)),
    "tolerance": lambda rng, n, d: OMP(rtol=10.0 ** rng.uniform(-25, 0)),
    "limit": lambda rng, n, d: OMP(n_nonzero_coefs=min(n, d, 9), max_iter=4),
    "forced": lambda rng, n, d: OMP(
        n_nonzero_coefs=min(d, 9), always_include=rng.choice(d, 3, replace=False).tolist()
    ),
    "positive": lambda rng, n, d: OMP(n_nonzero_coefs=min(d, 9), positive=True),
    "matching": lambda rng, n, d: MatchingPursuit(max_iter=9),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_get_the_answers_of_exact_selection(name, served):
    rng = np.random.default_rng(list(SOLVERS).index(name))
    for family in ("gaussian", "small integers", "nearly equal", "low rank"):
        X, y, _ = posed(rng, family)
        solver = SOLVERS[name](rng, *X.shape)
        assert_same(minimize(X, y, solver, Certified()), minimize(X, y, solver, Exact()))
    declined = name in ("positive", "matching")
    assert served["served"] == 0 if declined else served["served"] > 0.5 * served["asked"]


@pytest.mark.parametrize("kind", ["centred", "weighted", "rows", "everything"])
def test_views_have_paths_too(kind, served):
    rng = np.random.default_rng(3)
    for trial in range(PROBLEMS):
        n, d = int(rng.integers(30, 700)), int(rng.integers(10, 200))
        X = rng.standard_normal((n, d)) + 3.0 * (trial % 2)
        centre = X.mean(axis=0) if kind in ("centred", "everything") else None
        scale = rng.uniform(0.5, 2.0, d) if kind == "everything" else None
        root = rng.uniform(0.1, 1.0, n) if kind in ("weighted", "everything") else None
        base = as_design(X)
        if kind == "rows":
            base = data.some_rows(base, np.sort(rng.choice(n, n // 2, replace=False)))
        design = base.with_view(base.view.compose(centre=centre, scale=scale, root=root))
        y = rng.standard_normal(design.shape[0])
        solver = OMP(n_nonzero_coefs=min(8, *design.shape))
        assert_same(minimize(design, y, solver, Certified()), minimize(design, y, solver, Exact()))
    assert served["served"] > 0.8 * served["asked"]


@pytest.mark.parametrize("size", [1e-90, 1e-30, 1e-13, 1e13, 1e30, 1e90])
def test_targets_of_any_size(size):
    rng = np.random.default_rng(4)
    X, y, k = posed(rng, "gaussian")
    solver = OMP(n_nonzero_coefs=k)
    assert_same(minimize(X, y * size, solver, Certified()), minimize(X, y * size, solver, Exact()))


def test_several_targets_are_left_to_the_other_way():
    rng = np.random.default_rng(5)
    X, Y = rng.standard_normal((60, 90)), rng.standard_normal((60, 3))
    assert_same(minimize(X, Y, OMP(5), Certified()), minimize(X, Y, OMP(5), Exact()))


# -- rounds and counts ----------------------------------------------------------------------------------


def test_a_pursuit_reads_the_codes_two_or_three_times():
    X, y, _ = datasets.make_sparse_signal(900, 1500, 24, random_state=1)
    result = minimize(X, y, OMP(n_nonzero_coefs=24), Certified())
    passes = sum(record.entries_read >= X.size for record in result.history)
    assert passes <= 3
    assert result.entries_read < 5 * X.size
    assert sum(record.entries_read == 0 for record in result.history) >= 18  # answered from the path


def test_poor_guesses_end_it(monkeypatch, served):
    monkeypatch.setattr(speculation.tuning, "MAX_CONTENDERS", 0)  # one column in doubt ends a round
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 500))
    X[:, 1:] = X[:, :1] + 1e-3 * X[:, 1:]
    y = rng.standard_normal(40)
    assert_same(minimize(X, y, OMP(12), Certified()), minimize(X, y, OMP(12), Exact()))
    assert served["served"] < 12


def test_a_callback_can_stop_and_a_checkpoint_goes_on(tmp_path):
    X, y, _ = datasets.make_sparse_signal(300, 500, 15, random_state=2)
    whole = minimize(X, y, OMP(n_nonzero_coefs=15), Certified())
    for stop in (1, 6, 14):
        file = Checkpoint(tmp_path / str(stop), interval=0.0)
        part = minimize(
            X, y, OMP(15), Certified(), checkpoint=file, callback=lambda r, stop=stop: r.iteration + 1 == stop
        )
        assert part.support.tolist() == whole.support[:stop].tolist()
        assert_same(minimize(X, y, OMP(15), Certified(), checkpoint=file), whole)


def test_codes_made_again_start_a_new_path():
    X, y, _ = datasets.make_sparse_signal(300, 500, 15, random_state=2)
    design = as_design(X)

    def more_bytes(record):
        if record.iteration == 3:
            design.codes(fine=True)

    whole = minimize(X, y, OMP(15), Certified())
    assert_same(minimize(design, y, OMP(15), Certified(), callback=more_bytes), whole)


# -- the proof ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gaussian", "cauchy", "scaled", "offset"])
def test_no_column_that_could_win_is_overlooked(family):
    rng = np.random.default_rng(8)
    for _ in range(PROBLEMS):
        X = FAMILIES[family](rng, rng.standard_normal((int(rng.integers(20, 1200)), 60)))
        design = as_design(X)
        R = np.cumsum(rng.standard_normal((5, len(X))) * 10.0 ** rng.uniform(-3, 0, (5, 1)), axis=0)
        frames = CodeErrorBounds(design)
        assert frames.codes.supports_path_products
        followed = frames.codes.path_products(R)
        scores = np.abs(R @ X)
        for share in (1.0, 0.9, 0.5):
            limits = share * np.sort(scores, axis=1)[:, -3]
            first = frames.first_possible_win(followed, np.zeros(5), limits)
            reached = np.where(
                (scores >= limits[:, None]).any(axis=0), (scores >= limits[:, None]).argmax(0), 5
            )
            assert (first <= reached).all()
            assert (first > 0).any()  # it does rule out


def test_numbers_that_are_not_finite_are_never_ruled_out():
    design = as_design(np.eye(3))
    frames = CodeErrorBounds(design)
    followed = frames.codes.path_products(np.zeros((2, 3)))
    g = np.array([[0.0, 0.0, 0.0], [0.0, np.nan, 0.0]], np.float32)
    first = frames.first_possible_win(followed._replace(g=g), np.zeros(2), np.ones(2))
    assert first.tolist() == [2, 1, 2]
