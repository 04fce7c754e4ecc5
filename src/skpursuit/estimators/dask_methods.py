"""Methods of estimators on Dask collections are lazy.

A prediction needs one row of X at a time, so a method that works on an array works on each chunk of rows. The
estimator travels to the workers with every chunk; it holds coefficients, not data. Nothing is computed before
the result is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import numpy as np

from skpursuit.data.cluster import dask_source

Method = TypeVar("Method", bound=Callable[..., object])


def lazy_on_dask(method: Method) -> Method:
    """Let a method (self, X) that gives an array with a row for each of X take a Dask collection."""

    @wraps(method)
    def chosen(self: object, X: object, *more: object, **options: object) -> object:
        if not dask_source.accepts(X):
            return method(self, X, *more, **options)

        # Some rows like those of X: the method says at once what is wrong with them, and the form it gives.
        if dask_source.is_frame(X):
            sample = X._meta_nonempty.ffill().bfill()
        else:
            sample = np.zeros((2, *X.shape[1:]), X.dtype)
        return dask_source.map_row_blocks(lambda chunk: method(self, chunk, *more, **options), X, sample)

    return chosen  # type: ignore[return-value]
