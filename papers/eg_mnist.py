"""Figures 4 to 11 and Appendix F of Collins et al. 2008 on MNIST: forms of EG by C, against SGD and L-BFGS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from papers.curves import (
    curve,
    error,
    near_best,
    optimum,
    over,
    overtakes,
    passes_to,
    passes_to_gap,
    seconds_per_pass,
    share_of,
    straightness,
    text,
)
from papers.experiment import Cell, Experiment, Record, Records, in_orders, orders_of
from papers.histories import first
from papers.outcome import Chart, Claim, Panel, Table, told
from papers.training import train, train_sgd
from papers.verdicts import CLEARLY, every, larger, mean_text, some, sooner

#: {C: passes of its runs}.
PASSES = {1000: 15, 100: 20, 10: 60, 1: 100}
#: More than twice the passes that the random order needs, so that a factor of 2 can be seen.
CYCLIC_PASSES = 250
SGD_PASSES = {1000: 15, 100: 20, 10: 60, 1: 60, 0.01: 30}
FIRST_STEPS = (1.0, 0.1, 0.01, 0.001, 0.0001)
#: The paper's randomised order draws examples with replacement.
RANDOM = {"order": "random"}
FORMS: dict[str, dict[str, Any]] = {
    "eg, cyclic": {"order": "cyclic"},
    "eg, permuted": {"order": "permuted"},
    "eg, annealed": {**RANDOM, "anneal": 10.0, "anneal_hold": 5, "anneal_rate": 0.7},
}
#: Runs end at this relative gap, far below what the figures show.
TOL = 1e-6
SHARES = (0.1, 0.01, 0.001)
#: The C of Figure 14.
TIMED = 10
#: Thresholds for the paper's words: R^2 of "more or less linearly", a factor for "much", passes for "about 5", a cost
#: for "about 10 % more", points of error for "very competitive".
STRAIGHT, MUCH, ABOUT_FIVE, ABOUT_TENTH, COMPETITIVE = 0.9, 2.0, 10.0, 1.15, 0.1


def cells(quick: bool) -> Sequence[Cell]:
    limit, cost = (3000, 0.02) if quick else (None, 0.35)

    def made(name: str, solver: str, C: float, passes: float, options: dict[str, Any]) -> Cell:
        given = {"of": "mnist", "solver": solver, "l2": C, "max_passes": passes, "options": options, "limit": limit}
        return Cell(name, train, {**given, "tol": TOL, "score": True}, seconds=cost * passes)

    found = [
        each
        for C, passes in PASSES.items()
        for each in in_orders(made(f"eg, C = {C:g}", "eg", C, passes, RANDOM), quick)
    ]
    for name, options in FORMS.items():
        cell = made(f"{name}, C = 1", "eg", 1, CYCLIC_PASSES if name == "eg, cyclic" else PASSES[1], options)
        found += in_orders(cell, quick) if options.get("order") == "random" else [cell]
    found += [made(f"lbfgs, C = {C:g}", "lbfgs", C, passes, {"memory": 10}) for C, passes in PASSES.items()]
    for C, passes in SGD_PASSES.items():
        given = {"of": "mnist", "l2": C, "max_passes": passes, "first_steps": FIRST_STEPS, "limit": limit}
        cell = Cell(f"sgd, C = {C:g}", train_sgd, given, seconds=cost * (passes + len(FIRST_STEPS)))
        found += in_orders(cell, quick) if C in PASSES else [cell]
    given = {"of": "mnist", "l2": 1, "max_passes": SGD_PASSES[1], "limit": limit}
    return [*found, Cell("sgd, eta0 = 0.1, C = 1", train_sgd, {**given, "first_steps": [0.1]}, seconds=cost * 60)]


def show(records: Records) -> list[Table | Chart | Claim]:
    full = records["eg, C = 10"]["n_examples"] == 59_000
    best = {C: optimum(record for name, record in records.items() if f", C = {C:g}," in f"{name},") for C in PASSES}
    claims = [
        _linear(records, best),
        _cyclic(records, best),
        _annealing(records, best),
        *_against_sgd(records),
        *_against_lbfgs(records, best),
        *_cost(records),
    ]
    return [*told(claims, full), _table(records, best), *_charts(records, best)]


def _linear(records: Records, best: dict[int, float]) -> Claim:
    fits = {}
    for C, value in best.items():
        trace = records[f"eg, C = {C:g}"]["trace"]
        points = [(x, y) for x, y in zip(trace["passes"], trace["gap"], strict=True) if y <= 0.5 * value]
        fits[C] = straightness([x for x, _ in points], [y for _, y in points])
    return Claim(
        "the logarithm of EG's gap falls more or less linearly with passes",
        all(fit > STRAIGHT for fit in fits.values()),
        "R^2 of a line: " + ", ".join(f"{fit:.3f} at C = {C:g}" for C, fit in fits.items()),
        needed=f"R^2 above {STRAIGHT:g} at each C",
    )


def _cyclic(records: Records, best: dict[int, float]) -> Claim:
    names = {name: f"eg{infix}, C = 1" for name, infix in (("random", ""), ("cyclic", ", cyclic"))}
    to = {
        name: [[passes_to_gap(run, best[1], share) for run in orders_of(records, cell)] for share in SHARES]
        for name, cell in names.items()
    }
    return Claim(
        "at C = 1 the randomised order is much faster than the cyclic one",
        every(sooner(r, c, MUCH, CYCLIC_PASSES) for r, c in zip(to["random"], to["cyclic"], strict=True)),
        "passes to gaps of 10, 1 and 0.1 %: "
        + "; ".join(f"{name} {_texts(found)}" for name, found in to.items())
        + f" (of {CYCLIC_PASSES} passes)",
        needed=f"{MUCH:g} times fewer passes",
    )


def _texts(found: Sequence[Sequence[float | None]]) -> str:
    return ", ".join(map(mean_text, found))


def _annealing(records: Records, best: dict[int, float]) -> Claim:
    shares = (0.05, 0.01, 0.001)
    plain, annealed = (
        [[passes_to(run, best[1], share) for run in orders_of(records, name)] for share in shares]
        for name in ("eg, C = 1", "eg, annealed, C = 1")
    )
    return Claim(
        "at C = 1 annealing (C = 10 for 5 passes, then 1 + 9 * 0.7^(t - 5)) is significantly faster",
        every(sooner(a, p, factor=CLEARLY, budget=PASSES[1]) for a, p in zip(annealed, plain, strict=True)),
        f"passes to within 5, 1 and 0.1 % of the optimum: plain {_texts(plain)}; annealed {_texts(annealed)}",
        needed=f"{CLEARLY:g} times fewer passes",
    )


def _against_sgd(records: Records) -> list[Claim]:
    runs = {(name, C): orders_of(records, f"{name}, C = {C:g}") for name in ("eg", "sgd") for C in PASSES} | {
        ("annealed", 1): orders_of(records, "eg, annealed, C = 1")
    }

    def ahead(name: str, C: int) -> list[float | None]:
        """Return the pass from which on EG is ahead of SGD, one per order."""
        return [overtakes(one, other) for one, other in zip(runs[name, C], runs["sgd", C], strict=True)]

    def at_first(name: str, C: int, column: str) -> list[float]:
        return [_passes_at(run, column, 1) for run in runs[name, C]]

    found = {C: ahead("eg", C) for C in (1000, 100, 10)}
    first = [larger(at_first("eg", C, "primal"), at_first("sgd", C, "primal")) for C in found]
    weak = ahead("eg", 1), ahead("annealed", 1)
    late = overtakes(records["eg, annealed, C = 1"], records["sgd, eta0 = 0.1, C = 1"])
    rates = ", ".join(f"{records[f'sgd, C = {C:g}']['eta0']:g} at C = {C:g}" for C in SGD_PASSES)
    start = {name: [error(score) for score in at_first(name, 10, "score")] for name in ("sgd", "eg")}
    end = {name: [min(map(error, run["trace"]["score"])) for run in runs[name, 10]] for name in ("sgd", "eg")}
    return [
        Claim(
            "for C of 10 or more SGD's objective is lower at first, and EG's after about 5 passes",
            every([*first, *(sooner(passes, [ABOUT_FIVE]) for passes in found.values())]),
            f"EG is ahead from pass {', '.join(f'{mean_text(p)} (C = {C:g})' for C, p in found.items())}; eta0 chosen: "
            f"{rates}; the paper's: 0.001 at C = 1000, 0.01 elsewhere",
            needed=f"SGD lower after 1 pass, EG from pass {ABOUT_FIVE:g} on",
        ),
        Claim(
            "at C = 1 EG is ahead after the first few passes, too",
            some(sooner(passes, [ABOUT_FIVE]) for passes in weak),
            f"plain from pass {mean_text(weak[0])}, annealed from pass {mean_text(weak[1])}, annealed against SGD with "
            f"eta0 = 0.1, chosen afterwards, from pass {text(late)}",
            "" if sooner(weak[1], [ABOUT_FIVE]) else "Annealed, EG works on larger C in its first 15 passes or so",
            needed=f"plain or annealed from pass {ABOUT_FIVE:g} on",
        ),
        Claim(
            "SGD's validation error is lower in the first passes; then EG is very competitive",
            every([larger(start["eg"], start["sgd"]), larger(end["sgd"], end["eg"], by=-COMPETITIVE)]),
            "C = 10, error in %, SGD and EG: after 1 pass "
            f"{mean_text(start['sgd'], '.2f')} and {mean_text(start['eg'], '.2f')}; lowest "
            f"{mean_text(end['sgd'], '.2f')} and {mean_text(end['eg'], '.2f')}",
            needed=f"SGD lower after 1 pass, and a lowest error of EG at most {COMPETITIVE:g} points above SGD's",
        ),
    ]


def _passes_at(record: Record, column: str, passes: float) -> float:
    found = first(record["trace"], "passes", least=passes, give=column)
    assert found is not None
    return found


def _against_lbfgs(records: Records, best: dict[int, float]) -> list[Claim]:
    def times(solver: str, C: int, axis: str) -> list[float | None]:
        """Return the passes or seconds until the primal value is within 1 % of the optimum, one per order."""
        return [passes_to(run, best[C], 0.01, axis) for run in orders_of(records, f"{solver}, C = {C:g}")]

    passes = {C: [times(solver, C, "passes") for solver in ("eg", "lbfgs")] for C in best}
    seconds = {solver: times(solver, TIMED, "cpu_seconds") for solver in ("eg", "lbfgs", "sgd")}
    ends = {solver: records[f"{solver}, C = {TIMED:g}"]["trace"]["cpu_seconds"][-1] for solver in seconds}
    return [
        Claim(
            "EG's objective converges considerably faster than that of L-BFGS with 10 pairs, by passes",
            every(sooner(eg, other, CLEARLY, PASSES[C]) for C, (eg, other) in passes.items()),
            "passes to within 1 % of the optimum, EG and L-BFGS: "
            + "; ".join(f"{mean_text(eg)} and {mean_text(other)} (C = {C:g})" for C, (eg, other) in passes.items()),
            needed=f"{CLEARLY:g} times fewer at each C",
        ),
        Claim(
            f"at C = {TIMED:g} EG's objective converges faster than L-BFGS's and SGD's by CPU time (Appendix F)",
            every(sooner(seconds["eg"], seconds[other], budget=ends[other]) for other in ("lbfgs", "sgd")),
            "CPU seconds to within 1 %: "
            + ", ".join(f"{solver} {mean_text(found)} (of {ends[solver]:.3g})" for solver, found in seconds.items()),
        ),
    ]


def _cost(records: Records) -> list[Claim]:
    cost = {
        name: [seconds_per_pass(run) for run in orders_of(records, f"{name}, C = 10")]
        for name in ("eg", "sgd", "lbfgs")
    }
    claims = []
    longer = "a pass of EG, with its search of step sizes, takes only about 10 % more time than one of SGD"
    dense = "Passes of L-BFGS are dense matrix products here"
    for other, label, claim, why in (
        ("sgd", "SGD", longer, ""),
        ("lbfgs", "L-BFGS", "and about 10 % more than one of L-BFGS", dense),
    ):
        holds = larger([ABOUT_TENTH * seconds for seconds in cost[other]], cost["eg"])
        ratio = sum(cost["eg"]) / len(cost["eg"]) / (sum(cost[other]) / len(cost[other])) - 1
        numbers = (
            f"C = 10, CPU seconds per pass: EG {mean_text(cost['eg'])}, {label} {mean_text(cost[other])} ({ratio:+.0%})"
        )
        claims.append(Claim(claim, holds, numbers, "" if holds else why, needed=f"at most {ABOUT_TENTH - 1:.0%} more"))
    return claims


def _table(records: Records, best: dict[int, float]) -> Table:
    rows = []
    for name in (cell.name for cell in cells(True)):
        record = records[name]
        C = float(name.rsplit(" ", 1)[1])
        trace, value = record["trace"], best.get(int(C), math.nan) if C >= 1 else math.nan
        score = [error(s) for s in trace["score"]]
        to = [passes_to(record, value, share) for share in (0.1, 0.01, 0.001)]
        rows.append([name, *to, trace["passes"][-1], seconds_per_pass(record), min(score), score[-1]])
    headings = [
        "run",
        "passes to 10 %",
        "1 %",
        "0.1 %",
        "last pass",
        "CPU s per pass",
        "lowest error %",
        "last error %",
    ]
    return Table(
        "runs", "All runs: passes until the primal value is this near to the optimum", headings, rows, "-: not reached."
    )


def _charts(records: Records, best: dict[int, float]) -> list[Chart]:
    eg = {C: records[f"eg, C = {C:g}"] for C in PASSES}
    labels = {C: f"C = {C:g}" for C in PASSES}
    errors = [
        _errors(title, {labels[C]: eg[C] for C in Cs}, span)
        for title, Cs, span in (("all", list(PASSES), 12.0), ("C = 10 and 1", [10, 1], 2.0))
    ]
    values = [
        Panel(
            f"C = {pair[0]:g} and {pair[1]:g}",
            "passes",
            "objective",
            [
                curve(f"{labels[C]}, {which}", eg[C], which, dashed=which == "dual", beside=f"{labels[C]}, primal")
                for C in pair
                for which in ("primal", "dual")
            ],
            limits=_around([best[C] for C in pair]),
        )
        for pair in ((1000, 100), (10, 1))
    ]
    gaps = Panel(
        "", "passes", "gap, % of the optimum",
        [curve(labels[C], eg[C], "gap", of=share_of(best[C] / 100)) for C in PASSES], y_scale="log",
    )  # fmt: skip
    orders = {"random": eg[1], "cyclic": records["eg, cyclic, C = 1"], "permuted": records["eg, permuted, C = 1"]}
    randomised = [
        Panel(
            "primal and dual", "passes", "objective",
            [
                each
                for name, record in orders.items()
                for each in (
                    curve(name, record, "primal"),
                    curve(f"{name}, dual", record, "dual", dashed=True, beside=name),
                )
            ],
            limits=_around([best[1]]),
        ),
        Panel(
            "gap", "passes", "gap / optimum",
            [curve(name, record, "gap", of=share_of(best[1])) for name, record in orders.items()],
            y_scale="log",
        ),
    ]  # fmt: skip
    annealed = {"eg": eg[1], "eg, annealed": records["eg, annealed, C = 1"]}
    annealing = [
        Panel(
            "primal objective", "passes", "over the optimum",
            [curve(name, record, "primal", of=over(best[1])) for name, record in annealed.items()], y_scale="log",
        ),
        _errors("validation error", annealed, 2.0),
    ]  # fmt: skip
    eg10 = {"eg, C = 10": eg[10]}
    sgd = [_errors("", eg10 | {name: records[name] for name in (f"sgd, C = {C:g}" for C in SGD_PASSES)}, 6.0)]
    objectives = [_objective(records, C, best[C], ("eg", "sgd"), "passes") for C in PASSES]
    lbfgs = [_objective(records, C, best[C], ("eg", "lbfgs"), "passes") for C in PASSES]
    others = {name: records[name] for name in (f"lbfgs, C = {C:g}" for C in PASSES)}
    lbfgs_errors = _errors("validation error", eg10 | others, 6.0)
    three = ("eg", "sgd", "lbfgs")
    seconds = [
        _objective(records, 10, best[10], three, "cpu_seconds"),
        _errors("C = 10: validation error", {name: records[f"{name}, C = 10"] for name in three}, 6.0, "cpu_seconds"),
    ]  # fmt: skip
    return [
        Chart("figure4", "Figure 4: validation error of EG", errors,
              "fast convergence for C of 10 or more, slower for C = 1; little to choose between the two by error"),
        Chart("figure5", "Figure 5: primal and dual objectives of EG", values,
              "both converge to the same value, faster for larger C"),
        Chart("figure6", "Figure 6: gap of EG", [gaps], "straight lines, steeper for larger C"),
        Chart("figure7", "Figure 7: orders of visits, C = 1", randomised,
              "the randomised order converges much faster than the deterministic one",
              "random: drawn with replacement, the paper's. permuted: a new order in each pass, the default here."),
        Chart("figure8", "Figure 8: annealing, C = 1", annealing,
              "the annealed strategy converges significantly faster"),
        Chart("figure9", "Figure 9: validation error of EG and SGD", sgd,
              "SGD is better for about 5 passes, then EG is very competitive",
              "The passes in which SGD's first step size is chosen are not counted, as in the paper."),
        Chart("figure10", "Figure 10: objectives of EG and SGD", objectives,
              "SGD is better at first, EG after about 5 passes"),
        Chart("figure11", "Figure 11: EG and L-BFGS", [*lbfgs, lbfgs_errors],
              "EG converges considerably faster; L-BFGS's error is below EG's for no C"),
        Chart("figure14", "Figure 14: by CPU time, C = 10", seconds,
              "EG's objective converges faster than the others'"),
    ]  # fmt: skip


def _errors(title: str, runs: Records, span: float, axis: str = "passes") -> Panel:
    """Draw validation errors of runs by label, within `span` points of the lowest error."""
    timed = axis == "cpu_seconds"
    curves = [curve(label, record, "score", axis, error) for label, record in runs.items()]
    return Panel(
        title,
        "CPU seconds" if timed else "passes",
        "validation error, %",
        curves,
        x_scale="log" if timed else "linear",
        limits=near_best(curves, span),
    )


def _objective(records: Records, C: float, best: float, solvers: Sequence[str], axis: str) -> Panel:
    """Draw primal values over the optimum; at C = 1 also annealed EG and SGD's other first step."""
    names = [f"{solver}, C = {C:g}" for solver in solvers]
    if C == 1:
        names.append("eg, annealed, C = 1")
        names += ["sgd, eta0 = 0.1, C = 1"] if "sgd" in solvers else []
    timed = axis == "cpu_seconds"
    return Panel(
        f"C = {C:g}",
        "CPU seconds" if timed else "passes",
        "primal over the optimum",
        [curve(name.rsplit(", C", 1)[0], records[name], "primal", axis, over(best)) for name in names],
        x_scale="log" if timed else "linear",
        y_scale="log",
    )


def _around(values: Sequence[float]) -> tuple[float, float]:
    """Return the limits of an axis that shows values near these optima."""
    return 0.6 * min(values), 1.5 * max(values)


EXPERIMENT = Experiment(
    name="eg-mnist",
    title="MNIST: EG, SGD and L-BFGS",
    paper="collins2008",
    source="Section 7.1, Figures 4 to 11; Appendix F, Figure 14",
    setup=(
        "Multinomial logistic regression on 59,000 images with pixels between 0 and 1, no bias; validation error on "
        "10,000 others. EG draws examples with replacement; the step size of an example starts at 0.5, is halved until "
        "the dual rises and grows by 1.05. SGD has the step sizes eta0 / (1 + k / n) and that eta0 of 1, 0.1, ..., "
        "0.0001 which has the lowest validation error after one pass. L-BFGS keeps 10 pairs. EG starts near the gold "
        "labels, which the paper does not say of its own. EG and SGD are run in five orders; figures show the first."
    ),
    cells=cells,
    show=show,
    data=("mnist",),
)
