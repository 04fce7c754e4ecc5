"""Products of codes with columns: bounds that hold, few passes over the codes, and a way out."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from skpursuit import OMP, MatchingPursuit, as_design, datasets, minimize
from skpursuit.numerics.tuning import CODES_WIDTH
from skpursuit.selectors.column_sums import CodeSums

from ..support import data
from ..support.asking import Absolute, Group, query_at

NO_SPECULATION = "skpursuit.selectors.speculation.PATIENCE", 0


@pytest.fixture(autouse=True)
def small_designs_too(monkeypatch):
    monkeypatch.setattr("skpursuit.numerics.tuning.CODES_WORTH", 0)
    monkeypatch.setattr("skpursuit.numerics.tuning.SUM_TERMS", 0)
    monkeypatch.setattr("skpursuit.numerics.threads.WORTH", 1000)
    monkeypatch.setattr(*NO_SPECULATION)
    with threadpool_limits(1):
        yield


def gradient(sums, support, coef, r, score, left=None):
    """(g, bound) at some coefficients, or None."""
    known = sums.gradient(query_at(support, coef, r, score, left), {})
    return None if known is None else known.estimate


def views(rng, X):
    n, d = X.shape
    base, more = as_design(X), as_design(np.insert(X, [0, 100], 7.0, axis=0))
    return {
        "plain": base,
        "float32": as_design(X.astype(np.float32)),
        "Fortran": as_design(np.asfortranarray(X)),
        "view": data.view(base, X.mean(axis=0), rng.uniform(0.5, 2.0, d), rng.uniform(0.0, 1.0, n)),
        "rows": data.some_rows(more, np.delete(np.arange(n + 2), [0, 101])),
    }


@pytest.mark.parametrize("targets", [(), (3,)])
@pytest.mark.parametrize("kind", ["plain", "float32", "Fortran", "view", "rows"])
def test_bounds_hold_for_sums_of_products(kind, targets):
    rng = np.random.default_rng(len(targets))
    for trial in range(12):
        n, d = int(rng.integers(150, 900)), int(rng.integers(20, 120))
        design = views(rng, rng.standard_normal((n, d)) + 5.0 * (trial % 3))[kind]
        dense = data.dense(design).T
        y = rng.standard_normal((n, *targets)) * 10.0 ** rng.uniform(-20, 20)
        sums = CodeSums(design, y)
        score = Group() if targets else Absolute()
        support = np.empty(0, dtype=np.intp)
        for _ in range(10):
            coef = rng.standard_normal((len(support), *targets)) * np.abs(y).max()
            r = np.asarray(np.tensordot(dense[support].T, coef, axes=1) - y, dtype=np.float64)
            g, bound = gradient(sums, support, coef, r, score)
            assert g.shape == bound.shape == (d, *targets)
            assert (np.abs(g - dense @ r.astype(np.longdouble)) <= bound).all()
            direct = data.estimate(design, r)[1]
            assert np.median(bound) < 1.5 * np.median(direct)
            ready = [j for j in sums.kept.held if j not in support]
            support = np.append(support, (ready or np.setdiff1d(np.arange(d), support))[0])
        assert sums.made <= 2 * CODES_WIDTH


def test_a_pursuit_reads_the_codes_a_few_times():
    X, y, _ = datasets.make_sparse_signal(900, 1500, 24, random_state=1)
    design = as_design(X)
    result = minimize(design, y, OMP(n_nonzero_coefs=24), "certified")
    assert result.support.tolist() == minimize(X, y, OMP(n_nonzero_coefs=24), "exact").support.tolist()
    codes = data.codes(design).estimate_cost().entries
    passes = sum(record.entries_read >= codes for record in result.history)
    assert 24 / CODES_WIDTH <= passes <= 8
    again = minimize(design, y, OMP(n_nonzero_coefs=24), "certified")  # only the products with y are missing
    assert sum(record.entries_read >= codes for record in again.history) == 1


def test_codes_in_the_cache_are_read_for_each_residual(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(*NO_SPECULATION)
    X, y, _ = datasets.make_sparse_signal(900, 1500, 12, random_state=1)
    result = minimize(X, y, OMP(n_nonzero_coefs=12), "certified")
    assert all(record.entries_read >= X.size for record in result.history)


def test_bad_guesses_and_wild_numbers_are_left_to_passes_for_the_residual():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((700, 300)), rng.standard_normal(700)
    sums = CodeSums(as_design(X), y)
    answers = []
    for j in range(40):  # always another column than those that score high
        worst = int(np.argmin(np.abs(X.T @ y))) if j == 0 else j
        support = np.array([worst])
        r = X[:, worst] * 1e-6 - y
        answers.append(gradient(sums, support, np.array([1e-6]), r, Absolute()) is not None)
    assert answers[0]
    assert not all(answers)
    assert (
        gradient(CodeSums(as_design(X), 1e200 * y), support[:0], np.empty(0), -1e200 * y, Absolute()) is None
    )
    assert gradient(CodeSums(as_design(1e90 * X), y), support[:0], np.empty(0), -y, Absolute()) is None
    steep = as_design(np.hstack([X[:, :5], np.zeros((700, 1))]))
    assert (
        gradient(CodeSums(steep, 0.0 * y), support[:0], np.empty(0), 0.0 * y, Absolute())[0].tolist()
        == [0.0] * 6
    )


@pytest.mark.parametrize(
    "solver", [OMP(n_nonzero_coefs=12), OMP(n_nonzero_coefs=12, positive=True), MatchingPursuit(max_iter=60)]
)
def test_solvers_choose_what_exact_selection_would(solver):
    for seed in range(10):
        X, y, _ = datasets.make_sparse_signal(400, 600, 12, random_state=seed)
        X[:, 7] = X[:, 300]  # copies: the lowest wins
        exact, certified = minimize(X, y, solver, "exact"), minimize(X, y, solver, "certified")
        assert certified.support.tolist() == exact.support.tolist()


def test_a_small_residual_of_large_terms_starts_sums_again():
    X, y, _ = datasets.make_sparse_signal(1200, 800, 30, snr=80.0, random_state=3)
    design = as_design(X)
    result = minimize(design, y, OMP(n_nonzero_coefs=40), "certified")
    assert result.support.tolist() == minimize(X, y, OMP(n_nonzero_coefs=40), "exact").support.tolist()
    assert not design.codes().coded.has_fine  # no step was left with so many columns that it was made
    assert result.entries_read < 15 * X.size


def test_resumed_and_forced_columns_get_their_products_too(tmp_path):
    X, y, _ = datasets.make_sparse_signal(1200, 800, 30, random_state=4)
    whole = minimize(X, y, OMP(n_nonzero_coefs=30), "certified")
    forced = minimize(X, y, OMP(n_nonzero_coefs=30, forced=whole.support[:12].tolist()), "certified")
    assert sorted(forced.support) == sorted(whole.support)
    assert forced.entries_read < 12 * X.size


def test_a_target_that_is_fitted_but_for_a_subnormal_number():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 40)), rng.standard_normal((300, 2))
    X[0] = X[:, 3] = Y[:, 0] = 0.0
    X[0, 3] = Y[0, 0] = 1.0
    Y[1, 0], Y[0, 1] = 1e-310, 1e6
    exact, certified = (minimize(X, Y, OMP(n_nonzero_coefs=5), s) for s in ("exact", "certified"))
    assert certified.support.tolist() == exact.support.tolist()
    assert len(exact.support) == 5


def test_columns_of_very_different_sizes():
    X, y, _ = datasets.make_sparse_signal(700, 300, 20, random_state=5)
    X[:, ::7] *= 1e-12
    X[:, 3::11] *= 1e7
    design = as_design(X)
    assert data.codes(design).exponent.any()
    result = minimize(design, y, OMP(n_nonzero_coefs=15), "certified")
    assert result.support.tolist() == minimize(X, y, OMP(n_nonzero_coefs=15), "exact").support.tolist()
    assert result.entries_read < 8 * X.size
    X[:, 3] *= 1e30  # its products are beyond float32
    result = minimize(X, y, OMP(n_nonzero_coefs=15), "certified")
    assert result.support.tolist() == minimize(X, y, OMP(n_nonzero_coefs=15), "exact").support.tolist()


def test_an_interrupted_sum_goes_on(monkeypatch):
    X, y, _ = datasets.make_sparse_signal(700, 300, 20, random_state=6)
    sums, support, coef = CodeSums(as_design(X), y), np.array([4, 9]), np.array([1.0, -2.0])
    r = X[:, support] @ coef - y
    with monkeypatch.context() as patch:
        patch.setattr(
            "skpursuit.numerics.stack.Stack.extend", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            gradient(sums, support, coef, r, Absolute())
    g, bound = gradient(sums, support, coef, r, Absolute())
    assert (np.abs(g - X.T @ r) <= bound).all()


def test_a_second_byte_leaves_products_as_they_are():
    X, y, _ = datasets.make_sparse_signal(700, 300, 20, random_state=8)
    design = as_design(X)
    sums, support, coef = CodeSums(design, y), np.array([4, 9]), np.array([1.0, -2.0])
    r = X[:, support] @ coef - y
    before, held = gradient(sums, support, coef, r, Absolute()), sums.kept
    data.codes(design, fine=True)
    np.testing.assert_array_equal(gradient(sums, support, coef, r, Absolute()), before)
    assert sums.kept is held


def test_bounds_hold_for_an_x_in_tiles():
    X, y, _ = datasets.make_sparse_signal(1500, 300, 20, random_state=12)
    X[:512] *= 1e4  # tiles of very different sizes
    whole = data.view(data.tiled(X, [512, 1024], [70]), centre=X.mean(axis=0), root=np.linspace(0.5, 2, 1500))
    some = data.some_rows(whole, np.arange(3, 1500, 2))
    support, coef = np.array([4, 90, 9]), np.array([1.0, -2.0, 0.5])
    for design in (whole, some):
        V = data.dense(design)
        target = y[: len(V)]
        r = (V[:, support] @ coef - target).astype(np.float64)
        g, bound = gradient(CodeSums(design, target), support, coef, r, Absolute())
        assert (np.abs(g - V.T @ r) <= bound).all()
        assert np.median(bound) < 0.1 * np.abs(g).max()


@pytest.mark.parametrize(("left", "made", "begun"), [(0, 2, 0), (3, 4, 0), (7, 8, 0), (9, 8, 2), (100, 8, 8)])
def test_no_more_products_are_made_or_begun_than_columns_may_come(left, made, begun):
    X, y, _ = datasets.make_sparse_signal(700, 300, 20, random_state=9)
    support, coef = np.array([4, 9]), np.array([1.0, -2.0])
    for number in (1, 2):
        with threadpool_limits(number):
            sums = CodeSums(as_design(X), y)
            gradient(sums, support, coef, X[:, support] @ coef - y, Absolute(), left=left)
        assert sums.made == made
        assert len(sums.making.block if sums.making else []) == (begun if number > 1 else 0)


@pytest.mark.parametrize("solver", [OMP(n_nonzero_coefs=40), MatchingPursuit(max_iter=90)])
def test_with_other_threads_the_next_products_are_begun_and_no_bit_changes(solver, monkeypatch):
    X, y, _ = datasets.make_sparse_signal(1500, 800, 40, random_state=10)
    begun = []
    look = CodeSums._look_ahead
    monkeypatch.setattr(CodeSums, "_look_ahead", lambda self, *a: look(self, *a) or begun.append(self.making))
    one = minimize(X, y, solver, "certified")
    assert not any(begun)
    with threadpool_limits(3):
        several = minimize(X, y, solver, "certified")
    assert sum(making is not None for making in begun) > 10
    assert several.support.tolist() == one.support.tolist()
    assert several.coef.tobytes() == one.coef.tobytes()
    assert several.entries_read <= one.entries_read + 3 * X.size


def test_an_interrupt_while_products_are_made_loses_only_them(monkeypatch):
    X, y, _ = datasets.make_sparse_signal(700, 300, 20, random_state=6)
    sums, support, coef = CodeSums(as_design(X), y), np.array([4, 9]), np.array([1.0, -2.0])
    with threadpool_limits(2):
        gradient(sums, support, coef, X[:, support] @ coef - y, Absolute())
        support, coef = np.append(support, sums.making.block[:2]), np.append(coef, [0.5, 0.25])

        def interrupted():
            raise KeyboardInterrupt

        sums.making = sums.making._replace(finish=interrupted)
        r = X[:, support] @ coef - y
        with pytest.raises(KeyboardInterrupt):
            gradient(sums, support, coef, r, Absolute())
        g, bound = gradient(sums, support, coef, r, Absolute())
    assert (np.abs(g - X.T @ r) <= bound).all()


def test_nothing_is_begun_where_every_product_is_there():
    X, y, _ = datasets.make_sparse_signal(700, 12, 12, random_state=11)
    design = as_design(X)
    with threadpool_limits(2):
        sums = CodeSums(design, y)
        for size in range(1, 13):
            support, coef = np.arange(size), np.full(size, 0.1)
            g, bound = gradient(sums, support, coef, X[:, support] @ coef - y, Absolute())
            assert (np.abs(g - X.T @ (X[:, support] @ coef - y)) <= bound).all()
    assert sums.made == 12
    assert sums.making is None


def test_what_no_thread_would_begin_is_not_guessed_early(monkeypatch):
    monkeypatch.setattr("skpursuit.numerics.threads.WORTH", 10**9)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1024, 512))
    Y = X[:, :60] @ (3 * rng.standard_normal((60, 4))) + rng.standard_normal((1024, 4))
    counts = []
    for number in (1, 2):
        with threadpool_limits(number):
            counts.append(minimize(X, Y, OMP(n_nonzero_coefs=60, max_iter=20), "certified").entries_read)
    assert counts[0] == counts[1]


def test_a_block_is_counted_when_it_is_begun():
    X, y, _ = datasets.make_sparse_signal(700, 300, 20, random_state=9)
    design, support, coef = as_design(X), np.array([4, 9]), np.array([1.0, -2.0])
    one = data.codes(design).estimate_cost()
    with threadpool_limits(2):
        sums = CodeSums(design, y)
        gradient(sums, support, coef, X[:, support] @ coef - y, Absolute())
    assert sums.making is not None
    assert data.reads(design)[:2] == (3 * one.entries, 3 * one.bytes)  # y, two blocks
