"""Numbers and their errors: estimates with bounds, fixed-order sums, what is not finite, threads, tuning.

Nothing here knows X, losses or selectors; everything else may use it.
"""
