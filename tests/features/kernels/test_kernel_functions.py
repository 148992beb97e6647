"""Kernel values equal those of NumPy, and invalid parameters and matrices are refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from partwise._core import DenseKernel, KernelFunction, SparseKernel, SparseRows, StoredKernel
from partwise.features import Attributes
from partwise.features.kernels import RBF, Linear, Polynomial, Precomputed, check_kernel_matrix, get_kernel, scale_gamma

FUNCTIONS = [
    (Linear(), linear_kernel),
    (Linear(bias=1.5), lambda x, y: linear_kernel(x, y) + 1.5),
    (Polynomial(degree=3, gamma=0.3, coef0=0.7), lambda x, y: polynomial_kernel(x, y, 3, 0.3, 0.7)),
    (Polynomial(degree=1, gamma=2.0, coef0=0.0, bias=0.25), lambda x, y: 2.0 * linear_kernel(x, y) + 0.25),
    (RBF(gamma=0.2), lambda x, y: rbf_kernel(x, y, 0.2)),
    (RBF(gamma=5.0, bias=2.0), lambda x, y: rbf_kernel(x, y, 5.0) + 2.0),
]


def attributes_of(rows):
    sparse = csr_array(rows)
    return Attributes(sparse.indptr.astype(np.int64), sparse.indices.astype(np.int64), rows.shape[1], sparse.data)


def core_kernel(function, queries, support, sparse):
    if not sparse:
        return DenseKernel(function.core(), queries, support)
    tables = [None if rows is None else attributes_of(rows) for rows in (queries, support)]
    rows = [None if t is None else SparseRows(t.num_attributes, t.row_ptr, t.attributes, t.values) for t in tables]
    return SparseKernel(function.core(), *rows)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("function", "reference"), FUNCTIONS, ids=lambda f: str(f) if hasattr(f, "core") else "")
def test_values(function, reference, sparse, rng):
    x = rng.normal(size=(9, 6)) * (rng.random((9, 6)) < 0.5)
    # So many rows that the core compares sparse rows by inverted lists
    y = rng.normal(size=(83, 6)) * (rng.random((83, 6)) < 0.5)
    kernel = core_kernel(function, x, y, sparse)
    assert (kernel.num_queries, kernel.num_support, kernel.square) == (9, 83, False)
    expected = reference(x, y)
    np.testing.assert_allclose(kernel.values(0, 9, 0, 83).reshape(9, 83), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.values(2, 8, 7, 80).reshape(6, 73), expected[2:8, 7:80], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.values(3, 4, 5, 9).reshape(1, 4), expected[3:4, 5:9], rtol=1e-12, atol=1e-13)
    assert kernel.values(3, 3, 0, 83).size == 0
    own = core_kernel(function, y, None, sparse)
    assert own.square
    np.testing.assert_allclose(own.values(0, 83, 0, 83).reshape(83, 83), reference(y, y), rtol=1e-12, atol=1e-12)


def test_repeated_and_ignored_attributes():
    rows = SparseRows(3, np.array([0, 3, 5]), np.array([2, -1, 2, 0, 2]), np.array([1.0, 9.0, 0.5, 2.0, 1.0]))
    assert (rows.num_rows, rows.num_attributes) == (2, 3)
    values = SparseKernel(KernelFunction("linear"), rows).values(0, 2, 0, 2).reshape(2, 2)
    np.testing.assert_allclose(values, [[2.25, 1.5], [1.5, 5.0]])


def test_rbf_is_0_for_distant_rows_and_1_for_equal_rows():
    rows = np.array([[0.0, 0.0], [1e3, 1e3]])
    np.testing.assert_allclose(
        DenseKernel(KernelFunction("rbf", 1.0), rows).values(0, 2, 0, 2).reshape(2, 2), np.eye(2), atol=1e-12
    )


def test_stored_values(rng):
    matrix = rng.normal(size=(4, 6))
    kernel = StoredKernel(matrix, square=False)
    np.testing.assert_array_equal(kernel.values(1, 3, 2, 5).reshape(2, 3), matrix[1:3, 2:5])
    with pytest.raises(ValueError, match="must be square"):
        StoredKernel(matrix, square=True)


@pytest.mark.parametrize("rows", [(-1, 2, 0, 1), (0, 5, 0, 1), (2, 1, 0, 1), (0, 1, 0, 5), (0, 1, 3, 2)])
def test_row_numbers_out_of_range_are_refused(rows):
    with pytest.raises(ValueError, match="no such rows"):
        DenseKernel(KernelFunction("linear"), np.ones((4, 2))).values(*rows)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KernelFunction("cosine"), "linear.*polynomial.*rbf"),
        (lambda: KernelFunction("rbf", gamma=0.0), "gamma must be above 0"),
        (lambda: KernelFunction("rbf", gamma=np.nan), "gamma"),
        (lambda: KernelFunction("polynomial", coef0=-1.0), "coef0 must be 0 or more"),
        (lambda: KernelFunction("polynomial", degree=0), "degree"),
        (lambda: KernelFunction("linear", bias=-1.0), "bias"),
        (lambda: DenseKernel(KernelFunction("linear"), np.ones((2, 3)), np.ones((2, 4))), "3 inputs.*4"),
        (lambda: DenseKernel(KernelFunction("linear"), np.full((2, 3), np.inf)), "NaN or infinite"),
        (lambda: StoredKernel(np.full((2, 2), np.nan), True), "NaN or infinite"),
        (lambda: SparseRows(2, np.array([0, 1]), np.array([2])), "attribute 2 is out of range"),
        (lambda: RBF(gamma=-1.0), "gamma must be a number > 0"),
        (lambda: RBF(gamma="scale"), "gamma must be a number > 0"),
        (lambda: Polynomial(degree=2.5), "degree must be an integer"),
        (lambda: Polynomial(degree=0), "degree"),
        (lambda: Linear(bias=-0.1), "bias"),
        (lambda: get_kernel("sigmoid"), "unknown kernel 'sigmoid'; there are linear, polynomial"),
        (lambda: get_kernel("rbf", degree=2), "'rbf' has no parameter degree; it has gamma, bias"),
        (lambda: get_kernel("precomputed", gamma=2.0), "no parameter gamma; it has none"),
        (lambda: get_kernel(RBF(), gamma=2.0), "gamma: a kernel's name is needed"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_get_kernel():
    assert get_kernel("rbf", gamma=2.0, degree=None) == RBF(gamma=2.0)
    assert get_kernel("poly", degree=2) == get_kernel("polynomial", degree=2) == Polynomial(degree=2)
    assert get_kernel(Linear(bias=1.0)) == Linear(bias=1.0)
    assert get_kernel("precomputed") == Precomputed()


def test_gamma_scale_is_the_inverse_of_inputs_times_variance(rng):
    rows = rng.normal(size=(20, 5)) * (rng.random((20, 5)) < 0.4)
    assert scale_gamma(rows) == pytest.approx(1 / (5 * rows.var()))
    assert scale_gamma(attributes_of(rows)) == pytest.approx(1 / (5 * rows.var()))
    assert scale_gamma(np.ones((3, 2))) == 1.0
    assert RBF().fitted(rows).gamma == pytest.approx(1 / (5 * rows.var()))
    assert Polynomial(gamma=2.0).fitted(rows).gamma == 2.0
    ones = Attributes(np.array([0, 2, 3]), np.array([0, 1, -1]), 2)
    assert scale_gamma(ones) == pytest.approx(1 / (2 * np.array([[1.0, 1.0], [0.0, 0.0]]).var()))


class TestKernelMatrices:
    def test_good(self, rng):
        x = rng.normal(size=(12, 3))
        check_kernel_matrix(x @ x.T)  # of rank 3: nine eigenvalues are zero up to rounding
        check_kernel_matrix(1e9 * x @ x.T)
        check_kernel_matrix(np.zeros((3, 3)))
        check_kernel_matrix(rbf_kernel(x))

    @pytest.mark.parametrize(
        ("matrix", "message"),
        [
            (np.ones((2, 3)), "square matrix"),
            (np.array([[1.0, np.nan], [np.nan, 1.0]]), "NaN"),
            (np.array([[1.0, 0.5], [0.4, 1.0]]), r"not symmetric, k\(0, 1\) = 0.5 but k\(1, 0\) = 0.4"),
            (np.array([[1.0, 0.0], [0.0, -0.1]]), r"not positive semi-definite, k\(1, 1\) = -0.1 is negative"),
            (np.array([[1.0, 2.0], [2.0, 1.0]]), "not positive semi-definite"),
        ],
    )
    def test_bad(self, matrix, message):
        with pytest.raises(ValueError, match=message):
            check_kernel_matrix(matrix)

    def test_a_small_negative_eigenvalue_is_refused(self, rng):
        basis, _ = np.linalg.qr(rng.normal(size=(30, 30)))
        values = np.linspace(1.0, 2.0, 30)
        check_kernel_matrix(_symmetric(basis, values))
        values[3] = -1e-6
        with pytest.raises(ValueError, match="not positive semi-definite"):
            check_kernel_matrix(_symmetric(basis, values))


def _symmetric(basis, values):
    matrix = (basis * values) @ basis.T
    return 0.5 * (matrix + matrix.T)
