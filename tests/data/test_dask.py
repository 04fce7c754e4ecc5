"""Dask arrays and data frames as X: the model of the array in memory, whatever the chunks and the workers."""

import gc
import os
import threading
import time
from contextlib import contextmanager
from signal import SIGCONT, SIGSTOP

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import KFold

import skpursuit as sk
from tests.support.failing import fails

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")

from skpursuit.data.cluster import dask_client, dask_store  # noqa: E402
from skpursuit.data.cluster.dask_client import ClusterError  # noqa: E402

EXACT = ("exact", "gram", "certified", "auto")


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    """Several tiles of a small X."""
    monkeypatch.setattr(dask_store, "TILE_BYTES", (2**18, 2**28))
    monkeypatch.setattr(dask_store, "MAX_JOINED_COLUMNS", 64)


@contextmanager
def cluster(workers=2, processes=False, **more):
    """Workers that are threads of this process by default, and listen to nobody."""
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=processes,
            **more,
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


def signal(seed, n=3000, d=150, k=6):
    X, y, _ = sk.datasets.make_sparse_signal(n, d, k, snr=5.0, random_state=seed)
    return X, y


def same(a, b, tolerance=1e-9):
    assert a.support.tolist() == b.support.tolist()
    np.testing.assert_allclose(a.coef, b.coef, rtol=tolerance, atol=tolerance * np.abs(b.coef).max())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("selector", EXACT)
def test_the_model_of_the_array_in_memory(seed, selector):
    rng = np.random.default_rng(seed)
    X, y = signal(seed)
    X = X.astype(rng.choice([np.float32, np.float64]))
    chunks = int(rng.integers(100, 1500)), int(rng.integers(20, 200))
    solver = sk.CoSaMP(n_nonzero_coefs=6) if seed % 3 == 2 else sk.OMP(n_nonzero_coefs=6)
    design = sk.as_design(da.from_array(X, chunks=chunks))
    assert (design.store.row_edges[:-1] % 512 == 0).all()
    assert len(design.store.places) > 1
    same(sk.minimize(design, y, solver, selector), sk.minimize(X, y, solver, selector))


def test_sparse_chunks_are_refused():
    X = sparse.random_array((4000, 120), density=0.05, rng=np.random.default_rng(3))
    lazy = da.from_array(X.toarray(), chunks=(900, 120)).map_blocks(sparse.csc_array)
    with pytest.raises(TypeError, match=r"chunk \(0, 0\) of X is sparse; .* from memory: give X\.compute"):
        sk.as_design(lazy)


def test_any_number_of_workers_gives_the_same_bits():
    X, y = signal(1)
    lazy = da.from_array(X, chunks=(700, 150))
    local = sk.minimize(lazy, y, sk.OMP(n_nonzero_coefs=8), "certified")
    for workers in (1, 2, 3):
        with cluster(workers):
            design = sk.as_design(lazy)
            assert design.store.cluster.client is not None
            found = sk.minimize(design, da.from_array(y), sk.OMP(n_nonzero_coefs=8), "certified")
            assert found.coef.tobytes() == local.coef.tobytes()
            assert found.objective == local.objective


# Trips before the first step and after the last one: norms, the look at X, the last check of the model.
@pytest.mark.parametrize(
    ("selector", "loss", "a_step"),
    [
        ("exact", "squared", 2),  # the product, and the column that won
        ("exact", "logistic", 2),
        ("gram", "squared", 2),
        ("certified", "squared", 1),  # steps are proven together
        ("certified", "huber", 3),
    ],
)
def test_trips_of_a_step(selector, loss, a_step):
    X, y = signal(1)
    y = np.sign(y) if loss == "logistic" else y
    trips = []
    for k in (4, 12):
        design = sk.as_design(da.from_array(X, chunks=(700, 150)))
        assert len(sk.minimize(design, y, sk.OMP(n_nonzero_coefs=k), selector, loss).support) == k
        trips.append(design.store.cluster.round_trips)
    assert trips[1] - trips[0] <= 8 * a_step
    assert trips[0] <= 4 * a_step + 6


