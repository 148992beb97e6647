"""Training with kernels: a linear kernel gives the iterates of explicit features, and all certificates hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from helpers.kernel_maps import kernel_map
from partwise import Problem, solve
from partwise._core import DenseKernel, decode
from partwise.features import chain_map, multiclass_map
from partwise.features.kernels import RBF, KernelFeatures, Linear, Polynomial, Precomputed
from partwise.problem.penalties import ElasticNet
from partwise.solvers import EG, EGBatch, EGPrimal, ExcessiveGap
from partwise.solvers import suitable_solvers as suitable
from partwise.structures import Chain, Multiclass

LENGTHS = np.array([3, 1, 2, 5, 4], dtype=np.int64)
N_ROWS, N_EDGES = int(LENGTHS.sum()), int((LENGTHS - 1).sum())
SOLVERS = {
    "excessive-gap": ExcessiveGap(),
    "excessive-gap, theorem": ExcessiveGap(smoothing="theorem"),
    "eg": EG(),
    "eg, theorem": EG(step_size="theorem", start="uniform", order="random"),
    "eg-batch": EGBatch(),
    "eg-primal": EGPrimal(),
}
OMEGA = np.array([1.0, 0.5, 2.0, 0.0, 1.3])


class Data:
    """Rows, edges and labels, with kernel maps and explicit maps of them."""

    def __init__(self, kind, seed=3, sparse=False):
        rng = np.random.default_rng(seed)
        self.rows = rng.normal(size=(N_ROWS, 4)) * (rng.random((N_ROWS, 4)) < 0.7)
        self.edges = rng.normal(size=(N_EDGES, 3))
        self.kind = kind
        if kind == "multiclass":
            self.structure = Multiclass(N_ROWS, 3)
            self.omega = np.repeat(OMEGA, LENGTHS)
        else:
            self.structure = Chain(LENGTHS, 3, tied=kind != "untied", ends=kind == "ends")
            self.omega = OMEGA
        self.gold = self.structure.encode(rng.integers(0, 3, N_ROWS).astype(np.int64))
        self.given = csr_array(self.rows) if sparse else self.rows

    def problem(self, features, loss="hinge", l2=0.7):
        return Problem(features, self.structure, self.gold, loss, l2, sample_weight=self.omega)

    def kernel(self, kernel="linear", edge_kernel="linear", **options):
        if self.kind == "untied":
            options |= {"edge_rows": self.edges, "edge_kernel": edge_kernel}
        return kernel_map(self.structure, self.given, kernel, **options)

    def explicit(self, rows=None, edges=None):
        rows = self.given if rows is None else rows
        if self.kind == "multiclass":
            return multiclass_map(self.structure, rows)
        if self.kind == "untied":
            return chain_map(self.structure, rows, edge_rows=self.edges if edges is None else edges)
        return chain_map(self.structure, rows)

    def expand(self, coefficients):
        """Convert coefficients of the linear kernel to explicit weights."""
        width, parts, start = self.structure.width, [], 0
        blocks = [(self.rows, width)] + ([(self.edges, 3 * width)] if self.kind == "untied" else [])
        for rows, columns in blocks:
            size = len(rows) * columns
            parts.append((rows.T @ coefficients[start : start + size].reshape(-1, columns)).ravel())
            start += size
        return np.concatenate([*parts, coefficients[start:]])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["multiclass", "tied", "ends", "untied"])
@pytest.mark.parametrize("name", SOLVERS)
def test_the_linear_kernel_gives_the_explicit_iterates(name, kind, sparse):
    data, solver = Data(kind, sparse=sparse), SOLVERS[name]
    problems = data.problem(data.kernel()), data.problem(data.explicit())
    states = [solver.init_state(problem, np.random.default_rng(0), None) for problem in problems]
    for _ in range(25):
        ours, theirs = (solver.certificate(problem, state) for problem, state in zip(problems, states, strict=True))
        np.testing.assert_allclose(data.expand(ours.weights), theirs.weights, atol=1e-9)
        assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, rel=1e-9)
        assert ours.certificate.dual == pytest.approx(theirs.certificate.dual, rel=1e-9, abs=1e-9)
        for form in ("scores", "counts"):
            if getattr(theirs.point, form) is not None:
                np.testing.assert_allclose(getattr(ours.point, form), getattr(theirs.point, form), atol=1e-9)
        for problem, state in zip(problems, states, strict=True):
            solver.step(problem, state)
    assert states[0].visits == states[1].visits


@pytest.mark.parametrize("loss", ["log", "hinge", "softmax-margin"])
@pytest.mark.parametrize("kernel", [RBF(gamma=0.3), Polynomial(degree=2, gamma=0.5), Linear(bias=0.5)], ids=str)
@pytest.mark.parametrize("kind", ["multiclass", "tied", "untied"])
def test_certificates(kind, kernel, loss):
    """Every solver that fits gives a certificate that agrees with explicit features of the same inner products."""
    data = Data(kind)
    problem = data.problem(data.kernel(kernel, RBF(gamma=0.5)), loss)
    equal = data.problem(data.explicit(factor(kernel, data.rows), factor(RBF(gamma=0.5), data.edges)), loss)
    best = solve(equal, "excessive-gap", tol=1e-4) if loss == "hinge" else solve(equal, tol=1e-9)
    assert {"lbfgs", "bcfw"}.isdisjoint(suitable(problem))
    assert {"eg", "eg-batch"} <= set(suitable(problem))
    assert ("excessive-gap" in suitable(problem)) == (loss == "hinge")
    for name in suitable(problem):
        result = solve(problem, name, tol=5e-2, random_state=0)
        assert 0 <= result.gap <= 5e-2 * result.primal
        assert np.all(result.history["gap"] >= 0)
        assert result.dual <= best.primal + 1e-9
        assert best.dual <= result.primal + 1e-9


def factor(kernel, rows):
    n = len(rows)
    values, basis = np.linalg.eigh(DenseKernel(kernel.core(), rows).values(0, n, 0, n).reshape(n, n))
    return basis * np.sqrt(np.maximum(values, 0.0))


def test_threads_change_no_bit():
    data = Data("tied")
    problem = data.problem(data.kernel("rbf"))
    for name in ("excessive-gap", "eg", "eg-batch"):
        runs = [solve(problem, name, tol=5e-2, n_jobs=n, random_state=0).weights for n in (1, 2)]
        np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize("name", ["excessive-gap", "eg", "eg-batch"])
def test_little_memory_gives_the_same_result(name):
    data = Data("untied")
    # room for 200 of the 325 kernel values
    small = data.kernel("rbf", "rbf", memory_limit=1600, recompute=True)
    runs = [solve(data.problem(f), name, tol=5e-2, random_state=0) for f in (data.kernel("rbf", "rbf"), small)]
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)


def test_solvers_that_need_explicit_weights_are_refused():
    problem = Data("tied").problem(Data("tied").kernel("rbf"))
    for name in ("bcfw", "lbfgs"):
        with pytest.raises(ValueError, match=f"solver '{name}' needs explicit weights.*solvers that fit: eg"):
            solve(problem, name)
    assert solve(problem, tol=0.1, random_state=0).solver == "eg"


def test_an_l1_penalty_is_refused():
    data = Data("multiclass")
    with pytest.raises(ValueError, match="l1 penalty needs explicit weights"):
        data.problem(data.kernel("rbf"), "log", ElasticNet(1.0))
    with pytest.raises(ValueError, match="l1 penalty needs explicit weights"):
        data.problem(data.kernel("rbf"), "log").with_penalty(ElasticNet(1.0))


class TestPrediction:
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("kind", ["multiclass", "tied", "ends", "untied"])
    def test_predictions_from_coefficients_equal_those_from_explicit_weights(self, kind, sparse):
        data, new = Data(kind, sparse=sparse), Data(kind, seed=9, sparse=sparse)
        edges = {"edge_rows": data.edges, "edge_kernel": "linear"} if kind == "untied" else {}
        features = KernelFeatures.of(data.given, "linear", **edges)
        problem = data.problem(features.map(data.structure), l2=0.1)
        weights = solve(problem, "excessive-gap", tol=1e-2).weights
        edge_rows = {"edge_rows": new.edges} if kind == "untied" else {}
        found = decode(data.structure, features.map(data.structure, new.given, **edge_rows), weights)
        expected = decode(data.structure, new.explicit(), data.expand(weights))
        np.testing.assert_array_equal(found[1], expected[1])
        np.testing.assert_allclose(found[3], expected[3], atol=1e-9)

    @pytest.mark.parametrize(
        ("kind", "kernel"), [(k, f) for k in ("multiclass", "tied", "untied") for f in ("rbf", "precomputed")][:-1]
    )
    def test_zero_coefficients_are_dropped(self, kind, kernel):
        data, new = Data(kind), Data(kind, seed=9)
        edges = {"edge_rows": data.edges, "edge_kernel": "rbf"} if kind == "untied" else {}
        edge_rows = {"edge_rows": new.edges} if kind == "untied" else {}
        rows, queries = data.rows, new.rows
        if kernel == "precomputed":
            rows, queries = data.rows @ data.rows.T, new.rows @ data.rows.T
        features = KernelFeatures.of(rows, kernel, **edges)
        problem = data.problem(features.map(data.structure), l2=0.1)
        weights = solve(problem, "excessive-gap", tol=1e-2).weights
        # examples of weight zero leave no coefficients
        less, fewer = features.compress(data.structure, weights)
        assert less.nodes.n_support == N_ROWS - 5
        if less.edges is not None:
            assert less.edges.n_support == N_EDGES - 4
        assert len(fewer) < len(weights)
        before = decode(data.structure, features.map(data.structure, queries, **edge_rows), weights)
        after = decode(data.structure, less.map(data.structure, queries, **edge_rows), fewer)
        np.testing.assert_array_equal(before[1], after[1])
        np.testing.assert_allclose(before[3], after[3], atol=1e-9)
        again, same = less.compress(data.structure, fewer)
        assert again.nodes.n_support == less.nodes.n_support
        np.testing.assert_array_equal(same, fewer)

    def test_a_model_with_zero_coefficients_keeps_one_support_row(self):
        data = Data("tied")
        features = KernelFeatures.of(data.rows, "rbf")
        weights = np.zeros(features.map(data.structure).num_weights)
        less, fewer = features.compress(data.structure, weights)
        assert less.nodes.n_support == 1
        assert not decode(data.structure, less.map(data.structure, data.rows), fewer)[3].any()


class TestPrecomputed:
    def test_a_precomputed_matrix_gives_the_result_of_its_kernel(self):
        data = Data("tied")
        matrix = factor(RBF(gamma=0.3), data.rows)
        matrix = matrix @ matrix.T
        data.given = matrix
        ours = solve(data.problem(data.kernel(Precomputed())), "excessive-gap", tol=1e-3)
        data.given = data.rows
        theirs = solve(data.problem(data.kernel(RBF(gamma=0.3))), "excessive-gap", tol=1e-3)
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-9)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda k: k - 3.0 * np.eye(len(k)), "not positive semi-definite"),
            (lambda k: np.triu(k), "not symmetric"),
            (lambda k: k[:-1], "square matrix"),
            (lambda k: csr_array(k), "dense matrix"),
        ],
    )
    def test_invalid_kernel_matrices_are_refused(self, change, message):
        rows = Data("tied").rows
        with pytest.raises(ValueError, match=message):
            KernelFeatures.of(change(rows @ rows.T), "precomputed")

    def test_precomputed_prediction_needs_a_column_per_training_row(self):
        rows = Data("tied").rows
        features = KernelFeatures.of(rows @ rows.T, "precomputed")
        with pytest.raises(ValueError, match=f"4 columns, there were {N_ROWS} training rows"):
            features.map(Multiclass(2, 3), np.ones((2, 4)))
