"""Trips to a Dask cluster, or to Dask's own scheduler in this process, that end.

Dask recovers from a worker that dies: tasks are made again from what they were made of, by themselves. But it
waits without end for a cluster that has no workers, and for a worker that no longer answers. So every trip
has a deadline of its own: an error is raised once no task has ended for `skpursuit.deadline` seconds, or there
has been no worker for `skpursuit.no-workers` seconds. Both can be set as any setting of Dask, by
`dask.config.set` or by the environment (DASK_SKPURSUIT__DEADLINE).

Results are brought to the driver in tile order and a few at a time, so that it never holds all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dask
from dask.delayed import Delayed, delayed
from dask.sizeof import sizeof

DEADLINE = 120.0  # seconds in which at least one task must end
NO_WORKERS = 30.0  # seconds without a worker
LOOK = 0.5  # seconds between two looks at the cluster
BATCH_BYTES = 2**23  # results that are brought at a time
PERSISTED_SHARE = 0.4  # of the workers' memory that X may take


class ClusterError(RuntimeError):
    """The cluster cannot go on; a run with a checkpoint can be taken up where it was."""


class Cluster:
    """Where tasks run: the Dask client that is current when this is made, or Dask's scheduler for threads.

    Attributes
    ----------
    client : distributed.Client, or None
    trips : int
        Trips so far.
    """

    def __init__(self) -> None:
        self.client = current_client()
        self.trips = 0

    def room(self) -> float:
        """Bytes of X that the workers can keep in memory beside their work; 0 without a cluster."""
        if self.client is None:
            return 0.0
        workers = self._asked(self.client.scheduler_info, n_workers=-1)["workers"].values()
        limits = [worker["memory_limit"] or float("inf") for worker in workers]
        return PERSISTED_SHARE * sum(limits)

    def keep(self, tasks: list[Delayed]) -> list[Delayed]:
        """The same tasks, whose results stay where they are made until these are dropped."""
        if self.client is None:
            return list(dask.persist(*tasks))
        return self.client.persist(tasks)

    def results(self, tasks: list[Delayed]) -> Iterator[Any]:
        """Results of tasks in their order."""
        self.trips += 1
        if self.client is None:
            yield from dask.compute(*tasks)
            return
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            futures = self.client.compute(tasks)
        try:
            yield from self._brought(futures)
        except BaseException:
            self._drop(futures)
            raise

    def _brought(self, futures: list[Any]) -> Iterator[Any]:
        """Results in order; the size of the first says how many are brought at a time."""
        watch, at, count = Watch(self.client, futures), 0, 1
        while at < len(futures):
            batch = futures[at : at + count]
            found = self._asked(partial(watch.bring, batch))
            for k in range(at, at + len(batch)):
                futures[k].release()
            at += len(batch)
            count = max(1, BATCH_BYTES // max(1, *(sizeof(part) for part in found)))
            yield from found

    def _asked(self, call: Callable[..., Any], **options: Any) -> Any:
        """What a call gives, with errors of the cluster told in words."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError
        from distributed.comm import CommClosedError

        try:
            return call(**options)
        except KilledWorker as error:
            raise ClusterError(
                f"workers died again and again while they ran {error.task!r}, most likely for want of memory; "
                f"give them more memory, or X smaller chunks. {GO_ON}"
            ) from error
        except (FutureCancelledError, CommClosedError, OSError) as error:
            if self._is_alive() and isinstance(error, OSError) and not isinstance(error, CommClosedError):
                raise  # a file that a worker could not read
            raise ClusterError(f"the Dask scheduler has gone away ({error}). {GO_ON}") from error
        except ModuleNotFoundError as error:
            raise ClusterError(f"a worker lacks a package ({error}); install skpursuit on the workers") from error

    def _is_alive(self) -> bool:
        return self.client is not None and self.client.status == "running"

    def _drop(self, futures: list[Any]) -> None:
        """Tell a scheduler that is there that results are not wanted."""
        for future in futures:
            future.release()


GO_ON = "A run with a checkpoint goes on from it when it is started again."


class Watch:
    """Looks at the tasks of a trip while their results are waited for."""

    def __init__(self, client: Any, futures: list[Any]) -> None:
        self.client, self.futures = client, futures
        self.deadline = float(dask.config.get("skpursuit.deadline", DEADLINE))
        self.no_workers = float(dask.config.get("skpursuit.no-workers", NO_WORKERS))
        self.moved = self.manned = time.monotonic()
        self.ended = 0

    def bring(self, batch: list[Any]) -> list[Any]:
        """Results of some tasks."""
        from distributed import wait

        while not all(future.done() for future in batch):
            try:
                wait(batch, timeout=LOOK)
            except TimeoutError:
                self.look()
        async def gather() -> Any:
            return await self.client.gather(batch, asynchronous=True)
        try:
            found = self.client.sync(gather, callback_timeout=self.deadline)
        except TimeoutError:
            raise self.stuck() from None
        self.moved = time.monotonic()
        return found

    def look(self) -> None:
        """Raise ClusterError if nothing has moved for too long."""
        now, ended = time.monotonic(), sum(future.done() for future in self.futures)
        if ended > self.ended:
            self.ended, self.moved = ended, now
        if self.client.scheduler_info().get("workers"):
            self.manned = now
        if now - self.manned > self.no_workers:
            raise ClusterError(f"the Dask cluster has had no workers for {self.no_workers:g} s; start some. {GO_ON}")
        if now - self.moved > self.deadline:
            raise self.stuck()

    def stuck(self) -> ClusterError:
        """The error for a cluster that does not answer."""
        return ClusterError(
            f"no task of the Dask cluster has ended for {self.deadline:g} s: a worker hangs, or a chunk needs "
            "longer; for the latter raise the deadline, dask.config.set({'skpursuit.deadline': seconds}). "
            f"{GO_ON}"
        )


def current_client() -> Any:
    """The client that Dask would use now, or None."""
    if dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


def task(name: str, function: Callable[..., Any], key: str, *arguments: Any) -> Delayed:
    """A task that a dashboard shows by its name; arguments that are tasks themselves are its dependencies."""
    return delayed(function, name=f"{name}-of", pure=False)(*arguments, dask_key_name=f"{name}-{key}")
