"""Text classification by CoSaMP: 80/20 splits, k chosen on half of the training part."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array

import skpursuit
from skpursuit.metrics import support_overlap

from . import methods as compared
from .grid import Cell, CellRows
from .loaders import TextCollection, find_text, make_text
from .methods import OwnSelectors

SIZES = (10, 50, 100, 250)
STAND_IN_SIZES = SIZES[:2]
#: One-vs-rest over all classes multiplies the work: only for these.
ALL_CLASSES = ("exact", "halving")
#: The paper allows k iterations; what has not settled after these wanders, and for k = 250 takes hours.
ITERATIONS = 25
MIN_DOCUMENTS = 10  # documents: of fewer, a part of a split would be empty, or nearly so
TEXT_RIDGE = 1e-3  # over the number of documents: a word of one class alone has no finite coefficient


@lru_cache(maxsize=1)
def collections(data: str | Path | None) -> dict[str, TextCollection]:
    """The collections of a folder by name, read once; two generated ones without a folder."""
    generated = [(800, 2000, 6, 1), (400, 3000, 4, 2)]
    found = [make_text(*one) for one in generated] if data is None else find_text(data, MIN_DOCUMENTS)
    return {collection.name: collection for collection in found}


def splits(n: int, split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the training and the test part, and of the two halves of the training part."""
    order = np.random.default_rng([77, split]).permutation(n)
    n_train = round(0.8 * n)
    train, test = order[:n_train], order[n_train:]
    return train, test, train[: n_train // 2], train[n_train // 2 :]


def text_solver(method: str, k: int, n: int) -> Any:
    """CoSaMP with at most k iterations, or StoGradMP, or GraSP; words are refitted but by printed methods."""
    most, refit = (k, False) if compared.is_printed(method) else (min(k, ITERATIONS), True)
    if method.startswith("grasp"):
        return skpursuit.GraSP(n_nonzero_coefs=k, max_iter=most, ridge=TEXT_RIDGE / n, tol=1e-4, refit=True)
    if method.startswith("stoch"):
        return compared.stochastic(method, k, most, refit=refit)
    return (skpursuit.CoSaMP if refit else compared.FixedIterationCoSaMP)(
        n_nonzero_coefs=k, max_iter=most, refit=refit
    )


def run_text(
    cell: Cell, data: str | Path | None = None, user_selectors: OwnSelectors = compared.NONE
) -> CellRows:
    """Choose k, fit, and test one method on one split; the first half of the classes is positive."""
    collection = collections(data)[cell["collection"]]
    norms = np.sqrt(np.asarray(collection.X.multiply(collection.X).sum(axis=1)).ravel())
    X = csr_array(diags_array(1.0 / np.where(norms > 0, norms, 1.0)) @ collection.X)  # rows of unit norm
    classes = collection.y
    y = np.where(classes < len(collection.classes) // 2, 1.0, -1.0)
    train, test, first, second = splits(len(y), cell["split"])
    sizes = STAND_IN_SIZES if data is None else SIZES

    def fit(rows: np.ndarray, k: int, y: np.ndarray = y, method: str = cell["method"]) -> tuple[Any, float]:
        selector = compared.make_selector(method, stability=1 / 20, user_selectors=user_selectors)
        solver = text_solver(method, min(k, X.shape[1]), len(rows))
        loss = "logistic" if method.startswith("grasp") else "squared"
        dense = compared.is_printed(method) and not method.startswith("stoch")
        own = X[rows].toarray() if dense else X[rows]
        return compared.timed_fit(own, y[rows], solver, selector, loss, seed=cell["split"])

    def accuracy(result: Any, rows: np.ndarray) -> float:
        return float(np.mean(np.where(X[rows] @ result.coef > 0, 1.0, -1.0) == y[rows]))

    tried = [fit(first, k) for k in sizes]
    k = sizes[int(np.argmax([accuracy(result, second) for result, _ in tried]))]
    result, seconds = fit(train, k)
    exact = result if cell["method"] == "exact" else fit(train, k, method="exact")[0]
    row = {
        "n_train": len(train),
        "d": X.shape[1],
        "k": k,
        "accuracy": accuracy(result, test),
        "accuracy_strict": float(np.mean(np.sign(X[test] @ result.coef) == y[test])),
        "seconds": seconds,
        "seconds_all": seconds + sum(spent for _, spent in tried),
        "share_read": result.entries_read / (max(1, result.n_iter) * X[train].nnz),
        "entries_read": result.entries_read,
        "iterations": result.n_iter,
        "same_words": support_overlap(exact.support, result.support),
        "columns": compared.encode_columns(result.support, X.shape[1]),
    }
    if cell["method"] in ALL_CLASSES:  # one problem per class; the largest decision wins
        labels = np.unique(classes[train])
        scores = [X[test] @ fit(train, k, np.where(classes == label, 1.0, -1.0))[0].coef for label in labels]
        row["accuracy_all"] = float(np.mean(labels[np.argmax(scores, axis=0)] == classes[test]))
    return [row]
