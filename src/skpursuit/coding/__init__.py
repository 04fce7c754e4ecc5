"""Sparse codes of many signals over one dictionary, and the dictionary learned from signals.

`batch_coder.py` codes, `dictionary_update.py` moves atoms; both work on arrays and a `CoderConfig`, without a
design or a problem. The public faces are in `estimators/coder.py` and `estimators/dictionary_learner.py`.
"""
