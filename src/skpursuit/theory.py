"""What successive halving and successive reject promise: success probabilities and budgets, as functions.

All bounds are worst-case and loose: at n=1000, d=2000 and a budget of 0.2 n d the bound of
``success_probability`` is negative, which promises nothing and does not mean that halving fails. They say
how a budget must grow with the problem, not which budget to choose.

Two settings. With *stochastic* pulls an arm is a column j, a pull the number n r_i x_ij for a row i drawn
uniformly with replacement, and its mean (X^T r)_j. *Non-stochastic* pulls are the terms r_i x_ij of the sum,
each row once, in an order fixed in advance; then there is no probability, only how much of the sum may
still be missing.

References
----------
Karnin, Koren, Somekh. Almost optimal exploration in multi-armed bandits. ICML 2013 (theorem 4.1).
Audibert, Bubeck, Munos. Best arm identification in multi-armed bandits. COLT 2010 (theorem 2).
Jamieson, Talwalkar. Non-stochastic best arm identification and hyperparameter optimization. AISTATS 2016
(theorem 1).
"""

from math import ceil, exp, inf, log, log2

import numpy as np
from numpy.typing import ArrayLike

from skpursuit.data import Design, as_design
from skpursuit.numerics.arrays import Floats
from skpursuit.parameters import as_array, check_choice, check_count, check_number, short_repr


def h2(X: object, r: ArrayLike, absolute: bool = True) -> float:
    """Hardness of finding the top entry of X^T r by stochastic pulls.

    H2 = max over i >= 2 of i / Delta_i², with Delta_2 <= Delta_3 <= ... the distances of the arms from the
    best one, divided by the range 2 max_ij |n r_i x_ij| of the pulls. Infinite if the best arm is tied.

    Parameters
    ----------
    X : array-like, sparse array or Design of shape (n, d)
    r : array-like of shape (n,)
    absolute : bool, default True
        Whether the largest |entry| is sought, which has 2d arms, the columns of X and of -X; or else the
        smallest entry, with d arms.
    """
    design, r = _problem(X, r)
    g = design.product(r)
    means = np.concatenate([-g, g]) if absolute else g
    spread = 2 * design.shape[0] * float((np.abs(r) * design.norms(1, np.inf)).max())
    if spread == 0:
        return inf
    gaps = np.sort(means - means.min())[1:] / spread
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        return float((np.arange(2, gaps.size + 2) / np.square(gaps)).max(initial=0.0))


def success_probability(T: float, H2: float, d: int) -> float:
    """Lower bound 1 - 3 log2(d) exp(-T / (8 H2 log2 d)) of the chance that halving finds the best of d arms.

    It is negative where nothing is promised.

    Parameters
    ----------
    T : float
        Budget: pulls of all arms together.
    H2 : float
        Hardness, see ``h2``.
    d : int
        Number of arms: twice the number of columns when the largest absolute value is sought.

    Notes
    -----
    The theorem is about d a power of two. Halving that ranks c columns by the size of their estimates pulls
    x_j and -x_j at once and drops them together; for T pulls of columns the same proof gives
    1 - 6 log2(c) exp(-T / (8 H2 log2 c)).
    """
    check_count("d", d, optional=False, least=2)
    check_number("T", T, "[0, inf]")
    check_number("H2", H2, "(0, inf]")
    return 1 - 3 * log2(d) * exp(-T / (8 * H2 * log2(d)))


def reject_probability(T: float, H2: float, d: int) -> float:
    """Lower bound of the chance that successive reject finds the best of d arms.

    1 - d (d - 1) / 2 exp(-(T - d) / (L H2)) with L = 1/2 + 1/2 + 1/3 + ... + 1/d; negative where nothing is
    promised.

    Parameters
    ----------
    T, H2, d
        As in ``success_probability``.
    """
    check_count("d", d, optional=False, least=2)
    check_number("T", T, "[0, inf]")
    check_number("H2", H2, "(0, inf]")
    harmonic = 0.5 + float((1 / np.arange(2, d + 1)).sum())
    return 1 - d * (d - 1) / 2 * exp(-(T - d) / (harmonic * H2))


def sequence_probability(K: int, P: ArrayLike, form: str = "linear") -> float:
    """Lower bound of the chance that K steps all select as the exact algorithm does.

    The paper's three bounds, each at least as large as the next: the product of 1 - P_t ("product"),
    (1 - max P_t)^K ("power") and 1 - K max P_t ("linear"), which is negative where nothing is promised.

    Parameters
    ----------
    K : int
        Number of steps.
    P : float or array-like of shape (K,)
        Upper bound, for every step or for each, of the chance that it selects something else.
    form : {"product", "power", "linear"}
    """
    check_count("K", K, optional=False, least=0)
    check_choice("form", form, ("product", "power", "linear"))
    steps = np.broadcast_to(as_array("P", P).astype(np.float64), K)
    if not (as_array("P", P) >= 0).all():
        raise ValueError(f"P must be at least 0, got {short_repr(P)}")
    worst = float(steps.max(initial=0.0))
    if form == "linear":
        return 1 - K * worst
    return float(np.prod(np.maximum(1 - (steps if form == "product" else np.full(K, worst)), 0.0)))


