"""The loop: limits, status, callbacks, interrupts, checkpoints, and bad arguments."""

import hashlib
import io
import json
import os
import re
import signal
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

from skpursuit import (
    OMP,
    Checkpoint,
    CoSaMP,
    FrankWolfe,
    L1Ball,
    PursuitClassifier,
    PursuitRegressor,
    Status,
    minimize,
    orthogonal_mp,
)
from skpursuit.loop import checkpoint as files
from skpursuit.loop.checkpoint import MAGIC
from skpursuit.problem.losses import Squared
from tests.support.failing import fails

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 90))
Y = RNG.standard_normal(60)
K = 12


def run(**given):
    return minimize(X, Y, OMP(n_nonzero_coefs=K), random_state=0, **given)


def test_each_way_to_stop_has_a_status():
    assert run().status is Status.COMPLETE
    assert minimize(X, Y, OMP(tol=1.0)).status is Status.CONVERGED
    assert minimize(X, Y, OMP(rtol=0.1)).status is Status.CONVERGED
    assert minimize(X, Y, OMP(n_nonzero_coefs=K, max_iter=3)).status is Status.MAX_ITER
    assert run(time_limit=0.0).status is Status.TIME_LIMIT
    assert run(callback=lambda record: record.iteration == 4).status is Status.CALLBACK
    assert minimize(X, X[:, 5] * 3.0, OMP(n_nonzero_coefs=K)).status is Status.ZERO_RESIDUAL
    assert minimize(X, np.zeros(60), OMP(n_nonzero_coefs=K)).status is Status.ZERO_RESIDUAL
    assert Status.COMPLETE.ok
    assert not Status.TIME_LIMIT.ok


def test_a_loss_that_turns_infinite_is_divergence_and_the_last_finite_state_stays():
    class Breaks(Squared):
        def derivatives(self, y, z):
            value, *slopes = super().derivatives(y, z)
            return value + (np.inf if z.any() else 0.0), *slopes

    result = minimize(X, Y, OMP(n_nonzero_coefs=3), loss=Breaks())
    assert result.status is Status.DIVERGED
    assert result.n_iter == 0
    assert np.isfinite(result.objective)


def test_tolerance_is_on_the_squared_residual_norm():
    result = minimize(X, Y, OMP(tol=5.0))
    assert np.sum((Y - X @ result.coef) ** 2) <= 5.0
    shorter = minimize(X, Y, OMP(n_nonzero_coefs=len(result.support) - 1))
    assert np.sum((Y - X @ shorter.coef) ** 2) > 5.0


def test_interrupt_writes_the_checkpoint_and_is_raised(tmp_path):
    path = tmp_path / "run.ckpt"

    def interrupt(record):
        if record.iteration == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(checkpoint=path, callback=interrupt)
    seen = []
    resumed = run(checkpoint=path, callback=lambda r: seen.append(r.iteration))
    assert seen[0] == 6
    assert resumed.coef.tobytes() == run().coef.tobytes()


def test_checkpoint_is_saved_as_time_passes(tmp_path):
    path = tmp_path / "run.ckpt"
    sizes = []
    run(checkpoint=Checkpoint(path, interval=0.0), callback=lambda r: sizes.append(path.exists()))
    assert sizes[0] is False
    assert all(sizes[1:])
    assert [p.name for p in tmp_path.iterdir()] == ["run.ckpt"]