def targets(loss, seed=2, n=6000):
    """A matrix and targets of a loss, which eight columns carry."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 150))
    z = X[:, ::20] @ np.linspace(0.5, 1.0, 8)
    if loss == "poisson":
        return X, rng.poisson(np.exp(0.5 * z)).astype(float)
    if loss == "multinomial":
        return X, (z + rng.logistic(size=n) > 0).astype(int) + (z + rng.logistic(size=n) > 1)
    if loss == "two targets":
        return X, np.stack([z, X[:, 7]], axis=1) + rng.standard_t(2, (n, 2))
    return X, np.sign(z + rng.logistic(size=n)) if loss == "logistic" else z + rng.standard_t(2, n)


FORCED = sk.OMP(n_nonzero_coefs=8, always_include=(60, 3))


@pytest.mark.parametrize(
    ("loss", "solver", "weights"),
    [
        ("logistic", sk.OMP(n_nonzero_coefs=7, swaps=True, always_include=(3,)), "fold"),
        ("poisson", FORCED, "fold"),
        ("multinomial", FORCED, "weights"),
        ("two targets", FORCED, "weights"),
        ("squared", sk.OMP(n_nonzero_coefs=12), None),
        ("huber", sk.OMP(n_nonzero_coefs=12), None),
        ("squared", sk.OMP(n_nonzero_coefs=16, positive=True, always_include=(60, 3)), "weights"),
        ("huber", sk.GraSP(n_nonzero_coefs=6), "fold"),
        ("logistic", sk.GraSP(n_nonzero_coefs=6, refit=True), "weights"),
        ("squared", sk.CoSaMP(n_nonzero_coefs=6, refit=True), None),
    ],
)
def test_a_small_driver_finds_the_same_bits(tmp_path, loss, solver, weights):
    X, y = targets(loss)
    loss = "huber" if loss == "two targets" else loss
    X[:, 3] = X[:, 60] + 1e-6 * X[:, 3]  # takes a second pass
    X[:, 40] = X[:, 20] + X[:, 0]  # depends on others in merged fits
    given = {} if weights is None else {"sample_weight": np.random.default_rng(0).uniform(0.5, 2.0, len(y))}
    if weights == "fold":  # leaves out rows, those of whole tiles too
        given["sample_weight"] *= (np.arange(len(y)) % 3 > 0) & (np.arange(len(y)) // 1500 != 2)
    lazy, path = da.from_array(X, chunks=(700, 150)), tmp_path / "run"
    whole = sk.minimize(lazy, y, solver, "exact", loss, **given)
    same(whole, sk.minimize(X, y, solver, "exact", loss, **given))
    small = sk.as_design(lazy, memory_limit="1MiB")  # columns and rows of Q are in a file
    stops = {"checkpoint": path, "callback": lambda record: record.iteration == 2}
    sk.minimize(small, y, solver, "exact", loss, **given, **stops)
    with cluster(2):
        small = sk.as_design(lazy, memory_limit="1MiB")
        for more in ({}, {"checkpoint": path}):
            found = sk.minimize(small, y, solver, "exact", loss, **given, **more)
            assert found.coef.tobytes() == whole.coef.tobytes()
            assert found.objective == whole.objective
            assert found.dropped.tolist() == whole.dropped.tolist()
        if type(solver) is sk.OMP:
            same(sk.minimize(small, y, solver, "certified", loss, **given), whole)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_support_whose_worker_is_killed(loss):
    X, y = targets(loss)
    lazy, solver = da.from_array(X, chunks=(1700, 150)), sk.OMP(n_nonzero_coefs=12)
    with cluster(2, processes=True) as client:
        small = sk.as_design(lazy, memory_limit="1MiB")

        def strike(record):
            if record.iteration == 9:
                next(iter(client.cluster.workers.values())).process.process._process.kill()

        found = sk.minimize(small, y, solver, "exact", loss, callback=strike)
    assert found.coef.tobytes() == sk.minimize(X, y, solver, "exact", loss).coef.tobytes()


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("targets", [(), (2,)])
def test_many_columns_are_used_where_the_tiles_are(moved, targets):
    """Predictions and products of more columns than the driver holds."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2100, 150)) + 3.0
    design, plain = sk.as_design(da.from_array(X, chunks=(700, 60))), sk.as_design(X)
    if moved:
        parts = {"centre": X.mean(axis=0), "scale": X.std(axis=0)}
        rows = {"rows": np.arange(0, 2100, 2), "root": np.sqrt(rng.random(1050))}
        design, plain = (
            some.with_view(some.view.compose(**parts, **rows).compose(constant=True))
            for some in (design, plain)
        )
        np.testing.assert_allclose(design.norms(0), plain.norms(0), rtol=1e-12)
    support, design.store.caches.columns.max_bytes = np.arange(5, 140), 10**5
    support = np.append(support, 150) if moved else support
    coef, r = rng.standard_normal((len(support), *targets)), rng.standard_normal(plain.shape[0])
    before = design.store.cluster.round_trips
    np.testing.assert_allclose(design.predict(support, coef), plain.predict(support, coef), atol=1e-10)
    assert design.store.cluster.round_trips == before + 1
    assert design.dots(support, r).tobytes() == plain.dots(support, r).tobytes()
    assert not design.store.caches.columns.arrays