def budget(delta: float, H2: float, d: int, K: int = 1) -> float:
    """Budget per step with which K steps all match the exact algorithm with probability 1 - delta.

    T = 8 H2 log2(d) ln(3 K log2(d) / delta): the inverse of ``success_probability`` at delta / K.

    Parameters
    ----------
    delta : float
        Accepted chance of failure, 0 < delta < 1.
    H2 : float
        Hardness of the hardest step.
    d : int
        Number of arms.
    K : int, default 1
        Number of steps.
    """
    check_number("delta", delta, "(0, 1)")
    check_number("H2", H2, "(0, inf]")
    check_count("d", d, optional=False, least=2)
    check_count("K", K, optional=False)
    return 8 * H2 * log2(d) * log(3 * K * log2(d) / delta)


def envelope(X: object, r: ArrayLike, order: ArrayLike | None = None) -> Floats:
    """Bound on what the rows not yet read can add to any entry of X^T r.

    gamma(k) = sum over i > k of |r_i| ‖x_i‖_inf, the rows in the order in which they are read. It needs the
    norms of the rows, not X^T r.

    Parameters
    ----------
    X : array-like, sparse array or Design of shape (n, d)
    r : array-like of shape (n,)
    order : array-like of int, optional
        Permutation of the rows; decreasing |r_i| ‖x_i‖_2 if not given.

    Returns
    -------
    ndarray of shape (n + 1,)
        gamma(0), ..., gamma(n) = 0, decreasing.
    """
    design, r = _problem(X, r)
    if order is None:
        rows = np.argsort(-np.abs(r) * design.norms(1), kind="stable")
    else:
        rows = as_array("order", order)
        if rows.dtype.kind not in "iu" or not np.array_equal(np.sort(rows, axis=None), np.arange(len(r))):
            raise ValueError(f"order must be a permutation of row numbers, got {short_repr(order)}")
    steps = (np.abs(r) * design.norms(1, np.inf))[rows]
    return np.append(np.cumsum(steps[::-1])[::-1], 0.0)


def nonstochastic_budget(
    X: object, r: ArrayLike, order: ArrayLike | None = None, absolute: bool = True
) -> float:
    """Budget with which halving on a fixed order of rows finds the best column for certain.

    z = 2 ceil(log2 d) max over i >= 2 of i (1 + gamma^-1(Delta_i / 2)) pulls, Delta_i being the distance of
    the i-th best entry of X^T r from the best and gamma^-1(a) the first k with gamma(k) < a. Any T >= z does.
    Loose, often larger than n d, and it takes the exact X^T r to know: a guarantee to study, not to run with.

    Parameters
    ----------
    X, r, order
        As in ``envelope``.
    absolute : bool, default True
        Whether the largest |entry| is sought or the smallest entry. An error of an entry is at least that of
        its absolute value, so there are d arms in both cases.

    Returns
    -------
    float
        Infinite if the best column is tied: then there is no best one.
    """
    design, r = _problem(X, r)
    gamma, g = envelope(design, r, order), design.product(r)
    losses = -np.abs(g) if absolute else g
    gaps = np.sort(losses - losses.min())[1:]
    if gaps.size and gaps[0] == 0:
        return inf
    # gamma decreases: the number of its values that are still >= a is the first k with gamma(k) < a.
    first = len(gamma) - np.searchsorted(gamma[::-1], gaps / 2, side="left")
    worst = (np.arange(2, gaps.size + 2) * (1 + first)).max(initial=0)
    return float(2 * _rounds(design.shape[1]) * worst)


def nonstochastic_gap(T: float, X: object, r: ArrayLike, order: ArrayLike | None = None) -> float:
    """How far from the best entry of X^T r the one found by halving with T pulls can be.

    At most the sum over rounds of 2 gamma(R_l), R_l the rows read by the end of round l. It holds for the
    largest |entry| as for the smallest entry, and is known before any pull: it needs only the norms of rows.

    Parameters
    ----------
    T : float
        Budget: pulls of all arms together.
    X, r, order
        As in ``envelope``.

    Returns
    -------
    float
        Zero means that the column found is a best one.
    """
    check_number("T", T, "[0, inf]")
    design, _ = _problem(X, r)
    gamma, arms, rows, total = envelope(design, r, order), design.shape[1], 0, 0.0
    rounds = _rounds(arms)
    while arms > 1:
        new = min(T, float(len(gamma) * arms * rounds))  # more than all rows is all rows
        rows = min(rows + max(1, int(new // (arms * rounds))), len(gamma) - 1)
        total += 2 * float(gamma[rows])
        arms //= 2
    return total


def _rounds(arms: int) -> int:
    """ceil(log2(arms)), at least one."""
    return max(1, ceil(log2(arms)))


def _problem(X: object, r: ArrayLike) -> tuple[Design, Floats]:
    """X as a design whose reads are counted apart, and r as a vector that fits it."""
    design, vector = as_design(X).for_run(), as_array("r", r).astype(np.float64)
    if vector.shape != (design.shape[0],):
        raise ValueError(f"r must have shape ({design.shape[0]},), got {vector.shape}")
    if not np.isfinite(vector).all():
        raise ValueError("r contains NaN or infinity")
    return design, vector
