"""Losses against mpmath, at the ends of their range, and at the boundary."""

import warnings
from dataclasses import FrozenInstanceError

import mpmath
import numpy as np
import pytest

from skpursuit.problem.losses import Huber, Logistic, Poisson, Quantile, Squared, as_loss
from skpursuit.problem.losses.logistic import Multinomial

mpmath.mp.dps = 340  # so that exp(1e-300) - 1 keeps its digits
MAGNITUDES = [1e-300, 1e-20, 1e-8, 1e-3, 0.1, 0.5, 0.7, 1.0, 1.35, 2.0, 7.3, 36.0, 37.5, 200.0, 700.0, 1e4]
PREDICTIONS = np.array([0.0, *MAGNITUDES, *(-m for m in MAGNITUDES)])
LOSSES = [Squared(), Logistic(), Huber(), Huber(0.1), Poisson(), Quantile(0.8, 0.5)]
TARGETS = {
    Squared: [-3.0, 0.0, 1e-8, 1.0, 7.3],
    Logistic: [-1.0, 1.0],
    Huber: [-3.0, 0.0, 1.0, 7.3],
    Quantile: [-3.0, 0.0, 1.0, 7.3],
    Poisson: [0.0, 1e-3, 0.3, 1.0, 2.0, 3.0, 1000.0, 1e300],
}
QUANTITIES = ["value", "residual", "curvature"]


def exact(loss, quantity, y, z):
    y, z = mpmath.mpf(float(y)), mpmath.mpf(float(z))
    return EXACT[type(loss)](loss, y, z)[QUANTITIES.index(quantity)]


def exact_huber(loss, y, z):
    delta, r = mpmath.mpf(loss.delta), z - y
    if abs(r) <= delta:
        return r**2 / 2, r, 1
    return delta * (abs(r) - delta / 2), delta * mpmath.sign(r), 0


def exact_quantile(loss, y, z):
    r, width = z - y, mpmath.mpf(loss.width)
    slope = min(max(r / width, -mpmath.mpf(loss.level)), 1 - mpmath.mpf(loss.level))
    return slope * (r - width * slope / 2), slope, 1 / width if slope == r / width else 0


def exact_logistic(_, y, z):
    e = mpmath.exp(-y * z)
    return mpmath.log1p(e), -y * e / (1 + e), e / (1 + e) ** 2


def exact_poisson(_, y, z):
    constant = y * mpmath.log(y) - y if y else 0
    return mpmath.exp(z) - y * z + constant, mpmath.exp(z) - y, mpmath.exp(z)


EXACT = {
    Squared: lambda _, y, z: ((z - y) ** 2 / 2, z - y, 1),
    Logistic: exact_logistic,
    Huber: exact_huber,
    Poisson: exact_poisson,
    Quantile: exact_quantile,
}


def grid(loss, dtype=np.float64):
    targets = np.array(TARGETS[type(loss)])
    targets = targets[targets < np.finfo(dtype).max].astype(dtype)
    y, z = np.meshgrid(targets, PREDICTIONS.astype(dtype))
    return y.ravel(), z.ravel()


