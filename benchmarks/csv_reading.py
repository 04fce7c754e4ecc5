"""Reading a CSV file against pandas: python benchmarks/csv_reading.py [rows columns]."""

import csv
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from timing import best_times

from skpursuit.apps.tables import read_columns

rows, columns = [int(a) for a in sys.argv[1:]] or [50_000, 51]
X = np.random.default_rng(0).standard_normal((rows, columns))
plain = pd.DataFrame(X).rename(columns="x{}".format)
missing = plain.mask(np.random.default_rng(1).random(X.shape) < 0.01)
FRAMES = {
    "17 digits": plain,
    "3 decimals": plain.round(3),
    "1 % missing": missing,
    "a text column": plain.assign(colour=np.array(["red", "green", "blue"])[np.arange(rows) % 3]),
    "text in quotes": plain.assign(colour="a word"),
    "quotes in text": plain.assign(colour='a "quoted" word'),
}
print(f"{rows} x {columns}, one thread, best of 3; seconds, and those of skpursuit over those of pandas")
for name, frame in FRAMES.items():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.to_csv(
            path, index=False, quoting=csv.QUOTE_NONNUMERIC if "quotes" in name else csv.QUOTE_MINIMAL
        )
        read_columns(path)  # compiles
        times = best_times({"pandas": lambda: pd.read_csv(path), "skpursuit": lambda: read_columns(path)})
    ratio = times["skpursuit"] / times["pandas"]
    print(f"{name:<16}{times['pandas']:>8.3f}{times['skpursuit']:>8.3f}{ratio:>7.1f}", flush=True)
