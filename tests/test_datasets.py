import numpy as np
import pytest

from skpursuit.datasets import make_logistic_signal, make_sparse_signal
from skpursuit.problem.losses import Logistic

MAKERS = [make_sparse_signal, make_logistic_signal]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shapes_types_and_unit_columns(make, dtype):
    X, y, w = make(3000, 70, 7, dtype=dtype)
    assert (X.shape, y.shape, w.shape) == ((3000, 70), (3000,), (70,))
    assert X.dtype == y.dtype == w.dtype == dtype
    assert X.flags.c_contiguous
    assert np.count_nonzero(w) == 7
    norms = np.linalg.norm(X.astype(np.float64), axis=0)
    np.testing.assert_allclose(norms, 1, rtol=32 * np.finfo(dtype).eps)


def test_entries_are_gaussian():
    X, _, _ = make_sparse_signal(400, 500, 3)
    standard = X.ravel() * np.sqrt(400)
    shares = [(standard < q).mean() for q in (-2.0, -1.0, 0.0, 1.0, 2.0)]
    np.testing.assert_allclose(shares, [0.02275, 0.15866, 0.5, 0.84134, 0.97725], atol=0.005)
    assert np.abs(np.corrcoef(X[:, :30], rowvar=False) - np.eye(30)).max() < 0.25


def test_coefficients_are_pushed_from_zero():
    _, _, w = make_sparse_signal(2, 20000, 20000, random_state=3)
    assert np.abs(w).min() >= 0.1
    pulled = w - np.copysign(0.1, w)
    assert abs(pulled.mean()) < 5 / np.sqrt(20000)
    assert abs(pulled.std() - 1) < 0.03


def test_positions_are_uniform():
    counts = np.zeros(5)
    for seed in range(1000):
        counts += make_sparse_signal(1, 5, 2, random_state=seed)[2] != 0
    assert counts.sum() == 2000
    assert np.abs(counts - 400).max() < 5 * np.sqrt(1000 * 0.4 * 0.6)


@pytest.mark.parametrize("snr", [-5.0, 3.0, 20.0, np.inf])
def test_noise_variance(snr):
    X, y, w = make_sparse_signal(20000, 20, 5, snr=snr)
    signal = X @ w
    share = np.sum((y - signal) ** 2) / np.sum(signal**2)
    assert share == pytest.approx(10 ** (-snr / 10), rel=0.05, abs=1e-25)


@pytest.mark.parametrize("make", MAKERS)
def test_seeds(make):
    first, again, other = (make(30, 40, 5, random_state=s) for s in (1, 1, 2))
    generator = make(30, 40, 5, random_state=np.random.default_rng(1))
    if make is make_sparse_signal:  # whose coefficients do not depend on the precision of X
        single = make(30, 40, 5, random_state=1, dtype=np.float32)[2]
        np.testing.assert_array_equal(first[2].astype(np.float32), single)
    for a, b, c, g in zip(first, again, other, generator):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, g)
        assert np.any(a != c)


@pytest.mark.parametrize("make", MAKERS)
def test_smallest_sizes(make):
    X, y, w = make(1, 1, 1)
    assert abs(X[0, 0]) == 1
    assert np.isfinite(y).all()
    X, y, w = make(4, 3, 0)
    assert not w.any()
    assert np.isfinite(y).all()


def test_logistic_labels_follow_the_model():
    X, y, w = make_logistic_signal(40000, 20, 5, strength=2.0)
    Logistic().check_targets(y)
    z = X @ w
    assert abs(np.sqrt(np.mean(z * z)) - 2) < 1e-9
    # At the true coefficients the mean slope in each direction vanishes, up to its standard deviation.
    r = Logistic().residual(y, z)
    assert abs((r * z).sum()) < 5 * np.linalg.norm(r * z)
    assert abs((y * z).mean() - np.mean(z * np.tanh(z / 2))) < 0.05


@pytest.mark.parametrize("make", MAKERS)
def test_arguments_are_checked(make):
    extra = {"snr": (np.nan, -np.inf)} if make is make_sparse_signal else {"strength": (-1.0, np.nan, np.inf)}
    bad = [((5, 5, 1), {name: value}, name) for name, values in extra.items() for value in values]
    bad += [
        ((0, 5, 1), {}, "at least 1"),
        ((5, 0, 0), {}, "at least 1"),
        ((5, 5, 6), {}, "between 0 and d=5"),
    ]
    bad += [((5, 5, -1), {}, "k must be at least 0"), ((5, 5, 1), {"dtype": np.int64}, "float32 or float64")]
    for arguments, given, message in bad:
        with pytest.raises(ValueError, match=message):
            make(*arguments, **given)
    with pytest.raises(TypeError):
        make(5.0, 5, 1)