def ulps(got, wanted, dtype=np.float64):
    """Error in units of the last place, the subnormal range counted in its own units."""
    largest = mpmath.mpf(float(np.finfo(dtype).max))
    if abs(wanted) > largest:
        return 0.0 if np.isinf(got) else np.inf
    unit = max(
        abs(wanted) * float(np.finfo(dtype).eps), mpmath.mpf(float(np.finfo(dtype).smallest_subnormal))
    )
    return float(abs(mpmath.mpf(float(got)) - wanted) / unit)


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != Poisson()], ids=repr)
def test_a_few_ulp_from_mpmath(loss, quantity):
    y, z = grid(loss)
    got = getattr(loss, quantity)(y, z)
    errors = [ulps(*pair) for pair in zip(got, (exact(loss, quantity, a, b) for a, b in zip(y, z)))]
    worst = int(np.argmax(errors))
    assert errors[worst] <= 4, (y[worst], z[worst], got[worst])


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("loss", [*LOSSES[:2], Huber(1.5), Quantile(0.25, 0.5)], ids=repr)
def test_float32_stays_and_is_as_accurate(loss, quantity):
    y, z = grid(loss, np.float32)
    got = getattr(loss, quantity)(y, z)
    assert got.dtype == np.float32
    wanted = [exact(loss, quantity, a, b) for a, b in zip(y, z)]
    assert max(ulps(a, b, np.float32) for a, b in zip(got, wanted)) <= 4


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_silent_even_where_numpy_was_told_to_raise(loss, quantity):
    y, z = grid(loss)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert not np.isnan(getattr(loss, quantity)(y, z)).any()


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_nan_predictions_are_not_hidden(loss, quantity):
    result = getattr(loss, quantity)(np.ones(2), np.array([np.nan, 0.0]))
    constant = quantity == "curvature" and isinstance(loss, Squared | Huber | Quantile)
    assert constant or np.isnan(result[0])
    assert np.isfinite(result[1])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_slope_and_curvature_are_derivatives(loss):
    y = np.array([1.0, 1.0, 1.0, 1.0])
    z = np.array([-2.1, -0.3, 0.98, 3.7])
    h = 1e-6
    slope = (loss.value(y, z + h) - loss.value(y, z - h)) / (2 * h)
    bend = (loss.residual(y, z + h) - loss.residual(y, z - h)) / (2 * h)
    np.testing.assert_allclose(loss.residual(y, z), slope, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(loss.curvature(y, z), bend, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Huber(), Quantile(0.5, 0.01)], ids=repr)
def test_smoothness_is_the_largest_curvature(loss):
    y, z = grid(loss)
    assert loss.curvature(y, z).max() == loss.smoothness


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantile_is_a_pinball_loss_but_for_its_width(level):
    rng = np.random.default_rng(0)
    y, z = rng.standard_normal((2, 1000))
    pinball = np.where(z < y, level * (y - z), (1 - level) * (z - y))
    below = pinball - Quantile(level, 1e-3).value(y, z)
    assert below.min() >= -1e-15
    assert below.max() <= 0.5e-3


@pytest.mark.parametrize("loss", [Quantile(0.05, 0.3), Quantile(0.9, 1.0), Huber()], ids=repr)
def test_the_parabola_above_the_loss_touches_it_and_no_narrower_one_does_for_long(loss):
    rng = np.random.default_rng(1)
    y, there = np.zeros((1, 1)), np.linspace(-60, 60, 24001)[:, None]
    for z in (rng.standard_normal((1, 40)), 10 * rng.standard_normal((1, 40))):
        bend, slope, value = loss.majorant(y, z), loss.residual(y, z), loss.value(y, z)
        room = value + slope * (there - z) + 0.5 * bend * (there - z) ** 2 - loss.value(y, there)
        assert room.min() >= -1e-12
        far = np.abs(z) < 5  # those that touch the other line do so within the grid
        narrower = room - 0.01 * bend * (there - z) ** 2
        assert (narrower.min(axis=0)[far[0]] < 0).all()


def near_and_far(y, rng):
    """Predictions around log(y), as close as a unit in the last place, and up to 1e4."""
    far = [*rng.uniform(-40, 40, 6), *(10.0 ** rng.uniform(-20, 4, 6)), 1e4]
    middle = np.log(y) if y else 0.0
    close = middle + 10.0 ** rng.uniform(-17, 1, 8) * rng.choice([-1, 1], 8)
    edges = [middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)]
    return np.concatenate([edges, close, far, np.negative(far)])


@pytest.mark.parametrize("scale", ["around 1", "counts", "any"])
def test_poisson_is_right_to_thirteen_digits_or_to_the_rounding_of_z_and_log_y(scale):
    rng = np.random.default_rng(0)
    targets = {
        "around 1": rng.uniform(0.5, 2, 100),
        "counts": np.arange(100.0),
        "any": 10.0 ** rng.uniform(-300, 300, 100),
    }[scale]
    with mpmath.workdps(60):
        for y in targets:
            z = near_and_far(y, rng)
            value, residual = (
                Poisson().value(np.full_like(z, y), z),
                Poisson().residual(np.full_like(z, y), z),
            )
            assert (value >= 0).all()
            for prediction, *got in zip(z, value, residual):
                check_poisson(y, prediction, got)


