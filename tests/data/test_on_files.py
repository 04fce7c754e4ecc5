"""X in files: the bits of the array in memory however it is cut, exact counts, errors that name a file."""

import errno
import gc
import os
import re
import shutil
import tempfile
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from skpursuit import OMP, Certified, PursuitClassifier, PursuitRegressor, as_design, minimize
from skpursuit.data.disk.file_store import FileStore
from skpursuit.data.view import View
from skpursuit.selectors.query import Workload
from tests.support.data import TwoBytes
from tests.support.failing import fails

LIMIT = "4MB"


def problem(n=1700, d=330, seed=0, order="C"):
    rng = np.random.default_rng(seed)
    X = np.asarray(rng.standard_normal((n, d)), order=order)
    w = np.zeros(d)
    w[rng.choice(d, 8, replace=False)] = rng.standard_normal(8) + 2.0
    return X, X @ w + rng.standard_normal(n)


def save(folder, X, cuts=(), axis=0):
    """X in `.npy` pieces, cut before these rows or columns; the file itself without cuts."""
    parts = np.split(X, cuts, axis=axis)
    folder.mkdir()
    for k, part in enumerate(parts):
        order = "F" if X.flags.f_contiguous else "C"
        np.save(folder / f"piece{k}.npy", np.asarray(part, order=order))
    return folder if len(parts) > 1 else folder / "piece0.npy"


@pytest.mark.parametrize("limit", [LIMIT, "2GB"])  # read tile by tile, and as a whole
def test_pieces_have_rows_unless_told_otherwise(tmp_path, limit):
    X, y = problem(d=328)
    folder, one = save(tmp_path / "x", X, (82, 164, 246), axis=1), OMP(n_nonzero_coefs=1)
    files = [folder / f"piece{k}.npy" for k in range(4)]
    true = minimize(X, y, OMP(n_nonzero_coefs=5), "exact")
    assert as_design(folder, memory_limit=limit).shape == (4 * len(X), 82)
    assert len(minimize(folder, np.tile(y, 4), one).coef) == 82
    for source in (folder, files):
        design = as_design(source, memory_limit=limit, axis=1)
        np.testing.assert_array_equal(minimize(design, y, OMP(n_nonzero_coefs=5), "exact").coef, true.coef)
        model = PursuitRegressor(n_nonzero_coefs=5).fit(design, y)
        np.testing.assert_allclose(model.predict(design), model.predict(X), rtol=1e-12, atol=1e-12)
        hint = r"; where pieces have columns of X, give as_design\(folder, axis=1\)"
        fails(f"y has 1700 rows and X has 6800{hint}", minimize, source, y, one)
        with pytest.raises(ValueError, match=f"y has 1700 rows and X has 6800{hint}"):
            PursuitRegressor().fit(source, list(y))
        fails(f"X has 82 features, but .* expecting 328 .*{hint}", model.predict, source)


def test_pieces_that_do_not_go_along_an_axis_are_named(tmp_path):
    X, _ = problem()
    folder = save(tmp_path / "x", X, (90, 200), axis=1)
    assert as_design(folder, axis=1).shape == X.shape
    fails(r"piece1\.npy.* does not go with.* as_design\(folder, axis=1\)", as_design, folder)
    fails(r"axis must be 0 .* or 1 .*, got 2", as_design, folder, axis=2)
    fails("axis is for pieces of X on disk", as_design, X, axis=1)


def test_sparse_x_is_fitted_from_memory(tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.eye_array(9, format="csr"))
    for source in (tmp_path / "x.npz", tmp_path, [tmp_path / "x.npz"]):
        fails(r"sparse X is fitted from memory; .* scipy\.sparse\.load_npz", as_design, source)


@pytest.mark.parametrize("order", ["C", "F"])
def test_norms_and_means_have_the_bits_of_the_array(tmp_path, order):
    X, _ = problem(order=order)
    design, true = as_design(save(tmp_path / "x", X), memory_limit=LIMIT), as_design(X)
    for axis in (0, 1):
        np.testing.assert_allclose(design.norms(axis), true.norms(axis), rtol=1e-14)
    np.testing.assert_array_equal(design.norms(0), true.norms(0))
    np.testing.assert_array_equal(design.survey().means, true.survey().means)
    assert (
        design.data_fingerprint()
        == as_design(tmp_path / "x" / "piece0.npy", memory_limit=LIMIT).data_fingerprint()
    )


