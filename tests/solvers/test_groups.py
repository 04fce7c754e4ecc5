"""Groups of columns, and columns that are always or never in a model, against plain loops and brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls

from skpursuit import (
    OMP,
    Budget,
    CoSaMP,
    GraSP,
    Greedy,
    Importance,
    MatchingPursuit,
    Status,
    SubspacePursuit,
    SuccessiveHalving,
    minimize,
)

RIDGE = 1e-2


def logistic_fit(A, y):
    w = np.zeros(A.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(y * (A @ w)))
        H = (A.T * (p * (1 - p))) @ A + RIDGE * len(y) * np.eye(len(w))
        w -= np.linalg.solve(H, RIDGE * len(y) * w - A.T @ (y * p))
    return w


def group_path(X, y, labels, k, loss):
    """Group OMP as printed: the columns in order, and their coefficients."""
    support, w = [], np.empty(0)
    for _ in range(k):
        z = X[:, support] @ w
        r = y - z if loss == "squared" else y / (1 + np.exp(y * z))
        members = {g: np.flatnonzero(labels == g) for g in dict.fromkeys(labels) if g not in labels[support]}
        scores = {g: np.linalg.norm(X[:, c].T @ r) / np.sqrt(len(c)) for g, c in members.items()}
        support += members[max(scores, key=scores.get)].tolist()
        A = X[:, support]
        w = np.linalg.lstsq(A, y, rcond=None)[0] if loss == "squared" else logistic_fit(A, y)
    return support, w


def group_problem(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(60, 150)), int(rng.integers(10, 80))
    labels, X = rng.integers(0, d // 2, d), rng.standard_normal((n, d))
    y = 2 * X[:, labels == labels[0]].sum(axis=1) + rng.standard_normal(n)
    return X, y, labels, min(4, len(set(labels)))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_groups_are_those_of_a_plain_loop_on_200_problems(loss):
    for seed in range(100):
        X, y, labels, k = group_problem(2 * seed + (loss == "squared"))
        y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
        support, w = group_path(X, y, labels, k, loss)
        ridge = 0.0 if loss == "squared" else RIDGE
        for selector in ("exact", "certified", "gram" if loss == "squared" else "auto"):
            found = minimize(X, y, OMP(k, feature_groups=labels, ridge=ridge), selector, loss=loss)
            assert found.support.tolist() == support
            np.testing.assert_allclose(found.coef[support], w, atol=1e-6)
            assert found.n_iter == k


@pytest.mark.parametrize("make", [OMP, CoSaMP, GraSP, SubspacePursuit], ids=lambda one: one.__name__)
def test_groups_of_one_are_no_groups_to_the_bit(make):
    for seed in range(20):
        X, y, _, _ = group_problem(seed)
        targets = [("squared", y), ("squared", np.column_stack([y, -(y**2)]))]
        targets += [] if make in (CoSaMP, SubspacePursuit) else [("logistic", np.where(y > 0, 1.0, -1.0))]
        for loss, Y in targets:
            for selector in ("exact", "certified", "auto"):
                plain, grouped = (
                    minimize(X, Y, make(3, feature_groups=groups, ridge=0.1), selector, loss=loss)
                    for groups in (None, np.arange(X.shape[1]))
                )
                assert grouped.coef.tobytes() == plain.coef.tobytes()
                assert grouped.support.tolist() == plain.support.tolist()


def test_a_group_pursuit_with_pruning_finds_whole_groups():
    hits = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, labels = rng.standard_normal((90, 60)), np.repeat(np.arange(20), 3)
        true = np.isin(labels, rng.choice(20, 3, replace=False))
        y = X[:, true] @ rng.uniform(1, 2, 9) + 0.1 * rng.standard_normal(90)
        for prune in ("size", "gain"):
            found = minimize(X, y, CoSaMP(3, feature_groups=labels, prune=prune))
            assert len(set(labels[found.support])) <= 3
            assert set(found.support) == set(np.flatnonzero(np.isin(labels, labels[found.support])))
            hits += set(found.support) == set(np.flatnonzero(true))
    assert hits >= 76


def test_equal_groups_tie_to_the_first_and_dependent_members_are_dropped():
    X, y, _, _ = group_problem(1)
    X = np.column_stack([X[:, 0] + X[:, 1], X[:, :2], X[:, :2], X[:, 1:2], X[:, 2:]])
    groups = [[1, 2], [3, 4], [0, 5]]  # the third depends on either of the others
    y = X[:, 1] + 2 * X[:, 2] + 0.01 * y
    for data in (X, X.astype(np.float32), sp.csc_array(X)):
        runs = [
            minimize(data, y, OMP(3, feature_groups=groups), one) for one in ("exact", "gram", "certified")
        ]
        assert len({tuple(run.support) for run in runs}) == 1
        assert sorted(runs[0].support[:2]) in ([0, 5], [1, 2])
    every = minimize(X, y, OMP(X.shape[1] - 3, feature_groups=groups, tol=0.0))
    assert every.status is Status.OPTIMAL
    assert len(every.support) == np.linalg.matrix_rank(X)
    assert len(set(every.dropped)) == len(every.dropped)


def test_one_more_column_is_the_best_of_all_by_brute_force_on_200_problems():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(15, 40)), int(rng.integers(6, 14))
        X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
        inside, outside = np.split(rng.permutation(d)[: 2 + seed % 4], [1 + seed % 2])

        def left(columns, X=X, y=y):
            return np.sum((y - X[:, columns] @ np.linalg.lstsq(X[:, columns], y, rcond=None)[0]) ** 2)

        allowed = np.setdiff1d(np.arange(d), np.concatenate([inside, outside]))
        best = min(allowed, key=lambda j: left([*inside, j]))
        kept = {"always_include": inside.tolist(), "exclude": outside.tolist()}
        found = minimize(X, y, OMP(len(inside) + 1, score="gain", **kept))
        assert found.support.tolist() == [*inside, best]
        w = np.zeros(d)
        w[allowed] = nnls(X[:, allowed], y)[0]
        for make in (OMP, CoSaMP, GraSP, SubspacePursuit):
            all_in = make(d, positive=True, exclude=[*outside, *inside])
            np.testing.assert_allclose(minimize(X, y, all_in).coef, w, atol=1e-8)
        moved = MatchingPursuit(positive=True, exclude=[*outside, *inside], max_iter=20_000)
        found = minimize(X, y, moved, ("exact", "gram")[seed % 2])
        np.testing.assert_allclose(found.coef, w, atol=1e-8)
        assert found.status is Status.OPTIMAL
        w[:] = 0.0
        also = np.concatenate([inside, allowed])
        w[also] = nnls(X[:, also], y)[0]
        for make in (OMP, CoSaMP, SubspacePursuit):
            np.testing.assert_allclose(minimize(X, y, make(d, positive=True, **kept)).coef, w, atol=1e-8)


@pytest.mark.parametrize(
    "make",
    [OMP, MatchingPursuit, CoSaMP, GraSP, SubspacePursuit, lambda k, **given: OMP(k, swaps=True, **given)],
)
def test_without_some_columns_is_as_if_they_were_not_there(make):
    for seed in range(20):
        X, y, _, _ = group_problem(seed)
        rng = np.random.default_rng(seed)
        gone = rng.choice(X.shape[1], 4, replace=False)
        kept = np.setdiff1d(np.arange(X.shape[1]), gone)
        for selector in ("exact", "certified"):
            whole = minimize(X, y, make(3, exclude=gone), selector)
            part = minimize(np.ascontiguousarray(X[:, kept]), y, make(3), selector)
            assert set(whole.support) == set(kept[part.support])
            np.testing.assert_allclose(whole.coef[kept], part.coef, atol=1e-9)
    assert minimize(X, y, make(3, exclude=range(X.shape[1]))).status is Status.OPTIMAL


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (OMP(2, feature_groups=[[0, 1], [1, 2]]), "names column 1 twice; groups must not overlap"),
        (OMP(2, feature_groups=[[0, 1], []]), "empty list in place 1"),
        (OMP(2, feature_groups=[[0, 9]]), "feature_groups names 9, which X does not have"),
        (OMP(2, feature_groups=[[0, "b"]]), "feature_groups names 'b', which X does not have"),
        (OMP(2, feature_groups=[0, 1]), "2 labels but X has 5 columns"),
        (OMP(2, feature_groups=[0, 1, 2, np.nan, 1]), "holds nan; give every column"),
        (OMP(2, feature_groups=["a", None, "b", "b", "b"]), "holds None; give every column"),
        (OMP(2, feature_groups=[[[0, 1]], [2]]), r"feature_groups names \[0, 1\], which X does not have"),
        (CoSaMP(3, feature_groups=[0, 0, 0, 1, 1]), "n_nonzero_coefs is 3 but feature_groups makes 2 groups"),
        (OMP(2, feature_groups=[[0, 1]], positive=True), "feature_groups needs positive=False"),
        (OMP(2, feature_groups=[[0, 1]], score="gain"), "feature_groups needs .* score='correlation'"),
        (OMP(2, always_include=[0, 3], exclude=[3]), "always_include and exclude both name column 3"),
        (OMP(2, always_include=[0], exclude=[1], feature_groups=[[0, 1]]), "name column 0 or its group"),
        (OMP(2, always_include=["length"]), "always_include names 'length', which X does not have"),
        (MatchingPursuit(2, exclude=[5]), "exclude names 5, which X does not have"),
        (GraSP(2, always_include=[0, 1, 3]), "names 3 columns but n_nonzero_coefs is 2; raise it"),
        (CoSaMP(2, positive=True, prune="gain"), "positive=True needs prune='size' and no feature_groups"),
        (SubspacePursuit(2, positive=True, feature_groups=[[0, 1]]), "positive=True needs prune='size' and"),
        (
            MatchingPursuit(2, positive=True, feature_groups=[[0, 1]]),
            "needs one target and no feature_groups",
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_groups_and_columns_that_cannot_be_are_refused(solver, message):
    with pytest.raises(ValueError, match=message):
        minimize(np.eye(5), np.ones(5), solver)


def test_groups_of_another_kind_or_for_sampling_selectors_are_refused():
    X, y = np.eye(5), np.ones(5)
    for groups in ("abc", 3, np.array(3), {"a": [0]}, [[0, 1], 2]):
        with pytest.raises(TypeError, match="feature_groups"):
            minimize(X, y, OMP(2, feature_groups=groups))
    for selector in ("reject", "quantized", "lucb"):
        with pytest.raises(ValueError, match="feature_groups needs a selector that compares more than"):
            minimize(X, y, OMP(2, feature_groups=[[0, 1]]), selector)


@pytest.mark.parametrize("order", ["C", "F"])
def test_halving_and_sampling_find_groups_and_gains(order):
    X, y, labels, _ = group_problem(3)
    exact = minimize(X, y, OMP(3, feature_groups=labels))
    everything = SuccessiveHalving(budget=4.0, exact_fraction=0, doubling=True), Greedy(Budget(1.0))
    for selector in everything:  # that read all rows
        found = minimize(np.asarray(X, order=order), y, OMP(3, feature_groups=labels), selector)
        assert found.support.tolist() == exact.support.tolist()
    rng = np.random.default_rng(0)
    X, labels = np.asarray(rng.standard_normal((2000, 900)), order=order), np.repeat(np.arange(300), 3)
    true = np.isin(labels, [5, 100, 250])
    y = X[:, true] @ rng.uniform(1, 2, 9) + 0.1 * rng.standard_normal(2000)
    draws = SuccessiveHalving("draws", 0.5, exact_fraction=0)
    for selector in (SuccessiveHalving(), SuccessiveHalving("random", 1.0), draws, Greedy(), Importance()):
        for solver in (OMP(3, feature_groups=labels), OMP(9, score="gain"), CoSaMP(3, feature_groups=labels)):
            found = minimize(X, y, solver, selector, random_state=0)
            assert set(found.support) == set(np.flatnonzero(true)), (selector, solver)
