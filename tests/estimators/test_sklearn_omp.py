"""scikit-learn's own tests of orthogonal matching pursuit, as they are installed, on the drop-ins.

Left out is `test_bad_input`: it refuses more coefficients than columns, which we clip with a warning.
"""

from importlib.util import find_spec
from pathlib import Path

import pytest

THEIRS = Path(find_spec("sklearn.linear_model").submodule_search_locations[0]) / "tests" / "test_omp.py"
if not THEIRS.exists():
    pytest.skip("scikit-learn is installed without its tests", allow_module_level=True)

FIRST = "    OrthogonalMatchingPursuit,"
SOURCE = THEIRS.read_text(encoding="utf-8")
assert FIRST in SOURCE
exec(compile(SOURCE.replace(FIRST, f")\nfrom skpursuit import (\n{FIRST}", 1), str(THEIRS), "exec"))
del test_bad_input  # noqa: F821

pytestmark = pytest.mark.filterwarnings(
    "ignore:Orthogonal matching pursuit ended prematurely:RuntimeWarning", "ignore:n_nonzero_coefs"
)
