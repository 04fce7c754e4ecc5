"""Small calls of everything public, by name: what `same_bits.py` compares between two trees.

Where a call has many independent choices (solver, loss, source, selector, ...), the cases are such that every
pair of choices occurs in one of them at least. Whatever a case returns is compared, an exception too, so
choices that do not go together stay in: that they are refused is behaviour as well.
"""

import itertools
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.datasets import load_iris

import skpursuit as sk
from skpursuit import datasets, metrics, theory

Case = Callable[[], Any]
K = 4
SOLVERS = {
    "omp": lambda ridge: sk.OMP(K, ridge=ridge),
    "omp tol": lambda ridge: sk.OMP(rtol=0.6, ridge=ridge, max_iter=6),
    "mp": lambda ridge: sk.MatchingPursuit(K, max_iter=8),
    "cosamp": lambda ridge: sk.CoSaMP(K, max_iter=5),
    "cosamp refit": lambda ridge: sk.CoSaMP(K, max_iter=3, refit=True),
    "grasp": lambda ridge: sk.GraSP(K, max_iter=4, ridge=ridge),
    "grasp refit": lambda ridge: sk.GraSP(K, max_iter=3, ridge=ridge, refit=True),
    "fw": lambda ridge: sk.FrankWolfe(sk.L1Ball(2.0), 15),
    "fw simplex": lambda ridge: sk.FrankWolfe(sk.Simplex(2.0), 15, "open-loop"),
    "fw lazy": lambda ridge: sk.FrankWolfe(sk.L1Ball(2.0), 15, lazy=True),
    "fw away": lambda ridge: sk.FrankWolfe(sk.L1Ball(2.0), 15, "backtracking", "away"),
    "fw pairwise": lambda ridge: sk.FrankWolfe(sk.Simplex(2.0), 15, "exact", "pairwise", lazy=True),
    "fw blended": lambda ridge: sk.FrankWolfe(sk.L1Ball(2.0), 15, "exact", "blended"),
    "stoiht": lambda ridge: sk.StoIHT(K, max_iter=8, batch_size=150, step_size=0.002),
    "stogradmp": lambda ridge: sk.StoGradMP(K, max_iter=4, batch_size=150, ridge=ridge),
}
SELECTORS = {
    name: lambda name=name: name
    for name in (
        "auto", "exact", "gram", "certified", "sketch", "halving", "halving-random", "greedy", "uniform",
        "importance", "reject",
    )
} | {
    "doubling": lambda: sk.SuccessiveHalving(doubling=True),
    "rules": lambda: sk.Greedy(stop=sk.Stability(0.05, track=2) | sk.Budget(0.4)),
    "error bound": lambda: sk.Greedy(stop=sk.ErrorBound(5.0)),
    "heuristic auto": lambda: sk.Auto(heuristic=True),
}  # fmt: skip
ASKED = ("auto", "exact", "gram", "certified", "halving", "sketch", "greedy")  # where cases would be many
LOSSES = {
    "squared": lambda: "squared",
    "logistic": lambda: "logistic",
    "huber": lambda: sk.Huber(0.7),
    "poisson": lambda: "poisson",
}
SOURCES = {
    "C": lambda X: X,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "memmap": lambda X: _mapped(X),
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: np.round(4 * X).astype(np.int32),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "operator": aslinearoperator,
    "design": sk.as_design,
}


def every_case() -> dict[str, Case]:
    """All cases by name."""
    groups = [
        pairs_of_minimize, weighted, several_targets, multinomial, constrained, large, prepared, hard_data,
        stopping, checkpoints, regressors, classifiers, warm_starts, chosen_sizes, drop_in, functions, coders,
        learners, helpers, refusals, changed,
    ]  # fmt: skip
    return {f"{group.__name__}/{name}": case for group in groups for name, case in group()}


def pairwise(*axes: Any) -> list[tuple[Any, ...]]:
    """Combinations in which every pair of choices of two axes occurs."""
    axes = tuple(tuple(axis) for axis in axes)
    places = range(len(axes))
    couples = list(itertools.combinations(places, 2))
    needed = {((i, a), (j, b)) for i, j in couples for a in axes[i] for b in axes[j]}
    found = []
    while needed:
        (i, a), (j, b) = min(needed, key=repr)
        case: dict[int, Any] = {i: a, j: b}
        for place in places:  # one axis after the other, each as useful as it can be
            if place not in case:
                case[place] = max(axes[place], key=lambda x: _gain(needed, case, place, x))
        found.append(tuple(case[place] for place in places))
        needed -= set(itertools.combinations(enumerate(found[-1]), 2))
    return found


def _gain(needed: set[Any], case: dict[int, Any], place: int, choice: Any) -> int:
    with_others = (((other, case[other]), (place, choice)) for other in case)
    return sum((a, b) in needed if a[0] < b[0] else (b, a) in needed for a, b in with_others)


