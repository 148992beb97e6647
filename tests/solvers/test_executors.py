"""Work on batches gives the same bits in other processes as in this one, because it is stateless."""

from __future__ import annotations

import pickle
from inspect import signature
from types import FunctionType

import numpy as np
import pytest

from helpers.cut_problems import Drawn, ElsewhereExecutor, cut, references
from helpers.small_problems import BARE_COLUMNS
from oracles.objective import LOSSES
from partwise import Problem, solve
from partwise.problem import BatchSums, LabelledBatch, ThreadExecutor, Work
from partwise.problem.dual_points import DualPoint
from partwise.problem.losses import Loss
from partwise.problem.tasks import OutputArray
from partwise.solvers import suitable_solvers
from partwise.solvers.engine.point_conversions import ForeignPoint, check_point, expected_counts, gibbs_scores

SIZES = (3, 1, 2)


@pytest.fixture(scope="module")
def elsewhere():
    executor = ElsewhereExecutor()
    yield executor
    executor.close()


def both(elsewhere, kind: str, loss: str, sizes=SIZES) -> tuple[Problem, Problem]:
    """Return the problem with batches in memory, and with each batch in another process."""
    own = Loss(loss, *LOSSES[loss])
    here = Problem.of(cut(kind, 5, sizes), own, 0.7)
    return here, Problem.of(references(kind, 5, sizes), own, 0.7, executor=elsewhere)


@pytest.mark.parametrize(
    ("solver", "kind", "loss"),
    [
        ("lbfgs", "chain-tied", "log"),
        ("newton", "multiclass", "log"),
        ("newton", "chain-untied", "smoothed-hinge"),
        ("eg-batch", "chain-tied", "hinge"),
        ("eg-primal", "projective", "softmax-margin"),
        ("excessive-gap", "spanning", "hinge"),
        ("one-slack", "chain-tied", "hinge"),
        ("bmrm", "multiclass", "log"),
        ("extragradient", "graph", "hinge"),
        ("gis", "maxent", "softmax-margin"),
    ],
)
@BARE_COLUMNS
def test_other_processes_train_the_same_weights(elsewhere, solver, kind, loss):
    here, there = both(elsewhere, kind, loss)
    expected, result = (solve(problem, solver, tol=0, max_passes=20) for problem in (here, there))
    np.testing.assert_array_equal(result.weights, expected.weights)
    assert (result.primal, result.dual, result.gap, result.passes) == (
        expected.primal,
        expected.dual,
        expected.gap,
        expected.passes,
    )


def test_auto_works_with_batches_in_other_processes(elsewhere):
    here, there = both(elsewhere, "multiclass", "log")
    result = solve(there, tol=1e-2)
    assert result.status == "converged"
    assert result.solver in suitable_solvers(there)
    assert abs(result.primal - solve(here, tol=1e-2).primal) <= 2e-2 * result.primal


def test_visits_of_single_examples_need_batches_in_memory(elsewhere):
    here, there = both(elsewhere, "chain-tied", "log")
    assert set(suitable_solvers(here)) - set(suitable_solvers(there)) == {
        "block-dual",
        "eg",
        "eg-prox",
        "sdca",
        "sgd",
    }
    with pytest.raises(ValueError, match="'eg' needs batches in memory, which this problem does not have"):
        solve(there, "eg")
    with pytest.raises(ValueError, match="do not lie in memory"):
        there.sums.in_memory()


def test_one_batch_elsewhere(elsewhere):
    # The inner products of its weights must be computed where its features are, in the other process.
    here, there = both(elsewhere, "multiclass", "log", (5,))
    expected, result = (solve(problem, "newton", tol=1e-6) for problem in (here, there))
    np.testing.assert_allclose(result.weights, expected.weights, atol=1e-6)


