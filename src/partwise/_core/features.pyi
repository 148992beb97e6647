"""Feature maps: from weights to slot scores and back."""

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from partwise.support.arrays import InputRows

from .support import Bytes, Floats, Ints, UInt64s

class SparseVector:
    """A merged sparse vector of weight space, kept as runs."""

    @property
    def indices(self) -> Ints: ...
    @property
    def values(self) -> Floats: ...
    def norm2(self) -> float: ...
    @overload
    def dot(self, other: Floats) -> float: ...
    @overload
    def dot(self, other: SparseVector) -> float: ...
    def axpy(self, scale: float, weights: Floats) -> None:
        """weights += scale * self"""

class RowLayout:
    """Which (attribute, column) pairs have a weight, and where it lies. Immutable, shared by training and
    prediction."""

    @staticmethod
    def dense(num_attributes: int, n_columns: int, width: int) -> RowLayout:
        """Every pair; columns n_columns..width-1 are padding (weight always 0)."""
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
        """Pairs (attribute of row p, labels[p]) seen at least min_count times."""
    @property
    def num_attributes(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def num_weights(self) -> int:
        """Length of the weight run, padding included."""
    @property
    def num_pairs(self) -> int: ...
    def pairs(self) -> tuple[Ints, Ints]:
        """(indptr, columns)"""
    def pack(self, pair_values: Floats, room: int = 0) -> Floats:
        """Weights (num_weights) from one value per pair (num_pairs), in the order of pairs(); then `room` zeros."""
    def unpack(self, weights: Floats) -> Floats:
        """The inverse of pack."""

class Segment:
    """Maps one run of the weights to one run of every example's slots; LinearMap stacks them."""

    @property
    def num_weights(self) -> int: ...
    @property
    def num_examples(self) -> int: ...

class AttributeSegment(Segment):
    """Rows of sparse attributes. Row p has attributes[row_ptr[p]:row_ptr[p + 1]]; example i has rows
    example_ptr[i]:example_ptr[i + 1]. Attribute -1 is ignored. values None: all 1. Repeated attributes add up.
    once: scores will be asked for about once per example (the same scores, sooner). uses, parts: a labelling uses a row
    at most so many times, and rows of example i at most parts[i] times (None: any number); bounds rely on it."""

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
    """Rows of dense input (rows x n_inputs), in float64 or, in half the memory and with the same results, in float32;
    weight (j, a) is at j * width + a."""

    @overload
    def __init__(self, rows: NDArray[np.float32], example_ptr: Ints, n_columns: int, width: int) -> None: ...
    @overload
    def __init__(self, rows: InputRows, example_ptr: Ints, n_columns: int, width: int) -> None: ...

class SharedSegment(Segment):
    """Weights that are slots themselves (tied transitions). mask: which have a weight at all (None: all);
    uses[i]: the most parts a labelling of example i has here (for the bound of |psi|)."""

    def __init__(self, size: int, uses: Ints, mask: Bytes | None = None) -> None: ...

class SlotSegment(Segment):
    """Features of single slots. Slot r (all examples end to end) has features[row_ptr[r]:row_ptr[r + 1]]; example i has
    slots slot_ptr[i]:slot_ptr[i + 1]. Feature -1 is ignored. values None: all 1. Repeated features add up. uses, parts:
    how often a labelling uses a slot, and how many parts it has, at most (None: any number; for the bound of |psi|)."""

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
    """A_i and the geometry of weights."""

    @property
    def num_examples(self) -> int: ...
    @property
    def num_weights(self) -> int: ...
    def capabilities(self) -> frozenset[str]:
        """Holds "explicit weights" if weights are coordinates; else (kernels) they are coefficients, `dot` is their
        geometry and there is no `project`. Further "column access" and with it, where true of all values,
        "non-negative features" and "binary features" (all 1)."""
    def lacks(self, capability: str) -> str:
        """Why a capability is missing, where there is more to say than its name (else "")."""
    def describe(self, weight: int) -> str:
        """A weight's name in messages."""
    def dot(self, weights: Floats, other: Floats, n_jobs: int = 1) -> float:
        """<weights, other> in weight space"""
    def num_slots(self, i: int) -> int: ...
    def scores(self, i: int, weights: Floats, scale: float = 1.0) -> Floats:
        """scale * A_i @ weights"""
    def add_transpose(self, i: int, slots: Floats, scale: float, weights: Floats) -> None:
        """weights += scale * A_i.T @ slots"""
    def add_transpose_shrunk(
        self, i: int, slots: Floats, scale: float, l1: float, l2: float, plane: Floats, weights: Floats
    ) -> tuple[float, float]:
        """plane += scale * v, v = A_i.T @ slots, and weights = soft(plane, l1) / l2 where v may not be zero.
        (q, <w, v> before): |soft(plane, l1)|^2 / (2 l2) rises by scale <w, v> + scale^2 / (2 l2) q. scale is not 0."""
    def project(self, i: int, slots: Floats) -> SparseVector:
        """A_i.T @ slots, merged"""
    def slot_rows(self, i: int, slots: Ints) -> list[SparseVector]:
        """The rows of A_i for these slots, which must ascend; without zeros"""
    def transpose_norm2(self, i: int, slots: Floats) -> float:
        """|A_i.T @ slots|^2"""
    def psi2_bound(self, i: int) -> float:
        """An upper bound of |A_i.T (gold - counts(y))|^2 over labellings."""
    def reach(self, i: int) -> float:
        """An upper bound of |A_i.T counts(y)| over labellings, absolute values throughout."""
    @property
    def row_length(self) -> int:
        """How many weights a slot's score is a sum of, at most."""

class LinearMap(FeatureMap):
    def __init__(self, segments: Sequence[Segment]) -> None: ...
    @property
    def segments(self) -> list[Segment]: ...

#: (head's atoms, modifier's atoms, column looked at in between or -1); an atom is (column, offset from the word)
ArcTable = Sequence[tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]], int]]

