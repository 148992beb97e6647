"""Certificates of all solvers on small random problems, compared with optima in extended precision."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from oracles.drawn import KINDS, Drawn, drawn
from oracles.optimum import EXTENDED, LONG, Optimum, optimum
from partwise import Result, get_solver, solve
from partwise.problem.dual_points import DualPoint
from partwise.solvers import suitable_solvers
from partwise.solvers.engine.base import ROUNDING_FLOOR
from partwise.solvers.engine.registry import SOLVERS

from .rows import Row

#: Allowed relative error of a primal value whose rounding is not stated (there is no certificate).
UNSTATED = 1e-9
#: Maximum numbers of passes of methods whose steps become slower from pass to pass.
MOST_PASSES = {"bmrm": 40, "one-slack": 40, "block-dual": 60}
#: Messages of documented refusals.
REFUSALS = "without a penalty its best weight is|weights without a penalty need exact blocks"


@dataclass(frozen=True)
class Runs:
    """A problem and how to call its solvers. `often`: certify after each pass."""

    drawn: Drawn
    limits: dict[str, Any]
    often: bool

    def solved(self, solver: str) -> Result:
        """Return the result of this solver."""
        often = self.often and any(item.name == "check_every" for item in fields(SOLVERS[solver]))
        passes = min(self.limits["max_passes"], MOST_PASSES.get(solver, np.inf))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = get_solver(solver, **({"check_every": 1} if often else {}))
            return solve(self.drawn.problem, made, **self.limits | {"max_passes": passes})


def runs(number: int) -> Runs:
    """Return the problem of trial `number`."""
    rng = np.random.default_rng([20, number])
    one = drawn(rng, KINDS[number % len(KINDS)])
    limits = {
        "tol": float(rng.choice([1e-2, 1e-3, 1e-6, 1e-9, 1e-12, 0.0], p=[0.05, 0.25, 0.15, 0.1, 0.3, 0.15])),
        "max_passes": int(rng.choice([5, 30, 100, 400])),
        "random_state": int(rng.integers(1000)),
    }
    return Runs(one, limits, bool(rng.random() < 0.3))


def faults_of(one: Drawn, tol: float, result: Result, best: Optimum) -> list[str]:
    """List the false claims of a result."""
    exact, slack = one.enumerated, one.problem.loss.rescaling == "slack"
    if not np.isfinite([*result.weights, result.primal]).all():
        return ["numbers that are not finite"]
    found: list[str] = []

    def check(name: str, excess: LONG, allowed: LONG) -> None:
        if not excess <= allowed:
            found.append(f"{name} by {float(excess):.3g}, stated {float(allowed):.3g}")

    value = exact.primal(result.weights)
    primal, dual, gap, rounding = (LONG(x) for x in (result.primal, result.dual, result.gap, result.rounding))
    # The primal value of slack rescaling is an upper bound if the structure has no exact oracle.
    off = value - primal if slack else abs(primal - value)
    if not np.isfinite(result.gap):
        check("primal", off, LONG(UNSTATED) * (abs(value) + exact.size(result.weights)))
        return found
    check("primal", off, rounding)
    check("above the optimum", best.lower - primal, rounding)
    check("dual", dual - best.upper, rounding)
    check("gap", max(primal, value) - best.upper, gap)
    check("difference", primal - dual, gap)
    if result.dual_point is not None:
        recomputed = dual_of(one, result.dual_point)
        # With an l1 term the library searches for the best multiple of a plane, and finds it approximately.
        if recomputed is not None:
            check("dual point", recomputed - dual if one.problem.l1 else abs(recomputed - dual), rounding)
    if result.status == "converged":
        check("converged", value - best.upper, LONG(max(tol, ROUNDING_FLOOR)) * abs(primal))
    return found


def dual_of(one: Drawn, point: DualPoint) -> LONG | None:
    """Compute D of a dual point in extended precision from the library's expected counts, masses and entropies.

    Exact values for rounded scores would be those of another dual point. Return None for aggregates, slack rescaling
    and box bounds.
    """
    problem, exact, case = one.problem, one.enumerated, one.case
    if problem.loss.rescaling == "slack" or problem.penalty.free is not None or problem.l2 == 0:
        return None
    mass, entropies = np.ones(case.n), np.zeros(case.n)
    if point.kind == "gibbs":
        counts, entropies = problem.sums.marginals_of_scores(point.scores)
    elif point.kind == "linear":
        counts, entropies = problem.sums.marginals_of_scores(problem.sums.linear_scores(*point.linear()))
    elif point.kind == "cliques":
        counts, entropies = problem.sums.read_cliques(point.marginals)
    elif point.kind == "active":
        counts, mass = point.active.expected_counts(problem.slot_offsets)
    elif point.kind == "slots":
        counts = point.counts
        mass = mass if point.mass is None else point.mass
        entropies = entropies if point.entropies is None else point.entropies
    else:
        return None
    u, b = np.zeros_like(exact.quadratic), LONG(0)
    numbers = (each.astype(LONG) for each in (mass, entropies))
    parts = zip(exact.omega, case.gold_counts, case.split(counts), case.matrices, one.cost, *numbers, strict=True)
    for omega, gold, own, matrix, cost, s, entropy in parts:
        own = own.astype(LONG)
        u = u + omega * ((s * gold - own) @ matrix.astype(LONG))
        b += omega * (LONG(problem.loss.cost_scale) * (own @ cost.astype(LONG)) + LONG(exact.temperature) * entropy)
        b -= omega * s * s / 4 if exact.squared else LONG(0)
    return exact.dual(u, b) if problem.l1 else b - (u * u).sum() / (2 * exact.quadratic[0])


def trial(number: int, folder: Path) -> tuple[str, str]:
    """Run all solvers on one problem."""
    these = runs(number)
    one, results, wrong = these.drawn, [], []
    for solver in suitable_solvers(one.problem):
        try:
            results.append(these.solved(solver))
        except (ValueError, ArithmeticError, RuntimeError) as error:
            if not re.search(REFUSALS, str(error)):
                wrong.append(f"{solver}: {type(error).__name__}: {error}")
    best = optimum(one.enumerated, *(result.weights for result in results if np.isfinite(result.weights).all()))
    for result in results:
        found = faults_of(one, these.limits["tol"], result, best)
        wrong += [f"{result.solver} ({result.status}): {each}" for each in found]
    if wrong:
        text = f"{one.text}, {these.limits}; optimum {float(best.upper):.6g}"
        return "CertificateError" if "CertificateError" in str(wrong) else "false", f"{text}: {' | '.join(wrong)}"
    stated = [LONG(result.rounding) for result in results if np.isfinite(result.gap)]
    known = best.upper - best.lower <= min(stated, default=LONG(np.inf))
    return "holds" if known else "holds, as far as the optimum is known", f"{len(results)} solvers"


ROWS = [
    Row(
        "certificates",
        "random small problems of every structure, loss and penalty, sample weights of 1e-6 to 1e4, costs to 100, by "
        "all solvers that fit, against the optimum in extended precision",
        "every interval holds the optimum, every value is right within its stated rounding; 0 `CertificateError`",
        20_000 if EXTENDED else 0,
        26,
        trial,
        ("holds", "holds, as far as the optimum is known"),
        120,
    )
]
