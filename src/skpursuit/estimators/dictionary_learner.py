"""`DictionaryLearner`: a dictionary learned from signals, batch by batch.

A batch is coded over the present atoms, and the atoms are moved to fit the codes of all batches so far
(`coding/dictionary_update.py`); here are the passes over the signals and scikit-learn's conventions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skpursuit.coding.batch_coder import BatchCoder, CoderConfig
from skpursuit.coding.dictionary_update import SufficientStatistics
from skpursuit.estimators.base import FLOAT_DTYPES, lazy_on_dask, monitored
from skpursuit.estimators.coder import CODE_RULES, SparseCodesMixin, check_rule
from skpursuit.estimators.parameter_rules import COUNT, check_parameters
from skpursuit.estimators.sklearn_types import BaseEstimator
from skpursuit.parameters import check_unmasked
from skpursuit.problem import default_sparsity as sparsity
from skpursuit.progress import current_monitor


@dataclass(eq=False, repr=False)
class DictionaryLearner(SparseCodesMixin, BaseEstimator):
    """Learn atoms over which signals have sparse codes, from mini-batches (Mairal et al. 2010).

    Each batch is coded as by `PursuitCoder`; products of codes and signals are summed, old batches counting
    less and less; one pass of block coordinate descent moves the atoms. Atoms that stay unused are replaced
    by the signals of the batch that are coded worst.

    Parameters
    ----------
    n_components : int, optional
        Number of atoms; default the number of features.
    n_nonzero_coefs : int, optional
        Non-zeros of a code; default 10, or the number of atoms if that is less.
    solver, atom_score, positive, verbose
        As in `PursuitCoder`. ``atom_score="gain"`` gives slightly lower errors, also in learning.
    tol : float, optional
        Squared residual norm at which the code of a signal is good enough.
    max_iter : int, default=10
        Passes of `fit` over the signals.
    batch_size : int, default=512
        Signals in a mini-batch.
    callback : callable, optional
        Called by `fit` after each batch with the number of signals done and the total of all passes.
    n_jobs : int, optional
        Threads; default as many as BLAS would use, -1 one per processor. The atoms do not depend on it.
    random_state : int, RandomState instance or None, default=None
        For the first atoms and the order of the signals.
    time_limit : float, optional
        Seconds after which `fit` and `partial_fit` take no further batch; signals left in `transform` get
        codes of zeros.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Atoms in rows, of unit norm.
    errors_ : list of float
        Squared residuals over squared signals, one number for each pass of `fit` or call of `partial_fit`,
        measured as the signals were coded, so with atoms older than those the pass ended with.
    n_iter_ : int
        Passes over the signals, the last of which `time_limit` may have cut short; 0 if there was no time.
    n_replaced_ : int
        Atoms replaced so far.
    n_features_in_ : int
        Length of an atom.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when the signals have column names.

    Examples
    --------
    >>> import numpy as np
    >>> from skpursuit import DictionaryLearner
    >>> signals = np.random.default_rng(0).standard_normal((200, 8))
    >>> learner = DictionaryLearner(n_components=16, n_nonzero_coefs=2, random_state=0).fit(signals)
    >>> learner.transform(signals).shape
    (200, 16)
    """

    n_components: int | None = None
    n_nonzero_coefs: int | None = None
    solver: str = "omp"
    tol: float | None = None
    _: KW_ONLY
    max_iter: int = 10
    batch_size: int = 512
    callback: Callable[[int, int], object] | None = None
    n_jobs: int | None = None
    random_state: Any = None
    atom_score: str = "correlation"
    positive: bool = False

    @monitored
    def fit(self, X: Any, y: Any = None) -> DictionaryLearner:
        """Learn the atoms from scratch.

        Parameters
        ----------
        X : array-like of shape (n_signals, n_features)
            Signals in rows.
        y : ignored
        """
        X = self._checked(X)
        return self._learn(X, self._start(X))

    @monitored
    def partial_fit(self, X: Any, y: Any = None) -> DictionaryLearner:
        """Go on learning from more signals.

        Parameters
        ----------
        X : array-like of shape (n_signals, n_features)
            Signals in rows, used in their order.
        y : ignored
        """
        first = "components_" not in vars(self)
        X = self._checked(X, reset=first)
        if first:
            self._start(X)
        X = X.astype(self.components_.dtype, copy=False)
        return self._learn(X)

    @monitored
    @lazy_on_dask
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
        X = self._checked(X, reset=False)
        return BatchCoder(self.components_, X.dtype, self._config(), len(X)).transform(X)

    def _atoms(self) -> np.ndarray:
        check_is_fitted(self)
        return self.components_

    def _checked(self, X: Any, reset: bool = True) -> np.ndarray:
        """The signals as an array of floats, after a check of the parameters."""
        check_parameters(self, max_iter=COUNT, **CODE_RULES)
        check_rule(self)
        check_unmasked(X=X)
        return validate_data(self, X, dtype=FLOAT_DTYPES, reset=reset)

    def _config(self) -> CoderConfig:
        d, k, own = len(self.components_), self.n_nonzero_coefs, (self.atom_score, self.positive)
        k = sparsity.for_learned_codes(d) if k is None else k
        k = sparsity.clip_to_available("n_nonzero_coefs", k, d, "the dictionary", "atoms")
        return CoderConfig(k, self.tol, self.solver, n_jobs=self.n_jobs, atom_score=own[0], positive=own[1])

    def _start(self, X: np.ndarray) -> np.random.Generator:
        """First atoms, random signals that are not zero and then random directions; empty statistics."""
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        d, peak = self.n_components or X.shape[1], np.abs(X).max(axis=1)
        usable = rng.permutation(np.flatnonzero(peak > 0))[:d]
        atoms = rng.standard_normal((d, X.shape[1])).astype(X.dtype)
        atoms[: len(usable)] = X[usable] / peak[usable, None]
        self.components_ = atoms / np.linalg.norm(atoms, axis=1, keepdims=True)
        self._statistics = SufficientStatistics(X, d)
        self.n_iter_ = self.n_replaced_ = 0
        self.errors_: list[float] = []
        return rng

    def _learn(self, X: np.ndarray, rng: np.random.Generator | None = None) -> DictionaryLearner:
        """Learn from batches of signals in their order, or for `fit` in passes with a new order by `rng`.

        Time may end it between batches and not inside of one: codes that are missing teach nothing.
        """
        passes, callback = (1, None) if rng is None else (self.max_iter, self.callback)
        total, done, watch, config = passes * len(X), 0, current_monitor(), self._config()
        for _ in range(passes):
            order = np.arange(len(X)) if rng is None else rng.permutation(len(X))
            errors, sums = self.errors_, np.zeros(2)
            for at in range(0, len(X), self.batch_size):
                if watch.out_of_time():
                    return self
                batch = X[np.sort(order[at : at + self.batch_size])]
                with watch.time_share(None):
                    sums += self._statistics.step(self.components_, batch, config)
                self.errors_ = [*errors, float(sums[0] / sums[1]) if sums[1] > 0 else 0.0]
                self.n_iter_, self.n_replaced_ = len(self.errors_), self._statistics.replaced
                done += len(batch)
                watch.set_message("{} of {} signals", done, total)
                if callback is not None:
                    callback(done, total)
        return self
