"""
Genes: many more columns than samples, and an honest comparison with L1
=======================================================================

100 samples, 3,000 genes in families of 15 that go up and down together, 6 of them true. This is where
sparse selection is hardest: a neighbour explains the target nearly as well as the true gene, and cross-
validation has few samples to choose with. Both methods choose their own size."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV
from sklearn.preprocessing import StandardScaler

from skpursuit import PursuitRegressorCV


def expression(seed, alike=0.6, strength=1.0):
    """Genes, a target, those that make it, and new samples."""
    rng = np.random.default_rng(seed)
    families = np.repeat(rng.standard_normal((400, 200)), 15, axis=1)
    X = np.sqrt(alike) * families + np.sqrt(1 - alike) * rng.standard_normal((400, 3000))
    true = rng.choice(3000, 6, replace=False)
    y = X[:, true] @ (strength * rng.choice([-1, 1], 6)) + 1.5 * rng.standard_normal(400)
    return X[:100], y[:100], true, X[100:], y[100:]


# %%
# Six drawings. ``selection="one_se"`` of ours takes the fewest genes within a standard error of the best
# score.

rows = {"pursuit": [], "pursuit, one_se": [], "L1": []}
for seed in range(6):
    X, y, true, X_new, y_new = expression(seed)
    scaler = StandardScaler().fit(X)
    fitted = {
        "pursuit": PursuitRegressorCV(random_state=0).fit(X, y),
        "pursuit, one_se": PursuitRegressorCV(selection="one_se", random_state=0).fit(X, y),
        "L1": LassoCV(cv=5, random_state=0, tol=1e-3).fit(scaler.transform(X), y),
    }
    for name, model in fitted.items():
        found = np.flatnonzero(model.coef_)
        new = scaler.transform(X_new) if name == "L1" else X_new
        rows[name].append((len(found), len(set(found) & set(true)), model.score(new, y_new)))

# %%
# L1 predicts by spreading weight over whole families: many genes, of which few are true. The pursuit
# names few. Which of the two predicts better changes from drawing to drawing; when every sample counts,
# try both.

figure, panels = plt.subplots(1, 3, figsize=(10, 3.9), layout="constrained")
titles = ("genes in the model", "true genes found, of 6", "R2 on new samples")
for axes, title, column in zip(panels, titles, range(3)):
    for x, values in enumerate(rows.values()):
        column_values = [value[column] for value in values]
        axes.scatter(np.full(6, x) + np.linspace(-0.12, 0.12, 6), column_values, s=28, color=f"C{x}")
        axes.hlines(np.mean(column_values), x - 0.25, x + 0.25, color=f"C{x}", lw=2.5)
    axes.set_xticks(range(3), [name.replace(", ", ",\n") for name in rows])
    axes.set_title(title, fontsize=11)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
for name, values in rows.items():
    print(name, *np.round(np.mean(values, axis=0), 2))
