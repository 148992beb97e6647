"""Kernels, and features that are known by inner products alone."""

from typing import Final

from .features import Segment
from .support import Floats, Ints

class KernelFunction:
    """f(<x, y>) + bias, as partwise.features.kernels has it."""

    def __init__(
        self, kind: str, gamma: float = 1.0, coef0: float = 0.0, degree: int = 1, bias: float = 0.0
    ) -> None: ...

class Kernel:
    """Kernel values of query rows with support rows, which have coefficients."""

    num_queries: Final[int]
    num_support: Final[int]
    square: Final[bool]  # whether queries and support are the same rows, as in training
    def values(self, first: int, last: int, begin: int, end: int) -> Floats:
        """Return values of query rows first:last with support rows begin:end, row by row."""

class DenseKernel(Kernel):
    """A kernel on rows of dense input; support None: the queries themselves."""

    def __init__(self, function: KernelFunction, queries: Floats, support: Floats | None = None) -> None: ...

class SparseRows:
    """Rows of sparse attributes; attribute -1 is ignored, repeated attributes add up."""

    def __init__(self, num_attributes: int, row_ptr: Ints, attributes: Ints, values: Floats | None = None) -> None: ...
    num_rows: Final[int]
    num_attributes: Final[int]

class SparseKernel(Kernel):
    """A kernel on rows of sparse attributes; support None: the queries themselves."""

    def __init__(self, function: KernelFunction, queries: SparseRows, support: SparseRows | None = None) -> None: ...

class StoredKernel(Kernel):
    """A matrix of kernel values, queries x support, which may be indefinite."""

    def __init__(self, matrix: Floats, square: bool) -> None: ...

class PlacedKernel(Kernel):
    """Another kernel, 0 between rows of different places."""

    def __init__(self, kernel: Kernel, query_places: Ints, support_places: Ints) -> None: ...

class KernelSegment(Segment):
    """Rows known by their kernel: the weights are coefficients, those of row p at p * width."""

    def __init__(
        self,
        kernel: Kernel,
        example_ptr: Ints,
        n_columns: int,
        width: int,
        memory_limit: float,
        recompute: bool = False,
    ) -> None: ...
    kept_bytes: Final[float]
