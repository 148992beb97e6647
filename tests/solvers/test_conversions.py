"""Dual points converted to another form keep their expected counts, and therefore their dual value."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.cut_problems import cut, drawn
from helpers.small_problems import Small
from oracles.enumerate import entropy
from partwise import Problem, solve
from partwise.problem.dual_points import ActiveSet, DualPoint
from partwise.solvers import BCFW, EG, EGBatch, ExcessiveGap
from partwise.solvers.engine.point_conversions import clique_marginals, expected_counts, gibbs_scores

KINDS = (
    "multiclass",
    "chain-tied",
    "chain-untied",
    "graph",
    "python",
    "projective",
    "spanning",
    "segments",
    "second-order",
)
WITH_CLIQUES = ("multiclass", "chain-tied", "chain-untied", "graph")
EXACT = {"floor": 1e-14, "tolerance": 1e-9, "most": 5000}


def mixtures(small: Small, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw a distribution over each example's labellings, in which every labelling has a positive probability."""
    return [rng.dirichlet(np.full(len(e), 0.7)) * 0.95 + 0.05 / len(e) for e in small.dense.examples]


def counts_of(small: Small, distributions: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([e.expected(p) for e, p in zip(small.dense.examples, distributions, strict=True)])


def active_of(small: Small, rng: np.random.Generator, kept: int = 3) -> tuple[ActiveSet, list[np.ndarray]]:
    """Draw a few labellings of each example with masses. Return them as an active set and as distributions."""
    example_ptr, labelling_ptr, slots, counts, masses, distributions = [0], [0], [], [], [], []
    for example in small.dense.examples:
        some = rng.choice(len(example), min(kept, len(example)), replace=False)
        mass = rng.dirichlet(np.ones(len(some)))
        p = np.zeros(len(example))
        p[some] = mass
        for y in some:
            used = np.flatnonzero(example.counts[y])
            slots.append(used)
            counts.append(example.counts[y][used])
            labelling_ptr.append(labelling_ptr[-1] + len(used))
        example_ptr.append(example_ptr[-1] + len(some))
        masses.append(mass)
        distributions.append(p)
    arrays = (np.concatenate(each) for each in (slots, counts, masses))
    return ActiveSet(np.array(example_ptr), np.array(labelling_ptr), *arrays), distributions


class TestGibbs:
    @pytest.mark.parametrize("kind", KINDS)
    def test_the_counts_and_the_dual_value_are_kept(self, kind, rng):
        small = Small(kind, "hinge")
        distributions = mixtures(small, rng)
        counts = counts_of(small, distributions)
        found = gibbs_scores(small.problem, DualPoint.of_counts(counts), **EXACT)
        assert found.unmatched == 0
        gibbs = small.distributions(found.scores)
        for i, (example, mine, theirs) in enumerate(zip(small.dense.examples, gibbs, distributions, strict=True)):
            if small.problem.sample_weight[i] > 0:
                np.testing.assert_allclose(example.expected(mine), example.expected(theirs), atol=1e-7)
                assert entropy(mine) >= entropy(theirs) - 1e-7
        dual = small.problem.dual_value(DualPoint.of_scores(found.scores))
        assert dual == pytest.approx(small.problem.dual_value(DualPoint.of_counts(counts)), abs=1e-6)

    @pytest.mark.parametrize("kind", ["multiclass", "chain-untied"])
    def test_untied_slots_need_one_inference(self, kind, rng):
        """Untied slots: one inference finds the distribution of largest entropy with these clique marginals."""
        small = Small(kind, "softmax-margin")
        examples = small.dense.examples
        distributions = [e.gibbs_of_cliques(rng.normal(size=e.clique_offsets[-1])) for e in examples]
        pairs = list(zip(examples, distributions, strict=True))
        marginals = np.concatenate([e.clique_marginals(p) for e, p in pairs])
        found = gibbs_scores(small.problem, DualPoint.of_cliques(marginals), **EXACT)
        assert found.inferences == len(small.problem.active)
        for p, q in zip(small.distributions(found.scores), distributions, strict=True):
            np.testing.assert_allclose(p, q, atol=1e-9)
        np.testing.assert_allclose(small.problem.sums.cliques_of_scores(found.scores), marginals, atol=1e-9)
        dual = small.problem.dual_value(DualPoint.of_cliques(marginals))
        assert small.problem.dual_value(DualPoint.of_scores(found.scores)) == pytest.approx(dual, abs=1e-8)

    @pytest.mark.parametrize("kind", ["chain-tied", "graph"])
    def test_tied_slots_keep_the_counts_of_the_cliques(self, kind, rng):
        small = Small(kind, "softmax-margin")
        active, _ = active_of(small, rng, kept=8)
        marginals = clique_marginals(small.problem, DualPoint.of_active_set(active))
        point = DualPoint.of_cliques(0.9 * marginals + 0.1 * clique_marginals(small.problem, uniform(small.problem)))
        found = gibbs_scores(small.problem, point, **EXACT)
        assert found.unmatched == 0
        mine = expected_counts(small.problem, DualPoint.of_scores(found.scores))[0]
        theirs = expected_counts(small.problem, point)[0]
        weighted = np.repeat(small.problem.sample_weight > 0, np.diff(small.problem.slot_offsets))
        np.testing.assert_allclose(mine[weighted], theirs[weighted], atol=1e-6)
        # Among distributions with these counts a Gibbs distribution has the largest entropy.
        dual = small.problem.dual_value(point)
        assert small.problem.dual_value(DualPoint.of_scores(found.scores)) >= dual - 1e-6

    @pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "graph", "projective"])
    def test_zero_counts_are_raised_to_a_floor(self, kind, rng):
        small = Small(kind, "hinge")
        active, _ = active_of(small, rng)
        point = DualPoint.of_active_set(active)
        found = gibbs_scores(small.problem, point, most=2000)
        assert np.isfinite(found.scores).all()
        dual, same = small.problem.dual_value(point), small.problem.dual_value(DualPoint.of_scores(found.scores))
        assert same == pytest.approx(dual, abs=2e-2 * (1 + abs(dual)))

    @pytest.mark.parametrize("kind", ["chain-tied", "chain-untied", "graph"])
    def test_several_batches_and_threads(self, kind, rng):
        one = Problem.of([drawn(kind, 5, 6)], "hinge", 0.7)
        several = Problem.of(cut(kind, 5, (3, 1, 2)), "hinge", 0.7, n_jobs=2)
        counts = one.sums.marginals_of_scores(rng.normal(size=one.n_slots))[0]
        for point in (DualPoint.of_counts(counts), DualPoint.of_cliques(clique_marginals(one, None))):
            mine, theirs = (gibbs_scores(p, point) for p in (several, one))
            np.testing.assert_array_equal(mine.scores, theirs.scores)
            assert mine[1:] == theirs[1:]


