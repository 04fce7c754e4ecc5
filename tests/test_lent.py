"""Memory that arrays leave serves the next ones, and never two at once."""

import threading

import numpy as np
import pytest

from skpursuit.numerics import lent as module
from skpursuit.numerics.lent import lent, lent_like


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    monkeypatch.setattr(module, "_kept", {})


def test_memory_comes_back_when_the_last_view_is_gone():
    a = lent((300, 1000), np.float64)
    assert a.shape == (300, 1000)
    assert a.flags.c_contiguous
    assert a.ctypes.data % module.LINE == 0
    address, view = a.ctypes.data, a[3:, ::7].T
    del a
    b = lent((300, 1000), np.float64)
    assert not np.shares_memory(b, view)
    del view
    assert lent((600, 1000), np.float32).ctypes.data == address


def test_what_is_kept_is_bounded():
    piece = module.KEPT // 4
    arrays = [lent((piece + k,), np.uint8) for k in range(7)]
    del arrays
    assert 0 < sum(memory.size for memory in module._kept.values()) <= module.KEPT
    assert lent((10,), np.uint8).base is None  # small ones are not worth it
    held = len(module._kept)
    assert lent((piece // 4,), np.uint8).size == piece // 4  # nor is a piece four times as large
    assert len(module._kept) == held + 1


def test_threads_never_share_a_piece():
    wrong = []

    def work(number):
        for _ in range(200):
            a = lent((module.LEAST,), np.uint8)
            a[::4096] = number
            wrong.extend(a[::4096][a[::4096] != number])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_lent_array_like_another_has_its_memory_order(order):
    given = np.empty((600, 700), order=order)
    made = lent_like(given, np.float32)
    assert made.shape == given.shape
    assert made.dtype == np.float32
    assert made.strides == np.empty_like(given, np.float32).strides
