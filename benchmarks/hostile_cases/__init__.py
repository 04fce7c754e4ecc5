"""Hostile problems, run through the public names of skpursuit and compared with references.

`tables` draws X and y of a degenerate family and wraps X as one of the sources. `reference` holds the algebra in
long double: losses, products, least squares, and the judgement of a choice of columns. `replays` follows a run
step by step along the columns that it chose, in long double. `checks` looks at what every result must satisfy.
`programs` draws solvers, selectors and settings, runs them and applies the checks; `faces` does so for the
estimators and the drop-in functions, `refusals` for arguments that must be refused.

The references never repeat a run of their own beside the library's: at a near tie both answers are right, and
the two would part for ever. They follow the columns that the library chose, and judge each choice by itself: it
must be the best up to the rounding of a float64 product, and among equal columns the lowest.
"""
