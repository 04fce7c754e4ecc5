"""X in several tiles: an array and the pieces it was cut into give the same bits, and the same counts."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from skpursuit import OMP, CoSaMP, FrankWolfe, GraSP, L1Ball, MatchingPursuit, as_design, minimize
from skpursuit.selectors import SELECTORS as SELECTORS
from skpursuit.selectors import as_selector

from ..support import data
from ..support.asking import Question, ask
from ..support.data import cut, some_rows, tiled, view, with_intercept

N, D = 1300, 45
CUTS = {
    "rows at pieces": ((512, 1024), ()),
    "rows elsewhere": ((100,), ()),
    "tiny rows": ((1, 2, 511, 513, 1299), ()),
    "columns": ((), (20,)),
    "single columns": ((), (1, 10, 11, 12, 44)),
    "both": ((512,), (7,)),
    "both and tiny": ((3, 600, 601), (1, 3, 44)),
}
LAYOUTS = [("C", np.float64), ("F", np.float64), ("C", np.float32), ("F", np.float32)]
SOLVERS = {
    "omp": OMP(6),
    "cosamp": CoSaMP(5, max_iter=6),
    "grasp": GraSP(4, max_iter=4),
    "frank-wolfe": FrankWolfe(L1Ball(2.0), 12),
    "away": FrankWolfe(L1Ball(2.0), 12, variant="away"),
    "matching pursuit": MatchingPursuit(6, max_iter=12),
}


def problem(order="C", dtype=np.float64, n=N, d=D, seed=0):
    """Correlated columns with means, equal and opposite ones among them, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1)) + rng.uniform(-3, 3, d)
    X[:, d // 2], X[:, d - 1] = X[:, 1], -X[:, 2]
    y = X[:, [1, 4, 9]] @ [3.0, -2.0, 1.0] + rng.standard_normal(n)
    return np.asarray(X, dtype=dtype, order=order), y


def saved(parts, order, folder):
    """The same pieces, written to files in this memory order and mapped."""
    folder.mkdir()
    out = []
    for i, row in enumerate(parts):
        for j, part in enumerate(row):
            np.save(folder / f"{i}-{j}.npy", np.array(part, order=order))
        out.append([np.load(folder / f"{i}-{j}.npy", mmap_mode="r") for j in range(len(row))])
    return out


def assert_same(first, second):
    np.testing.assert_array_equal(np.asarray(first), np.asarray(second))


@pytest.mark.parametrize("edges", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_verbs_that_decide_have_the_same_bits(layout, edges, tmp_path):
    X, y = problem(*layout)
    rng = np.random.default_rng(1)
    weights, r, cols = rng.uniform(0.1, 2, N), rng.standard_normal((N, 2)), rng.permutation(D)
    whole = as_design(X)
    for pieces in (cut(X, *edges), saved(cut(X, *edges), layout[0], tmp_path / "pieces")):
        design = as_design(pieces)
        assert (design.shape, design.dtype) == (whole.shape, whole.dtype)
        assert_same(design.norms(0), whole.norms(0))
        assert_same(design.survey().means, whole.survey().means)
        assert_same(design.survey(weights).means, whole.survey(weights).means)
        assert_same(design.columns(cols), whole.columns(cols))
        assert_same(design.dots(cols, y), whole.dots(cols, y))
        assert_same(design.dots(cols, r), whole.dots(cols, r))
        assert design.data_fingerprint() == whole.data_fingerprint()


@pytest.mark.parametrize("rows", [1, 511, 512, 513])
def test_few_rows_and_wide_blocks_have_the_same_bits(rows):
    X, _ = problem(n=rows, d=2049)
    for order in "CF":
        whole = as_design(np.asarray(X, order=order))
        for columns in ((1,), (2047, 2048), (3, 4, 5)):
            design = as_design(cut(np.asarray(X, order=order), (), columns))
            assert_same(design.norms(0), whole.norms(0))
            assert_same(design.survey().means, whole.survey().means)


def test_equal_columns_have_equal_norms_and_means_wherever_blocks_end():
    X = np.repeat(np.random.default_rng(0).standard_normal((700, 1)), 2049, axis=1)
    for design in (as_design(X), as_design(cut(X, (), (1, 30)))):
        assert len(np.unique(design.norms(0))) == len(np.unique(design.survey().means)) == 1


def viewed(X, kind):
    """A view of X; centres and scales do not depend on how X is cut."""
    if kind == "plain":
        return as_design(X)
    rng = np.random.default_rng(2)
    design = as_design(X)
    centred = view(design, centre=design.survey().means, scale=design.norms(0))
    return centred if kind == "centred" else view(centred, root=rng.uniform(0.5, 2, design.shape[0]))


@pytest.mark.parametrize("selector", ["exact", "gram", "certified"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("layout", LAYOUTS[::3], ids=str)
def test_runs_have_the_same_bits(solver, selector, layout, tmp_path):
    X, y = problem(*layout)
    cases = itertools.cycle(CUTS.values())
    for loss, kind in itertools.product(("squared", "logistic"), ("plain", "centred", "weighted")):
        if loss == "logistic" and (selector == "gram" or solver == "cosamp"):
            continue
        target = y if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)
        expected = minimize(viewed(X, kind), target, SOLVERS[solver], selector, loss)
        pieces = cut(X, *next(cases)), saved(cut(X, *next(cases)), layout[0], tmp_path / f"{loss} {kind}")
        for parts in pieces:
            result = minimize(viewed(parts, kind), target, SOLVERS[solver], selector, loss)
            assert_same(result.support, expected.support)
            assert_same(result.coef, expected.coef)
            assert result.objective == expected.objective
            assert result.status == expected.status


@pytest.mark.parametrize("edges", CUTS.values(), ids=CUTS)
def test_a_run_on_an_array_goes_on_with_its_pieces(edges, tmp_path):
    X, y = problem()
    path = tmp_path / "run"
    seen = []
    minimize(X, y, OMP(6), "exact", checkpoint=path, callback=lambda record: record.iteration == 3)
    resumed = minimize(cut(X, *edges), y, OMP(6), "exact", checkpoint=path, callback=seen.append)
    assert_same(resumed.coef, minimize(X, y, OMP(6), "exact").coef)
    assert [record.iteration for record in seen] == [4, 5]


@pytest.mark.parametrize("selector", sorted(SELECTORS))
def test_every_selector_runs_on_tiles(selector):
    X, y = problem()
    for edges in CUTS.values():
        pieces = cut(X, *edges)
        result = minimize(pieces, y, OMP(3), selector, random_state=0)
        assert len(result.support) == 3
        assert result.objective == pytest.approx(0.5 * np.sum((y - X @ result.coef) ** 2))
    only_rows = minimize(cut(X, (512, 1024)), y, OMP(3), selector, random_state=0)
    assert_same(only_rows.support, minimize(X, y, OMP(3), selector, random_state=0).support)


# -- intervals --------------------------------------------------------------------------------------------


def hard_problem(rng):
    """A random matrix of tiles with columns, residuals and edges of very different sizes."""
    n, d = int(rng.integers(2, 1400)), int(rng.integers(2, 12))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3, d)
    kind = rng.integers(4)
    if kind == 1:
        X += 10.0 ** rng.uniform(0, 8, d)
    elif kind == 2:
        X *= 10.0 ** rng.uniform(-80, 80)
    elif kind == 3:
        X = rng.standard_cauchy((n, d))
    r = rng.standard_normal((n, *((2,) if rng.random() < 0.3 else ()))) * 10.0 ** rng.uniform(-60, 60)
    dtype = np.float32 if kind != 2 and rng.random() < 0.3 else np.float64
    X = np.asarray(X, dtype=dtype, order=rng.choice(["C", "F"]))
    rows = np.unique(rng.integers(1, n, int(rng.integers(0, 4))))
    cols = np.unique(rng.integers(1, d, int(rng.integers(0, 4))))
    return tiled(X, rows, cols), r


def hard_view(design, rng):
    """The design, or some rows of it, centred, scaled and weighted, or with a constant column."""
    n, d = design.shape
    kind = rng.integers(4)
    if kind >= 1:
        design = some_rows(design, np.flatnonzero(rng.random(n) < 0.8)) if n > 20 else design
    if kind >= 2:
        root = rng.uniform(0.0, 2.0, design.shape[0])
        design = view(design, design.survey().means, 10.0 ** rng.uniform(-2, 2, d), root)
    return with_intercept(design) if kind == 3 else design


def exact(design, r):
    return data.dense(design).T @ r.astype(np.longdouble)


@pytest.mark.parametrize("seed", range(60))
def test_intervals_of_tiles_hold(seed):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        below, r = hard_problem(rng)
        design = hard_view(below, rng)
        r, cols = r[: design.shape[0]], rng.permutation(design.shape[1])[:5]
        codes, true = design.codes(fine=True), exact(design, r)
        if np.isfinite(design.norms(0)).all():
            bound = design.rounding(r)
            assert (np.abs(design.product(r) - true) <= bound).all()
        for at, (g, bound) in (
            (slice(None), codes.estimate(r)),
            (slice(None), codes.estimate(r, second_byte=True)),
            (cols, codes.estimate(r, cols)),
            (cols, codes.estimate(r, cols, second_byte=True)),
        ):
            assert (np.abs(g - true[at]) <= bound).all()


@pytest.mark.parametrize("seed", range(60))
def test_products_of_the_codes_of_tiles_and_what_they_lose(seed):
    """With residuals that have nothing to do with each other, and with those of consecutive steps."""
    rng = np.random.default_rng(seed)
    below, _ = hard_problem(rng)
    design = hard_view(below, rng)
    codes = design.codes()
    if not codes.supports_path_products:
        return

    def followed(codes, r, before=None):
        found = codes.path_products(r, *([] if before is None else [before]))
        lost = found.vector_errors @ codes.column_factors.T + found.norms @ codes.block_errors(False)
        return found, lost

    r = rng.standard_normal((3, design.shape[0]))
    steps = rng.standard_normal((7, design.shape[0])) * 0.5 ** np.arange(7)[:, None]
    R = np.cumsum(steps[::-1], axis=0)[::-1] * 10.0 ** rng.integers(-6, 7)
    first, bound = followed(codes, R[:3])
    apart, loose = followed(codes, r)
    for some, (found, lost) in (
        (r, (apart, loose)),
        (R[:3], (first, bound)),
        (R[2:], followed(codes, R[2:], first.represented(1))),
    ):
        assert (np.abs(found.g - exact(design, some.T).T) <= lost).all()
    assert (codes.norm_bounds >= np.sqrt((data.dense(design) ** 2).sum(axis=0))).all()
    if design.view.is_identity:  # tiles are not much looser than one array
        lone = as_design(data.dense(design).astype(np.float64)).codes()
        assert (loose <= 8 * followed(lone, r)[1]).all()
    cols = rng.permutation(design.shape[1])[:3]
    lines = codes.decoded(cols)
    assert lines.shape == (len(cols), design.shape[0])
    error = np.abs(lines - data.dense(design)[:, cols].T).max(axis=1)
    assert (error <= 2.0 * (codes.block_errors(False).sum(axis=0) + 1e-6 * codes.norm_bounds)[cols]).all()


# -- counts -----------------------------------------------------------------------------------------------


def test_codes_of_tiles_count_what_they_read():
    X, y = problem()
    design, whole = tiled(X, (512, 1024), (16,)), as_design(X)
    for ask_codes in (
        lambda codes: codes.estimate(y),
        lambda codes: codes.estimate(y, np.array([0, 44]), second_byte=True),
        lambda codes: codes.estimate(y, np.array([3, 15, 16])),
        lambda codes: codes.estimate(y, second_byte=True),
        lambda codes: codes.path_products(y[None]),
    ):
        counts = []
        for one in (design, whole):
            counts.append(data.read_by(one, ask_codes, one.codes(fine=True)))
        assert counts[0].entries == counts[1].entries
        assert counts[0].bytes <= counts[1].bytes  # frames of tiles that have none of the rows are not read
    assert data.reads(design).prepared_entries == X.size


def test_runs_on_tiles_report_the_same_entries():
    X, y = problem()
    for selector in ("exact", "gram"):
        expected = minimize(X, y, OMP(5), selector)
        result = minimize(cut(X, (512,), (9,)), y, OMP(5), selector)
        assert result.entries_read == expected.entries_read
        assert result.bytes_read == expected.bytes_read


def test_single_questions_have_the_same_answers_and_certified_ones_read_as_much():
    X, y = problem()
    for name in ("halving", "reject", "greedy", "certified"):
        expected, answer = (ask(as_selector(name), one, Question(y)) for one in (X, cut(X, (512,), (9,))))
        assert_same(answer.columns, expected.columns)
        assert answer.certificate == expected.certificate
    assert answer.entries_read == expected.entries_read


# -- the boundary -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        ([np.ones((3, 2)), np.ones((3, 3))], ValueError, r"part 1 has the shapes \[\(3, 3\)\]"),
        ([[np.ones((3, 2)), np.ones((4, 2))]], ValueError, "arrays in a part the same rows"),
        ([[np.ones((3, 2))] * 2, [np.ones((3, 2))]], ValueError, "do not fit together"),
        ([np.ones((3, 2)), []], ValueError, "do not fit together"),
        ([np.ones((3, 2)), np.ones(3)], ValueError, "array 0 of part 1 .*two-dimensional"),
        ([[np.ones((3, 2)), np.ones((3, 0))]], ValueError, "array 1 of part 0 .*empty"),
        ([np.ones((3, 2)), np.ones((3, 2), complex)], TypeError, "array 0 of part 1 .*complex"),
        ([sp.eye_array(3)] * 2, TypeError, "dense arrays alone.*block_array"),
        ([np.eye(3), aslinearoperator(np.eye(3))], TypeError, "array 0 of part 1 .*dense arrays alone"),
        ([np.ones((3, 2)), np.full((3, 2), np.nan)], ValueError, "NaN or infinity, first in column 0"),
        ([[np.ones((3, 2)), np.full((3, 2), np.inf)]], ValueError, "NaN or infinity, first in column 2"),
    ],
)
def test_lists_that_are_no_matrix(X, error, words):
    with pytest.raises(error, match=words):
        as_design(X)


