"""Runs followed step by step in long double, along the columns that they chose."""

from __future__ import annotations

import numpy as np

from skpursuit import OMP

from .checks import coef_reach, coef_rounding, told_predictions
from .reference import EPS, LD, SMOOTHNESS, TINY, Span, judge_choice, norm, norm_rows

DOUBTFUL = 3e-4  # share below which normal equations may keep a later column instead
GREY = 1000.0  # dependence within this factor of the threshold may be judged either way


def proven(record):
    """Whether the last answer of a step is: an answer that would end the run is asked for again, exactly."""
    return record.certificate == "exact" or len(record.selected) > 1


def dependence(n):
    """Share of a column below which it counts as dependent (the solvers' rule)."""
    return 8 * max(16, n) * EPS


def take(span, x, n, noise=0.0):
    """Add a column; returns whether it is "free", "dependent" or in the "grey" zone between them.

    `noise` is the norm of what is rounding in x before it is looked at.
    """
    (share, _, h), size = span.share(x), norm(x)
    if size == 0:
        return "dependent"
    rounded = max(LD(noise), norm(h * np.array(span.noise, LD))) / size
    limit = max(LD(dependence(n)), rounded)
    # What is left of x inherits the rounding of the directions that it is compared with.
    doubt = GREY * limit * max(1.0, span.condition() * 1e-2)
    # The rounding of the others may cancel, as that of twins does: only its own is sure to count.
    if share <= max(LD(dependence(n)), LD(noise) / size) / GREY:
        return "dependent"
    return "grey" if share <= doubt else "free"


def omp_squared(ref, result, solver, k):
    """Orthogonal matching pursuit with squared loss: choices, dropped columns, fit and status."""
    wrong, span, support, dropped, maybe, beyond = [], Span(ref.n), [], [], set(), []
    told, lost = result.support.tolist(), set(result.dropped.tolist())
    noise = getattr(ref, "noise", np.zeros(ref.d))
    score = "signed" if solver.positive else ("group" if ref.y.ndim == 2 else "absolute")

    def enter(j):
        kind = take(span, ref.A[:, j], ref.rows, noise[j])
        if j in lost and j not in told:
            dropped.append(j)
            # Others that depend on the support may be dropped along with it.
            maybe.update(c for c in lost if take(span, ref.A[:, c], ref.rows, noise[c]) != "free")
            return [("dependence", f"column {j} was dropped, but is independent")] if kind == "free" else []
        if len(support) < len(told) and told[len(support)] == j:
            support.append(j)
            if solver.positive and kind != "free":
                beyond.append(j)  # it may help where coefficients must not be negative
                return []
            span.add(ref.A[:, j], noise[j])
            return [("dependence", f"column {j} depends on others")] if kind == "dependent" else []
        return [("support", f"column {j} was chosen, but is neither next in the support nor dropped")]

    kept = [(j,) for j in [*told, *lost]]
    for j in solver.always_include:
        wrong += enter(int(j))
    if beyond:
        return cone(ref, result, told)
    for place, record in enumerate(result.history):
        z, slack, extra = fitted(ref, span, support, solver.positive)
        chosen = record.selected[-1:]
        allowed = np.setdiff1d(np.arange(ref.d), support + dropped + list(maybe - set(chosen)))
        if proven(record):
            r = ref.rooted(z - ref.b)
            wrong += judge_choice(ref, r, chosen, allowed, 1, score, slack, extra, place)
        last = place == len(result.history) - 1
        useless = last and result.status.name == "OPTIMAL" and chosen not in kept
        if chosen and not useless:
            wrong += enter(chosen[0])
        if beyond:
            return cone(ref, result, told)
        if wrong:
            return wrong
    if told != support:
        return [("support", f"tells {told}, the records lead to {support}")]
    z, slack, _ = fitted(ref, span, support, solver.positive)
    wrong += told_predictions(ref, result, z, slack, "the best fit")
    if solver.positive and (result.coef < 0).any():
        wrong.append(("positive", f"coefficient {result.coef.min()} with positive=True"))
    doubt = slack + 2 * coef_rounding(ref, result)
    # Columns that are left out as soon as they are looked at cannot improve anything.
    rest = [] if solver.positive else np.setdiff1d(np.arange(ref.d), told)
    maybe.update(j for j in rest if take(span, ref.A[:, j], ref.rows, noise[j]) != "free")
    return wrong + pursuit_status(ref, result, solver, k, z - ref.b, doubt, {*dropped, *maybe}, score)


