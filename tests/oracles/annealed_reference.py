"""A falling temperature, then pairwise Frank-Wolfe, over enumerated labellings.

First come passes of EG (Collins et al. 2008, Figure 3, with the adaptive steps of section 7) on the dual with an
entropy at temperature tau. tau is multiplied by `factor` after a pass that raised this dual by at most `settled` tau
sum_i omega_i H_i, and at the latest after ten passes. Below `last_temperature` every example keeps its most probable
labellings, and `bcfw_sets_reference` continues with these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import bcfw_sets_reference as sets
from .eg_figures import part_eg
from .objective import DenseProblem

Floats = NDArray[np.float64]
PATIENCE, UNLIKELY = 10, 1e-3


@dataclass
class AnnealedReference:
    problem: DenseProblem
    scores: list[Floats]
    steps: Floats
    temperature: float
    held: int = 0
    epoch: int = 0
    kept: sets.SetState | None = None

    @property
    def distributions(self) -> list[Floats]:
        return [e.probabilities(s) for e, s in zip(self.problem.examples, self.scores, strict=True)]

    @property
    def weights(self) -> Floats:
        return self.problem.weights(self.distributions) if self.kept is None else self.kept.weights

    @property
    def smoothed(self) -> DenseProblem:
        return replace(self.problem, temperature=self.temperature)

    def dual(self) -> float:
        """D at the present temperature."""
        return self.smoothed.dual(self.distributions) if self.kept is None else self.kept.dual()


def start(problem: DenseProblem, scores: list[Floats], solver: Any) -> AnnealedReference:
    return AnnealedReference(problem, scores, np.full(problem.n, solver.initial_step), solver.temperature)


def epoch(state: AnnealedReference, solver: Any, rng: np.random.Generator) -> None:
    state.epoch += 1
    if state.kept is not None:
        sets.epoch(state.kept, solver.finish, rng)
        return
    before, tau = state.dual(), state.temperature
    state.scores, _, state.steps, _, _ = part_eg(
        state.smoothed,
        state.scores,
        np.minimum(state.steps, 1 / tau),
        rng.permutation(state.problem.n),
        adaptive=True,
        growth=solver.growth,
        max_step=1 / tau,
    )
    state.held += 1
    entropy = float(state.problem.sample_weight @ state.problem.entropies(state.distributions))
    if state.dual() - before > solver.settled * tau * entropy and state.held < PATIENCE:
        return
    state.temperature, state.held = tau * solver.factor, 0
    if state.temperature < solver.last_temperature:
        state.kept = _most_probable(state, solver.labellings)


def _most_probable(state: AnnealedReference, most: int) -> sets.SetState:
    found = sets.start(state.problem)
    found.epoch = state.epoch
    for i, p in enumerate(state.distributions):
        best = [int(y) for y in np.argsort(-p, kind="stable")[:most] if p[y] >= UNLIKELY * p.max()]
        found.kept[i], found.found[i] = best, dict.fromkeys(best, 0)
        found.xs[i] = np.zeros(len(p))
        found.xs[i][best] = p[best] / p[best].sum()
    found.average = found.weights
    return found