class ArcTokens:
    """Sentences as arc features see them: every column of every word, hashed."""

    def __init__(self, lengths: Ints, columns: list[bytes]) -> None:
        """columns: the values of all words end to end, each ended by a zero byte."""
    @property
    def num_sentences(self) -> int: ...
    @property
    def num_words(self) -> int: ...
    def varies(self, column: int) -> bool:
        """Whether a column has more than one value."""

class ArcIndex:
    """Which features of arcs have a weight: known keys in the order of their weights, or all keys, hashed."""

    def __init__(self, keys: UInt64s) -> None: ...
    @staticmethod
    def hashed(bits: int) -> ArcIndex:
        """2**bits weights, shared by the features whose keys begin alike."""
    @staticmethod
    def seen(templates: ArcTable, tokens: ArcTokens, heads: Ints | None, min_count: int = 1) -> ArcIndex:
        """Features seen at least min_count times on gold arcs (heads of all words end to end; None: on all arcs)."""
    @staticmethod
    def counted(templates: ArcTable, tokens: ArcTokens, heads: Ints | None) -> tuple[UInt64s, Ints]:
        """Keys of all features on these arcs, and how often each occurs."""
    @property
    def num_weights(self) -> int: ...
    @property
    def bits(self) -> int:
        """0 if not hashed."""
    @property
    def keys(self) -> UInt64s: ...
    def with_plain(self, kept: Bytes) -> Bytes:
        """Which keys an index of some of these needs: none with a distance is found without its plain one."""
    def attributes(self, templates: ArcTable, tokens: ArcTokens, heads: Ints) -> tuple[Ints, Ints]:
        """(row_ptr, attributes) of the arcs from these heads, one row per word: known features only."""
    def unknown(self, templates: ArcTable, tokens: ArcTokens, heads: Ints) -> tuple[int, int]:
        """How many features of the arcs from these heads have no weight, and of how many."""

class ArcMap(FeatureMap):
    """Arc-factored features; slot (m - 1) * (n + 1) + h is the arc from head h to modifier m."""

    def __init__(
        self, templates: ArcTable, tokens: ArcTokens, index: ArcIndex, memory_limit: float = 0.0, n_jobs: int = 1
    ) -> None:
        """memory_limit: bytes for features found once and kept; those of further sentences are found at each use."""
    @property
    def num_cached(self) -> int:
        """Sentences whose features are kept."""
    @property
    def cached_bytes(self) -> float: ...
    def features_per_arc(self) -> float:
        """The mean number of features with a weight."""

class MaxentMap(FeatureMap):
    """Features of (context, label) pairs with access by row and by column, for methods that change one weight at a
    time. Made from attributes (row i has attributes[row_ptr[i]:row_ptr[i + 1]], -1 is ignored, values None: all 1,
    repeated ones add up) a weight for each pair of the layout, or by `of_matrix`."""

    def __init__(self, layout: RowLayout, row_ptr: Ints, attributes: Ints, values: Floats | None = None) -> None: ...
    @staticmethod
    def of_matrix(
        n_labels: int, width: int, n_features: int, row_ptr: Ints, features: Ints, values: Floats | None = None
    ) -> MaxentMap:
        """From a sparse matrix f_t(x, y): row i * n_labels + y holds the features of example i with label y."""
    @property
    def num_columns(self) -> int:
        """Features, padding left out."""
    @property
    def num_cells(self) -> int:
        """Values that are not 0, of all features together."""
    @property
    def binary(self) -> bool:
        """Whether they are all 1."""
    def column(self, k: int) -> tuple[int, Ints, Ints, Floats]:
        """(weight, examples, slots, values) of column k."""
