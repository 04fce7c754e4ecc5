"""The best coefficients on a given support.

Least squares that grows by a column (`least_squares.py`, on the factor of `gram_schmidt.py`); damped Newton
for other losses (`newton.py`); many columns at once (`merged.py`); and the search for
columns that cannot help because they depend on the support (`dependence.py`).
"""
