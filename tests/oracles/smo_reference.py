"""Sequential minimal optimisation for the hinge, over enumerated labellings: move mass from the worst to the best.

gains v_y = kappa cost_y - <w, psi_y>; y = argmax v, z = argmin v over the support of p_i,
gamma = min(l2 (v_y - v_z) / (omega_i |psi_z - psi_y|^2), what z can give), w += gamma omega_i / l2 (psi_y - psi_z).

Factored form (Taskar et al. 2003, as described in Bartlett et al. 2004): the state holds p_i's clique marginals q_i.
The support is every labelling whose entries of q_i are all positive. z can give its smallest entry that y does not use.
In the other form the state holds p_i itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .objective import DenseProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Scores that differ by less count as equal.
TIE = 1e-9


@dataclass
class SmoState:
    """blocks: q_i or p_i. entries: for each example, (labellings, cliques) the entries of q_i that a labelling uses.

    tied: whether a pair was chosen among equals, where another program may choose differently. An exact step leaves its
    pair equal, so the pair may be met again with equal scores.
    """

    problem: DenseProblem
    blocks: list[Floats]
    entries: list[Ints]
    weights: Floats
    gains: list[float]
    tied: bool = False


def start(problem: DenseProblem, entries: list[Ints] | None = None) -> SmoState:
    """Put all mass on the gold labellings. Without entries, each labelling is its own clique."""
    if entries is None:
        entries = [np.arange(len(e))[:, None] for e in problem.examples]
    blocks = []
    for example, gold, own in zip(problem.examples, problem.gold, entries, strict=True):
        block = np.zeros(int(own.max(initial=-1)) + 1)
        block[own[np.flatnonzero(np.all(example.counts == gold, axis=1))[0]]] = 1.0
        blocks.append(block)
    return SmoState(problem, blocks, entries, np.zeros(problem.dim), [])


def epoch(state: SmoState, order: Sequence[int]) -> None:
    """Visit these examples and update the state in place."""
    problem = state.problem
    for i in order:
        omega, psi, own, q = problem.sample_weight[i], problem.psi(i), state.entries[i], state.blocks[i]
        values = problem.label_costs(i) - psi @ state.weights
        up = int(values.argmax())
        inside = (q[own] > 1e-12).all(axis=1)
        down = int(np.where(inside, values, np.inf).argmin())
        equal = (values > values[up] - TIE).sum() + (values[inside] < values[down] + TIE).sum()
        rise = values[up] - values[down]
        differ = own[up] != own[down]
        if rise <= 0 or not differ.any():
            continue
        state.tied |= bool(equal > 2)
        norm = float(((psi[up] - psi[down]) ** 2).sum())
        most = float(q[own[down][differ]].min())
        gamma = min(most, problem.l2 * rise / (omega * norm)) if norm > 0 else most
        q[own[up][differ]] += gamma
        q[own[down][differ]] -= gamma
        state.weights = state.weights + gamma * omega / problem.l2 * (psi[up] - psi[down])
        state.gains.append(omega * gamma * (rise - 0.5 * gamma * omega / problem.l2 * norm))
