"""`PursuitCoder`: sparse codes of signals over a given dictionary.

The work is done in `coding/batch_coder.py`; here are the checks and scikit-learn's conventions. A transformer
that returns sparse codes cannot fill data frames: `SparseCodesMixin` has what it shares with
`DictionaryLearner`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import check_array

from skpursuit.coding.batch_coder import RELATIVE_COST, BatchCoder, CoderConfig, make_coder
from skpursuit.estimators.base import FLOAT_DTYPES, MonitoredParams, monitored, with_checked_indices
from skpursuit.estimators.dask_methods import lazy_on_dask
from skpursuit.estimators.parameter_rules import COUNT, SIZE, check_parameters, one_of
from skpursuit.estimators.sklearn_types import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from skpursuit.numerics.tuning import STREAM_PIECE
from skpursuit.parameters import check_unmasked
from skpursuit.problem import default_sparsity as sparsity


def code_sparsity(k: int | None, tol: float | None, shape: tuple[int, int]) -> int:
    """Non-zeros of a code over d atoms of length n; warns where there are fewer atoms."""
    d, n = shape
    if k is None:
        return sparsity.for_codes(n, d, tol is not None)
    return sparsity.clip_to_available("n_nonzero_coefs", k, d, "the dictionary", "atoms")


class SparseCodesMixin(
    MonitoredParams, ClassNamePrefixFeaturesOutMixin, TransformerMixin, auto_wrap_output_keys=None
):  # type: ignore[call-arg]
    """What transformers that return sparse codes share: names of outputs, and no data frames."""

    @lazy_on_dask
    def inverse_transform(self, X: Any) -> np.ndarray:
        """Signals that codes stand for.

        Parameters
        ----------
        X : {array-like, sparse, Dask array} of shape (n_signals, n_atoms)
            Codes in rows.

        Returns
        -------
        ndarray of shape (n_signals, n_features)
            ``X @ atoms``, lazy where X is.
        """
        atoms = self._atoms()
        codes = check_array(
            with_checked_indices(X), accept_sparse="csr", dtype=FLOAT_DTYPES, input_name="codes"
        )
        if codes.shape[1] != len(atoms):
            raise ValueError(
                f"codes have {codes.shape[1]} columns, expected one for each of the {len(atoms)} atoms"
            )
        product = codes @ atoms.astype(codes.dtype, copy=False)
        return product.toarray() if issparse(product) else np.asarray(product)

    def _atoms(self) -> np.ndarray:
        """The dictionary, atoms in rows."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_signals(values: Any, name: str, n_columns: int) -> np.ndarray:
    """A two-dimensional array that is not copied; finiteness is checked later, block by block."""
    check_unmasked(**{name: values})
    array = check_array(
        values, dtype="numeric", ensure_all_finite=False, ensure_min_samples=0, input_name=name
    )
    if array.shape[1] != n_columns:
        raise ValueError(f"{name} has {array.shape[1]} columns, expected {n_columns}, as the atoms have")
    return array


