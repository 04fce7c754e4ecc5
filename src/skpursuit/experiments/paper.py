"""What the paper reports, to be shown beside what is found here."""

from __future__ import annotations

#: Audio table: method -> (‖y − ŷ‖ / ‖y‖, its spread, seconds per signal).
AUDIO: dict[str, tuple[float, float, float]] = {
    "rows": (0.376, 0.22, 0.164),
    "stoch": (0.670, 0.13, 0.026),
    "stoch-3k": (0.570, 0.17, 0.076),
    "uniform": (0.351, 0.21, 0.133),
    "greedy": (0.361, 0.22, 0.187),
    "halving-random": (0.371, 0.22, 0.059),
    "halving": (0.374, 0.22, 0.064),
}

#: Text table: collection -> method -> (accuracy in percent, seconds).
TEXT: dict[str, dict[str, tuple[float, float]]] = {
    "ohscal": {
        "rows": (82.93, 1257.89),
        "stoch": (56.16, 3.12),
        "stoch-3k": (36.92, 7.93),
        "greedy": (83.20, 323.65),
        "uniform": (77.50, 416.74),
        "halving-random": (81.39, 17.50),
        "halving": (81.90, 17.61),
    },
    "classic": {
        "rows": (83.46, 563.51),
        "stoch": (63.90, 1.05),
        "stoch-3k": (52.58, 2.73),
        "greedy": (82.35, 142.06),
        "uniform": (77.17, 189.14),
        "halving-random": (82.57, 13.20),
        "halving": (82.97, 11.74),
    },
    "la2": {
        "rows": (81.20, 401.36),
        "stoch": (70.24, 2.98),
        "stoch-3k": (69.76, 8.50),
        "greedy": (77.29, 209.70),
        "uniform": (78.98, 150.28),
        "halving-random": (81.54, 14.68),
        "halving": (79.91, 13.54),
    },
    "hitech": {
        "rows": (76.29, 56.42),
        "stoch": (11.63, 0.69),
        "stoch-3k": (8.42, 1.90),
        "greedy": (75.98, 41.24),
        "uniform": (68.88, 21.00),
        "halving-random": (75.16, 1.48),
        "halving": (76.49, 1.37),
    },
    "sports": {
        "rows": (93.07, 998.63),
        "stoch": (40.74, 4.13),
        "stoch-3k": (32.54, 12.08),
        "greedy": (92.30, 353.04),
        "uniform": (92.33, 348.30),
        "halving-random": (93.23, 11.94),
        "halving": (93.21, 10.57),
    },
}

#: What the paper says of its figures, which are not printed as numbers.
CLAIMS: dict[str, str] = {
    "fw": "The paper: greedy about twice as fast as its own accumulating exact baseline, halving in energy "
    "order "
    "about ten times, both with the support of exact; uniform and importance sampling nearly recover it "
    "(F = 0.975 at N_s = 5); the error bound gains nothing and reads about five times more than stability.",
    "omp": "The paper: a slight gain in time over its accumulating exact baseline, a large one over "
    "successive "
    "reject; random sampling loses support as k grows, bandits and greedy stay near exact.",
    "cosamp": "The paper: all approaches recover as exact does, one to two orders of magnitude faster than "
    "its exact "
    "CoSaMP, and faster than the stochastic one.",
    "budget": "The paper: budgets from 0.05 to 0.7 of n d work, 0.2 to 0.3 is its rule of thumb; too small "
    "a budget "
    "loses recovery and, because more iterations are needed, time as well.",
    "scaling": "The paper: all methods follow the same trend in d and in n; they differ by a constant "
    "factor, about ten.",
    "audio": "The paper: halving has the error of exact and is about three times as fast; the stochastic "
    "method is "
    "fast and poor. Its recording is not public, so compare orders and ratios, not absolute errors.",
    "text": "The paper: halving is at least thirty times as fast as its exact CoSaMP at nearly the same "
    "accuracy; the "
    "stochastic methods fail. How it made two classes of many, and fitted, is not known: here the first "
    "half of the classes is positive, rows have unit norm, and the chosen words are fitted once more.",
}
