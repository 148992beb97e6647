"""Is a matrix one of a kernel?"""

import numpy as np

from partwise.support.arrays import Floats

#: Eigenvalues down to minus this share of the trace count as rounding.
TOLERANCE = 1e-10


def check_kernel_matrix(matrix: Floats, name: str = "precomputed kernel") -> None:
    """ValueError, beginning with the name, unless the matrix is square, finite, symmetric, positive semi-definite.

    The last is a Cholesky factorisation of the matrix with TOLERANCE * trace added to its diagonal: n^3 / 3
    multiplications and the room of a copy.
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
