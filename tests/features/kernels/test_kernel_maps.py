"""Feature maps of kernels agree with maps of explicit features that have the same inner products."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from helpers.kernel_maps import kernel_map
from oracles.enumerate import enumeration_of
from partwise._core import DenseKernel, KernelFunction, KernelSegment, LinearMap
from partwise.features import chain_map, multiclass_map
from partwise.features.kernels import RBF, KernelFeatures, Linear, Polynomial
from partwise.structures import Chain, Multiclass

LENGTHS = np.array([3, 1, 2, 5], dtype=np.int64)
N_ROWS, N_EDGES = 11, 7
KERNELS = [Linear(), Polynomial(degree=2, gamma=0.5), RBF(gamma=0.3)]


def factor(kernel, rows):
    """Explicit features with the kernel's inner products: a square root of its matrix."""
    matrix = DenseKernel(kernel.core(), rows).values(0, len(rows), 0, len(rows)).reshape(len(rows), len(rows))
    values, basis = np.linalg.eigh(matrix)
    return basis * np.sqrt(np.maximum(values, 0.0))


def by_place(features, lengths):
    """Give each place in a sequence features of its own: one block of columns per place."""
    places = np.concatenate([np.arange(n) for n in lengths])
    out = np.zeros((len(features), places.max() + 1, features.shape[1]))
    out[np.arange(len(features)), places] = features
    return out.reshape(len(features), -1)


def make(kind, rng, kernel):
    """Return (structure, kernel map, explicit map, explicit weights from coefficients)."""
    rows, edges = rng.normal(size=(N_ROWS, 3)), rng.normal(size=(N_EDGES, 2))
    kind, _, placed = kind.partition("-")
    if kind == "multiclass":
        structure = Multiclass(N_ROWS, 3)
        phi = factor(kernel, rows)
        maps = kernel_map(structure, rows, kernel), multiclass_map(structure, phi)
        blocks = [(phi, structure.width)]
    else:
        structure = Chain(LENGTHS, 3, tied=kind != "untied", ends=kind == "ends")
        phi = factor(kernel, rows)
        options = {"by_position": True} if placed else {}
        if placed:
            phi = by_place(phi, LENGTHS)
        blocks = [(phi, structure.width)]
        if kind == "untied":
            psi = factor(RBF(gamma=0.5), edges)
            if placed:
                psi = by_place(psi, LENGTHS - 1)
            maps = (
                kernel_map(structure, rows, kernel, edge_rows=edges, edge_kernel=RBF(gamma=0.5), **options),
                chain_map(structure, phi, edge_rows=psi),
            )
            blocks.append((psi, 3 * structure.width))
        else:
            maps = kernel_map(structure, rows, kernel, **options), chain_map(structure, phi)

    def explicit(coefficients):
        parts, start = [], 0
        for features, width in blocks:
            size = len(features) * width
            parts.append((features.T @ coefficients[start : start + size].reshape(-1, width)).ravel())
            start += size
        return np.concatenate([*parts, coefficients[start:]])

    return structure, *maps, explicit