def check_poisson(y, z, got):
    """A change of z by h changes the value by at most (|slope| + exp(z) h) h, the slope by exp(z) h."""
    value, slope, curve = exact_poisson(None, mpmath.mpf(float(y)), mpmath.mpf(float(z)))
    h = mpmath.mpf(float(np.spacing(max(abs(z), abs(np.log(y)) if y else 0.0))))
    smallest = mpmath.mpf(2) ** -1074
    moved = (abs(slope) + curve * h) * h, curve * h
    for result, wanted, shift in zip(got, (value, slope), moved):
        if abs(wanted) > np.finfo(float).max:
            assert np.isinf(result)
        else:
            error = abs(mpmath.mpf(float(result)) - wanted)
            assert error <= mpmath.mpf(2) ** -44 * abs(wanted) + shift + smallest, (y, z, result)


def test_poisson_overflows_to_infinity():
    assert Poisson().smoothness is None
    y, z = np.array([0.0, 5.0]), np.array([1e4, 1e4])
    assert np.isposinf(Poisson().value(y, z)).all()
    assert np.isposinf(Poisson().residual(y, z)).all()
    assert np.isposinf(Poisson().curvature(y, z)).all()


def test_as_loss_keeps_objects():
    loss = Huber(2.0)
    assert as_loss(loss) is loss


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ("hinge", ValueError, "unknown loss 'hinge'; known are squared"),
        (Huber, TypeError, r"write Huber\(\)"),
        (3.0, TypeError, "float object is no loss: it lacks value, residual, curvature"),
        (None, TypeError, "no loss"),
    ],
)
def test_as_loss_refuses(bad, error, message):
    with pytest.raises(error, match=message):
        as_loss(bad)


@pytest.mark.parametrize("loss", [*LOSSES, Multinomial()], ids=repr)
@pytest.mark.parametrize(
    ("bad", "message"),
    [([np.nan, 1], "NaN"), ([1, np.inf], "infinity"), ([1j], "complex"), (["a"], "numeric"), ([[], 1], None)],
)
def test_targets_must_be_finite_numbers(loss, bad, message):
    with pytest.raises(TypeError if message == "complex" else ValueError, match=message):
        loss.check_targets(bad)


@pytest.mark.parametrize(
    ("loss", "bad", "message"),
    [
        (Logistic(), [0, 1], r"labels -1 and \+1, got 0"),
        (Logistic(), [-1, 1, 2], "got 2"),
        (Poisson(), [3, -0.5], "targets >= 0, got -0.5"),
        (Multinomial(), [0, 1.5], "class labels"),
        (Multinomial(), [-1, 1], "class labels"),
        (Multinomial(), [[0], [1]], "vector"),
    ],
)
def test_targets_outside_the_loss(loss, bad, message):
    with pytest.raises(ValueError, match=message):
        loss.check_targets(bad)


def test_good_targets_are_converted_once():
    y = np.array([-1, 1], np.float32)
    assert Logistic().check_targets(y) is y
    assert Logistic().check_targets([-1, 1]).dtype == np.float64
    assert Squared().check_targets(np.array([True, False])).dtype == np.float64
    assert Poisson().check_targets([]).shape == (0,)
    assert Multinomial().check_targets([0.0, 2.0]).dtype == np.intp


def test_losses_are_values():
    assert all(loss.resolved(np.arange(3.0)) is loss for loss in (Squared(), Huber(), Poisson()))
    assert Huber(2.0) == Huber(np.float64(2.0))
    with pytest.raises(FrozenInstanceError):
        Huber().delta = 3.0


def exact_multinomial(y, row):
    e = [mpmath.exp(mpmath.mpf(float(v))) for v in row]
    total = mpmath.fsum(e)
    p = [v / total for v in e]
    residual = [v - (k == y) for k, v in enumerate(p)]
    return -mpmath.log(p[y]), residual, [v * (1 - v) for v in p]


