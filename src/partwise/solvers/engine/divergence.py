"""Telling a dual method that runs away from one that takes its time.

Steps that theory or a search allows never let the dual fall but by rounding, which the certificate accounts for; a step
size given by the user may. With such a step size a run raises DivergenceError when the dual has stayed below its best
value for `PATIENCE` epochs, and when it is below its best at the end: weights of a run that diverged are never
returned. A dual that is no longer finite raises in any case.
"""

from dataclasses import dataclass
from math import isfinite

from partwise.problem.result import DivergenceError, Status
from partwise.solvers.engine.state import State

#: Epochs without a new best dual value before a run counts as diverging.
PATIENCE = 5
#: A fall of the dual, over 1 + |dual|, that is more than rounding.
FALL = 1e-6


@dataclass(kw_only=True)
class WatchedState(State):
    """dual: D as the solver tracks it. best_dual, best_epoch: the highest one since the objective last changed."""

    dual: float
    best_dual: float
    best_epoch: int = 0


def watch(state: WatchedState, solver: str, step_size: str | float) -> None:
    """After each epoch: note the best dual value, DivergenceError if it is out of reach."""
    if not isfinite(state.dual):
        given = f" with step_size={step_size}" if _given(step_size) else ": values or weights are too large"
        raise DivergenceError(f"{solver}: the dual is {state.dual} after {state.epoch} epochs{given}")
    if state.dual > state.best_dual:
        state.best_dual, state.best_epoch = state.dual, state.epoch
    if _given(step_size) and state.epoch - state.best_epoch >= PATIENCE and _fallen(state):
        raise DivergenceError(_message(state, solver, step_size, f"has not come back for {PATIENCE} epochs"))


def check_end(state: WatchedState, status: Status, solver: str, step_size: str | float) -> None:
    """At the end of a run: DivergenceError if it ends below its best without having converged."""
    if _given(step_size) and status != "converged" and _fallen(state):
        raise DivergenceError(_message(state, solver, step_size, f"has not come back at the end ({status})"))


def _given(step_size: str | float) -> bool:
    """Whether it is the user's choice."""
    return not isinstance(step_size, str)


def _fallen(state: WatchedState) -> bool:
    return state.best_dual - state.dual > FALL * (1.0 + abs(state.best_dual))


def _message(state: WatchedState, solver: str, step_size: str | float, then: str) -> str:
    return (
        f"{solver}: the dual fell by {state.best_dual - state.dual:.3g} from {state.best_dual:.6g} and {then} "
        f"with step_size={step_size}; take a smaller one, or let the solver choose it"
    )