def slots_of(structure, features, rng, i):
    """Draw a slot vector that is zero in padding."""
    used = enumeration_of(structure, i).used
    return rng.normal(size=features.num_slots(i)) * used


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("kind", ["multiclass", "tied", "ends", "untied", "tied-placed", "untied-placed"])
def test_geometry(kind, kernel, rng):
    structure, ours, theirs, explicit = make(kind, rng, kernel)
    assert ours.capabilities() == frozenset()
    w, v = (sum_of_transposes(structure, ours, rng) for _ in range(2))
    for n_jobs in (1, 2):
        assert ours.dot(w, v, n_jobs) == pytest.approx(explicit(w) @ explicit(v), rel=1e-9, abs=1e-9)
        assert ours.dot(w, w, n_jobs) == pytest.approx(explicit(w) @ explicit(w), rel=1e-9)
    assert ours.dot(w, w) == pytest.approx(ours.dot(w, w.copy()), rel=1e-12)  # one vector passed twice takes a shortcut
    for i in range(structure.num_examples):
        np.testing.assert_allclose(ours.scores(i, w, 0.5), theirs.scores(i, explicit(w), 0.5), atol=1e-9)
        slots = slots_of(structure, ours, rng, i)
        assert ours.transpose_norm2(i, slots) == pytest.approx(theirs.transpose_norm2(i, slots), rel=1e-9)
        after, expected = w.copy(), explicit(w)
        ours.add_transpose(i, slots, 0.7, after)
        theirs.add_transpose(i, slots, 0.7, expected)
        np.testing.assert_allclose(explicit(after), expected, atol=1e-9)
        with pytest.raises(ValueError, match="explicit weights"):
            ours.project(i, slots)
        with pytest.raises(ValueError, match="explicit weights"):
            ours.slot_rows(i, np.arange(1))


