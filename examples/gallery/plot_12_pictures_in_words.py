"""
Pictures explained by a few words
=================================

Models such as CLIP give a picture and a word vectors in one space. SpLiCE explains a picture by a few words
whose vectors sum to its own, with positive weights. Here both are generated: 300 words and 400 pictures of
up to four things, in 64 dimensions, with noise and a shift between words and pictures."""

import matplotlib.pyplot as plt
import numpy as np

from skpursuit import PursuitCoder

rng = np.random.default_rng(4)
things = ["cat", "dog", "tree", "car", "boat", "house", "cloud", "river", "bird", "lamp", "chair", "road"]
words = things + [f"word{i}" for i in range(288)]
topics = rng.standard_normal((20, 64))
vectors = 0.5 * topics[rng.integers(20, size=300)] + rng.standard_normal((300, 64))
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

present = np.zeros((400, 300))
for row in present:
    chosen = rng.choice(len(things), rng.integers(2, 5), replace=False)
    row[chosen] = rng.uniform(0.5, 1.5, len(chosen))
pictures = present @ vectors + 0.3 * topics[0] / 8 + 0.06 * rng.standard_normal((400, 64))
pictures -= pictures.mean(axis=0) - (present @ vectors).mean(axis=0)  # the usual centring of such spaces

# %%
# One call codes all pictures. ``positive=True`` allows no negative weights: a picture is not "minus a
# boat".

coder = PursuitCoder(vectors, n_nonzero_coefs=4, positive=True, tol=64 * 0.08**2)
codes = coder.transform(pictures).toarray()

# %%
# The usual first answer, the words whose vectors are most alike, repeats words of one topic: it has no
# notion of what is already explained.

alike = np.zeros_like(codes)
closest = np.argsort(-(pictures @ vectors.T), axis=1)[:, :4]
np.put_along_axis(alike, closest, np.take_along_axis(pictures @ vectors.T, closest, axis=1), axis=1)


def found(answer):
    """Share of the words given that are in the picture, and share of what is there that is given."""
    hits = ((answer > 0) & (present > 0)).sum()
    return hits / (answer > 0).sum(), hits / (present > 0).sum()


figure, panels = plt.subplots(3, 3, figsize=(10, 6), layout="constrained", sharex=True)
for column, picture in zip(panels.T, (0, 3, 5)):
    for axes, answer, name in zip(
        column, (present, codes, alike), ("what is there", "sparse code", "most alike")
    ):
        top = [j for j in np.argsort(-answer[picture])[:4] if answer[picture, j] > 0][::-1]
        colours = ["#0b7a4b" if present[picture, j] else "#d9822b" for j in top]
        axes.barh(
            [words[j] for j in top], answer[picture, top], color=colours if name[0] != "w" else "#9aa5b1"
        )
        axes.spines[["top", "right"]].set_visible(False)
        share = "" if answer is present else ": {:.0%} right, {:.0%} found".format(*found(answer))
        axes.set_title(name + (share if picture == 0 else ""), fontsize=10, loc="left")
plt.show()
