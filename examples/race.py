"""Draw one selection as a race, for four selectors: python examples/race.py [picture.png].

Every column of X is a runner; its height is the estimate of its entry of |X^T r| after the rows read so far.
Greedy and halving read rows with much energy first; uniform and importance sampling draw them at random.
"""

import sys

import numpy as np

from skpursuit import (
    OMP,
    Budget,
    Greedy,
    Importance,
    Stability,
    SuccessiveHalving,
    Uniform,
    datasets,
    minimize,
)
from skpursuit.plots import plot_race

X, y, w = datasets.make_sparse_signal(1000, 1200, 30, snr=3.0, random_state=2)
stop = Stability(0.1) | Budget(0.5)
selectors = [Greedy(stop), Uniform(stop), Importance(stop), SuccessiveHalving(budget=0.2)]
figure = plot_race(X, -y, selectors)
figure.suptitle("The race for the largest entry of X$^T$r: 1200 columns, 1000 rows", fontsize=14)
path = sys.argv[1] if len(sys.argv) > 1 else "race.png"
figure.savefig(path, dpi=120)
for selector in selectors:
    found = minimize(X, y, OMP(n_nonzero_coefs=30), selector, random_state=0, audit=True).audit
    print(
        f"30 steps, {type(selector).__name__:<18} same atoms {found.same_atoms}, rho_min {found.rho_min:.2f}"
    )
best = int(np.abs(X.T @ y).argmax())
print(f"exact winner: column {best}{', an atom of the signal' if w[best] else ''}; picture in {path}")