def test_a_run_counts_the_bytes_of_its_own(tmp_path):
    X, y = problem()
    path = save(tmp_path / "x", X)
    whole = os.path.getsize(path)
    assert minimize(path, y, OMP(n_nonzero_coefs=2)).file_bytes == whole  # read into memory
    design = as_design(path, memory_limit=LIMIT)
    runs = [minimize(design, y, OMP(n_nonzero_coefs=2), "exact").file_bytes for _ in range(2)]
    assert runs[1] < runs[0]  # norms, and columns that are kept
    assert sum(runs) + whole - X.nbytes == design.store.file_bytes
    assert minimize(X, y, OMP(n_nonzero_coefs=2)).file_bytes == 0
    assert f"files        read {runs[0]:,} bytes" in repr(
        minimize(as_design(path, memory_limit=LIMIT), y, OMP(n_nonzero_coefs=2), "exact")
    )


def test_a_small_file_is_an_array_in_memory(tmp_path):
    X, _ = problem()
    design = as_design(save(tmp_path / "x", X, cuts=(700,)))
    assert design.store.is_one_tile
    np.testing.assert_array_equal(design.store.first.X, X)


def test_memory_maps_are_read_as_files(tmp_path):
    X, _ = problem()
    path = save(tmp_path / "x", X)
    mapped = np.load(path, mmap_mode="r")
    for source, rows in ((mapped, slice(None)), (mapped[512:], slice(512, None)), ([mapped, mapped], None)):
        design = as_design(source, memory_limit=LIMIT)
        assert isinstance(design.store, FileStore)
        dense = np.vstack([X, X]) if rows is None else X[rows]
        np.testing.assert_array_equal(design.columns(np.arange(7)), dense[:, :7].T)
    private = np.load(path, mmap_mode="c")
    private[0, 0] = 7.0
    assert as_design(private).columns(np.array([0]))[0, 0] == 7.0
    assert as_design(mapped[:, ::2], memory_limit=LIMIT).store.is_one_tile


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i2", "|b1", "<f2"])
def test_numbers_of_other_kinds(tmp_path, dtype):
    X = np.asarray(problem()[0] * 3).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    design = as_design(tmp_path / "x.npy", memory_limit="1MiB")
    assert design.dtype == as_design(X).dtype
    np.testing.assert_array_equal(design.columns(np.arange(330)), X.T.astype(float))


def test_columns_can_be_chosen_and_left_out(tmp_path):
    X, _ = problem()
    for order in "CF":
        path = save(tmp_path / order, np.asarray(X, order=order))
        some = as_design(path, memory_limit=LIMIT, columns=range(5, 330), exclude=[7, 8, 300])
        chosen = np.delete(np.arange(5, 330), [2, 3, 295])
        np.testing.assert_array_equal(some.columns(np.arange(len(chosen))), X[:, chosen].T)
    fails(r"exclude names 330, .*columns are numbered from 0 to 329", as_design, path, exclude=[330])
    fails("leave no column", as_design, path, columns=[1], exclude=[1])
    fails(r"X\[:, columns\]", as_design, X, columns=[1])


def test_memory_limits():
    for given in ("2 GB", "1.5MiB", 2**20, "3000000"):
        as_design(np.eye(3), memory_limit=given)
    for given in ("2 apples", -1, "1kB", None):
        fails("memory_limit", as_design, np.eye(3), error=(ValueError, TypeError), memory_limit=given)


# -- damaged sources --------------------------------------------------------------------------------------


def fit_fails(path, words, y=None, **options):
    with pytest.raises(ValueError, match=words):
        minimize(as_design(path, memory_limit=LIMIT, **options), y, OMP(n_nonzero_coefs=3))


