"""A partition whose batches are worked on by a cluster."""

from __future__ import annotations

import os
from typing import Any

from partwise.models.base import Model
from partwise.out_of_core.cluster.executor import DaskExecutor
from partwise.out_of_core.partitions.folder import FileBatch, Partitions
from partwise.out_of_core.partitions.folder import open_folder as open_here
from partwise.out_of_core.partitions.sizes import parse_size
from partwise.problem import Executor


class ClusterPartitions(Partitions):
    """What `fit` takes in place of X and y, to train on a cluster. Made by `partwise.out_of_core.cluster.open`."""

    def __init__(self, here: Partitions, client: Any, memory: int | None, patience: float) -> None:
        super().__init__(here.folder, here._manifest, None)
        self._here, self._client, self._worker_memory, self._patience = here, client, memory, patience

    @property
    def model(self) -> Model:
        """The model without weights."""
        return self._here.model

    def batches(self, by_features: bool | None = False) -> list[FileBatch]:
        """References that travel: of the folder, which workers open themselves."""
        return self._here.batches(by_features)

    def executor(self, batches: list[FileBatch]) -> Executor:
        """The cluster."""
        sizes = {batch: batch.opened_bytes for batch in batches}
        return DaskExecutor(self._client, sizes, self._worker_memory, self._patience, self._here.folder)


def open_folder(
    folder: str | os.PathLike[str], client: Any, memory: str | float | None = None, *, patience: float = 60.0
) -> ClusterPartitions:
    """A partition to be trained on by the workers of a Dask client.

    Parameters
    ----------
    folder : path
        Workers read it under the same (absolute) name.
    client : dask.distributed.Client
    memory : int or str, optional
        Bytes of open batches that each worker keeps, about ("500M"); the others are read for each pass. By default all.
    patience : float
        Seconds to wait for a worker where there is none, before that is a `ClusterError`.

    Raises
    ------
    PartitionError
        If the folder is not a whole and undamaged partition.
    """
    limit = None if memory is None else parse_size(memory)
    return ClusterPartitions(open_here(os.path.abspath(os.fspath(folder))), client, limit, patience)
