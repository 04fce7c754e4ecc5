"""Access to X. Only this package reads X; X is split into tiles, and every read is counted.

`sources.py` makes a `Design` from whatever X is. `store.py` sums and joins tiles, `view.py` is what a solver
sees of X, `design.py` puts them together. `codes/` has X in one or two bytes per entry, `disk/` reads files
and `cluster/` works on Dask.
"""

from skpursuit.data.design import Design, drop_zero_weight_rows
from skpursuit.data.sources import (
    as_design,
    check_finite,
    is_design,
    is_out_of_core,
    make_design,
    split_target,
)
from skpursuit.data.survey import Survey

__all__ = ["Design", "Survey", "as_design", "check_finite", "drop_zero_weight_rows", "is_design"]
__all__ += ["is_out_of_core", "make_design", "split_target"]