def test_damaged_pieces_are_named(tmp_path):
    """Those that tests of damage do not have."""
    X, y = problem()
    folder = save(tmp_path / "x", X, cuts=range(170, 1700, 170))
    fifth = folder / "piece5.npy"
    fifth.write_bytes(fifth.read_bytes()[:-8])
    fit_fails(folder, r"piece5\.npy: it has .* bytes and should have .*: it was cut short; write it again", y)
    fifth.write_bytes(b"not an array")
    fit_fails(folder, r"piece5\.npy: it is no \.npy file", y)
    for kind, cell in (("<U1", "a"), ("object", {})):
        np.save(fifth, np.full((170, 330), cell))
        fit_fails(folder, rf"piece5\.npy: X has dtype {kind}", y)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(
        ValueError, match=r"no\.npy: X is .* a path, and there is no such file; check the path"
    ):
        as_design(tmp_path / "no.npy")
    fails(re.escape(str(tmp_path)), as_design, tmp_path)
    fails("there is no such file", minimize, str(tmp_path / "nothing"), "price", OMP(n_nonzero_coefs=1))
    X, _ = problem()
    with pytest.raises(TypeError, match="X is no table on disk; give y as an array"):
        minimize(save(tmp_path / "x", X), "price", OMP(n_nonzero_coefs=1))


@pytest.mark.parametrize("how", ["changed", "cut short"])
def test_a_file_that_changes_while_it_is_read(tmp_path, how):
    X, y = problem()
    path = save(tmp_path / "x", X)
    design = as_design(path, memory_limit=LIMIT)

    def change(record):
        if record.iteration == 1:
            with open(path, "r+b") as file:
                if how == "changed":
                    file.seek(5000)
                    file.write(b"\1" * 64)
                else:
                    file.truncate(100000)
            os.utime(path)

    with pytest.raises(ValueError, match=f"it was {how} while it was in use; make a new design"):
        minimize(design, y, OMP(n_nonzero_coefs=9), "exact", callback=change)
    fails(f"it was {how}", minimize, design, y, OMP(n_nonzero_coefs=9), "exact")


# -- estimators --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", [False, True])
def test_estimators_fit_paths_maps_and_designs(tmp_path, normalize):
    X, y = problem()
    path = save(tmp_path / "x", X)
    model = PursuitRegressor(n_nonzero_coefs=8, scale="column" if normalize else "none")
    true = clone(model).fit(X, y)
    for source in (path, np.load(path, mmap_mode="r"), as_design(path, memory_limit=LIMIT), as_design(X)):
        ours = clone(model).fit(source, y)
        np.testing.assert_array_equal(ours.support_, true.support_)
        np.testing.assert_allclose(ours.coef_, true.coef_, rtol=1e-9)
        np.testing.assert_allclose(ours.predict(source), true.predict(X), rtol=1e-9)
        assert ours.n_features_in_ == 330
    labels = np.where(y > 0, "yes", "no")
    ours = PursuitClassifier(n_nonzero_coefs=4).fit(as_design(path, memory_limit=LIMIT), labels)
    true = PursuitClassifier(n_nonzero_coefs=4).fit(X, labels)
    np.testing.assert_array_equal(ours.support_, true.support_)
    assert (ours.predict(path) == true.predict(X)).all()
    with pytest.raises(ValueError, match="X has 2 features, but PursuitClassifier is expecting 330"):
        ours.predict(as_design(np.ones((4, 2))))
    with pytest.raises(TypeError, match="X is no table on disk; give y as an array"):
        clone(model).fit(as_design(X), "target")


# -- codes on disk ------------------------------------------------------------------------------------------


def big_problem():
    X, y = problem(2100, 700, seed=3)
    return X, y


def spilling(path, **options):
    """A design whose second bytes do not fit in memory."""
    return as_design(path, memory_limit="5MB", **options)


def fit(design, y, **given):
    return minimize(design, y, OMP(n_nonzero_coefs=15), TwoBytes(), random_state=0, **given)


@pytest.mark.parametrize("order", ["C", "F"])
def test_codes_that_do_not_fit_go_to_a_folder_and_come_back(tmp_path, monkeypatch, order):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    X, y = big_problem()
    path = save(tmp_path / "x", np.asarray(X, order=order))
    design = spilling(path)
    ours, true = fit(design, y), fit(as_design(X), y)
    np.testing.assert_array_equal(ours.support, true.support)
    np.testing.assert_array_equal(
        ours.coef, minimize(np.asarray(X, order=order), y, OMP(n_nonzero_coefs=15)).coef
    )
    spill = design.store._stored
    assert "codes" in spill.in_memory
    assert "second_byte" not in spill.in_memory
    assert os.listdir(tmp_path / "temporary")
    del design, spill
    gc.collect()
    assert not os.listdir(tmp_path / "temporary")


