"""Kernels on the parts of labellings: features known by their inner products alone.

With a kernel k on rows of input (positions of a sequence, or edges between them), the score of label a at row t is
sum_p k(x_t, x_p) beta_pa over the training rows p: weights are the coefficients beta. `kernel_map` gives the feature
map that dual solvers (`eg`, `eg-batch`, `excessive-gap`) train with, `KernelFeatures` keeps what prediction needs.
"""

from typing import TYPE_CHECKING

from partwise.support.lazy import exports

if TYPE_CHECKING:
    from partwise.features.kernels.features import MEMORY_LIMIT as MEMORY_LIMIT
    from partwise.features.kernels.features import KernelFeatures as KernelFeatures
    from partwise.features.kernels.features import kernel_map as kernel_map
    from partwise.features.kernels.functions import RBF as RBF
    from partwise.features.kernels.functions import KernelLike as KernelLike
    from partwise.features.kernels.functions import Linear as Linear
    from partwise.features.kernels.functions import Polynomial as Polynomial
    from partwise.features.kernels.functions import Precomputed as Precomputed
    from partwise.features.kernels.functions import get_kernel as get_kernel
    from partwise.features.kernels.precomputed import check_kernel_matrix as check_kernel_matrix

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "features": ("MEMORY_LIMIT", "KernelFeatures", "kernel_map"),
        "functions": ("RBF", "KernelLike", "Linear", "Polynomial", "Precomputed", "get_kernel"),
        "precomputed": ("check_kernel_matrix",),
    },
)