def test_checkpoint_of_other_data_or_parameters_is_refused(tmp_path):
    path, solver, other = tmp_path / "run.ckpt", OMP(n_nonzero_coefs=K), X.copy()
    given = {"loss": "huber", "checkpoint": path}
    run(callback=lambda r: r.iteration == 3, **given)
    saved = path.read_bytes()
    other[0, 0] += 1
    for name, call in {
        "X": lambda: minimize(other, Y, solver, **given),
        "y": lambda: minimize(X, Y + 1, solver, **given),
        "solver": lambda: minimize(X, Y, OMP(n_nonzero_coefs=K + 1), **given),
        "selector": lambda: minimize(X, Y, solver, "certified", **given),
        "loss": lambda: run(checkpoint=path),
        "sample_weight": lambda: run(sample_weight=np.ones(60), **given),
        "random_state": lambda: minimize(X, Y, solver, random_state=4, **given),
    }.items():
        fails(f"different {name}", call)
    assert path.read_bytes() == saved


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda b: b[:-40], "damaged"),
        (lambda b: b[:90] + b"x" + b[91:], "damaged"),
        (lambda b: b"", "not a checkpoint"),
        (lambda b: b"PK" + b, "not a checkpoint"),
        (lambda b: re.sub(rb"\d+(?=\n)", b"99", b, count=1), "has format 99 and is not a checkpoint of this"),
    ],
)
def test_damaged_checkpoint_is_refused_and_left_alone(tmp_path, damage, words):
    path = tmp_path / "run.ckpt"
    run(checkpoint=path, callback=lambda r: r.iteration == 3)
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    fails(words, run, checkpoint=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: minimize(X, Y, OMP), TypeError, "solver must be a name"),
        (lambda: minimize(X, Y[:5], OMP()), ValueError, "y has 5 rows and X has 60"),
        (lambda: minimize(X, np.full(60, np.nan), OMP()), ValueError, "NaN"),
        (lambda: minimize(X, np.array(["a"] * 60), OMP()), TypeError, "encode"),
        (lambda: minimize(X, np.ones((60, 2, 2)), OMP()), ValueError, "shape"),
        (lambda: minimize(X, Y, OMP(n_nonzero_coefs=91)), ValueError, "at most 90"),
        (lambda: minimize(X, Y, OMP(always_include=[90])), ValueError, "always_include"),
        (lambda: minimize(X, Y, OMP(n_nonzero_coefs=1, always_include=[1, 2])), ValueError, "always_include"),
        (lambda: minimize(X, Y, OMP(), loss="logistic"), ValueError, "labels -1 and"),
        (lambda: minimize(X, Y, OMP(), sample_weight=-np.ones(60)), ValueError, "not negative"),
        (lambda: minimize(X, Y, OMP(), sample_weight=np.zeros(60)), ValueError, "zero for every"),
        (lambda: minimize(X, Y, OMP(), sample_weight=np.ones(5)), ValueError, "shape"),
        (lambda: minimize(X, Y, OMP(positive=True), loss="huber"), ValueError, "positive"),
        (lambda: minimize(X, np.sign(Y), OMP(n_nonzero_coefs=2), "gram", "logistic"), ValueError, "gram"),
    ],
)
def test_bad_arguments(call, error, words):
    fails(words, call, error=error)


def test_time_limit_keeps_what_was_found():
    result = minimize(X, Y, OMP(n_nonzero_coefs=K), callback=lambda r: time.sleep(0.02), time_limit=0.05)
    assert result.status is Status.TIME_LIMIT
    assert 1 <= len(result.support) < K


class Absolute3:
    """A user's loss, without a text of its own."""

    def __init__(self, power=3.0):
        self.power = power

    def value(self, y, z):
        return np.abs(z - y) ** self.power

    def residual(self, y, z):
        return self.power * np.sign(z - y) * np.abs(z - y) ** (self.power - 1)

    def curvature(self, y, z):
        return self.power * (self.power - 1) * np.abs(z - y) ** (self.power - 2)


def test_a_users_loss_is_known_again_by_what_it_holds(tmp_path):
    """By its functions too, and by itself."""

    def held(slope, power=3.0):
        loss = Absolute3(power)
        loss.slope, loss.me = slope, loss
        return loss

    path = tmp_path / "run.ckpt"
    first, again = (minimize(X, Y, OMP(3), "exact", held(lambda z: z + 1), checkpoint=path) for _ in range(2))
    assert again.coef.tobytes() == first.coef.tobytes()
    for other in (held(lambda z: z + 1, 4.0), held(lambda z: z + 2)):
        fails("different loss", minimize, X, Y, OMP(3), "exact", other, checkpoint=path)


def test_a_callback_sees_every_record_and_stops_a_run_by_any_true_and_by_nothing_else():
    seen = []
    result = run(callback=seen.append)
    assert seen == result.history
    assert [r.iteration for r in seen] == list(range(K))
    assert all(a.objective > b.objective for a, b in pairwise(seen))
    assert tuple(result.support) == tuple(r.selected[0] for r in seen)
    for answer in (True, np.True_, None, 1, "yes", np.ones(2)):
        stops = isinstance(answer, bool | np.bool_)
        assert run(callback=lambda record, answer=answer: answer).n_iter == (1 if stops else K)


def logistic_slope(result, labels):
    return np.abs(X[:, result.support].T @ (-labels / (1 + np.exp(labels * (X @ result.coef))))).max()


