"""scikit-learn's orthogonal matching pursuit, run by this library in programs that do not know it.

`patch_sklearn` puts our classes and functions in the places of scikit-learn's, and `python -m
skpursuit.interop.patch script.py` does so before it runs a script. What was imported from scikit-learn before
stays as it was. Calls that are wrong, or ask for what only scikit-learn has, go to its own functions.
"""

import inspect
import logging
import runpy
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any

import numpy as np
import sklearn.decomposition as coding
import sklearn.linear_model as linear

from skpursuit.estimators import omp, omp_functions
from skpursuit.estimators.coder import PursuitCoder
from skpursuit.parameters import warn_user

LOG = logging.getLogger("skpursuit")


def patch_sklearn() -> ExitStack:
    """Let scikit-learn pursue with this library, until `unpatch_sklearn`.

    Replaced are OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV, orthogonal_mp, orthogonal_mp_gram
    and, for algorithm "omp", what SparseCoder, sparse_encode and dictionary learning use.

    Returns
    -------
    ExitStack
        A context manager that takes the patch back: ``with patch_sklearn(): ...``

    Examples
    --------
    >>> from skpursuit import patch_sklearn
    >>> with patch_sklearn():
    ...     from sklearn.linear_model import OrthogonalMatchingPursuit
    >>> OrthogonalMatchingPursuit.__module__
    'skpursuit.estimators.omp'
    """
    if linear.orthogonal_mp in OURS:  # scikit-learn is as it was
        for module, name, theirs in PLACES:
            setattr(module, name, OURS[theirs])
        LOG.info("scikit-learn's matching pursuit is run by skpursuit (unpatch_sklearn takes it back)")
    patch = ExitStack()
    patch.callback(unpatch_sklearn)
    return patch


def unpatch_sklearn() -> None:
    """Give scikit-learn its own classes and functions back."""
    for place in PLACES:
        setattr(*place)


def _in_place_of(theirs: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the signature of theirs; ``ours`` answers None to what is left to theirs."""

    @wraps(theirs)
    def call(*given: Any, **named: Any) -> Any:
        bound = inspect.signature(theirs).bind(*given, **named)
        bound.apply_defaults()
        found = ours(**bound.arguments)
        return theirs(*given, **named) if found is None else found

    return call


def _too_many(k: int | None, tol: float | None, d: int) -> bool:
    return k is not None and tol is None and k > d  # which scikit-learn refuses


def _orthogonal_mp(X: Any, y: Any, **given: Any) -> Any:
    k, tol = given["n_nonzero_coefs"], given["tol"]
    many = np.ndim(y) == 2 and np.shape(y)[1] > 1
    if np.ndim(X) != 2 or _too_many(k, tol, np.shape(X)[1]):
        return None
    if not many or tol is not None or given["return_path"] or given["return_n_iter"]:
        return omp_functions.orthogonal_mp(X, y, **given)
    d = np.shape(X)[1]
    codes = PursuitCoder(np.asarray(X).T, k or max(1, d // 10)).transform(np.asarray(y).T)
    if np.diff(codes.indptr).min() < min(k or max(1, d // 10), np.shape(X)[0]):
        warn_user(omp_functions.PREMATURE, RuntimeWarning)
    return codes.toarray().T


def _orthogonal_mp_gram(Gram: Any, Xy: Any, **given: Any) -> Any:
    if np.ndim(Gram) != 2 or _too_many(given["n_nonzero_coefs"], given["tol"], len(Gram)):
        return None
    return omp_functions.orthogonal_mp_gram(Gram, Xy, **given)


def _sparse_encode(X: Any, dictionary: Any, **given: Any) -> Any:
    X, dictionary, k = np.asarray(X), np.asarray(dictionary), given["n_nonzero_coefs"]
    shapes = X.ndim == dictionary.ndim == 2 and X.shape[1] == dictionary.shape[1] and X.size > 0
    if given["algorithm"] != "omp" or given["positive"] or not shapes:
        return None
    d, n = dictionary.shape
    k = int(min(max(n / 10, 1), d)) if k is None else k
    if not 1 <= k <= d:
        return None
    return PursuitCoder(dictionary, k, n_jobs=given["n_jobs"]).transform(X).toarray()


OURS: dict[object, object] = {
    linear.OrthogonalMatchingPursuit: omp.OrthogonalMatchingPursuit,
    linear.OrthogonalMatchingPursuitCV: omp.OrthogonalMatchingPursuitCV,
    linear.orthogonal_mp: _in_place_of(linear.orthogonal_mp, _orthogonal_mp),
    linear.orthogonal_mp_gram: _in_place_of(linear.orthogonal_mp_gram, _orthogonal_mp_gram),
    coding.sparse_encode: _in_place_of(coding.sparse_encode, _sparse_encode),
}
HOMES = {inspect.getmodule(one) for one in (linear.orthogonal_mp, coding.sparse_encode)}
# Where scikit-learn has these: modules, names, and its own classes and functions.
PLACES = tuple(
    (module, name, theirs)
    for module in (linear, coding, *HOMES)
    for name, theirs in vars(module).items()
    if (inspect.isroutine(theirs) or inspect.isclass(theirs)) and theirs in OURS
)


def main(arguments: list[str]) -> None:
    """Run a script, or a module after -m, with the patch."""
    if not arguments or arguments == ["-m"]:
        sys.exit("usage: python -m skpursuit.interop.patch (SCRIPT | -m MODULE) [ARGUMENTS]")
    is_module = arguments[0] == "-m"
    sys.argv = arguments[is_module:]
    with patch_sklearn():
        if is_module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    from skpursuit.interop.patch import main as run  # the module that programs see, not __main__

    run(sys.argv[1:])
