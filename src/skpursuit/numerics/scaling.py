"""Sizes of numbers whose squares and products stay within the range of floats.

The range of float64 ends near 1e308 and 1e-308. What squares a number, or multiplies two, asks here whether
the result still has all its digits; where it has not, the caller works in units of the largest number.
"""

LEAST_NORM, MOST_NORM = 1e-140, 1e140  # norms whose squares were summed without loss
LEAST_SQUARE, MOST_SQUARE = 1e-180, 1e180  # squared norms of columns that can be multiplied with each other
LEAST_OBJECTIVE, MOST_OBJECTIVE = 1e-200, 1e200  # sums of squares of which none was lost
LEAST_VALUE = 1e-300  # stands for an objective of zero where something is relative to it
FORBIDDING = 1e300  # a penalty that leaves nothing of a coefficient whose column has unit size
