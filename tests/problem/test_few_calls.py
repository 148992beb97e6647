"""A gradient is at most six calls away from the core's loop over examples."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import partwise
from helpers.small_problems import Small
from partwise.solvers import LBFGS

SOURCES = str(Path(partwise.__file__).parent)


class Watched:
    """The core's objective. Its `plane` records which functions of partwise are running when it is called."""

    def __init__(self, objective, chains: list[list[str]]) -> None:
        self._objective, self._chains = objective, chains

    def plane(self, *arguments):
        self._chains.append([*ACTIVE, "Objective.plane"])
        return self._objective.plane(*arguments)

    def __getattr__(self, name: str):
        return getattr(self._objective, name)


ACTIVE: list[str] = []


def follow(frame, event: str, argument) -> None:
    """Keep a list of the functions of partwise that are running, the outermost first."""
    if not frame.f_code.co_filename.startswith(SOURCES):
        return
    if event == "call":
        ACTIVE.append(frame.f_code.co_qualname)
    elif event == "return":
        ACTIVE.pop()


def test_a_gradient_is_at_most_six_calls_deep():
    problem, solver = Small("chain-tied", "log").problem, LBFGS()
    state = solver.init_state(problem, np.random.default_rng(0), None)
    batch, chains = problem.sums.executor.in_memory(problem.sums.references[0], problem.loss), []
    batch.objective = Watched(batch.objective, chains)
    sys.setprofile(follow)
    try:
        solver.step(problem, state)
    finally:
        sys.setprofile(None)
    assert chains
    for chain in chains:
        assert chain[0] == "LBFGS.step"
        assert len(chain) <= 6, " -> ".join(chain)
