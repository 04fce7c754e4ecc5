"""
A path, its choice, and a proven band
=====================================

How many features does a model need, and could another set of as many be much better? Cross-validation
answers the first question. A proof answers the second: :func:`~skpursuit.certify` bounds the best model of
every size from below, so that the band between bound and path is all that any other choice could gain."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skpursuit import OMP, PursuitRegressorCV, certify, minimize

X, y = load_diabetes(return_X_y=True)
crossed = PolynomialFeatures(2, interaction_only=True, include_bias=False)
X = StandardScaler().fit_transform(crossed.fit_transform(X))
y = (y - y.mean()) / y.std()
print(X.shape)

# %%
# The model search tries families of models and ridges on the same folds, and may choose no feature at all.

best = PursuitRegressorCV(random_state=0).fit(X, y)
few = PursuitRegressorCV(selection="one_se", random_state=0).fit(X, y)
print(
    "best:",
    best.n_nonzero_coefs_,
    " one_se:",
    few.n_nonzero_coefs_,
    few.choice_["family"],
    few.choice_["ridge"],
)

# %%
# Two greedy paths with a little ridge, one with swaps: after each step a chosen column may be exchanged
# for a better one. Then the proof for each size of the path with swaps.

ridge, sizes = 1e-3, np.arange(1, 13)
objectives = {}
for swaps in (False, True):
    runs = [minimize(X, y, OMP(int(k), ridge=ridge, swaps=swaps)) for k in sizes]
    objectives[swaps] = np.array([run.objective for run in runs])
path = minimize(X, y, OMP(12, ridge=ridge))
proof = certify(X, y, path, ridge=ridge, max_nodes=100)

# %%
# Where the band is closed, the set is the best of its size, and no search can improve it. Where it is
# open, the truth is somewhere inside: the proof says how much is at stake, not which.

error = 2 / len(y)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
size = np.arange(1, len(proof.lower_bound) + 1)
left.fill_between(
    size, error * proof.lower_bound, error * proof.objective, color="#bfe3d0", label="proven band"
)
left.plot(sizes, error * objectives[False], color="#9aa5b1", marker="o", ms=4, label="greedy")
left.plot(sizes, error * objectives[True], color="#0b7a4b", marker="o", ms=4, label="greedy with swaps")
left.set(xlabel="features", title="training error, as a share of the variance of y")
left.legend(frameon=False)
scores = best.scores_.mean(axis=0)
right.plot(best.path_sizes_, scores, color="#0072b2", marker=".")
right.axvline(best.n_nonzero_coefs_, color="#0072b2", ls=":")
right.axvline(few.n_nonzero_coefs_, color="#d9822b", ls=":")
right.text(best.n_nonzero_coefs_, scores.min(), " best", color="#0072b2")
right.text(few.n_nonzero_coefs_, scores.min(), "one_se ", color="#d9822b", ha="right")
right.set(xlabel="features", title="score on held-out folds")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