def cone(ref, result, told):
    """A support with columns that depend on each other: its fit is that of non-negative least squares."""
    _, best = cone_fit(ref.A[:, told], ref.b)
    left, rounding = norm(ref.A @ result.coef.astype(LD) - ref.b), 2 * coef_rounding(ref, result)
    if (result.coef < 0).any() or left > best * (1 + 1e-9) + 1e-7 * norm(ref.b) + rounding:
        return [("fit", f"residual norm {float(left):.9g}, non-negative least squares has {float(best):.9g}")]
    return []


def cone_fit(A, b):
    """Non-negative least squares by scipy: coefficients and the norm of the residual.

    Columns and b are divided by powers of two, so that float64 holds them; a zero stays one.
    """
    from scipy.optimize import nnls

    powers, power = (np.frexp(np.abs(part).max(axis=0))[1] for part in (A, b))
    units, target = np.ldexp(A, -powers).astype(float), np.ldexp(b, -power).astype(float)
    w, left = nnls(units, target, maxiter=100 * len(powers))
    return np.ldexp(w.astype(LD), power - powers), np.ldexp(LD(left), power)


def fitted(ref, span, support, positive=False):
    """The best fit on a span, what float64 may lose of it, and of gradient entries besides.

    A mean that is rounded moves its column along the constant, to which centred columns are orthogonal: of
    first order nothing changes, of second order it does.
    """
    z, w = span.fit(ref.b)
    slack = span.rounding(ref.b, z, w)
    if positive and len(w) and (w < 0).any():
        z, slack = non_negative(ref, span, slack)
    if not hasattr(ref, "noise"):
        return z, slack, 0.0
    noise, sizes = ref.noise[support], ref.sizes[support]
    sums = ref.y_noise + sum((norm(wi) * e for wi, e in zip(w, noise)), LD(0))
    if len(support):
        slack += 8 * sums * LD(span.condition()) * (noise / sizes).max()
    return z, slack + EPS * sums, ref.noise * sums


def non_negative(ref, span, slack):
    """The non-negative fit by scipy, whose rounding is taken as a hundred times that of the free one."""
    A = np.array(span.columns).T
    w, _ = cone_fit(A, ref.b)
    # Fit again in long double on what scipy left in.
    part = Span(ref.n)
    for i in np.flatnonzero(w > 0):
        part.add(A[:, i])
    z, v = part.fit(ref.b)
    if (v < 0).any():
        return A @ w, LD(1e-9) * norm(ref.b)
    return z, 100 * slack


def pursuit_status(ref, result, solver, k, r, slack, dropped, score):
    """A status means what it says."""
    name, size = result.status.name, norm(r)
    scale = norm(ref.b)
    if name == "COMPLETE" and len(result.support) != k:
        return [("status", f"COMPLETE with {len(result.support)} of {k} columns")]
    zero = 16 * np.sqrt(LD(ref.rows)) * EPS * scale + slack + getattr(ref, "y_noise", 0.0)
    if name == "ZERO_RESIDUAL" and size > zero:
        return [("status", f"ZERO_RESIDUAL with residual {float(size):.3g} of {float(scale):.3g}")]
    if name == "CONVERGED":
        limits = [LD(solver.tol)] if solver.tol is not None else []
        limits += [LD(solver.rtol) * scale**2] if solver.rtol is not None else []
        if not limits or max(size - slack, 0) ** 2 > max(limits) * (1 + 1e-9) + ref.rows * TINY:
            return [("status", f"CONVERGED with squared residual {float(size**2):.3g}")]
    if name == "OPTIMAL":
        # With coefficients of one sign a column that depends on the support may help all the same.
        gone = set() if score == "signed" else set(dropped)
        left = np.setdiff1d(np.arange(ref.d), [*result.support.tolist(), *gone])
        back = ref.rooted(r)
        g, error = ref.gradient(back), ref.product_error(back)
        g, error = (g, error) if g.ndim == 1 else (norm_rows(g), norm_rows(error))
        g = -g if score == "signed" else np.abs(g)
        # A gradient below the rounding of another column's is not seen: that column stays in front. Those
        # of the support are asked for again by solvers that move one coefficient at a time.
        again = left if isinstance(solver, OMP) else slice(None)
        unseen = error + ref.sizes * LD(slack) + 8 * EPS * ref.sizes * size
        over = g[left] - unseen[left] - unseen[again].max(initial=0)
        if len(left) and over.max() > 0:
            j = int(left[int(np.argmax(over))])
            return [("status", f"OPTIMAL, but column {j} has gradient {float(g[j]):.3g}")]
    return []


