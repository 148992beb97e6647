"""Kernels on the parts of labellings: features that are known by their inner products alone.

With a kernel k on rows of input (positions of a sequence, or edges between them), the score of label a at row t is
sum_p k(x_t, x_p) beta_pa over the training rows p: weights are the coefficients beta. `KernelFeatures.of` and `map`
give the feature map that dual solvers (`eg`, `eg-batch`, `excessive-gap`) train with.

    linear        <x, y>
    polynomial    (gamma <x, y> + coef0)^degree
    rbf           exp(-gamma |x - y|^2)
    precomputed   the rows are the kernel's values themselves, one column per training row

gamma None is 1 / (number of inputs * variance of the training rows' values), as scikit-learn's "scale". `bias` is a
constant added to the kernel, like an attribute that every row has. Weights lie in this order:

    rows of labels     n_labels coefficients (padded to the structure's width) per training row
    transitions        tied chains: one weight per (label, next label), as without a kernel; untied ones: coefficients
                       for pairs of labels, one row per edge of the training data, of a kernel on rows of edges
    begin, end         one weight per label each, where the chain has ends
"""

from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any, ClassVar, Self

import numpy as np

from partwise import _core
from partwise._core import Chain, LinearMap, Multiclass
from partwise.features.maps import stacked
from partwise.features.rows import Attributes, as_rows
from partwise.support.arrays import Booleans, Bytes, Floats, Ints, pointers, runs

Rows = Attributes | Floats

#: Values with a larger variance have squares beyond double precision.
MOST_VARIANCE = 1e300
#: Eigenvalues down to minus this share of the trace count as rounding.
TOLERANCE = 1e-10
#: The default limit of bytes of kernel values that are kept.
MEMORY_LIMIT = 2e9
#: Training rows whose kernel matrix is checked to be positive semi-definite. They are so few that LAPACK stays on one
#: thread: this takes a millisecond, without a wait for busy processors.
SAMPLE = 150


