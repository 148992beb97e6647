"""Training on data larger than memory: partitions in files, block-wise dual solvers, Dask clusters."""

import partwise.solvers  # noqa: F401 - which imports `block_dual`: first here, for workers that begin with this package
from partwise.model_files.errors import PartitionError

__all__ = ["PartitionError"]
