"""Table 1 of Collins et al. 2008: the visits that EG's theorems allow, batch and online, and the visits it makes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from papers.curves import below, curve
from papers.experiment import Cell, Experiment, Record, Records, in_orders, orders_of
from papers.histories import first, follow
from papers.outcome import Chart, Claim, Panel, Table
from papers.tasks import task
from papers.training import train
from partwise.solvers import get_solver
from partwise.solvers.dual.base import psi2_bounds

L2 = 100.0
SHARES = (0.1, 0.01, 0.001)
#: A ratio of bounds of at least this share of n counts as "a factor of n".
ABOUT_N = 0.3
#: EG with the theorems' step sizes, from uniform distributions.
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "batch": ("eg-batch", {"step_size": "theorem", "start": "uniform"}),
    "online": ("eg", {"step_size": "theorem", "start": "uniform", "order": "random"}),
}
LOSSES = {"hinge": "max-margin", "log": "log-linear"}


def cells(quick: bool) -> Sequence[Cell]:
    limit, seconds = (100, 1.5) if quick else (500, 15.0)
    found = []
    for loss in LOSSES:
        common = {"of": "mnist", "loss": loss, "l2": L2, "limit": limit}
        found.append(Cell(f"constants, {loss}", constants, common, seconds=2))
        for name, (solver, options) in FORMS.items():
            given = {**common, "solver": solver, "options": options, "max_seconds": seconds, "tol": 1e-4}
            cell = Cell(f"{name}, {loss}", train, given, seconds=seconds)
            found += in_orders(cell, quick) if name == "online" else [cell]
    return found


def constants(data: str | None, *, of: str, loss: str, l2: float, limit: int | None) -> Record:
    """Return n, |A|, D[u* || u^1] for uniform u^1, Q(u^1) and Q*; u* is the end of a run to a small gap."""
    problem = task(of, data, limit).session(loss, l2).problem
    uniform, entropies = problem.sums.marginals_of_scores(np.zeros(problem.n_slots))
    found = follow(problem, get_solver("eg"), tol=1e-6, max_passes=5000)
    _, own = problem.sums.marginals_of_scores(found["point"].scores)
    first = problem.dual_of_plane(*problem.sums.dual_terms_slots(uniform, None, entropies))
    best = 0.5 * (found["trace"]["primal"][-1] + found["trace"]["dual"][-1])
    return {
        "n": len(problem.active),
        "A": float(psi2_bounds(problem).max()) / problem.l2,
        "divergence": float(np.sum(entropies - own)),
        "excess": best - first,
        "optimum": best,
    }


def visits(found: Record, loss: str, form: str, epsilon: float) -> float:
    """Return an entry of Table 1: the bound on the number of visited examples."""
    n, A, D, excess = (found[name] for name in ("n", "A", "divergence", "excess"))
    if loss == "hinge":
        return float(n / epsilon * (n * A * D if form == "batch" else A * D + excess))
    if form == "batch":
        return float(n * (1 + n * A) * math.log((1 + n * A) * D / epsilon))
    return float(n * (1 + A) * math.log(((1 + A) * D + excess) / epsilon))


def measured(record: Record, found: Record, epsilon: float) -> float | None:
    """Return the number of visited examples until the dual is within epsilon of the optimum."""
    passes = first(record["trace"], "dual", least=found["optimum"] - epsilon, give="passes")
    return None if passes is None else passes * float(found["n"])


def _mean(visited: Sequence[float | None]) -> float | None:
    """Return the mean over the orders; None if a run did not reach the goal."""
    return None if None in visited else float(np.mean(np.array(visited, dtype=float)))


def show(records: Records) -> list[Table | Chart | Claim]:
    rows, ratios, real, used, late = [], [], [], [], []
    for loss, kind in LOSSES.items():
        found = records[f"constants, {loss}"]
        runs = {form: orders_of(records, f"{form}, {loss}") for form in FORMS}
        for share in SHARES:
            epsilon = share * abs(found["optimum"])
            bounds = [visits(found, loss, form, epsilon) for form in FORMS]
            own = [_mean([measured(run, found, epsilon) for run in runs[form]]) for form in FORMS]
            ratios.append(bounds[0] / bounds[1])
            if own[0] is not None and own[1]:
                real.append(own[0] / own[1])
            used += [o / b for o, b in zip(own, bounds, strict=True) if o is not None]
            late += [f"{form}, {kind} to {share:.1%}" for form, o in zip(FORMS, own, strict=True) if o is None]
            rows.append([kind, f"{share:.1%}", bounds[0], own[0], bounds[1], own[1], bounds[0] / bounds[1]])
    n = records["constants, log"]["n"]
    headings = ["dual", "accuracy / optimum", "batch, bound", "batch", "online, bound", "online", "ratio of bounds"]
    return [
        Claim(
            "by the bounds the online algorithm visits a factor of n fewer examples",
            all(ratio > ABOUT_N * n for ratio in ratios),
            f"n = {n}; ratios of the bounds {min(ratios):.0f} to {max(ratios):.0f}; of the visits measured "
            + (f"{min(real):.0f} to {max(real):.0f}" if real else "not known"),
            needed=f"ratios of the bounds above {ABOUT_N:g} n",
        ),
        Claim(
            "no run that reaches its accuracy in the time given needs more than its bound",
            all(share <= 1.0 for share in used),
            f"{len(used)} of {len(used) + len(late)} reach it, with at most {max(used):.2g} of the bound (online: "
            f"means of {len(runs['online'])} orders)" + (f"; not reached: {'; '.join(late)}" if late else ""),
        ),
        Table(
            "table1",
            "Table 1: examples to visit",
            headings,
            rows,
            f"n = {n}, |A| = {records['constants, log']['A']:.3g}. -: not reached in the time given.",
        ),
        Chart(
            "duals",
            "Distance of the dual from the optimum",
            [_panel(records, loss, kind) for loss, kind in LOSSES.items()],
            "O(1/eps) for the max-margin dual and O(log(1/eps)) for the log-linear one",
        ),
    ]


def _panel(records: Records, loss: str, kind: str) -> Panel:
    best = records[f"constants, {loss}"]["optimum"]
    curves = [curve(form, records[f"{form}, {loss}"], "dual", of=below(best)) for form in FORMS]
    return Panel(kind, "passes", "distance / optimum", curves, x_scale="log", y_scale="log", limits=(1e-6, 10.0))


EXPERIMENT = Experiment(
    name="eg-bounds",
    title="Iterations of EG by its theorems",
    paper="collins2008",
    source="Section 5.1, Table 1",
    setup=(
        "500 images of MNIST, C = 100, the steps of Theorems 1 and 2 from uniform distributions, at most 15 CPU "
        "seconds per run. D[u* || u^1] and Q* are those of a run to a gap of 1e-6; the expectation of the online "
        "algorithm is the mean of five orders."
    ),
    cells=cells,
    show=show,
    data=("mnist",),
)