class _Function:
    """A kernel that the core computes from two rows of input."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        gamma = getattr(self, "gamma", None)
        number = isinstance(gamma, (int, float, np.number)) and not isinstance(gamma, bool)
        if gamma is not None and not (number and isfinite(gamma) and gamma > 0):
            raise ValueError(f"gamma must be a number > 0 or None, got {gamma!r}")
        self.core()

    def core(self) -> _core.KernelFunction:
        """Return the function in the core; ValueError if its parameters do not give a kernel."""
        options = {name: value for name, value in vars(self).items() if value is not None}
        return _core.KernelFunction(self.name, **options)

    def fitted(self, rows: Rows) -> Self:
        """Return the kernel with parameters that depend on the training rows."""
        if getattr(self, "gamma", 1.0) is not None:
            return self
        return replace(self, gamma=scale_gamma(rows))  # type: ignore[type-var]


@dataclass(frozen=True)
class Linear(_Function):
    """<x, y> + bias."""

    name: ClassVar[str] = "linear"
    bias: float = 0.0


@dataclass(frozen=True)
class Polynomial(_Function):
    """(gamma <x, y> + coef0)^degree + bias."""

    name: ClassVar[str] = "polynomial"
    degree: int = 3
    gamma: float | None = None
    coef0: float = 1.0
    bias: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or not isinstance(self.degree, int):
            raise ValueError(f"degree must be an integer >= 1, got {self.degree!r}")
        super().__post_init__()


@dataclass(frozen=True)
class RBF(_Function):
    """exp(-gamma |x - y|^2) + bias."""

    name: ClassVar[str] = "rbf"
    gamma: float | None = None
    bias: float = 0.0


@dataclass(frozen=True)
class Precomputed:
    """Rows of kernel values, a column for each training row."""

    name: ClassVar[str] = "precomputed"

    def fitted(self, rows: Rows) -> Self:
        return self


KernelLike = Linear | Polynomial | RBF | Precomputed

_KERNELS: dict[str, type[KernelLike]] = {cls.name: cls for cls in (Linear, Polynomial, RBF, Precomputed)}
_KERNELS["poly"] = Polynomial


def get_kernel(kernel: str | KernelLike, **parameters: Any) -> KernelLike:
    """Return the kernel of this name with these parameters (None: the default), or the kernel that is given."""
    given = {name: value for name, value in parameters.items() if value is not None}
    if isinstance(kernel, KernelLike):
        if given:
            raise ValueError(f"{', '.join(given)}: a kernel's name is needed, got {kernel!r}")
        return kernel
    if kernel not in _KERNELS:
        raise ValueError(f"unknown kernel {kernel!r}; there are {', '.join(_KERNELS)}")
    cls = _KERNELS[kernel]
    known = [item.name for item in fields(cls)]
    unknown = [name for name in given if name not in known]
    if unknown:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise ValueError(f"kernel {kernel!r} has no parameter {', '.join(unknown)}; {has}")
    return cls(**given)


def scale_gamma(rows: Rows) -> float:
    """Return 1 / (number of inputs * variance of all values), zeros included; 1 if all values are the same."""
    if isinstance(rows, Attributes):
        present = rows.attributes >= 0
        values = np.ones(int(present.sum())) if rows.values is None else rows.values[present]
        size, n_inputs = rows.n_rows * rows.num_attributes, rows.num_attributes
        mean = float(values.sum()) / max(size, 1)
        variance = (float(((values - mean) ** 2).sum()) + (size - len(values)) * mean * mean) / max(size, 1)
    else:
        n_inputs, variance, values = rows.shape[1], float(rows.var()), rows.ravel()
    if not variance <= MOST_VARIANCE:
        at = int(np.argmax(np.abs(values)))
        column = rows.attributes[present][at] if isinstance(rows, Attributes) else at % n_inputs
        raise ValueError(f"X: column {column} has a value of {values[at]:g}: the variance is beyond double precision")
    return 1.0 / (n_inputs * variance) if variance > 0 else 1.0


def check_kernel_matrix(matrix: Floats, name: str = "precomputed kernel") -> None:
    """Raise ValueError unless a matrix is square, finite, symmetric and positive semi-definite.

    It is positive semi-definite if it has a Cholesky factorisation with TOLERANCE * trace added to its diagonal.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name}: the values of training rows must be a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name}: a value is NaN or infinite")
    diagonal = np.diagonal(matrix)
    if (diagonal < 0).any():
        row = int(np.argmin(diagonal))
        raise ValueError(f"{name}: not positive semi-definite, k({row}, {row}) = {diagonal[row]:.6g} is negative")
    largest = float(diagonal.max(initial=0.0))
    if not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-8 * max(largest, 1e-300)):
        row, column = divmod(int(np.argmax(np.abs(matrix - matrix.T))), len(matrix))
        raise ValueError(
            f"{name}: not symmetric, k({row}, {column}) = {matrix[row, column]:.6g} "
            f"but k({column}, {row}) = {matrix[column, row]:.6g}"
        )
    shifted = matrix + np.diag(np.full(len(matrix), TOLERANCE * float(diagonal.sum()) + 1e-300))
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"{name}: not positive semi-definite (it has a negative eigenvalue), so it is not a kernel and the "
            "problem has no bound; adding a multiple of the identity would make it one"
        ) from None


