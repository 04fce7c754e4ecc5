"""Supports of the coder are those of plain float64 pursuit, also where float32 cannot tell atoms apart."""

import numpy as np
import pytest
from scipy.optimize import nnls

from skpursuit import PursuitCoder

RULES = {"omp": {}, "gain": {"atom_score": "gain"}, "positive": {"positive": True}}
FAMILIES = {}


def family(make):
    FAMILIES[make.__name__] = make
    return make


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def sparse_signals(atoms, rng, m, k=8, noise=0.1):
    signals = np.zeros((m, atoms.shape[1]))
    for signal in signals:
        signal += rng.standard_normal(k) @ atoms[rng.choice(len(atoms), k, replace=False)]
    return signals + noise * np.std(signals) * rng.standard_normal(signals.shape)


@family
def gaussian(rng, m):
    atoms = unit(rng.standard_normal((200, 48)))
    return atoms, sparse_signals(atoms, rng, m)


@family
def noise_free(rng, m):
    atoms = unit(rng.standard_normal((200, 48)))
    return atoms, sparse_signals(atoms, rng, m, 4, 0.0)


@family
def patches(rng, m):
    """Smooth signals, and atoms that are such signals: steep spectrum, coherent atoms."""
    slope = 1 / (1 + np.arange(49.0))
    turn = np.linalg.qr(rng.standard_normal((49, 49)))[0]
    return unit(rng.standard_normal((150, 49)) * slope @ turn), rng.standard_normal((m, 49)) * slope @ turn


@family
def cosines(rng, m):
    """An overcomplete discrete cosine transform of pieces of random walks."""
    atoms = np.cos(np.pi / 160 * np.outer(np.arange(160), np.arange(40) + 0.5))
    return unit(atoms), np.cumsum(rng.standard_normal((m, 40)), axis=1)


@family
def one_sign(rng, m):
    atoms = unit(np.abs(rng.standard_normal((200, 48))))
    return atoms, np.abs(sparse_signals(atoms, rng, m))


@family
def unequal_norms(rng, m):
    atoms = rng.standard_normal((200, 48)) * 10 ** rng.uniform(-2, 2, (200, 1))
    return atoms, rng.standard_normal((m, 48))


@family
def every_atom_twice(rng, m):
    atoms = unit(rng.standard_normal((100, 48)))
    return np.vstack([atoms, atoms]), sparse_signals(atoms, rng, m)


@family
def coherent(rng, m):
    atoms = unit(rng.standard_normal((1, 48)) + 0.05 * rng.standard_normal((200, 48)))
    return atoms, sparse_signals(atoms, rng, m)


def plain(atoms, y, k, rule):
    """Support by least squares on the signal itself at every step; ties go to the lowest index."""
    support, residual = [], y
    for _ in range(3 * k):
        if len(support) == k or np.linalg.norm(residual) <= 1e-13 * np.linalg.norm(y):
            break
        scores = atoms @ residual
        if rule != "positive":
            scores = np.abs(scores)
        noise = 1e-13 * np.linalg.norm(y) * np.linalg.norm(atoms, axis=1).max()
        if rule == "gain":
            basis = np.linalg.qr(atoms[support].T)[0] if support else np.zeros((len(y), 0))
            rest = atoms - (atoms @ basis) @ basis.T
            left = np.linalg.norm(rest - (rest @ basis) @ basis.T, axis=1)
            usable = left > 1e-7 * np.linalg.norm(atoms, axis=1)
            scores = np.where(usable, scores / np.where(usable, left, 1), 0)
            noise = 1e-13 * np.linalg.norm(y) / left.clip(1e-7)
        scores[support] = -1
        if not scores.max() > np.max(noise) * (rule != "gain"):
            break
        support.append(int(np.argmax(scores >= scores.max() - noise)))
        if rule == "positive":
            weights = nnls(atoms[support].T, y)[0]
            support = [j for j, w in zip(support, weights) if w > 0]
            weights = weights[weights > 0]
        else:
            weights = np.linalg.lstsq(atoms[support].T, y, rcond=None)[0]
        residual = y - weights @ atoms[support]
    return sorted(support)


def differences(atoms, signals, k, rule, memory_limit=2**30):
    coder = PursuitCoder(atoms, k, memory_limit=memory_limit, **RULES[rule])
    codes = coder.transform(signals)
    wanted = [plain(atoms, y, k, rule) for y in signals]
    got = np.split(codes.indices, codes.indptr[1:-1])
    return [i for i, (a, b) in enumerate(zip(got, wanted)) if list(a) != b]


@pytest.mark.parametrize("memory_limit", [2**30, 1], ids=["gram", "lockstep"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", FAMILIES)
def test_supports_equal_plain_pursuit(name, rule, memory_limit):
    atoms, signals = FAMILIES[name](np.random.default_rng(0), 120 if rule == "omp" else 40)
    assert differences(atoms, signals, 8, rule, memory_limit) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("rule", "count"), [("omp", 2500), ("gain", 2500), ("positive", 500)])
def test_supports_of_many_signals(rule, count, name):
    assert differences(*FAMILIES[name](np.random.default_rng(5), count), 8, rule) == []


@pytest.mark.parametrize("memory_limit", [2**30, 1], ids=["gram", "lockstep"])
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "gain"])  # which takes no ridge
def test_ridge_and_tol(rule, memory_limit):
    """Weights solve the penalised equations of their support; coding stops at the first one within tol."""
    atoms, signals = gaussian(np.random.default_rng(1), 40)
    ridge, tol = 0.002, 0.3 * np.mean(signals**2) * 48
    given = {"memory_limit": memory_limit, "ridge": ridge, **RULES[rule]}
    codes = PursuitCoder(atoms, 12, tol=tol, **given).transform(signals)
    left = np.sum((signals - codes @ atoms) ** 2, axis=1)
    counts = np.diff(codes.indptr)
    assert np.all((left <= tol) | (counts == 12))
    assert 1 < np.median(counts) < 12
    for y, code, count in zip(signals, codes.toarray(), counts):
        support = np.flatnonzero(code)
        gradient = atoms[support] @ (y - code @ atoms)
        np.testing.assert_allclose(gradient, 48 * ridge * code[support], atol=1e-12)
        assert rule != "positive" or np.all(code >= 0)
        if rule != "positive" and count > 1:
            before = PursuitCoder(atoms, int(count) - 1, **given).transform(y[None])
            assert np.sum((y - before @ atoms) ** 2) > tol


@pytest.mark.parametrize("rule", RULES)
def test_single_precision_and_scale_change_no_support(rule):
    atoms, signals = (x.astype(np.float32) for x in gaussian(np.random.default_rng(2), 60))
    double = PursuitCoder(atoms, 6, **RULES[rule]).transform(signals.astype(np.float64))
    single = PursuitCoder(atoms * 2**20, 6, **RULES[rule]).transform(signals * np.float32(2**-30))
    np.testing.assert_array_equal(single.indices, double.indices)
    np.testing.assert_allclose(single.data * 2.0**50, double.data, rtol=1e-6)
