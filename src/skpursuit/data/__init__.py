"""Data access: X as tiles, the only code that touches it, and counts what is read.

`sources.py` makes tiles of what a caller gives (`as_design`); `dense.py`, `sparse.py` and `operator.py` are
the tiles, `store.py` sums and joins them, `view.py` is what a solver sees of X, `design.py` puts them
together behind a dozen verbs. `codes.py` has X in fewer bits, `quantized.py` the codes of one tile.
"""

from __future__ import annotations

from skpursuit.data.design import Design, rows_that_count
from skpursuit.data.sources import (
    as_design,
    check_finite,
    is_design,
    is_elsewhere,
    make_design,
    with_target,
)
from skpursuit.data.survey import Survey

__all__ = [
    "Design",
    "Survey",
    "as_design",
    "check_finite",
    "is_design",
    "is_elsewhere",
    "make_design",
    "rows_that_count",
    "with_target",
]
