"""Dual points of other problems: a warm start ignores them, and a checkpoint that contains them is refused."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.checkpoint_cases import forge, parts, run, saved_run
from helpers.small_problems import Small, penalty_for
from oracles.problems import make_case
from partwise import CheckpointError, Problem, solve
from partwise.problem.dual_points import ActiveSet, DualPoint
from partwise.solvers.engine.point_conversions import ForeignPoint, check_point, clique_marginals

#: A loss for each solver that can start from the distributions of a dual point.
SOLVERS = {
    "sdca": "log",
    "dcd": "squared-hinge",
    "bcfw": "hinge",
    "smo": "hinge",
    "annealed": "hinge",
    "cutting-plane": "hinge",
    "excessive-gap": "hinge",
}
N_LABELS, WIDTH = 3, 4


def chains(loss: str, positions: int | None = 0, seed: int = 0, l2: float = 1.0) -> Problem:
    """Make chains; in the first `positions` chains a mask fixes one label to gold (None: every label of all chains)."""
    case = make_case("chain-tied", seed, n=8, max_length=4, plain=True)
    structure, (indptr, slots, _) = case.structure, case.gold
    for i in range(8 if positions is None else positions):
        length = structure.num_slots(i) // WIDTH - N_LABELS
        nodes = slots[indptr[i] : indptr[i + 1]]
        nodes = nodes[nodes < length * WIDTH]
        allowed = np.ones(structure.num_slots(i), dtype=np.uint8)
        for node in nodes if positions is None else nodes[:1]:
            allowed[node // WIDTH * WIDTH : node // WIDTH * WIDTH + WIDTH] = 0
            allowed[node] = 1
        structure.set_mask(i, allowed)
    return Problem(case.features, structure, case.gold, loss, l2)


@pytest.mark.filterwarnings("ignore::partwise.ConvergenceWarning")
@pytest.mark.parametrize("positions", [1, 3, None])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_warm_start_that_masks_forbid_is_ignored(solver, positions):
    loss = SOLVERS[solver]
    options = {"tol": 1e-2, "random_state": 0, "max_passes": 3000}
    first = solve(chains(loss), solver, **options)
    masked = chains(loss, positions)
    with pytest.warns(RuntimeWarning, match=f"{solver}: the warm start's dual point is not one of this problem"):
        warm = solve(masked, solver, warm_start=first, **{**options, "max_passes": 0})
    cold = solve(masked, solver, **{**options, "max_passes": 0})
    assert (warm.primal, warm.dual) == (cold.primal, cold.dual)
    with pytest.warns(RuntimeWarning):
        warm = solve(masked, solver, warm_start=first, **options)
    best = solve(masked, "newton" if loss == "log" else "bcfw", tol=1e-9, max_passes=3000)
    assert warm.dual - warm.rounding <= best.primal
    # In the other direction every labelling is allowed.
    assert solve(chains(loss), solver, warm_start=warm, **options).dual <= first.primal


def mixture(problem: Problem) -> DualPoint:
    """Merge each example's labellings into one mixture."""
    first = solve(problem, "bcfw", tol=1e-1, random_state=0).dual_point.with_blocks()
    return DualPoint.of_counts(first.active.expected_counts(problem.slot_offsets)[0])


def test_expected_counts_are_checked_part_by_part():
    free, masked = chains("hinge"), chains("hinge", 3)
    point = mixture(free)
    check_point(free, point)
    with pytest.raises(ForeignPoint, match=r"slot .* is not 0, but its mask forbids it"):
        check_point(masked, point)
    for change in (0.9, 1.1):
        with pytest.raises(ForeignPoint, match="not those of a mixture"):
            check_point(free, DualPoint.of_counts(change * point.counts))
    # One labelling is a merged mixture.
    merged = ActiveSet(np.arange(9), *sparse(free, 1.1 * point.counts), np.ones(8))
    with pytest.raises(ForeignPoint, match="not those of a mixture"):
        check_point(free, DualPoint.of_active_set(merged))


def sparse(problem: Problem, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (labelling_ptr, slots, counts) of one mixture per example."""
    used = np.flatnonzero(counts)
    owner = np.searchsorted(problem.slot_offsets, used, side="right") - 1
    pointers = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=problem.n_examples))])
    return pointers, used - problem.slot_offsets[owner], counts[used]


@pytest.mark.parametrize("kind", ["chain-tied", "chain-untied", "graph"])
def test_disagreeing_neighbouring_cliques_are_refused(kind):
    """Each clique's marginals are a distribution, but neighbouring cliques disagree about the label they share."""
    problem = Small(kind, "hinge", n=8).problem
    rng = np.random.default_rng(0)
    one, other = (problem.sums.cliques_of_scores(3.0 * rng.normal(size=problem.n_slots)) for _ in range(2))
    check_point(problem, DualPoint.of_cliques(0.5 * (one + other)))
    (part,) = problem.sums.in_memory()
    refused = 0
    for i in problem.active:
        offsets = part.structure.clique_offsets(i) + problem.sums.clique_starts[i]
        mixed = one.copy()
        mixed[offsets[-2] : offsets[-1]] = other[offsets[-2] : offsets[-1]]
        if len(offsets) > 2:
            with pytest.raises(ForeignPoint, match=f"example {i} .*neighbouring cliques disagree"):
                clique_marginals(problem, DualPoint.of_cliques(mixed))
            refused += 1
    assert refused > 1


def test_masses_are_set_to_1():
    """Masses of a warm start that differ slightly from 1, but not enough to be refused, are set to 1."""
    problem = chains("hinge")
    active = solve(problem, "bcfw", tol=1e-1, random_state=0).dual_point.with_blocks().active
    heavy = ActiveSet(**{**vars(active), "coefficients": active.coefficients * (1 + 5e-11)})
    warm = solve(problem, "bcfw", warm_start=DualPoint.of_active_set(heavy), max_passes=0, tol=0.0)
    mass = warm.dual_point.with_blocks().active.expected_counts(problem.slot_offsets)[1]
    np.testing.assert_allclose(mass, 1.0, rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("solver", ["smo", "sdca", "excessive-gap"])
def test_a_checkpoint_with_foreign_distributions_is_refused(solver, tmp_path):
    problem, path = saved_run(solver, tmp_path)
    values, arrays = parts(path)
    name = "state.marginals" if solver == "excessive-gap" else "state.cliques"
    forged = arrays[name].copy()
    forged[:] = np.roll(forged, 1)
    forge(path, values, {**arrays, name: forged})
    with pytest.raises(CheckpointError, match="holds no state of this run"):
        run(problem, solver, path)


def test_penalties_do_not_matter():
    """A regularisation path starts from results of other penalties, which must not be refused."""
    assert penalty_for("bcfw", 2.0) != penalty_for("bcfw", 1.0)
    first = solve(chains("hinge"), "bcfw", random_state=0)
    solve(chains("hinge", l2=0.5), "bcfw", random_state=0, warm_start=first)