def uniform(problem: Problem) -> DualPoint:
    return DualPoint.of_scores(np.zeros(problem.n_slots))


class TestCliques:
    @pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied"])
    def test_of_mixtures_of_labellings(self, kind, rng):
        small = Small(kind, "hinge")
        active, distributions = active_of(small, rng)
        found = clique_marginals(small.problem, DualPoint.of_active_set(active))
        pairs = zip(small.dense.examples, distributions, strict=True)
        np.testing.assert_allclose(found, np.concatenate([e.clique_marginals(p) for e, p in pairs]), atol=1e-12)

    @pytest.mark.parametrize("kind", WITH_CLIQUES)
    def test_the_dual_value_is_kept(self, kind, rng):
        small = Small(kind, "hinge")
        active, distributions = active_of(small, rng)
        counts = counts_of(small, distributions)
        for point, atol in (
            (DualPoint.of_active_set(active), 1e-9),
            (DualPoint.of_scores(rng.normal(size=small.problem.n_slots)), 1e-9),
            (DualPoint.of_counts(counts), 3e-2),
        ):
            found = DualPoint.of_cliques(clique_marginals(small.problem, point))
            dual = small.problem.dual_value(point)
            assert small.problem.dual_value(found) == pytest.approx(dual, abs=atol * (1 + abs(dual)))

    def test_gold(self):
        small = Small("chain-tied", "hinge")
        point = DualPoint.of_cliques(clique_marginals(small.problem, None))
        assert small.problem.dual_value(point) == 0.0
        assert not small.problem.weights_from_dual(point).any()


class TestStarts:
    @pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied", "graph", "projective", "segments"])
    @pytest.mark.parametrize("first", ["bcfw", "excessive-gap"])
    @pytest.mark.parametrize("second", [EG(), EGBatch()])
    def test_at_temperature_0_from_any_solver(self, kind, first, second):
        small = Small(kind, "hinge")
        earlier = solve(small.problem, first, tol=1e-2, random_state=0)
        state = second.init_state(small.problem, np.random.default_rng(0), earlier)
        blocks = small.problem.dual_value(earlier.dual_point.with_blocks())
        assert state.dual == pytest.approx(blocks, abs=1e-2 * earlier.primal)
        again = solve(small.problem, second, tol=2e-2, random_state=0, warm_start=earlier, max_passes=2000)
        assert again.converged

    @pytest.mark.parametrize("second", [BCFW(), ExcessiveGap()])
    def test_a_warm_start_from_clique_marginals_saves_passes(self, second):
        small = Small("chain-tied", "hinge")
        earlier = solve(small.problem, "bcfw", tol=1e-2, random_state=0)
        cliques = DualPoint.of_cliques(clique_marginals(small.problem, earlier.dual_point.with_blocks()))
        warm = solve(small.problem, second, tol=3e-2, warm_start=cliques)
        cold = solve(small.problem, second, tol=3e-2)
        assert warm.converged
        assert warm.passes <= cold.passes


class TestErrors:
    def test_points_of_other_problems(self):
        small = Small("chain-tied", "hinge")
        counts = small.problem.sums.marginals_of_scores(np.zeros(small.problem.n_slots))[0]
        with pytest.raises(ValueError, match="negative or not finite"):
            solve(small.problem, "eg", warm_start=DualPoint.of_counts(-counts))
        with pytest.raises(ValueError, match="masses other than 1"):
            solve(
                small.problem, "eg", warm_start=DualPoint.of_counts(2 * counts, np.full(small.problem.n_examples, 2.0))
            )
        with pytest.raises(ValueError, match="warm start: 3 slots of 5 examples"):
            solve(small.problem, "eg", warm_start=DualPoint.of_counts(np.zeros(3)))
        with pytest.raises(ValueError, match="3 clique marginals given"):
            solve(small.problem, "eg", warm_start=DualPoint.of_cliques(np.zeros(3)))
        with pytest.raises(ValueError, match="temperature 0 starts from"):
            solve(small.problem, "eg", warm_start=DualPoint.of_plane(np.zeros(small.problem.n_weights), 0.0))
        bad = np.zeros(small.problem.sums.clique_starts[-1])
        with pytest.raises(ValueError, match="example 0 are not those of a distribution"):
            clique_marginals(small.problem, DualPoint.of_cliques(bad))

    def test_structures_without_a_clique_view(self):
        small = Small("projective", "hinge")
        with pytest.raises(ValueError, match="ProjectiveTree has no clique view"):
            solve(small.problem, "eg", warm_start=DualPoint.of_cliques(np.ones(4)))
        with pytest.raises(ValueError, match="ProjectiveTree has no clique view"):
            clique_marginals(small.problem, None)
