"""The former name of `numerics.estimate`."""

from skpursuit.numerics.estimate import EPS as EPS
from skpursuit.numerics.estimate import norms_of as norms_of
from skpursuit.numerics.estimate import outer_bound as outer_bound
from skpursuit.numerics.estimate import product_bound as product_bound
from skpursuit.numerics.estimate import raised as raised
from skpursuit.numerics.estimate import total_bound as total_bound
