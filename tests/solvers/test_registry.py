"""Names, needs and the table of what fits what."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from smallproblems import Listed, Small

from oracles.objective import LOSSES
from oracles.problems import maxent_case
from partwise import (
    EG,
    L2,
    LBFGS,
    SDCA,
    ElasticNet,
    Loss,
    Multiclass,
    Problem,
    Structure,
    available_solvers,
    compatibility_table,
    get_solver,
    multiclass_map,
    solve,
    suitable_solvers,
)
from partwise.kernels import kernel_map
from partwise.solvers import auto, choose
from partwise.solvers.compatibility import KINDS


class MaxOnly(Structure):
    """The labellings of another structure, with nothing but their maximum."""

    def __init__(self, other):
        super().__init__(other.num_examples)
        self.other = Listed(other)

    def num_slots(self, i):
        return self.other.num_slots(i)

    def maximize(self, i, scores):
        return self.other.maximize(i, scores)

    def cost(self, i, slots, counts):
        return self.other.cost(i, slots, counts)


def test_the_table_is_the_committed_one():
    expected = Path(__file__).with_name("compatibility.txt").read_text()
    assert compatibility_table() == expected, "python docs/tables.py writes the table anew"


def problem_of(kind: str, loss: str) -> Problem:
    """A problem of one of the table's kinds."""
    trees = {"ProjectiveTree": "projective", "SpanningTree": "spanning"}
    small = Small("multiclass" if kind.startswith("Multiclass") else trees.get(kind, "chain-tied"), loss)
    structure = {
        "Python structure with both oracles": Listed,
        "Python structure with the maximum alone": MaxOnly,
    }.get(kind, lambda own: own)(small.case.structure)
    penalty = ElasticNet(0.1) if kind.endswith("l1 > 0") else L2(0.0 if kind.endswith("l2 = 0") else 0.7)
    features = small.case.features
    if kind.endswith("with a kernel"):
        rows = np.random.default_rng(0).normal(size=(sum(small.case.rows), 2))
        features = kernel_map(small.case.structure, rows, "rbf")
    if "maxent map" in kind:
        case = maxent_case(3, form="negative" if kind.endswith("negative features") else "real")
        return Problem(case.features, case.structure, case.gold, small.loss, penalty)
    return Problem(features, structure, small.case.gold, small.loss, penalty)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_table_is_what_problems_say(kind, loss):
    blocks = Path(__file__).with_name("compatibility.txt").read_text().split("\n\n")
    block = next(block for block in blocks if re.match(rf"{re.escape(kind)}  ", block))
    header, *rows = [re.split(r"\s{2,}", line.strip()) for line in block.splitlines()]
    column = header.index(loss)
    assert suitable_solvers(problem_of(kind, loss)) == [row[0] for row in rows if row[column] == "yes"]


def test_get_solver():
    assert {"lbfgs", "eg", "eg-batch", "eg-primal", "bcfw"} <= set(available_solvers())
    assert get_solver("eg", order="cyclic") == EG(order="cyclic")
    with pytest.raises(ValueError, match="unknown solver 'adam'; there are lbfgs, eg, "):
        get_solver("adam")
    with pytest.raises(TypeError, match="no option speed; it has check_every, order, step_size"):
        get_solver("eg", speed=3)


@pytest.mark.parametrize(
    ("loss", "solver", "message"),
    [
        ("hinge", "lbfgs", r"'lbfgs' needs smooth.*\(loss 'hinge', l2 = 0.7, Chain\); solvers that fit: eg, .*bcfw"),
        ("squared-hinge", "eg", "'eg' needs identity link.*solvers that fit: bcfw"),
        ("log", "bcfw", "'bcfw' needs temperature 0.*solvers that fit: lbfgs, eg"),
    ],
)
def test_what_does_not_fit_says_what_does(loss, solver, message):
    with pytest.raises(ValueError, match=message):
        solve(Small("chain-tied", loss).problem, solver)
    with pytest.raises(ValueError, match=message):
        get_solver(solver).run(Small("chain-tied", loss).problem)


