"""Training on data larger than memory: partitions in files, block-wise dual solvers, Dask clusters."""

from partwise.model_files.errors import PartitionError

__all__ = ["PartitionError"]
