"""The environment of all tests."""

import os

# scikit-learn's array API checks are skipped without it, and it is read when scipy is first imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
