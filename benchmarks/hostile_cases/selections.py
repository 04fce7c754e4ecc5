"""Selectors by name, and the program that asks one of them a single question."""

from __future__ import annotations

import numpy as np

import skpursuit as sk
from skpursuit.selectors import Absolute, GroupNorm, Query, Signed, as_selector

from .reference import LD, Reference, judge_choice
from .tables import hand_over


class TwoBytes(sk.Certified):
    """Certified selection with both bytes of the codes."""

    def find_with_memory(self, bound, query, memory):
        bound.fine = True
        return super().find_with_memory(bound, query, memory)


EXACT = ("exact", "auto", "certified", TwoBytes(), "gram", sk.Gram(memory_limit=4096))
BOUNDED = sk.Greedy(stop=sk.ErrorBound(1e-3))
HEURISTIC = (
    *("greedy", sk.Greedy(stop=sk.Budget(1.0)), sk.Greedy(stop=sk.Stability(0.3) | sk.Budget(0.5)), BOUNDED),
    *("uniform", sk.Importance(stop=sk.Stability(5)), "halving", "halving-random"),
    sk.SuccessiveHalving(budget=3.0),
    sk.SuccessiveHalving(doubling=True, budget=0.05),
    sk.SuccessiveHalving(exact_fraction=0.0, order="random"),
    *(sk.SuccessiveReject(budget=0.3), "quantized", sk.Quantized(max_recomputed=1)),
)


def draw_selector(rng, quadratic=True, exact=0.7, entries=True):
    """A selector and whether its answers must be proven; `entries` says whether X has single ones."""
    every = EXACT if rng.random() < exact else HEURISTIC
    refused = [] if quadratic else ["gram", sk.Gram]
    refused += [] if entries else [sk.SuccessiveReject]
    taken = [one for one in every if one not in refused and type(one) not in refused]
    return taken[rng.integers(len(taken))], every is EXACT


def spell(selector):
    """A selector as a name, or as it is written."""
    return selector if isinstance(selector, str) else repr(selector)


def select(rng, table):
    """One question to one selector."""
    if rng.random() < 0.01:
        large(rng, table)
    hand_over(rng, table)
    n, d = table.X.shape
    several = rng.random() < 0.2  # targets
    r = rng.standard_normal((n, 3) if several else n)
    kind = rng.choice(["normal", "y", "integers", "scaled", "zero", "few rows", "heavy"])
    if kind == "y" and not several:
        r = np.nan_to_num(table.y)
    elif kind == "integers":
        r = rng.integers(-3, 4, r.shape).astype(float)
    elif kind == "scaled":
        r = np.ldexp(r, int(rng.integers(-400, 400)))
    elif kind == "zero":
        r = np.zeros_like(r)
    elif kind == "few rows":
        r[rng.random(n) < 0.8] = 0.0
    elif kind == "heavy":
        r = rng.standard_cauchy(r.shape)
    score = "group" if several else str(rng.choice(["absolute", "signed"]))
    k = int(rng.integers(1, min(d, 8) + 1)) if rng.random() < 0.9 else d
    off = np.flatnonzero(rng.random(d) < rng.choice([0.0, 0.3, 1.0], p=[0.6, 0.35, 0.05]))
    selector, proven = draw_selector(rng, False, 0.6, table.source != "operator")
    selector = as_selector(selector)
    ask = {"absolute": Absolute(), "signed": Signed(), "group": GroupNorm()}[score]
    ordered = bool(rng.random() < 0.6)
    table.notes["call"] = (
        f"{selector!r}.select(as_design(X), Query(r, {k}, {ask!r}, {off.tolist()}, ordered={ordered})), "
        f"r {kind}, source {table.source}, X {table.X.shape}, r {r.shape}"
    )
    design = sk.as_design(table.given)
    answer = selector.select(design, Query(r, k, ask, off, np.random.default_rng(1), ordered=ordered))
    ref = Reference(table)
    allowed = np.setdiff1d(np.arange(d), off)
    wrong = []
    if len(allowed) and (answer.certificate == "exact" or proven):
        if answer.certificate != "exact":
            wrong.append(("certificate", f"a proven selector says {answer.certificate}"))
        wrong += judge_choice(ref, r.astype(LD), answer.columns, allowed, k, score)
    chosen = answer.columns.tolist()
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(allowed.tolist()):
        wrong.append(("support", f"chose {chosen}, repeated or excluded"))
    if len(chosen) != min(k, len(allowed)):
        wrong.append(("count", f"{len(chosen)} columns where {min(k, len(allowed))} were asked for"))
    if answer.entries_read < 0 or answer.bytes_read < answer.entries_read // 8:
        wrong.append(("counts", f"read {answer.entries_read} entries, {answer.bytes_read} bytes"))
    if selector is BOUNDED and len(chosen) and answer.certificate != "exact":
        off_by = np.abs(np.asarray(answer.gradient).astype(LD) - ref.gradient(r.astype(LD))[chosen])
        if off_by.max() > 1e-3 + ref.product_error(r.astype(LD))[chosen].max():
            wrong.append(("bound", f"an estimate is {float(off_by.max()):.3g} off, the bound was 0.001"))
    return wrong


def large(rng, table):
    """X of more than 2^20 entries, where halving and certified selection work on codes in blocks."""
    n, d = int(rng.integers(1030, 1200)), int(rng.integers(1020, 1100))
    X = rng.standard_normal((n, 40 if (copies := rng.random() < 0.3) else d))
    X = X[:, rng.integers(0, 40, d)] if copies else X
    table.X, table.y, table.extreme = X, X[:, :3].sum(axis=1) + rng.standard_normal(n), False


PROGRAMS = {select: 24}
