"""All solvers that fit a parsing problem with arc features reach its optimum, with certificates."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import ConvergenceWarning, Problem, get_solver, solve
from partwise.datasets import make_treebank
from partwise.features.arcs import ArcTable, arc_tokens
from partwise.solvers import suitable_solvers
from partwise.structures import ProjectiveTree, SpanningTree

TABLE = "upos | upos\nform |\n| form\nupos | upos | upos\nupos upos+1 | upos-1 upos\n"
LOSSES = ("log", "hinge", "squared-hinge", "softmax-margin", "smoothed-hinge")


def parsing_problem(structure: type, loss: str, memory: float) -> Problem:
    bank = make_treebank(12, 1, nonprojective=0.0)
    lengths = np.array([len(words) for words in bank.words])
    forms = [word for words in bank.words for word in words]
    tags = [tag for row in bank.tags for tag in row]
    blank = ["_"] * len(forms)
    tokens = arc_tokens(lengths, [forms, blank, tags, blank, blank])
    heads = np.array([head for row in bank.heads for head in row])
    table = ArcTable.fitted(TABLE, tokens)
    trees = structure(lengths)
    features = table.map(tokens, table.index(tokens, heads), memory)
    return Problem(features, trees, trees.encode(heads), loss, 2.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("structure", "memory"), [(ProjectiveTree, 1e9), (SpanningTree, 0.0)])
def test_all_solvers_agree(structure, memory, loss):
    problem = parsing_problem(structure, loss, memory)
    names = suitable_solvers(problem)
    assert {"log": "eg", "hinge": "bcfw", "squared-hinge": "dcd"}.get(loss, "lbfgs") in names
    names = [name for name in names if get_solver(name).certified]
    results = {name: solve(problem, name, tol=2e-2, max_passes=3000, random_state=0) for name in names}
    for name, result in results.items():
        assert 0 <= result.gap <= 2e-2 * result.primal, name
        assert problem.value(result.weights) == pytest.approx(result.primal, rel=1e-9), name
    lowest = min(result.primal for result in results.values())
    assert all(result.dual <= lowest + 1e-9 for result in results.values())


@pytest.mark.parametrize(("loss", "solver"), [("log", "eg"), ("hinge", "bcfw"), ("squared-hinge", "dcd")])
@pytest.mark.parametrize(("structure", "memory"), [(ProjectiveTree, 2e4), (SpanningTree, 0.0)])
def test_resumed_runs_give_the_same_bits(tmp_path, structure, memory, loss, solver):
    """The bits do not depend on whether features are kept in memory before the interruption and recomputed after it."""
    path, options = tmp_path / "run.ckpt", {"tol": 1e-3, "random_state": 0}
    whole = solve(parsing_problem(structure, loss, 1e9), solver, **options)
    with pytest.warns(ConvergenceWarning):
        solve(parsing_problem(structure, loss, 1e9), solver, max_passes=3, checkpoint=path, **options)
    resumed = solve(parsing_problem(structure, loss, memory), solver, checkpoint=path, **options)
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert (resumed.primal, resumed.dual, resumed.passes) == (whole.primal, whole.dual, whole.passes)
