"""What skops has to trust before it reads back a stored model of this library."""

from __future__ import annotations

from inspect import isabstract, isclass

import skpursuit
from skpursuit.coding.dictionary_update import SufficientStatistics
from skpursuit.problem.state import Record


def trusted_types() -> list[str]:
    """The types of this library in stored models: ``skops.io.load(file, trusted=trusted_types())``.

    They are the public classes, as models and their parameters, and the records of fits. A loss, solver or
    selector of your own is not among them: add its name to the list.

    Examples
    --------
    >>> from skpursuit.interop.skops import trusted_types
    >>> "skpursuit.estimators.regressor.PursuitRegressorCV" in trusted_types()
    True
    """
    public = (getattr(skpursuit, name) for name in dir(skpursuit))
    classes = {one for one in public if isclass(one) and not isabstract(one)} | {Record, SufficientStatistics}
    return sorted(f"{one.__module__}.{one.__qualname__}" for one in classes)
