"""Frank-Wolfe: every step rule and variant, on both sets and with every loss."""

from __future__ import annotations

import numpy as np

import skpursuit as sk

from . import checks, replays
from .programs import GENERAL, common, minimize, prepared
from .reference import EPS, LD, SMOOTHNESS, Reference, judge_choice, norm
from .selections import draw_selector


def frank_wolfe(rng, table):
    loss = "squared" if rng.random() < 0.6 else str(rng.choice(GENERAL))
    prepared(rng, table, loss)
    ref = Reference(table, loss)
    top = ref.sizes.max(initial=0)
    natural = float(norm(ref.b) / top) if top > 0 else 1.0
    natural = natural if 1e-290 < natural < 1e290 else 1.0
    radius = natural * float(rng.choice([1e-3, 0.5, 1.0, 3.0, 100.0])) if rng.random() < 0.8 else 1.0
    kind = rng.choice([sk.L1Ball, sk.Simplex])
    solver = sk.FrankWolfe(
        kind(radius),
        max_iter=int(rng.choice([1, 6, 40, 120])),
        line_search=str(rng.choice(["exact", "open-loop", "backtracking"])),
        variant=str(rng.choice(["vanilla", "away", "pairwise", "blended"])),
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
        chosen = result.history[0].selected[-1:]
        slack = 16 * EPS * radius * ref.sizes.max() if kind is sk.Simplex else 0.0
        wrong += judge_choice(ref, ref.residual(z), chosen, score=score, slack=slack, step=0)
    if solver.line_search != "open-loop":
        start = float(ref.objective(starting_point(ref, solver)))
        wrong += checks.never_worse(result, 64 * EPS * (ref.rows + 64), scale_of(ref, solver), [start])
    elif solver.variant == "vanilla" and loss != "poisson":
        wrong += rate(ref, solver, result)
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


def rate(ref, solver, result):
    """With exact answers the objective is within 2 C_f / (t + 2) of the minimum, so of the least one met."""
    if any(record.certificate not in ("exact", "none") for record in result.history):
        return []
    reach = LD(solver.constraint.radius) * ref.sizes.max(initial=0)
    bound = 8 * reach**2 * SMOOTHNESS[ref.loss]
    told = [record.objective for record in result.history]
    for t, value in enumerate(told, 1):
        if value - min(told) > bound / (t + 2) * (1 + 1e-9) + 1e-12 * abs(value):
            bound = float(bound / (t + 2))
            return [("rate", f"step {t}: {value!r}, later {min(told)!r}, the bound is {bound!r}")]
    return []


PROGRAMS = {frank_wolfe: 12}
