"""What every result must satisfy, whatever the solver. A check returns a list of (name, message)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .reference import EPS, LD, TINY, Reference, norm, norm_rows

CERTIFICATES = {"none", "exact", "heuristic"}
RANGE = LD(np.finfo(np.float64).max)


def shape_of(ref, result, k=None):
    """Support, coefficients, counts and labels fit together."""
    wrong = []

    def check(name, fine, message):
        if not fine:
            wrong.append((name, message))

    support = np.asarray(result.support)
    d, targets = ref.d, ref.y.shape[1:]
    check("support", len(set(support.tolist())) == len(support), f"repeated: {support.tolist()}")
    check("support", ((support >= 0) & (support < d)).all(), f"out of range: {support.tolist()}")
    check("shape", result.coef.shape == (d, *targets), f"coef has shape {result.coef.shape}")
    check("finite", np.isfinite(result.coef).all(), "coef is not finite")
    check("finite", not np.isnan(result.objective), "the objective is NaN")
    if wrong:
        return wrong
    off = np.setdiff1d(np.arange(d), support)
    check("support", not result.coef[off].any(), "coefficients off the support")
    check("sparsity", k is None or len(support) <= k, f"{len(support)} columns where {k} were allowed")
    check("dropped", not set(result.dropped.tolist()) & set(support.tolist()), "dropped, and in the support")
    history = result.history
    check("counts", result.n_iter == len(history), f"n_iter {result.n_iter}, {len(history)} records")
    for name in ("entries_read", "bytes_read"):
        total = sum(getattr(record, name) for record in history)
        told = getattr(result, name)
        check("counts", told == total >= 0, f"{name} is {told}, the records sum to {total}")
    check("certificate", all(r.certificate in CERTIFICATES for r in history), "unknown certificate")
    chosen = [j for record in history for j in record.selected]
    check("selected", all(0 <= j < d for j in chosen), "selected columns out of range")
    return wrong


def coef_rounding(ref, result):
    """What the dtype of the coefficients takes from predictions, as a norm of weighted ones."""
    unit = float(np.finfo(getattr(result, "dtype", result.coef.dtype)).eps)
    return unit * coef_reach(ref, result.coef)


def coef_reach(ref, coef):
    """Sum of |w_j| ||x_j||."""
    w = np.asarray(coef).astype(LD)
    return (ref.sizes * (np.abs(w) if w.ndim == 1 else norm_rows(w))).sum()


def told_predictions(ref, result, z, slack, whose):
    """The coefficients give the predictions z, up to `slack` and what their own digits take."""
    w = result.coef.astype(LD)
    off, reach = norm(ref.A @ w - z), 64 * EPS * coef_reach(ref, w)
    if off <= slack + 2 * coef_rounding(ref, result) + reach:
        return []
    size = float(norm(z - ref.b))
    return [("fit", f"predictions are {float(off):.3g} off {whose}, which leaves a residual of {size:.3g}")]


def told_objective(ref: Reference, result, reach=0.0):
    """The objective is that of the returned coefficients.

    `reach` bounds the entries of predictions on the way, which are rounded at each step.
    """
    z = ref.predict(result.coef)
    rows = np.abs(ref.X) @ np.abs(result.coef.astype(LD))
    unit = float(np.finfo(result.coef.dtype).eps)
    steps = 32 * EPS * (len(result.support) + result.n_iter + ref.rows + 16)
    if ref.loss == "squared":
        total = coef_reach(ref, result.coef) + norm(ref.b) + LD(reach) * norm(ref.root)
        off = coef_rounding(ref, result) + steps * total
        size = norm(ref.rooted(z) - ref.b)
        error = off * size + off * off
    else:
        moved = unit * rows + steps * (rows + LD(reach)) + steps * np.abs(z)
        values = ref.values(z)
        error = sum(np.abs(ref.values(z + side * moved) - values).sum() for side in (-1, 1))
        # Where a loss cancels the terms of a value (Poisson: up to an ulp of z), those are what is rounded.
        terms = np.abs(ref.residual(z) * z).sum() if ref.loss == "poisson" else 0
        error += 64 * EPS * (np.abs(values).sum() + terms)
    true = ref.objective(z)
    error += 8 * ref.rows * EPS * true + 4 * ref.rows * TINY
    if abs(LD(result.objective) - true) <= error or (true > RANGE / 8 and np.isinf(result.objective)):
        return []
    return [("objective", f"tells {result.objective!r}, its coefficients give {float(true)!r}")]


def never_worse(result, unit=1e-9, scale=0.0, told=()):
    """The objective of a descending solver never rises; `told` are objectives before the first step."""
    for before, after in pairwise([*told, *(record.objective for record in result.history)]):
        if after > before + unit * (abs(before) + scale) + 1e-300:
            return [("descent", f"the objective rises from {before!r} to {after!r}")]
    return []