# -- data -----------------------------------------------------------------------------------------------


@cache
def matrix(n: int = 600, d: int = 40, seed: int = 7) -> np.ndarray:
    """Half of the entries are zero, column 3 entirely; column 9 repeats column 5."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.5, rng.standard_normal((n, d)), 0.0)
    X[:, 3] = 0.0
    X[:, 9] = X[:, 5]
    return X


def targets(loss: str, n: int = 600, many: int = 0, seed: int = 3) -> np.ndarray:
    """Targets that some columns of the matrix explain in part."""
    rng = np.random.default_rng(seed)
    shape = (n, many) if many else (n,)
    w = np.zeros((40, *shape[1:]))
    w[[1, 5, 11, 20, 33]] = rng.standard_normal((5, *shape[1:]))
    z = matrix(n) @ w * 0.4 + 0.5 * rng.standard_normal(shape)
    return {"logistic": np.where(z > 0, 1.0, -1.0), "poisson": np.floor(np.exp(z))}.get(loss, z)


def weights(n: int = 600) -> np.ndarray:
    """Some of them zero."""
    rng = np.random.default_rng(11)
    return np.where(rng.random(n) < 0.1, 0.0, rng.uniform(0.2, 3.0, n))


@cache
def wide(n: int = 2400, d: int = 3600, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    """As large as quantised copies and products made ahead of time need to come into play."""
    X, y, _ = datasets.make_sparse_signal(n, d, 20, dtype=np.dtype(dtype), random_state=1)
    return X, y


def _mapped(X: np.ndarray) -> np.ndarray:
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        X.tofile(file.name)
        return np.memmap(file.name, dtype=X.dtype, mode="r", shape=X.shape)


# -- numbers that mean the same in trees whose units differ -----------------------------------------------


@cache
def first_edition() -> bool:
    """Whether a ridge stands beside the sum of the losses, not their mean, and columns are scaled to norm 1.

    Such a tree refuses a ridge with squared loss.
    """
    try:
        sk.minimize(np.eye(2), np.ones(2), sk.OMP(1, ridge=0.5))
    except ValueError:
        return True
    return False


def total(given: np.ndarray | None, n: int) -> float:
    """The sum of the weights."""
    return float(n) if given is None else float(given[given > 0].sum())


def ridge(loss: str, given: np.ndarray | None = None, n: int = 600, scaled: bool = False) -> float:
    """A small ridge, none with squared loss; `scaled`: of columns that an estimator scales."""
    per_row = 0.0 if loss == "squared" else 2.0**-14
    return per_row * total(given, n) if first_edition() and not scaled else per_row


def radius(value: float, given: np.ndarray | None, n: int, scaled: bool) -> float:
    """A radius of columns that an estimator may scale."""
    return value * np.sqrt(total(given, n)) if first_edition() and scaled else value


def unguarded() -> dict[str, Any]:
    """What has the best number of coefficients taken, even if a constant is about as good."""
    return {} if first_edition() else {"null_guard": None}


# -- minimize -------------------------------------------------------------------------------------------


def pairs_of_minimize() -> Iterator[tuple[str, Case]]:
    """Solvers, losses, sources and selectors."""

    def run(solver: str, loss: str, source: str, selector: str) -> Any:
        X = SOURCES[source](matrix())
        chosen = SOLVERS[solver](ridge(loss)), SELECTORS[selector](), LOSSES[loss]()
        return sk.minimize(X, targets(loss), *chosen, random_state=5)

    for case in pairwise(SOLVERS, LOSSES, SOURCES, SELECTORS):
        yield ", ".join(case), partial(run, *case)


def weighted() -> Iterator[tuple[str, Case]]:
    """Sample weights."""

    def run(solver: str, loss: str, source: str, selector: str) -> Any:
        X = SOURCES[source](matrix())
        chosen = SOLVERS[solver](ridge(loss, weights())), SELECTORS[selector](), LOSSES[loss]()
        return sk.minimize(X, targets(loss), *chosen, sample_weight=weights(), random_state=5)

    solvers = ("omp", "mp", "cosamp", "grasp", "fw", "fw away", "stoiht", "stogradmp")
    sources = ("C", "F", "float32", "csr", "csc", "operator")
    for case in pairwise(solvers, LOSSES, sources, ASKED):
        yield ", ".join(case), partial(run, *case)


def several_targets() -> Iterator[tuple[str, Case]]:
    """Targets that share their columns."""

    def run(solver: str, loss: str, source: str, selector: str, weight: str) -> Any:
        X, y = SOURCES[source](matrix()), targets(loss, many=3)
        given = weights() if weight == "weights" else None
        chosen = SOLVERS[solver](ridge(loss, given)), SELECTORS[selector](), LOSSES[loss]()
        return sk.minimize(X, y, *chosen, sample_weight=given, random_state=5)

    solvers = ("omp", "mp", "cosamp", "grasp", "fw", "stoiht")
    selectors = ("auto", "exact", "gram", "certified", "sketch", "halving", "greedy", "importance", "reject")
    for case in pairwise(solvers, LOSSES, ("C", "F", "float32", "csr"), selectors, ("weights", "no weights")):
        yield ", ".join(case), partial(run, *case)


def multinomial() -> Iterator[tuple[str, Case]]:
    """Class labels whose probabilities are coupled."""

    def run(solver: str, source: str, selector: str, weight: str) -> Any:
        y = np.digitize(targets("squared"), [-0.5, 0.5])
        given = weights() if weight == "weights" else None
        chosen = SOLVERS[solver](ridge("multinomial", given)), SELECTORS[selector]()
        X = SOURCES[source](matrix())
        return sk.minimize(X, y, *chosen, sk.Multinomial(), sample_weight=given, random_state=5)

    solvers, sources = ("omp", "mp", "grasp", "fw"), ("C", "float32", "csr")
    for case in pairwise(solvers, sources, ASKED, ("weights", "none")):
        yield ", ".join(case), partial(run, *case)


def constrained() -> Iterator[tuple[str, Case]]:
    """Coefficients of one sign, and columns that must be in the model."""
    solvers = {
        "positive": lambda: sk.OMP(K, positive=True),
        "forced": lambda: sk.OMP(6, forced=(7, 2)),
        "forced twins": lambda: sk.OMP(6, forced=(9, 5)),
        "forced zero": lambda: sk.OMP(6, forced=(3,)),
        "positive, forced": lambda: sk.OMP(6, forced=(2,), positive=True),
    }

    def run(solver: str, source: str, selector: str, loss: str) -> Any:
        chosen = solvers[solver](), SELECTORS[selector](), LOSSES[loss]()
        return sk.minimize(SOURCES[source](matrix()), targets(loss), *chosen, random_state=5)

    for case in pairwise(solvers, ("C", "float32", "csr"), ASKED, ("squared", "huber")):
        yield ", ".join(case), partial(run, *case)


def large() -> Iterator[tuple[str, Case]]:
    """Data large enough for codes and for halving to work on them."""
    solvers = {
        "omp": lambda: sk.OMP(20),
        "mp": lambda: sk.MatchingPursuit(20, max_iter=30),
        "cosamp": lambda: sk.CoSaMP(15, max_iter=3),
        "fw away": lambda: sk.FrankWolfe(sk.L1Ball(5.0), 40, variant="away"),
        "fw": lambda: sk.FrankWolfe(sk.L1Ball(5.0), 60),
    }
    selectors = (*ASKED, "halving-random", "uniform")

    def run(solver: str, selector: str, source: str) -> Any:
        X, y = wide(dtype="float32" if source == "float32" else "float64")
        X = np.asfortranarray(X) if source == "F" else X
        return sk.minimize(X, y, solvers[solver](), SELECTORS[selector](), random_state=5)

    for case in pairwise(solvers, selectors, ("C", "F", "float32")):
        yield ", ".join(case), partial(run, *case)

    def targets_at_once(selector: str) -> Any:
        X, y = wide()
        Y = np.column_stack([y, np.roll(y, 1), y[::-1]])
        return sk.minimize(X, Y, sk.OMP(10), selector, random_state=5)

    for selector in ("exact", "certified", "gram"):
        yield f"omp, {selector}, 3 targets", partial(targets_at_once, selector)

    def logistic(selector: str) -> Any:
        X, y = wide()
        solver = sk.OMP(8, ridge=ridge("logistic", n=len(y)))
        return sk.minimize(X, np.where(y > 0, 1.0, -1.0), solver, selector, "logistic")

    for selector in ("exact", "certified", "sketch", "halving"):
        yield f"omp, {selector}, logistic", partial(logistic, selector)


def prepared() -> Iterator[tuple[str, Case]]:
    """One design for two targets: what the first fit keeps serves the second."""

    def run(selector: str, source: str) -> Any:
        X, y = wide(1200, 1500)
        design = sk.as_design(sp.csr_array(np.where(np.abs(X) > 0.04, X, 0.0)) if source == "csr" else X)
        return [sk.minimize(design, t, sk.OMP(12), selector, random_state=5) for t in (y, np.roll(y, 7), y)]

    for case in pairwise(ASKED, ("C", "csr")):
        yield ", ".join(case), partial(run, *case)


def hard_data() -> Iterator[tuple[str, Case]]:
    """Dependent columns, wide scales, offsets, targets that are zero or fitted at once."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 30))
    y = X[:, :4] @ np.array([2.0, -1.0, 0.5, 0.1]) + 0.1 * rng.standard_normal(80)
    data = {
        "dependent": (X[:, :6] @ rng.standard_normal((6, 30)), y),
        "copies": (X[:, rng.integers(0, 8, 30)], y),
        "scales": (X * 10.0 ** rng.uniform(-8, 8, 30), y),
        "huge": (X * 1e150, y * 1e150),
        "tiny": (X * 1e-150, y * 1e-150),
        "offset": (X + 1e6, y),
        "zero y": (X, 0 * y),
        "exact fit": (X, X[:, 3] * 2.0),
        "one column": (X[:, :1], y),
        "one row": (X[:1], y[:1]),
        "wide": (X.T.copy(), y[:30]),
        "constant column": (np.column_stack([np.ones(80), X]), y + 5),
    }

    def run(name: str, solver: str, selector: str) -> Any:
        return sk.minimize(*data[name], SOLVERS[solver](0.0), selector, random_state=5)

    for case in pairwise(data, ("omp", "mp", "cosamp", "grasp", "fw", "fw away"), ASKED):
        yield ", ".join(case), partial(run, *case)