def test_a_run_goes_on_from_its_checkpoint_with_the_same_x_alone(tmp_path):
    X, y = signal(2)
    lazy, path = da.from_array(X, chunks=(700, 150)), tmp_path / "run"
    sk.minimize(lazy, y, sk.OMP(n_nonzero_coefs=8), checkpoint=path, callback=lambda r: r.iteration == 3)
    X[2000, 77] += 1.0
    with pytest.raises(ValueError, match="different X"):
        sk.minimize(da.from_array(X, chunks=(700, 150)), y, sk.OMP(n_nonzero_coefs=8), checkpoint=path)


# -- estimators -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        sk.PursuitRegressor(n_nonzero_coefs=6, scale="column"),
        sk.PursuitRegressorCV(solver="omp", max_nonzero_coefs=8),
        sk.PursuitRegressorCV(solver="omp", max_nonzero_coefs=8, scoring="neg_mean_absolute_error"),
        sk.OrthogonalMatchingPursuitCV(),
        sk.PursuitClassifier(n_nonzero_coefs=4),
    ],
    ids=lambda model: type(model).__name__,
)
def test_estimators(model):
    X, y = signal(4, n=1500)
    lazy, weights = da.from_array(X, chunks=(400, 90)), np.arange(1500) % 3
    labels = y > 0 if isinstance(model, sk.PursuitClassifier) else y
    more = {} if isinstance(model, sk.OrthogonalMatchingPursuitCV) else {"sample_weight": weights}
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
    model = sk.PursuitRegressor(n_nonzero_coefs=3).fit(lazy, "y")
    plain = sk.PursuitRegressor(n_nonzero_coefs=3).fit(frame.drop(columns="y"), y)
    assert model.feature_names_in_.tolist() == plain.feature_names_in_.tolist()
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9, atol=1e-12)
    predicted = model.predict(lazy.drop(columns="y"))
    np.testing.assert_allclose(predicted.compute(), plain.predict(frame.drop(columns="y")))
    weights = np.arange(1000.0)
    expected = plain.score(frame.drop(columns="y"), y, weights)
    assert model.score(lazy.drop(columns="y"), lazy["y"], weights) == pytest.approx(expected)
    assert model.score(lazy, "y", weights) == pytest.approx(expected)
    fails(r"not numeric: name;", sk.as_design, lazy.assign(name="a"), error=TypeError)
    with pytest.raises(TypeError, match="folds are then weights"):
        sk.PursuitRegressorCV(solver="omp", scoring=lambda m, X, y: 0.0).fit(lazy.drop(columns="y"), y)


def test_nullable_columns_without_a_null():
    frame = pd.DataFrame({"x": np.arange(100.0), "n": pd.array(range(100), dtype="Int64")})
    frame["b"] = pd.array([True, False] * 50, dtype="boolean")
    lazy, y = dd.from_pandas(frame, npartitions=3), frame.x.to_numpy()
    model = sk.PursuitRegressor(n_nonzero_coefs=1).fit(lazy, y)
    np.testing.assert_allclose(model.predict(lazy).compute(), y, atol=1e-9)


def test_chosen_features_are_lazy():
    X, y = signal(4, n=1500)
    lazy = da.from_array(X, chunks=(400, 150))
    model = sk.PursuitFeatureSelector(n_features_to_select=4).fit(lazy, y)
    chosen = model.transform(lazy)
    assert isinstance(chosen, da.Array)
    np.testing.assert_array_equal(chosen.compute(), model.transform(X))
    np.testing.assert_array_equal(model.transform(X), X[:, model.get_support()])
    back = model.inverse_transform(chosen)
    assert isinstance(back, da.Array)
    np.testing.assert_array_equal(back.compute(), model.inverse_transform(chosen.compute()))


