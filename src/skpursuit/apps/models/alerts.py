"""What people should know about a table before they trust a model of it, in sentences."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from skpursuit.apps.tables import EncodedTable
from skpursuit.apps.tables.column_kinds import CellCounts, Number
from skpursuit.apps.tables.parsing import spellings

from ..pages.render import quoted

LEAK = 0.98  # of the variance, or of the cases beyond the most frequent class, that one column tells alone
SAME = 0.99  # correlation of two columns from which either may stand for the other
GAPS = 0.3  # share of empty cells that is told
LOOKED_AT = 10  # columns of the model that are looked at
DENSE_CELLS = 2e7  # up to which rows and columns are compared


def data_alerts(table: EncodedTable, y: np.ndarray, regression: bool, used: Sequence[str]) -> list[str]:
    """Return sentences about a table; ``used`` are the columns of a model, the most important first."""
    place = {kind.name: kind.features for kind in table.encoding.columns}
    index = {feature: j for j, feature in enumerate(table.features)}
    parts = {name: table.dense([index[feature] for feature in place[name]]) for name in used[:LOOKED_AT]}
    found = list(filter(None, (_leak(name, X, y, regression) for name, X in parts.items())))
    found += _repeated(table, y, used[:LOOKED_AT])
    for kind in table.encoding.columns:
        met = table.found.get(kind.name, CellCounts())
        gaps = met.missing + met.strays
        if gaps >= GAPS * len(table.y if table.y is not None else ()):
            found.append(f"{quoted(kind.name)} has no usable value in {gaps} rows, which are filled in")
        levels = () if getattr(kind, "fold", True) else getattr(kind, "levels", ())
        if twice := [own for own in spellings(levels).values() if len(own) > 1]:
            words = " and ".join(map(quoted, twice[0]))
            advice = shlex.quote(f"{kind.name}=fold")
            found.append(
                f"{quoted(kind.name)} has levels that differ in case or blanks only, such as {words}; "
                f"`--column {advice}` makes one of them"
            )
    return found


def _leak(name: str, X: np.ndarray, y: np.ndarray, regression: bool) -> str:
    """Return what is suspicious about a column that tells a target nearly alone; empty if it does not."""
    if regression:
        share, what = float(LinearRegression().fit(X, y).score(X, y)), "of the variance of the target"
        ratio = y[X[:, 0] != 0] / X[X[:, 0] != 0, 0]
        if share >= LEAK and X.shape[1] == 1 and np.ptp(ratio) <= 2e-3 * abs(ratio.mean()):
            what += f", which is {ratio.mean():.4g} times as large in every row"
    else:
        labels, counts = np.unique(y, return_counts=True)
        tree = DecisionTreeClassifier(max_leaf_nodes=2 * len(labels), random_state=0).fit(X, y)
        share = 1 - float(np.mean(tree.predict(X) != y)) / (1 - counts.max() / len(y))
        what = "of the rows that are not of the most frequent class"
    if share < LEAK:
        return ""
    told = f"{share:.1%}" if share < 0.9995 else "100%"
    advice = f"if it is known only afterwards, leave it out: `--drop {shlex.quote(name)}`"
    return f"possible leak: {quoted(name)} alone tells {told} {what}; {advice}"


def _repeated(table: EncodedTable, y: np.ndarray, used: Sequence[str]) -> Iterator[str]:
    """Yield what rows and columns are there twice, of tables that are not too large to compare them."""
    X = table.X
    if isinstance(X, csr_array) or X.size > DENSE_CELLS or X.shape[1] < 2:
        return
    codes = np.unique(y, return_inverse=True)[1]
    rows = len({row.tobytes() for row in np.column_stack([X, codes])})
    if len(X) // 2 < rows < len(X):
        words = "rows are the same as other ones" if len(X) - rows > 1 else "row is the same as another one"
        yield f"{len(X) - rows} {words}, in every column and the target"
    centred = X - X.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    centred /= np.where(norms > 0, norms, 1.0)
    numbers = [kind.name for kind in table.encoding.columns if isinstance(kind, Number)]
    place = {name: j for j, name in enumerate(table.features) if name in set(numbers)}
    told: set[str] = set()
    for name in filter(place.__contains__, used):
        alike = np.abs(centred[:, list(place.values())].T @ centred[:, place[name]]) > SAME
        others = [other for other, same in zip(place, alike) if same and other != name and other not in told]
        told.add(name)
        if others:
            other = quoted(others[0])
            yield f"{quoted(name)} says nearly the same as {other}: either may stand for the other"
