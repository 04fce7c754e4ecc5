"""The kinds of arrays that the package speaks of, and the empty list of columns."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

Floats = NDArray[np.floating]
FloatType = np.dtype[np.floating]
Compressed: TypeAlias = csr_array | csc_array
Indices = NDArray[np.intp]

NO_COLUMNS: Indices = np.empty(0, dtype=np.intp)


def are_columns(values: np.ndarray, d: int) -> bool:
    """Whether these are numbers of some of d columns."""
    whole = values.ndim == 1 and values.dtype.kind in "iu"
    return whole and bool(((values >= 0) & (values < d)).all())