@pytest.mark.parametrize("cv", [3, KFold(3, shuffle=True, random_state=0)])
def test_folds_are_weights_of_rows_and_omp_stands_for_auto(cv):
    X, y = signal(4, n=1500)
    lazy = da.from_array(X, chunks=(400, 150))
    with pytest.warns(UserWarning, match="X is not a plain array in memory"):
        ours = sk.PursuitRegressorCV(max_nonzero_coefs=8, cv=cv).fit(lazy, y)
    assert ours.choice_["family"] == "omp"
    plain = sk.PursuitRegressorCV(max_nonzero_coefs=8, cv=cv, solver="omp").fit(X, y)
    if cv != 3:
        np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("selector", ["greedy", "uniform", "importance", "halving", "reject", "lucb"])
def test_selectors_that_read_rows_are_refused_with_their_price(selector):
    X, y = signal(4, n=1500)
    with pytest.raises(ValueError, match=r"each look is a trip of about \d+ ms"):
        sk.minimize(da.from_array(X, chunks=(400, 150)), y, sk.OMP(n_nonzero_coefs=3), selector)


def test_coding_is_lazy():
    rng = np.random.default_rng(0)
    coder = sk.PursuitCoder(rng.standard_normal((12, 30)), n_nonzero_coefs=3)
    X = rng.standard_normal((100, 30))
    codes = coder.transform(da.from_array(X, chunks=(40, 30)))
    assert isinstance(codes, da.Array)
    signals = coder.inverse_transform(codes)
    assert isinstance(signals, da.Array)
    np.testing.assert_allclose(signals.compute(), coder.inverse_transform(coder.transform(X)))
    np.testing.assert_allclose(codes.compute().toarray(), coder.transform(X).toarray())


# -- what is refused, and how a cluster fails -----------------------------------------------------------


def test_bad_input():
    X, _ = signal(6, n=1100)
    fails("two-dimensional", sk.as_design, da.from_array(X[0]))
    fails("complex", sk.as_design, da.from_array(X + 0j), error=TypeError)
    fails("empty", sk.as_design, da.from_array(X[:0]))
    fails("Dask array or data frame", sk.as_design, dask.delayed(X), error=TypeError)
    wrong = da.from_array(X, chunks=(400, 150)).map_blocks(lambda part: part[1:], dtype=float, meta=X[:0])
    fails(r"chunk \(0, 0\) of X has the shape \(399, 150\)", sk.as_design, wrong)
    X[700, 3] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity, first in column 3"):
        sk.minimize(da.from_array(X, chunks=(400, 150)), X[:, 0], sk.OMP(n_nonzero_coefs=2))


def test_rows_whose_number_is_not_known():
    X, y = signal(7)
    lazy = da.from_array(X, chunks=(700, 150))
    some = lazy[lazy[:, 0] > 0]
    assert np.isnan(some.shape[0])
    kept = X[:, 0] > 0
    same(
        sk.minimize(some, y[kept], sk.OMP(n_nonzero_coefs=4)),
        sk.minimize(X[kept], y[kept], sk.OMP(n_nonzero_coefs=4)),
    )


def test_a_cluster_without_workers():
    X, y = signal(8, n=1100)
    lazy_y = da.from_array(y, chunks=400)
    frame = dd.from_pandas(pd.DataFrame(X[:, :3], columns=list("abc")), npartitions=2)
    with cluster(0), dask.config.set({"skpursuit.no-workers": 0.3}):
        for source, targets in ((da.from_array(X, chunks=(400, 150)), y), (X, lazy_y), (frame, "a")):
            with pytest.raises(ClusterError, match=r"no workers for 0\.3 s"):
                sk.minimize(source, targets, sk.OMP(n_nonzero_coefs=2))
    with cluster(1) as client, dask.config.set({"skpursuit.no-workers": 0.3}):
        design = sk.as_design(da.from_array(X, chunks=(400, 150)))
        client.cluster.scale(0)
        while client.nthreads():
            time.sleep(0.05)
        fails(r"no workers for 0\.3 s", sk.minimize, design, y, sk.OMP(n_nonzero_coefs=2), error=ClusterError)


RELEASED = threading.Event()


