"""The scikit-learn face: check, standardize, run, keep.

`base.py` and `linear_fit.py` have what all linear estimators share. The pursuit estimators are `regressor.py`
and `classifier.py`, the drop-in for scikit-learn is `omp.py` and `omp_functions.py`, and sparse codes are in
`coder.py` and `dictionary_learner.py`.
"""
