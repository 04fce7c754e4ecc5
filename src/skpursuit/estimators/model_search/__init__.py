"""The choice of `solver="auto"`: families of models compete on the same folds.

`contest.py` has the data as all models see them, lets candidates compete and takes one. `squared.py` makes
linear models under squared loss, on the Gram matrices of `squared_folds.py`; `classes.py` makes classifiers,
`solvers.py` the models of solvers by name. `relation.py` tells whether there is anything to predict.
"""
