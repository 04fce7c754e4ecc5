"""Hostile problems, run through the public names of skpursuit and compared with references.

`tables` draws X and y of a degenerate family and wraps X as one of the sources. `reference` holds the algebra
in long double: losses, products, least squares, and the judgement of a choice of columns. `replays` follows a
run step by step along the columns that it chose. `checks` has what every result must satisfy. `selections`,
`programs` (solvers) and `faces` (estimators, drop-in functions, coder) draw settings, run them and apply the
checks; `faults` has faults that were found once, and X in files.

A reference is never a run of its own beside the library's: at a near tie both answers are right, and the two
would part for ever. It follows the columns that the library chose and judges each choice by itself: it must
be the best up to the rounding of a float64 product, and among equal columns the lowest.
"""
