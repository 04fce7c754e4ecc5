"""Tasks of peers.toml: the function of each library that solves a row, and what its answer is worth."""

from __future__ import annotations

from common import Function, chain, documents, least_penalty, spams_omp, with_signal  # isort: skip  # before NumPy

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from cases import defaults, libraries
from cases.coding import sparse_signals

import skpursuit
from skpursuit import metrics

#: What makes the function of each peer (and fails if it is not there); error, recovery and note of an answer.
Task = tuple[dict[str, Callable[[], Function]], Callable[[Any], dict[str, Any]]]


def relative(left: np.ndarray, whole: np.ndarray) -> float:
    """A norm over another one."""
    return float(np.linalg.norm(left) / np.linalg.norm(whole))


def pursuit(row: dict[str, Any]) -> Task:
    """Columns chosen for one y; functions return them."""
    n, d, k, rng = row["n"], row["d"], row["k"], np.random.default_rng(row["k"])
    if row["family"].startswith("correlated"):
        X = chain(rng, n, d, 0.9)
    else:
        X = rng.standard_t(2, (n, d)) if "tails" in row["family"] else rng.standard_normal((n, d))
    X, y, w = with_signal(X / np.linalg.norm(X, axis=0), seed=0, k=k)
    X, y = X.astype(row["dtype"]), y.astype(row["dtype"])
    F, peak = np.asfortranarray(X), np.abs(X.T @ y).max() / n  # the largest useful penalty of L1

    def ours(X, swaps=False):
        solver = skpursuit.OMP(n_nonzero_coefs=k, swaps=swaps)
        return lambda: skpursuit.minimize(X, y, solver).support

    def omp(module, X, **given):
        function = import_module(module).orthogonal_mp
        return lambda: np.flatnonzero(function(X, y, n_nonzero_coefs=k, **given))

    def spams():
        code = spams_omp(X, y, k)()
        return lambda: code().indices

    def fitted(model):
        return lambda: np.flatnonzero(model.fit(X, y).coef_)

    def lasso(module, **given):
        """L1 with the penalty, found beforehand, that leaves k columns or the nearest below."""
        model = import_module(module).Lasso(fit_intercept=False, **given)
        count = lambda a: np.count_nonzero(model.set_params(alpha=a * peak).fit(X, y).coef_)  # noqa: E731
        return fitted(model.set_params(alpha=least_penalty(count, k, -2.0, 8) * peak))

    def fastcan():
        model = import_module("fastcan").FastCan(n_features_to_select=k, verbose=0)
        return lambda: model.fit(X, y).indices_

    def skscope():
        from skscope import OMPSolver

        jnp = import_module("jax.numpy")
        A, b = jnp.array(X), jnp.array(y)
        return lambda: np.flatnonzero(OMPSolver(d, k).solve(lambda w: jnp.sum((b - A @ w) ** 2), jit=True))

    def worth(columns):
        A, found = X[:, np.asarray(columns, dtype=int)].astype(float), np.zeros(d)
        found[np.asarray(columns, dtype=int)] = 1.0
        error = relative(y - A @ np.linalg.lstsq(A, y.astype(float), rcond=None)[0], y)
        return {"error": error, "recovery": metrics.f_measure(w, found), "note": f"{A.shape[1]} columns"}

    abess = {"support_size": k, "fit_intercept": False}
    return {
        "skpursuit": lambda: ours(X),
        "prepared": lambda: ours(skpursuit.as_design(X)),
        "swaps": lambda: ours(X, swaps=True),
        "drop-in": lambda: omp("skpursuit", X),
        "scikit-learn": lambda: omp("sklearn.linear_model", F, precompute=n > 10 * d),
        "SPAMS": spams,
        "abess": lambda: fitted(import_module("abess").LinearRegression(**abess)),
        "fastcan": fastcan,
        "skscope": skscope,
        "celer": lambda: lasso("celer"),
        "skglm": lambda: lasso("skglm", tol=1e-3 * peak),  # which is absolute there
    }, worth


