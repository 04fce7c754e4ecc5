"""
The equations of a swing, from watching it (SINDy)
==================================================

A damped pendulum with a push is watched for some seconds. Candidate terms are all products of position,
speed, and their sines and cosines; a pursuit picks the few that explain the acceleration. The equation it
finds is the one that made the data, and goes on beyond them."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

from skpursuit import OMP, minimize

rng = np.random.default_rng(0)


def truth(t, state):
    """Angle a, speed v: a'' = -2 sin(a) - 0.15 v + 0.4."""
    return state[1], -2 * np.sin(state[0]) - 0.15 * state[1] + 0.4


times = np.linspace(0, 24, 2400)
a, v = solve_ivp(truth, (0, 24), (2.5, 0.0), t_eval=times, rtol=1e-9).y
speed = v + 0.005 * rng.standard_normal(len(v))
acceleration = np.gradient(np.convolve(speed, np.hanning(31) / np.hanning(31).sum(), "same"), times)


def terms(a, v):
    """Values of the candidates, by name."""
    simple = {"1": np.ones_like(a), "a": a, "v": v, "sin a": np.sin(a), "cos a": np.cos(a), "v^2": v**2}
    names = list(simple)
    pairs = [(p, q) for i, p in enumerate(names) for q in names[i:] if p != "1" or q == "1"]
    return simple | {f"{p} * {q}": simple[p] * simple[q] for p, q in pairs if "1" not in (p, q)}


library = terms(a, v)
names, inside = list(library), slice(40, 2000)
X = np.column_stack(list(library.values()))[inside]
y = acceleration[inside]

# %%
# The path says how the error falls. After three terms it stops falling, which is where to stop. The
# columns have very different norms, so they are scaled first, as the estimators would.

norms = np.linalg.norm(X, axis=0)
path = minimize(X / norms, y, OMP(n_nonzero_coefs=8, swaps=True))
errors = [np.sqrt(2 * step.objective / len(y)) for step in path.history]
found = minimize(X / norms, y, OMP(n_nonzero_coefs=3, swaps=True))
coefs = dict(zip([names[j] for j in found.support], (found.coef / norms)[found.support]))
equation = "a'' = " + " ".join(f"{value:+.2f} {name}".removesuffix(" 1") for name, value in coefs.items())


def guessed(t, state):
    """The equation that was found."""
    values = terms(np.array(state[0]), np.array(state[1]))
    return state[1], float(sum(value * values[name] for name, value in coefs.items()))


later = np.linspace(0, 60, 3000)
real = solve_ivp(truth, (0, 60), (2.5, 0.0), t_eval=later, rtol=1e-9).y[0]
said = solve_ivp(guessed, (0, 60), (2.5, 0.0), t_eval=later, rtol=1e-9).y[0]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(1, 2))
left.plot(range(1, len(errors) + 1), errors, marker="o", color="#0072b2")
left.set(xlabel="terms", title="error of the acceleration", yscale="log")
right.axvspan(0, 20, color="#eef1f4")
right.plot(later, real, color="#9aa5b1", lw=4, label="the swing")
right.plot(later, said, color="#0b7a4b", lw=1.4, label="the equation found")
right.text(10, real.min() * 0.97, "watched", ha="center", va="bottom", color="#52606d")
right.set(title=equation, xlabel="seconds")
right.legend(frameon=False, loc="upper right")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
