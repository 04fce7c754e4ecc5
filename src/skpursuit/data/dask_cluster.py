"""Trips to a Dask cluster, or to Dask's scheduler in this process, that end.

Dask recovers from a worker that dies: it makes what was lost again, by the same tasks. But it waits without
end for a cluster that has no workers, and for a worker that no longer answers. So every trip has deadlines of
its own: an error is raised once no task has ended for `skpursuit.deadline` seconds, or there has been no
worker for `skpursuit.no-workers` seconds. Both are settings of Dask: set them by `dask.config.set` or by the
environment (DASK_SKPURSUIT__DEADLINE).

Results are brought to the driver in order and a few at a time, so that it never holds all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import dask
import dask.threaded
from dask.base import get_scheduler, normalize_token
from dask.core import flatten
from dask.optimization import cull
from dask.sizeof import sizeof

DEADLINE = 120.0  # seconds in which at least one task must end
NO_WORKERS = 30.0  # seconds without a worker
LOOK = 0.5  # seconds between two looks at the cluster
BATCH_BYTES = 2**23  # results that are brought at a time
KEPT_SHARE = 0.4  # of the workers' memory that X may take
GO_ON = "A run with a checkpoint goes on from it when it is started again"
GONE = f"the Dask scheduler has gone away; start another. {GO_ON}"

Graph = dict[Any, Any]  # tasks by their keys, as Dask knows them


class ClusterError(RuntimeError):
    """The cluster cannot go on."""


class TaskGraph(dict[Any, Any]):
    """Tasks whose keys are used once. So it is named without a look at all arrays and objects in it."""


normalize_token.register(TaskGraph, lambda graph: uuid4().hex)


class Cluster:
    """Where tasks run: the Dask client that is current when this is made, or Dask's scheduler for threads.

    Attributes
    ----------
    client : distributed.Client, or None
    trips : int
        Trips so far.
    """

    def __init__(self) -> None:
        self.client, self.trips = current_client(), 0

    def room(self) -> float:
        """Bytes of X that the workers can keep in memory beside their work; 0 without a cluster."""
        if self.client is None:
            return 0.0
        limits = [worker["memory_limit"] or float("inf") for worker in workers(self.client).values()]
        return KEPT_SHARE * sum(limits)

    def keep(self, graph: Graph, keys: list[Any]) -> Graph:
        """A graph of these tasks alone, whose results stay where they are made as long as it is held."""
        return dict(zip(keys, self._start(graph, keys)))

    def results(self, graph: Graph, keys: list[Any]) -> Iterator[Any]:
        """Results of tasks in their order."""
        begun = self._start(graph, keys) if keys else []
        self.trips += 1
        yield from begun if self.client is None else self._brought(begun)

    def _start(self, graph: Graph, keys: list[Any]) -> list[Any]:
        """Futures of these tasks; without a client their results."""
        graph = cull(graph, keys)[0]
        if self.client is None:
            get = get_scheduler() or dask.threaded.get
            return list(get(graph, keys))
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return list(self.client.get(TaskGraph(graph), keys, sync=False))

    def _brought(self, futures: list[Any]) -> Iterator[Any]:
        """Results in order; the size of the largest so far says how many are brought at a time."""
        watch, largest, at = Watch(self.client, futures), BATCH_BYTES, 0
        while at < len(futures):
            batch = futures[at : at + max(1, BATCH_BYTES // largest)]
            with told():
                found = watch.bring(batch)
            futures[at : at + len(batch)] = [None] * len(batch)  # not needed any more where it was made
            at += len(batch)
            largest = max(1 if largest == BATCH_BYTES else largest, *(sizeof(part) for part in found))
            yield from found


class Watch:
    """Brings results of a trip, and looks at its tasks meanwhile."""

    def __init__(self, client: Any, futures: list[Any]) -> None:
        self.client, self.futures = client, futures
        self.deadline = float(dask.config.get("skpursuit.deadline", DEADLINE))
        self.patience = float(dask.config.get("skpursuit.no-workers", NO_WORKERS))
        self.moved = self.manned = time.monotonic()
        self.left = len(futures)

    def bring(self, batch: list[Any]) -> list[Any]:
        """Results of some tasks, which are waited for."""
        from distributed import wait

        async def ended() -> bool:
            try:
                await wait(batch, timeout=LOOK)
            except TimeoutError:  # caught here: an error that leaves `sync` holds the futures in a cycle
                return False
            return True

        async def gather() -> Any:
            return await self.client.gather(batch, asynchronous=True)

        while not all(future.done() for future in batch):
            if not self.client.sync(ended):
                self.look()
        try:
            found = self.client.sync(gather, callback_timeout=self.deadline)
        except TimeoutError:
            raise self.stuck() from None
        self.moved = time.monotonic()
        return found

    def look(self) -> None:
        """Raise ClusterError if nothing has moved for too long."""
        now, left = time.monotonic(), sum(f is not None and not f.done() for f in self.futures)
        if left < self.left:
            self.left, self.moved = left, now
        connected = self.client.status == "running"
        if connected and workers(self.client):
            self.manned = now
        if now - self.manned > self.patience:
            empty = f"the Dask cluster has had no workers for {self.patience:g} s; start some. {GO_ON}"
            raise ClusterError(empty if connected else GONE)
        if now - self.moved > self.deadline:
            raise self.stuck()

    def stuck(self) -> ClusterError:
        """The error for a cluster that does not answer."""
        return ClusterError(
            f"no task on the Dask cluster has ended for {self.deadline:g} s: a worker hangs, or a chunk "
            f"takes longer, for which dask.config.set({{'skpursuit.deadline': ...}}) helps. {GO_ON}"
        )


def computed(collection: Any) -> Any:
    """What a collection of Dask holds, brought as the results of a trip are."""
    keys = collection.__dask_keys__()
    found = Cluster().results(dict(collection.__dask_graph__()), list(flatten(keys)))

    def nested(keys: Any) -> Any:
        return [nested(key) if isinstance(key, list) else next(found) for key in keys]

    finalize, more = collection.__dask_postcompute__()
    return finalize(nested(keys), *more)


@contextmanager
def told() -> Iterator[None]:
    """Tell what happened to the cluster in words."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"workers died again and again at {error.task!r}, most likely for want of memory; give them "
            f"more, or X smaller chunks. {GO_ON}"
        ) from error
    except (CancelledError, CommClosedError) as error:
        raise ClusterError(GONE) from error


def workers(client: Any) -> dict[str, Any]:
    """The workers of a client by address; none where the scheduler does not answer."""

    async def ask() -> Any:
        return await client.scheduler.identity(n_workers=-1)

    try:
        return client.sync(ask, callback_timeout=10.0)["workers"]
    except (TimeoutError, OSError):
        return {}


def current_client() -> Any:
    """The client that Dask would use now, or None."""
    if dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None