@pytest.mark.parametrize(
    "solver",
    [
        OMP(4),
        OMP(4, always_include=(3, 1, 7, 2)),
        OMP(10, max_iter=4),
        OMP(10, tol=0.02),
        OMP(4, always_include=(5,)),
    ],
    ids=repr,
)
def test_however_a_pursuit_of_another_loss_ends_its_coefficients_are_fitted(solver):
    labels = np.where(Y + np.random.default_rng(0).standard_normal(len(Y)) * 3 * Y.std() > 0, 1.0, -1.0)
    result = minimize(X, labels, solver, "exact", "logistic")
    assert 0 < len(result.support) <= 10
    assert logistic_slope(result, labels) < 1e-5
    stopped = minimize(X, labels, solver, "exact", "logistic", callback=lambda record: True)
    assert logistic_slope(stopped, labels) < 1e-5


def write_signed(path, arrays):
    """A checkpoint of these arrays with the right checksum."""
    body = io.BytesIO()
    np.savez(body, **arrays)
    path.write_bytes(MAGIC + hashlib.sha256(body.getvalue()).hexdigest().encode() + b"\n" + body.getvalue())


def test_a_checkpoint_with_a_right_checksum_and_wrong_content_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    for arrays in ({}, {"header": np.frombuffer(b"{}", dtype=np.uint8)}, {"header": np.zeros(3)}):
        write_signed(path, arrays)
        fails("does not hold a run", run, checkpoint=path)


RUNS = {
    "omp": (OMP(n_nonzero_coefs=K), "auto"),
    "gram": (FrankWolfe(L1Ball(2.0), 9), "gram"),
    "quantized": (OMP(6), "quantized"),
    "cosamp": (CoSaMP(3), "auto"),
}
#: A run, a part of its state, and what of that part is changed.
WRONG = [
    ("omp", "coef", None, lambda coef: coef * np.nan),
    ("omp", "coef", None, lambda coef: coef[:-1]),
    ("omp", "coef", None, lambda coef: coef[:, None]),
    ("omp", "coef", None, lambda coef: coef.astype(str)),
    ("omp", "support", None, lambda support: support + 10**6),
    ("omp", "support", None, lambda support: support - 10**6),
    ("omp", "support", None, lambda support: np.repeat(support[:1], len(support))),
    ("omp", "support", None, lambda support: support.astype(float)),
    ("omp", "support", None, lambda support: support[:-1]),
    ("omp", "dropped", None, lambda dropped: np.array([90])),
    ("omp", "dropped", None, lambda dropped: np.empty(0)),
    ("omp", "dropped", None, lambda dropped: np.empty(0, dtype=str)),
    ("omp", "z", None, lambda z: z[:-1]),
    ("omp", "z", None, lambda z: np.where(np.arange(len(z)) == 5, np.inf, z)),
    ("omp", "objective", None, lambda objective: np.nan),
    ("gram", "memory", "t", lambda part: part[None]),
    ("gram", "memory", "t", lambda part: part * 1.0),
    ("gram", "memory", "gap", lambda part: part * np.nan),
    ("gram", "memory", "gap", lambda part: part.astype(str)),
    ("gram", "last_update", "columns", lambda part: part + 10**6),
    ("gram", "last_update", "columns", lambda part: part * 1.0),
    ("gram", "last_update", "amounts", lambda part: part[:0]),
    ("gram", "last_update", "amounts", lambda part: part * np.inf),
    ("gram", "last_update", "factor", lambda part: np.inf),
    ("gram", "selector_memory", "xtz", lambda part: part[:-1]),
    ("gram", "selector_memory", "xtz", lambda part: part * np.nan),
    ("gram", "selector_memory", "reach", lambda part: part[None]),
    ("gram", "selector_memory", "other", lambda part: np.ones(2)),
    ("quantized", "selector_memory", "guesses", lambda part: part + 10**6),
    ("quantized", "selector_memory", "guesses", lambda part: part - 10**6),
    ("quantized", "selector_memory", "guesses", lambda part: part.astype(float)),
    ("quantized", "selector_memory", "scores", lambda part: np.ones(2)),
    ("quantized", "selector_memory", "other", lambda part: np.ones(2)),
    ("cosamp", "memory", None, lambda memory: {}),
]


@pytest.mark.parametrize(("name", "part", "inner", "change"), WRONG)
def test_a_state_that_no_run_can_have_is_refused(tmp_path, name, part, inner, change):
    path, (solver, selector) = tmp_path / "run.ckpt", RUNS[name]
    minimize(X, Y, solver, selector, checkpoint=path, callback=lambda r: r.iteration == 2)
    saved = files.load_snapshot(path)
    value = getattr(saved.state, part)
    if inner is None:
        value = change(value)
    elif part == "last_update":
        value = value._replace(**{inner: change(getattr(value, inner))})
    else:
        value = {**value, inner: change(value.get(inner))}
    files.save_snapshot(path, replace(saved, state=replace(saved.state, **{part: value})))
    content = path.read_bytes()
    fails(r"run.ckpt does not hold a run.*delete it", minimize, X, Y, solver, selector, checkpoint=path)
    assert path.read_bytes() == content


