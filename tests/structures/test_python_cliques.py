"""Structures written in Python with a clique view: which solvers fit, and which answers are refused."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.problems import make_case
from partwise import Problem, Structure, solve
from partwise.problem.penalties import L2
from partwise.solvers import suitable_solvers


class Cliques(Structure):
    """A chain that computes clique marginals, but not which labellings have mass."""

    def __init__(self, other):
        super().__init__(other.num_examples)
        self.other = other

    def num_slots(self, i):
        return self.other.num_slots(i)

    def maximize(self, i, scores):
        return self.other.maximize(i, scores)

    def log_partition(self, i, scores, temperature=1.0):
        return self.other.log_partition(i, scores, temperature)

    def cost(self, i, slots, counts):
        return self.other.cost(i, slots, counts)

    def clique_offsets(self, i):
        return self.other.clique_offsets(i)

    def clique_marginals(self, i, scores, temperature):
        return self.other.clique_marginals(i, scores, temperature)

    def slots_from_cliques(self, i, marginals):
        return self.other.slots_from_cliques(i, marginals)

    def entropy_of_cliques(self, i, marginals):
        return self.other.entropy_of_cliques(i, marginals)


class Supports(Cliques):
    """The same chain, which also tells which labellings have mass."""

    def clique_entries(self, i, slots, counts):
        return self.other.clique_entries(i, slots, counts)

    def maximize_in_support(self, i, scores, marginals, least):
        return self.other.maximize_in_support(i, scores, marginals, least)


def problem_of(kind, loss: str) -> Problem:
    case = make_case("chain-tied", seed=5, n=4)
    return Problem(case.features, kind(case.structure), case.gold, loss, L2(0.7), sample_weight=case.sample_weight)


@pytest.mark.parametrize("kind", [Cliques, Supports])
def test_sdca_needs_marginals_and_entropies(kind):
    result = solve(problem_of(kind, "log"), "sdca", tol=1e-6)
    assert result.converged
    assert result.primal == pytest.approx(solve(problem_of(kind, "log"), "lbfgs", tol=1e-9).primal, rel=1e-6)


def test_smo_keeps_labellings_if_the_clique_support_is_unknown():
    problem = problem_of(Cliques, "hinge")
    result = solve(problem, "smo", tol=1e-3, max_passes=300)
    assert result.dual_point.kind == "active"
    assert "smo-eg" not in suitable_solvers(problem)
    with pytest.raises(ValueError, match="solver 'smo-eg' needs clique support"):
        solve(problem, "smo-eg")


@pytest.mark.parametrize("solver", ["smo", "smo-eg"])
def test_with_support_the_factored_form_makes_the_same_steps(solver):
    mine = solve(problem_of(Supports, "hinge"), solver, tol=0.0, max_passes=4)
    assert mine.dual_point.kind == "cliques"
    theirs = solve(problem_of(lambda chain: chain, "hinge"), solver, tol=0.0, max_passes=4)
    np.testing.assert_allclose(mine.weights, theirs.weights, rtol=1e-12, atol=1e-14)


class Falling(Supports):
    def clique_offsets(self, i):
        return np.array([0, 10**6, int(self.other.clique_offsets(i)[-1])])


class OutOfPlace(Supports):
    def clique_entries(self, i, slots, counts):
        return self.other.clique_entries(i, slots, counts)[::-1].copy() + 10**6


class TooFew(Supports):
    def clique_entries(self, i, slots, counts):
        return self.other.clique_entries(i, slots, counts)[1:]


class WrongValue(Supports):
    def maximize_in_support(self, i, scores, marginals, least):
        value, slots, counts = self.other.maximize_in_support(i, scores, marginals, least)
        return value + 1.0, slots, counts


class NoEntropy(Supports):
    def entropy_of_cliques(self, i, marginals):
        _, gradient = self.other.entropy_of_cliques(i, marginals)
        return float("nan"), gradient


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Falling, "clique_offsets: example 0: they must start at 0 and not fall"),
        (OutOfPlace, "clique_entries: example 0: entry .* is none of clique 0"),
        (TooFew, "clique_entries: example 0: .* entries for .* cliques"),
        (WrongValue, "maximize_in_support: example .*: the value is"),
        (NoEntropy, "entropy_of_cliques: example 0: the entropy is nan"),
    ],
)
def test_invalid_answers_are_refused(kind, message):
    with pytest.raises(ValueError, match=message):
        solve(problem_of(kind, "hinge"), "smo", max_passes=3)