@dataclass(frozen=True)
class Part:
    """A kernel and the rows that have coefficients, the support.

    Precomputed: `rows` are kernel values, one column per training row, and `columns` are the columns with coefficients
    (None: all). places: the rows' positions, if the kernel is 0 between rows of different positions.
    """

    kernel: KernelLike
    rows: Rows
    columns: Ints | None = None
    places: Ints | None = None

    @property
    def n_support(self) -> int:
        if isinstance(self.kernel, Precomputed):
            return int(self.rows.shape[1]) if self.columns is None else len(self.columns)
        return int(self.rows.shape[0])

    def against(self, queries: Rows | None) -> _core.Kernel:
        """Return kernel values of queries (None: the training rows) with the support, ignoring places."""
        if isinstance(self.kernel, Precomputed):
            return self._stored(queries)
        tables = [self.rows] if queries is None else [queries, self.rows]
        dense = [rows for rows in tables if not isinstance(rows, Attributes)]
        sparse = [
            _core.SparseRows(rows.num_attributes, rows.row_ptr, rows.attributes, rows.values)
            for rows in tables
            if isinstance(rows, Attributes)
        ]
        if dense and sparse:
            known, found = ("sparse", "dense") if isinstance(self.rows, Attributes) else ("dense", "sparse")
            raise ValueError(f"the training rows were {known}, these are {found}")
        function = self.kernel.core()
        return _core.SparseKernel(function, *sparse) if sparse else _core.DenseKernel(function, *dense)

    def keep(self, some: Booleans) -> "Part":
        places = None if self.places is None else self.places[some]
        if isinstance(self.kernel, Precomputed):
            columns = np.arange(self.n_support, dtype=np.int64) if self.columns is None else self.columns
            return replace(self, rows=np.empty((0, self.rows.shape[1])), columns=columns[some], places=places)
        return replace(self, rows=self.rows.take(np.flatnonzero(some), 0), places=places)

    def _stored(self, queries: Rows | None) -> _core.Kernel:
        matrix = self.rows if queries is None else queries
        if isinstance(matrix, Attributes) or matrix.shape[1] != self.rows.shape[1]:
            found = "sparse rows" if isinstance(matrix, Attributes) else f"{matrix.shape[1]} columns"
            raise ValueError(f"precomputed kernel: {found}, there were {self.rows.shape[1]} training rows")
        if queries is None:
            return _core.StoredKernel(matrix, square=True)
        chosen = matrix if self.columns is None else np.ascontiguousarray(matrix[:, self.columns])
        return _core.StoredKernel(chosen, square=False)


