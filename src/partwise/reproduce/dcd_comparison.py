"""Figures 1-3 and a row of Table 1 for one task: dual coordinate descent, its rivals on SSVMs, and online methods.

C multiplies the sum of losses, which is the estimators' C (l2 = 1 / C). DCD-SSVM, DCD-Light and CPD solve the squared
hinge; SVM-Struct, FW-Struct and SGD the hinge; the perceptron and MIRA have no C. Costs are Hamming distances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from .dcd_runs import choose, compete
from .experiment import Cell, Experiment, Records, in_orders, orders_of
from .following import first
from .outcome import Chart, Claim, Curve, Panel, Table

CS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
QUICK_CS = (0.05, 0.5)


@dataclass(frozen=True)
class Method:
    """One of the paper's algorithms.

    by: the method whose C it takes; None: it has none. run: options of `compete`.
    """

    label: str
    solver: str
    loss: str
    by: str | None
    options: Mapping[str, Any]
    run: Mapping[str, Any] = field(default_factory=dict)


DCD = "DCD-SSVM"
FW, SVM, SGD = "FW-Struct", "SVM-Struct", "SGD"
METHODS = (
    Method(DCD, "dcd", "squared-hinge", DCD, {"rounds": 5}),
    Method("DCD-Light", "dcd-light", "squared-hinge", DCD, {}),
    Method("CPD", "cpd", "squared-hinge", DCD, {}),
    Method(FW, "bcfw", "hinge", FW, {"pairwise": False, "cached_sweeps": 0}),
    Method(SVM, "one-slack", "hinge", FW, {"mix": 1.0}, {"score_dual": True}),
    Method(SGD, "sgd", "hinge", SGD, {"averaged": False}),
    Method("Perceptron", "perceptron", "hinge", None, {}),
    Method("MIRA", "mira", "hinge", None, {}),
)
FIGURES = (
    ("figure1", "Figure 1: methods for the squared hinge", (DCD, "DCD-Light", "CPD"),
     "DCD-SSVM is in general the best in both; CPD is slow first and then fast; DCD-Light is better at first."),
    ("figure2", "Figure 2: DCD-SSVM, FW-Struct and SVM-Struct", (DCD, FW, SVM),
     "DCD-SSVM often has a better model after much less time than SVM-Struct, which is unstable at first."),
    ("figure3", "Figure 3: DCD-SSVM and online methods", (DCD, "Perceptron", "MIRA", SGD),
     "DCD-SSVM is in general the most stable; the order of Perceptron and MIRA differs from task to task."),
)  # fmt: skip
#: Figure 1 has the objective, too; that of the others is another one for each loss.
WITH_OBJECTIVE = "figure1"
ONLINE = ("Perceptron", "MIRA", SGD)
#: Shares of DCD-SSVM's CPU time at which objectives are compared.
SHARES = (0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Setting:
    """A task of the comparison.

    task: of `tasks`. measure: of its score. passes: of DCD-SSVM. choosing: passes for each C. seconds: of DCD-SSVM's
    run. limit: sentences in the quick form. paper: {paper's task: {label: score in %}}. most: sentences in the full
    form, at most. share: see `follow`. without: labels of methods that the paper did not run on its task.
    why: what was found out about a method that DCD-SSVM does not beat in the test score.
    """

    task: str
    measure: str
    passes: int
    choosing: int
    seconds: float
    limit: int
    paper: Mapping[str, Mapping[str, float]]
    most: int | None = None
    share: float = 0.3
    without: tuple[str, ...] = ()
    why: Mapping[str, str] = field(default_factory=dict)


def experiment(
    name: str, title: str, data: str, where: str, differences: Sequence[str], setting: Setting
) -> Experiment:
    """The experiment of one task. differences: sentences about what is not as in the paper."""
    setup = (
        f"{setting.passes} iterations of DCD-SSVM (r = 5); all others have as much CPU time on one thread, "
        f"certificates and scores not counted. C of 0.01, 0.05, 0.1, 0.5, 1 or 5 by the {setting.measure} on "
        f"development data after {setting.choosing} passes; DCD-Light and CPD take that of DCD-SSVM, SVM-Struct that "
        "of FW-Struct (the same objectives). FW-Struct is the plain form of bcfw, SVM-Struct one-slack with mix = 1, "
        "scored at the solution of its quadratic program; SGD has Bottou's step sizes, with the number of "
        "examples in them, as his program has. "
    )
    return Experiment(
        name=name,
        title=title,
        paper="chang2013",
        source=f"Section 4, {where}",
        setup=setup + " ".join(differences),
        cells=partial(cells, setting),
        show=partial(show, setting),
        data=(data,),
    )


def cells(setting: Setting, quick: bool) -> Sequence[Cell]:
    common = {"of": setting.task, "limit": setting.limit if quick else setting.most}
    passes, choosing = (5, 3) if quick else (setting.passes, setting.choosing)
    seconds = 1.0 if quick else setting.seconds
    Cs = list(QUICK_CS if quick else CS)
    found: dict[str, Cell] = {}
    for method in _methods(setting):
        what = {**common, "solver": method.solver, "loss": method.loss, "options": dict(method.options)}
        choice = None if method.by is None else f"C of {method.by}"
        if choice is not None and choice not in found:
            each = seconds * choosing / passes
            found[choice] = Cell(choice, choose, {**what, "Cs": Cs, "passes": choosing}, len(Cs) * each)
        limits = {"passes": passes} if method.label == DCD else {"time_of": DCD}
        cell = Cell(
            method.label,
            compete,
            {**what, "C": 1.0 if choice is None else choice, "share": setting.share, **limits, **method.run},
            2.0 * seconds,
            after=tuple(found[name] for name in (choice, limits.get("time_of")) if isinstance(name, str)),
        )
        # One-slack cutting planes visit all examples at the same weights: no order to draw.
        found |= {each.name: each for each in in_orders(cell, quick or method.label == SVM)}
    return list(found.values())


def _methods(setting: Setting) -> list[Method]:
    return [method for method in METHODS if method.label not in setting.without]


def show(setting: Setting, records: Records) -> list[Table | Chart | Claim]:
    runs = {method.label: records[method.label] for method in METHODS}
    full = runs[DCD]["limit"] == setting.most
    return [
        *(_told(claim, full) for claim in [*_claims(setting, runs), *_online_claims(setting, records)]),
        _table(setting, records),
        _results(setting, runs),
        _choices(setting, records),
        *(_figure(setting, runs, *figure) for figure in FIGURES),
    ]


def _told(claim: Claim, full: bool) -> Claim:
    return claim if full else claim.untold()


def _claims(setting: Setting, runs: Records) -> list[Claim]:
    budget = runs[DCD]["trace"]["cpu_seconds"][-1]
    percent, measure = {label: 100 * by_time(run, "score", budget) for label, run in runs.items()}, setting.measure
    family = (DCD, "DCD-Light", "CPD")

    def objectives(labels: Sequence[str]) -> tuple[list[str], str]:
        """Who is lowest at each share of the time, and all numbers."""
        found = [{label: objective_at(runs[label], share * budget) for label in labels} for share in SHARES]
        text = "; ".join(
            f"{share * budget:.3g} s: " + ", ".join(f"{label} {value:.4g}" for label, value in values.items())
            for share, values in zip(SHARES, found, strict=True)
        )
        return [min(values, key=values.__getitem__) for values in found], text

    lowest, primals = objectives(family)
    early = {label: objective_at(runs[label], budget / 10) for label in family}
    hinge_lowest, hinge = objectives((FW, SVM))
    caught = reached(runs[DCD], "score", max(runs[SVM]["trace"]["score"]))
    last = runs[SVM]["trace"]["cpu_seconds"][-1]
    falls = {label: 100 * largest_fall(runs[label], budget / 2) for label in (DCD, SVM)}
    claims = [
        Claim("DCD-SSVM has the lowest objective of its family", lowest == [DCD] * len(SHARES), primals),
        Claim(
            f"DCD-SSVM has the best test {measure} of its family",
            percent[DCD] >= max(percent[label] for label in family),
            f"after {budget:.3g} s: " + ", ".join(f"{label} {percent[label]:.2f}" for label in family),
            " ".join(
                dict.fromkeys(
                    setting.why[label] for label in family[1:] if label in setting.why and percent[label] > percent[DCD]
                )
            ),
        ),
        Claim(
            "early on DCD-Light is well ahead of CPD",
            early["DCD-Light"] < early["CPD"],
            f"objectives after {budget / 10:.2g} s: " + ", ".join(f"{k} {v:.4g}" for k, v in early.items()),
        ),
        Claim("FW-Struct beats SVM-Struct in the objective", hinge_lowest == [FW] * len(SHARES), hinge),
        Claim(
            f"DCD-SSVM has SVM-Struct's best test {measure} in less time",
            caught is not None and caught < last,
            f"{100 * max(runs[SVM]['trace']['score']):.2f}, SVM-Struct's best in {last:.3g} s: "
            + ("DCD-SSVM never" if caught is None else f"DCD-SSVM after {caught:.3g} s"),
        ),
        Claim(
            f"SVM-Struct's test {measure} is unstable at first",
            falls[SVM] > max(1.0, falls[DCD]),
            "largest fall from one look to the next in the first half: "
            + ", ".join(f"{label} {value:.2f}" for label, value in falls.items()),
        ),
    ]
    return claims


def _online_claims(setting: Setting, records: Records) -> list[Claim]:
    scores, claims = {label: final_scores(records, label) for label in (DCD, *ONLINE)}, []
    ours = scores[DCD]
    for label in ONLINE:
        theirs = scores[label]
        paper = [(values[DCD], values[label], name) for name, values in setting.paper.items()]
        better = paper[0][0] >= paper[0][1]
        difference = float(np.mean(ours) - np.mean(theirs))
        text, error = f"test {setting.measure} {np.mean(ours):.2f} and {np.mean(theirs):.2f} at equal CPU time", 0.0
        if len(ours) > 1:
            error = math.sqrt((np.var(ours, ddof=1) + np.var(theirs, ddof=1)) / len(ours))
            text += f", means of {len(ours)} orders of the examples (standard error of the difference {error:.2f})"
        text += "; the paper: " + "; ".join(f"{name} {a} and {b}" for a, b, name in paper)
        claim = f"{DCD} beats {label}" if better else f"{label} beats {DCD} by a little"
        # A difference within its standard error says nothing.
        holds = None if abs(difference) < error else (difference > 0) is better
        claims.append(Claim(claim, holds, text, "" if holds else setting.why.get(label, "")))
    return claims


def _table(setting: Setting, records: Records) -> Table:
    labels = (DCD, *ONLINE)
    rows: list[list[Any]] = [[f"{name}, paper", *(scores[k] for k in labels)] for name, scores in setting.paper.items()]
    budget, passes = (records[DCD]["trace"][name][-1] for name in ("cpu_seconds", "passes"))
    early = [reached(records[k], "passes", passes, "score") for k in labels]
    rows.append(
        [f"ours, first look at {passes:g} passes or later", *(None if y is None else round(100 * y, 2) for y in early)]
    )
    final = [final_scores(records, k) for k in labels]
    rows.append([f"ours, after {budget:.3g} CPU s", *(round(values[0], 2) for values in final)])
    if len(final[0]) > 1:
        rows.append([f"ours, means of {len(final[0])} runs", *(round(float(np.mean(values)), 2) for values in final)])
    return Table("table1", f"Table 1: test {setting.measure}, %", ["task", *labels], rows)


def _results(setting: Setting, runs: Records) -> Table:
    headings = [
        "method",
        "C",
        "passes",
        "CPU s",
        f"test {setting.measure}, %",
        "best on the way, %",
        "objective",
        "gap",
    ]
    rows = []
    for method in METHODS:
        run, trace = runs[method.label], runs[method.label]["trace"]
        gap = trace["gap"][-1] / trace["primal"][-1]
        values = [trace["passes"][-1], trace["cpu_seconds"][-1], 100 * trace["score"][-1], 100 * max(trace["score"])]
        values = [round(value, 2) for value in values]
        rows.append([method.label, None if method.by is None else run["C"], *values, trace["primal"][-1], gap])
    note = (
        "The objective is that of each method's loss at its C, divided by C; of the perceptron and MIRA the hinge at "
        "C = 1. Gaps are relative."
    )
    return Table("runs", "All runs", headings, rows, note)


def _choices(setting: Setting, records: Records) -> Table:
    by = list(dict.fromkeys(method.by for method in METHODS if method.by is not None))
    columns = [records[f"C of {label}"]["rows"] for label in by]
    rows = [[at_C[0]["C"], *(round(100 * each["score"], 2) for each in at_C)] for at_C in zip(*columns, strict=True)]
    return Table("choice", f"C by development {setting.measure}, %", ["C", *by], rows)


def _figure(setting: Setting, runs: Records, name: str, title: str, labels: Sequence[str], paper: str) -> Chart:
    def panel(heading: str, column: str, y: str, scale: Any, factor: float) -> Panel:
        curves = [
            Curve(
                label, runs[label]["trace"]["cpu_seconds"][1:], [factor * v for v in runs[label]["trace"][column][1:]]
            )
            for label in labels
        ]
        return Panel(heading, "CPU seconds", y, curves, x_scale="log", y_scale=scale)

    panels = [panel(f"test {setting.measure}", "score", f"{setting.measure}, %", "linear", 100.0)]
    if name == WITH_OBJECTIVE:
        panels.append(panel("objective", "primal", "primal objective / C", "log", 1.0))
    return Chart(name, title, panels, paper=paper)


def final_scores(records: Records, label: str) -> list[float]:
    """Scores in % at the end of DCD-SSVM's time, in all orders."""
    budget = records[DCD]["trace"]["cpu_seconds"][-1]
    return [100 * by_time(run, "score", budget) for run in orders_of(records, label)]


def by_time(run: Mapping[str, Any], column: str, seconds: float) -> float:
    """The column's value at the last look within so many CPU seconds.

    A last pass that had begun by then belongs to them; before the first look it is the first value.
    """
    times, values = run["trace"]["cpu_seconds"], run["trace"][column]
    seen = sum(time <= seconds for time in times)
    begun = seen == len(times) - 1
    return float(values[-1] if begun else values[max(seen, 1) - 1])


def objective_at(run: Mapping[str, Any], seconds: float) -> float:
    """The objective after so many CPU seconds, between two looks by its logarithm."""
    trace = run["trace"]
    return float(np.exp(np.interp(seconds, trace["cpu_seconds"], np.log(trace["primal"]))))


def reached(run: Mapping[str, Any], column: str, least: float, give: str = "cpu_seconds") -> float | None:
    """`give` at the first look where the column is at least this; None if it never was."""
    return first(run["trace"], column, least=least, give=give)


def largest_fall(run: Mapping[str, Any], seconds: float) -> float:
    """The largest fall of the score from one look to the next within so many CPU seconds, after the first pass."""
    trace = run["trace"]
    scores = [y for x, y in zip(trace["cpu_seconds"][1:], trace["score"][1:], strict=True) if x <= seconds]
    return max([0.0, *(float(a - b) for a, b in zip(scores, scores[1:], strict=False))])
