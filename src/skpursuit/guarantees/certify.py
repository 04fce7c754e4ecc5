"""Proofs about models: how much better than a path the best model of each size can be.

For every size a tree of cases is searched, best bound first. A case says of some columns that they are in the
model and of others that they are not; a relaxation bounds the objective of all its models. A case whose
bound is not below the best objective known is closed; a column without which, or with which, it would be
closed is settled; else the case is split on the column whose share is least decided. The least bound of the
open cases holds for all models, whenever the search ends.

The objective of coefficients w is f(w) + sum_j r_j w_j^2 / 2 with a convex f. Let a model use a share z_j of
column j, sum z_j <= k, and pay r_j w_j^2 / (2 z_j) for it: a convex problem, in which the models of k columns
are those with whole shares (the perspective relaxation). A bound does not need its minimum. As f is convex,
every model of k columns has, at any point u with g the gradient of f there,

    objective >= f(u) - g.u - (the k largest g_j^2 / r_j, summed) / 2,

and the best u is the minimum of the relaxation, towards which accelerated proximal gradient steps go.
"""

import heapq
import time
from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np
from scipy.special import entr

from skpursuit.fit.newton import fit_outputs
from skpursuit.guarantees.audit import read_path
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.blas import single_threaded_blas
from skpursuit.numerics.float_range import EPS
from skpursuit.parameters import check_count, check_nonnegative
from skpursuit.problem.losses import Loss
from skpursuit.problem.problem import Problem, SampleLosses

MAX_COLUMNS = 5000  # of X: d x d numbers are held
FIRST_STEPS, STEPS = 150, 40  # of the relaxation, for the whole tree and for a case
BOUND_EVERY = 5  # steps between two looks at the bound
CLOSE = 1e-7  # relative distance of bound and relaxation at which steps end
SAFETY = 1e-6  # share of the largest diagonal that stays in f, for rounding
OPTIMAL = 1e-6  # relative gap of an objective that counts as the best
INFORMATIVE = 1e-3  # share of the trivial gap that a bound must close to say anything
#: Of one size: a bound, the best objective known and its columns, and a point to start relaxations from.
Known = tuple[float, float, Indices, Floats]


@dataclass(frozen=True)
class ConvexPart:
    """f(u) = losses of u.A - sum_j D_j u_j^2 / 2; a column with r = ridge + D = 0 is in every model."""

    A: Floats  # whose rows have unit norm
    samples: SampleLosses
    ridge: Floats
    D: Floats  # what the squared loss can spare and stay convex
    lipschitz: float  # constant of the gradient

    def slopes(self, u: Floats) -> Floats:
        """Slopes of the losses; u has few entries that are not zero."""
        used = np.flatnonzero(u)
        return self.samples.residual(u[used] @ self.A[used])

    def bound_parts(self, u: Floats) -> tuple[float, Floats]:
        """f(u) - g.u, rounded down, and |g|, rounded up."""
        s, free, y = self.slopes(u), self.ridge + self.D > 0, self.samples.y
        unit = 4 * (self.A.shape[1] + 8) * EPS
        if self.samples.loss.quadratic:
            constant, size = -0.5 * float(s @ s) - float(s @ y), float(y @ y + s @ s)
        else:  # any slopes give a bound; beside a constant column those whose sum is zero
            up, down = s[s > 0].sum(), -s[s < 0].sum()
            s = s if free.all() else s * np.where(s > 0, min(1.0, down / up), min(1.0, up / down))
            weights = np.ones(len(y)) if self.samples.weights is None else self.samples.weights
            p = np.abs(s) / weights
            constant = size = float(weights @ (entr(p) + entr(1.0 - p)))
        g = np.abs(self.A @ s - self.D * u) + unit * sqrt(float(s @ s))
        return constant + 0.5 * float(self.D @ (u * u)) - unit * size, g * free

    def objective(self, columns: Indices) -> float:
        """The least objective of models of these columns."""
        ridge, start = self.ridge[columns], np.zeros(len(columns))
        w, _, (at,) = fit_outputs(self.A[columns], [self.samples], start, None, ridge, 1e-15, 300)
        return at.value + 0.5 * float(ridge @ (w * w))