@dataclass(frozen=True)
class KernelFeatures:
    """Kernels and the rows that have coefficients, which prediction needs in addition to the coefficients."""

    nodes: Part
    edges: Part | None
    memory_limit: float
    recompute: bool

    @classmethod
    def of(
        cls,
        rows: object,
        kernel: str | KernelLike,
        *,
        edge_rows: object = None,
        edge_kernel: str | KernelLike | None = None,
        memory_limit: float = MEMORY_LIMIT,
        recompute: bool = False,
        lengths: Ints | None = None,
    ) -> "KernelFeatures":
        """Return kernels on training rows.

        rows are an array, a SciPy sparse matrix or `Attributes`, or for a precomputed kernel the square matrix of its
        values; edge_rows and edge_kernel are for the edges of an untied chain, length - 1 per sequence. Kernel values
        beyond memory_limit bytes are refused, or computed in every pass (recompute). With the sequences' lengths, the
        kernel is 0 between different positions, as if every position had its own weights (Zhang et al. 2011, equation
        32). Raise ValueError if a kernel is not positive semi-definite on (some) training rows.
        """
        if (edge_rows is None) != (edge_kernel is None):
            raise ValueError("a kernel on edges needs edge_rows and edge_kernel, both or neither")
        if not memory_limit >= 0:
            raise ValueError(f"memory_limit must be a number of bytes >= 0, got {memory_limit}")
        given = [(rows, kernel)] if edge_kernel is None else [(rows, kernel), (edge_rows, edge_kernel)]
        tables = [as_rows(each) for each, _ in given]
        n_rows = [table.shape[0] for table in tables]
        needed = 8.0 * sum(float(n) ** 2 for n in n_rows)
        if needed > memory_limit and not recompute:
            raise ValueError(
                f"the kernel matrix of {' + '.join(map(str, n_rows))} training rows takes {needed / 1e6:.0f} MB, above "
                f"the memory limit of {memory_limit / 1e6:.0f} MB: raise memory_limit, train on less data, or have "
                "what does not fit recomputed in every pass (recompute=True)"
            )
        nodes, *edges = (
            replace(_training_part(table, get_kernel(own)), places=None if lengths is None else _places(lengths - k))
            for k, (table, (_, own)) in enumerate(zip(tables, given, strict=True))
        )
        return cls(nodes, edges[0] if edges else None, float(memory_limit), bool(recompute))

    def map(
        self,
        structure: Multiclass | Chain,
        rows: object = None,
        *,
        edge_rows: object = None,
        transition_mask: Bytes | None = None,
    ) -> LinearMap:
        """Return the feature map of rows, for the coefficients of the support (None: of the training rows)."""
        if rows is not None and (edge_rows is None) != (self.edges is None):
            raise ValueError("rows of edges are needed where there is a kernel on edges, and only there")
        n_labels, width, lengths = structure.n_labels, structure.width, row_lengths(structure)
        nodes = self._segment(self.nodes, rows, lengths, n_labels, width, self.memory_limit)
        if isinstance(structure, Multiclass):
            if self.edges is not None or transition_mask is not None:
                raise ValueError("a multiclass problem has no edges")
            return LinearMap([nodes])
        if structure.tied:
            if self.edges is not None:
                raise ValueError("a kernel on edges needs an untied chain (tied=False)")
            return stacked(structure, nodes, mask=transition_mask)
        if transition_mask is not None:
            raise ValueError("a transition mask needs a tied chain")
        if self.edges is None:
            raise ValueError("an untied chain needs a kernel on edges")
        left = max(self.memory_limit - 8.0 * self.nodes.n_support**2, 0.0)
        size = n_labels * width
        return stacked(structure, nodes, self._segment(self.edges, edge_rows, lengths - 1, size, size, left))

    def _segment(
        self, part: Part, rows: object, lengths: Ints, n_columns: int, width: int, limit: float
    ) -> _core.KernelSegment:
        ptr, queries = pointers(lengths), None if rows is None else as_rows(rows)
        found = part.n_support if queries is None else queries.shape[0]
        if found != ptr[-1]:
            raise ValueError(f"{found} rows of input, the structure has {ptr[-1]}")
        kernel = part.against(queries)
        if part.places is not None:
            kernel = _core.PlacedKernel(kernel, _places(lengths), part.places)
        return _core.KernelSegment(kernel, ptr, n_columns, width, limit, self.recompute)

    def compress(
        self, structure: Multiclass | Chain, weights: Floats, tolerance: float = 0.0
    ) -> "tuple[KernelFeatures, Floats]":
        """Return the features and weights without the rows whose coefficients are all zero (|.| <= tolerance)."""
        parts, kept, rest = [], [], weights
        for part, width in ((self.nodes, structure.width), (self.edges, structure.n_labels * structure.width)):
            if part is None:
                continue
            size = part.n_support * width
            table, rest = rest[:size].reshape(part.n_support, width), rest[size:]
            some = np.abs(table).max(axis=1, initial=0.0) > tolerance
            if not some.any() and len(some):
                some[0] = True  # a support must have a row
            parts.append(part.keep(some))
            kept.append(table[some].ravel())
        nodes, *edges = parts
        return replace(self, nodes=nodes, edges=edges[0] if edges else None), np.concatenate([*kept, rest])


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


def row_lengths(structure: Multiclass | Chain) -> Ints:
    """Return the number of rows of input of each example."""
    return structure.lengths if isinstance(structure, Chain) else np.ones(structure.num_examples, dtype=np.int64)


def _places(lengths: Ints) -> Ints:
    """Return the positions in sequences of these lengths, sequences concatenated."""
    return runs(np.zeros_like(lengths), lengths)