def test_codes_in_a_folder_serve_the_next_design(tmp_path):
    X, y = big_problem()
    path, folder = save(tmp_path / "x", X), tmp_path / "codes"
    first = spilling(path, codes=folder)
    true = fit(first, y)
    assert first.store.file_reads[0].bytes > X.nbytes
    again = spilling(path, codes=folder)
    ours = fit(again, y)
    np.testing.assert_array_equal(ours.coef, true.coef)
    saved = first.store.file_reads[0].bytes - again.store.file_reads[0].bytes
    assert saved >= X.nbytes
    assert saved % X.nbytes == 0

    X[5, 5] += 1.0  # another file of the same name
    np.save(path, X)
    changed = spilling(path, codes=folder)
    fit(changed, y)
    assert changed.store.file_reads[0].bytes > X.nbytes


def test_damaged_codes_are_named_and_others_stay(tmp_path):
    X, y = big_problem()
    path, folder = save(tmp_path / "x", X), tmp_path / "codes"
    fit(spilling(path, codes=folder), y)
    piece = folder / "panels-fine" / "3.codes"
    content = piece.read_bytes()
    for damage in (content[:-9], content[:1000] + b"\1\2" + content[1002:]):
        piece.write_bytes(damage)
        with pytest.raises(ValueError, match=r"3\.codes: these stored codes are damaged .*delete the folder"):
            fit(spilling(path, codes=folder), y)
    piece.unlink()
    fails(r"3\.codes: .*No such file", fit, spilling(path, codes=folder), y)


def unfinished(folder):
    return [name for name in os.listdir(folder) if name.startswith(".")]


@pytest.mark.parametrize("call", ["zlib.crc32", "os.replace", "shutil.rmtree"])
def test_codes_that_cannot_be_written_or_put_in_place_leave_nothing(tmp_path, monkeypatch, call):
    X, y = big_problem()
    path, folder = save(tmp_path / "x", X), tmp_path / "codes"
    fit(spilling(path, codes=folder), y)
    before = sorted(os.listdir(folder / "panels-fine"))
    os.utime(path, (1, 1))  # its codes are no longer those of this file
    real, calls = shutil.rmtree, []

    def full(*arguments, **named):
        calls.append(arguments)
        if call == "shutil.rmtree" and len(calls) > 1:
            return real(*arguments, **named)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(f"skpursuit.data.disk.code_storage.{call}", full)
    with pytest.raises(ValueError, match=r"codes cannot be written \(No space left on device\); make room"):
        fit(spilling(path, codes=folder), y)
    assert calls
    assert not unfinished(folder)
    assert call != "zlib.crc32" or sorted(os.listdir(folder / "panels-fine")) == before


def test_codes_that_may_not_be_stored_are_refused(tmp_path):
    X, y = big_problem()
    fails(r"codes=None forbids.*gram", fit, spilling(save(tmp_path / "x", X), codes=None), y)


def test_codes_that_a_killed_process_left_are_removed(tmp_path):
    X, y = big_problem()
    path, folder = save(tmp_path / "x", X), tmp_path / "codes"
    killed, alive, foreign = (
        folder / f".{name}"
        for name in ("panels-fine.0123456789abcdef.tmp", "panels-fine.fedcba9876543210.tmp", "git")
    )
    for each in (killed, alive, foreign):
        each.mkdir(parents=True)
        (each / "0.codes").write_bytes(b"1")
    for each in (killed, foreign):
        os.utime(each, (1, 1))
    for _ in range(2):  # also where there are codes
        fit(spilling(path, codes=folder), y)
        assert sorted(unfinished(folder)) == sorted([alive.name, foreign.name])
    os.utime(alive, (1, 1))
    fit(spilling(path, codes=folder), y)
    assert unfinished(folder) == [foreign.name]


@pytest.mark.parametrize("why", ["the disk is full", "codes=None"])
def test_auto_needs_no_codes_where_there_is_no_room_for_them(tmp_path, monkeypatch, why):
    X, y = big_problem()
    path = save(tmp_path / "x", X)
    dear = {"memory_limit": "1.2MB"}  # beyond which even the first bytes are
    expect = Workload(n_queries=15, n_columns=15)
    assert Certified().predict_seconds(as_design(path, **dear), expect) < np.inf
    if why == "codes=None":
        design = as_design(path, codes=None, **dear)
    else:
        design = as_design(path, **dear)
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=X.size // 2))
    assert Certified().predict_seconds(design, expect) == np.inf
    ours, true = (minimize(x, y, OMP(n_nonzero_coefs=3), "auto") for x in (design, X))
    np.testing.assert_array_equal(ours.coef, true.coef)
    assert design.store._stored is None


