"""The choice of `solver="auto"`: families of models compete on the same folds.

`search.py` has the data as all models see them, lets candidates compete, takes one, and tells whether there
is anything to predict. `squared_search.py`
makes linear models under squared loss, on the Gram matrices of `fold_least_squares.py`;
`classifier_search.py` makes classifiers, `solver_search.py` the models of solvers by name.
"""