def multinomial_problem(dtype=np.float64):
    rng = np.random.default_rng(0)
    z = np.concatenate([s * rng.standard_normal((12, 4)) for s in (1e-8, 1.0, 30.0, 1e4)]).astype(dtype)
    z[0] = 0.25  # a tie between all classes
    return rng.integers(0, 4, len(z)), z


def test_multinomial_against_mpmath():
    y, z = multinomial_problem()
    loss = Multinomial()
    with np.errstate(all="raise"):
        got = loss.value(y, z), loss.residual(y, z), loss.curvature(y, z)
    for i, row in enumerate(z):
        value, residual, curvature = exact_multinomial(y[i], row)
        # Differences z_k - max z of predictions near 1e4 are rounded, which exp turns into relative error.
        allowed = 6 + 2 * np.ptp(row)
        assert ulps(got[0][i], value) <= allowed
        for k in range(4):
            assert ulps(got[1][i, k], residual[k]) <= allowed
            assert ulps(got[2][i, k], curvature[k]) <= allowed


def test_multinomial_slopes_follow_the_probabilities():
    y, z = multinomial_problem()
    y, z = y[:24], z[:24]
    loss, v, h = Multinomial(), np.random.default_rng(1).standard_normal((24, 4)), 1e-6
    p = loss.probabilities(z)
    H = p[:, :, None] * (np.eye(4) - p[:, None, :])
    np.testing.assert_allclose(np.diagonal(H, axis1=1, axis2=2), loss.curvature(y, z), rtol=1e-12)
    assert np.linalg.eigvalsh(H).max() <= loss.smoothness
    slope = (loss.residual(y, z + h * v) - loss.residual(y, z - h * v)) / (2 * h)
    np.testing.assert_allclose(np.einsum("ikl,il->ik", H, v), slope, atol=1e-8)


def test_two_classes_are_the_logistic_loss():
    z = np.linspace(-40, 40, 17)
    two = np.column_stack([np.zeros_like(z), z])
    y = np.arange(17) % 2
    np.testing.assert_allclose(Multinomial().value(y, two), Logistic().value(2.0 * y - 1, z), rtol=1e-14)


def test_multinomial_keeps_float32():
    y, z = multinomial_problem(np.float32)
    loss = Multinomial()
    for result in (loss.value(y, z), loss.residual(y, z), loss.curvature(y, z), loss.probabilities(z)):
        assert result.dtype == np.float32


def test_multinomial_takes_labels_as_floats():
    y, z = multinomial_problem()
    loss = Multinomial()
    np.testing.assert_array_equal(loss.value(y.astype(float), z), loss.value(y, z))
    np.testing.assert_array_equal(loss.residual(y.astype(float), z), loss.residual(y, z))
    assert loss.prediction_shape(np.array([0.0, 3.0, 1.0])) == (4,)


@pytest.mark.parametrize(
    ("y", "width"),
    [
        (np.arange(101.0), 0.05),
        (np.repeat([0.0, 7.0], [99, 1]), 0.007),  # quartiles are equal, so the range counts
        (np.full(5, 3.0), 1.0),
        (np.arange(101.0)[:, None] * [1e5, 1e-5, 0.0], 0.5e-6),
        (np.array([-1.7e308, -1e308, 1e308, 1.7e308]), 2.35e305),
        (np.full(5, 3.0)[:, None] * [1.0, 2.0], 1.0),
    ],
)
def test_the_width_of_a_quantile_is_left_to_the_spread_of_the_targets(y, width):
    loss = Quantile(0.3).resolved(y)
    assert loss.width == pytest.approx(width)
    assert (loss.level, loss.resolved(y + 1)) == (0.3, loss)
    assert Quantile(0.3, 2.0).resolved(y) == Quantile(0.3, 2.0)
    small = np.clip(y, -1e100, 1e100)
    for name in ("value", "residual", "curvature", "majorant"):
        one, other = (
            getattr(a, name)(small, small / 2) for a in (Quantile(0.3), Quantile(0.3).resolved(small))
        )
        np.testing.assert_array_equal(one, other)
