"""The minimum of a convex function of one number, by Newton's method on its slope.

The sign of the slope tells on which side the minimum lies, so that a bracket around it shrinks at every look,
and Newton's steps are taken as long as they stay inside. The function itself is never asked for: near its
minimum it is flat to half of the digits, and a search that compares its values ends there. Flat pieces and
infinite values do no harm either; they cost some bisections.
"""

from collections.abc import Callable
from math import isfinite

Derivatives1D = Callable[[float], tuple[float, float]]

MAX_BISECTIONS = 1100  # of a bracket, which reach the smallest step of all


def minimize_convex_1d(slopes: Derivatives1D, limit: float, tolerance: float) -> float:
    """The t in [0, limit] where a convex function that falls at 0 is least.

    `slopes(t)` gives its first and second derivative. A slope of at most `tolerance` is a minimum.
    """
    low, high = 0.0, limit
    first, second = slopes(high)
    if first <= 0.0:
        return high
    t = 0.0
    first, second = slopes(t)
    for _ in range(MAX_BISECTIONS):
        t = t - first / second if second > 0 and isfinite(first / second) else low
        if not low < t < high:
            t = 0.5 * (low + high)
        first, second = slopes(t)
        low, high = (t, high) if first < 0 else (low, t)
        if abs(first) <= tolerance:
            return t
        if high - low <= 1e-15 * high:
            break
    return low  # where the function still falls; it may be infinite at the other end
