"""Every solver on batches that are read repeatedly: it runs and resumes to the same bits, or gives a reason."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from helpers.partition_cases import CASES
from partwise import ConvergenceWarning, Problem, solve
from partwise.out_of_core import partitions
from partwise.out_of_core.partitions.executor import Plan
from partwise.problem.capabilities import Capability
from partwise.problem.penalties import L2, ElasticNet
from partwise.solvers import Solver
from partwise.solvers.engine.registry import SOLVERS

#: Losses and penalties to try in this order, until the solver supports one.
TRIED = [("log", L2(5.0)), ("squared-hinge", L2(5.0)), ("hinge", L2(5.0)), ("log", ElasticNet(0.3, 0.0))]
#: Methods that need only sums over batches, which all run out of core (gis on single labels only).
BATCH_METHODS = {"lbfgs", "newton", "eg-batch", "excessive-gap", "gis", "owlqn"}


#: Batch sizes by partition: chains, and single labels with 0/1 features for methods that need those.
SIZES = {"names-weights": 8000, "maxent": 8000, "rows": 4000, "trees-heads": 60_000}


def quick(kind: str, name: str) -> bool:
    return kind == "names-weights" or (kind == "maxent" and name in BATCH_METHODS)


PRODUCT = [
    pytest.param(kind, name, marks=() if quick(kind, name) else pytest.mark.slow) for kind in SIZES for name in SOLVERS
]


@pytest.fixture(scope="module")
def found(request, tmp_path_factory):
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp("solvers") / "dir"
    made = partitions.write(folder, case.make(), case.blocks(), batch_size=SIZES[request.param])
    assert made.n_batches > 2
    return made


def streamed(found, cls, loss, penalty) -> Problem:
    by_features = isinstance(penalty, ElasticNet) or Capability.COLUMN_ACCESS in cls.requires
    batches = found.batches(by_features or None)
    executor = partitions.PartitionExecutor(batches, Plan(frozenset(), False), found.folder)
    return Problem.of(batches, loss, penalty, executor=executor)


@pytest.mark.parametrize(("found", "name"), PRODUCT, indirect=["found"])
def test_every_solver(name, found, tmp_path):
    cls = SOLVERS[name]
    refusals = []
    for loss, penalty in TRIED:
        problem = streamed(found, cls, loss, penalty)
        options = {"tol": 0.0, "random_state": 1}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                whole = solve(problem, name, max_passes=4, **options)
            except ValueError as error:
                refusals.append(str(error))
                continue
            assert Capability.IN_MEMORY not in cls.requires or cls.in_blocks is not Solver.in_blocks
            path = tmp_path / "run.ckpt"
            for passes in (2, 4):
                part = solve(streamed(found, cls, loss, penalty), name, max_passes=passes, checkpoint=path, **options)
        np.testing.assert_array_equal(part.weights, whole.weights)
        assert (part.passes, part.gap) == (whole.passes, whole.gap)
        return
    assert any("needs" in text for text in refusals), refusals
    assert name not in BATCH_METHODS or (name == "gis" and all("non-negative features" in text for text in refusals)), (
        refusals
    )
    if Capability.IN_MEMORY in cls.requires and cls.in_blocks is Solver.in_blocks:
        assert any("batches in memory" in text for text in refusals), refusals