def sum_of_transposes(structure, features, rng):
    weights = np.zeros(features.num_weights)
    for i in range(structure.num_examples):
        features.add_transpose(i, slots_of(structure, features, rng, i), 1.0, weights)
    return weights


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("kind", ["multiclass", "tied", "untied"])
def test_psi2_bound_is_at_least_the_largest_squared_norm(kind, kernel, rng):
    structure, ours, _, _ = make(kind, rng, kernel)
    for i in range(structure.num_examples):
        counts = enumeration_of(structure, i).counts
        chosen = counts[rng.integers(len(counts), size=20)]
        largest = max(ours.transpose_norm2(i, a - b) for a in chosen for b in chosen)
        assert largest <= ours.psi2_bound(i) * (1 + 1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_linear_bound_is_that_of_explicit_features(sparse, rng):
    rows = rng.normal(size=(N_ROWS, 3)) * (rng.random((N_ROWS, 3)) < 0.7)
    rows = csr_array(rows) if sparse else rows
    structure = Chain(LENGTHS, 3)
    explicit, kernel = chain_map(structure, rows), kernel_map(structure, rows, "linear")
    for i in range(len(LENGTHS)):
        assert kernel.psi2_bound(i) == pytest.approx(explicit.psi2_bound(i), rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_sparse_rows_are_dense_rows_with_zeros(kernel, rng):
    rows = rng.normal(size=(N_ROWS, 4)) * (rng.random((N_ROWS, 4)) < 0.5)
    structure = Chain(LENGTHS, 3)
    dense, sparse = kernel_map(structure, rows, kernel), kernel_map(structure, csr_array(rows), kernel)
    w = rng.normal(size=dense.num_weights)
    assert sparse.num_weights == dense.num_weights
    assert sparse.dot(w, w) == pytest.approx(dense.dot(w, w), rel=1e-10)
    for i in range(len(LENGTHS)):
        np.testing.assert_allclose(sparse.scores(i, w), dense.scores(i, w), atol=1e-11)


class TestMemory:
    def segment(self, rng, limit, recompute=True):
        kernel = DenseKernel(KernelFunction("rbf"), rng.normal(size=(N_ROWS, 3)))
        return KernelSegment(kernel, np.array([0, 3, 4, 6, 11]), 3, 4, limit, recompute)

    @pytest.mark.parametrize("rows_kept", [0, 4, 6, 11])
    def test_kernel_rows_beyond_the_memory_limit_are_recomputed(self, rng, rows_kept):
        state = rng.bit_generator.state
        all_kept = LinearMap([self.segment(rng, 1e9)])
        rng.bit_generator.state = state
        segment = self.segment(rng, 8.0 * N_ROWS * rows_kept)
        some_kept = LinearMap([segment])
        w = rng.normal(size=all_kept.num_weights)
        for _ in range(2):
            for i in range(4):
                np.testing.assert_array_equal(some_kept.scores(i, w), all_kept.scores(i, w))
            assert some_kept.dot(w, w, 2) == all_kept.dot(w, w)
        assert segment.kept_bytes <= 8.0 * N_ROWS * rows_kept
        assert segment.kept_bytes >= 8.0 * N_ROWS * min(rows_kept, 4)

    def test_too_large_is_refused(self, rng):
        with pytest.raises(ValueError, match=r"kernel matrix of 11 rows takes 0 MB, above the memory limit"):
            self.segment(rng, 8.0 * N_ROWS**2 - 1, recompute=False)
        self.segment(rng, 8.0 * N_ROWS**2, recompute=False)

    def test_the_size_is_checked_before_rows_are_read(self):
        """A matrix of two hundred thousand rows is refused before any row is read."""
        rows = np.broadcast_to(np.zeros((1, 1)), (200_000, 1))
        with pytest.raises(ValueError, match=r"200000 training rows takes 320000 MB, above the .* 2000 MB: raise"):
            KernelFeatures.of(rows, "rbf")
        with pytest.raises(ValueError, match=r"of 3 \+ 2 training rows"):
            KernelFeatures.of(np.ones((3, 1)), "rbf", edge_rows=np.ones((2, 1)), edge_kernel="rbf", memory_limit=100)


class TestBadInput:
    def test_rows_and_structures(self, rng):
        rows = rng.normal(size=(N_ROWS, 3))
        features = KernelFeatures.of(rows, "rbf")
        with pytest.raises(ValueError, match="11 rows of input, the structure has 12"):
            features.map(Multiclass(12, 3))
        with pytest.raises(ValueError, match="5 rows of input, the structure has 4"):
            features.map(Multiclass(4, 3), rng.normal(size=(5, 3)))
        with pytest.raises(ValueError, match=r"4 inputs, the support has 3"):
            features.map(Multiclass(4, 3), rng.normal(size=(4, 4)))
        with pytest.raises(ValueError, match="dense, these are sparse"):
            features.map(Multiclass(4, 3), csr_array(rng.normal(size=(4, 3))))
        with pytest.raises(ValueError, match="untied chain needs a kernel on edges"):
            features.map(Chain(LENGTHS, 3, tied=False))
        with pytest.raises(ValueError, match="rows of edges"):
            features.map(Chain(LENGTHS, 3), rows, edge_rows=rows)

    def test_edges(self, rng):
        rows, edges = rng.normal(size=(N_ROWS, 3)), rng.normal(size=(N_EDGES, 3))
        with pytest.raises(ValueError, match="both or neither"):
            KernelFeatures.of(rows, "rbf", edge_rows=edges)
        features = KernelFeatures.of(rows, "rbf", edge_rows=edges, edge_kernel="linear")
        with pytest.raises(ValueError, match="needs an untied chain"):
            features.map(Chain(LENGTHS, 3))
        with pytest.raises(ValueError, match="multiclass problem has no edges"):
            features.map(Multiclass(N_ROWS, 3))
        mask = np.ones(12, dtype=np.uint8)
        with pytest.raises(ValueError, match="mask needs a tied chain"):
            features.map(Chain(LENGTHS, 3, tied=False), transition_mask=mask)

    @pytest.mark.parametrize("limit", [-1.0, np.nan])
    def test_limits(self, limit):
        with pytest.raises(ValueError, match="memory_limit must be"):
            KernelFeatures.of(np.ones((3, 1)), "rbf", memory_limit=limit)

    def test_maps_of_new_rows_refuse_training(self, rng):
        rows = rng.normal(size=(4, 3))
        features = KernelFeatures.of(rng.normal(size=(N_ROWS, 3)), "rbf").map(Multiclass(4, 3), rows)
        weights = np.zeros(features.num_weights)
        for call in (
            lambda: features.add_transpose(0, np.zeros(4), 1.0, weights),
            lambda: features.dot(weights, weights),
            lambda: features.psi2_bound(0),
        ):
            with pytest.raises(ValueError, match="for prediction"):
                call()
