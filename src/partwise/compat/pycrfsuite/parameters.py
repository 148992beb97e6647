"""CRFsuite's algorithms and their parameters: defaults, types, and what becomes of each here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from partwise.estimators.parameters import penalty_parameters

#: The largest number of iterations there is.
MOST = 2**31 - 1
_UNUSED = "(unused here: the solver has none)"


@dataclass(frozen=True)
class Parameter:
    """default: also says the type. help: what it means here."""

    default: Any
    help: str

    def cast(self, value: Any) -> Any:
        """A value in the parameter's type, from what a user gives; ValueError if it is none."""
        kind = type(self.default)
        if kind is bool:
            return bool(int(value))
        return int(float(value)) if kind is int else kind(value)


_FEATURES = {
    "feature.minfreq": Parameter(
        0.0, "Leave out features that occur less often (CRFsuite: whose values add up to less)."
    ),
    "feature.possible_states": Parameter(False, "A weight for every pair of attribute and label, seen or not."),
    "feature.possible_transitions": Parameter(False, "A weight for every pair of labels, seen or not."),
}


def _stops(most: int, help: str) -> dict[str, Parameter]:
    return {"max_iterations": Parameter(most, help), "epsilon": Parameter(0.0, _UNUSED)}


_PASSES = "Passes over the training data, at most."

#: Parameters by algorithm.
ALGORITHMS: dict[str, dict[str, Parameter]] = {
    "lbfgs": _FEATURES
    | {
        "c1": Parameter(0.0, "Strength of the L1 penalty, c1 |w|_1."),
        "c2": Parameter(1.0, "Strength of the L2 penalty, c2 |w|^2."),
        "max_iterations": Parameter(MOST, _PASSES),
        "num_memories": Parameter(6, _UNUSED),
        "epsilon": Parameter(1e-5, _UNUSED),
        "period": Parameter(10, _UNUSED),
        "delta": Parameter(1e-5, "Training ends at a relative duality gap of at most ten times this."),
        "linesearch": Parameter("MoreThuente", _UNUSED),
        "max_linesearch": Parameter(20, _UNUSED),
    },
    "l2sgd": _FEATURES
    | {
        "c2": Parameter(1.0, "Strength of the L2 penalty, c2 |w|^2."),
        "max_iterations": Parameter(1000, _PASSES),
        "period": Parameter(10, _UNUSED),
        "delta": Parameter(1e-6, _UNUSED),
        "calibration.eta": Parameter(0.1, _UNUSED),
        "calibration.rate": Parameter(2.0, _UNUSED),
        "calibration.samples": Parameter(1000, _UNUSED),
        "calibration.candidates": Parameter(10, _UNUSED),
        "calibration.max_trials": Parameter(20, _UNUSED),
    },
    "averaged-perceptron": _FEATURES | _stops(100, _PASSES),
    "passive-aggressive": _FEATURES
    | {
        "type": Parameter(1, "0: hard margins, the method used here; 1 and 2 are taken for it."),
        "c": Parameter(1.0, _UNUSED),
        "error_sensitive": Parameter(True, "The margin grows with the number of wrong labels, always."),
        "averaging": Parameter(True, "Return the mean of the weights."),
        **_stops(100, _PASSES),
    },
    "arow": _FEATURES | {"variance": Parameter(1.0, _UNUSED), "gamma": Parameter(1.0, _UNUSED), **_stops(100, _PASSES)},
}

ALIASES = {"ap": "averaged-perceptron", "pa": "passive-aggressive"}

#: How each says what it is in the log.
TITLES = {
    "lbfgs": "L-BFGS optimization",
    "l2sgd": "Stochastic Gradient Descent (SGD)",
    "averaged-perceptron": "Averaged perceptron",
    "passive-aggressive": "Passive Aggressive",
}


def estimator_parameters(algorithm: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a `SequenceTagger` that minimises the same objective, or runs the same kind of online method."""
    found: dict[str, Any] = {
        "features": "all" if chosen["feature.possible_states"] else "observed",
        "transitions": "all" if chosen["feature.possible_transitions"] else "observed",
        "min_count": max(1, -int(-chosen["feature.minfreq"] // 1)),
        "legal": False,
    }
    if chosen["max_iterations"] < MOST:
        found["max_passes"] = max(1, chosen["max_iterations"])
    if algorithm in ("averaged-perceptron", "passive-aggressive"):
        averaged = chosen.get("averaging", True)
        solver = "perceptron" if algorithm == "averaged-perceptron" else "mira"
        return found | {"loss": "hinge", "solver": solver, "solver_options": {"averaged": averaged}}
    for name in ("c1", "c2"):
        if not 0.0 <= chosen.get(name, 0.0) < math.inf:
            raise ValueError(f"{name} must be a finite number >= 0, got {chosen[name]:g}")
    l1, l2 = chosen.get("c1", 0.0), 2.0 * chosen["c2"]
    if algorithm == "l2sgd":
        found |= {"solver": "sgd", "tol": 1e-2}
    else:
        found["tol"] = 10.0 * chosen["delta"]
    # Without any penalty there is no optimum to certify: one that does not show takes its place.
    return found | penalty_parameters(l1, l2 if l1 or l2 else 1e-8)
