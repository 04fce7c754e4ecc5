"""Tables: reading CSV against pandas, and whole fits against pandas and LassoCV."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import numpy as np
from common import Race, sized


def csv_reading(o):
    import pandas as pd

    from skpursuit.apps.tables import read_columns

    rows, columns = sized(o.quick, 50_000, 51)
    X = np.random.default_rng(0).standard_normal((rows, columns))
    plain = pd.DataFrame(X).rename(columns="x{}".format)
    frames = {
        "17 digits": plain,
        "3 decimals": plain.round(3),
        "1 % missing": plain.mask(np.random.default_rng(1).random(X.shape) < 0.01),
        "a text column": plain.assign(colour=np.resize(["red", "green", "blue"], rows)),
        "text in quotes": plain.assign(colour="a word"),
        "quotes in text": plain.assign(colour='a "quoted" word'),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        for name, frame in frames.items():
            frame.to_csv(
                path, index=False, quoting=csv.QUOTE_NONNUMERIC if "quotes" in name else csv.QUOTE_MINIMAL
            )
            fits = {"pandas": lambda: pd.read_csv(path), "skpursuit": lambda: read_columns(path)}
            yield Race(f"{rows} x {columns}, {name}", lambda seed: (fits, None))


def table_fit(o):
    import pandas as pd
    from sklearn.linear_model import LassoCV

    from skpursuit.apps.models.fit_table import FitOptions, fit_table
    from skpursuit.apps.tables import EncodingOptions, read_table

    rng, (rows, columns) = np.random.default_rng(0), sized(o.quick, 300_000, 60)
    X = rng.standard_normal((rows, columns))
    frame = pd.DataFrame(X).rename(columns="x{}".format)
    frame["y"] = X[:, :8] @ rng.standard_normal(8) + rng.standard_normal(rows)

    def pandas_and_lasso():
        table = pd.read_csv(path)
        LassoCV(n_jobs=1).fit(table.drop(columns="y").to_numpy(), table.y.to_numpy())

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.to_csv(path, index=False, float_format="%.6g")
        ours = lambda: fit_table(read_table(path, EncodingOptions("y")), FitOptions())  # noqa: E731
        make = lambda seed: ({"pandas, LassoCV": pandas_and_lasso, "skpursuit fit": ours}, None)  # noqa: E731
        yield Race(f"{rows} x {columns}", make)
        yield Race(f"{rows} x {columns}, seconds on the clock", make, elapsed=True)
