"""Feature maps: from weights to slot scores and back; kernels, which are known by inner products alone."""

from collections.abc import Sequence
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from partwise.support.arrays import Bytes, Floats, InputRows, Ints, UInt64s

class SparseVector:
    """A merged sparse vector of weight space, kept as runs."""

    indices: Final[Ints]
    values: Final[Floats]
    def norm2(self) -> float: ...
    @overload
    def dot(self, other: Floats) -> float: ...
    @overload
    def dot(self, other: SparseVector) -> float: ...
    def axpy(self, scale: float, weights: Floats) -> None: ...

class RowLayout:
    """Which (attribute, column) pairs have a weight, and where it lies. It never changes."""

    @staticmethod
    def dense(num_attributes: int, n_columns: int, width: int) -> RowLayout:
        """Return a layout of all pairs; columns n_columns..width-1 are padding (weight always 0)."""
    @overload
    @staticmethod
    def from_pairs(
        num_attributes: int, n_columns: int, width: int, indptr: Ints, columns: NDArray[np.uint16]
    ) -> RowLayout: ...
    @overload
    @staticmethod
    def from_pairs(num_attributes: int, n_columns: int, width: int, indptr: Ints, columns: Ints) -> RowLayout:
        """Just these pairs: attribute a has columns[indptr[a]:indptr[a + 1]], ascending."""
    @staticmethod
    def observed(
        num_attributes: int,
        n_columns: int,
        width: int,
        row_ptr: Ints,
        attributes: Ints,
        labels: Ints,
        min_count: int = 1,
    ) -> RowLayout:
        """Return a layout of pairs (attribute of row p, labels[p]) seen at least min_count times."""
    num_attributes: Final[int]
    n_columns: Final[int]
    width: Final[int]
    num_weights: Final[int]  # the length of the run of weights, padding included
    num_pairs: Final[int]
    def pairs(self) -> tuple[Ints, Ints]:
        """Return (indptr, columns): attribute a has the columns columns[indptr[a]:indptr[a + 1]]."""
    def pack(self, pair_values: Floats, room: int = 0) -> Floats:
        """Return weights from one value per pair, then `room` zeros."""
    def unpack(self, weights: Floats) -> Floats: ...

class Segment:
    """A map from one run of the weights to one run of every example's slots; LinearMap stacks segments."""

    num_weights: Final[int]
    num_examples: Final[int]

class AttributeSegment(Segment):
    """Rows of sparse attributes: row p has attributes[row_ptr[p]:row_ptr[p + 1]]; see `SparseRows`.

    once: scores will be asked for about once per example (the same scores, sooner). uses, parts: a labelling uses a row
    at most so many times, and rows of example i at most parts[i] times (None: any number); bounds rely on it.
    """

    def __init__(
        self,
        layout: RowLayout,
        example_ptr: Ints,
        row_ptr: Ints,
        attributes: Ints,
        values: Floats | None = None,
        once: bool = False,
        uses: int = 1,
        parts: Ints | None = None,
    ) -> None: ...

class DenseSegment(Segment):
    """Rows of dense input (rows x n_inputs), with weight (j, a) at j * width + a; float32 is not widened."""

    @overload
    def __init__(self, rows: NDArray[np.float32], example_ptr: Ints, n_columns: int, width: int) -> None: ...
    @overload
    def __init__(self, rows: InputRows, example_ptr: Ints, n_columns: int, width: int) -> None: ...

class SharedSegment(Segment):
    """Weights that are slots themselves (tied transitions); mask: which have a weight at all (None: all).

    uses[i]: the most parts that a labelling of example i has here, for the bound of |psi|.
    """

    def __init__(self, size: int, uses: Ints, mask: Bytes | None = None) -> None: ...

class SlotSegment(Segment):
    """Features of single slots: slot r of all examples has features[row_ptr[r]:row_ptr[r + 1]]; see `SparseRows`.

    uses, parts: how often a labelling uses a slot, and how many parts it has, at most, for the bound of |psi|.
    """

    def __init__(
        self,
        num_weights: int,
        slot_ptr: Ints,
        row_ptr: Ints,
        features: Ints,
        values: Floats | None = None,
        uses: int = 1,
        parts: int | None = None,
    ) -> None: ...

