"""
Training on a few examples whose gradients sum to those of all
==============================================================

Training on a weighted tenth of the examples works if their gradients sum to about the gradient of all. That
is a sparse non-negative problem: examples are atoms, the full gradient is the signal (gradient matching, as
in CORDS)."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skpursuit import PursuitCoder

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X / 16, y, test_size=0.4, random_state=0)
rng = np.random.default_rng(0)

# %%
# Gradients come from a rough model, trained on 60 examples. A class has its own problem, so that every
# class is there.

warm = LogisticRegression(max_iter=200).fit(X[:60], y[:60])
wrong = warm.predict_proba(X) - np.eye(10)[y]
gradients = (wrong[:, :, None] * X[:, None, :]).reshape(len(X), -1)


def matched(size):
    """Examples and weights, so many for each class."""
    chosen, weights = [], []
    for label in range(10):
        members = np.flatnonzero(y == label)
        atoms = gradients[members]
        coder = PursuitCoder(atoms, size // 10, positive=True, ridge=1e-3)
        code = coder.transform(atoms.sum(axis=0)[None]).toarray()[0]
        chosen.append(members[code > 0])
        weights.append(code[code > 0] * len(members) / code.sum())
    return np.concatenate(chosen), np.concatenate(weights)


def accuracy(rows, weights=None):
    """On new digits, of a model trained on some rows."""
    return LogisticRegression(max_iter=500).fit(X[rows], y[rows], sample_weight=weights).score(X_new, y_new)


# %%
# Random examples, drawn 12 times, are a strong rival that costs nothing. Matching wins while examples
# are few; from a few hundred on the two are level.

sizes = (20, 30, 50, 80, 120, 200, 300)
by_chance = np.array([[accuracy(rng.choice(len(X), s, replace=False)) for _ in range(12)] for s in sizes])
by_match = [accuracy(*matched(size)) for size in sizes]
figure, axes = plt.subplots(figsize=(8, 4.4), layout="constrained")
axes.fill_between(
    sizes, by_chance.min(axis=1), by_chance.max(axis=1), color="#e4e8ec", label="random, 12 drawings"
)
axes.plot(sizes, by_chance.mean(axis=1), color="#9aa5b1", label="random, mean")
axes.plot(sizes, by_match, color="#0b7a4b", marker="o", label="gradient matching")
axes.axhline(accuracy(np.arange(len(X))), color="#1f2933", ls=":", label=f"all {len(X)} examples")
axes.set(xscale="log", xlabel="training examples", title="accuracy on new digits")
axes.set_xticks(sizes, [str(size) for size in sizes])
axes.minorticks_off()
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
