"""Dual coordinate descent (Chang and Yih 2013, Algorithms 1 to 3) over enumerated labellings, with the paper's alpha.

C_i = omega_i / l2, Phi = psi_y = A_i'(g_i - counts(y)), Delta = label_costs. A working set is a list of numbers of
labellings, in the order in which they joined. Algorithm 1 visits the newest first, the others in an order that
SplitMix64 draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .objective import DenseProblem

Floats = NDArray[np.float64]
_WORD = 2**64


def split_mix(seed: int) -> Iterator[int]:
    """Generate the numbers of SplitMix64."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) % _WORD
        z = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % _WORD
        yield z ^ (z >> 31)


@dataclass
class DcdState:
    """alpha: one value per labelling. objectives: the value of (4) after every step of Algorithm 1."""

    problem: DenseProblem
    alpha: list[Floats]
    weights: Floats
    working: list[list[int]]
    stamps: list[dict[int, int]]  # the epoch in which each labelling was last found
    objectives: list[float] = field(default_factory=list)
    violation: float = 0.0

    def objective(self) -> float:
        """The paper's objective, equation (4) of Chang and Yih 2013."""
        p = self.problem
        w = sum((a @ p.psi(i) for i, a in enumerate(self.alpha)), np.zeros(p.dim))
        value = 0.5 * float(w @ w)
        for i, a in enumerate(self.alpha):
            value += a.sum() ** 2 / (4 * self.c(i)) - float(a @ p.label_costs(i))
        return value

    def c(self, i: int) -> float:
        return float(self.problem.sample_weight[i] / self.problem.l2)

    def masses(self) -> Floats:
        """The mass of each example, s_i = sum of alpha / C_i."""
        return np.array([a.sum() / self.c(i) for i, a in enumerate(self.alpha)])


def start(problem: DenseProblem) -> DcdState:
    zeros = [np.zeros(len(e)) for e in problem.examples]
    return DcdState(problem, zeros, np.zeros(problem.dim), [[] for _ in zeros], [{} for _ in zeros])


def search(state: DcdState, i: int, delta: float, violators: int = 1) -> None:
    """Algorithm 2, lines 5 to 8. If violators > 1, the next best labellings join too (the paper's future work)."""
    values = state.problem.label_costs(i) - state.problem.psi(i) @ state.weights
    for y in np.argsort(-values, kind="stable")[:violators][::-1].tolist():
        if values[y] - state.alpha[i].sum() / (2 * state.c(i)) >= delta:
            if y not in state.working[i]:
                state.working[i].append(y)
            state.stamps[i][y] = 1 + max(
                (state.stamps[i][k] for k in state.working[i] if k in state.stamps[i]), default=0
            )


def update_weight(state: DcdState, i: int, draws: Iterator[int]) -> None:
    """Algorithm 1, and the removal of labellings whose coefficients became zero (section 4.3)."""
    working, alpha, c = state.working[i].copy(), state.alpha[i], state.c(i)
    first = max(range(len(working)), key=lambda k: state.stamps[i][working[k]])
    working[0], working[first] = working[first], working[0]
    for k in range(len(working) - 1, 1, -1):
        other = 1 + next(draws) % k
        working[k], working[other] = working[other], working[k]
    psi, costs = state.problem.psi(i), state.problem.label_costs(i)
    for y in working:
        slope = costs[y] - float(psi[y] @ state.weights) - alpha.sum() / (2 * c)
        new = max(alpha[y] + slope / (float(psi[y] @ psi[y]) + 1 / (2 * c)), 0.0)
        state.violation = max(state.violation, abs(slope) if alpha[y] > 0 else slope)
        state.weights = state.weights + (new - alpha[y]) * psi[y]
        alpha[y] = new
        state.objectives.append(state.objective())
    state.working[i] = [y for y in state.working[i] if alpha[y] > 0]


def visits(
    state: DcdState, order: Sequence[int], seed: int, delta: float, *, oracle: bool, update: bool, violators: int = 1
) -> None:
    """Visit the examples of `order`: ask the oracle, update the coefficients, or both."""
    draws = split_mix(seed)
    for i in order:
        if oracle:
            search(state, i, delta, violators)
        if update and state.working[i]:
            update_weight(state, i, draws)