def stopping() -> Iterator[tuple[str, Case]]:
    """Tolerances, limits and callbacks."""
    X, y = matrix(), targets("squared")
    rounded = targets("logistic")
    ways = {
        "tol": lambda: sk.minimize(X, y, sk.OMP(tol=200.0)),
        "rtol": lambda: sk.minimize(X, y, sk.OMP(rtol=0.8)),
        "tol and number": lambda: sk.minimize(X, y, sk.OMP(3, tol=1e-9)),
        "max_iter": lambda: sk.minimize(X, y, sk.OMP(10, max_iter=3)),
        "callback": lambda: sk.minimize(X, y, sk.OMP(10), callback=lambda record: record.iteration == 4),
        "mp tol": lambda: sk.minimize(X, y, sk.MatchingPursuit(tol=250.0)),
        "cosamp rtol": lambda: sk.minimize(X, y, sk.CoSaMP(5, rtol=0.9)),
        "fw gap": lambda: sk.minimize(X, y, sk.FrankWolfe(sk.L1Ball(1.0), 500, tol=5.0)),
        "logistic tol": lambda: sk.minimize(
            X, rounded, sk.OMP(10, tol=0.01, ridge=ridge("logistic")), loss="logistic"
        ),
        "no limit": lambda: sk.minimize(X[:, :12], y, sk.OMP()),
        "every column": lambda: sk.minimize(X, y, sk.OMP(40)),
        "time limit": lambda: sk.minimize(X, y, sk.OMP(5), time_limit=1e9),
    }
    yield from ways.items()


