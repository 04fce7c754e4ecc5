"""The best coefficients on a given support.

A support that grows by a column (`growing.py`, on the factor of `gram_schmidt.py`); damped Newton for other
losses than squared (`newton.py`); many columns at once (`merged.py`); and exchanges (`swaps.py`).
"""