def test_pieces_that_end_at_multiples_of_512_rows_are_not_copied():
    X, _ = problem()
    pieces = [X[:512].copy(), X[512:600].copy(), X[600:].copy()]
    tiles = [row[0].X for row in as_design(pieces).store.grid]
    assert [len(tile) for tile in tiles] == [512, 512, 276]
    assert np.shares_memory(tiles[0], pieces[0])
    assert np.shares_memory(tiles[2], pieces[2])
    assert_same(np.concatenate(tiles), X)


def test_pieces_of_several_dtypes_become_one():
    X, _ = problem()
    design = as_design([X[:700].astype(np.float32), X[700:]])
    assert design.dtype == np.float64
    assert_same(design.columns(np.array([3]))[0, 700:], X[700:, 3])


@pytest.mark.parametrize("row", [0, 511, 512, 599, 600, 1299])
def test_a_change_in_one_piece_is_noticed(row):
    X, y = problem()
    pieces = [[part.copy() for part in parts] for parts in cut(X, (512, 600), (20,))]
    design = as_design(pieces)
    assert as_design(design) is design
    part = int(np.searchsorted([512, 600], row, side="right"))
    pieces[part][1][row - [0, 512, 600][part]] += 1.0
    with pytest.raises(ValueError, match="X was changed in place"):
        minimize(design, y, OMP(1))


def test_pieces_of_an_array_of_strided_columns_have_its_means():
    X = (np.random.default_rng(0).standard_normal((22, 3 * 1135)) + 5)[1:-1, ::3].T
    pieces = as_design(np.split(X, [300, 700]))
    np.testing.assert_array_equal(pieces.survey().means, as_design(X).survey().means)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
def test_spreads_of_full_sparse_columns_do_not_see_their_far_means(form):
    rng = np.random.default_rng(0)
    for n in range(11, 31):
        X, weights = rng.standard_normal((n, 3)), rng.uniform(0.1, 3.0, n)
        weights[4] = 0.0
        surveys = [as_design(form(X + far)).survey(weights) for far in (0.0, 2.0**32)]
        near, away = (survey.spreads(survey.means) for survey in surveys)
        np.testing.assert_allclose(away, near, rtol=1e-4)
