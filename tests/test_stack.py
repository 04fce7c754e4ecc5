"""Stacks in memory and in files."""

import errno

import numpy as np
import pytest

from skpursuit.numerics import row_buffer as stack
from skpursuit.numerics.row_buffer import RowBuffer


@pytest.mark.parametrize("limit", [np.inf, 3 * 1000 * 8])
def test_earlier_stacks_keep_their_rows(limit):
    rows = np.random.default_rng(0).standard_normal((40, 1000))
    stacks = [RowBuffer(rows[:0], limit=limit)]
    for row in rows:
        stacks.append(stacks[-1].extend(row[None]))
    other = stacks[20].extend(rows[:2])  # a second extension of the same stack
    most = sum(some._buffer is not None and some._buffer.base is None for some in stacks) * rows[0].nbytes
    assert most <= limit  # of rows in memory, with the room for more
    for size, some in enumerate(stacks):
        assert some.rows.tobytes() == rows[:size].tobytes()
    assert other.rows.tobytes() == np.vstack([rows[:20], rows[:2]]).tobytes()
    assert stacks[30].first(7).extend(rows[:1]).rows.tobytes() == np.vstack([rows[:7], rows[:1]]).tobytes()


def test_a_disk_without_room(monkeypatch):
    def full(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(stack.os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match=r"no room for 512,000 bytes .* set TMPDIR"):
        RowBuffer(np.empty((0, 1000)), limit=100).extend(np.ones((1, 1000)))