def test_dual_methods_need_a_penalty():
    problem = Small("multiclass", "log", l2=0.0).problem
    with pytest.raises(ValueError, match="needs l2 > 0"):
        solve(problem, "eg")
    assert suitable_solvers(problem) == ["lbfgs", "newton"]


def test_when_nothing_fits_it_says_so():
    small = Small("multiclass", "log")
    with_max = MaxOnly(small.case.structure)
    problem = Problem(small.case.features, with_max, small.case.gold, "log", 1.0)
    with pytest.raises(ValueError, match=r"no solver fits this problem yet.*lbfgs lacks expectation oracle"):
        solve(problem)
    with pytest.raises(ValueError, match="no solver fits"):
        solve(problem, "eg")
    assert suitable_solvers(Problem(small.case.features, with_max, small.case.gold, "hinge", 1.0)) == ["bcfw"]


class TestAuto:
    @pytest.mark.parametrize(
        ("loss", "solver"),
        [
            ("log", "lbfgs"),
            ("softmax-margin", "lbfgs"),
            ("smoothed-hinge", "lbfgs"),
            ("hinge", "bcfw"),
            ("squared-hinge", "bcfw"),
        ],
    )
    def test_choice_on_small_problems(self, loss, solver):
        small = Small("chain-tied", loss)
        result = solve(small.problem, tol=1e-2, random_state=0)
        assert result.solver == solver
        assert f"auto chose {solver}: " in result.message

    def test_kernels(self):
        assert choose(problem_of("Chain with a kernel", "log"), 1e-3).solver.name == "eg"
        assert choose(problem_of("Chain with a kernel", "hinge"), 0.1).solver.name == "eg"
        weak = choose(problem_of("Chain with a kernel", "hinge").with_penalty(1e-3), 0.1)
        assert weak.solver.name == "excessive-gap"
        assert "weak penalty" in weak.reason

    def test_small_and_smooth_is_solved_exactly(self):
        small = Small("chain-tied", "log")
        result = solve(small.problem, tol=1e-3)
        assert result.gap - result.rounding <= 1e-14 * result.primal
        # two different roads to the optimum end at the same weights
        other = solve(small.problem, warm_start=np.ones(small.problem.n_weights))
        np.testing.assert_allclose(result.weights, other.weights, atol=1e-8)

    def test_large_and_smooth(self, monkeypatch):
        monkeypatch.setattr(auto, "SMALL", 10)
        assert isinstance(choose(Small("chain-tied", "log", l2=1.0).problem, 1e-3).solver, EG)
        weak = choose(Small("chain-tied", "log", l2=1e-7).problem, 1e-3)
        assert isinstance(weak.solver, LBFGS)
        assert "weak penalty" in weak.reason
        assert weak.tol == 1e-3
        assert isinstance(choose(Small("multiclass", "log", l2=1.0).problem, 1e-3).solver, SDCA)
        assert isinstance(choose(Small("multiclass", "log", l2=1e-8).problem, 1e-3).solver, LBFGS)
        none = choose(Small("chain-tied", "log", l2=0.0).problem, 1e-3)
        assert isinstance(none.solver, LBFGS)

    def test_few_weights(self, monkeypatch):
        monkeypatch.setattr(auto, "SMALL", 10)
        rng = np.random.default_rng(0)
        structure = Multiclass(400, 3)
        gold = structure.encode(rng.integers(0, 3, 400))
        for inputs, name in ((5, "newton"), (6, "sdca")):  # four weights an input
            problem = Problem(multiclass_map(structure, rng.normal(size=(400, inputs))), structure, gold, "log", 1.0)
            choice = choose(problem, 1e-3)
            assert choice.solver.name == name
        assert solve(problem.with_penalty(2.0), tol=1e-6).relative_gap <= 1e-6

    def test_a_smooth_loss_with_the_squared_link(self):
        small = Small("chain-tied", "log")
        loss = Loss("squared log", 1.0, 0.5, "squared")
        problem = Problem(small.case.features, small.structure, small.case.gold, loss, 1.0)
        result = solve(problem, tol=1e-6)
        assert result.solver == "lbfgs"
        assert result.relative_gap <= 1e-6