def checkpoints() -> Iterator[tuple[str, Case]]:
    """Stopped by a callback, and gone on from the file."""

    def run(solver: str, selector: str, loss: str, stop_at: int) -> Any:
        X, y = matrix(), targets(loss)
        with tempfile.TemporaryDirectory() as folder:
            call = partial(
                sk.minimize,
                *(X, y, SOLVERS[solver](ridge(loss)), SELECTORS[selector](), LOSSES[loss]()),
                random_state=5,
                checkpoint=sk.Checkpoint(Path(folder) / "run", every=0.0),
            )
            return call(callback=lambda record: record.iteration == stop_at), call(), call()

    solvers = ("omp", "mp", "cosamp", "grasp", "fw", "fw away", "fw blended", "stoiht")
    selectors = ("auto", "exact", "gram", "certified", "sketch", "halving-random", "importance")
    for case in pairwise(solvers, selectors, ("squared", "logistic"), (0, 2)):
        yield ", ".join(map(str, case)), partial(run, *case)


# -- estimators -----------------------------------------------------------------------------------------

SOLVER_CHOICES = {name: lambda ridge, name=name: name for name in ("omp", "mp", "cosamp", "grasp", "fw")} | {
    "OMP object": lambda ridge: sk.OMP(5, ridge=ridge),
    "forcing object": lambda ridge: sk.OMP(5, forced=(2,), ridge=ridge),
    "positive object": lambda ridge: sk.OMP(5, positive=True),
    "CoSaMP object": lambda ridge: sk.CoSaMP(5, max_iter=4),
    "GraSP object": lambda ridge: sk.GraSP(5, ridge=ridge, max_iter=4),
    "MP object": lambda ridge: sk.MatchingPursuit(5, max_iter=20),
    "FW object": lambda ridge: sk.FrankWolfe(sk.L1Ball(3.0), 20, variant="pairwise"),
}
TABLES = {
    "C": lambda X: X,
    "F float32": lambda X: np.asfortranarray(X, dtype=np.float32),
    "csr": sp.csr_array,
    "shifted": lambda X: X * np.linspace(0.1, 20.0, X.shape[1]) + 100.0,
    "csc": sp.csc_array,
}


