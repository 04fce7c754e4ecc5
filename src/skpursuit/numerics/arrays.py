"""The two kinds of arrays that the package speaks of, and the empty list of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.intp]

NO_COLUMNS: Indices = np.empty(0, dtype=np.intp)


def are_columns(values: np.ndarray, d: int) -> bool:
    """Whether these are numbers of some of d columns."""
    whole = values.ndim == 1 and values.dtype.kind in "iu"
    return whole and bool(((values >= 0) & (values < d)).all())