def test_codes_that_are_there_need_no_room(tmp_path):
    X, y = big_problem()
    design = as_design(save(tmp_path / "x", X), memory_limit="4MB", codes=None)
    expect = Workload(n_queries=15, n_columns=15)
    before = Certified().predict_seconds(design, expect)
    minimize(design, y, OMP(n_nonzero_coefs=3), "certified")
    assert Certified().predict_seconds(design, expect) < before < np.inf


def test_a_run_goes_on_from_its_checkpoint_with_its_codes(tmp_path):
    X, y = big_problem()
    path = save(tmp_path / "x", np.asfortranarray(X))
    true = fit(as_design(X), y)
    stopped = spilling(path)
    fit(stopped, y, checkpoint=tmp_path / "run", callback=lambda record: record.iteration == 6)
    assert (tmp_path / "run.codes").is_dir()
    design = spilling(path)
    ours = fit(design, y, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(ours.support, true.support)
    assert ours.n_iter == 15
    assert design.store.file_reads[0].bytes < 0.2 * X.nbytes  # columns of the support alone
    assert not [record for record in ours.history if record.certificate != "exact"]


def test_steps_in_the_noise_read_x_three_times(tmp_path):
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((3000, 2000)), rng.standard_normal(3000)
    design = as_design(save(tmp_path / "x", X), memory_limit="60MB")
    ours = minimize(design, y, OMP(n_nonzero_coefs=20), TwoBytes())
    true = minimize(X, y, OMP(n_nonzero_coefs=20), "exact")
    np.testing.assert_array_equal(ours.support, true.support)
    assert design.store.file_reads[0].bytes <= 3.1 * X.nbytes


@pytest.mark.parametrize("selector", ["greedy", "uniform", "importance", "reject"])
def test_selectors_of_random_rows_tell_their_price(tmp_path, selector):
    X, y = problem()
    design = as_design(save(tmp_path / "x", X), memory_limit=LIMIT)
    with pytest.raises(ValueError, match=r"one costs 2,640 bytes.*memory_limit of 8,976,000"):
        minimize(design, y, OMP(n_nonzero_coefs=3), selector)


@pytest.mark.parametrize("order", "CF")
def test_predictions_of_many_columns_hold_few_of_them(tmp_path, order):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((3000, 100)), order=order)
    np.save(tmp_path / "X.npy", X)
    design, plain = as_design(tmp_path / "X.npy", memory_limit="1MiB"), as_design(X)
    design, plain = (some.with_view(some.view.compose(centre=X.mean(axis=0))) for some in (design, plain))
    support, coef = np.arange(3, 90), rng.standard_normal((87, 2))
    np.testing.assert_allclose(design.predict(support, coef), plain.predict(support, coef), atol=1e-10)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("size", [1.0, 1e60, 1e-60])
def test_norms_of_some_rows_have_the_bits_of_memory(tmp_path, size, order):
    X = np.asarray(size * np.random.default_rng(0).standard_normal((2100, 40)), order=order)
    view = View(np.flatnonzero(np.arange(2100) % 7), centre=size * np.arange(40.0))
    norms = [
        as_design(source, memory_limit="1MiB", check=False).with_view(some).norms(0)
        for some in (view, View(view.rows))
        for source in (save(tmp_path / f"{some.centre is None}", X), X)
    ]
    for ours, true in (norms[:2], norms[2:]):
        np.testing.assert_array_equal(ours, true)
    np.testing.assert_allclose(norms[2], size * np.linalg.norm(X[view.rows] / size, axis=0), rtol=1e-13)


def test_columns_of_zeros_cost_one_pass_together(tmp_path):
    X = np.random.default_rng(0).standard_normal((1100, 300))
    X[:, ::3] = 0.0
    design = as_design(save(tmp_path / "x", X), memory_limit="1MiB", check=False)
    np.testing.assert_array_equal(design.norms(0), as_design(X).norms(0))
    assert design.store.file_reads[0].bytes <= 3 * X.nbytes
