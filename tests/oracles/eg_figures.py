"""Figures 1, 2 and 3 of Collins et al. 2008, "Exponentiated Gradient Algorithms for CRFs and Max-Margin Markov
Networks".

Q = -dual. Example i's part of the gradient is divided by its sample weight, so that the steps of the theorems become
1/(tau + omega_i |A|) online and 1/(tau + (sum omega) |A|) in batch. With weights 1 this is the paper, whose C is l2 and
whose w(u) is l2 * w. The index sequence k_1, k_2, ... is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from .enumerate import entropy, log_sum_exp
from .objective import DenseProblem

Floats = NDArray[np.float64]


def dual_gradient(problem: DenseProblem, us: Sequence[Floats], i: int) -> Floats:
    """dQ/du_{i,y} / omega_i = tau (1 + log u) - b + w(u) . g_{i,y} (section 3)."""
    w = problem.weights(us)
    return problem.temperature * (1.0 + np.log(us[i])) - problem.label_costs(i) + problem.psi(i) @ w


def eg_step(u: Floats, gradient: Floats, step: float) -> Floats:
    """u' proportional to u exp(-step * gradient)."""
    logs = np.log(u) - step * gradient
    return np.exp(logs - log_sum_exp(logs))


def batch_eg(problem: DenseProblem, us: Sequence[Floats], step: float, n_steps: int) -> list[list[Floats]]:
    """Figure 1: all examples at once. Return every iterate, including the start."""
    iterates = [list(us)]
    for _ in range(n_steps):
        now = iterates[-1]
        gradients = [dual_gradient(problem, now, i) for i in range(problem.n)]
        iterates.append([eg_step(u, g, step) for u, g in zip(now, gradients, strict=True)])
    return iterates


def online_eg(problem: DenseProblem, us: Sequence[Floats], steps: Floats, order: Sequence[int]) -> list[list[Floats]]:
    """Figure 2: one example at a time, on explicit distributions. Return every iterate, including the start."""
    iterates = [list(us)]
    for k in order:
        now = list(iterates[-1])
        now[k] = eg_step(now[k], dual_gradient(problem, now, k), steps[k])
        iterates.append(now)
    return iterates


def part_eg(
    problem: DenseProblem,
    scores: Sequence[Floats],
    steps: Floats,
    order: Sequence[int],
    adaptive: bool = False,
    growth: float = 1.05,
    max_step: float = np.inf,
    accept: Callable[[float], bool] = lambda gain: gain >= 0.0,
    l1: float = 0.0,
    shift: Floats | float = 0.0,
) -> tuple[list[Floats], Floats, Floats, int, int]:
    """Figure 3: the same on part scores s. Section 7: halve a step until the dual improves, then multiply it by 1.05.

    With l1 > 0 the penalty is an elastic net, w = soft(u, l1) / l2; with a shift, w = soft(u + shift, l1) / l2. Returns
    scores, weights, step sizes, numbers of trial steps and of rejected trial steps.
    """
    s, steps, visits, rejected = [np.array(x) for x in scores], np.array(steps), 0, 0
    us = [e.probabilities(x) for e, x in zip(problem.examples, s, strict=True)]
    plane = problem.l2 * problem.weights(us) + shift
    w = soft(plane, l1) / problem.l2
    for k in order:
        theta = problem.matrices[k] @ w
        gradient = problem.temperature * s[k] - theta - problem.cost_scale * problem.cost[k]
        while True:
            visits += 1
            trial_s = s[k] - steps[k] * gradient
            trial_u = problem.examples[k].probabilities(trial_s)
            trial_plane = plane + problem.sample_weight[k] * ((trial_u - us[k]) @ problem.psi(k))
            trial_w = soft(trial_plane, l1) / problem.l2
            if not adaptive or accept(_gain(problem, k, us[k], trial_u, w, trial_w)):
                break
            rejected += 1
            steps[k] /= 2.0
        s[k], us[k], plane, w = trial_s, trial_u, trial_plane, trial_w
        if adaptive:
            steps[k] = min(steps[k] * growth, max_step)
    return s, w, steps, visits, rejected


def soft(u: Floats, l1: float) -> Floats:
    """Soft thresholding: sign(u) max(|u| - l1, 0)."""
    return np.sign(u) * np.maximum(np.abs(u) - l1, 0.0)


def _gain(problem: DenseProblem, k: int, old: Floats, new: Floats, w: Floats, trial_w: Floats) -> float:
    """The rise of the dual when only example k changes: D(new) - D(old) (the displayed formula of section 7)."""
    linear = float((new - old) @ problem.label_costs(k)) + problem.temperature * (entropy(new) - entropy(old))
    return problem.sample_weight[k] * linear - 0.5 * problem.l2 * float(trial_w @ trial_w - w @ w)


def kl(p: Sequence[Floats], q: Sequence[Floats], weight: Floats | None = None) -> float:
    """sum_i weight_i D[p_i || q_i]."""
    weight = np.ones(len(p)) if weight is None else weight
    total = 0.0
    for a, b, omega in zip(p, q, weight, strict=True):
        some = a > 0
        total += omega * float((a[some] * np.log(a[some] / b[some])).sum())
    return total


def batch_step(problem: DenseProblem) -> float:
    """The step of Theorem 1: 1/(tau + (sum omega) |A|)."""
    return 1.0 / (problem.temperature + float(np.sum(problem.sample_weight)) * problem.a_max())


def online_steps(problem: DenseProblem) -> Floats:
    """The steps of Theorem 2: 1/(tau + omega_i |A|)."""
    return 1.0 / (problem.temperature + np.asarray(problem.sample_weight) * problem.a_max())
