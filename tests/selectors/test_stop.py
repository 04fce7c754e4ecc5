"""Stop rules: when they fire, how they combine, and that the error bound is one."""

import numpy as np
import pytest

from skpursuit import Budget, ErrorBound, FrankWolfe, Greedy, Importance, L1Ball, Stability, Uniform, minimize
from skpursuit.selectors import row_sampling as stop

from ..support.asking import ask, by_energy, random_question
from ..support.sources import NAMES, every_source, matrix


def problem(n=400, d=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, rng.standard_normal(n) * np.exp(-np.arange(n) / 40)


def rows_read(selector, X, r, k=1):
    return ask(selector, X, r, k=k, seed=0).entries_read / X.shape[1]


@pytest.mark.parametrize("kind", [Greedy, Uniform, Importance])
@pytest.mark.parametrize(("share", "rows"), [(0.1, 40), (0.101, 41), (1.0, 400), (1e-9, 1)])
def test_budget_reads_that_share_of_the_rows(kind, share, rows):
    assert rows_read(kind(stop=Budget(share)), *problem()) == rows


PATIENCE = [(rows, stop.CHECK_EVERY) for rows in (1, 3, 64, 65, 100, 0.02, 0.4)]


@pytest.mark.parametrize(("patience", "every"), [*PATIENCE, (40, 1)])
def test_stability_stops_when_the_leader_has_lasted(patience, every):
    X, r = problem()
    wanted = int(patience) if patience >= 1 else int(np.ceil(patience * 400))
    step = -(-wanted // -(-wanted // every))
    assert step <= min(every, wanted)
    order = by_energy(X, r)
    leader, since, used = None, 0, 0
    while used < 400 and (leader is None or used - since < wanted):
        used = min(used + step, 400)
        now = np.abs(X[order[:used]].T @ r[order[:used]]).argmax()
        if now != leader:
            leader, since = now, used
    rule = Stability(patience) if every == stop.CHECK_EVERY else Stability(patience, check_every=every)
    answer = ask(Greedy(stop=rule), X, r)
    assert (answer.columns.tolist(), answer.entries_read) == ([leader], used * X.shape[1])


def test_the_top_index_decides_for_top_k_too():
    X, r = problem()
    assert rows_read(Greedy(), X, r, k=5) == rows_read(Greedy(), X, r)


@pytest.mark.parametrize("kind", [Greedy, Uniform])
def test_rules_combine_to_the_first_that_fires(kind):
    X, r = problem()
    rules = [Stability(0.05), Budget(0.5), *([ErrorBound(20.0)] if kind is Greedy else [])]
    alone = [rows_read(kind(stop=rule), X, r) for rule in rules]
    assert len(set(alone)) == len(rules)
    for a in range(len(rules)):
        for b in range(len(rules)):
            both = rows_read(kind(stop=rules[a] | rules[b]), X, r)
            # The looks of two rules interleave; neither is later than its own next look.
            assert abs(both - min(alone[a], alone[b])) <= stop.CHECK_EVERY
    assert rows_read(kind(stop=rules[0] | rules[-1] | Budget(0.0025)), X, r) == 1


@pytest.mark.parametrize("kind", [Uniform, Importance])
def test_samples_refuse_a_bound_of_partial_sums(kind):
    bound, others = ErrorBound(1.0), (Stability(0.05), Budget(0.5))
    for rule in (bound, bound | others[0], others[0] | bound, others[0] | (others[1] | bound)):
        with pytest.raises(ValueError, match=f"partial sum .* not a sample .* {kind.__name__}"):
            kind(stop=rule)
        Greedy(stop=rule)


@pytest.mark.parametrize("name", NAMES)
def test_the_error_bound_is_never_violated(name, tmp_path):
    design, X = every_source(matrix(300, 20), tmp_path)[name]
    rng = np.random.default_rng(5)
    stopped = 0
    for _ in range(20):
        question = random_question(rng, *X.shape)
        question.r[:] = (question.r.T * np.exp(-np.arange(300) / 30)).T
        exact = X.T @ question.r
        size = np.abs(question.r) if question.r.ndim == 1 else np.linalg.norm(question.r, axis=1)
        eps = rng.uniform(0.001, 0.5) * (size * np.abs(X).max(axis=1)).sum()
        answer = ask(Greedy(stop=ErrorBound(eps)), design, question)
        errors = np.abs(answer.gradient - exact[answer.columns])
        errors = errors if errors.ndim == 1 else np.linalg.norm(errors, axis=1)
        assert np.all(errors <= eps * (1 + 1e-9))
        # What was chosen scores within 2 eps of what should have been.
        scores = question.scores(exact)
        right = np.sort(scores)[::-1][: len(answer.columns)]
        assert np.all(scores[answer.columns] >= right - 2 * eps * (1 + 1e-9))
        stopped += answer.certificate == "heuristic"
    assert stopped >= 5  # the bound did stop some before the last row


def test_a_loose_error_bound_still_reads_one_block():
    assert rows_read(Greedy(stop=ErrorBound(1e9)), *problem()) == stop.CHECK_EVERY


def test_error_bound_of_zero_reads_everything_that_counts():
    X, r = problem()
    r[7:11] = 0.0
    answer = ask(Greedy(stop=ErrorBound(0.0)), X, r)
    assert (answer.entries_read, answer.certificate) == (396 * 30, "exact")


def test_automatic_error_bound_follows_the_step_of_frank_wolfe():
    X, _ = problem()
    y = X[:, 3] - X[:, 5]
    solver = FrankWolfe(L1Ball(1.5), max_iter=20)
    tight = minimize(X, y, solver, Greedy(stop=ErrorBound("auto", factor=0.01)), random_state=0)
    loose = minimize(X, y, solver, Greedy(stop=ErrorBound("auto", factor=1.0)), random_state=0)
    assert loose.entries_read < tight.entries_read <= 20 * X.size
    with pytest.raises(ValueError, match="needs Frank-Wolfe"):
        ask(Greedy(stop=ErrorBound()), X, y)


def test_only_rules_combine():
    with pytest.raises(TypeError):
        Stability() | 3
    for kind in (Greedy, Uniform, Importance):
        with pytest.raises(TypeError, match=r"stop must be an object such as Stability\(0.02\)"):
            kind(stop=0.02)