def columns_travel(executor):
    here, there = both(executor, "maxent", "log")
    weights = np.linspace(-1.0, 1.0, here.n_weights)
    mine, theirs = there.sums.scaling_constants, here.sums.scaling_constants
    for name in ("empirical", "mass", "weights", "labels", "gold", "n_cells"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    np.testing.assert_array_equal(there.sums.scaling_extremes(), here.sums.scaling_extremes())
    np.testing.assert_array_equal(there.sums.scaling_expectations(weights), here.sums.scaling_expectations(weights))
    assert there.sums.scaling_largest_sum() == here.sums.scaling_largest_sum() > 0
    assert there.sums.scaling_separates(weights) == here.sums.scaling_separates(weights)
    assert there.sums.describe_weight(1) == here.sums.describe_weight(1)


def every_task() -> set[FunctionType]:
    """Return the tasks of `BatchSums`, by name."""
    functions = [each for name, each in vars(BatchSums).items() if isinstance(each, FunctionType) and name[0] != "_"]
    return {each for each in functions if list(signature(each).parameters)[:2] == ["self", "n_jobs"]}


def test_every_task_works_in_another_process(rng):
    executor = ElsewhereExecutor(1)
    here, there = both(executor, "multiclass", "hinge")
    w = rng.normal(size=here.n_weights)
    counts = here.sums.marginals_of_scores(here.sums.near_gold_scores(2.0))[0]
    scores = here.sums.linear_scores(w, 1.0)
    np.testing.assert_array_equal(there.sums.linear_scores(w, 1.0), scores)
    points = [DualPoint.of_linear(w, 0.5), DualPoint.of_scores(scores), DualPoint.of_counts(counts)]
    points += [DualPoint.of_cliques(counts), solve(here, "bcfw", tol=1e-2).dual_point.with_blocks()]
    for point in points:
        assert there.dual_value(point) == here.dual_value(point)
    cliques = here.sums.cliques_of_scores(scores)
    np.testing.assert_array_equal(there.sums.cliques_of_scores(scores), cliques)
    np.testing.assert_array_equal(there.sums.read_cliques(cliques)[1], here.sums.read_cliques(cliques)[1])
    for given, ask in ((cliques, "scores_of_cliques"), (counts, "scores_of_counts")):
        mine, theirs = (getattr(problem.sums, ask)(given, 1e-9, 1e-6, 5)[0] for problem in (there, here))
        np.testing.assert_array_equal(mine, theirs)
    for question in ("gold_features", "slot_curvatures", "slot_costs", "largest_cost"):
        np.testing.assert_array_equal(getattr(there.sums, question)(), getattr(here.sums, question)())
    np.testing.assert_array_equal(there.sums.margins(w, 0.3), here.sums.margins(w, 0.3))
    np.testing.assert_array_equal(there.slot_offsets, here.slot_offsets)
    np.testing.assert_array_equal(there.sums.psi2_bounds(here.active), here.sums.psi2_bounds(here.active))
    np.testing.assert_array_equal(there.gold[1], here.gold[1])
    assert there.sums.of_examples(BatchSums.gold_sizes, there.active) == here.sums.of_examples(
        BatchSums.gold_sizes, here.active
    )
    assert there.sums.lacks("column access") == here.sums.lacks("column access")
    for start in (there, here):
        assert start.certificate(w, points[0]) == here.certificate(w, points[0])
    for ask in (
        lambda p: p.sums.eg_batch_step(w, 0.5, scores, scores.copy()),
        lambda p: p.sums.eg_primal_point(w, 0.5, 0.2),
    ):
        for mine, theirs in zip(ask(there), ask(here), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(there.sums.marginals_of_scores(scores)[1], here.sums.marginals_of_scores(scores)[1])
    np.testing.assert_array_equal(there.sums.cliques_of_scores(scores), here.sums.cliques_of_scores(scores))
    for point in (DualPoint.of_cliques(counts), DualPoint.of_counts(counts)):
        np.testing.assert_array_equal(expected_counts(there, point)[0], expected_counts(here, point)[0])
        np.testing.assert_array_equal(gibbs_scores(there, point).scores, gibbs_scores(here, point).scores)
    wrong = counts.copy()
    wrong[-2:] = 1.0, 2.0  # a label occurs twice
    for problem in (there, here):
        for point in (DualPoint.of_cliques(counts), DualPoint.of_counts(counts), points[-1]):
            check_point(problem, point)
        with pytest.raises(ValueError, match="those of a clique do not sum to 1"):
            check_point(problem, DualPoint.of_cliques(wrong))
        with pytest.raises(ForeignPoint, match="example"):
            check_point(problem, DualPoint.of_counts(wrong))
    np.testing.assert_array_equal(
        there.sums.plane_at(w, 0.5, counts.copy())[1], here.sums.plane_at(w, 0.5, counts.copy())[1]
    )
    np.testing.assert_array_equal(there.value_and_gradient(w)[1], here.value_and_gradient(w)[1])
    np.testing.assert_array_equal(there.plane(w, [4, 1])[1], here.plane(w, [4, 1])[1])
    smooth, elsewhere = both(executor, "multiclass", "log")
    for every in (1, 2):
        mine, theirs = elsewhere.hessian(w, every), smooth.hessian(w, every)
        np.testing.assert_array_equal(mine(w), theirs(w))
        np.testing.assert_array_equal(mine.diagonal(), theirs.diagonal())
    solve(elsewhere, tol=0.1)  # the choice of a solver looks at some examples
    columns_travel(executor)
    executor.close()
    assert every_task() - executor.tasks == set()


def test_second_derivatives_are_those_at_the_given_weights(rng):
    problem = Problem.of(cut("multiclass", 5, SIZES), "log", 0.7)
    w, v = rng.normal(size=(2, problem.n_weights))
    at_w, at_zero = problem.hessian(w), problem.hessian(np.zeros_like(w))
    expected, elsewhere = at_w(v), at_zero(v)
    assert np.abs(elsewhere - expected).max() > 1e-3
    np.testing.assert_array_equal(at_w(v), expected)  # repeated after a question about other weights
    w *= 0  # changing the caller's array must not change the answers
    np.testing.assert_array_equal(at_zero(v), elsewhere)
    np.testing.assert_array_equal(at_w(v), expected)


def test_second_derivatives_use_the_given_marginals(rng):
    problem = Problem.of(cut("multiclass", 5, (5,)), "log", 0.7)
    w, v = rng.normal(size=(2, problem.n_weights))
    marginals = np.zeros(problem.n_slots)
    problem.value_and_gradient(w, marginals)
    expected = problem.hessian(w, marginals=marginals)(v)
    others = np.zeros_like(marginals)
    assert np.abs(problem.hessian(w, marginals=others)(v) - expected).max() > 1e-3
    np.testing.assert_array_equal(problem.hessian(w, marginals=marginals)(v), expected)
    np.testing.assert_allclose(problem.hessian(w)(v), expected, atol=1e-12)


def test_output_arrays_are_sent_as_their_size():
    array = np.arange(1000.0)
    assert OutputArray(array).array is array
    sent = pickle.dumps(OutputArray(array))
    assert len(sent) < 200
    assert pickle.loads(sent).array.shape == (1000,)


def test_one_batch_is_written_to_without_a_copy(rng):
    problem = Problem.of(cut("multiclass", 5, (5,)), "log", 0.7)
    scores = problem.sums.near_gold_scores(1.0)
    seen = []

    class Watching(ThreadExecutor):
        def run(self, work, references, blocks):
            seen.extend(block for blocks_of_one in blocks for block in blocks_of_one)
            return super().run(work, references, blocks)

    problem.sums.executor = Watching()
    marginals, moved = np.zeros(problem.n_slots), np.empty(problem.n_slots)
    problem.sums.plane_at(np.zeros(problem.n_weights), 1.0, marginals)
    problem.sums.eg_batch_step(np.zeros(problem.n_weights), 0.5, scores, moved)
    assert seen[0] is marginals
    assert seen[1] is scores
    assert seen[2].array is moved


def test_batches_are_opened_once_and_forgotten_with_their_references():
    class Counted(LabelledBatch):
        opened = 0

        def open(self):
            Counted.opened += 1
            return self

    batches = [Counted(b.batch, b.gold, b.sample_weight) for b in cut("multiclass", 5, SIZES)]
    executor = ThreadExecutor()
    problem = Problem.of(batches, "log", 0.7, executor=executor)
    solve(problem, "lbfgs", tol=1e-6)
    assert Counted.opened == 3
    del problem, batches
    assert len(executor._opened) == 0


def test_work_and_references_can_be_pickled():
    work = Work(BatchSums.value, Loss("log", 1.0, 0.0), (np.zeros(3),), 2)
    again = pickle.loads(pickle.dumps(work))
    assert (again.task, again.loss, again.n_jobs) == (work.task, work.loss, 2)
    reference = references("multiclass", 5, SIZES)[1]
    assert isinstance(reference, Drawn)
    assert pickle.loads(pickle.dumps(reference)) == reference
    assert reference.open().n_slots == reference.n_slots