def matching_pursuit(ref, result, solver):
    """Matching pursuit with squared loss: each move is g_j / ||x_j||^2."""
    wrong, w = [], np.zeros((ref.d, *ref.y.shape[1:]), LD)
    z, used, dropped = np.zeros_like(ref.b), set(), set()
    score = "group" if ref.y.ndim == 2 else "absolute"
    reach = norm(ref.b)
    unit = 8 * (ref.rows + 16) * EPS
    for place, record in enumerate(result.history):
        slack = unit * (place + 4) * reach
        r = ref.rooted(z - ref.b)
        if proven(record):
            allowed = np.setdiff1d(np.arange(ref.d), sorted(dropped))
            wrong += judge_choice(ref, r, record.selected[-1:], allowed, 1, score, slack, step=place)
            if wrong:
                return wrong
        last = place == len(result.history) - 1
        if last and result.status.name in ("COMPLETE", "OPTIMAL"):
            break
        j = record.selected[-1]
        if j in result.dropped:
            dropped.add(j)
            continue
        x = ref.A[:, j]
        move = -(x @ (z - ref.b)) / (x @ x) if x.any() else w[j]
        w[j] += move
        z = z + (x * move if z.ndim == 1 else np.multiply.outer(x, move))
        reach = max(reach, norm(z))
        used.add(j)
    slack = unit * (len(result.history) + 4) * (reach + coef_reach(ref, w)) + 2 * coef_rounding(ref, result)
    wrong += told_predictions(ref, result, z, slack, "the sum of the moves")
    k = solver.n_nonzero_coefs
    return wrong + pursuit_status(ref, result, solver, k, z - ref.b, slack, dropped, score)


class Ambiguous(Exception):
    """A decision that rounding may turn either way, beyond which a replay cannot follow."""


def cosamp(ref, result, solver, k):
    """CoSaMP with squared loss. Ends without a verdict where pruning is a near tie."""
    wrong, w = [], np.zeros((ref.d, *ref.y.shape[1:]), LD)
    score = "group" if ref.y.ndim == 2 else "absolute"
    z, slack, best = np.zeros_like(ref.b), LD(0), None
    objectives = [(norm(ref.b) ** 2 / 2, w)]
    support = np.empty(0, int)
    stopped = result.status.name in ("STALLED", "CYCLING")
    for place, record in enumerate(result.history):
        if record.certificate == "exact":
            r = ref.rooted(z - ref.b)
            wrong += judge_choice(ref, r, record.selected, None, 2 * k, score, slack, step=place)
            if wrong:
                return wrong
        if place == len(result.history) - 1 and (stopped or result.status.name == "DIVERGED"):
            break
        merged = np.union1d(support, np.array(record.selected, int))
        try:
            w, slack = merged_fit(ref, merged, k, solver.refit)
        except Ambiguous:
            return wrong
        support = np.flatnonzero(w.any(axis=1) if w.ndim == 2 else w)
        z = ref.A @ w
        objectives.append((norm(z - ref.b) ** 2 / 2, w))
    if result.status.name in ("CYCLING", "DIVERGED"):
        best = min(value for value, _ in objectives)
        off = slack + coef_rounding(ref, result)
        true = norm(ref.A @ result.coef.astype(LD) - ref.b)
        if true > np.sqrt(2 * best) * (1 + 1e-9) + 4 * off:
            wrong.append(("best", f"residual {float(true):.3g}, the best was {float(np.sqrt(2 * best)):.3g}"))
        return wrong
    if set(np.flatnonzero(result.coef.any(axis=1) if w.ndim == 2 else result.coef)) != set(support.tolist()):
        told = f"{sorted(result.support.tolist())}, the records lead to {support.tolist()}"
        return [*wrong, ("support", told)]
    return wrong + told_predictions(ref, result, z, slack, "the best fit, pruned")