def stuck(part):
    """A chunk whose file does not answer."""
    RELEASED.wait(20)
    return part


def test_a_worker_that_hangs():
    X, y = signal(8, n=1100)
    with cluster(1), dask.config.set({"skpursuit.deadline": 0.3}):
        lazy = da.from_array(X, chunks=(400, 150)).map_blocks(stuck, dtype=float, meta=X[:0])
        with pytest.raises(ClusterError, match=r"no task on the Dask cluster has ended for 0\.3 s"):
            sk.minimize(lazy, y, sk.OMP(n_nonzero_coefs=2))
        RELEASED.set()


def hungry(part):
    """A chunk that takes more memory than its worker has."""
    return np.ones(100 * 2**20)[: part.size].reshape(part.shape)


def test_a_worker_out_of_memory(tmp_path):
    X, y = signal(8, n=1100)
    lazy, path, solver = da.from_array(X, chunks=(400, 150)), tmp_path / "run", sk.OMP(n_nonzero_coefs=4)
    sk.minimize(lazy, y, solver, "exact", checkpoint=path, callback=lambda r: r.iteration == 1)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        cluster(1, processes=True, memory_limit="500MB"),
        pytest.raises(ClusterError, match="most likely for want of memory"),
    ):
        sk.minimize(lazy.map_blocks(hungry, dtype=float, meta=X[:0]), y, solver, "exact", checkpoint=path)
    goes_on(path, lazy, y, solver)


def test_a_cluster_is_empty_after_slow_trips(monkeypatch):
    """Nothing holds futures until garbage is collected, which may be after many fits."""
    X, y = signal(8, n=1100)
    monkeypatch.setattr(dask_client, "POLL_SECONDS", 1e-4)
    lazy = da.from_array(X, chunks=(400, 150)).map_blocks(slow, dtype=float, meta=X[:0])
    gc.disable()
    try:
        with cluster(2) as client:
            sk.minimize(lazy, y, sk.OMP(n_nonzero_coefs=4), "exact")
            small = da.from_array(np.tile(X, (20, 1)), chunks=(4000, 150))
            sk.minimize(sk.as_design(small, memory_limit="1MiB"), np.tile(y, 20), sk.OMP(5), "exact", "huber")
            del small
            began = time.monotonic()
            while client.cluster.scheduler.tasks and time.monotonic() < began + 10:
                time.sleep(0.05)
            assert not client.cluster.scheduler.tasks
    finally:
        gc.enable()


def slow(part):
    time.sleep(0.05)
    return part


def goes_on(path, X, y, solver):
    """Whether a run goes on from its checkpoint, behind its first two steps, to the same bits."""
    steps = []
    again = sk.minimize(X, y, solver, "exact", checkpoint=path, callback=lambda r: steps.append(r.iteration))
    assert steps[0] >= 2
    assert again.coef.tobytes() == sk.minimize(X, y, solver, "exact").coef.tobytes()


def stop_a_worker(client):
    """Have a worker hang; give a function that lets it go on."""
    (pid,) = client.run(os.getpid).values()
    os.kill(pid, SIGSTOP)
    return lambda: os.kill(pid, SIGCONT)


def end_the_scheduler(client):
    client.cluster.sync(client.cluster.scheduler.close)


@pytest.mark.parametrize(
    ("strike", "processes", "told"),
    [(stop_a_worker, True, "no task .* has ended"), (end_the_scheduler, False, "scheduler has gone away")],
)
def test_a_cluster_that_is_lost_within_a_run(tmp_path, strike, processes, told):
    X, y = signal(8, n=1100)
    lazy, path, solver = da.from_array(X, chunks=(400, 150)), tmp_path / "run", sk.OMP(n_nonzero_coefs=5)
    after = []
    settings = {
        "skpursuit.deadline": 2,
        "skpursuit.no-workers": 0.5,
        "distributed.comm.timeouts.connect": "1s",
    }
    with dask.config.set(settings), cluster(1, processes) as client:
        with pytest.raises(ClusterError, match=told):
            sk.minimize(
                lazy,
                y,
                solver,
                "exact",
                checkpoint=sk.Checkpoint(path, interval=1e9),
                callback=lambda r: after.append(strike(client)) if r.iteration == 1 else None,
            )
        for mend in filter(None, after):
            mend()
    goes_on(path, lazy, y, solver)
