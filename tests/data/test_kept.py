"""The bounded cache of columns."""

import gc
import weakref
from collections import OrderedDict

import numpy as np

from skpursuit import as_design
from skpursuit.data.caches import ColumnCache


def test_old_blocks_go_when_the_bound_is_reached():
    cache = ColumnCache(max_bytes=3 * 80)
    cache.put([1, 2], np.ones((2, 10)))
    cache.put([3], np.full((1, 10), 3.0))
    assert cache.get(1) is not None  # used again: the other block is the older one now
    cache.put([4], np.full((1, 10), 4.0))
    assert (sorted(cache.arrays), cache.nbytes) == ([1, 2, 4], 240)
    assert (cache.get(3), cache.get(4)[0]) == (None, 4.0)


def test_a_block_forgotten_at_once_by_another_thread_leaves_nothing_behind():
    cache = ColumnCache()

    class Forgetful(OrderedDict):
        def __setitem__(self, block, what):
            super().__setitem__(block, what)
            cache._forget(block, self.pop(block))

    cache.blocks = Forgetful()
    cache.put([3, 5], np.ones((2, 10)))
    assert not cache.arrays


def test_codes_go_with_their_design_at_once():
    """Not only when garbage is collected: they are an eighth of X."""
    design = as_design(np.random.default_rng(0).standard_normal((600, 40)))
    design.codes(fine=True)
    store = weakref.ref(design.store)
    gc.disable()
    try:
        del design
        assert store() is None
    finally:
        gc.enable()
