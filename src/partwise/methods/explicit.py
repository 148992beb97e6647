"""The dual with every labelling listed, for label sets so small that distributions over them can be written down.

With alpha_{i,y} = p_i(y) for each labelling y of each example, -D of `problem` (identity link) is

    Q(alpha) = b'alpha + 1/2 alpha'A alpha + tau sum_i omega_i sum_y alpha_{i,y} log alpha_{i,y}
    b_{i,y} = -omega_i kappa <count(y), c_i>,   A_{(i,y),(j,z)} = omega_i omega_j <psi_{i,y}, psi_{j,z}> / l2
    psi_{i,y} = A_i'(g_i - count(y))

over a product of simplices, which is the form of Collins et al. 2008 (equations 4 and 5) and of Bartlett et al. 2004
(Figure 1), and what `eg_qp` or any QP solver takes. The solvers work on slot scores instead, whose number does not grow
with the number of labellings; for one label per example the two are the same.
"""

from dataclasses import dataclass

import numpy as np

from partwise.problem import DualPoint, Problem
from partwise.problem.capabilities import Capability, listed
from partwise.support.arrays import Floats, Ints, pointers

NEEDS = frozenset(
    {Capability.K_BEST, Capability.IDENTITY_LINK, Capability.L2, Capability.ALL_PENALISED, Capability.EXPLICIT_WEIGHTS}
) | {Capability.IN_MEMORY, Capability.ONE_BATCH}


@dataclass(frozen=True, eq=False)
class ExplicitDual:
    """min Q over a product of simplices: `eg_qp(explicit.A, explicit.b, explicit.blocks, ...)`.

    A: (m, m), b: (m,), blocks: (n,), sizes of the simplices; temperature: (n,), tau omega_i. counts: count(y) of each
    of the m labellings, one array (size of the block, slots of the example) for each of the n examples.
    """

    A: Floats
    b: Floats
    blocks: Ints
    temperature: Floats
    counts: list[Floats]

    def point(self, alpha: Floats) -> DualPoint:
        """Return the problem's dual point of these distributions."""
        alpha = np.asarray(alpha, dtype=np.float64)
        ends = pointers(self.blocks)
        if alpha.shape != (ends[-1],):
            raise ValueError(f"alpha has {ends[-1]} components, got shape {alpha.shape}")
        parts = [alpha[j:k] for j, k in zip(ends[:-1], ends[1:], strict=True)]
        marginals = [part @ counts for part, counts in zip(parts, self.counts, strict=True)]
        entropies = [-float(part @ np.log(np.where(part > 0, part, 1.0))) for part in parts]
        return DualPoint.of_counts(np.concatenate(marginals), None, np.array(entropies))


def explicit_dual(problem: Problem, *, limit: int = 4000) -> ExplicitDual:
    """Return the dual of a problem with at most `limit` labellings in all.

    ValueError if there are more, the structure cannot list them ("k_best"), or the problem has no such dual.
    """
    missing = NEEDS - problem.capabilities()
    if missing:
        raise ValueError(f"the explicit dual needs {listed(missing)}, which this problem does not have")
    counts, rows, linear, left = [], [], [], limit
    costs, offsets, part = problem.sums.slot_costs(), problem.slot_offsets, problem.sums.in_memory()[0]
    for i in range(problem.n_examples):
        omega = float(problem.sample_weight[i])
        labellings = part.structure.k_best(i, np.zeros(offsets[i + 1] - offsets[i]), left + 1)
        left -= len(labellings)
        if left < 0:
            raise ValueError(f"there are more than {limit} labellings; raise `limit`, or use a solver on slot scores")
        block = np.zeros((len(labellings), offsets[i + 1] - offsets[i]))
        for row, (_, slots, uses) in zip(block, labellings, strict=True):
            np.add.at(row, slots, uses)
        gold = part.native.gold(i)
        for row in block:
            psi = np.zeros(problem.n_weights)
            part.features.add_transpose(i, gold - row, omega, psi)
            rows.append(psi)
        counts.append(block)
        linear.append(-omega * problem.loss.cost_scale * (block @ costs[offsets[i] : offsets[i + 1]]))
    matrix = np.array(rows)
    return ExplicitDual(
        A=matrix @ matrix.T / problem.l2,
        b=np.concatenate(linear),
        blocks=np.array([len(block) for block in counts], dtype=np.int64),
        temperature=problem.loss.temperature * problem.sample_weight,
        counts=counts,
    )
