"""Every solver with every loss, every data source and every selector: pairs of them always, all on demand."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import skpursuit as sk
from skpursuit.selectors import SELECTORS as SELECTORS

from ..support.data import with_intercept
from ..support.sources import NAMES as SOURCES
from ..support.sources import every_source, matrix, views

K = 3
RADIUS = 2.0
SOLVERS = {
    "omp": sk.OMP(K, ridge=1e-2),
    "matching pursuit": sk.MatchingPursuit(K, max_iter=6),
    "cosamp": sk.CoSaMP(K, max_iter=5),
    "subspace pursuit": sk.SubspacePursuit(K, max_iter=5),
    "grasp": sk.GraSP(K, max_iter=5, ridge=1e-2),
    "frank-wolfe": sk.FrankWolfe(sk.L1Ball(RADIUS), 15),
    "frank-wolfe simplex": sk.FrankWolfe(sk.Simplex(RADIUS), 15, "open-loop"),
    "away": sk.FrankWolfe(sk.L1Ball(RADIUS), 15, "backtracking", "away"),
    "pairwise": sk.FrankWolfe(sk.Simplex(RADIUS), 15, "exact", "pairwise", lazy=True),
    "blended": sk.FrankWolfe(sk.L1Ball(RADIUS), 15, "exact", "blended"),
    "corrective": sk.FrankWolfe(sk.L1Ball(RADIUS), 15, "exact", "corrective"),
    "stoiht": sk.StoIHT(K, max_iter=8, batch_size=12, step_size=0.02),
    "stogradmp": sk.StoGradMP(K, max_iter=4, batch_size=12, ridge=1e-2),
}
# So wide that a few steps of Frank-Wolfe do not hang on the last digits of X.
WIDTH = 0.3
LOSSES = {name: name for name in ("squared", "logistic", "huber", "poisson")} | {
    "quantile": sk.Quantile(0.5, WIDTH)
}
READ_ALL = ("exact", "gram", "certified", "auto")
AXES = (tuple(SOLVERS), tuple(LOSSES), tuple(SOURCES), tuple(SELECTORS))


def pairs_of(case):
    return set(itertools.combinations(enumerate(case), 2))


def covered(needed, case):
    return len(pairs_of(case) & needed)


def pairwise_cases():
    """A few cases in which every pair of choices occurs."""
    needed = {
        ((i, a), (j, b)) for i, j in itertools.combinations(range(4), 2) for a in AXES[i] for b in AXES[j]
    }
    cases = []
    while needed:
        (i, a), (j, b) = min(needed)
        axes = [[a] if axis == i else [b] if axis == j else AXES[axis] for axis in range(4)]
        cases.append(max(itertools.product(*axes), key=partial(covered, needed)))
        needed -= pairs_of(cases[-1])
    return cases


def solver_for(name, loss, source):
    """The solver; its ridge spares the constant column of a view alone."""
    solver = SOLVERS[name]
    plain = source.startswith("intercept")
    return replace(solver, ridge=0.0) if plain and solver.supports_ridge else solver


def targets(loss, n):
    z = np.random.default_rng(3).standard_normal(n)
    return {"logistic": np.where(z > 0, 1.0, -1.0), "poisson": np.floor(np.exp(z))}.get(loss, z)


def undefined(solver, loss, source, selector):
    """The sentence a combination is refused with, if it is."""
    if solver in ("cosamp", "subspace pursuit") and loss != "squared":
        return "use GraSP"
    if solver == "corrective" and loss != "squared":
        return "corrective"
    if selector == "gram" and loss != "squared" and solver not in ("stoiht", "stogradmp"):
        return "gram selection needs"
    if source.startswith("operator") and selector in ("lucb", "reject"):
        return "single entries"
    return None


def check(case, designs):
    solver, loss, source, selector = case
    design, dense = designs[source]
    y, chosen = targets(loss, len(dense)), solver_for(solver, loss, source)
    refusal = undefined(solver, loss, source, selector)
    if refusal:
        with pytest.raises(ValueError, match=refusal):
            sk.minimize(design, y, chosen, selector, LOSSES[loss], random_state=0)
        return
    result = sk.minimize(design, y, chosen, selector, LOSSES[loss], random_state=0)
    w = result.coef
    assert np.isfinite(w).all()
    assert set(np.flatnonzero(w)) <= set(result.support)
    z = dense @ w
    assert result.objective == pytest.approx(value(loss, y, z), rel=1e-5, abs=1e-9)
    if "constraint" in vars(chosen):
        assert np.abs(w).sum() <= RADIUS * (1 + 1e-6)
    else:
        assert len(result.support) <= K
    if selector in READ_ALL:
        # A ridge spares the constant column of a design, but not a column of X that happens to be constant.
        reference = dense if design.constant is None else with_intercept(dense[:, :-1])
        expected = sk.minimize(reference, y, chosen, "exact", LOSSES[loss], random_state=0)
        np.testing.assert_allclose(w, expected.coef, rtol=1e-4, atol=1e-6)
        assert all(record.certificate in ("exact", "none") for record in result.history)


def value(loss, y, z):
    if loss == "logistic":
        return np.logaddexp(0, -y * z).sum()
    if loss == "huber":
        a = np.abs(z - y)
        return np.where(a <= 1.35, 0.5 * a * a, 1.35 * (a - 0.675)).sum()
    if loss == "quantile":
        slope = np.clip((z - y) / WIDTH, -0.5, 0.5)
        return (slope * (z - y - WIDTH * slope / 2)).sum()
    if loss == "poisson":
        return (np.exp(z) - y * z + np.where(y > 0, y * np.log(np.maximum(y, 1)), 0) - y).sum()
    return 0.5 * np.sum((z - y) ** 2)


@pytest.fixture(scope="module")
def designs(tmp_path_factory):
    return every_source(matrix(), tmp_path_factory.mktemp("sources"))


@pytest.mark.parametrize("case", pairwise_cases(), ids="-".join)
def test_every_pair(case, designs):
    check(case, designs)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("selector", SELECTORS)
def test_everything(solver, selector, designs):
    for loss, source in itertools.product(LOSSES, SOURCES):
        check((solver, loss, source, selector), designs)


@pytest.mark.parametrize("solver", ["away", "pairwise", "blended"])
def test_ties_with_the_origin_do_not_depend_on_rounding(solver):
    for seed in range(30):
        design, dense = views(matrix(seed=seed))["view"]
        y = targets("squared", len(dense))
        ours, expected = (sk.minimize(X, y, SOLVERS[solver], "exact").coef for X in (design, dense))
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6)