def largest_diagonal(G: Floats) -> Floats:
    """D_j = c / (G^-1)_jj with nearly the largest c that keeps G - D positive semidefinite, or zeros."""
    values, vectors = np.linalg.eigh(G)
    if values[0] <= 64 * len(G) * EPS * values[-1]:
        return np.zeros(len(G))
    scale = np.sqrt((vectors**2 / values).sum(axis=1))
    least, *_, most = np.linalg.eigvalsh(G * np.outer(scale, scale))
    return max(0.0, least * (1.0 - SAFETY) - 64 * len(G) * EPS * most) / scale**2


def relax(
    f: ConvexPart, k: int, inside: np.ndarray, free: np.ndarray, u: Floats, goal: float, steps: int
) -> tuple[float, Floats, Floats, Floats]:
    """The best bound on the way from u to the minimum, for k of the free columns beside those inside.

    Returns the bound, the point and the shares it was found at, and what each column takes off. The way ends
    early when the bound reaches the goal or is as good as it gets.
    """
    r, before, ahead, momentum, best = f.ridge + f.D, u, u, 1.0, (-inf, u, u, u)
    for step in range(steps):
        point = ahead - (f.A @ f.slopes(ahead) - f.D * ahead) / f.lipschitz
        z = shares(point, r / f.lipschitz, k, inside, free)
        u = np.divide(point * z, z + r / f.lipschitz, out=np.zeros_like(z), where=z > 0)
        if step % BOUND_EVERY == 0:
            constant, g = f.bound_parts(u)
            gains = np.divide(0.5 * g * g, r, out=np.zeros_like(g), where=r > 0)
            bound = constant - float(gains[inside].sum()) - float(np.sort(gains[free])[-k:].sum())
            best = (bound, u, z, gains) if bound > best[0] else best
            paid = float(np.divide(0.5 * r * u * u, z, out=np.zeros_like(z), where=z > 0).sum())
            value = f.samples.value(u @ f.A) - 0.5 * float(f.D @ (u * u)) + paid
            if best[0] >= goal or value - best[0] <= CLOSE * value:
                break
        momentum = 1.0 if (ahead - u) @ (u - before) > 0 else momentum  # a restart
        faster = 0.5 * (1.0 + sqrt(1.0 + 4.0 * momentum * momentum))
        ahead, before, momentum = u + (momentum - 1.0) / faster * (u - before), u, faster
    return best


def shares(u: Floats, t: Floats, k: int, inside: np.ndarray, free: np.ndarray) -> Floats:
    """The z that minimise sum_j u_j^2 t_j / (z_j + t_j), 0 <= z <= 1, sum <= k over the free ones."""
    # They are |u_j| sqrt(t_j) x - t_j cut to [0, 1], and their sum is piecewise linear in x.
    z, slope = inside.astype(float), np.abs(u) * np.sqrt(t)
    some = np.flatnonzero(free & (slope > 1e-12 * slope.max()))
    if len(some) <= k:
        z[some] = 1.0
        return z
    a, begin = slope[some], t[some]
    ends = np.concatenate([begin / a, (1.0 + begin) / a])
    order = np.argsort(ends)
    rises, ends = np.cumsum(np.concatenate([a, -a])[order]), ends[order]
    sums = np.concatenate([[0.0], np.cumsum(rises[:-1] * np.diff(ends))])
    at = max(1, int(np.searchsorted(sums, k))) - 1
    z[some] = np.clip(a * (ends[at] + (k - sums[at]) / rises[at]) - begin, 0.0, 1.0)
    return z