class FeatureMap:
    """The linear map A_i of each example, and the geometry of weights."""

    num_examples: Final[int]
    num_weights: Final[int]
    def capabilities(self) -> frozenset[str]:
        """Return capabilities of the features; with kernels weights are coefficients, without `project`."""
    def lacks(self, capability: str) -> str:
        """Return why a capability is missing, where there is more to say than its name (else "")."""
    def describe(self, weight: int) -> str: ...
    def dot(self, weights: Floats, other: Floats, n_jobs: int = 1) -> float:
        """Return <weights, other> in weight space."""
    def num_slots(self, i: int) -> int: ...
    def scores(self, i: int, weights: Floats, scale: float = 1.0) -> Floats:
        """Return scale * A_i @ weights."""
    def add_transpose(self, i: int, slots: Floats, scale: float, weights: Floats) -> None:
        """Add scale * A_i.T @ slots to the weights."""
    def add_transpose_shrunk(
        self, i: int, slots: Floats, scale: float, l1: float, l2: float, plane: Floats, weights: Floats
    ) -> tuple[float, float]:
        """Add scale * v to the plane, v = A_i.T @ slots, and set weights = soft(plane, l1) / l2 there.

        Return (q, <w, v> before): |soft(plane, l1)|^2 / (2 l2) rises by scale <w, v> + scale^2 / (2 l2) q.
        """
    def project(self, i: int, slots: Floats) -> SparseVector:
        """Return A_i.T @ slots."""
    def slot_rows(self, i: int, slots: Ints) -> list[SparseVector]:
        """Return the rows of A_i for these slots, which must ascend."""
    def transpose_norm2(self, i: int, slots: Floats) -> float:
        """Return |A_i.T @ slots|^2."""
    def psi2_bound(self, i: int) -> float:
        """Return an upper bound of |A_i.T (gold - counts(y))|^2 over labellings."""
    def reach(self, i: int) -> float:
        """Return an upper bound of |A_i.T counts(y)| over labellings, absolute values throughout."""
    row_length: Final[int]  # the largest number of weights that a slot's score is a sum of

class LinearMap(FeatureMap):
    def __init__(self, segments: Sequence[Segment]) -> None: ...
    segments: Final[list[Segment]]

#: (head's atoms, modifier's atoms, column looked at in between or -1); an atom is (column, offset from the word)
ArcTable = Sequence[tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]], int]]

class ArcTokens:
    """Every column of every word, hashed."""

    def __init__(self, lengths: Ints, columns: list[bytes]) -> None:
        """Read columns: the values of all words, each ended by a zero byte."""
    num_sentences: Final[int]
    num_words: Final[int]
    def varies(self, column: int) -> bool: ...

class ArcIndex:
    """Which features of arcs have a weight: known keys in the order of their weights, or all keys, hashed."""

    def __init__(self, keys: UInt64s) -> None: ...
    @staticmethod
    def hashed(bits: int) -> ArcIndex:
        """Return an index of 2**bits weights, shared by the features whose keys begin alike."""
    @staticmethod
    def seen(templates: ArcTable, tokens: ArcTokens, heads: Ints | None, min_count: int = 1) -> ArcIndex:
        """Return an index of features seen on arcs from these heads (None: on all arcs)."""
    @staticmethod
    def counted(templates: ArcTable, tokens: ArcTokens, heads: Ints | None) -> tuple[UInt64s, Ints]:
        """Return the keys of all features on these arcs, and how often each occurs."""
    num_weights: Final[int]
    bits: Final[int]  # the bits of a hashed index, else 0
    keys: Final[UInt64s]
    def with_plain(self, kept: Bytes) -> Bytes:
        """Return which keys an index of the kept ones needs: a key with a distance needs the plain key."""
    def attributes(self, templates: ArcTable, tokens: ArcTokens, heads: Ints) -> tuple[Ints, Ints]:
        """Return (row_ptr, attributes) of the arcs from these heads, one row per word."""
    def unknown(self, templates: ArcTable, tokens: ArcTokens, heads: Ints) -> tuple[int, int]:
        """Return how many features of the arcs from these heads have no weight, and of how many."""

class ArcMap(FeatureMap):
    """Arc-factored features; slot (m - 1) * (n + 1) + h is the arc from head h to modifier m."""

    def __init__(
        self, templates: ArcTable, tokens: ArcTokens, index: ArcIndex, memory_limit: float = 0.0, n_jobs: int = 1
    ) -> None:
        """Keep features up to memory_limit bytes; those of further sentences are found at each use."""
    num_cached: Final[int]
    cached_bytes: Final[float]
    def features_per_arc(self) -> float:
        """Return the mean number of features with a weight."""

class MaxentMap(FeatureMap):
    """Features of (context, label) pairs by row and by column; attributes as in `AttributeSegment`."""

    def __init__(self, layout: RowLayout, row_ptr: Ints, attributes: Ints, values: Floats | None = None) -> None: ...
    @staticmethod
    def of_matrix(
        n_labels: int, width: int, n_features: int, row_ptr: Ints, features: Ints, values: Floats | None = None
    ) -> MaxentMap:
        """Read a sparse matrix f_t(x, y): row i * n_labels + y has the features of example i with label y."""
    num_columns: Final[int]  # the number of features, padding left out
    num_cells: Final[int]  # the number of values that are not 0
    binary: Final[bool]  # whether all values are 1
    def column(self, k: int) -> tuple[int, Ints, Ints, Floats]:
        """Return (weight, examples, slots, values) of column k."""

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
