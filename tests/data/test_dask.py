"""Dask arrays and data frames as X: the model of the array in memory, whatever the chunks and the workers."""

import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from scipy import sparse

from skpursuit import (
    OMP,
    CoSaMP,
    OrthogonalMatchingPursuitCV,
    PursuitClassifier,
    PursuitCoder,
    PursuitRegressor,
    PursuitRegressorCV,
    as_design,
    datasets,
    minimize,
)

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")

from skpursuit.data import dask_store  # noqa: E402
from skpursuit.data.dask_cluster import ClusterError  # noqa: E402

EXACT = ("exact", "gram", "certified", "auto")


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    """Several tiles of a small X."""
    monkeypatch.setattr(dask_store, "TILE_BYTES", (2**18, 2**28))
    monkeypatch.setattr(dask_store, "WIDE", 64)


@contextmanager
def cluster(workers=2):
    """Workers that are threads of this process, and listen to nobody."""
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


def signal(seed, n=3000, d=150, k=6):
    X, y, _ = datasets.make_sparse_signal(n, d, k, snr=5.0, random_state=seed)
    return X, y


def same(a, b, tolerance=1e-9):
    assert a.support.tolist() == b.support.tolist()
    np.testing.assert_allclose(a.coef, b.coef, rtol=tolerance, atol=tolerance * np.abs(b.coef).max())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("selector", EXACT)
def test_the_model_of_the_array_in_memory(seed, selector):
    rng = np.random.default_rng(seed)
    X, y = signal(seed)
    X = X.astype(rng.choice([np.float32, np.float64]))
    chunks = int(rng.integers(100, 1500)), int(rng.integers(20, 200))
    solver = CoSaMP(n_nonzero_coefs=6) if seed % 3 == 2 else OMP(n_nonzero_coefs=6)
    design = as_design(da.from_array(X, chunks=chunks))
    assert (design.store.row_edges[:-1] % 512 == 0).all()
    assert len(design.store.places) > 1
    same(minimize(design, y, solver, selector), minimize(X, y, solver, selector))


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_sparse_chunks(loss):
    rng = np.random.default_rng(3)
    X = sparse.random_array((4000, 120), density=0.05, rng=rng, format="csr")
    y = X @ np.where(np.arange(120) < 5, 2.0, 0.0) + 0.01 * rng.standard_normal(4000)
    y = np.where(y > np.median(y), 1.0, -1.0) if loss == "logistic" else y
    lazy = da.from_array(X.toarray(), chunks=(900, 120)).map_blocks(sparse.csc_array)
    ours, theirs = (minimize(x, y, OMP(n_nonzero_coefs=5), "exact", loss) for x in (lazy, X))
    same(ours, theirs)
    assert ours.entries_read == theirs.entries_read == 5 * X.nnz


def test_any_number_of_workers_gives_the_same_bits_in_few_trips():
    X, y = signal(1)
    lazy = da.from_array(X, chunks=(700, 150))
    local = minimize(lazy, y, OMP(n_nonzero_coefs=8), "certified")
    for workers in (1, 3):
        with cluster(workers):
            design = as_design(lazy)
            assert design.store.cluster.client is not None
            found = minimize(design, da.from_array(y), OMP(n_nonzero_coefs=8), "certified")
            assert found.coef.tobytes() == local.coef.tobytes()
            assert found.objective == local.objective
            assert design.store.cluster.trips <= 3 * 8 + 4


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    X, y = signal(2)
    lazy = da.from_array(X, chunks=(700, 150))
    whole = minimize(lazy, y, OMP(n_nonzero_coefs=8))
    path = tmp_path / "run"
    first = minimize(lazy, y, OMP(n_nonzero_coefs=8), checkpoint=path, callback=lambda r: r.iteration == 3)
    assert len(first.support) == 4
    with cluster(2):
        again = minimize(lazy, y, OMP(n_nonzero_coefs=8), checkpoint=path)
    assert again.coef.tobytes() == whole.coef.tobytes()
    changed = X.copy()
    changed[2000, 77] += 1.0
    with pytest.raises(ValueError, match="different X"):
        minimize(da.from_array(changed, chunks=(700, 150)), y, OMP(n_nonzero_coefs=8), checkpoint=path)


# -- estimators -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        PursuitRegressor(n_nonzero_coefs=6, normalize=True),
        PursuitRegressorCV(solver="omp", max_nonzero_coefs=8),
        PursuitRegressorCV(solver="omp", max_nonzero_coefs=8, scoring="neg_mean_absolute_error"),
        OrthogonalMatchingPursuitCV(),
        PursuitClassifier(n_nonzero_coefs=4),
    ],
    ids=lambda model: type(model).__name__,
)
def test_estimators(model):
    X, y = signal(4, n=1500)
    lazy, weights = da.from_array(X, chunks=(400, 90)), np.arange(1500) % 3
    labels = y > 0 if isinstance(model, PursuitClassifier) else y
    more = {} if isinstance(model, OrthogonalMatchingPursuitCV) else {"sample_weight": weights}
    expected = model.fit(X, labels, **more).predict(X)
    coef = model.coef_.copy()
    model.fit(lazy, da.from_array(labels, chunks=500), **more)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-9, atol=1e-9 * np.abs(coef).max())
    predicted = model.predict(lazy)
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), expected, rtol=1e-8, atol=1e-8)
    assert model.score(lazy, labels) == pytest.approx(model.score(X, labels))


