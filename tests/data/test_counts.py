"""Entries and bytes read are exact: an instrumented matrix reports what was really touched."""

import numpy as np
import pytest
import scipy.sparse as sp

import skpursuit as sk

from ..support import data
from ..support.data import Instrumented, read_by, reads, view, with_intercept


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("edges", [((), ()), ((12, 33), (1, 20))], ids=["one tile", "tiles"])
def test_verbs_count_what_they_touch_or_what_their_kernels_are_given(order, edges):
    X = np.asarray(np.random.default_rng(0).standard_normal((40, 30)), order=order)
    design, rows, cols = Instrumented(X, *edges), np.array([0, 1, 2, 12, 13, 30, 39]), np.array([1, 4, 9])
    r = np.ones(40)
    for verb, *given in ((design.product, r), (design.dots, cols, r), (design.product, r, rows[:3])):
        read, touched = read_by(design, verb, *given), design.touched()
        assert (read.entries, read.bytes) == (touched, 8 * touched)
    read = read_by(design, design.norms, 0)
    assert design.touched() == read.prepared_entries == 1200
    design.columns(cols + 10)
    design.columns(cols + 10)
    assert design.touched() == 3 * 40
    assert read_by(design, design.entries, rows[4:], cols).entries == design.touched() == 3
    assert read_by(design, design.entries, rows[:0], cols[:0]).entries == 0

    def added(width, cols=None):
        return read_by(design, design.add_rows, rows, np.ones(7), np.zeros(width), cols).entries

    assert added(30) == 7 * 30
    if edges == ((), ()):
        assert added(1, cols[:1]) == 7
        assert added(3, cols) == (7 * 30 if order == "C" else 7 * 3)


def test_sparse_counts_are_stored_entries():
    X = sp.random_array((50, 20), density=0.2, rng=np.random.default_rng(1), format="csr")
    for design in (sk.as_design(X), sk.as_design(X.tocsc()), view(X, centre=np.ones(20))):
        assert read_by(design, design.product, np.ones(50)).entries == X.nnz
        some = read_by(design, design.dots, np.array([3, 7]), np.ones(50))
        assert some.entries == X[:, [3, 7]].nnz
        rows = read_by(design, design.add_rows, np.array([0, 9]), np.ones(2), np.zeros(20))
        assert rows.entries == X[[0, 9]].nnz
        assert rows.bytes == X[[0, 9]].nnz * (8 + 4)


def test_single_entries_are_counted_as_what_a_source_must_read():
    X = np.random.default_rng(0).standard_normal((40, 30))
    rows, cols = np.arange(5), np.array([3, 0, 7, 29, 3])
    for source in (X, sp.csr_array(X)):
        for design in (sk.as_design(source), view(source)):
            np.testing.assert_allclose(design.entries(rows, cols), X[rows, cols], atol=1e-12)
            assert reads(design)[:2] == (5, 40)
    design = with_intercept(X)
    np.testing.assert_array_equal(design.entries(rows[:3], np.array([2, 30, 1])), [X[0, 2], 1.0, X[2, 1]])
    assert reads(design).entries == 2


def test_a_view_goes_on_counting_where_the_design_was():
    design = sk.as_design(np.ones((4, 3)))
    design.product(np.ones(4))
    for other in (view(design), with_intercept(design)):
        assert reads(design).entries == reads(other).entries == 12


def test_norms_are_counted_once_and_by_who_reads_for_them():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 20))
    for source, entries in ((X, 600), (sp.csc_array(X), 600)):
        design = sk.as_design(source, check=False)
        root = rng.uniform(1, 2, 30)
        design.norms(1)
        assert reads(design).prepared_entries == entries
        for other in (view(design, root=root), with_intercept(design)):
            other.norms(1)  # follow from those of the design
            assert reads(design).prepared_entries == entries
        view(design, centre=np.ones(20)).norms(1)
        assert reads(design).prepared_entries == 2 * entries


def test_means_come_with_the_codes():
    X = np.random.default_rng(4).standard_normal((700, 640))
    design, other = (sk.as_design(X, check=False) for _ in range(2))
    survey, plain = design.survey(fine=False, spreads=False), other.survey(spreads=False)
    assert (survey.means.tobytes(), survey.weight) == (plain.means.tobytes(), plain.weight)
    design.codes()
    assert reads(design).prepared_entries == X.size
    X[600, 3] = np.nan
    with pytest.raises(ValueError, match="column 3, row 600"):
        sk.as_design(X, check=False).survey(fine=False, spreads=False)