def regressors() -> Iterator[tuple[str, Case]]:
    """Centring, scaling, weights and several targets around every solver."""

    def run(solver: str, loss: str, table: str, selector: str, view: str, y: str, weight: str) -> Any:
        X = TABLES[table](matrix(300))
        goal = targets(loss, 300, many=2 if "targets" in y else 0)
        given = weights(300) if weight == "weights" else None
        model = sk.PursuitRegressor(
            solver=SOLVER_CHOICES[solver](ridge(loss, given, 300, "scaled" in view)),
            selector=selector,
            loss=LOSSES[loss](),
            n_nonzero_coefs=5,
            fit_intercept="intercept" in view,
            normalize="scaled" in view,
            shared_support=y == "shared targets",
            max_iter=None if solver == "omp" else 8,
            radius=radius(2.0, given, 300, "scaled" in view),
            ridge=ridge(loss, given, 300, "scaled" in view) or None,
            random_state=0,
        )
        model.fit(X, goal, sample_weight=given)
        return model, model.predict(X)

    views = ("plain", "intercept", "scaled", "intercept scaled")
    axes = SOLVER_CHOICES, ("squared", "huber", "poisson"), TABLES, ASKED, views
    for case in pairwise(*axes, ("one target", "targets", "shared targets"), ("weights", "no weights")):
        yield ", ".join(case), partial(run, *case)


def classifiers() -> Iterator[tuple[str, Case]]:
    """Two classes and three, one against the rest or all at once."""

    def run(solver: str, loss: str, table: str, selector: str, view: str, classes: str, weight: str) -> Any:
        X, z = TABLES[table](matrix(300)), targets("squared", 300)
        y = np.array(["a", "b", "c"])[np.digitize(z, [0.0] if classes == "two" else [-0.4, 0.4])]
        given = weights(300) if weight == "weights" else None
        model = sk.PursuitClassifier(
            solver=SOLVER_CHOICES[solver](ridge(loss, given, 300, "scaled" in view)),
            selector=selector,
            loss=LOSSES[loss](),
            n_nonzero_coefs=4,
            fit_intercept="intercept" in view,
            normalize="scaled" in view,
            multi_class="multinomial" if classes == "multinomial" else "ovr",
            shared_support=classes == "shared",
            max_iter=None if solver == "omp" else 6,
            radius=radius(2.0, given, 300, "scaled" in view),
            class_weight="balanced" if weight == "balanced" else None,
            random_state=0,
        )
        model.fit(X, y, sample_weight=given)
        chances = model.predict_proba(X) if hasattr(model, "predict_proba") else None
        return model, model.decision_function(X), chances

    views = ("plain", "intercept", "scaled", "intercept scaled")
    solvers = ("omp", "mp", "cosamp", "grasp", "fw", "OMP object", "GraSP object")
    losses = ("logistic", "squared", "huber")
    classes, given = ("two", "ovr", "shared", "multinomial"), ("weights", "balanced", "none")
    for case in pairwise(solvers, losses, TABLES, ASKED, views, classes, given):
        yield ", ".join(case), partial(run, *case)
    for selector in ("auto", "exact", "halving"):
        for table in ("C", "csr"):
            case = ("omp", "logistic", table, selector, "intercept scaled", "multinomial", "weights")
            yield ", ".join(case), partial(run, *case)


def warm_starts() -> Iterator[tuple[str, Case]]:
    """A second fit that begins where the first ended."""

    def run(solver: str, view: str, many: int) -> Any:
        model = sk.PursuitRegressor(
            solver=solver,
            n_nonzero_coefs=3,
            normalize=view == "scaled",
            warm_start=True,
            radius=radius(2.0, None, 300, view == "scaled"),
            max_iter=4,
            random_state=0,
        )
        X, y = matrix(300), targets("squared", 300, many)
        first = model.fit(X, y).coef_.copy()
        return first, model.set_params(n_nonzero_coefs=6, max_iter=10).fit(X, y)

    for case in pairwise(("omp", "mp", "cosamp", "grasp", "fw"), ("plain", "scaled"), (0, 2)):
        yield ", ".join(map(str, case)), partial(run, *case)


