"""Kernels on the parts of labellings: features known by their inner products alone.

With a kernel k on rows of input (positions of a sequence, or edges between them), the score of label a at row t is
sum_p k(x_t, x_p) beta_pa over the training rows p: weights are the coefficients beta. `kernel_map` gives the feature
map that dual solvers (`eg`, `eg-batch`, `excessive-gap`) train with, `KernelFeatures` keeps what prediction needs.
"""

from partwise.features.kernels.features import MEMORY_LIMIT, KernelFeatures, kernel_map
from partwise.features.kernels.functions import RBF, KernelLike, Linear, Polynomial, Precomputed, get_kernel
from partwise.features.kernels.precomputed import check_kernel_matrix

__all__ = [
    "MEMORY_LIMIT",
    "RBF",
    "KernelFeatures",
    "KernelLike",
    "Linear",
    "Polynomial",
    "Precomputed",
    "check_kernel_matrix",
    "get_kernel",
    "kernel_map",
]
