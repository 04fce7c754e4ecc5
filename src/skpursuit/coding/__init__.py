"""Sparse codes of many signals over one dictionary, and the dictionary learned from signals.

`encoder.py` codes, `dictionary.py` moves atoms; both work on arrays and a `CodingConfig`, without a design or
a problem. The public faces are in `estimators/coder.py` and `estimators/dictionary.py`.
"""
