"""Pairs of steps and changes of the gradient, and the quasi-Newton direction that they give.

With the last `memory` pairs (step s, change of gradient y), the rows of S and Y, oldest first, and gamma = s'y / y'y of
the newest pair, the inverse Hessian of limited-memory BFGS is

    H = gamma I + [S' gamma Y'] [[R^-T (D + gamma Y Y') R^-1, -R^-T], [-R^-1, 0]] [S; gamma Y]

where D and R are the diagonal and the upper triangle of S Y'. Byrd et al. 1994, (3.1): a few products with
S and Y in place of many passes over vectors.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise._core import add_rows, dot, row_dots
from partwise.solvers.engine.state import State
from partwise.support.arrays import Floats


@dataclass(kw_only=True)
class PairsState(State):
    """steps, changes: S and Y, (memory, d), rings of which the first `stored` rows are in use.

    sy, yy: S Y' and Y Y', (memory, memory), as far as they are needed.
    """

    steps: Floats
    changes: Floats
    sy: Floats
    yy: Floats
    stored: int = 0
    newest: int = -1
    gamma: float = 0.0  # 0: no pair yet

    def complaint(self, fresh: Any) -> str:
        inside = 0 <= self.stored <= len(self.steps) and self.newest < max(self.stored, 1)
        return super().complaint(fresh) or ("" if inside else "it has more pairs than there is room for")


def no_pairs(memory: int, n_weights: int) -> dict[str, Any]:
    """The fields of a `PairsState` before the first step."""
    return {
        "steps": np.zeros((memory, n_weights)),
        "changes": np.zeros((memory, n_weights)),
        "sy": np.zeros((memory, memory)),
        "yy": np.zeros((memory, memory)),
    }


def direction_along(state: PairsState, gradient: Floats, n_jobs: int) -> Floats:
    """-H gradient."""
    k = state.stored
    if k == 0:
        return -gradient
    order = [(state.newest - j) % k for j in reversed(range(k))]  # oldest first
    gamma, S, Y = state.gamma, state.steps[:k], state.changes[:k]
    sy, yy = state.sy[np.ix_(order, order)], state.yy[np.ix_(order, order)]
    R = np.triu(sy)
    sg, yg = (row_dots(pairs, gradient, n_jobs)[order] for pairs in (S, Y))
    try:
        v = np.linalg.solve(R, sg)
        on_steps = np.linalg.solve(R.T, np.diag(sy) * v + gamma * (yy @ v - yg))
    except np.linalg.LinAlgError:
        return np.zeros_like(gradient)  # no descent: the caller drops the pairs
    back = np.argsort(order)
    on_steps, on_changes = (np.asarray(c[back], dtype=np.float64) for c in (-on_steps, gamma * v))
    direction = -gamma * gradient
    add_rows(on_steps, S, direction, n_jobs)
    add_rows(on_changes, Y, direction, n_jobs)
    return direction


def remember(state: PairsState, step: Floats, change: Floats, n_jobs: int) -> None:
    """Add a pair to the rings; pairs without curvature (rounding) are left out."""
    curvature, norm2 = dot(step, change, n_jobs), dot(change, change, n_jobs)
    if not norm2 > 0 or curvature <= 1e-16 * norm2:  # |change|^2 underflows before <step, change> does
        return
    memory = len(state.steps)
    state.newest = row = (state.newest + 1) % memory
    state.stored = k = min(state.stored + 1, memory)
    state.gamma = curvature / norm2
    state.steps[row], state.changes[row] = step, change
    state.sy[:k, row] = row_dots(state.steps[:k], change, n_jobs)
    state.yy[:k, row] = state.yy[row, :k] = row_dots(state.changes[:k], change, n_jobs)


def forget(state: PairsState) -> None:
    """Drop the pairs; gamma is kept, for the length of the next step."""
    state.stored, state.newest = 0, -1
