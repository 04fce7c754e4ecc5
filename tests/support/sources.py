"""One small matrix as every data source: what the contract tests run over."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from skpursuit import as_design

from .data import cut, some_rows, tiled, view, with_intercept


def matrix(n=23, d=17, seed=7):
    """A matrix with zeros, so that its sparse forms differ from dense ones, and a zero column."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.4, rng.standard_normal((n, d)), 0.0)
    X[:, 3] = 0.0
    return X


def every_source(X, folder):
    """Name -> (design, the dense matrix it stands for)."""
    n, d = X.shape
    mapped = np.memmap(folder / "x.bin", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    readonly = X.copy()
    readonly.setflags(write=False)
    wide = np.zeros((2 * n, 2 * d))
    wide[::2, ::2] = X
    csr64 = sp.csr_array(X)
    csr64.indices, csr64.indptr = csr64.indices.astype(np.int64), csr64.indptr.astype(np.int64)
    whole = np.round(X * 4).astype(np.int32)
    sources = {
        "C": (X, X),
        "F": (np.asfortranarray(X), X),
        "strided": (wide[::2, ::2], X),
        "readonly": (readonly, X),
        "memmap": (np.memmap(folder / "x.bin", dtype=np.float64, mode="r", shape=X.shape), X),
        "float32": (X.astype(np.float32), X.astype(np.float32)),
        "integers": (whole, whole),
        "list": (X.tolist(), X),
        "csr": (sp.csr_array(X), X),
        "csr64": (csr64, X),
        "csr_float32": (sp.csr_array(X.astype(np.float32)), X.astype(np.float32)),
        "csc": (sp.csc_array(X), X),
        "csc_matrix": (sp.csc_matrix(X), X),
        "coo": (sp.coo_array(X), X),
        "operator": (aslinearoperator(X), X),
        "stacked": ([X[:1], X[1 : n // 2], X[n // 2 :]], X),
        "blocks": (cut(np.asfortranarray(X), (n // 2,), (1, d // 2)), X),
        "tiles": (tiled(X, (n // 2, n - 1), (d // 2, d - 1)), X),
        "tiles_float32": (tiled(X.astype(np.float32, order="F"), (n // 2,), (d // 2,)), X.astype(np.float32)),
    }
    designs = {
        name: (as_design(source), dense.astype(np.float64)) for name, (source, dense) in sources.items()
    }
    return designs | views(X)


def views(X):
    n, d = X.shape
    rng = np.random.default_rng(8)
    centre, scale, root = rng.standard_normal(d), rng.uniform(0.5, 2.0, d), rng.uniform(0.0, 2.0, n)
    viewed = root[:, None] * (X - centre) / scale
    more = np.insert(X, [0, 5, n], 3.0, axis=0)  # rows 0, 6 and n + 2 are to be left out
    rows = np.delete(np.arange(n + 3), [0, 6, n + 2])
    return {
        "view": (view(X, centre, scale, root), viewed),
        "view_csr": (view(sp.csr_array(X), centre, scale, root), viewed),
        "weighted": (view(X, root=root), root[:, None] * X),
        "scaled_csc": (view(sp.csc_array(X), scale=scale), X / scale),
        "intercept": (with_intercept(X), np.column_stack([X, np.ones(n)])),
        "intercept_csr": (with_intercept(sp.csr_array(X)), np.column_stack([X, np.ones(n)])),
        "rows": (some_rows(more, rows), X),
        "rows_csr": (some_rows(sp.csr_array(more), rows), X),
        "rows_view": (view(some_rows(more, rows), centre, scale, root), viewed),
        "tiles_view": (view(tiled(X, (n // 2, n - 1), (d // 2,)), centre, scale, root), viewed),
        "tiles_rows_view": (view(some_rows(tiled(more, (9,), (3,)), rows), centre, scale, root), viewed),
        "tiles_intercept": (with_intercept(tiled(X, (n // 2,), (d - 1,))), np.column_stack([X, np.ones(n)])),
    }


NAMES = [
    "C", "F", "strided", "readonly", "memmap", "float32", "integers", "list", "csr", "csr64", "csr_float32",
    "csc", "csc_matrix", "coo", "operator", "view", "view_csr", "weighted", "scaled_csc", "intercept",
    "intercept_csr", "rows", "rows_csr", "rows_view", "stacked", "blocks", "tiles", "tiles_float32",
    "tiles_view", "tiles_rows_view", "tiles_intercept",
]  # fmt: skip
