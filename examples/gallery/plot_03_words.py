"""
Words that separate two topics
==============================

Documents are counts of 4,000 words. Two topics use most words alike and a few differently. A pursuit picks
the words one by one: each is the word that helps most beside those already chosen.

The documents are generated, so the words that differ are known.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from skpursuit import PursuitClassifier

rng = np.random.default_rng(0)
COMMON = np.array([f"word{i}" for i in range(3977)])
SEA = ["harbour", "tide", "sail", "anchor", "deck", "wave", "crew", "mast", "gull", "reef", "cabin", "rope"]
ORCHARD = ["apple", "graft", "blossom", "pear", "ladder", "bark", "frost", "bee", "cider", "root", "crate"]
words = np.concatenate([COMMON, SEA, ORCHARD])


def documents(n, marked=0.02):
    """Texts of about 80 words; a share of them is of the topic."""
    usual = 1 / np.arange(2, 3979)
    topics, rows = rng.integers(2, size=n), []
    for topic in topics:
        p = np.concatenate([usual / usual.sum() * (1 - marked), np.full(23, 0.15 * marked / 12)])
        own = slice(3977, 3989) if topic == 0 else slice(3989, 4000)
        p[own] = 0.85 * marked / 12
        rows.append(rng.multinomial(rng.poisson(80), p / p.sum()))
    return sp.csr_array(np.minimum(rows, 3).astype(float)), topics


X, y = documents(1500)
X_new, y_new = documents(1500)

# %%
# ``X`` is sparse and stays so. One fit of 30 words; the path has every smaller model too.

model = PursuitClassifier(n_nonzero_coefs=30).fit(X, y)
chosen = [int(step.selected[0]) for step in model.history_]
true_words = np.arange(4000) >= 3977

# %%
# L1 with as many words, by trying penalties. Its coefficients are pulled towards zero, which costs
# accuracy while the words are few. With 30 words the two are equally good.

sizes, ours, rival = (3, 6, 12, 18, 24, 30), [], []
penalties = np.geomspace(0.02, 3, 30)
paths = [LogisticRegression(l1_ratio=1, C=c, solver="liblinear").fit(X, y) for c in penalties]
for size in sizes:
    ours.append(PursuitClassifier(n_nonzero_coefs=size).fit(X, y).score(X_new, y_new))
    within = [path for path in paths if np.count_nonzero(path.coef_) <= size]
    rival.append(within[-1].score(X_new, y_new) if within else np.nan)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5.4), layout="constrained", width_ratios=(3, 2))
weights = model.coef_[0, chosen]
order = np.argsort(weights)
colours = np.where(~true_words[chosen], "#c6ccd2", np.where(weights > 0, "#0b7a4b", "#0072b2"))
left.barh(range(len(chosen)), weights[order], color=colours[order])
left.set_yticks(range(len(chosen)), words[np.array(chosen)[order]], fontsize=8.5)
left.set_title("30 words: sea (blue), orchard (green), by chance (grey)", fontsize=11)
right.plot(sizes, ours, marker="o", color="#0b7a4b", label="pursuit")
right.plot(sizes, rival, marker="s", color="#9aa5b1", label="L1, at most as many words")
right.set(xlabel="words", title="accuracy on new documents")
right.legend(frameon=False)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
print("true words among the first 10:", int(true_words[chosen[:10]].sum()))
