"""Arguments that must be refused, and what a refusal must be: a sentence that names an argument."""

from __future__ import annotations

import re

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

import skpursuit as sk

ARGUMENTS = """
    X y sample_weight weights n_nonzero_coefs max_nonzero_coefs selector solver loss always_include radius
    tol rtol ridge constraint positive batch_size step_size delta Gram Xy norms_squared dictionary
    signals n_splits cv scoring max_iter fit_intercept scale lazy shared_support checkpoint
    callback random_state stop eps time_limit variant budget fraction rows max_recomputed line_search
    precompute memory_limit logistic Poisson CoSaMP Frank-Wolfe ErrorBound gram samples
"""
NAMED = re.compile(r"\b(" + "|".join(ARGUMENTS.split()) + r")\b")
ACCIDENTS = ("zero-size", "broadcast", "not iterable", "unsupported operand", "embedded null")


def judge_refusal(error, table, where):
    """What is wrong with an exception, as a list of (check, message)."""
    kind, text = type(error).__name__, str(error)
    told = f"{kind}: {text[:200]} [{where}]"
    if not isinstance(error, (ValueError, TypeError)) or kind == "LinAlgError":
        return [("raised", told)]
    accident = any(part in text for part in ACCIDENTS)
    if len(text.split()) < 4 or not NAMED.search(text) or accident:
        return [("unclear", told)]
    if table.notes.get("refuse") or table.notes.get("may refuse") or table.extreme:
        return []
    return [("refused", told)]


