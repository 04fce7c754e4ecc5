"""The choice of `solver="auto"`: families of models compete on the same folds.

`folds.py` has the folds as row weights, and the paired test that compares two models on their held-out rows.
`squared_folds.py` has what least squares on all folds needs: Gram matrices, or Gram columns where X is wide.
`families.py` grows linear models in lock-step on all folds, `squared.py` judges them; `classes.py` and
`growth.py` do both for classes, `solvers.py` for solvers by name. `contest.py` lets them compete and takes
one; `relation.py` tells whether there is anything to predict.
"""