def merged_fit(ref, merged, k, refit):
    """Coefficients on the merged columns, lower-numbered ones first, pruned to the k largest."""
    span, kept = Span(ref.n), []
    for j in merged.tolist():
        kind = take(span, ref.A[:, j], ref.rows)
        if kind == "grey" or (kind == "free" and span.share(ref.A[:, j])[0] < DOUBTFUL):
            raise Ambiguous
        if kind == "free":
            span.add(ref.A[:, j])
            kept.append(j)
    w = np.zeros((ref.d, *ref.y.shape[1:]), LD)
    if not kept:
        return w, LD(0)
    if span.condition() > 1e6:  # normal equations, and coefficients that rounding may reorder
        raise Ambiguous
    z, v = span.fit(ref.b)
    w[kept] = v
    slack = span.rounding(ref.b, z, v) * 10 * LD(span.condition())
    sizes = np.abs(w) if w.ndim == 1 else norm_rows(w)
    doubt = np.where(ref.sizes > 0, slack * LD(span.condition()) / np.where(ref.sizes > 0, ref.sizes, 1), 0)
    order = np.lexsort((np.arange(ref.d), -sizes))
    chosen, left = order[:k], order[k:]
    near = len(left) and (sizes[chosen] - doubt[chosen]).min() <= (sizes[left] + doubt[left]).max()
    if near and sizes[left].max() > 0:
        raise Ambiguous
    if (sizes[kept] <= doubt[kept]).any():
        raise Ambiguous
    w[left] = 0
    if refit:
        part = Span(ref.n)
        keep = np.sort(chosen[sizes[chosen] > 0])
        for j in keep:
            part.add(ref.A[:, j])
        z, v = part.fit(ref.b)
        if (norm_rows(v.reshape(len(v), -1)) <= doubt[keep]).any():
            raise Ambiguous
        w[keep] = v
    return w, slack


def frank_wolfe(ref, result, solver):
    """Vanilla Frank-Wolfe whose steps are known: vertices, and predictions in the end."""
    simplex = type(solver.constraint).__name__ == "Simplex"
    radius = LD(solver.constraint.radius)
    z = radius * ref.X[:, 0] if simplex else np.zeros(ref.n, LD)
    score, wrong = ("signed" if simplex else "absolute"), []
    reach, low = radius * ref.sizes.max() + norm(z * ref.root), np.sqrt(ref.weights.min())
    for place, record in enumerate(result.history):
        smooth = max(LD(1), (ref.curvature(z) / ref.weights).max())
        slack = 16 * (ref.rows + 16) * EPS * (place + 2) * (reach + norm(ref.b)) * smooth
        r = ref.residual(z)
        if record.certificate == "exact":
            wrong += judge_choice(ref, r, record.selected[-1:], None, 1, score, slack, step=place)
            if wrong:
                return wrong
        if place == len(result.history) - 1 and result.status.name in ("OPTIMAL", "CONVERGED", "STALLED"):
            break
        j = record.selected[-1]
        slope = ref.X[:, j] @ r
        if not simplex and abs(slope) <= ref.product_error(r)[j] + ref.sizes[j] * LD(slack):
            return wrong  # the sign of the vertex is lost in rounding
        dz = (radius if simplex or slope <= 0 else -radius) * ref.X[:, j] - z
        least, unit = np.finfo(float).tiny, 64 * (ref.rows + 16) * EPS * (place + 2)
        doubt = unit * reach * (norm(r) / low + smooth * (reach + norm(ref.b)))
        true = -(r @ dz)
        if record.gap is not None and abs(record.gap - true) > 1e-9 * abs(record.gap) + doubt + least:
            return [*wrong, ("gap", f"step {place}: tells a gap of {record.gap!r}, it is {float(true)!r}")]
        if solver.line_search == "open-loop":
            gamma = min(LD(1), LD(2) / (place + 2))
        else:
            size = (ref.weights * dz * dz).sum()
            gamma = min(LD(1), max(LD(0), -(r @ dz) / size)) if size > 0 else LD(0)
        z = z + gamma * dz
    slack = 32 * (ref.rows + 16) * EPS * (len(result.history) + 2) * (reach + norm(ref.b))
    return wrong + told_predictions(ref, result, z * ref.root, slack, "the last step")


