"""A page with everything a page can hold, from made-up numbers."""

import math

from skpursuit.experiments.methods import LABELS
from skpursuit.experiments.parts import Cell, Facts, Figure, Note, Page, Panel, Section, Series, Table

METHODS = (*LABELS, "mine")
KS = (10, 50, 100, 200, 400)


def lines(start, slope, log=False):
    for i, name in enumerate(METHODS):
        y = [start * (1 + i) * (k / 10) ** slope if log else max(0.0, 1 - slope * i * k / 400) for k in KS]
        yield Series(name, KS, y, [v * 0.93 for v in y], [v * 1.05 for v in y])


def figure(title):
    read = [Series(name, KS, [100 / (1 + i) + math.log(k) for k in KS]) for i, name in enumerate(METHODS)]
    panels = (
        Panel("Recovery (F-measure)", "k, atoms", list(lines(1, 0.09)), y_include=(0, 1)),
        Panel("Time (seconds)", "k, atoms", list(lines(0.01, 1.2, log=True)), y_log=True),
        Panel("Share of X read (%)", "k, atoms", read, y_include=(0,)),
    )
    return Figure(
        title,
        "Means of 20 trials, bands from the lowest to the highest. Higher is better on the left.",
        panels,
    )


def comparison():
    rows = [
        [
            name,
            0.376 + i / 100,
            Cell(0.371 + i / 90, "good" if i < 3 else "bad", "against exact"),
            0.164,
            0.0012 * (i + 1),
        ]
        for i, name in enumerate(METHODS)
    ]
    columns = ("Selector", "paper", "ours", "paper", "ours")
    groups = (("", 1), ("‖y − ŷ‖ / ‖y‖", 2), ("seconds per signal", 2))
    return Table(
        "Audio, 8192 pieces",
        "The paper's recording is not public: compare orders and ratios.",
        columns,
        rows,
        groups,
    )


def sample_page():
    return Page(
        "Sparse selection by reading a fraction of the data",
        [
            "Made-up numbers that show the page. Run `skpursuit reproduce all` for real ones.",
            "Speed-ups are against BLAS.",
        ],
        "Small X is where BLAS wins.",
        [
            ("11×", "faster than exact BLAS at the same atoms, `certified`"),
            ("50/50", "atoms equal to exact"),
            ("12%", "of X read"),
            ("0.99", "F-measure"),
        ],
        [
            Section(
                "Orthogonal matching pursuit",
                ["Each figure shows what is found, how long it takes, and what is read."],
                [
                    figure("OMP against k, 5000 x 10 000"),
                    Note("These data are generated: they stand in for real ones."),
                ],
            ),
            Section("Audio", [], [comparison()]),
            Section("Where a method loses to BLAS", ["Successive reject does 10^12 single pulls."], []),
            Section(
                "Machine",
                [],
                [
                    Facts(
                        "This run",
                        {
                            "processor": "two cores <of> something & more",
                            "numpy": "2.0",
                            "seed": 0,
                            "a long word": "x" * 120,
                        },
                    )
                ],
            ),
        ],
        "Made by `skpursuit report`.",
    )
