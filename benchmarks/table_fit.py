"""A CSV file read and fitted, against pandas.read_csv and LassoCV: benchmarks/table_fit.py [rows columns]."""

import os

for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LassoCV

from skpursuit.apps.models.fit_table import FitOptions, fit_table
from skpursuit.apps.tables import EncodingOptions, read_table

rows, columns = [int(a) for a in sys.argv[1:]] or [300_000, 60]
rng = np.random.default_rng(0)
X = rng.standard_normal((rows, columns))
frame = pd.DataFrame(X).rename(columns="x{}".format)
frame["y"] = X[:, :8] @ rng.standard_normal(8) + rng.standard_normal(rows)


def pandas_and_lasso(path):
    table = pd.read_csv(path)
    LassoCV(n_jobs=1).fit(table.drop(columns="y").to_numpy(), table.y.to_numpy())


def skpursuit_fit(path):
    fit_table(read_table(path, EncodingOptions("y")), FitOptions(needs_path=False))


print(f"{rows} x {columns}, one BLAS thread, in turns; seconds on the clock and of the processor")
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "table.csv"
    frame.to_csv(path, index=False, float_format="%.6g")
    best: dict[str, tuple[float, float]] = {}
    for _ in range(3):
        for work in (pandas_and_lasso, skpursuit_fit):
            clock, processor = time.perf_counter(), time.process_time()
            work(path)
            found = (time.perf_counter() - clock, time.process_time() - processor)
            best[work.__name__] = min(best.get(work.__name__, found), found)
for name, (clock, processor) in best.items():
    print(f"{name:<20}{clock:>8.2f}{processor:>8.2f}")
ratios = [a / b for a, b in zip(best["skpursuit_fit"], best["pandas_and_lasso"])]
print(f"{'ratio':<20}{ratios[0]:>8.2f}{ratios[1]:>8.2f}")
