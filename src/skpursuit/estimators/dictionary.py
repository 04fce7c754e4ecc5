"""Dictionaries learned from signals."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skpursuit.coding import atoms as update_rule
from skpursuit.coding.batch import KERNELS, Encoder
from skpursuit.estimators.checks import a_choice, a_count, check_parameters
from skpursuit.estimators.coder import Progress, PursuitCoder, make_plan, seconds_left
from skpursuit.estimators.codes import CodesOut, decode
from skpursuit.numerics.blas import one_thread
from skpursuit.parameters import check_count, check_seed, check_unmasked

# An atom is replaced once it was not used while on average every atom was used this many times.
PATIENCE = 8


class DictionaryLearner(CodesOut, BaseEstimator):
    """Learn atoms over which signals have sparse codes, from mini-batches (Mairal et al. 2010).

    Each batch is coded by `PursuitCoder`; products of codes and signals are summed, old batches counting
    less and less; one pass of block coordinate descent moves the atoms. Atoms that stay unused are replaced
    by the signals of the batch that are coded worst.

    Parameters
    ----------
    n_components : int, optional
        Number of atoms; default the number of features.
    n_nonzero_coefs : int, optional
        Non-zeros of a code; default 10, or the number of atoms if that is less.
    solver : {"omp", "cosamp"}, default="omp"
        How signals are coded, see `PursuitCoder`.
    tol : float, optional
        Squared residual norm at which the code of a signal is good enough.
    max_iter : int, default=10
        Passes of `fit` over the signals.
    batch_size : int, default=512
        Signals in a mini-batch.
    forget : float, default=2.0
        After t batches the i-th counts ``(i / t) ** forget``; 0 forgets nothing.
    callback : callable, optional
        Called by `fit` after each batch with the number of signals done, the total of all passes and the
        expected seconds left.
    n_jobs : int, optional
        Threads; default as many as BLAS would use. The atoms do not depend on it.
    random_state : int, RandomState instance or None, default=None
        For the first atoms and the order of the signals.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Atoms in rows, of unit norm.
    errors_ : list of float
        Squared residuals over squared signals, one number for each pass of `fit` or call of `partial_fit`,
        measured as the signals were coded, so with atoms older than those the pass ended with.
    n_iter_ : int
        Passes over the signals.
    n_replaced_ : int
        Atoms replaced so far.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when the signals have column names.
        Length of an atom.

    Examples
    --------
    >>> import numpy as np
    >>> from skpursuit import DictionaryLearner
    >>> signals = np.random.default_rng(0).standard_normal((200, 8))
    >>> learner = DictionaryLearner(n_components=16, n_nonzero_coefs=2, random_state=0).fit(signals)
    >>> learner.transform(signals).shape
    (200, 16)
    """

    def __init__(
        self,
        n_components: int | None = None,
        n_nonzero_coefs: int | None = None,
        solver: str = "omp",
        tol: float | None = None,
        *,
        max_iter: int = 10,
        batch_size: int = 512,
        forget: float = 2.0,
        callback: Progress | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.forget = forget
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state

    @one_thread()
    def fit(self, X: Any, y: Any = None) -> DictionaryLearner:
        """Learn the atoms from scratch.

        Parameters
        ----------
        X : array-like of shape (n_signals, n_features)
            Signals in rows.
        y : ignored
            Present by convention.

        Returns
        -------
        DictionaryLearner
            The learner itself.
        """
        self._check()
        check_unmasked(X=X)
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        rng = self._start(X)
        total, done, begun = self.max_iter * len(X), 0, time.perf_counter()
        for _ in range(self.max_iter):
            order, sums = rng.permutation(len(X)), np.zeros(2)
            for at in range(0, len(X), self.batch_size):
                batch = X[np.sort(order[at : at + self.batch_size])]
                sums += self._step(batch)
                done += len(batch)
                if self.callback is not None:
                    self.callback(done, total, seconds_left(begun, done, total))
            self._end_pass(sums)
        return self

    @one_thread()
    def partial_fit(self, X: Any, y: Any = None) -> DictionaryLearner:
        """Go on learning from more signals.

        Parameters
        ----------
        X : array-like of shape (n_signals, n_features)
            Signals in rows, used in their order.
        y : ignored
            Present by convention.

        Returns
        -------
        DictionaryLearner
            The learner itself.
        """
        first = not hasattr(self, "components_")
        self._check()
        check_unmasked(X=X)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=first)
        if first:
            self._start(X)
        X = X.astype(self.components_.dtype, copy=False)
        starts = range(0, len(X), self.batch_size)
        self._end_pass(sum((self._step(X[at : at + self.batch_size]) for at in starts), np.zeros(2)))
        return self

    def transform(self, X: Any) -> csr_array:
        """Code signals over the learned atoms.

        Parameters
        ----------
        X : array-like of shape (n_signals, n_features)
            Signals in rows.

        Returns
        -------
        csr_array of shape (n_signals, n_components)
            Codes in rows.
        """
        check_is_fitted(self)
        check_unmasked(X=X)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return self._coder().transform(X)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Signals that codes stand for.

        Parameters
        ----------
        X : {array-like, sparse} of shape (n_signals, n_components)
            Codes in rows.

        Returns
        -------
        ndarray of shape (n_signals, n_features)
            ``X @ components_``.
        """
        check_is_fitted(self)
        return decode(X, self.components_)

    def _check(self) -> None:
        check_parameters(
            self,
            solver=a_choice(*KERNELS),
            n_jobs=check_count,
            max_iter=a_count,
            random_state=partial(check_seed, generator=False),
        )

    def _coder(self) -> PursuitCoder:
        k = self.n_nonzero_coefs
        return PursuitCoder(
            self.components_,
            n_nonzero_coefs=min(10, len(self.components_)) if k is None else k,
            solver=self.solver,
            tol=self.tol,
            n_jobs=self.n_jobs,
        )

    def _start(self, X: np.ndarray) -> np.random.Generator:
        """First atoms, empty statistics."""
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        d, n = self.n_components or X.shape[1], X.shape[1]
        self.components_ = update_rule.from_signals(X, d, rng)
        # A power of two that keeps products of signals away from overflow; atoms have unit norm anyway.
        most = 120 if X.dtype == np.float32 else 1000
        self._scale = X.dtype.type(2.0 ** -int(np.clip(np.frexp(np.abs(X).max())[1], -most, most)))
        self._A, self._B = np.zeros((d, d), X.dtype), np.zeros((d, n), X.dtype)
        self._idle = np.zeros(d, np.int64)
        self._steps = self.n_iter_ = self.n_replaced_ = 0
        self.errors_: list[float] = []
        make_plan(self._coder(), d, n)  # its warnings, once and before any work
        return rng

    def _end_pass(self, sums: np.ndarray) -> None:
        self.n_iter_ += 1
        self.errors_.append(float(sums[0] / sums[1]) if sums[1] > 0 else 0.0)

    def _step(self, batch: np.ndarray) -> np.ndarray:
        """Code a batch and move the atoms; returns the squared residuals and signals, summed."""
        coder = self._coder()
        d, n = self.components_.shape
        coder.n_nonzero_coefs = min(coder.n_nonzero_coefs or d, d)
        codes = Encoder(self.components_, make_plan(coder, d, n), len(batch)).encode(batch)
        signals, codes = batch * self._scale, codes * self._scale
        residual = signals - codes @ self.components_
        self._steps += 1
        keep = self.components_.dtype.type((1 - 1 / self._steps) ** self.forget)
        self._A *= keep
        self._B *= keep
        self._A += (codes.T @ codes).toarray()
        self._B += codes.T @ signals
        update_rule.update(self.components_, self._A, self._B, self.n_jobs)
        self._replace(codes, signals, residual)
        return np.array([np.vdot(residual, residual), np.vdot(signals, signals)], dtype=np.float64)

    def _replace(self, codes: csr_array, signals: np.ndarray, residual: np.ndarray) -> None:
        """Give the places of idle atoms to the signals that are coded worst."""
        self._idle += len(signals)
        self._idle[codes.indices] = 0
        per_signal = max(1.0, codes.nnz / len(signals))
        idle = np.flatnonzero(self._idle > PATIENCE * len(self._idle) / per_signal)
        left = np.einsum("ij,ij->i", residual, residual)
        worst = np.argsort(-left, kind="stable")[: len(idle)]
        worst = worst[left[worst] > 0]
        idle = idle[: len(worst)]
        norms = np.linalg.norm(signals[worst], axis=1, keepdims=True)
        self.components_[idle] = signals[worst] / norms
        self._A[idle] = self._A[:, idle] = self._B[idle] = 0
        self._idle[idle] = 0
        self.n_replaced_ += len(idle)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