def chosen_sizes() -> Iterator[tuple[str, Case]]:
    """Estimators that choose the number of features themselves."""

    def regressor(solver: str, criterion: str, table: str, loss: str, extra: str) -> Any:
        model = sk.PursuitRegressorCV(
            solver=solver,
            loss=LOSSES[loss](),
            criterion=criterion,
            max_nonzero_coefs=6,
            normalize=extra == "scaled",
            fit_intercept=extra != "no intercept",
            cv=3,
            **unguarded(),
            random_state=0,
        )
        X, y = TABLES[table](matrix(200)), targets(loss, 200, many=2 if extra == "targets" else 0)
        model.fit(X, y, sample_weight=weights(200) if extra == "weights" else None)
        return model, model.predict(X)

    def classifier(criterion: str, classes: str, table: str, extra: str) -> Any:
        model = sk.PursuitClassifierCV(
            solver="omp",
            criterion=criterion,
            max_nonzero_coefs=3,
            normalize=extra == "scaled",
            cv=3,
            **unguarded(),
            multi_class="multinomial" if classes == "multinomial" else "ovr",
            shared_support=classes == "shared",
            random_state=0,
        )
        X, y = load_iris(return_X_y=True)
        y = y == 1 if classes == "two" else y
        model.fit(TABLES[table](X), y, sample_weight=weights(150) if extra == "weights" else None)
        return model, model.predict_proba(X)

    criteria, extras = ("cv", "aic", "bic", "ebic"), ("none", "scaled", "weights", "no intercept", "targets")
    losses, solvers = ("squared", "huber", "poisson"), ("omp", "mp", "cosamp", "grasp")
    for case in pairwise(solvers, criteria, ("C", "csr", "F float32"), losses, extras):
        yield f"regressor, {', '.join(case)}", partial(regressor, *case)
    classes = ("two", "ovr", "shared", "multinomial")
    for case in pairwise(criteria, classes, ("C", "csr"), ("none", "scaled", "weights")):
        yield f"classifier, {', '.join(case)}", partial(classifier, *case)


def drop_in() -> Iterator[tuple[str, Case]]:
    """Scikit-learn's classes."""

    def fit(limit: str, precompute: Any, table: str, many: int, view: str, selector: str) -> Any:
        model = sk.OrthogonalMatchingPursuit(
            n_nonzero_coefs=6 if limit == "k" else None,
            tol=60.0 if limit == "tol" else None,
            precompute=precompute,
            fit_intercept=view != "plain",
            selector=selector,
        )
        X, y = TABLES[table](matrix(300)), targets("squared", 300, many)
        model.fit(X, y, **({"sample_weight": weights(300)} if view == "weighted" else {}))
        return model, model.predict(X)

    views = ("plain", "intercept", "weighted")
    for case in pairwise(("k", "tol", "default"), (True, False, "auto"), TABLES, (0, 3), views, ASKED):
        yield f"OMP, {', '.join(map(str, case))}", partial(fit, *case)

    def choose(table: str, most: Any, view: str, selector: str) -> Any:
        X, y = TABLES[table](matrix(300)), targets("squared", 300)
        model = sk.OrthogonalMatchingPursuitCV(
            max_iter=most, cv=3, fit_intercept=view != "plain", selector=selector
        )
        return model.fit(X, y, **({"sample_weight": weights(300)} if view == "weighted" else {}))

    for case in pairwise(TABLES, (None, 8), views, ("auto", "exact", "halving")):
        yield f"OMPCV, {', '.join(map(str, case))}", partial(choose, *case)


def functions() -> Iterator[tuple[str, Case]]:
    """Scikit-learn's functions."""

    def direct(limit: str, precompute: Any, many: int, path: bool, dtype: str) -> Any:
        X, y = matrix(300).astype(dtype), targets("squared", 300, many).astype(dtype)
        given: dict[str, Any] = {"k": {"n_nonzero_coefs": 5}, "tol": {"tol": 60.0}, "default": {}}[limit]
        return sk.orthogonal_mp(X, y, **given, precompute=precompute, return_path=path, return_n_iter=True)

    def by_gram(limit: str, many: int, path: bool, dtype: str) -> Any:
        X, y = matrix(300).astype(dtype), targets("squared", 300, many).astype(dtype)
        norms = (y**2).sum(axis=0)
        given: dict[str, Any] = {
            "k": {"n_nonzero_coefs": 5},
            "tol": {"tol": 60.0, "norms_squared": norms},
            "default": {},
        }[limit]
        return sk.orthogonal_mp_gram(X.T @ X, X.T @ y, **given, return_path=path, return_n_iter=True)

    limits, dtypes = ("k", "tol", "default"), ("float64", "float32")
    for case in pairwise(limits, (True, False, "auto"), (0, 3), (True, False), dtypes):
        yield f"orthogonal_mp, {', '.join(map(str, case))}", partial(direct, *case)
    for case in pairwise(limits, (0, 3), (True, False), dtypes):
        yield f"orthogonal_mp_gram, {', '.join(map(str, case))}", partial(by_gram, *case)


# -- coding ---------------------------------------------------------------------------------------------


