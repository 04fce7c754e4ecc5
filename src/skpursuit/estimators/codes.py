"""What estimators that return sparse codes have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array

from skpursuit.estimators.base import trusted


class CodesOut(ClassNamePrefixFeaturesOutMixin, TransformerMixin, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """What transformers that return sparse codes share: names of outputs, and no data frames."""

    def set_output(self, *, transform: str | None = None) -> Any:
        """Accept only the default container.

        Parameters
        ----------
        transform : {"default"} or None
            Data frames cannot hold sparse codes and are refused.

        Returns
        -------
        object
            The estimator itself.
        """
        refuse_frames(transform)
        return self


def refuse_frames(container: str | None) -> None:
    """Raise if output is wanted in a data frame."""
    if container in (None, "default"):
        return
    kind = str(container).capitalize()
    raise ValueError(
        f"{kind} output does not support sparse data. The codes are a scipy csr_array: keep "
        "transform='default', and call .toarray() on the codes where a dense table is needed"
    )


def decode(codes: Any, atoms: np.ndarray) -> np.ndarray:
    """``codes @ atoms`` as a dense array, after a check of shapes and values."""
    codes = check_array(
        trusted(codes), accept_sparse="csr", dtype=[np.float64, np.float32], input_name="codes"
    )
    if codes.shape[1] != len(atoms):
        raise ValueError(
            f"codes have {codes.shape[1]} columns, expected one for each of the {len(atoms)} atoms"
        )
    product = codes @ atoms.astype(codes.dtype, copy=False)
    return product.toarray() if issparse(product) else np.asarray(product)
