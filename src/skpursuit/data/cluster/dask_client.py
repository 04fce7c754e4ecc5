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
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dask
import dask.threaded
from dask import delayed
from dask.base import get_scheduler, normalize_token
from dask.optimization import cull
from dask.sizeof import sizeof
from dask.typing import Key

if TYPE_CHECKING:
    from distributed import Client, Future

DEADLINE = 120.0  # seconds in which at least one task must end
NO_WORKERS = 30.0  # seconds without a worker
POLL_SECONDS = 0.5  # seconds between two looks at the cluster
BATCH_BYTES = 2**23  # results that are brought at a time
KEPT_SHARE = 0.4  # of the workers' memory that X may take
RESUME_HINT = "A run with a checkpoint goes on from it when it is started again"
SCHEDULER_LOST = f"the Dask scheduler has gone away; start another. {RESUME_HINT}"

Graph = dict[Key, object]  # tasks by their keys, as Dask knows them


class ClusterError(RuntimeError):
    """The cluster cannot go on."""


class TaskGraph(dict[Key, object]):
    """Tasks whose keys are used once. So it is named without a look at all arrays and objects in it."""


normalize_token.register(TaskGraph, lambda graph: uuid4().hex)


class Cluster:
    """Where tasks run: the Dask client that is current when this is made, or Dask's scheduler for threads."""

    def __init__(self) -> None:
        self.client, self.round_trips = current_client(), 0  # so far

    def persistable_bytes(self) -> float:
        """Bytes of X that the workers can keep in memory beside their work; 0 without a cluster."""
        if self.client is None:
            return 0.0
        limits = [worker["memory_limit"] or float("inf") for worker in workers(self.client).values()]
        return KEPT_SHARE * sum(limits)

    def persist(self, graph: Graph, keys: list[Key]) -> Graph:
        """A graph of these tasks alone, whose results stay where they are made as long as it is held."""
        return dict(zip(keys, self._start(graph, keys)))

    def results(self, graph: Graph, keys: list[Key]) -> Iterator[Any]:
        """Results of tasks in their order."""
        begun = self._start(graph, keys) if keys else []
        self.round_trips += 1
        yield from begun if self.client is None else self._brought(self.client, begun)

    def _start(self, graph: Graph, keys: list[Key]) -> list[Any]:
        """Futures of these tasks; without a client their results."""
        graph = cull(graph, keys)[0]
        if self.client is None:
            get = get_scheduler() or dask.threaded.get
            return list(get(graph, keys))
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return list(self.client.get(TaskGraph(graph), keys, sync=False))

    def _brought(self, client: Client, futures: list[Any]) -> Iterator[Any]:
        """Results in order; the size of the largest so far says how many are brought at a time."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        watch, largest, at = ResultCollector(client, futures), BATCH_BYTES, 0
        while at < len(futures):
            batch = futures[at : at + max(1, BATCH_BYTES // largest)]
            try:
                found = watch.gather(batch)
            except KilledWorker as error:
                raise ClusterError(
                    f"workers died again and again at {error.task!r}, most likely for want of memory; give "
                    f"them more, or X smaller chunks. {RESUME_HINT}"
                ) from error
            except (CancelledError, CommClosedError) as error:
                raise ClusterError(SCHEDULER_LOST) from error
            futures[at : at + len(batch)] = [None] * len(batch)  # not needed any more where it was made
            at += len(batch)
            largest = max(1 if largest == BATCH_BYTES else largest, *(sizeof(part) for part in found))
            yield from found


class ResultCollector:
    """Brings results of a trip, and looks at its tasks meanwhile."""

    def __init__(self, client: Client, futures: list[Future | None]) -> None:
        self.client, self.futures = client, futures
        self.deadline = float(dask.config.get("skpursuit.deadline", DEADLINE))
        self.patience = float(dask.config.get("skpursuit.no-workers", NO_WORKERS))
        self.last_progress = self.last_worker_seen = time.monotonic()
        self.pending = len(futures)

    def gather(self, batch: list[Future]) -> list[object]:
        """Results of some tasks, which are waited for."""
        from distributed import wait

        async def ended() -> bool:
            try:
                await wait(batch, timeout=POLL_SECONDS)
            except TimeoutError:  # caught here: an error that leaves `sync` holds the futures in a cycle
                return False
            return True

        async def gather() -> list[object]:
            return await self.client.gather(batch, asynchronous=True)

        while not all(future.done() for future in batch):
            if not self.client.sync(ended):
                self.check_progress()
        try:
            found = self.client.sync(gather, callback_timeout=self.deadline)
        except TimeoutError:
            raise self.deadline_error() from None
        self.last_progress = time.monotonic()
        return found

    def check_progress(self) -> None:
        """Raise ClusterError if nothing has moved for too long."""
        now, left = time.monotonic(), sum(f is not None and not f.done() for f in self.futures)
        if left < self.pending:
            self.pending, self.last_progress = left, now
        connected = self.client.status == "running"
        if connected and workers(self.client):
            self.last_worker_seen = now
        if now - self.last_worker_seen > self.patience:
            empty = f"the Dask cluster has had no workers for {self.patience:g} s; start some. {RESUME_HINT}"
            raise ClusterError(empty if connected else SCHEDULER_LOST)
        if now - self.last_progress > self.deadline:
            raise self.deadline_error()

    def deadline_error(self) -> ClusterError:
        """The error for a cluster that does not answer."""
        return ClusterError(
            f"no task on the Dask cluster has ended for {self.deadline:g} s: a worker hangs, or a chunk "
            f"takes longer, for which dask.config.set({{'skpursuit.deadline': ...}}) helps. {RESUME_HINT}"
        )


def compute_collection(collection: Any) -> Any:
    """What a collection of Dask holds, brought as the results of a trip are."""
    whole = delayed(collection)  # its parts, put together by one more task
    return next(Cluster().results(dict(whole.__dask_graph__()), list(whole.__dask_keys__())))


def workers(client: Client) -> dict[str, Any]:
    """The workers of a client by address; none where the scheduler does not answer."""

    async def ask() -> dict[str, Any]:
        return await client.scheduler.identity(n_workers=-1)

    try:
        return client.sync(ask, callback_timeout=10.0)["workers"]
    except (TimeoutError, OSError):
        return {}


def current_client() -> Client | None:
    """The client that Dask would use now, or None."""
    if dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None