@dataclass(frozen=True, repr=False)
class Proof:
    """What `skpursuit.certify` proved: one entry for each size from 1 to the length of the path.

    Objectives are sums of losses (squared: half the squared residuals), with the ridge's penalty.

    Attributes
    ----------
    lower_bound : ndarray
        No model of so many columns has a smaller objective.
    objective : ndarray
        Of the best model that is known, that of `support`.
    path_objective : ndarray
        Of the first columns of the path, fitted.
    support : list of ndarray of int
        Columns of the best model known: the path's, or better ones that the search found.
    gap : ndarray
        (objective - lower_bound) / objective.
    closed : ndarray
        Share of the trivial gap, to the objective of all columns together, that the bound closed.
    status : list of str
        "optimal": the gap is at most 1e-6. "bounded". "uninformative": the bound says no more than the model
        of all columns does.
    """

    lower_bound: Floats
    objective: Floats
    path_objective: Floats
    support: list[Indices]
    gap: Floats
    closed: Floats
    status: list[str]

    @property
    def sentence(self) -> str:
        """What is proven about the largest model of the path."""
        k, path = len(self.status), self.path_objective[-1]
        if self.status[-1] == "uninformative":
            return f"nothing is proven about the best model of {k} columns"
        most, known = (1.0 - float(part[-1]) / (path or 1.0) for part in (self.lower_bound, self.objective))
        if most <= OPTIMAL:
            return f"no model of {k} columns is better (proven)"
        found = f"; one that is {100 * known:.2g} % better is known" if known > OPTIMAL else ""
        return f"the best model of {k} columns is at most {100 * most:.2g} % better (proven){found}"

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.status.count(one)} {one}" for one in dict.fromkeys(self.status))
        return f"Proof: of {len(self.status)} sizes {counts}; {self.sentence}"


def certify(
    X: object,
    y: object,
    path: object,
    *,
    loss: str | Loss = "squared",
    ridge: float = 0.0,
    fit_intercept: bool = False,
    max_nodes: int = 200,
    time_limit: float | None = None,
) -> Proof:
    """Prove how much better than the models of a path the best models of the same sizes can be.

    Parameters
    ----------
    X, y, path, fit_intercept
        As in `audit`; y is one target, and X has at most 5000 columns, because d x d numbers are held.
    loss : {"squared", "logistic"}
    ridge : float
        (ridge / 2) ||w||^2 beside the mean loss. Zero needs squared loss and more rows than columns.
    max_nodes : int
        Cases to look at for each size; 1 takes the bound of the relaxation.
    time_limit : float, optional
        Seconds for all sizes; what is proven by then is returned.

    Returns
    -------
    Proof

    Examples
    --------
    >>> from skpursuit import OMP, certify, datasets, minimize
    >>> X, y, w = datasets.make_sparse_signal(200, 40, 5, snr=10.0, random_state=0)
    >>> proof = certify(X, y, minimize(X, y, OMP(n_nonzero_coefs=5)))
    >>> proof.status
    ['optimal', 'optimal', 'optimal', 'optimal', 'optimal']
    """
    check_count("max_nodes", max_nodes, optional=False)
    check_nonnegative("time_limit", time_limit)
    begun, found, path_objective = time.perf_counter(), list[Known](), list[float]()
    with single_threaded_blas():
        problem, columns, *_ = read_path(X, y, path, loss, ridge, fit_intercept)
        live, f = _convex_part(problem)
        forced, place = np.flatnonzero(f.ridge + f.D == 0), {j: at for at, j in enumerate(live.tolist())}
        taken = np.array([place[j] for j in columns.tolist() if j in place], dtype=np.intp)
        everything, u = f.objective(np.arange(len(live))), np.zeros_like(f.ridge)
        for k in range(1, len(columns) + 1):
            path_objective.append(f.objective(np.append(taken[:k], forced)))
            end = begun + (inf if time_limit is None else time_limit * k / len(columns))
            found.append(_search(f, k, (everything, path_objective[-1], taken[:k], u), max_nodes, end))
            u = found[-1][3]
    bounds, objectives, supports, _ = zip(*found)
    bound, objective = np.array(bounds), np.array(objectives)
    trivial: Floats = np.stack([objective, objective - everything])
    gap, open_share = np.divide(objective - bound, trivial, out=np.zeros_like(trivial), where=trivial > 0)
    little = np.where(open_share > 1.0 - INFORMATIVE, "uninformative", "bounded")
    status = np.where(gap <= OPTIMAL, "optimal", little).tolist()
    support = [live[columns] for columns in supports]
    return Proof(bound, objective, np.array(path_objective), support, gap, 1.0 - open_share, status)


