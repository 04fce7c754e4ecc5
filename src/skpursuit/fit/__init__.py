"""The best coefficients on a given support.

A support that grows by a column, and what it leaves of others (`growing.py`); damped Newton for other losses
than squared (`newton.py`); many columns at once (`merged.py`); exchanges (`swaps.py`); and the hull of a few
vertices (`hull.py`).
"""
