"""Kernels, and features that are known by inner products alone."""

from .features import Segment
from .support import Floats, Ints

class KernelFunction:
    """k(x, y) = f(<x, y>) + bias. kind "linear": <x, y>; "polynomial": (gamma <x, y> + coef0)^degree; "rbf":
    exp(-gamma |x - y|^2)."""

    def __init__(
        self, kind: str, gamma: float = 1.0, coef0: float = 0.0, degree: int = 1, bias: float = 0.0
    ) -> None: ...

class Kernel:
    """Kernel values of query rows (those of the examples at hand) and support rows (those with coefficients)."""

    @property
    def num_queries(self) -> int: ...
    @property
    def num_support(self) -> int: ...
    @property
    def square(self) -> bool:
        """Whether queries and support are the same rows, as in training."""
    def values(self, first: int, last: int, begin: int, end: int) -> Floats:
        """k of query rows first:last with support rows begin:end, row by row."""

class DenseKernel(Kernel):
    """Rows of dense input. support None: the queries themselves."""

    def __init__(self, function: KernelFunction, queries: Floats, support: Floats | None = None) -> None: ...

class SparseRows:
    """Rows of sparse attributes; attribute -1 is ignored, repeated ones add up."""

    def __init__(self, num_attributes: int, row_ptr: Ints, attributes: Ints, values: Floats | None = None) -> None: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def num_attributes(self) -> int: ...

class SparseKernel(Kernel):
    """Rows of sparse attributes. support None: the queries themselves."""

    def __init__(self, function: KernelFunction, queries: SparseRows, support: SparseRows | None = None) -> None: ...

class StoredKernel(Kernel):
    """A matrix of kernel values, queries x support. It is not checked to be positive semi-definite."""

    def __init__(self, matrix: Floats, square: bool) -> None: ...

class PlacedKernel(Kernel):
    """Another kernel, 0 between rows of different places. ValueError unless every row has a place."""

    def __init__(self, kernel: Kernel, query_places: Ints, support_places: Ints) -> None: ...

class KernelSegment(Segment):
    """Rows known by their kernel: weights are coefficients, row p's at p * width. Kernel values are kept up to
    memory_limit bytes; ValueError if they need more, unless those that do not fit may be recomputed (recompute)."""

    def __init__(
        self,
        kernel: Kernel,
        example_ptr: Ints,
        n_columns: int,
        width: int,
        memory_limit: float,
        recompute: bool = False,
    ) -> None: ...
    @property
    def kept_bytes(self) -> float: ...