def test_data_frames():
    X, y = signal(5, n=1000, d=20)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(20)]).assign(y=y, ok=y > 0)
    lazy = dd.from_pandas(frame, npartitions=3)
    model = PursuitRegressor(n_nonzero_coefs=3).fit(lazy, "y")
    plain = PursuitRegressor(n_nonzero_coefs=3).fit(frame.drop(columns="y"), y)
    assert model.feature_names_in_.tolist() == plain.feature_names_in_.tolist()
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9, atol=1e-12)
    predicted = model.predict(lazy.drop(columns="y"))
    np.testing.assert_allclose(predicted.compute(), plain.predict(frame.drop(columns="y")))
    with pytest.raises(TypeError, match=r"not numeric: name;"):
        as_design(lazy.assign(name="a"))
    with pytest.raises(TypeError, match="folds are then weights"):
        PursuitRegressorCV(scoring=lambda m, X, y: 0.0).fit(lazy.drop(columns="y"), y)


def test_coding_is_lazy():
    rng = np.random.default_rng(0)
    coder = PursuitCoder(rng.standard_normal((12, 30)), n_nonzero_coefs=3)
    X = rng.standard_normal((100, 30))
    codes = coder.transform(da.from_array(X, chunks=(40, 30)))
    assert isinstance(codes, da.Array)
    np.testing.assert_allclose(codes.compute().toarray(), coder.transform(X).toarray())


# -- what is refused, and how a cluster fails -----------------------------------------------------------


def test_bad_input():
    X, _ = signal(6, n=1100)
    with pytest.raises(ValueError, match="two-dimensional"):
        as_design(da.from_array(X[0]))
    with pytest.raises(TypeError, match="complex"):
        as_design(da.from_array(X + 0j))
    with pytest.raises(ValueError, match="empty"):
        as_design(da.from_array(X[:0]))
    with pytest.raises(TypeError, match="Dask array or data frame"):
        as_design(dask.delayed(X))
    wrong = da.from_array(X, chunks=(400, 150)).map_blocks(lambda part: part[1:], dtype=float, meta=X[:0])
    with pytest.raises(ValueError, match=r"chunk \(0, 0\) of X has the shape \(399, 150\)"):
        as_design(wrong)
    X[700, 3] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity, first in column 3"):
        minimize(da.from_array(X, chunks=(400, 150)), X[:, 0], OMP(n_nonzero_coefs=2))


def test_rows_whose_number_is_not_known():
    X, y = signal(7)
    lazy = da.from_array(X, chunks=(700, 150))
    some = lazy[lazy[:, 0] > 0]
    assert np.isnan(some.shape[0])
    kept = X[:, 0] > 0
    same(minimize(some, y[kept], OMP(n_nonzero_coefs=4)), minimize(X[kept], y[kept], OMP(n_nonzero_coefs=4)))


def test_a_cluster_without_workers():
    X, y = signal(8, n=1100)
    with cluster(1) as client, dask.config.set({"skpursuit.no-workers": 0.6}):
        design = as_design(da.from_array(X, chunks=(400, 150)))
        client.cluster.scale(0)
        while client.nthreads():
            time.sleep(0.05)
        with pytest.raises(ClusterError, match=r"no workers for 0\.6 s"):
            minimize(design, y, OMP(n_nonzero_coefs=2))


RELEASED = threading.Event()


def stuck(part):
    """A chunk whose file does not answer."""
    RELEASED.wait(20)
    return part


def test_a_worker_that_hangs():
    X, y = signal(8, n=1100)
    with cluster(1), dask.config.set({"skpursuit.deadline": 0.6}):
        lazy = da.from_array(X, chunks=(400, 150)).map_blocks(stuck, dtype=float, meta=X[:0])
        with pytest.raises(ClusterError, match=r"no task on the Dask cluster has ended for 0\.6 s"):
            minimize(lazy, y, OMP(n_nonzero_coefs=2))
        RELEASED.set()


def test_arrays_do_not_import_dask():
    program = (
        "import sys, numpy as np; from skpursuit import PursuitRegressor, as_design; as_design(np.eye(3));"
        "PursuitRegressor().fit(np.eye(9), np.ones(9)).predict(np.eye(9)); sys.exit('dask' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("moved", [False, True])
def test_products_of_many_columns_are_made_where_the_tiles_are(moved):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2100, 90)) + 3.0
    design, plain = as_design(da.from_array(X, chunks=(700, 90))), as_design(X)
    if moved:
        parts = {"centre": X.mean(axis=0), "scale": X.std(axis=0), "root": np.sqrt(rng.random(2100))}
        design, plain = (some.with_view(some.view.then(**parts)) for some in (design, plain))
        np.testing.assert_allclose(design.norms(0), plain.norms(0), rtol=1e-12)
    cols, r = np.arange(5, 80), rng.standard_normal(2100)
    expected = plain.dots(cols, r)
    design.store.kept.columns.limit = 10**6
    found = design.dots(cols, r)
    assert not design.store.kept.columns.held
    assert found.tobytes() == expected.tobytes()