def codes(row: dict[str, Any]) -> Task:
    """Codes of signals; functions return them, a row or a column per signal."""
    k = row["k"]
    atoms, signals = sparse_signals(row["n"], row["d"], k, row["count"], np.dtype(row["dtype"]), 0)
    coder = skpursuit.PursuitCoder(atoms, k, n_jobs=1)
    gain = skpursuit.PursuitCoder(atoms, k, n_jobs=1, atom_score="gain")

    def scikit_learn():
        function = import_module("sklearn.linear_model").orthogonal_mp
        return lambda: function(atoms.T, signals.T, n_nonzero_coefs=k, precompute=True).T

    def spams():
        code = spams_omp(atoms.T, signals.T, k)()
        return lambda: code().T

    return {
        "skpursuit": lambda: lambda: coder.transform(signals),
        "gain": lambda: lambda: gain.transform(signals),
        "scikit-learn": scikit_learn,
        "SPAMS": spams,
    }, lambda found: {"error": relative(signals - found @ atoms, signals)}


def top(row: dict[str, Any]) -> Task:
    """The largest entries of X^T r for twenty r, one after the other."""
    rng, k = np.random.default_rng(0), row["k"]
    X = rng.standard_normal((row["n"], row["d"])).astype(row["dtype"])
    asked = list(rng.standard_normal((20, row["n"])).astype(row["dtype"]))

    def ours():
        from skpursuit.selectors import Query

        design, selector = skpursuit.as_design(X), skpursuit.Certified()
        design.codes(False)
        return lambda: [selector.select(design, Query(r.astype(float), k)).columns for r in asked]

    def faiss():
        index = import_module("faiss").IndexFlatIP(row["n"])  # signed: of r and -r together, one pass
        index.add(np.ascontiguousarray(X.T, dtype=np.float32))

        def search(r):
            values, columns = index.search(np.stack([r, -r]).astype(np.float32), k)
            return columns.ravel()[np.argsort(-values.ravel())[:k]]

        return lambda: [search(r) for r in asked]

    def plain():
        return lambda: [np.argpartition(-np.abs(r @ X), k - 1)[:k] for r in asked]

    def worth(found):
        true = [np.argsort(-np.abs(X.T @ r))[:k] for r in asked]
        same = [len(np.intersect1d(best, columns)) / k for best, columns in zip(true, found)]
        return {"recovery": float(np.mean(same))}

    return {"skpursuit": ours, "NumPy": plain, "faiss": faiss}, worth


def of_splits(made: list[Any], names: dict[str, str], figures: Any, error: Any) -> Task:
    """Models of several splits, of cases/; functions return them all, errors are means over the splits."""

    def maker(name):
        fits = [functions[name] for functions, _ in made]
        return lambda: (name, [fit() for fit in fits])

    def worth(answer):
        name, models = answer
        told = [figures(name, {name: model}, facts) for model, (_, facts) in zip(models, made)]
        size = np.mean([one["features"] for one in told])
        return {"error": float(np.mean([error(one) for one in told])), "note": f"{size:.0f} features"}

    return {peer: lambda name=name: maker(name) for peer, name in names.items()}, worth


def text(row: dict[str, Any]) -> Task:
    """Classifiers of k words, of three splits."""
    X, y = documents(2, row["n"], row["d"])
    made = [libraries.text_fits(X, y, row["k"], split) for split in range(3)]
    names = {"skpursuit": "PursuitClassifier, ovr_shared", "scikit-learn": "L1", "abess": "abess"}
    return of_splits(made, names, libraries.text_figures, lambda told: 1.0 - told["accuracy"])


def tables(row: dict[str, Any]) -> Task:
    """Default models, of five splits of the data of a name."""
    kind = "regression" if row["family"] in defaults.SETS["regression"] else "classes"
    made = [defaults.fits(kind, defaults.SETS[kind][row["family"]], split) for split in range(5)]
    names = {"skpursuit": "ours", "scikit-learn": "L1", "abess": "abess"}
    error = lambda told: told["log loss"] if kind == "classes" else 1.0 - told["R2"]  # noqa: E731
    return of_splits(made, names, defaults.figures, error)


