"""The best coefficients on a given support.

A support that grows by a column (`growing.py`); damped Newton for other losses than squared (`newton.py`);
many columns at once (`merged.py`); what is left of columns (`remainders.py`); exchanges (`swaps.py`); and the
hull of a few vertices (`hull.py`).
"""
