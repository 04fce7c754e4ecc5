"""Decimal numbers in text, to the nearest float64: what a large CSV file spends its time on."""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

FULL = 10**17  # a mantissa of 18 digits: one more might not fit an int64
LARGEST = (
    250  # powers of ten in the table: products of 18 digits with them stay far from the ends of the range
)
EXACT = 22  # powers of ten that are float64 themselves
NEWLINE, RETURN, BLANK, PLUS, MINUS, POINT, ZERO, LARGE_E, SMALL_E = b"\n\r +-.0Ee"
SPLITTER = 134217729.0  # 2^27 + 1


@njit(cache=True, nogil=True)
def read_lines(text, delimiter, place, tens, out):  # type: ignore[no-untyped-def]
    """Read lines of delimited fields; NaN stands for whatever is not plainly a number.

    Parameters
    ----------
    text : uint8 array
        Lines of as many fields as `place` has entries, none of them blank, without quotes.
    delimiter : int
        Byte between fields.
    place : int64 array (width,)
        Row of `out` for each column, -1 for columns to skip.
    tens : float64 array (2, 2 * LARGEST + 1)
        See `powers_of_ten`.
    out : float64 array (k, lines)
        The numbers.
    """
    at, size = 0, text.shape[0]
    for line in range(out.shape[1]):
        for j in range(place.shape[0]):
            start = at
            while at < size and text[at] != delimiter and text[at] != NEWLINE and text[at] != RETURN:
                at += 1
            if place[j] >= 0:
                out[place[j], line] = number(text, start, at, tens)
            if j + 1 < place.shape[0]:
                at += 1
        while at < size and (text[at] == NEWLINE or text[at] == RETURN):
            at += 1


@register_jitable
def number(text, at, end, tens):  # type: ignore[no-untyped-def]
    """The nearest float64 to the number that text[at:end] spells; NaN if it is not plain or not certain."""
    while at < end and text[at] == BLANK:
        at += 1
    while at < end and text[end - 1] == BLANK:
        end -= 1
    sign = 1.0
    if at < end and (text[at] == MINUS or text[at] == PLUS):
        sign = -1.0 if text[at] == MINUS else 1.0
        at += 1
    mantissa, power, digits, fraction = np.int64(0), 0, 0, 0
    while at < end:
        digit = np.int64(text[at]) - ZERO
        if 0 <= digit <= 9:
            if mantissa >= FULL:
                return np.nan
            mantissa = 10 * mantissa + digit
            digits += 1
            power -= fraction
        elif text[at] == POINT and fraction == 0:
            fraction = 1
        else:
            break
        at += 1
    if digits == 0:
        return np.nan
    if at < end:
        exponent, plain = whole(text, at, end)
        if not plain:
            return np.nan
        power += exponent
    return sign * scaled(mantissa, power, tens)


@register_jitable
def whole(text, at, end):  # type: ignore[no-untyped-def]
    """The exponent in text[at:end], such as e-05, and whether it is one, of at most 5 digits."""
    if text[at] != SMALL_E and text[at] != LARGE_E:
        return 0, False
    at += 1
    negative = at < end and text[at] == MINUS
    if at < end and (text[at] == MINUS or text[at] == PLUS):
        at += 1
    value, first = 0, at
    while at < end and at < first + 5 and ZERO <= text[at] <= ZERO + 9:
        value = 10 * value + np.int64(text[at]) - ZERO
        at += 1
    return -value if negative else value, first < at == end


@register_jitable
def scaled(mantissa, power, tens):  # type: ignore[no-untyped-def]
    """The nearest float64 to mantissa * 10^power; NaN where twice the precision does not settle it.

    The product of the mantissa and the power of ten, both as sums of two numbers, is p + e up to a few
    2^-105 p: Dekker's product gives the rounding of p exactly, the other terms are small. Where p + e is
    rounded the same with that much added and taken away, so is the true value, which lies between.
    """
    high = np.float64(mantissa)
    if power == 0 or (mantissa <= 2**53 and 0 <= power <= EXACT):
        return high * tens[0, LARGEST + power]
    if mantissa <= 2**53 and -EXACT <= power < 0:
        return high / tens[0, LARGEST - power]
    if mantissa == 0:
        return 0.0
    if power < -LARGEST or power > LARGEST:
        return np.nan
    low = np.float64(mantissa - np.int64(high))
    t, rest = tens[0, LARGEST + power], tens[1, LARGEST + power]
    p = high * t
    a = SPLITTER * high - (SPLITTER * high - high)
    b = SPLITTER * t - (SPLITTER * t - t)
    e = (high - a) * (t - b) - (((p - a * b) - (high - a) * b) - a * (t - b))
    e += high * rest + low * t
    doubt = p * 2.0**-100
    return p + e if p + (e - doubt) == p + (e + doubt) else np.nan


@lru_cache(maxsize=1)
def powers_of_ten() -> NDArray[np.float64]:
    """10^q for |q| <= LARGEST, each as the sum of two float64."""
    exact = [Fraction(10) ** q for q in range(-LARGEST, LARGEST + 1)]
    first = [float(power) for power in exact]
    return np.array([first, [float(power - Fraction(f)) for power, f in zip(exact, first)]])
