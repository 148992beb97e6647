"""What tells one problem from another, for checkpoints: exact constants, and what every example makes of a probe.

The probe is a vector of weights; example i gives its margin there, smax(theta_i + kappa c_i) - <theta_i, g_i>,
at a temperature at which every labelling has a part in it. So features, gold labellings, costs, masks and their order
are seen, at the price of one pass.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.problem import Problem
from partwise.problem.capabilities import Capability

Array = NDArray[Any]

#: The same data gives margins that differ by no more than this, relative to their size, on any processor.
ROUNDING = 1e-12


def constants(problem: Problem) -> dict[str, Any]:
    """Sizes, loss and penalty."""
    loss, free = problem.loss, problem.penalty.free
    return {
        "n_examples": problem.n_examples,
        "n_weights": problem.n_weights,
        "n_slots": problem.n_slots,
        "l1": float(problem.l1),
        "l2": float(problem.l2),
        "temperature": float(loss.temperature),
        "cost_scale": float(loss.cost_scale),
        "link": loss.link,
        **({} if loss.rescaling == "margin" else {"rescaling": loss.rescaling}),
        **({} if free is None else {"first_free": free.start, "n_free": free.stop - free.start}),
    }


def answers(problem: Problem) -> dict[str, Array]:
    """Margins at the probe and weights of all examples."""
    probe = np.cos(np.arange(problem.n_weights))
    temperature = 1.0 if Capability.EXPECTATION_ORACLE in problem.capabilities() else 0.0
    with np.errstate(all="ignore"):
        margins = problem.sums.margins(probe, temperature)
    return {"margins": margins, "sample_weight": problem.sample_weight}


def difference(saved: dict[str, Array], mine: dict[str, Array]) -> str:
    """Where the data differs, "" if it does not."""
    if set(saved) != set(mine) or any(saved[k].shape != mine[k].shape or saved[k].dtype != mine[k].dtype for k in mine):
        return "the data differs in size"
    far = np.abs(saved["margins"] - mine["margins"]) > ROUNDING * (1.0 + np.abs(mine["margins"]))
    odd = np.flatnonzero(far | (saved["sample_weight"] != mine["sample_weight"]))
    return f"example {odd[0]} differs" if odd.size else ""