@dataclass(eq=False, repr=False)
class PursuitCoder(SparseCodesMixin, BaseEstimator):
    """Sparse codes of many signals over one dictionary.

    Each signal ``y`` gets a code ``w`` with few non-zeros such that ``w @ dictionary`` is near ``y``. The
    correlations of all signals of a block come from one float32 matrix product and follow the residuals by
    recurrences; whatever they cannot tell apart, and all weights, are computed in float64.

    Parameters
    ----------
    dictionary : array-like of shape (n_atoms, n_features)
        Atoms in rows. They need not have unit norm: the atom with the largest absolute product with the
        residual is taken, as in scikit-learn. Zero atoms, and those below 2^-60 of the largest, are never
        used.
    n_nonzero_coefs : int or None, default=10
        Non-zeros of a code. More than there are atoms is cut down with a warning. None: a tenth of the
        atoms, or no limit if `tol` is given, but at most as many as a signal has entries.
    solver : {"omp", "cosamp"}, default="omp"
        Orthogonal matching pursuit, or CoSaMP (Needell, Tropp 2009): take the 2k best atoms, fit them
        together with the k present ones, keep the k largest weights.
    tol : float, optional
        Stop once the squared norm of the residual is at most this, also below `n_nonzero_coefs` atoms.
    max_iter : int, optional
        CoSaMP: limit on iterations; default `n_nonzero_coefs`. It stops earlier when the residual no
        longer shrinks, and returns the best code it met.
    refit : bool, default=False
        CoSaMP: fit the kept weights again each time the others were dropped (debiasing).
    n_jobs : int, optional
        Threads; default as many as BLAS would use. The codes do not depend on it.
    memory_limit : int, default=2**30
        Bytes for the Gram matrix of the atoms. Where it does not fit, or does not pay because signals are
        few, a product of all residuals with the dictionary is made for every step.
    ridge : float, default=0.0
        Penalty of (ridge / 2) ||w||^2 beside the mean over the entries of a signal of half their squared
        errors. It shrinks weights while atoms are chosen and in the codes.
    score : {"correlation", "gain"}, default="correlation"
        OMP takes the atom with the largest absolute product with the residual, or the one that lowers the
        squared error most ("gain": orthogonal least squares, as in SPAMS).
    positive : bool, default=False
        OMP: take the atom with the largest product, keep weights non-negative by least squares with an active
        set, and drop atoms whose weight is zero.
    verbose : bool, int or "auto"
        Whether to say what is done, from the third second on. "auto": in a terminal or a notebook.
    time_limit : float, optional
        Seconds after which signals that are left get codes of zeros.

    Attributes
    ----------
    n_features_in_ : int
        Length of an atom.

    Notes
    -----
    Atoms whose products with the residual are equal up to float64 rounding count as equal, and the lowest
    index wins; other implementations may choose differently there. Atoms that depend on those already
    chosen (up to rounding) are passed over. Coding stops when no product rises above rounding. Signals whose
    chosen atoms nearly depend on each other are coded at the speed of plain pursuit. CoSaMP leaves out atoms
    of which less than 1e-4 is independent of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from skpursuit import PursuitCoder
    >>> coder = PursuitCoder(np.eye(3), n_nonzero_coefs=1)
    >>> coder.transform([[0.0, 5.0, 1.0]]).toarray()
    array([[0., 5., 0.]])
    """

    dictionary: Any
    n_nonzero_coefs: int | None = 10
    solver: str = "omp"
    tol: float | None = None
    _: KW_ONLY
    max_iter: int | None = None
    refit: bool = False
    n_jobs: int | None = None
    memory_limit: int = 2**30
    ridge: float = 0.0
    score: str = "correlation"
    positive: bool = False

    @monitored
    def fit(self, X: Any = None, y: Any = None) -> PursuitCoder:
        """Check the parameters; the dictionary is given.

        Parameters
        ----------
        X, y : ignored
        """
        self._check()
        return self

    @monitored
    @lazy_on_dask
    def transform(self, X: Any, y: Any = None) -> csr_array:
        """Code signals.

        Parameters
        ----------
        X : array-like of shape (n_signals, n_features)
            Signals in rows. A memory-mapped array is read block by block.
        y : ignored

        Returns
        -------
        csr_array of shape (n_signals, n_atoms)
            Codes in rows, float32 for float32 signals and else float64.
        """
        atoms = self._atoms()
        signals = check_signals(X, "signals", atoms.shape[1])
        return self._encoder(atoms, signals.dtype, len(signals)).transform(signals)

    def transform_stream(self, source: Any) -> Iterator[csr_array]:
        """Code signals that do not fit in memory, piece by piece.

        Parameters
        ----------
        source : array-like of shape (n_signals, n_features), or iterable of such arrays
            A (memory-mapped) array is cut into pieces; of an iterable each item is one piece.

        Yields
        ------
        csr_array
            Codes of one piece. The first piece decides between float32 and float64.
        """
        total = len(source) if getattr(source, "shape", None) is not None else None
        if total is not None:
            rows = getattr(source, "iloc", source)
            source = (rows[at : at + STREAM_PIECE] for at in range(0, total, STREAM_PIECE))
        atoms, encoder, done = self._atoms(), None, 0
        for piece in source:
            signals = check_signals(piece, "signals", atoms.shape[1])
            encoder = encoder or self._encoder(atoms, signals.dtype, total)
            yield encoder.transform(signals, done)
            done += len(signals)

    def _check(self) -> None:
        shape = np.shape(self.dictionary)
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"dictionary must have an atom in each row, got an array of shape {shape}")
        own = {"solver": [one_of(*RELATIVE_COST)], "n_jobs": [COUNT, None], "ridge": [SIZE]}
        own |= {"score": [one_of("correlation", "gain")], "positive": ["boolean"]}
        check_parameters(self, dictionary="no_validation", **own)
        if self.positive and self.score == "gain":
            raise ValueError("positive=True chooses by products with the residual; leave score='correlation'")
        if self.solver == "cosamp" and (self.positive or self.score == "gain"):
            raise ValueError("score='gain' and positive=True need solver='omp', got solver='cosamp'")

    def _atoms(self) -> np.ndarray:
        self._check()
        check_unmasked(dictionary=self.dictionary)
        return check_array(self.dictionary, dtype=FLOAT_DTYPES, input_name="dictionary")

    def _encoder(self, atoms: np.ndarray, dtype: np.dtype, expected: int | None) -> BatchCoder:
        k = code_sparsity(self.n_nonzero_coefs, self.tol, atoms.shape)
        given = self.tol, self.solver, self.refit, self.max_iter, self.n_jobs, self.memory_limit, self.ridge
        return make_coder(atoms, dtype, CoderConfig(k, *given, self.score, self.positive), expected)

    @property
    def n_features_in_(self) -> int:
        """Length of an atom."""
        return int(np.shape(self.dictionary)[1])

    @property
    def _n_features_out(self) -> int:
        return int(np.shape(self.dictionary)[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
