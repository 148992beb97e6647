"""Waiting for a cluster, which may lose workers, or be gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from partwise.problem.deadline import check_deadline

#: Seconds between looks at the cluster while a task is waited for.
LOOK = 0.5


class ClusterError(RuntimeError):
    """The scheduler, or all workers, are gone."""


def workers(client: Any) -> list[str]:
    """Addresses of the workers, in a fixed order."""
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def forget(client: Any, futures: Sequence[Any]) -> None:
    """Tell the scheduler that nobody waits for them any more; where it is gone there is nobody to be told."""
    with suppress(Exception):
        client.cancel(futures)


def results(
    client: Any, futures: list[Any], patience: float, known: Sequence[str], again: Callable[[int], Any]
) -> Iterator[Any]:
    """The results of futures in their order. Errors in a task come out as they are.

    A task whose worker has gone is done again elsewhere by the scheduler. But a task that was given to a worker, and
    found none at all when that had gone, waits for this one for ever, even if others come and would be allowed: where
    all workers are others than those `known` when the tasks were submitted, `again` submits those that are not done, by
    their numbers, for any worker. They take the place of the old ones in `futures`.

    Raises
    ------
    ClusterError
        If the scheduler is gone, or there has been no worker for `patience` seconds, or tasks were lost.
    """
    from dask.distributed import CancelledError, TimeoutError
    from distributed.scheduler import KilledWorker, NoWorkerError

    restricted = bool(known)
    for number in range(len(futures)):
        alone_since: float | None = None
        while True:
            future = futures[number]
            try:
                value = future.result(timeout=LOOK)
                break
            except (KilledWorker, NoWorkerError) as error:
                raise ClusterError(f"workers were lost again and again while they did a task ({error})") from None
            except (CancelledError, UnboundLocalError) as error:
                # The second is what `distributed` makes of a wait that is cancelled itself, unless a task raised it.
                if isinstance(error, UnboundLocalError) and future.status == "error":
                    raise
                raise ClusterError("the scheduler has gone, or has cancelled the tasks of this run") from None
            except TimeoutError as error:
                if future.done() and future.status == "error":
                    raise ClusterError(f"a task ran out of time ({error})") from None
                check_deadline()
                now = time.monotonic()
                if client.status != "running":
                    raise ClusterError(f"the connection to the scheduler is {client.status}") from None
                present = workers(client)
                if present:
                    alone_since = None
                    if restricted and not set(known) & set(present):
                        restricted = False
                        waiting = [k for k in range(number, len(futures)) if not futures[k].done()]
                        old = [futures[k] for k in waiting]
                        for k in waiting:
                            futures[k] = again(k)
                        forget(client, old)
                elif alone_since is None:
                    alone_since = now
                elif now - alone_since > patience:
                    raise ClusterError(f"there has been no worker for {patience:g} seconds") from None
        yield value