def test_a_support_of_dependent_columns_is_refused(tmp_path):
    path, copied = tmp_path / "run.ckpt", np.hstack([X, X[:, :1]])
    minimize(copied, Y, OMP(6), checkpoint=path, callback=lambda r: r.iteration == 4)
    saved = files.load_snapshot(path)
    support = np.array([0, X.shape[1], 3, 4, 5])
    files.save_snapshot(path, replace(saved, state=replace(saved.state, support=support)))
    fails(r"does not hold a run.*delete it", minimize, copied, Y, OMP(6), checkpoint=path)


@pytest.mark.parametrize("header", [{"seed": -1}, {"seed": "x"}, {"history": [{}]}, {"fingerprints": 3}])
def test_a_header_that_no_run_has_is_refused(tmp_path, header):
    path = tmp_path / "run.ckpt"
    run(checkpoint=path, callback=lambda r: r.iteration == 1)
    with np.load(io.BytesIO(path.read_bytes().split(b"\n", 2)[2])) as file:
        arrays = dict(file)
    changed = json.loads(arrays["header"].tobytes()) | header
    write_signed(path, arrays | {"header": np.frombuffer(json.dumps(changed).encode(), dtype=np.uint8)})
    fails("does not hold a run", run, checkpoint=path)


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_masked_targets_and_weights_are_refused(name):
    masked = np.ma.masked_array(np.abs(Y), mask=np.arange(60) == 7)
    given = {"y": Y, name: masked}
    for call in (
        lambda: minimize(X, solver=OMP(2), **given),
        lambda: PursuitRegressor().fit(X, **given),
        lambda: PursuitClassifier().fit(X, **{"y": Y > 0} | {name: masked}),
    ):
        fails(f"{name} is a masked array", call, error=TypeError)
    unmasked = np.ma.masked_array(np.abs(Y))
    assert minimize(X, solver=OMP(2), **given | {name: unmasked}).n_iter == 2


def test_masked_x_and_complex_numbers_are_refused_by_estimators_too():
    masked = np.ma.masked_array(X, mask=X > 2)
    for call in (
        lambda: minimize(masked, Y, OMP(2)),
        lambda: PursuitRegressor().fit(masked, Y),
        lambda: PursuitRegressor(n_nonzero_coefs=1).fit(X, Y).predict(masked),
        lambda: orthogonal_mp(masked, Y),
        lambda: orthogonal_mp(X, np.ma.masked_array(Y, mask=Y > 0)),
    ):
        fails("masked", call, error=TypeError)
    for call in (
        lambda: minimize(X, Y, OMP(2), sample_weight=np.ones(60) * 1j),
        lambda: minimize(X, Y * 1j, OMP(2)),
        lambda: minimize(X * 1j, Y, OMP(2)),
        lambda: orthogonal_mp(X, Y * 1j),
    ):
        fails("is complex", call, error=TypeError)


def operator(matvec=lambda v: X @ v, rmatvec=lambda v: X.T @ v, dtype=float):
    return LinearOperator(X.shape, matvec=matvec, rmatvec=rmatvec, dtype=dtype)


class Half:
    """Knows no product with its transpose."""

    shape = X.shape
    matvec = staticmethod(lambda v: X @ v)


@pytest.mark.parametrize("targets", [Y, np.column_stack([Y, Y])], ids=["one", "two"])
@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        (operator(rmatvec=None), TypeError, "rmatvec"),
        (Half(), TypeError, "rmatvec"),
        (operator(rmatvec=lambda v: np.ones(7)), ValueError, "rmat"),
        (operator(matvec=lambda v: np.ones(7)), ValueError, "matmat"),
        (operator(dtype=complex), TypeError, " is complex and y is real"),
        (operator(rmatvec=lambda v: X.T @ v * 1j), TypeError, "gave complex numbers"),
        (operator(matvec=lambda v: X @ v * 1j), TypeError, "gave complex numbers"),
    ],
)
def test_operators_that_cannot_be_used_are_named(source, error, words, targets):
    fails(f"X.*{words}", minimize, source, targets, OMP(2), error=error)


def test_a_run_whose_columns_are_all_used_up_is_optimal():
    result = minimize(np.repeat(X[:, :1], 5, axis=1), Y, OMP(3))
    assert result.status is Status.OPTIMAL
    assert result.support.tolist() == [0]
    assert result.dropped.tolist() == [1, 2, 3, 4]
