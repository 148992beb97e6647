"""The objective, its dual and the gap, over one or more batches of examples."""

from partwise.problem.batch import Batch, LabelledBatch
from partwise.problem.capabilities import Capability
from partwise.problem.dual_points import DualPoint
from partwise.problem.executor import BatchReference, Executor, ThreadExecutor, Walk, Work
from partwise.problem.losses import LOSSES, Loss, get_loss, register_loss
from partwise.problem.penalties import L2, ElasticNet, Free
from partwise.problem.problem import Problem
from partwise.problem.result import (
    Certificate,
    CertificateError,
    ConvergenceWarning,
    DivergenceError,
    FeatureWarning,
    Result,
    Status,
)
from partwise.problem.sums import Part, Sums
from partwise.problem.tasks import BatchSums, register_task

__all__ = [
    "L2",
    "LOSSES",
    "Batch",
    "BatchReference",
    "BatchSums",
    "Capability",
    "Certificate",
    "CertificateError",
    "ConvergenceWarning",
    "DivergenceError",
    "DualPoint",
    "ElasticNet",
    "Executor",
    "FeatureWarning",
    "Free",
    "LabelledBatch",
    "Loss",
    "Part",
    "Problem",
    "Result",
    "Status",
    "Sums",
    "ThreadExecutor",
    "Walk",
    "Work",
    "get_loss",
    "register_loss",
    "register_task",
]
