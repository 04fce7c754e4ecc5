"""
The race of the bandits
=======================

Which of 600 columns has the largest entry of X^T r? Every column is a runner; its height is the estimate of
its entry after the rows read so far. Bandits stop reading for columns that fall behind."""

import matplotlib.pyplot as plt
import numpy as np

from skpursuit import Budget, Greedy, Importance, Stability, SuccessiveHalving, Uniform, datasets
from skpursuit.plots import plot_race

# %%
# 800 rows, 20 of the columns make the target, with noise at 3 dB. Greedy reads the rows of most energy
# first, uniform and importance sampling draw rows, halving drops the worse half of the columns again and
# again.

X, y, w = datasets.make_sparse_signal(800, 600, 20, snr=3.0, random_state=2)
stop = Stability(0.1) | Budget(0.5)
figure = plot_race(X, -y, [Greedy(stop), Uniform(stop), Importance(stop), SuccessiveHalving(budget=0.2)])

# %%
# A line that ends was dropped. Where the leaders run close together, a race that ends early may crown
# the wrong one: that is what heuristic means, and what an audit measures.

figure.suptitle("The race for the largest entry of X$^T$r: 600 columns, 800 rows", fontsize=13)
manager = plt.figure(figsize=figure.get_size_inches(), layout="constrained")
figure.canvas.draw()
axes = manager.add_subplot()
axes.imshow(np.asarray(figure.canvas.buffer_rgba()))
axes.axis("off")
plt.show()
