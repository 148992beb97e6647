"""The objective, its dual and the gap, over one or more batches of examples."""

from .batch import Batch, LabelledBatch
from .executor import BatchReference, Executor, ThreadExecutor, Walk, Work
from .problem import Problem
from .sums import Part
from .tasks import BatchSums, register_task

__all__ = [
    "Batch",
    "BatchReference",
    "BatchSums",
    "Executor",
    "LabelledBatch",
    "Part",
    "Problem",
    "ThreadExecutor",
    "Walk",
    "Work",
    "register_task",
]