def small(seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((12, 6)), rng.standard_normal(12)


def bad_sparse(**change):
    """A matrix whose indices lie: what scipy does not look at when it is made."""
    matrix = sp.csr_array(small()[0])
    for name, value in change.items():
        getattr(matrix, name)[-1] = value
    return matrix


def bad_coordinates():
    matrix = sp.coo_array(small()[0])
    matrix.coords[1][3] = 10**6
    return matrix


def changed_in_place():
    X, y = small()
    design = sk.as_design(X)
    sk.minimize(design, y, sk.OMP(2), "certified")
    X *= -3.0
    return sk.minimize(design, y, sk.OMP(2), "certified")


def with_entry(value):
    X = small()[0]
    X[3, 2] = value
    return X


def masked(values):
    return np.ma.MaskedArray(values, mask=np.arange(np.size(values)).reshape(np.shape(values)) % 5 == 0)


def blind(**functions):
    return LinearOperator((12, 6), dtype=float, **functions)


def fitted(X=None, y=None, solver=None, selector="exact", loss="squared", **more):
    given = small()
    X, y = given[0] if X is None else X, given[1] if y is None else y
    return sk.minimize(X, y, sk.OMP(2) if solver is None else solver(), selector, loss, **more)


def estimated(kind="PursuitRegressor", y=None, **parameters):
    X, target = small()
    target = np.where(target > 0, 1, 0) if "Classifier" in kind else target
    return getattr(sk, kind)(**parameters).fit(X, target if y is None else y)


def by_gram(**more):
    return sk.orthogonal_mp_gram(np.eye(3), np.ones(3), tol=1.0, **more)


NAN, INF = float("nan"), float("inf")
SIGNS = np.where(small()[1] > 0, 1.0, -1.0)

# What must be refused: a name, and a function that makes the call.
BAD = {
    "X with NaN": lambda: fitted(with_entry(NAN)),
    "X with infinity": lambda: fitted(with_entry(INF), selector="certified"),
    "sparse X with NaN": lambda: fitted(sp.csc_array(with_entry(NAN))),
    "complex X": lambda: fitted(small()[0] * 1j),
    "text X": lambda: fitted(np.full((12, 6), "a")),
    "X of objects": lambda: fitted(np.full((12, 6), None)),
    "X of one dimension": lambda: fitted(small()[1]),
    "X of three dimensions": lambda: fitted(np.zeros((12, 2, 2))),
    "X without rows": lambda: fitted(np.zeros((0, 6))),
    "X without columns": lambda: fitted(np.zeros((12, 0))),
    "masked X": lambda: fitted(masked(small()[0])),
    "ragged X": lambda: fitted([[1.0, 2.0], [3.0]]),
    "csr index beyond d": lambda: fitted(bad_sparse(indices=600)),
    "csr negative index": lambda: fitted(bad_sparse(indices=-3)),
    "csr pointer beyond the end": lambda: fitted(bad_sparse(indptr=10**6)),
    "coo index beyond d": lambda: fitted(bad_coordinates()),
    "operator without rmatvec": lambda: fitted(blind(matvec=lambda v: np.zeros(12))),
    "operator with NaN": lambda: fitted(
        blind(matvec=lambda v: np.full(12, NAN), rmatvec=lambda v: np.full(6, NAN))
    ),
    "operator of another shape": lambda: fitted(
        blind(matvec=lambda v: np.zeros(12), rmatvec=lambda v: np.zeros(5))
    ),
    "complex operator": lambda: fitted(
        blind(matvec=lambda v: 1j * np.ones(12), rmatvec=lambda v: 1j * np.ones(6))
    ),
    "X changed in place": changed_in_place,
    "y with NaN": lambda: fitted(y=np.full(12, NAN)),
    "y of another length": lambda: fitted(y=np.zeros(11)),
    "complex y": lambda: fitted(y=np.ones(12) * 1j),
    "text y": lambda: fitted(y=np.full(12, "a")),
    "masked y": lambda: fitted(y=masked(small()[1])),
    "y of three dimensions": lambda: fitted(y=np.zeros((12, 1, 1))),
    "y without targets": lambda: fitted(y=np.zeros((12, 0))),
    "labels 0 and 1": lambda: fitted(y=(SIGNS + 1) / 2, loss="logistic"),
    "negative counts": lambda: fitted(y=SIGNS, loss="poisson"),
    "weights of another length": lambda: fitted(sample_weight=np.ones(5)),
    "negative weights": lambda: fitted(sample_weight=-np.ones(12)),
    "weights with NaN": lambda: fitted(sample_weight=np.full(12, NAN)),
    "weights of zero": lambda: fitted(sample_weight=np.zeros(12)),
    "masked weights": lambda: fitted(sample_weight=masked(np.ones(12))),
    "text weights": lambda: fitted(sample_weight="heavy"),
    "unknown loss": lambda: fitted(loss="zzz"),
    "a class as loss": lambda: fitted(loss=sk.Huber),
    "a number as loss": lambda: fitted(loss=3),
    "Huber of delta 0": lambda: sk.Huber(0),
    "a class as solver": lambda: fitted(solver=lambda: sk.OMP),
    "an unknown name as solver": lambda: fitted(solver=lambda: "ompp"),
    "k = 0": lambda: fitted(solver=lambda: sk.OMP(0)),
    "k = 1.5": lambda: fitted(solver=lambda: sk.CoSaMP(1.5)),
    "k = True": lambda: fitted(solver=lambda: sk.GraSP(True)),
    "k = '3'": lambda: fitted(solver=lambda: sk.MatchingPursuit("3")),
    "k beyond d": lambda: fitted(solver=lambda: sk.OMP(7)),
    "CoSaMP k beyond d": lambda: fitted(solver=lambda: sk.CoSaMP(7)),
    "tol negative": lambda: fitted(solver=lambda: sk.OMP(2, tol=-1.0)),
    "tol NaN": lambda: fitted(solver=lambda: sk.OMP(2, tol=NAN)),
    "always_include a number": lambda: fitted(solver=lambda: sk.OMP(2, always_include=5)),
    "always_include text": lambda: fitted(solver=lambda: sk.OMP(2, always_include="ab")),
    "always_include out of range": lambda: fitted(solver=lambda: sk.OMP(2, always_include=[6])),
    "always_include negative": lambda: fitted(solver=lambda: sk.OMP(2, always_include=[-1])),
    "always_include twice": lambda: fitted(solver=lambda: sk.OMP(2, always_include=[1, 1])),
    "always_include beyond k": lambda: fitted(solver=lambda: sk.OMP(2, always_include=[1, 2, 3])),
    "positive with logistic loss": lambda: fitted(
        y=SIGNS, solver=lambda: sk.OMP(2, positive=True), loss="logistic"
    ),
    "positive as text": lambda: fitted(solver=lambda: sk.OMP(2, positive="no")),
    "ridge negative": lambda: fitted(solver=lambda: sk.OMP(2, ridge=-1.0)),
    "max_iter = 0": lambda: fitted(solver=lambda: sk.MatchingPursuit(max_iter=0)),
    "CoSaMP with logistic loss": lambda: fitted(y=SIGNS, solver=lambda: sk.CoSaMP(2), loss="logistic"),
    "a number as constraint": lambda: sk.FrankWolfe(5),
    "unknown step": lambda: sk.FrankWolfe(sk.L1Ball(), line_search="zzz"),
    "unknown variant": lambda: sk.FrankWolfe(sk.L1Ball(), variant="zzz"),
    "lazy as text": lambda: fitted(solver=lambda: sk.FrankWolfe(sk.L1Ball(), lazy="x")),
    "radius 0": lambda: sk.L1Ball(0),
    "radius NaN": lambda: sk.Simplex(NAN),
    "radius as text": lambda: sk.L1Ball("1"),
    "Frank-Wolfe with two targets": lambda: fitted(
        y=np.zeros((12, 2)), solver=lambda: sk.FrankWolfe(sk.L1Ball(1.0))
    ),
    "unknown selector": lambda: fitted(selector="zzz"),
    "a number as selector": lambda: fitted(selector=5),
    "a class as selector": lambda: fitted(selector=sk.Exact),
    "gram with logistic loss": lambda: fitted(y=SIGNS, selector="gram", loss="logistic"),
    "stop = 5": lambda: sk.Greedy(stop=5),
    "Budget(0)": lambda: sk.Budget(0),
    "Stability(0)": lambda: sk.Stability(0),
    "ErrorBound(-1)": lambda: sk.ErrorBound(-1),
    "ErrorBound auto with OMP": lambda: fitted(selector=sk.Greedy(stop=sk.ErrorBound("auto"))),
    "ErrorBound with Uniform": lambda: fitted(selector=sk.Uniform(stop=sk.ErrorBound(1.0))),
    "ErrorBound with Importance": lambda: fitted(selector=sk.Importance(stop=sk.ErrorBound(1.0))),
    "budget -1": lambda: sk.SuccessiveHalving(budget=-1),
    "last 0": lambda: sk.Quantized(max_recomputed=0),
    "memory_limit 0": lambda: sk.Gram(memory_limit=0),
    "random_state -1": lambda: fitted(random_state=-1),
    "random_state as text": lambda: fitted(random_state="x"),
    "callback = 5": lambda: fitted(callback=5),
    "time_limit -1": lambda: fitted(time_limit=-1),
    "checkpoint in no folder": lambda: fitted(checkpoint="/nowhere/at/all.ckpt"),
    "checkpoint with NUL": lambda: fitted(checkpoint="a\0b"),
    "fit_intercept as text": lambda: estimated(fit_intercept="zzz"),
    "scale NaN": lambda: estimated(scale=NAN),
    "shared_support a list": lambda: estimated(shared_support=[]),
    "estimator k = 0": lambda: estimated(n_nonzero_coefs=0),
    "estimator solver": lambda: estimated(solver="zzz"),
    "estimator ridge without effect": lambda: estimated(solver="fw", ridge=0.1),
    "scoring = -3": lambda: estimated("PursuitRegressorCV", scoring=-3),
    "criterion": lambda: estimated("PursuitRegressorCV", scoring="zzz"),
    "cv = 1": lambda: estimated("PursuitClassifierCV", cv=1),
    "one class": lambda: estimated("PursuitClassifier", y=np.ones(12)),
    "precompute": lambda: estimated("OrthogonalMatchingPursuit", precompute="x"),
    "Gram not square": lambda: sk.orthogonal_mp_gram(np.ones((3, 2)), np.ones(3)),
    "Gram with NaN": lambda: sk.orthogonal_mp_gram(np.full((3, 3), NAN), np.ones(3)),
    "Xy of another length": lambda: sk.orthogonal_mp_gram(np.eye(3), np.ones(2)),
    "norms_squared missing": lambda: by_gram(),
    "norms_squared negative": lambda: sk.orthogonal_mp_gram(
        np.eye(3), np.ones(3), tol=1.0, norms_squared=[-1.0]
    ),
    "norms_squared NaN": lambda: sk.orthogonal_mp_gram(np.eye(3), np.ones(3), tol=1.0, norms_squared=[NAN]),
    "coder without atoms": lambda: sk.PursuitCoder(np.zeros((0, 3)), 1).transform(np.ones((1, 3))),
    "coder with NaN": lambda: sk.PursuitCoder(np.eye(3), 1).transform(np.full((1, 3), NAN)),
    "signals of another length": lambda: sk.PursuitCoder(np.eye(3), 1).transform(np.ones((1, 2))),
}


def bad_argument(rng, table):
    """One call that must be refused."""
    name = str(rng.choice(list(BAD)))
    table.notes["call"] = table.notes["refuse"] = name
    table.family = "bad arguments"
    BAD[name]()
    return []


PROGRAMS = {bad_argument: 5}
