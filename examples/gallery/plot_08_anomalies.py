"""
Anomalies: what a dictionary of the usual cannot say
====================================================

A machine hums in cycles. A dictionary is learned from a good day; on other days, windows that it cannot
write with few atoms stand out. Nobody had to say what a fault looks like."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from skpursuit import DictionaryLearner, PursuitCoder

rng = np.random.default_rng(3)
size = 64


def recording(windows, faults=0):
    """Windows of a hum, some with a click, a dropped tooth or a rattle in the middle of the noise."""
    t = np.arange(windows * size)
    load = 1 + 0.3 * np.sin(t / 900)
    sound = load * (np.sin(2 * np.pi * t / 32) + 0.5 * np.sign(np.sin(2 * np.pi * t / 16 + 1)))
    sound += 0.25 * rng.standard_normal(len(t))
    places = rng.choice(windows, faults, replace=False)
    for kind, place in enumerate(places):
        at = slice(place * size + 20, place * size + 44)
        if kind % 3 == 0:
            sound[at][10:13] += 1.6 * rng.choice([-1, 1])
        elif kind % 3 == 1:
            sound[at] *= 0.35
        else:
            sound[at] += 0.7 * np.sin(2 * np.pi * np.arange(24) / 3.3)
    return sound.reshape(windows, size), np.isin(np.arange(windows), places)


good, _ = recording(3000)
today, faulty = recording(600, 18)
learner = DictionaryLearner(48, n_nonzero_coefs=3, max_iter=8, random_state=0).fit(good)

# %%
# The error of a window is what three atoms leave of it. The plain energy of a window, for comparison,
# hardly moves when something breaks. Faults that are weaker than the noise of a window stay unseen by
# both.

coder = PursuitCoder(learner.components_, n_nonzero_coefs=3)


def left_over(windows):
    """Squared error of the codes."""
    return ((windows - coder.inverse_transform(coder.transform(windows))) ** 2).sum(axis=1)


scores = {
    "coding error": left_over(today),
    "energy": np.abs((today**2).sum(axis=1) - (good**2).sum(axis=1).mean()),
}
limit = np.quantile(left_over(good), 0.995)
figure, panels = plt.subplots(2, 1, figsize=(9.5, 5), sharex=True, layout="constrained")
for axes, (name, score) in zip(panels, scores.items()):
    axes.plot(score, color="#9aa5b1", lw=0.9)
    axes.scatter(np.flatnonzero(faulty), score[faulty], color="#a83217", s=28, zorder=3, label="faults")
    axes.set_title(
        f"{name}: area under the curve {roc_auc_score(faulty, score):.2f}", loc="left", fontsize=11
    )
    axes.spines[["top", "right"]].set_visible(False)
panels[0].axhline(limit, color="#0b7a4b", ls="--", lw=1, label="0.5 % of a good day is above")
panels[0].legend(frameon=False, ncols=2, loc="upper right")
panels[-1].set_xlabel("window")
plt.show()
