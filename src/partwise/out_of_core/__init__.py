"""Training on data larger than memory: partitions in files, block-wise dual solvers, Dask clusters."""

from typing import TYPE_CHECKING

import partwise.solvers  # noqa: F401 - which imports `block_dual`: first here, for workers that begin with this package
from partwise.support.lazy import exports

if TYPE_CHECKING:
    from partwise.model_files.errors import PartitionError as PartitionError
    from partwise.out_of_core import cluster as cluster
    from partwise.out_of_core import partitions as partitions

__getattr__, __dir__, __all__ = exports(__name__, {"partitions": ("PartitionError",)}, ("cluster", "partitions"))
