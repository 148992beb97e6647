"""Feature maps of kernels for multiclass problems and chains.

Weights lie in this order:

    rows of labels     n_labels coefficients (padded to the structure's width) per training row
    transitions        tied chains: one weight per (label, next label), as without a kernel; untied ones: coefficients
                       for pairs of labels, one row per edge of the training data, of a kernel on rows of edges
    begin, end         one weight per label each, where the chain has ends
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise._core import (
    Chain,
    DenseKernel,
    Kernel,
    KernelSegment,
    LinearMap,
    Multiclass,
    PlacedKernel,
    Segment,
    SharedSegment,
    SparseKernel,
    SparseRows,
    StoredKernel,
)
from partwise.features import Attributes
from partwise.features.kernels.functions import KernelLike, Precomputed, get_kernel
from partwise.features.kernels.precomputed import check_kernel_matrix
from partwise.features.maps import as_rows
from partwise.support.arrays import Bytes, Floats, Ints, pointers

Rows = Attributes | Floats

#: Bytes of kernel values that may be kept, unless said otherwise.
MEMORY_LIMIT = 2e9
#: Training rows whose kernel matrix is computed beforehand, to see that it is one of a kernel. So few that LAPACK stays
#: on one thread: it takes a millisecond, not the wait for busy processors.
SAMPLE = 150


def kernel_map(
    structure: Multiclass | Chain,
    rows: Any,
    kernel: str | KernelLike,
    *,
    edge_rows: Any = None,
    edge_kernel: str | KernelLike | None = None,
    transition_mask: Bytes | None = None,
    memory_limit: float = MEMORY_LIMIT,
    recompute: bool = False,
    by_position: bool = False,
) -> LinearMap:
    """The feature map of training rows; see `KernelFeatures.of` and `KernelFeatures.training_map`."""
    features = KernelFeatures.of(
        rows,
        kernel,
        edge_rows=edge_rows,
        edge_kernel=edge_kernel,
        memory_limit=memory_limit,
        recompute=recompute,
        lengths=_lengths(structure) if by_position else None,
    )
    return features.training_map(structure, transition_mask=transition_mask)


@dataclass(frozen=True)
class Part:
    """A kernel and the rows that have coefficients. Precomputed: `rows` are kernel values, one column per training row,
    and `columns` says which of the columns still have coefficients (None: all). places: the rows' positions, where only
    rows of the same position have something in common (None: all have).
    """

    kernel: KernelLike
    rows: Rows
    columns: Ints | None = None
    places: Ints | None = None

    @property
    def n_support(self) -> int:
        """Number of rows that have coefficients."""
        if isinstance(self.kernel, Precomputed):
            return _width(self.rows) if self.columns is None else len(self.columns)
        return _n_rows(self.rows)

    def against(self, queries: Rows | None) -> Kernel:
        """Kernel values of queries (None: the training rows themselves) with the support, whatever their places."""
        if isinstance(self.kernel, Precomputed):
            return self._stored(queries)
        function = self.kernel.core()
        if isinstance(self.rows, Attributes):
            if queries is not None and not isinstance(queries, Attributes):
                raise ValueError("the training rows were sparse, these are dense")
            own = _sparse(self.rows)
            return SparseKernel(function, own) if queries is None else SparseKernel(function, _sparse(queries), own)
        if isinstance(queries, Attributes):
            raise ValueError("the training rows were dense, these are sparse")
        return DenseKernel(function, self.rows) if queries is None else DenseKernel(function, queries, self.rows)

    def keep(self, some: NDArray[np.bool_]) -> "Part":
        """The part with these support rows only."""
        places = None if self.places is None else self.places[some]
        if isinstance(self.kernel, Precomputed):
            columns = np.arange(self.n_support, dtype=np.int64) if self.columns is None else self.columns
            return replace(self, rows=np.empty((0, _width(self.rows))), columns=columns[some], places=places)
        if isinstance(self.rows, Attributes):
            return replace(self, rows=_take(self.rows, some), places=places)
        return replace(self, rows=np.ascontiguousarray(self.rows[some]), places=places)

    def _stored(self, queries: Rows | None) -> Kernel:
        matrix = self.rows if queries is None else queries
        if isinstance(matrix, Attributes) or matrix.shape[1] != _width(self.rows):
            found = "sparse rows" if isinstance(matrix, Attributes) else f"{matrix.shape[1]} columns"
            raise ValueError(f"precomputed kernel: {found}, there were {_width(self.rows)} training rows")
        if queries is None:
            return StoredKernel(matrix, square=True)
        chosen = matrix if self.columns is None else np.ascontiguousarray(matrix[:, self.columns])
        return StoredKernel(chosen, square=False)


@dataclass(frozen=True)
class KernelFeatures:
    """Which kernels there are, on which rows: what training and prediction need in addition to coefficients."""

    nodes: Part
    edges: Part | None
    memory_limit: float
    recompute: bool

    @classmethod
    def of(
        cls,
        rows: Any,
        kernel: str | KernelLike,
        *,
        edge_rows: Any = None,
        edge_kernel: str | KernelLike | None = None,
        memory_limit: float = MEMORY_LIMIT,
        recompute: bool = False,
        lengths: Ints | None = None,
    ) -> "KernelFeatures":
        """Kernels on training rows.

        Parameters
        ----------
        rows : rows of input, one per position (or example)
            An array, a SciPy sparse matrix or `Attributes`; for a precomputed kernel the square matrix of its values.
        kernel : str or kernel
        edge_rows, edge_kernel : optional
            The same for the edges of an untied chain, length - 1 per sequence.
        memory_limit : float
            Bytes that kernel values may take.
        recompute : bool
            Recompute what is beyond the limit in every pass, instead of refusing to start.
        lengths : array, optional
            Lengths of the sequences that the rows are: then the kernel is 0 between different positions, as if every
            position had weights of its own (features of cliques that are concatenated: Zhang et al. 2011, equation 32).

        Raises
        ------
        ValueError
            If the kernel matrices do not fit the memory limit (unless `recompute`), or the values of the training rows
            (all precomputed ones, otherwise those of some rows) are infinite or not positive semi-definite.
        """
        if (edge_rows is None) != (edge_kernel is None):
            raise ValueError("a kernel on edges needs edge_rows and edge_kernel, both or neither")
        if not memory_limit >= 0:
            raise ValueError(f"memory_limit must be a number of bytes >= 0, got {memory_limit}")
        tables = [as_rows(rows)] if edge_rows is None else [as_rows(rows), as_rows(edge_rows)]
        _check_memory([_n_rows(table) for table in tables], memory_limit, recompute)
        parts = [
            replace(
                _training_part(table, get_kernel(k)), places=None if lengths is None else _places(lengths - shorter)
            )
            for table, k, shorter in zip(tables, (kernel, edge_kernel), (0, 1), strict=False)
            if k is not None
        ]
        return cls(parts[0], parts[1] if len(parts) > 1 else None, float(memory_limit), bool(recompute))

    def training_map(self, structure: Multiclass | Chain, *, transition_mask: Bytes | None = None) -> LinearMap:
        """The feature map of the training rows: what solvers take."""
        return self._map(structure, None, None, transition_mask)

    def map(
        self,
        structure: Multiclass | Chain,
        rows: Any,
        *,
        edge_rows: Any = None,
        transition_mask: Bytes | None = None,
    ) -> LinearMap:
        """The feature map of other rows, for prediction with the coefficients of the support."""
        if (edge_rows is None) != (self.edges is None):
            raise ValueError("rows of edges are needed where there is a kernel on edges, and only there")
        return self._map(structure, as_rows(rows), None if edge_rows is None else as_rows(edge_rows), transition_mask)

    def compress(
        self, structure: Multiclass | Chain, weights: Floats, tolerance: float = 0.0
    ) -> tuple["KernelFeatures", Floats]:
        """The features and weights without the rows whose coefficients are all zero (|.| <= tolerance)."""
        kept: list[Floats] = []
        parts: list[Part | None] = []
        start = 0
        for part, width in zip((self.nodes, self.edges), _widths(structure), strict=True):
            if part is None:
                parts.append(None)
                continue
            size = part.n_support * width
            table = weights[start : start + size].reshape(part.n_support, width)
            some = np.abs(table).max(axis=1, initial=0.0) > tolerance
            if not some.any() and len(some):
                some[0] = True  # a support must have a row
            parts.append(part.keep(some))
            kept.append(table[some].ravel())
            start += size
        assert parts[0] is not None
        return replace(self, nodes=parts[0], edges=parts[1]), np.concatenate([*kept, weights[start:]])

    def _map(
        self, structure: Multiclass | Chain, rows: Rows | None, edge_rows: Rows | None, mask: Bytes | None
    ) -> LinearMap:
        n_labels, width = structure.n_labels, structure.width
        lengths = _lengths(structure)
        limit = self.memory_limit
        segments: list[Segment] = [self._segment(self.nodes, rows, lengths, n_labels, width, limit)]
        if isinstance(structure, Multiclass):
            if self.edges is not None or mask is not None:
                raise ValueError("a multiclass problem has no edges")
            return LinearMap(segments)
        table = n_labels * width
        if structure.tied:
            if self.edges is not None:
                raise ValueError("a kernel on edges needs an untied chain (tied=False)")
            segments.append(SharedSegment(table, lengths - 1, mask))
        else:
            if mask is not None:
                raise ValueError("a transition mask needs a tied chain")
            if self.edges is None:
                raise ValueError("an untied chain needs a kernel on edges")
            left = max(limit - 8.0 * self.nodes.n_support**2, 0.0)
            segments.append(self._segment(self.edges, edge_rows, lengths - 1, table, table, left))
        if structure.ends:
            segments.append(SharedSegment(2 * width, np.full(len(lengths), 2, dtype=np.int64)))
        return LinearMap(segments)

    def _segment(
        self, part: Part, rows: Rows | None, lengths: Ints, n_columns: int, width: int, limit: float
    ) -> KernelSegment:
        ptr = pointers(lengths)
        found = part.n_support if rows is None else _n_rows(rows)
        if found != ptr[-1]:
            raise ValueError(f"{found} rows of input, the structure has {ptr[-1]}")
        kernel = part.against(rows)
        if part.places is not None:
            kernel = PlacedKernel(kernel, _places(lengths), part.places)
        return KernelSegment(kernel, ptr, n_columns, width, limit, self.recompute)


def _training_part(rows: Rows, kernel: KernelLike) -> Part:
    if isinstance(kernel, Precomputed):
        if isinstance(rows, Attributes):
            raise ValueError("a precomputed kernel is a dense matrix, got sparse rows")
        check_kernel_matrix(rows)
        return Part(kernel, rows)
    part = Part(kernel.fitted(rows), rows)
    some = np.zeros(part.n_support, dtype=bool)
    some[np.linspace(0, len(some) - 1, min(len(some), SAMPLE)).astype(np.int64)] = True
    n = int(some.sum())
    check_kernel_matrix(part.keep(some).against(None).values(0, n, 0, n).reshape(n, n), f"kernel {part.kernel!r}")
    return part


def _check_memory(n_rows: list[int], limit: float, recompute: bool) -> None:
    needed = 8.0 * sum(float(n) ** 2 for n in n_rows)
    if needed > limit and not recompute:
        raise ValueError(
            f"the kernel matrix of {' + '.join(map(str, n_rows))} training rows takes {needed / 1e6:.0f} MB, above the "
            f"memory limit of {limit / 1e6:.0f} MB: raise memory_limit, train on less data, or have what does not fit "
            "recomputed in every pass (recompute=True)"
        )


def _widths(structure: Multiclass | Chain) -> tuple[int, int]:
    """Coefficients per row of input and per row of edges."""
    return structure.width, structure.n_labels * structure.width


def _lengths(structure: Multiclass | Chain) -> Ints:
    """Rows of input of each example."""
    return structure.lengths if isinstance(structure, Chain) else np.ones(structure.num_examples, dtype=np.int64)


def _places(lengths: Ints) -> Ints:
    """Positions in sequences of these lengths, end to end."""
    return np.arange(int(lengths.sum())) - np.repeat(pointers(lengths)[:-1], lengths)


def _n_rows(rows: Rows) -> int:
    return rows.n_rows if isinstance(rows, Attributes) else len(rows)


def _width(rows: Rows) -> int:
    return rows.num_attributes if isinstance(rows, Attributes) else int(rows.shape[1])


def _sparse(rows: Attributes) -> SparseRows:
    return SparseRows(rows.num_attributes, rows.row_ptr, rows.attributes, rows.values)


def _take(rows: Attributes, some: NDArray[np.bool_]) -> Attributes:
    sizes = np.diff(rows.row_ptr)
    entries = np.repeat(some, sizes)
    ptr = pointers(sizes[some])
    return Attributes(
        ptr, rows.attributes[entries], rows.num_attributes, None if rows.values is None else rows.values[entries]
    )
