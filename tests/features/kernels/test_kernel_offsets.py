"""Data far from the origin: computed kernels stay valid, and certificates agree with those of the centred data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from helpers.kernel_maps import kernel_map
from partwise import Problem, SequenceTagger, solve
from partwise._core import DenseKernel, SparseKernel, SparseRows, StoredKernel
from partwise.features import Attributes
from partwise.features.kernels import RBF, Linear, Part, Polynomial, check_kernel_matrix, scale_gamma
from partwise.structures import Multiclass


def near_and_far(kind, n=90, d=5):
    """Return rows near 0 and the same rows far from 0, such that no digit is lost between the two."""
    rng = np.random.default_rng(5)
    near = np.round(rng.normal(size=(n, d)) * 2.0**20) / 2.0**20
    offset = np.zeros((n, d))
    if kind == "all columns":
        offset[:] = 2.0**23
    elif kind == "one column":
        offset[:, 2] = 2.0**22
    elif kind == "two clusters":  # two clusters in opposite directions, which no common centre brings near 0
        offset[::2], offset[1::2] = 2.0**24, -(2.0**24)
    far = near + offset
    assert np.array_equal(far - offset, near)
    if kind == "two clusters":
        near = near + np.where(np.arange(n)[:, None] % 2, 1e3, -1e3)  # so far apart that the kernel value is 0
    return near, far


def squared_distances(rows):
    return np.array([((rows - row) ** 2).sum(axis=1) for row in rows])


def matrix_of(function, rows, sparse, queries=None):
    n, m = len(rows) if queries is None else len(queries), len(rows)
    tables = [rows] if queries is None else [queries, rows]
    kernel = SparseKernel(function, *map(sparse_rows, tables)) if sparse else DenseKernel(function, *tables)
    return kernel.values(0, n, 0, m).reshape(n, m)


def sparse_rows(rows):
    table = csr_array(rows)
    return SparseRows(rows.shape[1], table.indptr.astype(np.int64), table.indices.astype(np.int64), table.data)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["all columns", "one column", "two clusters"])
def test_rbf_values_do_not_cancel(kind, sparse):
    near, far = near_and_far(kind)
    function = RBF(gamma=0.5).core()
    expected = np.exp(-0.5 * squared_distances(near))
    found = matrix_of(function, far, sparse)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(matrix_of(function, far, sparse, far[3:20]), expected[3:20], rtol=1e-12, atol=1e-13)
    few = far[:30]  # few support rows, where sparse rows are compared one by one
    np.testing.assert_allclose(matrix_of(function, few, sparse), expected[:30, :30], rtol=1e-12, atol=1e-13)
    check_kernel_matrix(found)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("exponent", [-300, -30, 30, 300])
def test_rbf_values_of_any_scale(exponent, sparse):
    """Only gamma |x - y|^2 counts: scaling rows by 2^k and gamma by 2^-2k changes no kernel value."""
    near, _ = near_and_far("all columns")
    expected = np.exp(-0.5 * squared_distances(near))
    rows, gamma = near * 2.0**exponent, 0.5 * 2.0 ** (-2 * exponent)
    np.testing.assert_allclose(matrix_of(RBF(gamma=gamma).core(), rows, sparse), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("sparse", [False, True])
def test_rbf_values_where_squares_overflow(sparse):
    rows = np.array([[1e200, 1.0], [1e200, 2.0], [-1e200, 1.0]])
    expected = [[1.0, np.exp(-0.5), 0.0], [np.exp(-0.5), 1.0, 0.0], [0.0, 0.0, 1.0]]
    np.testing.assert_allclose(matrix_of(RBF(gamma=0.5).core(), rows, sparse), expected, rtol=1e-14)


def test_the_scale_of_sparse_data_far_from_0():
    _, far = near_and_far("all columns")
    table = csr_array(far)
    rows = Attributes(table.indptr.astype(np.int64), table.indices.astype(np.int64), far.shape[1], table.data)
    assert scale_gamma(rows) == pytest.approx(1 / (far.shape[1] * far.var()), rel=1e-12)


def problem_of(rows, kernel, labels):
    structure = Multiclass(rows.shape[0], 3)
    return Problem(kernel_map(structure, rows, kernel), structure, structure.encode(labels), "hinge", 0.01)


def intervals(problem, tol):
    names = ("eg", "eg-batch", "excessive-gap")
    results = [solve(problem, name, tol=tol, random_state=0, max_passes=3000) for name in names]
    assert all(0 <= result.gap <= tol * result.primal for result in results)
    return [(result.dual, result.primal) for result in results]


def assert_overlap(found):
    slack = 1e-9 * max(primal for _, primal in found)
    assert max(dual for dual, _ in found) <= min(primal for _, primal in found) + slack, found


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["all columns", "one column"])
def test_certified_intervals_of_rbf_do_not_depend_on_the_offset(kind, sparse):
    near, far = near_and_far(kind, n=60)
    labels = np.random.default_rng(1).integers(0, 3, len(near))
    given = csr_array(far) if sparse else far
    found = intervals(problem_of(given, RBF(gamma=0.5), labels), 1e-2)
    assert_overlap(found + intervals(problem_of(near, RBF(gamma=0.5), labels), 1e-2))


@pytest.mark.parametrize(("scale", "offset"), [(1e-3, 0.0), (30.0, 0.0), (1.0, 1e3), (1.0, 1e7)])
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=3, gamma=1.0, coef0=1.0), RBF(gamma=1.0)], ids=str)
def test_certified_intervals_overlap(kernel, scale, offset):
    """The interval between dual and primal contains the optimum for both solvers, at hard offsets and scales too."""
    near, _ = near_and_far("all columns", n=40)
    labels = np.random.default_rng(1).integers(0, 3, len(near))
    problem = problem_of(scale * near + offset, kernel, labels)
    results = [solve(problem, name, tol=0.0, random_state=0, max_passes=60) for name in ("eg", "excessive-gap")]
    assert_overlap([(result.dual, result.primal) for result in results])


@pytest.mark.parametrize("sparse", [False, True])
def test_computed_values_are_checked(sparse):
    rows = np.full((4, 2), 1e120)
    with pytest.raises(ValueError, match=r"kernel Polynomial\(degree=3.*: a value is NaN or infinite"):
        kernel_map(Multiclass(4, 3), csr_array(rows) if sparse else rows, Polynomial(gamma=1.0))


def test_a_matrix_damaged_by_cancellation_is_found_by_a_sample(monkeypatch):
    """A sample of the matrix shows that cancellation in |x|^2 + |y|^2 - 2 <x, y> has made it invalid."""
    _, far = near_and_far("all columns", n=900)

    def cancelled(part, queries):
        norms2 = (part.rows**2).sum(axis=1)
        values = np.exp(-0.5 * np.maximum(norms2[:, None] + norms2 - 2 * part.rows @ part.rows.T, 0.0))
        return StoredKernel(values, square=True)

    monkeypatch.setattr(Part, "against", cancelled)
    with pytest.raises(ValueError, match=r"kernel RBF\(gamma=0.5, bias=0.0\): not positive semi-definite"):
        kernel_map(Multiclass(900, 3), far, RBF(gamma=0.5))


def test_the_certificate_of_a_tagger_does_not_depend_on_an_offset():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 6, 40)
    X = [np.round(rng.normal(size=(n, 3)) * 2.0**20) / 2.0**20 for n in lengths]
    y = [["a" if row[0] * row[2] > 0 else "b" for row in rows] for rows in X]
    shift = np.array([0.0, 0.0, 5.4e6])
    taggers = [
        SequenceTagger(kernel="rbf", gamma=0.5, loss="hinge", tol=1e-2, random_state=0).fit(rows, y)
        for rows in (X, [rows + shift for rows in X])
    ]
    assert_overlap([(tagger.result_.dual, tagger.result_.primal) for tagger in taggers])
    for one, two in zip(
        taggers[0].decision_function(X), taggers[1].decision_function([rows + shift for rows in X]), strict=True
    ):
        np.testing.assert_allclose(one, two, atol=1e-7)
