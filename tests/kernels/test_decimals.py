"""Decimal numbers: the same bits as Python's float, or left to it."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skpursuit.kernels.decimals import LARGEST, powers_of_ten, read_lines


def read(text):
    out = np.empty((1, 1))
    read_lines(np.frombuffer(text.encode(), dtype=np.uint8), ord(";"), np.array([0]), powers_of_ten(), out)
    return out[0, 0]


def check(texts, left_open=0):
    got = np.array([read(text) for text in texts])
    wanted = np.array([float(text) for text in texts])
    known = ~np.isnan(got)
    np.testing.assert_array_equal(got[known].view(np.int64), wanted[known].view(np.int64))
    assert np.count_nonzero(~known) <= left_open


def test_all_bits_of_numbers_as_programs_write_them():
    rng = np.random.default_rng(0)
    values = rng.standard_normal(4000) * 10.0 ** rng.integers(-200, 200, 4000)
    bits = rng.integers(0, 2**63, 4000).view(np.float64)
    bits = bits[(np.abs(bits) > 1e-230) & (np.abs(bits) < 1e230)]
    for numbers in (values, bits, rng.standard_normal(4000)):
        check([repr(float(v)) for v in numbers])
        check([f"{v:.17g}" for v in numbers])
        check([f"{v:.6E}" for v in numbers])
    check([f"{v:.3f}" for v in rng.standard_normal(1000) * 1e6])
    check([str(v) for v in rng.integers(-(10**17), 10**17, 1000)])


def test_values_between_two_floats_and_close_to_that():
    """Decimal numbers within 1e-18 of half-way, which is where a double rounding would show."""
    middles = [2**53 + 1, 2**54 + 2, 2**55 + 4, 2**56 + 8, 9007199254740993, 9007199254740995]
    near = [str(m + step) for m in middles for step in (-1, 0, 1)]
    check([*near, *(f"{t}e-5" for t in near), *(f"{t}e30" for t in near)], left_open=len(middles))


@pytest.mark.parametrize(
    "text", ["0", "-0", "+7", "1.", ".5", " 3 ", "1e5", "1E+05", "-2.5e-03", "000.100", "0e999", "0.0e-400"]
)
def test_plain_spellings(text):
    check([text])


@pytest.mark.parametrize(
    "text",
    ["", " ", ".", "-", "+", "e5", "1e", "1e+", "--1", "1-2", "1 2", "1_0", "0x10", "1e5.0", "1..2", "1.2.3",
     "NA", "nan", "inf", "½", "1,5", "1e123456", "1234567890123456789", f"1e{LARGEST + 1}", "1e-320"],
)  # fmt: skip
def test_everything_else_is_left_open(text):
    assert np.isnan(read(text))


@settings(max_examples=300, deadline=None)
@given(st.text("0123456789+-.eE ", max_size=24))
@example("9223372036854775807")
def test_any_spelling_is_as_float_has_it_or_open(text):
    got = read(text)
    if not np.isnan(got):
        check([text])


def test_lines():
    text = np.frombuffer(b"1,a,3\r\n\n4,,6\n7,8,9", dtype=np.uint8)
    out = np.zeros((2, 3))
    read_lines(text, ord(","), np.array([0, -1, 1]), powers_of_ten(), out)
    np.testing.assert_array_equal(out, [[1, 4, 7], [3, 6, 9]])
