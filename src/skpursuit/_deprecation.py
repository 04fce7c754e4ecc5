"""How public names and parameters leave the library.

Until the first release changes are made at once and stand in the changelog. After it what users rely on keeps
working for two minor releases, and every use of it warns with a sentence that says what to write instead.
"""

from __future__ import annotations

import warnings


def warn_deprecated(what: str, *, since: str, until: str, instead: str) -> None:
    """Warn the caller of a public function that something it uses will be removed.

    Parameters
    ----------
    what : str
        What was used, such as ``"parameter `normalize` of OMP"``.
    since, until : str
        The release from which it is deprecated, and the one that will not have it any more.
    instead : str
        What to write in its place, such as ``"OMP(scale=True)"``.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_deprecated("OMP(k=5)", since="1.2", until="1.4", instead="OMP(n_nonzero_coefs=5)")
    >>> print(caught[0].message)
    OMP(k=5) is deprecated since 1.2 and will be removed in 1.4; use OMP(n_nonzero_coefs=5) instead
    """
    told = f"{what} is deprecated since {since} and will be removed in {until}; use {instead} instead"
    warnings.warn(told, FutureWarning, stacklevel=3)
