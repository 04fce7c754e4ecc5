"""A run that is stopped and goes on gives the bits of one that was not, from a file without large arrays."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator

import skpursuit as sk
from skpursuit.data.design import Design
from skpursuit.fit.growing import empty_factor
from skpursuit.problem.losses.logistic import Multinomial

N, D = 700, 60


def close_columns(seed=0):
    """Columns near to combinations of others, so that Gram-Schmidt makes several passes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    X[:, 30:] = X[:, :30] @ rng.standard_normal((30, 30)) + 1e-3 * X[:, 30:]
    return X


X = close_columns()
RNG = np.random.default_rng(1)
Y = RNG.standard_normal(N) + X[:, :5].sum(axis=1)
LABELS = np.where(Y > 0, 1.0, -1.0)
WEIGHTS = RNG.uniform(0.5, 2.0, N)
CASES = {
    "plain": (X, Y, sk.OMP(40), {}),
    "sparse": (csr_array(X * (X > 0)), Y, sk.OMP(12), {}),
    "operator": (aslinearoperator(X) @ aslinearoperator(RNG.standard_normal((D, D))), Y, sk.OMP(12), {}),
    "positive": (np.abs(X), np.abs(Y), sk.OMP(12, positive=True), {}),
    "several targets": (X, np.stack([Y, LABELS, Y**2], axis=1), sk.OMP(12), {}),
    "weights": (X, Y, sk.OMP(12), {"sample_weight": WEIGHTS}),
    "forced": (X, Y, sk.OMP(12, always_include=(31, 2)), {}),
    "logistic": (X, LABELS, sk.OMP(8, ridge=0.1), {"loss": "logistic"}),
    "logistic with weights": (
        X,
        LABELS,
        sk.OMP(8, ridge=0.1, always_include=(31, 2)),
        {"loss": "logistic", "sample_weight": WEIGHTS},
    ),
    "multinomial": (X, np.arange(N) % 3, sk.OMP(5, ridge=0.1), {"loss": Multinomial()}),
    "swaps": (X, Y, sk.OMP(6, swaps=True), {}),
    "columns that depend": (X[:20, :6] @ RNG.standard_normal((6, 300)), Y[:20], sk.OMP(50), {}),
    "matching pursuit": (X, Y, sk.MatchingPursuit(max_iter=30), {}),
    "frank-wolfe": (X, Y, sk.FrankWolfe(sk.L1Ball(2.0), 12, variant="pairwise"), {}),
    "subspace pursuit": (X, Y, sk.SubspacePursuit(25), {}),
    "cosamp": (X, Y, sk.CoSaMP(8), {}),
    "cosamp with weights": (X, Y, sk.CoSaMP(8, refit=True), {"sample_weight": WEIGHTS}),
    "grasp": (X, LABELS, sk.GraSP(5, ridge=0.1), {"loss": "logistic"}),
    "grasp of squared loss": (X, np.stack([Y, Y**2], axis=1), sk.GraSP(5), {}),
}


def stops_at(last, record):
    return record.iteration == last


@pytest.mark.parametrize("case", CASES)
def test_a_resumed_run_has_the_bits_of_one_that_was_not_stopped(case, tmp_path):
    data, y, solver, given = CASES[case]
    whole = sk.minimize(data, y, solver, "exact", **given)
    assert whole.n_iter > 2
    for last in {0, 1, whole.n_iter // 2, whole.n_iter - 2}:
        file = tmp_path / f"{last}.ckpt"
        stopped = sk.minimize(
            data, y, solver, "exact", checkpoint=file, callback=partial(stops_at, last), **given
        )
        assert stopped.status is sk.Status.CALLBACK
        again = sk.minimize(data, y, solver, "exact", checkpoint=file, **given)
        assert (again.status, again.n_iter) == (whole.status, whole.n_iter)
        assert again.support.tolist() == whole.support.tolist()
        assert again.coef.tobytes() == whole.coef.tobytes()
        assert again.objective == whole.objective
        assert again.dropped.tolist() == whole.dropped.tolist()
        assert [r.objective for r in again.history] == [r.objective for r in whole.history]
        assert again.entries_read == whole.entries_read


@pytest.mark.parametrize("case", CASES)
def test_a_checkpoint_is_as_large_as_the_predictions(case, tmp_path):
    n, k = 50_000, 5
    rng = np.random.default_rng(0)
    _, y, solver, given = CASES[case]
    data = rng.standard_normal((n, 20))
    y = np.resize(y, (n, *y.shape[1:]))
    given = given | ({"sample_weight": np.resize(WEIGHTS, n)} if "sample_weight" in given else {})
    settings = ({"n_nonzero_coefs": k} if "n_nonzero_coefs" in vars(solver) else {}) | (
        {"always_include": (1, 2)} if "always_include" in vars(solver) else {}
    )
    solver = type(solver)(**vars(solver) | settings)
    file = tmp_path / "run.ckpt"
    stops = partial(stops_at, 1)
    sk.minimize(data, y, solver, "exact", checkpoint=sk.Checkpoint(file), callback=stops, **given)
    targets = 3 if case == "multinomial" else y.size // n
    assert file.stat().st_size < 8 * n * targets + 30_000


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_a_factor_has_its_columns_those_that_depend_included(weights):
    columns = close_columns(2).T.copy()[::-1].copy()
    columns[10:20] = columns[:10] + columns[20:30]  # depend on others
    empty = empty_factor(np.random.default_rng(3).standard_normal((N, 2)), weights)
    for keeps_dependent in (False, True):
        factor, kept = replace(empty, keeps_dependent=keeps_dependent), []
        for column in columns:
            grown = factor.add(column, 1e-12)
            factor, kept = grown or factor, kept + [column] * (grown is not None)
        assert (len(kept) == len(columns)) == keeps_dependent == (not factor.raises_rank.all())
        scaled = np.array(kept) * (1.0 if weights is None else np.sqrt(weights))
        np.testing.assert_allclose(factor.triangle().T @ factor.Q.rows, scaled, atol=1e-11)
        np.testing.assert_allclose(factor.fitted, factor.Q.rows.T @ (factor.Q.rows @ factor.y), atol=1e-11)


def test_an_x_that_cannot_be_read_is_not_blamed_on_the_checkpoint(tmp_path, monkeypatch):
    file = tmp_path / "run.ckpt"
    sk.minimize(X, Y, sk.OMP(4), "exact", checkpoint=sk.Checkpoint(file), callback=partial(stops_at, 1))
    before = file.read_bytes()

    def unreadable(*given):
        raise ValueError("piece 3 of X was cut short")

    monkeypatch.setattr(Design, "columns", unreadable)
    with pytest.raises(ValueError, match=r"^piece 3 of X was cut short$"):
        sk.minimize(X, Y, sk.OMP(4), "exact", checkpoint=sk.Checkpoint(file))
    assert file.read_bytes() == before
