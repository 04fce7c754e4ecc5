"""Programs: settings of a solver and a selector, a run, and the checks that its result must pass.

A program is a function of (rng, table) that returns a list of (check, message). Where the settings it drew
must be refused it says so in ``table.notes["refuse"]``, and whoever runs it judges the exception.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import skpursuit as sk
from skpursuit.loop.run import CONSISTENCY_TOL

from . import checks, replays
from .reference import EPS, LD, Reference, judge_choice, norm
from .selections import draw_selector, spell
from .tables import SOURCES, draw_weights, hand_over, spoil_unweighted_rows

GENERAL = ("logistic", "huber", "poisson")
VARIANTS = ("vanilla", "away", "pairwise", "blended", "corrective")  # the last of squared loss and "exact"


def draw_k(rng, table):
    """Up to all columns; often at and beyond what n rows can span."""
    n, d = table.X.shape
    kind = rng.random()
    if kind < 0.5:
        return int(rng.integers(1, min(d, 6) + 1))
    if kind < 0.8:
        return int(min(d, max(1, n + rng.integers(-1, 3))))
    return d


def draw_targets(rng, table, share=0.2):
    """Turn y into several targets, or one that is a column."""
    if rng.random() < share:
        m = int(rng.integers(1, 4))
        extra = rng.choice([-1.0, 0.0, 1.0, 0.5], m)
        other = (rng.random(m) < 0.5) * table.y[rng.permutation(len(table.y))][:, None]
        table.y = np.multiply.outer(table.y, extra) + other


def draw_labels(rng, table, loss):
    """Make y a target of the loss."""
    y = np.nan_to_num(table.y)
    if loss == "logistic":
        table.y = np.where(y > (np.median(y) if rng.random() < 0.7 else 0.0), 1.0, -1.0)
    elif loss == "poisson":
        top = np.abs(y).max(initial=0.0)
        y = np.abs(y) / top * float(rng.choice([1, 5, 50, 1e4])) if top > 0 else y
        table.y = np.rint(y)


def minimize(table, solver, selector, loss="squared", **more):
    """The run, noted so that a failure can show it."""
    table.notes["call"] = (
        f"minimize(X, y, {solver!r}, {spell(selector)!r}, {loss!r}), source {table.source}, "
        f"X {table.X.shape}, y {table.y.shape}, weights {table.weights is not None}"
    )
    more |= {"sample_weight": table.weights, "random_state": 0}
    return sk.minimize(table.given, table.y, solver, selector, loss, **more)


def prepared(rng, table, loss="squared", sources=SOURCES):
    """Targets of the loss, weights, and X in some form."""
    if loss != "squared":
        draw_labels(rng, table, loss)
    draw_weights(rng, table)
    spoil_unweighted_rows(rng, table)
    hand_over(rng, table, sources)


def drawn_loss(rng, table):
    """A loss that is not squared, with a table that is prepared for it."""
    loss = str(rng.choice(GENERAL))
    prepared(rng, table, loss)
    return loss


def solved(rng, table, solver, loss="squared", reach=0.0, exact=0.7):
    """A run with a selector that is drawn: the selector, the result, a reference, and what is wrong."""
    selector, proven = draw_selector(rng, loss == "squared", exact, table.source != "operator")
    result, ref = minimize(table, solver, selector, loss), Reference(table, loss)
    k = getattr(solver, "n_nonzero_coefs", None)
    return selector, result, ref, common(ref, result, k, proven, reach)


def overflows(ref):
    """Whether squares of sums leave the range of float64: there a run that says it failed is right too."""
    return any(size > 1e150 or 0 < size < 1e-150 for size in (ref.sizes.max(initial=0), norm(ref.b)))


def common(ref, result, k=None, proven=False, reach=0.0):
    """The checks of every result."""
    wrong = checks.shape_of(ref, result, k)
    if wrong:
        return wrong
    told = {record.certificate for record in result.history if record.selected}
    if proven and not told <= {"exact"}:
        wrong.append(("certificate", f"a proven selector says {sorted(told)}"))
    reach = 4 * np.abs(ref.predict(result.coef)).max(initial=0) if reach is None else reach
    return wrong + checks.told_objective(ref, result, reach)


def some_columns(rng, d, k):
    """Up to k different columns."""
    return tuple(int(j) for j in rng.choice(d, size=int(rng.integers(1, k + 1)), replace=False))


def omp(rng, table):
    """OMP with squared loss, followed step by step."""
    draw_targets(rng, table)
    prepared(rng, table)
    k, d = draw_k(rng, table), table.X.shape[1]
    given = {}
    if rng.random() < 0.2:
        with np.errstate(over="ignore"):
            given["tol"] = min(1e300, float((table.y**2).sum()) * 10.0 ** rng.uniform(-20, 0.5))
    if rng.random() < 0.2:
        given["rtol"] = float(rng.choice([0.0, 1e-12, 1e-3, 0.5, 2.0]))
    if rng.random() < 0.2:
        given["always_include"] = some_columns(rng, d, k)
    if rng.random() < 0.15 and table.y.ndim == 1:
        given["positive"] = True
    solver = sk.OMP(k, **given)
    selector, result, ref, wrong = solved(rng, table, solver)
    if wrong or (result.status.name == "DIVERGED" and overflows(ref)):
        return wrong
    if result.status.name == "INCONSISTENT":
        return lost_its_way(ref, result)
    wrong = replays.omp_squared(ref, result, solver, k)
    return wrong or extras(rng, table, solver, selector, result)


def lost_its_way(ref, result):
    """A run is INCONSISTENT where float64 cannot hold the predictions of such large coefficients.

    How large they became decides, not the condition of the support: dependent columns may have small
    coefficients, and more columns than rows have no condition.
    """
    w = result.coef.astype(LD)
    rounding = 8 * (ref.rows + len(result.support) + 16) * EPS * checks.coef_reach(ref, w)
    allowed = CONSISTENCY_TOL * (norm(ref.A @ w) + norm(ref.b))
    if rounding > allowed:
        return []
    share = float(rounding / allowed)
    return [("status", f"INCONSISTENT, but predictions are rounded by {share:.3g} of what is allowed")]


def extras(rng, table, solver, selector, result):
    """Powers of two scale the coefficients, and a run that was stopped goes on to the same bits."""
    kind = rng.random()
    if kind < 0.25:
        return scaled(rng, table, solver, selector, result)
    if kind < 0.35 and table.source != "operator":
        return resumed(rng, table, solver, selector, result)
    return []


def scaled(rng, table, solver, selector, result):
    """Coefficients of 2^p y are 2^p times those of y, bit for bit; an absolute `tol` scales along."""
    power = int(rng.integers(-30, 31))
    top = np.abs(table.y).max(initial=0.0)
    small = np.abs(table.y[table.y != 0]).min(initial=1.0)
    if table.extreme or not (small > 1e-100 and top < 1e100):
        return []
    if solver.tol is not None:
        solver = replace(solver, tol=float(np.ldexp(solver.tol, 2 * power)))
    y, table.y = table.y, np.ldexp(table.y, power)
    again = minimize(table, solver, selector)
    table.y = y
    if again.support.tolist() != result.support.tolist():
        return [("scaling", f"2^{power} y leads to {again.support.tolist()}, y to {result.support.tolist()}")]
    with np.errstate(all="ignore"):
        back = np.ldexp(again.coef.astype(np.float64), -power)
    if np.float32 in (result.coef.dtype, again.coef.dtype):  # at the ends of float32 digits are lost
        return []
    if not np.array_equal(back, result.coef.astype(np.float64)):
        return [("scaling", f"coefficients of 2^{power} y differ by {np.abs(back - result.coef).max():.3g}")]
    return []


def resumed(rng, table, solver, selector, result):
    """A run stopped by its callback goes on from its checkpoint as if nothing had happened."""
    if result.n_iter < 2:
        return []
    stop = int(rng.integers(1, result.n_iter))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.ckpt"
        ended = lambda record: record.iteration + 1 == stop  # noqa: E731
        minimize(table, solver, selector, checkpoint=path, callback=ended)
        again = minimize(table, solver, selector, checkpoint=path)
    same = again.support.tolist() == result.support.tolist() and np.array_equal(again.coef, result.coef)
    if not same or again.n_iter != result.n_iter:
        return [("resume", f"stopped at {stop}: {again.support.tolist()}, not {result.support.tolist()}")]
    return []


def matching_pursuit(rng, table):
    draw_targets(rng, table)
    prepared(rng, table)
    k = None if rng.random() < 0.6 else draw_k(rng, table)
    solver = sk.MatchingPursuit(k, max_iter=int(rng.choice([1, 5, 40])))
    if rng.random() < 0.2:
        solver = sk.MatchingPursuit(k, rtol=float(rng.choice([1e-3, 0.5])), max_iter=30)
    selector, result, ref, wrong = solved(rng, table, solver, reach=2 * norm(table.y.astype(LD)))
    if result.status.name == "DIVERGED" and overflows(ref):
        return wrong
    wrong = wrong or replays.matching_pursuit(ref, result, solver)
    return wrong or extras(rng, table, solver, selector, result)


def cosamp(rng, table):
    draw_targets(rng, table)
    prepared(rng, table)
    k = draw_k(rng, table)
    kind = rng.choice([sk.CoSaMP, sk.GraSP])
    solver = kind(k, max_iter=int(rng.choice([1, 3, 20])), refit=bool(rng.random() < 0.3))
    selector, result, ref, wrong = solved(rng, table, solver, exact=0.8)
    if overflows(ref) and result.status.name == "DIVERGED":
        return wrong
    wrong = wrong or replays.cosamp(ref, result, solver, k)
    wrong = wrong or moves_at_all(ref, result)
    return wrong or extras(rng, table, solver, selector, result)


def moves_at_all(ref, result, ridge=0.0):
    """A run that calls itself done at the zero model has found no column there that gains anything."""
    done = ("COMPLETE", "ZERO_RESIDUAL", "OPTIMAL", "STALLED")
    if len(result.support) or result.status.name not in done or ref.y.ndim == 2:
        return []
    error, f = ref.product_error(ref.residual(ref.zero)), ref.objective(ref.zero)
    gain = max(replays.single_gain(ref, ref.zero, x, LD(0), ridge, e) for x, e in zip(ref.X.T, error))
    if gain > 1e-12 * f:
        told = f"one column gains {float(gain / f):.3g} of the objective"
        return [("status", f"{result.status.name} at the zero model, where {told}")]
    return []


def gradient_pursuit(rng, table):
    """OMP with other losses than squared."""
    loss = drawn_loss(rng, table)
    k, d = draw_k(rng, table), table.X.shape[1]
    ridge = float(rng.choice([0.0, 0.0, 1e-3, 1.0]))
    forced = some_columns(rng, d, k) if rng.random() < 0.15 else ()
    tol = float(rng.choice([1e-6, 1e-2])) if rng.random() < 0.2 else None
    solver = sk.OMP(k, tol=tol, ridge=ridge, always_include=forced)
    selector, result, ref, wrong = solved(rng, table, solver, loss)
    if wrong or result.status.name == "DIVERGED":
        return wrong
    penalty = ridge * float(ref.weights.sum())
    wrong = choice(rng, table, solver, selector, result, ref, penalty)
    if well_posed(ref, result):
        wrong += replays.stationary(ref, result.support, result.coef, penalty)
    return wrong + general_status(ref, result, k) + moves_at_all(ref, result, penalty)


def choice(rng, table, solver, selector, result, ref, penalty):
    """What a step of any loss chose, judged where the run stood before it: another run is stopped there."""
    step = int(rng.integers(max(1, result.n_iter)))
    if not result.history or (step == 0 and solver.always_include):
        return []
    w, gone, record = np.zeros(ref.d), [], result.history[step]
    if step:
        ended = lambda record: record.iteration + 1 == step  # noqa: E731
        before = minimize(table, solver, selector, ref.loss, callback=ended)
        w, gone = before.coef.astype(LD), [*before.support.tolist(), *before.dropped.tolist()]
    z = ref.predict(w)
    f, chosen = ref.objective(z), record.selected[-1:]
    if f < 1e-3 * ref.objective(ref.zero) or not np.isfinite(f) or not replays.proven(record):
        return []  # residuals are what the fit left over
    if not chosen or chosen[0] in result.dropped or replays.condition(ref.X[:, gone]) > 1e5:
        return []
    # f - f* >= |r - r*|^2 / (2 L), and fits stop once they promise less than 1e-6 of the objective.
    bend = ref.curvature(z).max() if ref.loss == "poisson" else ref.weights.max()
    slack = np.sqrt(4 * bend * 2e-5 * (f + penalty * (w @ w) / 2) / ref.weights.min()) if step else 0.0
    allowed = np.setdiff1d(np.arange(ref.d), gone)
    return judge_choice(ref, ref.residual(z), chosen, allowed, slack=slack, step=step)


def well_posed(ref, result):
    """Whether a fit has a minimum that float64 can find: not separable, not nearly dependent.

    Where classes are separated but for some rows, the loss is flat along a direction that those do not have.
    """
    X = ref.X[:, result.support]
    if len(result.support) == 0 or replays.condition(X) > 1e5:
        return False
    bend = ref.weights if ref.loss == "huber" else ref.curvature(ref.predict(result.coef))
    bent = X / np.sqrt((X * X).sum(axis=0)) * np.sqrt(bend / bend.max())[:, None]
    least = np.linalg.svd(bent.astype(float), compute_uv=False)[-1]
    return least > 1e-5 and result.objective > 1e-6 * float(ref.objective(ref.zero))


def general_status(ref, result, k):
    if result.status.name == "COMPLETE" and len(result.support) != k:
        return [("status", f"COMPLETE with {len(result.support)} of {k} columns")]
    if result.status.name == "ZERO_RESIDUAL" and result.objective > 1e-12 * float(ref.objective(ref.zero)):
        return [("status", "ZERO_RESIDUAL with an objective that is not zero")]
    return []


def general_matching_pursuit(rng, table):
    loss = drawn_loss(rng, table)
    solver = sk.MatchingPursuit(draw_k(rng, table), max_iter=int(rng.choice([3, 25])))
    _, result, ref, wrong = solved(rng, table, solver, loss, reach=None)
    return wrong + checks.never_worse(result) + moves_at_all(ref, result)


def grasp(rng, table):
    """GraSP and StoGradMP with other losses."""
    loss = drawn_loss(rng, table)
    k = draw_k(rng, table)
    ridge, refit = float(rng.choice([0.0, 1e-3, 1.0])), bool(rng.random() < 0.5)
    kind = rng.choice([sk.GraSP, sk.StoGradMP])
    solver = kind(k, max_iter=int(rng.choice([1, 4, 15])), refit=refit, ridge=ridge)
    _, result, ref, wrong = solved(rng, table, solver, loss)
    if wrong or result.status.name == "DIVERGED":
        return wrong
    if kind is sk.GraSP and result.history and result.history[0].certificate == "exact":
        wrong += judge_choice(ref, ref.residual(ref.zero), result.history[0].selected, None, 2 * k, step=0)
    penalty = ridge * float(ref.weights.sum())
    if refit and well_posed(ref, result):
        wrong += replays.stationary(ref, result.support, result.coef, penalty)
    return wrong + (moves_at_all(ref, result, penalty) if kind is sk.GraSP else [])


def stochastic(rng, table):
    """StoIHT, whose steps tests follow."""
    prepared(rng, table)
    k, n = draw_k(rng, table), len(table.X)
    batch = n if rng.random() < 0.5 else int(rng.integers(1, n + 1))
    with np.errstate(over="ignore"):
        bound = float((table.X**2).sum()) or 1.0
    step = 1.0 / bound if 0 < 1.0 / bound < np.inf else 1.0
    solver = sk.StoIHT(k, max_iter=int(rng.choice([1, 5, 20])), batch_size=batch, step_size=step)
    selector, _ = draw_selector(rng, False, 0.9, table.source != "operator")
    return common(Reference(table), minimize(table, solver, selector), k)


# -- Frank-Wolfe -----------------------------------------------------------------------------------------


def frank_wolfe(rng, table):
    """Every step rule and variant, on both sets and with every loss."""
    loss = "squared" if rng.random() < 0.6 else str(rng.choice(GENERAL))
    prepared(rng, table, loss)
    ref = Reference(table, loss)
    top = ref.sizes.max(initial=0)
    natural = float(norm(ref.b) / top) if top > 0 else 1.0
    natural = natural if 1e-290 < natural < 1e290 else 1.0
    radius = natural * float(rng.choice([1e-3, 0.5, 1.0, 3.0, 100.0])) if rng.random() < 0.8 else 1.0
    kind, rule = rng.choice([sk.L1Ball, sk.Simplex]), str(rng.choice(["exact", "open-loop", "backtracking"]))
    solver = sk.FrankWolfe(
        kind(radius),
        max_iter=int(rng.choice([1, 6, 40, 120])),
        line_search=rule,
        variant=str(rng.choice(VARIANTS[: 5 if (loss, rule) == ("squared", "exact") else 4])),
        gap_tol=float(norm(ref.b) ** 2) * 1e-6 if rng.random() < 0.3 and norm(ref.b) < 1e100 else None,
        lazy=bool(rng.random() < 0.2),
    )
    selector, _ = draw_selector(rng, loss == "squared", entries=table.source != "operator")
    result = minimize(table, solver, selector, loss)
    reach = radius * np.abs(ref.X).max(initial=0)
    wrong = common(ref, result, None, False, reach)
    if wrong:
        return wrong
    wrong += feasible(solver, result)
    if result.status.name == "DIVERGED":
        return wrong
    wrong += bounds_of_gaps(ref, solver, result) + frank_wolfe_status(ref, solver, result)
    known = solver.line_search == "open-loop" or (solver.line_search == "exact" and loss == "squared")
    if solver.variant == "vanilla" and known and not solver.lazy:
        wrong += replays.frank_wolfe(ref, result, solver)
    elif result.history and result.history[0].certificate == "exact":
        z = radius * ref.X[:, 0] if kind is sk.Simplex else ref.zero
        score = "signed" if kind is sk.Simplex else "absolute"
        chosen = result.history[0].selected
        chosen = chosen[:1] if solver.variant == "corrective" else chosen[-1:]
        slack = 16 * EPS * radius * ref.sizes.max() if kind is sk.Simplex else 0.0
        wrong += judge_choice(ref, ref.residual(z), chosen, score=score, slack=slack, step=0)
    if solver.line_search != "open-loop":
        start = float(ref.objective(starting_point(ref, solver)))
        wrong += checks.never_worse(result, 64 * EPS * (ref.rows + 64), scale_of(ref, solver), [start])
    return wrong


def feasible(solver, result):
    """The point is in the set."""
    w, radius = result.coef.astype(LD), LD(solver.constraint.radius)
    unit = 64 * float(np.finfo(result.coef.dtype).eps) * (1 + result.n_iter)
    total = np.abs(w).sum()
    if total > radius * (1 + unit):
        return [("feasible", f"||w||_1 is {float(total)!r}, the radius {float(radius)!r}")]
    if isinstance(solver.constraint, sk.Simplex) and ((w < 0).any() or total < radius * (1 - unit)):
        told = f"smallest {float(w.min()):.3g}, sum {float(w.sum())!r}, radius {float(radius)!r}"
        return [("feasible", told)]
    return []


def bounds_of_gaps(ref, solver, result):
    """Every objective less its duality gap is a lower bound of the minimum, so of the last objective too."""
    told = [float(ref.objective(starting_point(ref, solver)))] + [r.objective for r in result.history]
    unit = EPS * (ref.rows + 64) * 64 * (1 + len(told))
    for before, record in zip(told, result.history):
        if record.gap is None or record.certificate != "exact" or not np.isfinite(before):
            continue
        slack = unit * (abs(before) + abs(record.gap) + abs(result.objective) + scale_of(ref, solver))
        if before - record.gap > result.objective + slack:
            told = f"objective {before!r}, gap {record.gap!r}, but the run ends at {result.objective!r}"
            return [("gap", told)]
    return []


def scale_of(ref, solver):
    """Size of <r, z> on the set: what gaps are rounded relative to."""
    reach = LD(solver.constraint.radius) * ref.sizes.max(initial=0)
    r = norm(ref.residual(starting_point(ref, solver)))
    size = float(reach * (r / np.sqrt(ref.weights.min()) + reach))
    return size if np.isfinite(size) else 0.0


def starting_point(ref, solver):
    radius = LD(solver.constraint.radius)
    return radius * ref.X[:, 0] if isinstance(solver.constraint, sk.Simplex) else ref.zero


def frank_wolfe_status(ref, solver, result):
    gap, doubt = replays.duality_gap(ref, solver, result.coef)
    if ref.loss in ("squared", "huber"):  # never negative, so never further from the least than its value
        gap = min(gap, LD(result.objective))
    name = result.status.name
    limit = LD(solver.gap_tol or 0.0) if name in ("CONVERGED", "OPTIMAL") else None
    if name == "STALLED":
        start = abs(ref.objective(starting_point(ref, solver)))
        limit = LD(1e-7) * (gap + start) + LD(1e-12) * scale_of(ref, solver)
    if limit is None:
        return []
    if gap > limit * (1 + 1e-6) + 4 * doubt + ref.rows * np.finfo(float).tiny:
        return [("status", f"{name} with a duality gap of {float(gap):.3g}")]
    return []


PROGRAMS = {omp: 16, matching_pursuit: 6, cosamp: 9, gradient_pursuit: 9}
PROGRAMS |= {general_matching_pursuit: 3, grasp: 6, stochastic: 4, frank_wolfe: 12}
