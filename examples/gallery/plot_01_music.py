"""
Music, denoised with a learned dictionary
=========================================

A short piece of plucked notes is played over noise. Its windows are sums of a few patterns, which
:class:`~skpursuit.DictionaryLearner` learns from the noisy sound itself: noise has no patterns, so what the
patterns can say about a window is mostly music.
"""

import matplotlib.pyplot as plt
import numpy as np

from skpursuit import DictionaryLearner, PursuitCoder

rng = np.random.default_rng(0)
rate, note = 8000, 2000


def plucked(pitch):
    """A note with five overtones that fade, the high ones first."""
    t = np.arange(note) / rate
    return sum(np.exp(-4 * h * t) * np.sin(2 * np.pi * pitch * h * t) / h for h in range(1, 6))


scale = 220 * 2 ** (np.array([0, 2, 4, 7, 9, 12]) / 12)
clean = np.concatenate([plucked(scale[i]) for i in rng.integers(6, size=40)])
clean /= clean.std()
noisy = clean + 0.7 * rng.standard_normal(len(clean))

# %%
# Windows of 128 samples overlap by 112, so that every sample is decoded eight times and averaged. A window
# takes patterns until what is left is as large as the noise: ``tol`` is a sum of squares.

size, hop = 128, 16
starts = np.arange(0, len(noisy) - size + 1, hop)
windows = noisy[starts[:, None] + np.arange(size)]
learner = DictionaryLearner(160, n_nonzero_coefs=4, max_iter=8, random_state=0).fit(windows)
coder = PursuitCoder(learner.components_, n_nonzero_coefs=12, tol=1.1 * size * 0.7**2)
decoded = coder.inverse_transform(coder.transform(windows))

sums, counts = np.zeros(len(noisy)), np.zeros(len(noisy))
for start, window in zip(starts, decoded):
    sums[start : start + size] += window
    counts[start : start + size] += 1
denoised = sums / np.maximum(counts, 1)


def decibels(signal):
    """Music over what is wrong with a signal."""
    return 10 * np.log10((clean**2).sum() / ((signal - clean) ** 2).sum())


# %%
# For comparison, a low-pass filter with the best cut of 40. It needs to know the clean sound to be chosen;
# the dictionary only needed the strength of the noise.

spectrum, cuts = np.fft.rfft(noisy), np.linspace(400, 4000, 40)
passed = [np.fft.irfft(spectrum * (np.fft.rfftfreq(len(noisy), 1 / rate) < cut), len(noisy)) for cut in cuts]
filtered = max(passed, key=decibels)

figure, panels = plt.subplots(4, 1, figsize=(9, 7), sharex=True, sharey=True, layout="constrained")
shown = slice(20 * note - 500, 20 * note + 1200)
sounds = {"clean": clean, "noisy": noisy, "best low-pass filter": filtered, "learned dictionary": denoised}
for axes, (name, sound), colour in zip(panels, sounds.items(), ("#1f2933", "#9aa5b1", "#0072b2", "#0b7a4b")):
    axes.plot(np.arange(shown.start, shown.stop) / rate, sound[shown], color=colour, lw=1)
    label = name if sound is clean else f"{name}: {decibels(sound):.1f} dB"
    axes.set_title(label, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
panels[-1].set_xlabel("seconds")
plt.show()