def dictionary(row: dict[str, Any]) -> Task:
    """Atoms learned in two seconds; functions return them, a row each."""
    n, d, k = row["n"], row["d"], row["k"]
    signals = sparse_signals(n, d, k, 20_000, np.float64, 0)[1]
    if row["family"] != "Gaussian":
        from sklearn.datasets import load_sample_image
        from sklearn.feature_extraction.image import extract_patches_2d

        side, picture = round(n**0.5), load_sample_image("china.jpg").mean(axis=2) / 255
        signals = extract_patches_2d(picture, (side, side), max_patches=20_000, random_state=0)
        signals = signals.reshape(len(signals), -1)
        signals -= signals.mean(axis=1, keepdims=True)
    learner = skpursuit.DictionaryLearner(
        d, n_nonzero_coefs=k, max_iter=10**6, time_limit=2.0, n_jobs=1, atom_score="gain", random_state=0
    )

    def scikit_learn():
        from sklearn.decomposition import MiniBatchDictionaryLearning

        began, rng = time.perf_counter(), np.random.default_rng(0)
        model = MiniBatchDictionaryLearning(d, batch_size=512, fit_algorithm="cd", random_state=0)
        while time.perf_counter() - began < 2.0:
            model.partial_fit(signals[rng.choice(len(signals), 512, replace=False)])
        return model.components_

    def spams():
        learn, Y = import_module("spams").trainDL, np.asfortranarray(signals.T)
        given = {"K": d, "lambda1": k, "mode": 3, "iter": -2, "numThreads": 1, "batchsize": 512}
        return lambda: learn(Y, verbose=False, **given).T

    def worth(atoms):
        coder = skpursuit.PursuitCoder(np.ascontiguousarray(atoms), k, n_jobs=1, atom_score="gain")
        return {"error": relative(signals - coder.transform(signals) @ coder.dictionary, signals)}

    ours = lambda: learner.fit(signals).components_  # noqa: E731
    return {"skpursuit": lambda: ours, "scikit-learn": lambda: scikit_learn, "SPAMS": spams}, worth


def ball(row: dict[str, Any]) -> Task:
    """Least squares on the l1 ball to a gap; functions return coefficients."""
    d = row["d"]
    X, y, w = skpursuit.datasets.make_sparse_signal(row["n"], d, row["k"], snr=30.0, random_state=0)
    radius, gap = float(np.abs(w).sum()), 1e-6 * float(y @ y) / 2
    limits = {"max_iter": 10**6, "gap_tol": gap}
    solver = skpursuit.FrankWolfe(skpursuit.L1Ball(radius), variant="corrective", **limits)

    def pairwise():
        """Pairwise Frank-Wolfe; vertex v is that of column v % d and its sign; Gram columns are made once."""
        gram, share, b = {}, np.zeros(2 * d), X.T @ y

        def column(v):
            if v % d not in gram:
                gram[v % d] = radius * (X.T @ X[:, v % d])
            return gram[v % d] if v < d else -gram[v % d]

        both = lambda g: radius * np.concatenate([g, -g])  # noqa: E731
        new = int(both(-b).argmin())
        share[new], g = 1.0, column(new) - b
        while True:
            slopes, active = both(g), np.flatnonzero(share)
            new, far = int(slopes.argmin()), int(active[slopes[active].argmax()])
            if share[active] @ slopes[active] - slopes[new] <= gap:
                return radius * (share[:d] - share[d:])
            move = column(new) - column(far)
            bends = both(move)
            step = min(share[far], (slopes[far] - slopes[new]) / (bends[new] - bends[far]))
            share[new], share[far], g = share[new] + step, share[far] - step, g + step * move

    def celer():
        """The penalty whose solution has this l1 norm is found beforehand."""
        model = import_module("celer").Lasso(fit_intercept=False, tol=1e-6)
        peak = np.abs(X.T @ y).max() / len(X)
        norm = lambda a: np.abs(model.set_params(alpha=a * peak).fit(X, y).coef_).sum()  # noqa: E731
        model.set_params(alpha=least_penalty(norm, radius, -5.0, 30) * peak)
        return lambda: model.fit(X, y).coef_

    def worth(found):
        gradient, norm = X.T @ (X @ found - y), np.abs(found).sum() / radius
        above = float(gradient @ found + radius * np.abs(gradient).max())  # a bound: the duality gap
        return {"error": above / (float(y @ y) / 2), "note": f"norm {norm:.6f}"}

    ours = lambda: skpursuit.minimize(X, y, solver).coef  # noqa: E731
    return {"skpursuit": lambda: ours, "NumPy": lambda: pairwise, "celer": celer}, worth
