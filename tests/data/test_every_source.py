"""Every source gives the model of the array in memory by every exact selector, and the same bits when cut."""

import numpy as np
import pytest

from skpursuit import OMP, CoSaMP, as_design, minimize
from skpursuit.data.disk.file_store import FileStore

from .test_on_files import save

pytestmark = pytest.mark.filterwarnings("ignore:.*row group")
LIMIT = "1MiB"
SELECTORS = ("exact", "gram", "certified", "auto")


def rows_of(X, rng):
    return np.sort(rng.choice(np.arange(1, len(X)), 3, replace=False))


def parquet(folder, X, rng, pieces=1):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder.mkdir()
    for k, part in enumerate(np.split(X, rows_of(X, rng)[: pieces - 1])):
        table = pa.table({f"x{j}": np.ascontiguousarray(part[:, j]) for j in range(X.shape[1])})
        pq.write_table(table, folder / f"part{k}.parquet", row_group_size=int(rng.integers(2048, 4096)))
    return folder if pieces > 1 else folder / "part0.parquet"


def chunks(folder, X, rng):
    da = pytest.importorskip("dask.array")
    cuts = [0, *rows_of(X, rng), len(X)]
    return da.from_array(X, chunks=(tuple(np.diff(cuts).tolist()), X.shape[1] // 2))


def columns(folder, X, rng):
    return save(folder, X, np.sort(rng.choice(np.arange(1, X.shape[1]), 2, replace=False)), axis=1)


DENSE = {
    "file": lambda folder, X, rng: save(folder, X),
    "rows": lambda folder, X, rng: save(folder, X, rows_of(X, rng)),
    "columns": columns,
    "memmap": lambda folder, X, rng: np.load(save(folder, X), mmap_mode="r"),
    "list": lambda folder, X, rng: np.split(X, rows_of(X, rng)),
    "parquet": parquet,
    "parquets": lambda folder, X, rng: parquet(folder, X, rng, 3),
    "dask": chunks,
}
ALL = list(DENSE)


def made(folder, kind, X, rng):
    """A design of X in files or arrays of some kind."""
    return as_design(DENSE[kind](folder, X, rng), memory_limit=LIMIT, axis=int(kind == "columns"))


def drawn(seed):
    """(X, y, loss, solver) of a seed."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(700, 2200)), int(rng.integers(120, 300))
    X = np.asarray(rng.standard_normal((n, d)), order="CF"[seed % 2])
    if seed % 5 == 0:
        X = X.astype(np.float32)
    w = np.zeros(d)
    w[rng.choice(d, 8, replace=False)] = rng.choice([-1, 1], 8) * rng.uniform(1, 3, 8)
    y = X @ w + rng.standard_normal(n) * rng.choice([0.3, 3.0, 30.0])
    loss = "logistic" if seed % 4 == 3 else "squared"
    solver = CoSaMP(n_nonzero_coefs=5) if seed % 7 == 6 and loss == "squared" else OMP(n_nonzero_coefs=10)
    return X, np.sign(y) if loss == "logistic" else y, loss, solver


def check(folder, seed, selectors=SELECTORS):
    """One problem on one source by all selectors."""
    kind = ALL[seed % len(ALL)]
    X, y, loss, solver = drawn(seed)
    for selector in selectors:
        if selector == "gram" and loss != "squared":
            continue
        design = made(folder / f"x{seed}-{selector}", kind, X, np.random.default_rng(seed))
        fits = 2 * X.nbytes <= 2**20
        assert isinstance(design.store, FileStore) == (kind not in ("list", "dask") and not fits)
        ours = minimize(design, y, solver, selector, loss=loss)
        true = minimize(X, y, solver, selector, loss=loss)
        np.testing.assert_array_equal(ours.support, true.support, f"{kind}, {selector}, seed {seed}")
        scale = np.abs(true.coef).max()
        np.testing.assert_allclose(ours.coef, true.coef, rtol=1e-9, atol=1e-9 * scale, err_msg=f"{seed}")


@pytest.mark.parametrize("seed", range(len(ALL)))
def test_every_source_gives_the_model_of_the_array(tmp_path, seed):
    check(tmp_path, seed, SELECTORS[seed % 4 :][:1])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_two_hundred_problems(tmp_path, part):
    for seed in range(20 * part, 20 * part + 20):
        check(tmp_path, seed)


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))]
)
def test_cuts_change_no_bit(tmp_path, seed):
    """All ways to cut one array."""
    X, y, loss, solver = drawn(seed)
    rng, found = np.random.default_rng(seed), set()
    ways = ["file", "memmap", *(["rows", "columns", "list", "dask"] * (1 if seed < 4 else 2))]
    for k, way in enumerate([*ways, "parquet", "parquets"] if seed % 2 else ways):
        design = made(tmp_path / f"{seed}-{k}", way, X, rng)
        result = minimize(design, y, solver, SELECTORS[seed % 4], loss=loss)
        found.add((result.support.tobytes(), result.coef.tobytes(), result.objective))
    assert len(found) == 1, f"seed {seed}"
