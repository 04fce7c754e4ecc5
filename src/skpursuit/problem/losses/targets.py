"""What every target must be."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpursuit.parameters import as_array

Array = NDArray[Any]


def finite_targets(y: ArrayLike) -> Array:
    """Return y as float32 (if it is) or float64, refusing what is not a finite number."""
    checked = as_array("y", y)
    if checked.dtype not in (np.float32, np.float64):
        try:
            checked = checked.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must be numeric, got dtype {checked.dtype}") from error
    if not np.isfinite(checked).all():
        raise ValueError("y contains NaN or infinity")
    return checked