def _search(f: ConvexPart, k: int, known: Known, max_nodes: int, end: float) -> Known:
    """Look at up to `max_nodes` cases of the models of k columns beside the forced ones."""
    trivial, upper, support, root = known
    forced, closed, count = f.ridge + f.D == 0, inf, 0
    # Bound, number, columns in the model, columns that may be, and where the relaxation of the parent ended.
    cases = [(trivial, 0, forced, ~forced, root)]
    while cases and count < max_nodes and time.perf_counter() < end:
        goal = upper * (1.0 - OPTIMAL / 2)
        if cases[0][0] >= goal:
            break
        bound, _, inside, free, u = heapq.heappop(cases)
        left, count = k - int(inside.sum() - forced.sum()), count + 1
        model, whole = inside | free if left else inside, not 0 < left < free.sum()
        if not whole:
            steps = FIRST_STEPS if count == 1 else STEPS
            relaxed, u, shares, gains = relax(f, left, inside, free, u, goal, steps)
            bound, root = max(bound, relaxed), u if count == 1 else root
            model = inside.copy()
            model[np.lexsort((-gains, -shares, ~free))[:left]] = True
        value = f.objective(np.flatnonzero(model))
        if value < upper:
            upper, support = value, np.flatnonzero(model & ~forced)
        if whole or bound >= upper * (1.0 - OPTIMAL / 2):
            closed = min(closed, value if whole else bound)
            continue
        # A column that takes part, or does not, raises the bound by what it takes off less, or more.
        last, following = np.sort(gains[free])[::-1][left - 1 : left + 1]
        out = free & (relaxed + last - gains > upper)
        sure = free & (relaxed + gains - following > upper)
        inside, free = inside | sure, free & ~out & ~sure
        undecided = shares * (1.0 - shares) * np.abs(u) + 1e-12 * gains
        one = np.arange(len(u)) == np.argmax(np.where(free, undecided, -inf))
        heapq.heappush(cases, (bound, 2 * count, inside | (one & free), free & ~one, u))
        heapq.heappush(cases, (bound, 2 * count + 1, inside, free & ~one, u))
    return max(trivial, min([upper, closed, *(case[0] for case in cases)])), upper, support, root


def _convex_part(problem: Problem) -> tuple[Indices, ConvexPart]:
    """The columns that are not zero, and the objective on them; refused where no bound is known."""
    design, (n, d) = problem.design, problem.design.shape
    if problem.target_shape:
        raise ValueError(f"certify bounds models of one target, y has {problem.target_shape[0]}")
    if not (problem.quadratic or problem.loss.has_entropy_bound):
        raise ValueError(f"certify knows bounds for squared and logistic loss, not for {problem.loss!r}")
    if d > MAX_COLUMNS:
        raise ValueError(
            f"certify holds d x d numbers and X has {d} columns, more than {MAX_COLUMNS}; choose columns "
            "first by PursuitFeatureSelector, or audit the path instead"
        )
    norms = design.norms(0)
    live = np.flatnonzero(norms > design.noise_floor(np.arange(d)))
    A, samples = design.columns(live, cache=False) / norms[live, None], problem.subset(slice(None))
    ridge, D = problem.penalties(live) / norms[live] ** 2, np.zeros_like(norms[live])
    if problem.quadratic:  # a triangle has the same losses as X and y, in d + 1 rows
        triangle = np.asarray(np.linalg.qr(np.column_stack([A.T, problem.y]), mode="r"))
        A, samples = np.ascontiguousarray(triangle[:, :-1].T), replace(samples, y=triangle[:, -1].copy())
        D = largest_diagonal(A @ A.T)
    if not (problem.penalty or D.any()):
        raise ValueError(
            "certify with ridge=0 needs squared loss, more rows than columns, and columns that do not depend "
            f"on each other; X has shape {(n, d)}: give ridge > 0, or fewer columns"
        )
    weighted = A if samples.weights is None else A * np.sqrt(samples.weights)
    curvature = (samples.loss.smoothness or 1.0) * float(np.linalg.norm(weighted, 2)) ** 2
    return live, ConvexPart(A, samples, ridge, D, curvature * (1.0 + 1e-9))
