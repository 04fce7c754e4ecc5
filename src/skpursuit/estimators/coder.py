"""`PursuitCoder`: sparse codes of signals over a given dictionary.

The work is done in `coding/batch_coder.py`; here are the checks and scikit-learn's conventions. A transformer
that returns sparse codes cannot fill data frames: `SparseCodesMixin` has what it shares with
`DictionaryLearner`. PyTorch tensors are known by the module of their type: nothing here imports torch first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator
from sklearn.utils.validation import check_array, validate_data

from skpursuit.coding.batch_coder import BatchCoder, CoderConfig
from skpursuit.data.cluster import dask_source
from skpursuit.data.options import as_bytes
from skpursuit.estimators import parameter_rules as rules
from skpursuit.estimators.base import (
    FLOAT_DTYPES,
    MonitoredParams,
    lazy_on_dask,
    monitored,
    with_checked_indices,
)
from skpursuit.estimators.sklearn_types import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from skpursuit.kernels.batch_types import SparseCodes
from skpursuit.numerics.float_range import product_in_range
from skpursuit.numerics.tuning import STREAM_PIECE
from skpursuit.parameters import check_unmasked
from skpursuit.problem import default_sparsity as sparsity

CODE_RULES: dict[str, rules.Rule] = {
    "solver": rules.one_of("omp", "cosamp"),
    "atom_score": rules.one_of("correlation", "gain"),
    "positive": rules.FLAG,
}


def for_each_signal(rule: rules.Rule, kinds: str, least: int) -> rules.Rule:
    """A rule that allows an array with a number of at least ``least`` for each signal too."""

    def holds(values: Any) -> bool:
        each = np.asarray(values)
        known = each.ndim == 1 and each.dtype.kind in kinds
        return known and bool((np.isfinite(each) & (each >= least)).all())

    return rules.either(rules.or_none(rule), "one for each signal", holds)


CODER_RULES: dict[str, rules.Rule | None] = {
    **CODE_RULES,
    "n_nonzero_coefs": for_each_signal(rules.COUNT, "iu", 1),
    "tol": for_each_signal(rules.SIZE, "fiu", 0),
    "transform_max_iter": rules.or_none(rules.COUNT),
    "ridge": rules.SIZE,
    "atoms_per_step": rules.COUNT,
    **dict.fromkeys(("dictionary", "memory_limit")),
}


def is_tensor(value: object) -> bool:
    """Whether this is a tensor of PyTorch."""
    return type(value).__module__.split(".")[0] == "torch"


class TensorRows:
    """A tensor on the CPU, rows of which are arrays; 16-bit floats become float32 as they are read."""

    def __init__(self, tensor: Any) -> None:
        if tensor.device.type != "cpu":
            raise ValueError(f"tensors must be on the CPU, got one on {tensor.device}; write tensor.cpu()")
        if tensor.is_sparse or tensor.is_complex():
            raise ValueError(f"tensors must be dense and real, got {tensor.layout}, {tensor.dtype}")
        self.tensor, self.shape = tensor.detach(), tuple(tensor.shape)
        self.is_half = tensor.is_floating_point() and tensor.element_size() == 2
        self.dtype = np.dtype(np.float32) if self.is_half else self.tensor[:0].numpy().dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        part = self.tensor[rows]
        return (part.float() if self.is_half else part).numpy()


def like_tensor(given: Any, indices: np.ndarray, values: np.ndarray, counts: np.ndarray) -> tuple[Any, ...]:
    """Codes as they are, or as tensors if the signals were given as one."""
    if not is_tensor(given):
        return indices, values, counts
    made = [import_module("torch").from_numpy(array) for array in (indices, values, counts)]
    return made[0], made[1].to(given.dtype) if given.is_floating_point() else made[1], made[2]


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
        X = with_checked_indices(X)
        codes = check_array(X, accept_sparse="csr", dtype=FLOAT_DTYPES, input_name="codes")
        if (m := codes.shape[1]) != len(atoms):
            raise ValueError(f"codes have {m} columns, expected one for each of the {len(atoms)} atoms")
        return product_in_range(codes, atoms.astype(codes.dtype, copy=False))

    def _atoms(self) -> np.ndarray:
        """The dictionary, atoms in rows."""
        raise NotImplementedError

    @property
    def _n_features_out(self) -> int:
        return len(self._atoms())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_rule(given: Any) -> None:
    """Refuse a solver, score and sign of weights that do not go together."""
    if given.positive and given.atom_score == "gain":
        raise ValueError("positive=True goes by signed products; leave atom_score='correlation'")
    if given.solver == "cosamp" and (given.positive or given.atom_score == "gain"):
        raise ValueError("atom_score='gain' and positive=True need solver='omp', got solver='cosamp'")


def dense(values: Any, name: str) -> Any:
    """An array of what is one, tensors included; what has no entries to work with is refused."""
    if issparse(values) or isinstance(values, LinearOperator):
        raise TypeError(
            f"{name} must be a dense array, not sparse, got {type(values).__name__}; write {name}.toarray(), "
            f"or for an operator {name} @ np.eye({name}.shape[1])"
        )
    return TensorRows(values)[:] if is_tensor(values) else values


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
    n_nonzero_coefs : int, array of int with one for each signal, or None, default=10
        Non-zeros of a code. More than there are atoms is cut down with a warning. None: a tenth of the
        atoms, or no limit if `tol` is given, but at most as many as a signal has entries.
    solver : {"omp", "cosamp"}, default="omp"
        Orthogonal matching pursuit, or CoSaMP (Needell, Tropp 2009): take the 2k best atoms, fit them
        together with the k present ones, keep the k largest weights.
    tol : float or array of float with one for each signal, optional
        Stop once the squared norm of the residual is at most this, also below `n_nonzero_coefs` atoms.
    transform_max_iter : int, optional
        CoSaMP: limit on iterations; default `n_nonzero_coefs`. It stops earlier when the residual no
        longer shrinks, and returns the best code it met.
    refit : bool, default=False
        CoSaMP: fit the kept weights again each time the others were dropped (debiasing).
    n_jobs : int, optional
        Threads; default as many as BLAS would use, -1 one per processor. The codes do not depend on it.
    memory_limit : int or str, default=2**30
        Bytes, or text such as "2GB", for the Gram matrix of the atoms. Where it does not fit, or does not
        pay because signals are few, a product of all residuals with the dictionary is made for every step.
    ridge : float, default=0.0
        Penalty of (ridge / 2) ||w||^2 beside the mean over the entries of a signal of half their squared
        errors. It shrinks weights while atoms are chosen and in the codes. Such codes are made at the speed
        of plain pursuit, and not with ``atom_score="gain"``.
    atom_score : {"correlation", "gain"}, default="correlation"
        OMP takes the atom with the largest absolute product with the residual, or the one that lowers the
        squared error most ("gain": orthogonal least squares, as in SPAMS).
    positive : bool, default=False
        OMP: take the atom with the largest product, keep weights non-negative by least squares with an active
        set, and drop atoms whose weight is zero.
    atoms_per_step : int, default=1
        OMP: atoms taken from each product of a residual with the dictionary, the best first. More than one
        saves products where a code has hundreds of atoms.
    verbose : bool, int or "auto"
        Whether to say what is done, from the third second on. "auto": in a terminal or a notebook.
    time_limit : float, optional
        Seconds after which signals that are left get codes of zeros.

    Attributes
    ----------
    n_features_in_ : int
        Length of the signals given to `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when the signals given to `fit` have column names.

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
    n_nonzero_coefs: Any = 10
    solver: str = "omp"
    tol: Any = None
    _: KW_ONLY
    transform_max_iter: int | None = None
    refit: bool = False
    n_jobs: int | None = None
    memory_limit: int | str = 2**30
    ridge: float = 0.0
    atom_score: str = "correlation"
    positive: bool = False
    atoms_per_step: int = 1

    @monitored
    def fit(self, X: Any = None, y: Any = None) -> PursuitCoder:
        """Check the parameters, and signals if there are any; the dictionary is given.

        Parameters
        ----------
        X : array-like of shape (n_signals, n_features), optional
            Signals in rows.
        y : ignored
        """
        atoms = self._atoms()
        if X is not None and not dask_source.accepts(X):
            check_unmasked(signals=X)
            self._check_width(validate_data(self, dense(X, "signals")), atoms)
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
        signals = self._signals(X, atoms)
        return self._encoder(atoms, signals.dtype, len(signals)).transform(signals)

    @monitored
    def encode(self, X: Any) -> SparseCodes:
        """Code signals as arrays of fixed width, atoms in the order in which they were chosen.

        Parameters
        ----------
        X : array-like of shape (n_signals, n_features)
            Signals in rows.

        Returns
        -------
        SparseCodes
            Arrays `indices` (int32) and `values` of shape (n_signals, n_nonzero_coefs), filled up with zeros,
            and `counts`. Those of a PyTorch tensor are tensors, values in its dtype.
        """
        atoms = self._atoms()
        signals = self._signals(X, atoms)
        codes = self._encoder(atoms, signals.dtype, len(signals)).encode(signals)
        return SparseCodes(*like_tensor(X, *codes))

    def extend(self, atoms: Any) -> PursuitCoder:
        """Add atoms to the dictionary, behind those that are there.

        The coder then works on its own copy of the dictionary, and makes the Gram matrix of the first atoms
        only once.

        Parameters
        ----------
        atoms : array-like of shape (n_new, n_features)

        Returns
        -------
        PursuitCoder
            This coder.
        """
        before = self._atoms()
        new = check_array(dense(atoms, "atoms"), dtype=FLOAT_DTYPES, input_name="atoms")
        if new.shape[1] != before.shape[1]:
            raise ValueError(f"atoms have {new.shape[1]} columns, expected {before.shape[1]}, as the others")
        grown = np.vstack([before, new])
        grown.setflags(write=False)
        self._prepared = grown, self._encoder(grown, grown.dtype, None)
        self.dictionary = grown
        return self

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
            signals = self._signals(piece, atoms)
            encoder = encoder or self._encoder(atoms, signals.dtype, total)
            yield encoder.transform(signals, done)
            done += len(signals)

    def _atoms(self) -> np.ndarray:
        check_unmasked(dictionary=self.dictionary)
        shape = np.shape(dense(self.dictionary, "dictionary"))
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"dictionary must have an atom in each row, got an array of shape {shape}")
        rules.check_parameters(self, **CODER_RULES)
        as_bytes("memory_limit", self.memory_limit, 1)
        check_rule(self)
        if self.solver == "cosamp" and self.atoms_per_step > 1:
            raise ValueError("atoms_per_step needs solver='omp': CoSaMP takes 2 k atoms per product")
        if self.ridge > 0 and self.atom_score == "gain":
            raise ValueError("a ridge and atom_score='gain' do not go together; leave one of them out")
        return check_array(dense(self.dictionary, "dictionary"), dtype=FLOAT_DTYPES, input_name="dictionary")

    def _signals(self, X: Any, atoms: np.ndarray) -> Any:
        """A two-dimensional array that is not copied; finiteness is checked later, block by block."""
        check_unmasked(signals=X)
        how: dict[str, Any] = {"dtype": "numeric", "ensure_all_finite": False, "ensure_min_samples": 0}
        array: Any = TensorRows(X) if is_tensor(X) else check_array(X, **how, input_name="signals")
        self._check_width(array, atoms)
        if "n_features_in_" in vars(self):  # names, if the signals of `fit` had some
            validate_data(self, X, reset=False, skip_check_array=True)
        return array

    def _check_width(self, signals: Any, atoms: np.ndarray) -> None:
        if len(signals.shape) != 2 or signals.shape[1] != atoms.shape[1]:
            raise ValueError(
                f"X has {signals.shape[-1]} features, but {type(self).__name__} is expecting "
                f"{atoms.shape[1]} features as input, as its atoms have"
            )

    def _config(self, shape: tuple[int, int]) -> CoderConfig:
        (d, n), k, tol = shape, self.n_nonzero_coefs, self.tol
        if k is None:
            k = sparsity.for_codes(n, d, tol is not None)
        most = int(np.max(k, initial=1))
        sparsity.clip_to_available("n_nonzero_coefs", most, d, "the dictionary", "atoms")
        room = as_bytes("memory_limit", self.memory_limit, 1)
        given = tol, self.solver, self.refit, self.transform_max_iter, self.n_jobs, room, self.ridge
        return CoderConfig(k, *given, self.atom_score, self.positive, self.atoms_per_step)

    def _encoder(self, atoms: np.ndarray, dtype: np.dtype, expected: int | None) -> BatchCoder:
        known, encoder = vars(self).get("_prepared", (None, None))
        encoder = encoder if known is self.dictionary else None
        return BatchCoder(atoms, dtype, self._config(atoms.shape), expected, encoder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
