"""A problem in several batches has the optimum and the certificates of the same examples in one batch."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

import numpy as np
import pytest

from helpers.cut_problems import cut, drawn
from helpers.kernel_maps import kernel_map
from helpers.small_problems import (
    BARE_COLUMNS,
    KINDS,
    TOLERANCE,
    certified,
    checked_often,
    kind_for,
    loss_for,
    penalty_for,
)
from oracles.objective import LOSSES
from partwise import ConvergenceWarning, FeatureWarning, Problem, available_solvers, get_solver, solve
from partwise._core import EgOptions, EgState, eg_epoch
from partwise.features import maxent_map
from partwise.problem import Batch, BatchSums, LabelledBatch
from partwise.problem.dual_points import DualPoint
from partwise.problem.losses import Loss
from partwise.problem.penalties import L2, ElasticNet
from partwise.problem.sums import ROUNDS
from partwise.solvers import BCFW, suitable_solvers
from partwise.solvers.dual.base import GibbsBlocks
from partwise.structures import Multiclass

#: Sizes of batches. The third example has no weight; in UNEVEN it is a batch of its own.
SIZES, UNEVEN = (3, 1, 2), (2, 1, 3)
#: Solvers that need all columns in one batch.
ONE_BATCH = {"cd-l1", "cd", "cd-exact", "scgis", "is-bound", "iis"}
pytestmark = BARE_COLUMNS


def whole(kind: str, loss: str, penalty=0.7, sizes=SIZES) -> Problem:
    return Problem.of([drawn(kind, 5, sum(sizes))], Loss(loss, *LOSSES[loss]), penalty)


def parted(kind: str, loss: str, penalty=0.7, sizes=SIZES, n_jobs: int = 1) -> Problem:
    return Problem.of(cut(kind, 5, sizes), Loss(loss, *LOSSES[loss]), penalty, n_jobs=n_jobs)


def fitting(kind: str, loss: str, make=whole) -> set[str]:
    """Return the solvers that fit these data, each under a penalty that the solver takes."""
    fits = {penalty: suitable_solvers(make(kind, loss, penalty)) for penalty in (L2(0.7), ElasticNet(0.02, 0.7))}
    return {solver for solver in available_solvers() if solver in fits[penalty_for(solver, 0.7)]}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_solvers_that_need_one_batch_refuse_several(kind, loss):
    assert fitting(kind, loss, parted) == fitting(kind, loss) - ONE_BATCH
    for solver in ONE_BATCH:
        with pytest.raises(ValueError, match=f"solver '{solver}' needs .*one batch.* in 3 batches"):
            solve(parted(kind, loss, penalty_for(solver, 0.7)), solver)


@pytest.mark.parametrize(
    ("solver", "kind", "loss"),
    [(solver, kind, loss) for kind in KINDS for loss in LOSSES for solver in sorted(fitting(kind, loss) - ONE_BATCH)],
)
def test_the_optimum_is_that_of_one_batch(solver, kind, loss):
    penalty = penalty_for(solver, 0.7)
    one, several = whole(kind, loss, penalty), parted(kind, loss, penalty)
    tol = TOLERANCE[get_solver(solver).rate_for(one.loss)]
    result = solve(several, checked_often(solver), tol=tol, max_passes=3000 if certified(solver) else None)
    if not certified(solver):  # iterates depend on the order of visits, which goes batch by batch
        assert result.status == "no certificate"
        assert one.value(result.weights) == pytest.approx(result.primal, rel=1e-12)
        return
    expected = solve(one, checked_often(solver), tol=tol, max_passes=3000)
    assert result.status == expected.status == "converged"
    assert abs(result.primal - expected.primal) <= max(result.gap, expected.gap)
    assert result.dual <= expected.primal + expected.rounding
    # The certificate is valid for the undivided problem, which recomputes its numbers.
    assert one.value(result.weights) == pytest.approx(result.primal, rel=1e-12)
    if result.dual_point.kind != "aggregate":  # an aggregate has no blocks
        assert one.dual_value(result.dual_point) == pytest.approx(result.dual, abs=1e-10)
    certificate = one.certificate(result.weights, result.dual_point)
    assert certificate.gap == pytest.approx(result.gap, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_sum_equals_that_of_one_batch(kind, loss, rng):
    one, several = whole(kind, loss), parted(kind, loss, sizes=UNEVEN)
    w, v = rng.normal(size=(2, one.n_weights))
    assert several.n_slots == one.n_slots
    np.testing.assert_array_equal(several.slot_offsets, one.slot_offsets)
    np.testing.assert_array_equal(several.active, one.active)
    for mine, theirs in zip(several.gold, one.gold, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert several.value(w) == pytest.approx(one.value(w))
    assert several.dot(w, v) == pytest.approx(one.dot(w, v))
    for mine, theirs in zip(several.plane(w), one.plane(w), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    counts, expected = np.zeros(one.n_slots), np.zeros(one.n_slots)
    answers = several.sums.plane_at(w, 0.5, counts), one.sums.plane_at(w, 0.5, expected)
    for mine, theirs in zip(*answers, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    np.testing.assert_allclose(counts, expected, atol=1e-14)
    scores = one.sums.linear_scores(w / 0.5, one.loss.cost_scale / 0.5)
    there = np.repeat(one.sample_weight > 0, np.diff(one.slot_offsets))
    np.testing.assert_allclose(counts, there * one.sums.marginals_of_scores(scores)[0], atol=1e-12)
    np.testing.assert_allclose(several.sums.margins(w, 1.0), one.sums.margins(w, 1.0), atol=1e-13)
    np.testing.assert_allclose(several.sums.linear_scores(w, 0.3), one.sums.linear_scores(w, 0.3), atol=1e-14)
    np.testing.assert_array_equal(several.sums.slot_costs(), one.sums.slot_costs())
    examples = np.array([4, 0, 3])
    np.testing.assert_array_equal(several.sums.psi2_bounds(examples), one.sums.psi2_bounds(examples))
    assert several.sums.of_examples(BatchSums.example_sizes, examples) == one.sums.of_examples(
        BatchSums.example_sizes, examples
    )
    for mine, theirs in zip(
        *(each.sums.of_examples(BatchSums.feature_sums, examples) for each in (several, one)), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_allclose(several.sums.gold_features(), one.sums.gold_features(), atol=1e-12)
    points = [DualPoint.of_counts(counts, np.full(6, 0.5), np.full(6, 0.1)), DualPoint.of_counts(counts)]
    if one.loss.link == "identity":
        points += [DualPoint.of_scores(one.sums.linear_scores(w, 0.1)), DualPoint.of_linear(w, 0.2)]
    for point in points:
        mine, theirs = several.dual_terms(point), one.dual_terms(point)
        np.testing.assert_allclose(mine[0], theirs[0], atol=1e-12)
        assert mine[1] == pytest.approx(theirs[1])
    assert several.sums.rounding.scores == pytest.approx(one.sums.rounding.scores)
    assert several.sums.rounding.largest_reach == one.sums.rounding.largest_reach
    if {"smooth", "covariance"} <= one.capabilities():
        np.testing.assert_allclose(several.hessian(w)(v), one.hessian(w)(v), atol=1e-12)
        if one.loss.link == "identity":
            np.testing.assert_allclose(several.hessian(w).diagonal(), one.hessian(w).diagonal(), atol=1e-12)


def test_clique_marginals_of_several_batches(rng):
    one, several = whole("chain-tied", "log"), parted("chain-tied", "log")
    structure, scores = (
        one.sums.in_memory()[0].structure,
        np.split(rng.normal(size=one.n_slots), one.slot_offsets[1:-1]),
    )
    marginals = np.concatenate([structure.clique_marginals(i, s, 1.0) for i, s in enumerate(scores)])
    point = DualPoint.of_cliques(marginals)
    assert several.dual_value(point) == pytest.approx(one.dual_value(point))
    assert one.dual_value(point) == pytest.approx(one.dual_value(DualPoint.of_scores(np.concatenate(scores))))
    with pytest.raises(ValueError, match=r"clique marginals given, the structure has"):
        several.dual_value(DualPoint.of_cliques(marginals[1:]))


BATCH_METHODS = [
    ("lbfgs", "chain-untied", "log"),
    ("newton", "multiclass", "log"),
    ("newton", "chain-tied", "smoothed-hinge"),
    ("eg-batch", "chain-tied", "hinge"),
    ("eg-primal", "projective", "softmax-margin"),
    ("excessive-gap", "spanning", "hinge"),
    ("owlqn", "chain-tied", "log"),
    ("gis", "maxent", "log"),
]


@pytest.mark.parametrize(("solver", "kind", "loss"), BATCH_METHODS)
def test_batch_methods_have_the_same_bits_on_any_number_of_threads(solver, kind, loss):
    penalty = penalty_for(solver, 0.7)
    runs = [solve(parted(kind, loss, penalty, n_jobs=n_jobs), solver, tol=1e-2) for n_jobs in (1, 2, 2)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.weights, runs[0].weights)
        assert (run.primal, run.dual, run.gap) == (runs[0].primal, runs[0].dual, runs[0].gap)


@pytest.mark.filterwarnings("ignore::partwise.ConvergenceWarning")
@pytest.mark.parametrize("sizes", [SIZES, UNEVEN, (1, 23)])
@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
@pytest.mark.parametrize("order", ["cyclic", "index", "permuted"])
def test_a_pass_of_gis_is_that_of_one_batch(order, loss, sizes):
    one, several = (make("maxent", loss, 0.7, sizes) for make in (whole, parted))
    solver = get_solver("gis", order=order, newton_tol=1e-13)
    states = [solver.init_state(problem, np.random.default_rng(1), None) for problem in (one, several)]
    for _ in range(6):
        for problem, state in zip((one, several), states, strict=True):
            solver.step(problem, state)
        np.testing.assert_allclose(states[1].weights, states[0].weights, rtol=1e-11, atol=1e-13)
    assert np.abs(states[0].weights).max() > 0.1
    for name in ("largest_sum", "n_columns", "n_cells", "updates", "cells", "visits", "capped"):
        assert getattr(states[1], name) == getattr(states[0], name)
    assert states[1].gain == pytest.approx(states[0].gain, rel=1e-9)
    for name in ("empirical", "mass"):
        np.testing.assert_allclose(getattr(states[1], name), getattr(states[0], name), rtol=1e-13)
    assert states[1].potentials.size == states[1].inverse.size == 0
    np.testing.assert_allclose(several.sums.scaling_extremes(), one.sums.scaling_extremes(), rtol=1e-13)


def positive(structure: Multiclass, rows) -> LabelledBatch:
    labels = np.arange(structure.num_examples) % structure.n_labels
    return LabelledBatch(Batch(structure, maxent_map(structure, np.array(rows))), structure.encode(labels))


def test_gis_warnings_concern_the_data_of_all_batches():
    """Labels and features may occur in any batch. A warning names what no batch has, and data separable as a whole."""
    first, second = (positive(Multiclass(1, 2), [row]) for row in ([1.0, 0.0, 0.0], [0.0, 2.0, 0.0]))
    second.gold[1][:] = 1
    with pytest.warns(
        FeatureWarning, match=r"feature \d+ \(attribute 2, label 0\) \(and 1 more\) is 0 everywhere"
    ) as told:
        result = solve(Problem.of([first, second], "log", 0.5), "gis")
    assert result.status == "converged"
    assert len(told) == 1
    with pytest.raises(ValueError, match="never occurs with the gold label"), pytest.warns(FeatureWarning):
        solve(Problem.of([first, second], "log", 0.0), "gis")
    both = [positive(Multiclass(2, 2), rows) for rows in ([[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.5], [0.5, 1.0]])]
    with pytest.warns(ConvergenceWarning, match="separate the training data"):
        solve(Problem.of(both, "log", 0.0), "gis", tol=0.0, max_passes=10)
    both[1].gold[1][:] = both[1].gold[1][::-1].copy()  # the second batch has the opposite labels
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        solve(Problem.of(both, "log", 0.0), "gis", tol=0.0, max_passes=10)
    assert not any("separate" in str(each.message) for each in told)


def test_the_sequential_update_of_gis_needs_its_table():
    with pytest.raises(ValueError, match=r"gis: a table of examples and labels needs one batch; update='parallel'"):
        solve(parted("maxent", "log"), get_solver("gis", update="sequential"))
    assert solve(whole("maxent", "log"), get_solver("gis", update="sequential"), tol=1e-2).status == "converged"


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("penalty", [L2(0.7), ElasticNet(0.1, 0.7)])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "segments"])
def test_a_pass_of_eg_is_that_of_one_batch(kind, penalty, n_jobs):
    """The order of visits alternates between batches, of which the second has a single example."""
    sizes = (7, 1, 16)
    one, several = whole(kind, "log", penalty, sizes), parted(kind, "log", penalty, sizes)
    scores = np.random.default_rng(3).normal(size=one.n_slots)
    marginals, entropies = one.sums.marginals_of_scores(scores)
    u = one.sums.dual_terms_slots(marginals, None, entropies)[0]
    first = GibbsBlocks(one.weights_of_plane(u), u, scores, marginals, entropies, np.full(24, 0.9))
    order = np.random.default_rng(4).integers(24, size=72)
    options = EgOptions(l2=one.l2, l1=one.l1, max_step=1.0, n_jobs=n_jobs, round_size=2 if n_jobs > 1 else 0)
    chains = [GibbsBlocks(*(array.copy() for array in first)) for _ in range(2)]
    reports = [chain.visit(problem, order, options) for problem, chain in zip((one, several), chains, strict=True)]
    assert reports[1] == pytest.approx(reports[0], rel=1e-12)
    for mine, theirs, before in zip(*chains, first, strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=1e-10, atol=1e-12)
        assert one.l1 == 0 or not np.array_equal(mine, before)


@pytest.mark.parametrize("solver", ["eg", "eg-prox"])
def test_eg_needs_as_many_passes_as_with_one_batch(solver):
    one, several = (solve(make("chain-tied", "log", 0.7, (9, 1, 14)), solver) for make in (whole, parted))
    assert several.passes == one.passes
    np.testing.assert_allclose(several.weights, one.weights, atol=1e-9)


def test_rounds_go_through_the_order_in_parts(rng):
    problem = parted("multiclass", "log", sizes=(30, 1, 9))
    order = rng.integers(40, size=400)
    found = [(part.number, own + part.examples.start) for part, own in problem.sums.rounds(order)]
    assert {number for number, _ in found[-3:]} == {0, 1, 2}
    starts = [k for k, (number, _) in enumerate(found) if k == 0 or number <= found[k - 1][0]]
    assert len(starts) == ROUNDS
    assert all(len(own) for _, own in found[:-3])
    visited = np.concatenate([own for _, own in found])
    done = 0
    for mine in np.array_split(order, ROUNDS):  # a round visits the next part of the order
        np.testing.assert_array_equal(np.sort(visited[done : done + len(mine)]), np.sort(mine))
        done += len(mine)
    assert [len(own) for _, own in problem.sums.rounds(np.array([3]))] == [1, 0, 0]  # every batch has its turn


@pytest.mark.parametrize("solver", available_solvers())
def test_a_problem_of_one_batch_equals_the_short_constructor(solver):
    kind, loss = kind_for(solver), Loss(loss_for(solver), *LOSSES[loss_for(solver)])
    batch = drawn(kind, 5, 6)
    short = Problem(
        batch.batch.features,
        batch.batch.structure,
        batch.gold,
        loss,
        penalty_for(solver, 0.7),
        sample_weight=batch.sample_weight,
    )
    first, second = (
        solve(problem, solver, tol=1e-2) for problem in (short, Problem.of([batch], loss, penalty_for(solver, 0.7)))
    )
    np.testing.assert_array_equal(first.weights, second.weights)


@pytest.mark.parametrize("solver", ["bcfw", "dcd", "eg", "sdca", "gis"])
def test_a_resumed_run_has_the_same_bits(solver, tmp_path):
    problem = parted(kind_for(solver), loss_for(solver))
    unbroken = solve(problem, solver, tol=0, max_passes=9)
    path = tmp_path / "run"
    solve(problem, solver, tol=0, max_passes=4, checkpoint=path)
    resumed = solve(problem, solver, tol=0, max_passes=9, checkpoint=path)
    np.testing.assert_array_equal(resumed.weights, unbroken.weights)


def test_gap_sampling_and_calibration_on_several_batches():
    result = solve(parted("chain-tied", "hinge"), BCFW(gap_sampling=True), tol=1e-2)
    assert result.status == "converged"
    result = solve(parted("chain-tied", "log"), get_solver("eg", initial_step="calibrate", anneal=10.0), tol=1e-3)
    assert result.status == "converged"
    with pytest.raises(ValueError, match=r"plain form .* needs one batch"):
        solve(parted("chain-tied", "hinge"), BCFW.plain())


def test_auto_chooses_a_solver_that_fits_several_batches():
    for loss in LOSSES:
        result = solve(parted("maxent", loss), tol=1e-2)
        assert result.status == "converged"
        assert result.solver not in ONE_BATCH


class TestBadInput:
    def test_batches_of_different_problems(self):
        with pytest.raises(ValueError, match="weights are of different problems"):
            Problem.of([drawn("multiclass", 5, 3), drawn("chain-tied", 5, 3)], "log", 1.0)

    def test_no_batch_and_no_weight(self):
        with pytest.raises(ValueError, match="at least one example"):
            Problem.of([], "log", 1.0)
        weightless = drawn("multiclass", 5, 3)
        weightless.sample_weight[:] = 0
        with pytest.raises(ValueError, match="all sample weights are zero"):
            Problem.of([weightless, weightless], "log", 1.0)
        # A batch without weight is accepted among others.
        assert solve(Problem.of([weightless, drawn("multiclass", 5, 3)], "log", 1.0)).status == "converged"

    def test_kernels_refuse_several_batches(self, rng):
        structure = Multiclass(3, 2)
        batch = Batch(structure, kernel_map(structure, rng.normal(size=(3, 2)), "rbf"))
        labelled = LabelledBatch(batch, structure.encode(np.array([0, 1, 0])))
        with pytest.raises(ValueError, match=r"kernel .* one batch in memory"):
            Problem.of([labelled, labelled], "log", 1.0)

    def test_states_of_eg_that_do_not_belong_together(self):
        problem = parted("chain-tied", "log")
        options, order = EgOptions(l2=0.7), np.arange(6)

        def state(part, weights):
            slots, examples = (np.zeros(each.stop - each.start) for each in (part.slots, part.examples))
            return EgState(
                part.native, weights=weights, scores=slots, marginals=slots, entropies=examples, step_sizes=examples
            )

        weights = np.zeros(problem.n_weights)
        with pytest.raises(ValueError, match="at least one state"):
            eg_epoch([], order, options)
        with pytest.raises(ValueError, match="the same weights and plane"):
            eg_epoch([state(part, weights.copy()) for part in problem.sums.in_memory()], order, options)
        states = [state(part, weights) for part in problem.sums.in_memory()]
        for beyond in (-1, 6):
            with pytest.raises(ValueError, match=rf"no example {beyond} \(there are 6\)"):
                eg_epoch(states, np.array([beyond]), options)

    def test_arrays_of_the_wrong_size(self):
        problem = parted("chain-tied", "log")
        with pytest.raises(ValueError, match=r"shape \(3,\) for \d+ slots"):
            problem.sums.marginals_of_scores(np.zeros(3))
        with pytest.raises(ValueError, match=r"shape \(3,\) for 6 examples"):
            problem.sums.dual_terms_slots(np.zeros(problem.n_slots), np.zeros(3))


def test_the_native_objective_stays_in_its_package():
    package = Path(solve.__code__.co_filename).parents[2]
    sources = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] != "problem"]
    found = {path.name for path in sources if {"objective", "Objective"} & names_in(path.read_text())}
    assert len(sources) > 100
    assert found == set()


def names_in(source: str) -> set[str]:
    """Return the names that a program uses: variables, attributes, imports."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return names | {node.name for node in nodes if isinstance(node, ast.alias)}


def test_a_state_of_none_is_refused():
    with pytest.raises(ValueError, match="a state is None"):
        eg_epoch([None], np.zeros(0, dtype=np.int64), EgOptions(l2=1.0))
