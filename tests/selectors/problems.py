"""Random questions to selectors, and plain answers to them."""

import numpy as np

from skpursuit.selectors import Absolute, Group, Query, Signed
from skpursuit.selectors.score import top


def random_query(rng, n, d, score=None):
    """A query with random k, score and exclusions; some residuals have zeros, some have several targets."""
    score = score or (Absolute(), Signed(), Group())[rng.integers(3)]
    r = rng.standard_normal((n, 3) if isinstance(score, Group) else n)
    if rng.random() < 0.3:
        r[rng.random(n) < 0.3] = 0.0
    k = 1 if rng.random() < 0.5 else int(rng.integers(1, d + 2))
    exclude = np.flatnonzero(rng.random(d) < rng.choice([0.0, 0.3]))
    return Query(r, k, score, exclude, np.random.default_rng(rng.integers(2**32)))


def by_energy(X, r):
    """Rows in decreasing |r_i| ||x_i||, those without energy left out."""
    size = np.abs(r) if r.ndim == 1 else np.linalg.norm(r, axis=1)
    energy = size * np.linalg.norm(X, axis=1)
    return np.argsort(-energy, kind="stable")[: np.count_nonzero(energy)]


def plain_halving(X, query, order, pulls, finish):
    """Successive halving as the paper's algorithm has it: the answer, and the columns that survived."""
    partial = lambda rows, cols: query.score.of(X[rows][:, cols].T @ query.r[rows])  # noqa: E731
    alive = query.allowed(X.shape[1])
    few, rounds = np.ceil(finish * len(alive)), max(1, int(np.ceil(np.log2(len(alive)))))
    used = 0
    for _ in range(rounds):
        if len(alive) <= few:
            break
        used = min(len(order), used + max(1, int(pulls / (len(alive) * rounds))))
        if used == len(order) or len(alive) <= query.k:
            break
        best = np.argsort(-partial(order[:used], alive), kind="stable")[: max(query.k, len(alive) // 2)]
        alive = alive[np.sort(best)]
    seen = order if len(alive) <= few else order[:used]
    return alive[top(partial(seen, alive), query.k)], alive