def condition(X):
    """Of columns scaled to unit norm, or of the rows where those are fewer; infinite where one is zero."""
    sizes = np.sqrt((X * X).sum(axis=0))
    if not X.shape[1] or not (sizes > 0).all():
        return 1.0 if not X.shape[1] else np.inf
    return 1.0 / max(1e-18, float(np.linalg.svd((X / sizes).astype(float), compute_uv=False)[-1]))


def stationary(ref, support, coef, ridge=0.0):
    """No coefficient of a fit to the last digit can be moved alone to gain much; one target."""
    if len(support) == 0:
        return []
    X, w, z = ref.X[:, support], np.asarray(coef)[support].astype(LD), ref.predict(coef)
    r = ref.residual(z)
    unit = float(np.finfo(np.asarray(coef).dtype).eps)
    moved = (unit + 64 * EPS) * (np.abs(ref.X) @ np.abs(coef))
    turned = np.abs(ref.residual(z + moved) - ref.residual(z - moved))  # slopes of convex losses only rise
    doubt = 4 * np.abs(X).T @ turned + 64 * EPS * ref.rows * (np.abs(X).T @ np.abs(r))
    doubt += (unit + 64 * EPS) * ridge * np.abs(w)
    gain = [single_gain(ref, z, X[:, i], w[i], ridge, doubt[i]) for i in range(len(w))]
    best, f = int(np.argmax(gain)), ref.objective(z) + LD(ridge) * (w @ w) / 2
    if gain[best] > 1e-9 * f + 1e-12 * ref.objective(ref.zero):
        share = float(gain[best] / f)
        return [("stationary", f"column {support[best]} alone would take {share:.3g} off the objective")]
    return []


def single_gain(ref, z, x, w, ridge=0.0, doubt=0.0):
    """What moving the coefficient of one column gains, in any unit: steps double while the objective falls.

    The first step is -g / L, L a bound of the curvature; a gradient within `doubt` gains nothing.
    """
    g = x @ ref.residual(z) + LD(ridge) * w
    if abs(g) <= doubt:
        return LD(0)
    bound = 8 * ref.curvature(z) if ref.loss == "poisson" else ref.weights * SMOOTHNESS[ref.loss]
    step, gain, start = -g / ((x * x) @ bound + LD(ridge)), LD(0), ref.objective(z)
    while True:
        lower = start - ref.objective(z + step * x) - LD(ridge) * (w + step / 2) * step
        if not lower > gain:
            return gain
        gain, step = lower, 2 * step


def duality_gap(ref, solver, coef):
    """The gap of Frank-Wolfe at some coefficients, and its rounding."""
    w = np.asarray(coef).astype(LD)
    z = ref.predict(w)
    r = ref.residual(z)
    g = ref.gradient(r)
    radius = LD(solver.constraint.radius)
    simplex = type(solver.constraint).__name__ == "Simplex"
    gap = g @ w + (-radius * g.min() if simplex else radius * np.abs(g).max())
    sizes = np.sqrt((ref.X**2).sum(axis=0))
    unit = float(np.finfo(np.asarray(coef).dtype).eps)
    reach = norm(z) + radius * sizes.max()
    moved = (unit + 64 * EPS * (ref.rows + 16)) * reach
    bend = ref.curvature(z).max()
    return gap, moved * (norm(r) + bend * reach) + 32 * ref.rows * EPS * norm(r) * reach
