"""Programs: settings of a solver and a selector, a run, and the checks that its result must pass.

A program is a function of (rng, table) that returns a list of (check, message). Where the settings it drew must be
refused it says so in ``table.notes["refuse"]``, and whoever runs it judges the exception.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import skpursuit as sk
from skpursuit.selectors import Absolute, Group, Query, Signed

from . import checks, replays
from .reference import EPS, LD, Reference, judge_choice, norm
from .tables import ARRAYS, DENSE, SOURCES, draw_weights, hand_over, spoil_unweighted_rows

# -- selectors ---------------------------------------------------------------------------------------------

EXACT = {
    "exact": lambda: "exact",
    "auto": lambda: "auto",
    "certified": lambda: "certified",
    "certified fine": lambda: sk.Certified(fine=True),
    "gram": lambda: "gram",
    "gram whole": lambda: sk.Gram(whole=True),
    "gram small": lambda: sk.Gram(memory_limit=4096),
}
PROVEN = {**EXACT, "delta": lambda: sk.Certified(delta=1e-9, seed=3)}
HEURISTIC = {
    "greedy": lambda: "greedy",
    "greedy all rows": lambda: sk.Greedy(stop=sk.Budget(1.0)),
    "greedy mixed": lambda: sk.Greedy(stop=sk.Stability(0.3) | sk.Budget(0.5)),
    "greedy bound": lambda: sk.Greedy(stop=sk.ErrorBound(1e-3)),
    "uniform": lambda: "uniform",
    "importance": lambda: sk.Importance(stop=sk.Stability(5)),
    "halving": lambda: "halving",
    "halving-random": lambda: "halving-random",
    "halving rich": lambda: sk.SuccessiveHalving(budget=3.0),
    "halving doubling": lambda: sk.SuccessiveHalving(doubling=True, budget=0.05),
    "halving paper": lambda: sk.SuccessiveHalving(finish=0.0, order="random"),
    "reject": lambda: sk.SuccessiveReject(budget=0.3),
    "sketch": lambda: "sketch",
    "sketch short": lambda: sk.Sketch(second=0.5, last=1, drift=0.0),
}


def draw_selector(rng, quadratic=True, exact=0.7):
    """A selector and whether its answers must be proven."""
    names = PROVEN if rng.random() < exact else HEURISTIC
    name = str(rng.choice([n for n in names if quadratic or not n.startswith("gram")]))
    return name, names[name](), names is PROVEN


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
        table.y = np.multiply.outer(table.y, extra) + (rng.random(m) < 0.5) * table.y[rng.permutation(len(table.y))][:, None]


def draw_labels(rng, table, loss):
    """Make y a target of the loss."""
    y = np.nan_to_num(table.y)
    if loss == "logistic":
        table.y = np.where(y > (np.median(y) if rng.random() < 0.7 else 0.0), 1.0, -1.0)
    elif loss == "poisson":
        top = np.abs(y).max(initial=0.0)
        y = np.abs(y) / top * float(rng.choice([1, 5, 50, 1e4])) if top > 0 else y
        table.y = np.rint(y)


def spell(selector):
    return selector if isinstance(selector, str) else repr(selector)


def minimize(table, solver, selector, loss="squared", **more):
    """The run, noted so that a failure can show it."""
    table.notes["call"] = (
        f"minimize(X, y, {solver!r}, {spell(selector)!r}, {loss!r}), source {table.source}, "
        f"X {table.X.shape}, y {table.y.shape}, weights {table.weights is not None}"
    )
    return sk.minimize(
        table.given, table.y, solver, selector, loss, sample_weight=table.weights, random_state=0, **more
    )


def prepared(rng, table, sources=SOURCES):
    """Weights, and X in some form."""
    draw_weights(rng, table)
    spoil_unweighted_rows(rng, table)
    hand_over(rng, table, sources)


def overflows(ref, extra=1.0):
    """Whether squares of sums leave the range of float64: there a run that says it failed is right too."""
    sizes = [ref.sizes.max(initial=0) * LD(extra), norm(ref.b)]
    return any(size > 1e150 or 0 < size < 1e-150 for size in sizes)


def common(ref, result, k=None, proven=False, reach=0.0):
    """The checks of every result."""
    wrong = checks.shape_of(ref, result, k)
    if wrong:
        return wrong
    told = {record.certificate for record in result.history if record.selected}
    if proven and not told <= {"exact", "delta"}:
        wrong.append(("certificate", f"a proven selector says {sorted(told)}"))
    return wrong + checks.told_objective(ref, result, reach)


# -- single selections ---------------------------------------------------------------------------------------


def select(rng, table):
    """One question to one selector."""
    if rng.random() < 0.01:
        large(rng, table)
    hand_over(rng, table)
    n, d = table.X.shape
    several = rng.random() < 0.2
    r = rng.standard_normal((n, 3) if several else n)
    kind = rng.choice(["normal", "y", "integers", "scaled", "zero", "few rows", "heavy"])
    if kind == "y" and not several:
        r = np.nan_to_num(table.y)
    elif kind == "integers":
        r = rng.integers(-3, 4, r.shape).astype(float)
    elif kind == "scaled":
        r = np.ldexp(r, int(rng.integers(-1000, 900)))
    elif kind == "zero":
        r = np.zeros_like(r)
    elif kind == "few rows":
        r[rng.random(n) < 0.8] = 0.0
    elif kind == "heavy":
        r = rng.standard_cauchy(r.shape)
    score = "group" if several else str(rng.choice(["absolute", "signed"]))
    k = int(rng.integers(1, min(d, 8) + 1)) if rng.random() < 0.9 else d
    off = np.flatnonzero(rng.random(d) < rng.choice([0.0, 0.3, 1.0], p=[0.6, 0.35, 0.05]))
    name, selector, proven = draw_selector(rng, quadratic=False, exact=0.6)
    selector = sk.Auto() if selector == "auto" else selector
    if isinstance(selector, str):
        order = {"halving-random": {"order": "random"}}.get(selector, {})
        classes = {"exact": "Exact", "certified": "Certified", "greedy": "Greedy", "uniform": "Uniform"}
        classes |= {"halving": "SuccessiveHalving", "halving-random": "SuccessiveHalving", "sketch": "Sketch"}
        selector = getattr(sk, classes[selector])(**order)
    ask = {"absolute": Absolute(), "signed": Signed(), "group": Group()}[score]
    ordered = bool(rng.random() < 0.6)
    table.notes["call"] = (
        f"{selector!r}.select(as_design(X), Query(r, {k}, {ask!r}, {off.tolist()}, ordered={ordered})), r {kind}, "
        f"source {table.source}, X {table.X.shape}, r {r.shape}"
    )
    design = sk.as_design(table.given)
    answer = selector.select(design, Query(r, k, ask, off, np.random.default_rng(1), ordered=ordered))
    ref = Reference(table)
    allowed = np.setdiff1d(np.arange(d), off)
    wrong = []
    if answer.certificate == "exact" or proven:
        if answer.certificate not in ("exact", "delta"):
            wrong.append(("certificate", f"a proven selector says {answer.certificate}"))
        found = judge_choice(ref, r.astype(LD), answer.indices, allowed, k, score)
        wrong += [("choice", message) for message in found]
    chosen = answer.indices.tolist()
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(allowed.tolist()):
        wrong.append(("support", f"chose {chosen}, repeated or excluded"))
    if len(chosen) != min(k, len(allowed)):
        wrong.append(("count", f"{len(chosen)} columns where {min(k, len(allowed))} were asked for"))
    if answer.entries_read < 0 or answer.bytes_read < answer.entries_read // 8:
        wrong.append(("counts", f"read {answer.entries_read} entries, {answer.bytes_read} bytes"))
    if name == "greedy bound" and len(chosen) and answer.certificate != "exact":
        off_by = np.abs(np.asarray(answer.estimates).astype(LD) - ref.gradient(r.astype(LD))[chosen])
        if off_by.max() > 1e-3 + ref.product_error(r.astype(LD))[chosen].max():
            wrong.append(("bound", f"an estimate is {float(off_by.max()):.3g} off, the bound was 0.001"))
    return wrong


def large(rng, table):
    """X of more than 2^20 entries, where halving and certified selection work on codes in blocks."""
    n, d = int(rng.integers(1030, 1200)), int(rng.integers(1020, 1100))
    X = rng.standard_normal((n, 40))[:, rng.integers(0, 40, d)] if rng.random() < 0.3 else rng.standard_normal((n, d))
    table.X, table.y, table.extreme = X, X[:, :3].sum(axis=1) + rng.standard_normal(n), False


# -- pursuits --------------------------------------------------------------------------------------------------


def omp(rng, table):
    """OMP with squared loss, followed step by step."""
    draw_targets(rng, table)
    prepared(rng, table)
    k, (n, d) = draw_k(rng, table), table.X.shape
    given = {}
    if rng.random() < 0.2:
        with np.errstate(over="ignore"):
            given["tol"] = min(1e300, float((table.y**2).sum()) * 10.0 ** rng.uniform(-20, 0.5))
    if rng.random() < 0.2:
        given["rtol"] = float(rng.choice([0.0, 1e-12, 1e-3, 0.5, 2.0]))
    if rng.random() < 0.2:
        given["forced"] = tuple(int(j) for j in rng.choice(d, size=int(rng.integers(1, k + 1)), replace=False))
    if rng.random() < 0.15 and table.y.ndim == 1:
        given["positive"] = True
    solver = sk.OMP(k, **given)
    name, selector, proven = draw_selector(rng)
    result = minimize(table, solver, selector)
    ref = Reference(table)
    wrong = common(ref, result, k, proven)
    if wrong:
        return wrong
    if result.status.name == "DIVERGED" and overflows(ref):
        return []
    wrong = replays.omp_squared(ref, result, solver, k)
    return wrong or extras(rng, table, solver, selector, result)


def extras(rng, table, solver, selector, result):
    """Scaling y by a power of two scales the coefficients, and a run that was stopped goes on to the same bits."""
    kind = rng.random()
    if kind < 0.25:
        return scaled(rng, table, solver, selector, result)
    if kind < 0.35 and table.source != "operator":
        return resumed(rng, table, solver, selector, result)
    return []


def scaled(rng, table, solver, selector, result):
    """Coefficients of 2^p y are 2^p times those of y, bit for bit (but for tolerances on absolute squares)."""
    from dataclasses import replace

    power = int(rng.integers(-30, 31))
    top = np.abs(table.y).max(initial=0.0)
    small = np.abs(table.y[table.y != 0]).min(initial=1.0)
    if table.extreme or not (1e-100 < small and top < 1e100):
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
    if result.coef.dtype == np.float32:  # at the ends of float32 digits are lost
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
        minimize(table, solver, selector, checkpoint=path, callback=lambda record: record.iteration + 1 == stop)
        again = minimize(table, solver, selector, checkpoint=path)
    same = again.support.tolist() == result.support.tolist() and np.array_equal(again.coef, result.coef)
    if not same or again.n_iter != result.n_iter:
        return [("resume", f"stopped at {stop}: {again.support.tolist()} instead of {result.support.tolist()}")]
    return []


def matching_pursuit(rng, table):
    draw_targets(rng, table)
    prepared(rng, table)
    k = None if rng.random() < 0.6 else draw_k(rng, table)
    solver = sk.MatchingPursuit(k, max_iter=int(rng.choice([1, 5, 40])))
    if rng.random() < 0.2:
        solver = sk.MatchingPursuit(k, rtol=float(rng.choice([1e-3, 0.5])), max_iter=30)
    _, selector, proven = draw_selector(rng)
    result = minimize(table, solver, selector)
    ref = Reference(table)
    wrong = common(ref, result, k, proven, reach=2 * norm(ref.y))
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
    _, selector, proven = draw_selector(rng, exact=0.8)
    result = minimize(table, solver, selector)
    ref = Reference(table)
    wrong = common(ref, result, k, proven)
    if overflows(ref) and result.status.name == "DIVERGED":
        return wrong
    wrong = wrong or replays.cosamp(ref, result, solver, k)
    wrong = wrong or moves_at_all(ref, result)
    return wrong or extras(rng, table, solver, selector, result)


def moves_at_all(ref, result):
    """A run that calls itself done at the zero model must have found a gradient of zero there."""
    if len(result.support) or not result.status.ok or result.status.name == "CONVERGED":
        return []
    r = ref.residual(ref.zero)
    g, error = np.abs(ref.gradient(r)), ref.product_error(r)
    if result.status.name in ("CYCLING", "DIVERGED"):  # the zero model may be the best
        return []
    if (g > error + 16 * ref.rows * EPS * ref.sizes.reshape(-1, *[1] * (g.ndim - 1)) * norm(r)).any():
        return [("status", f"{result.status.name} at the zero model, where the gradient is {float(g.max()):.3g}")]
    return []


GENERAL = ("logistic", "huber", "poisson")


def gradient_pursuit(rng, table):
    """OMP with other losses than squared."""
    loss = str(rng.choice(GENERAL))
    draw_labels(rng, table, loss)
    prepared(rng, table)
    k, d = draw_k(rng, table), table.X.shape[1]
    ridge = float(rng.choice([0.0, 0.0, 1e-3, 1.0]))
    forced = ()
    if rng.random() < 0.15:
        forced = tuple(int(j) for j in rng.choice(d, size=int(rng.integers(1, k + 1)), replace=False))
    tol = float(rng.choice([1e-6, 1e-2])) if rng.random() < 0.2 else None
    solver = sk.OMP(k, tol=tol, ridge=ridge, forced=forced)
    _, selector, proven = draw_selector(rng, quadratic=False)
    result = minimize(table, solver, selector, loss)
    ref = Reference(table, loss)
    wrong = common(ref, result, k, proven)
    if wrong or result.status.name == "DIVERGED":
        return wrong
    wrong = replays.general_choices(ref, result, solver, ridge)
    if well_posed(ref, result, ridge):
        wrong += replays.stationary(ref, result.support, result.coef, ridge)
    return wrong + general_status(ref, result, k) + moves_at_all(ref, result)


def well_posed(ref, result, ridge):
    """Whether a fit has a minimum that float64 can find: not separable, not nearly dependent."""
    if len(result.support) == 0:
        return False
    X = ref.X[:, result.support]
    sizes = np.sqrt((X * X).sum(axis=0))
    if not (sizes > 0).all():
        return False
    small = np.linalg.svd((X / sizes).astype(float), compute_uv=False)[-1]
    return small > 1e-5 and result.objective > 1e-6 * float(ref.objective(ref.zero))


def general_status(ref, result, k):
    if result.status.name == "COMPLETE" and len(result.support) != k:
        return [("status", f"COMPLETE with {len(result.support)} of {k} columns")]
    if result.status.name == "ZERO_RESIDUAL":
        return [("status", "ZERO_RESIDUAL is for squared loss")]
    return []


def general_matching_pursuit(rng, table):
    loss = str(rng.choice(GENERAL))
    draw_labels(rng, table, loss)
    prepared(rng, table)
    solver = sk.MatchingPursuit(draw_k(rng, table), max_iter=int(rng.choice([3, 25])))
    _, selector, proven = draw_selector(rng, quadratic=False)
    result = minimize(table, solver, selector, loss)
    ref = Reference(table, loss)
    reach = np.abs(ref.predict(result.coef)).max(initial=0) * 4 if np.isfinite(result.coef).all() else 0.0
    wrong = common(ref, result, solver.n_nonzero_coefs, proven, reach)
    return wrong + checks.never_worse(result) + moves_at_all(ref, result)


def grasp(rng, table):
    """GraSP and StoGradMP with other losses."""
    loss = str(rng.choice(GENERAL))
    draw_labels(rng, table, loss)
    prepared(rng, table)
    k = draw_k(rng, table)
    ridge, refit = float(rng.choice([0.0, 1e-3, 1.0])), bool(rng.random() < 0.5)
    kind = rng.choice([sk.GraSP, sk.StoGradMP])
    solver = kind(k, max_iter=int(rng.choice([1, 4, 15])), refit=refit, ridge=ridge)
    _, selector, proven = draw_selector(rng, quadratic=False)
    result = minimize(table, solver, selector, loss)
    ref = Reference(table, loss)
    wrong = common(ref, result, k, proven)
    if wrong or result.status.name == "DIVERGED":
        return wrong
    if kind is sk.GraSP and result.history and result.history[0].certificate in ("exact", "delta"):
        found = judge_choice(
            ref, ref.residual(ref.zero), result.history[0].selected, np.arange(ref.d), 2 * k
        )
        wrong += [("choice", f"step 0: {message}") for message in found]
    if refit and well_posed(ref, result, ridge):
        wrong += replays.stationary(ref, result.support, result.coef, ridge)
    return wrong + (moves_at_all(ref, result) if kind is sk.GraSP else [])


def stochastic(rng, table):
    """StoIHT and StoGradMP with squared loss; with all rows in a batch the former is followed."""
    prepared(rng, table)
    k, n = draw_k(rng, table), len(table.X)
    batch = n if rng.random() < 0.5 else int(rng.integers(1, n + 1))
    with np.errstate(over="ignore"):
        bound = float((table.X**2).sum()) or 1.0
    if rng.random() < 0.7:
        step = 1.0 / bound if 0 < 1.0 / bound < np.inf else 1.0
        solver = sk.StoIHT(k, max_iter=int(rng.choice([1, 5, 20])), batch_size=batch, step_size=step)
    else:
        solver = sk.StoGradMP(k, max_iter=5, batch_size=batch)
    _, selector, proven = draw_selector(rng)
    if rng.random() < 0.8:
        selector = "exact"
    if "gram" in str(selector).lower():
        table.notes["may refuse"] = True
    result = minimize(table, solver, selector)
    ref = Reference(table)
    wrong = common(ref, result, k)
    if not wrong and isinstance(solver, sk.StoIHT) and batch == n and selector == "exact" and not table.extreme:
        wrong = replays.hard_thresholding(ref, result, solver, k)
    return wrong


# -- Frank-Wolfe ---------------------------------------------------------------------------------------------


def frank_wolfe(rng, table):
    loss = "squared" if rng.random() < 0.6 else str(rng.choice(GENERAL))
    draw_labels(rng, table, loss)
    prepared(rng, table)
    ref = Reference(table, loss)
    top = ref.sizes.max(initial=0)
    natural = float(norm(ref.b) / top) if top > 0 else 1.0
    natural = natural if 1e-290 < natural < 1e290 else 1.0
    radius = natural * float(rng.choice([1e-3, 0.5, 1.0, 3.0, 100.0])) if rng.random() < 0.8 else 1.0
    kind = rng.choice([sk.L1Ball, sk.Simplex])
    solver = sk.FrankWolfe(
        kind(radius),
        max_iter=int(rng.choice([1, 6, 40, 120])),
        step=str(rng.choice(["exact", "open-loop", "backtracking"])),
        variant=str(rng.choice(["vanilla", "away", "pairwise", "blended"])),
        tol=float(norm(ref.b) ** 2) * 1e-6 if rng.random() < 0.3 and norm(ref.b) < 1e100 else None,
        lazy=bool(rng.random() < 0.2),
    )
    _, selector, proven = draw_selector(rng, quadratic=loss == "squared")
    result = minimize(table, solver, selector, loss)
    reach = radius * np.abs(ref.X).max(initial=0)
    wrong = common(ref, result, None, False, reach)
    if wrong:
        return wrong
    wrong += feasible(solver, result)
    if result.status.name == "DIVERGED":
        return wrong
    wrong += bounds_of_gaps(ref, solver, result) + frank_wolfe_status(ref, solver, result)
    known = solver.rule == "open-loop" or (solver.rule == "exact" and loss == "squared")
    if solver.variant == "vanilla" and known and not solver.lazy:
        wrong += replays.frank_wolfe(ref, result, solver)
    elif result.history and result.history[0].certificate in ("exact", "delta"):
        z = radius * ref.X[:, 0] if kind is sk.Simplex else ref.zero
        score = "signed" if kind is sk.Simplex else "absolute"
        chosen = result.history[0].selected[-1:]
        found = judge_choice(ref, ref.residual(z), chosen, np.arange(ref.d), 1, score, slack=0.0)
        wrong += [("choice", f"step 0: {message}") for message in found]
    if solver.rule != "open-loop":
        wrong += descends(ref, solver, result)
    return wrong


def feasible(solver, result):
    """The point is in the set."""
    w, radius = result.coef.astype(LD), LD(solver.constraint.radius)
    unit = 64 * float(np.finfo(result.coef.dtype).eps) * (1 + result.n_iter)
    total = np.abs(w).sum()
    if total > radius * (1 + unit):
        return [("feasible", f"||w||_1 is {float(total)!r}, the radius {float(radius)!r}")]
    if isinstance(solver.constraint, sk.Simplex) and ((w < 0).any() or total < radius * (1 - unit)):
        return [("feasible", f"smallest {float(w.min()):.3g}, sum {float(w.sum())!r}, radius {float(radius)!r}")]
    return []


def bounds_of_gaps(ref, solver, result):
    """Every objective less its duality gap is a lower bound of the minimum, so of the last objective too."""
    told = [float(ref.objective(starting_point(ref, solver)))] + [r.objective for r in result.history]
    unit = EPS * (ref.rows + 64) * 64 * (1 + len(told))
    for before, record in zip(told, result.history):
        if record.gap is None or record.certificate not in ("exact", "delta") or not np.isfinite(before):
            continue
        slack = unit * (abs(before) + abs(record.gap) + abs(result.objective) + scale_of(ref, solver))
        if before - record.gap > result.objective + slack:
            return [("gap", f"objective {before!r}, gap {record.gap!r}, but the run ends at {result.objective!r}")]
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
    limit = LD(solver.tol or 0.0) if name in ("CONVERGED", "OPTIMAL") else None
    if name == "STALLED":
        limit = LD(1e-7) * (gap + abs(ref.objective(starting_point(ref, solver)))) + LD(1e-12) * scale_of(ref, solver)
    if limit is None:
        return []
    if gap > limit * (1 + 1e-6) + 4 * doubt:
        return [("status", f"{name} with a duality gap of {float(gap):.3g}")]
    return []


def descends(ref, solver, result):
    told = [float(ref.objective(starting_point(ref, solver)))] + [r.objective for r in result.history]
    unit = 64 * EPS * (ref.rows + 64)
    for before, after in zip(told, told[1:]):
        if after > before + unit * (abs(before) + scale_of(ref, solver)):
            return [("descent", f"the objective rises from {before!r} to {after!r}")]
    return []


PROGRAMS = {
    select: 24,
    omp: 16,
    matching_pursuit: 6,
    cosamp: 9,
    gradient_pursuit: 9,
    general_matching_pursuit: 3,
    grasp: 6,
    stochastic: 4,
    frank_wolfe: 12,
}
__all__ = ["ARRAYS", "DENSE", "PROGRAMS"]
