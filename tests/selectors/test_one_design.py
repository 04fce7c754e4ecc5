"""What one selector leaves in a design serves the next one, and changes no answer."""

import pytest

from skpursuit import OMP, as_design, datasets, minimize
from skpursuit.selectors import SELECTORS
from skpursuit.selectors import successive_halving as halving

X, y, _ = datasets.make_sparse_signal(150, 400, 5, random_state=0)


def coefficients(given, selector, k):
    return minimize(given, y, OMP(k), selector, random_state=0).coef.tobytes()


@pytest.fixture(scope="module")
def alone():
    """The coefficients of each selector with a design of its own; small ones get codes by rows too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halving, "HALVING_CODES", 0)
        yield {name: coefficients(X, name, 8) for name in SELECTORS}


@pytest.mark.parametrize("first", SELECTORS)
def test_a_design_used_by_another_selector_gives_the_same_answers(first, alone):
    design = as_design(X)
    coefficients(design, first, 3)
    assert {name: coefficients(design, name, 8) for name in SELECTORS} == alone
