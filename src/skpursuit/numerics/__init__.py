"""Numbers and their errors: sums in a fixed order, bounds on rounding, what is not finite, threads.

Nothing here knows X, losses or selectors; everything else may use it.
"""