def test_norms_come_with_the_codes_and_are_not_read_again():
    X = np.random.default_rng(4).standard_normal((700, 40))
    design = sk.as_design(X)
    tile = data.codes(design)
    before = reads(design).prepared_entries, design.reads.prepared_bytes
    for used in (design, view(design, root=np.full(700, 2.0)), design):
        assert used.codes().supports_path_products
    assert (reads(design).prepared_entries, design.reads.prepared_bytes) == before
    assert design.reads.entries == 0
    design.codes().path_products(X[:, :2].T)
    assert design.reads.entries == X.size
    assert design.reads.bytes == tile.cost()[1] == 40 * (704 + 2 * 16)


def test_second_bytes_of_some_columns_cost_their_panels():
    X = np.random.default_rng(4).standard_normal((700, 40))
    design = sk.as_design(X)
    codes, before = design.codes(fine=True), design.reads.bytes
    codes.estimate(X[:, 0], np.array([3, 35, 36]), second_byte=True)
    assert design.reads.entries == 700 * (16 + 8)
    assert design.reads.bytes - before == 24 * (2 * 704 + 2 * 16)


def test_stored_columns_of_the_gram_matrix_are_counted_each_time():
    rng = np.random.default_rng(5)
    for n, d, k in ((60, 200, 12), (40, 30, 20)):  # the second one forms all of X^T X on the way
        X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
        result = sk.minimize(X, y, sk.OMP(n_nonzero_coefs=k), "gram")
        assert result.stored_bytes == 8 * d * k * (k - 1) // 2  # one for each column of the support
        assert sk.minimize(X, y, sk.OMP(n_nonzero_coefs=k), "exact").stored_bytes == 0
    result = sk.minimize(X, y, sk.FrankWolfe(sk.L1Ball(1.0), 20), "gram")
    assert 0 < result.stored_bytes <= 20 * 8 * d


def test_a_fingerprint_is_counted_as_preparation(tmp_path):
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((40, 30)), rng.standard_normal(40)
    plain = sk.minimize(X, y, sk.OMP(n_nonzero_coefs=3), "exact")
    saved = sk.minimize(X, y, sk.OMP(n_nonzero_coefs=3), "exact", checkpoint=tmp_path / "run")
    assert saved.prepared_bytes - plain.prepared_bytes == X.nbytes
    assert saved.bytes_read == plain.bytes_read


def test_a_result_shows_selection_and_preparation_side_by_side():
    rng = np.random.default_rng(8)
    X, y = rng.standard_normal((40, 30)), rng.standard_normal(40)
    result = sk.minimize(X, y, sk.OMP(n_nonzero_coefs=3), "gram")
    lines = repr(result).splitlines()
    assert lines[0].startswith("Result: COMPLETE, 3 columns after 3 steps")
    assert f"{result.entries_read:,} entries, {result.bytes_read:,} bytes" in lines[2]
    assert f"{result.stored_bytes:,} bytes of stored" in lines[2]
    assert f"{result.prepared_bytes:,} bytes" in lines[3]


@pytest.mark.parametrize("order", ["C", "F"])
def test_estimators_read_a_file_no_oftener_than_minimize(order, tmp_path):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((6000, 60)), np.where(np.arange(60) < 5, 1.0, 0.0)
    y, weights = X @ w + rng.standard_normal(6000), rng.uniform(0.5, 2.0, 6000)
    np.save(tmp_path / "x.npy", np.asarray(X, order=order))

    def share_read(fit, *arguments):
        design = sk.as_design(tmp_path / "x.npy", memory_limit="1MiB")
        fit(design, *arguments)
        return design.store.file_bytes / X.nbytes

    for selector in ("exact", "certified"):
        least = share_read(sk.minimize, y, sk.OMP(2), selector)
        settings = {"n_nonzero_coefs": 2, "selector": selector}
        for model, weight in (
            (sk.PursuitRegressor(**settings), None),
            (sk.PursuitRegressor(scale="none", **settings), None),
            (sk.PursuitRegressor(**settings), weights),
            (sk.OrthogonalMatchingPursuit(**settings), None),
        ):
            assert share_read(model.fit, y, weight) <= least + 0.1
    labels = np.where(y > 0, 1, -1)
    least = share_read(sk.minimize, labels, sk.OMP(2), "certified", "logistic")
    model = sk.PursuitClassifier(n_nonzero_coefs=2, selector="certified", scale="column")
    assert share_read(model.fit, labels) <= least + 0.1
