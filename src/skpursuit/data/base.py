"""For the time of the move: where other packages find these names."""

from skpursuit.data.design import Design
from skpursuit.data.kept import ColumnCache
from skpursuit.data.reads import Reads
from skpursuit.numerics.arrays import Floats, Indices

__all__ = ["ColumnCache", "Design", "Floats", "Indices", "Reads"]
