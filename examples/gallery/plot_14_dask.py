"""
A cluster that loses a worker in the middle of a fit
====================================================

X lives on two Dask workers. While OMP runs, one of them is killed, as ``kill -9`` would. Dask makes its
share of X again on the other, the fit goes on, and its result has the same bits as the fit of the array in
memory.

The cluster here is on one machine and small, so it is much slower than the array: a cluster pays when X is
larger than a machine."""

import subprocess
import sys
import time

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

from skpursuit import OMP, as_design, minimize

rng = np.random.default_rng(0)
X = rng.standard_normal((8192, 300))
y = X[:, :10] @ rng.uniform(1, 2, 10) + rng.standard_normal(8192)
alone = minimize(X, y, OMP(10), "exact")

# %%
# A scheduler in this process, and two workers that are processes of their own.

cluster = LocalCluster(
    n_workers=0, processes=False, dashboard_address=":0", protocol="tcp://", silence_logs=50
)
client = Client(cluster)
start = [
    sys.executable,
    "-m",
    "distributed.cli.dask_worker",
    cluster.scheduler_address,
    "--no-nanny",
    "--nthreads=1",
]
workers = [subprocess.Popen(start, stderr=subprocess.DEVNULL) for _ in range(2)]
client.wait_for_workers(2, timeout=60)
design = as_design(da.from_array(X, chunks=(1024, 300)))
steps, killed = [], []
began = time.perf_counter()


def watch(*_):
    """Note the time of a step; after the fourth one, kill a worker."""
    steps.append(time.perf_counter() - began)
    if len(steps) == 4:
        workers[0].kill()
        killed.append(steps[-1])


result = minimize(design, y, OMP(10), "exact", callback=watch)
client.close()
cluster.close()
for worker in workers:
    worker.kill()
    worker.wait()

same = np.array_equal(result.coef, alone.coef) and result.support.tolist() == alone.support.tolist()
print("equal to the fit of the array, bit for bit:", same)

figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
axes.step([0, *steps], range(len(steps) + 1), where="post", color="#0b7a4b", lw=2)
axes.plot(steps, range(1, len(steps) + 1), "o", color="#0b7a4b", label="step done")
axes.axvline(killed[0], color="#a83217", ls="--")
axes.text(killed[0], 9, " a worker is killed", color="#a83217")
axes.set(
    xlabel="seconds", ylabel="atoms chosen", title=f"result equal to that of the array, bit for bit: {same}"
)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