@cache
def signals(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Atoms in rows, and signals made of a few of them."""
    rng = np.random.default_rng(4)
    atoms = rng.standard_normal((60, 32)).astype(dtype)
    codes = np.where(rng.random((200, 60)) < 0.06, rng.standard_normal((200, 60)), 0.0)
    Y = (codes @ atoms + 0.05 * rng.standard_normal((200, 32))).astype(dtype)
    Y[5] = 0.0
    return atoms, Y


def coders() -> Iterator[tuple[str, Case]]:
    """Sparse codes over given atoms."""

    def run(solver: str, limit: str, dtype: str, refit: bool, memory: int, way: str) -> Any:
        atoms, Y = signals(dtype)
        coder = sk.PursuitCoder(
            atoms,
            n_nonzero_coefs=None if limit == "tol" else 5,
            solver=solver,
            tol=None if limit == "k" else 2.0,
            refit=refit,
            memory_limit=memory,
        )
        codes = list(coder.transform_stream([Y[:77], Y[77:]])) if way == "stream" else coder.transform(Y)
        return codes, coder.inverse_transform(codes[0] if way == "stream" else codes)

    dtypes = ("float64", "float32")
    for case in pairwise(
        ("omp", "cosamp"), ("k", "tol", "both"), dtypes, (False, True), (2**30, 10_000), ("whole", "stream")
    ):
        yield ", ".join(map(str, case)), partial(run, *case)


def learners() -> Iterator[tuple[str, Case]]:
    """Atoms learned from signals."""

    def run(solver: str, dtype: str, way: str, forget: float) -> Any:
        learner = sk.DictionaryLearner(
            40, n_nonzero_coefs=4, solver=solver, max_iter=2, batch_size=64, forget=forget, random_state=0
        )
        Y = signals(dtype)[1]
        learner = learner.fit(Y) if way == "fit" else learner.partial_fit(Y[:120]).partial_fit(Y[120:])
        return learner, learner.transform(Y[:20])

    for case in pairwise(("omp", "cosamp"), ("float64", "float32"), ("fit", "partial_fit"), (2.0, 0.0)):
        yield ", ".join(map(str, case)), partial(run, *case)


# -- beside it ------------------------------------------------------------------------------------------


def helpers() -> Iterator[tuple[str, Case]]:
    """Data sets, metrics and theory."""
    X, y = matrix(60), targets("squared", 60)
    yield "make_sparse_signal", lambda: datasets.make_sparse_signal(30, 50, 4, random_state=3)
    yield "make_sparse_signal, float32", lambda: datasets.make_sparse_signal(30, 50, 4, dtype=np.float32)
    yield "make_logistic_signal", lambda: datasets.make_logistic_signal(30, 50, 4, random_state=3)
    yield "f_measure", lambda: metrics.f_measure(np.arange(9) % 2, np.arange(9) % 3)
    yield "support_overlap", lambda: metrics.support_overlap(np.arange(9) % 2, np.arange(9) % 3)
    yield "relative_error", lambda: metrics.relative_error(y, X[:, 0])
    for name, Z in {"C": X, "csr": sp.csr_array(X)}.items():
        yield f"h2, {name}", partial(theory.h2, Z, y)
        yield f"envelope, {name}", partial(theory.envelope, Z, y)
        yield f"nonstochastic_budget, {name}", partial(theory.nonstochastic_budget, Z, y)
        yield f"nonstochastic_gap, {name}", partial(theory.nonstochastic_gap, 500.0, Z, y)
    yield "budget", lambda: theory.budget(0.1, 1e3, 100, 5)
    yield "success_probability", lambda: theory.success_probability(1e6, 1e3, 100)


def refusals() -> Iterator[tuple[str, Case]]:
    """What cannot be used is refused, with an exception of the same kind."""
    X, y = matrix(60), targets("squared", 60)
    holes, endless = X.copy(), X.copy()
    holes[2, 1], endless[3, 4] = np.nan, np.inf
    corrupt = sp.csr_array(np.eye(3))
    corrupt.indices = np.array([0, 7, 1], dtype=np.int32)
    calls = {
        "NaN in X": lambda: sk.minimize(holes, y, sk.OMP(2)),
        "infinity in X": lambda: sk.minimize(endless, y, sk.OMP(2), "certified"),
        "NaN in csr": lambda: sk.minimize(sp.csr_array(holes), y, sk.OMP(2)),
        "NaN in y": lambda: sk.minimize(X, np.where(y > 0, np.nan, y), sk.OMP(2)),
        "complex X": lambda: sk.as_design(X + 1j),
        "text": lambda: sk.as_design(np.array([["a", "b"]])),
        "one dimension": lambda: sk.as_design(y),
        "empty": lambda: sk.as_design(X[:0]),
        "corrupt csr": lambda: sk.as_design(corrupt),
        "wrong rows": lambda: sk.minimize(X, y[:-1], sk.OMP(2)),
        "too many coefficients": lambda: sk.minimize(X, y, sk.OMP(41)),
        "zero coefficients": lambda: sk.OMP(0),
        "fractional coefficients": lambda: sk.OMP(2.5),
        "negative tol": lambda: sk.OMP(2, tol=-1.0),
        "forced twice": lambda: sk.minimize(X, y, sk.OMP(3, forced=(1, 1))),
        "forced beyond": lambda: sk.minimize(X, y, sk.OMP(3, forced=(40,))),
        "forced text": lambda: sk.minimize(X, y, sk.OMP(3, forced=("a",))),
        "solver name": lambda: sk.minimize(X, y, "omp"),
        "unknown selector": lambda: sk.minimize(X, y, sk.OMP(2), "best"),
        "selector number": lambda: sk.minimize(X, y, sk.OMP(2), 3),
        "unknown loss": lambda: sk.minimize(X, y, sk.OMP(2), loss="absolute"),
        "loss class": lambda: sk.minimize(X, y, sk.OMP(2), loss=sk.Huber),
        "labels": lambda: sk.minimize(X, y, sk.OMP(2), loss="logistic"),
        "counts": lambda: sk.minimize(X, y, sk.OMP(2), loss="poisson"),
        "negative weight": lambda: sk.minimize(X, y, sk.OMP(2), sample_weight=-np.ones(60)),
        "weights all zero": lambda: sk.minimize(X, y, sk.OMP(2), sample_weight=np.zeros(60)),
        "weight shape": lambda: sk.minimize(X, y, sk.OMP(2), sample_weight=np.ones(59)),
        "seed": lambda: sk.minimize(X, y, sk.OMP(2), random_state=-1),
        "callback": lambda: sk.minimize(X, y, sk.OMP(2), callback=3),
        "time limit": lambda: sk.minimize(X, y, sk.OMP(2), time_limit=-1),
        "checkpoint folder": lambda: sk.minimize(X, y, sk.OMP(2), checkpoint="/no/such/folder/run"),
        "budget": lambda: sk.Budget(0.0),
        "stability": lambda: sk.Stability(-1),
        "error bound alone": lambda: sk.minimize(X, y, sk.OMP(2), sk.Greedy(stop=sk.ErrorBound())),
        "order": lambda: sk.SuccessiveHalving(order="best"),
        "radius": lambda: sk.L1Ball(0.0),
        "variant": lambda: sk.FrankWolfe(sk.L1Ball(1.0), 10, variant="fast"),
        "huber": lambda: sk.Huber(0.0),
        "estimator solver": lambda: sk.PursuitRegressor(solver="lasso").fit(X, y),
        "estimator shape": lambda: sk.PursuitRegressor(n_nonzero_coefs=2).fit(X, y).predict(X[:, :3]),
        "unfitted": lambda: sk.PursuitRegressor().predict(X),
        "one class": lambda: sk.PursuitClassifier().fit(X, np.ones(60)),
        "multinomial with mp": lambda: sk.PursuitClassifier(solver="mp", multi_class="multinomial").fit(
            X, np.arange(60) % 3
        ),
        "criterion": lambda: sk.PursuitRegressorCV(criterion="best").fit(X, y),
        "precompute": lambda: sk.OrthogonalMatchingPursuit(precompute="yes").fit(X, y),
        "coder shape": lambda: sk.PursuitCoder(np.eye(3)).transform(np.ones((2, 4))),
        "coder solver": lambda: sk.PursuitCoder(np.eye(3), solver="mp").transform(np.ones((2, 3))),
        "gram norms": lambda: sk.orthogonal_mp_gram(X.T @ X, X.T @ y, tol=1.0),
        "too many, clipped": lambda: sk.PursuitRegressor(n_nonzero_coefs=99).fit(X, y),
    }
    yield from calls.items()


def changed() -> Iterator[tuple[str, Case]]:
    """Calls that mean another thing than in the first edition; elsewhere their numbers are translated."""
    X, y, classes = matrix(), targets("squared"), np.digitize(targets("squared"), [-0.4, 0.4])
    for loss in LOSSES:
        for name in ("omp", "grasp", "stogradmp"):
            call = partial(sk.minimize, X, targets(loss), SOLVERS[name](1e-2), "exact", LOSSES[loss]())
            yield f"ridge, {name}, {loss}", partial(call, random_state=5)
    yield "ridge, classes", lambda: sk.minimize(X, classes, sk.OMP(K, ridge=1e-2), loss=sk.Multinomial())
    yield "ridge, regressor", lambda: sk.PursuitRegressor(n_nonzero_coefs=K, ridge=0.05).fit(X, y)
    yield "radius", lambda: sk.PursuitRegressor(solver="fw", radius=2.0, max_iter=5, normalize=True).fit(X, y)
    yield "chosen regressor", lambda: sk.PursuitRegressorCV(max_nonzero_coefs=6).fit(X, y)
    yield "chosen classifier", lambda: sk.PursuitClassifierCV(max_nonzero_coefs=6).fit(X, classes)
    yield "named solver", lambda: sk.PursuitClassifierCV(solver="omp", cv=3).fit(X, classes)
