"""Figures 1-3 and a row of Table 1 of Chang and Yih 2013 for one task: dual coordinate descent and its rivals.

C multiplies the sum of losses, which is the estimators' C (l2 = 1 / C). DCD-SSVM, DCD-Light and CPD solve the squared
hinge; SVM-Struct, FW-Struct and SGD the hinge; the perceptron and MIRA have no C. Costs are Hamming distances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from papers.dcd_runs import choose, compete
from papers.experiment import Cell, Experiment, Record, Records, in_orders, orders_of
from papers.histories import first
from papers.outcome import Chart, Claim, Curve, Panel, Table, told
from papers.verdicts import every, larger, mean_text, sooner

CS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
QUICK_CS = (0.05, 0.5)


@dataclass(frozen=True)
class Method:
    """One of the paper's algorithms.

    by: the method for which its C is chosen; None: it has no C. run: options of `compete`.
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
#: Only Figure 1 shows the objective: the methods of the other figures have different losses.
WITH_OBJECTIVE = "figure1"
ONLINE = ("Perceptron", "MIRA", SGD)
#: Curves are compared from this share of DCD-SSVM's CPU time to its end, not at the end only: the paper says that final
#: models of methods with the same objective are not a meaningful comparison.
BEGIN = 0.1
#: Thresholds for the paper's words: a ratio of objectives, and points of the score.
WELL, COMPETITIVE, FALL = 2.0, 0.5, 1.0


@dataclass(frozen=True)
class Setting:
    """A task of the comparison.

    task: its name in `tasks`. measure: the name of its score. passes: passes of DCD-SSVM. choosing: passes to try each
    C. seconds: expected time of DCD-SSVM's run. limit: sentences in the quick form. paper: {paper's task: {label: score
    in %}}. most: the most sentences in the full form. share: see `follow`. without: labels of methods that the paper
    did not run on its task. why: {method that DCD-SSVM does not beat in the test score: known reason}.
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
    """Make the experiment of one task. differences: sentences about the differences to the paper's experiment."""
    setup = (
        f"{setting.passes} iterations of DCD-SSVM (r = 5); all others have as much CPU time on one thread, "
        f"certificates and scores not counted. C of 0.01, 0.05, 0.1, 0.5, 1 or 5 by the {setting.measure} on "
        f"development data after {setting.choosing} passes; DCD-Light and CPD take that of DCD-SSVM, SVM-Struct that "
        "of FW-Struct (the same objectives). FW-Struct is the plain form of bcfw, SVM-Struct one-slack with mix = 1, "
        "scored at the solution of its quadratic program; SGD has Bottou's step sizes, with the number of "
        "examples in them, as his program has, and, as in the paper, the first step that the objective on 1000 drawn "
        "examples chooses. All but SVM-Struct, which has no order, are run in five orders of the examples; figures and "
        "the table of all runs show the first. "
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
        # One-slack cutting planes visit all examples at the same weights, so the order of examples has no effect.
        found |= {each.name: each for each in in_orders(cell, quick or method.label == SVM)}
    return list(found.values())


def _methods(setting: Setting) -> list[Method]:
    return [method for method in METHODS if method.label not in setting.without]


def show(setting: Setting, records: Records) -> list[Table | Chart | Claim]:
    runs = {method.label: orders_of(records, method.label) for method in _methods(setting)}
    claims = [*_family(setting, runs), *_frank_wolfe(setting, runs), *_online(setting, runs)]
    if SVM in runs:
        claims += _svm_struct(setting, runs)
    shown = {label: found[0] for label, found in runs.items()}
    return [
        *told(claims, runs[DCD][0]["limit"] == setting.most),
        _table(setting, runs),
        _results(setting, shown),
        _choices(setting, records),
        *(_figure(setting, shown, *figure) for figure in FIGURES),
    ]


#: The runs of each method, one for each order of the examples.
Runs = Mapping[str, Sequence[Record]]


def _budget(runs: Runs) -> float:
    """Return the CPU seconds that every method has: those of DCD-SSVM's first run."""
    return float(runs[DCD][0]["trace"]["cpu_seconds"][-1])


def _objectives(runs: Runs, labels: Sequence[str]) -> tuple[dict[str, list[float]], str]:
    """Return log objectives averaged over the time, one per order for each method, and a text with the numbers."""
    begin, end = BEGIN * _budget(runs), _budget(runs)
    logs = {label: [over_time(run, "primal", begin, end, math.log) for run in runs[label]] for label in labels}
    means = ", ".join(f"{label} {mean_text([math.exp(x) for x in logs[label]], '.4g')}" for label in labels)
    return logs, f"geometric mean of the objective from {begin:.2g} to {end:.2g} CPU s: {means}"


def _scores(setting: Setting, runs: Runs, labels: Sequence[str]) -> tuple[dict[str, list[float]], str]:
    """Return test scores in % averaged over the time, one per order for each method, and a text with the numbers."""
    begin, end = BEGIN * _budget(runs), _budget(runs)
    found = {label: [100 * over_time(run, "score", begin, end) for run in runs[label]] for label in labels}
    means = ", ".join(f"{label} {mean_text(found[label], '.2f')}" for label in labels)
    return found, f"mean test {setting.measure} from {begin:.2g} to {end:.2g} CPU s: {means}"


def _family(setting: Setting, runs: Runs) -> list[Claim]:
    labels, others = (DCD, "DCD-Light", "CPD"), ("DCD-Light", "CPD")
    logs, objectives = _objectives(runs, labels)
    curves, scores = _scores(setting, runs, labels)
    early = {label: [objective_at(run, BEGIN * _budget(runs)) for run in runs[label]] for label in labels}
    return [
        Claim(
            "DCD-SSVM's objective is the lowest of its family on the way",
            every(larger(logs[other], logs[DCD]) for other in others),
            objectives,
        ),
        Claim(
            f"DCD-SSVM's test {setting.measure} is the best of its family on the way",
            every(larger(curves[DCD], curves[other]) for other in others),
            scores,
        ),
        Claim(
            "early on DCD-Light is well ahead of CPD",
            larger([math.log(x) for x in early["CPD"]], [math.log(x) for x in early["DCD-Light"]], by=math.log(WELL)),
            f"objectives after {BEGIN * _budget(runs):.2g} CPU s: "
            + ", ".join(f"{label} {mean_text(found, '.4g')}" for label, found in early.items()),
            needed=f"an objective {WELL:g} times lower",
        ),
    ]


def _frank_wolfe(setting: Setting, runs: Runs) -> list[Claim]:
    curves, scores = _scores(setting, runs, (DCD, FW))
    return [
        Claim(
            "DCD-SSVM is competitive with FW-Struct",
            larger(curves[DCD], curves[FW], by=-COMPETITIVE),
            scores,
            needed=f"at most {COMPETITIVE:g} points less",
        )
    ]


def _svm_struct(setting: Setting, runs: Runs) -> list[Claim]:
    budget, measure = _budget(runs), setting.measure
    curves, scores = _scores(setting, runs, (FW, SVM))
    trace = runs[SVM][0]["trace"]
    best = max(trace["score"])
    its, ours = (
        [first(run["trace"], "score", least=best, give="cpu_seconds") for run in runs[label]] for label in (SVM, DCD)
    )
    falls = {label: [100 * largest_fall(run, budget / 2) for run in runs[label]] for label in (DCD, SVM)}
    return [
        Claim(
            f"FW-Struct beats SVM-Struct in test {measure} on the way",
            larger(curves[FW], curves[SVM]),
            f"{scores}; {_objectives(runs, (FW, SVM))[1]}",
        ),
        Claim(
            f"DCD-SSVM has SVM-Struct's best test {measure} in less time",
            sooner(ours, its, budget=budget),
            f"{100 * best:.2f}, which SVM-Struct first has after {mean_text(its)} CPU s, DCD-SSVM after "
            f"{mean_text(ours)} CPU s",
        ),
        Claim(
            f"SVM-Struct's test {measure} is unstable at first",
            every([larger(falls[SVM], [FALL]), larger(falls[SVM], falls[DCD])]),
            "largest fall from one look to the next in the first half of the time: "
            + ", ".join(f"{label} {mean_text(found, '.2f')}" for label, found in falls.items()),
            needed=f"more than {FALL:g} point, and more than DCD-SSVM's",
        ),
    ]


def _online(setting: Setting, runs: Runs) -> list[Claim]:
    """Return claims about Table 1, at equal CPU time; in the paper methods have equal numbers of passes."""
    passes = runs[DCD][0]["trace"]["passes"][-1]
    claims = []
    for label in ONLINE:
        ours, theirs = final_scores(runs, DCD), final_scores(runs, label)
        paper = [(values[DCD], values[label], name) for name, values in setting.paper.items()]
        better = paper[0][0] >= paper[0][1]
        holds = larger(ours, theirs) if better else larger(theirs, ours)
        at_passes = [100 * y for y in (reached(run, "passes", passes, "score") for run in runs[label]) if y is not None]
        claims.append(
            Claim(
                f"{DCD} beats {label}" if better else f"{label} beats {DCD} by a little",
                holds,
                f"test {setting.measure} at equal CPU time: {mean_text(ours, '.2f')} and {mean_text(theirs, '.2f')}; "
                f"{label} after {passes:g} passes: {mean_text(at_passes, '.2f')}; the paper, after {passes:g} passes "
                "each: " + "; ".join(f"{name} {a} and {b}" for a, b, name in paper),
                "" if holds is not False else setting.why.get(label, ""),
            )
        )
    return claims


def _table(setting: Setting, runs: Runs) -> Table:
    labels = (DCD, *ONLINE)
    rows: list[list[Any]] = [[f"{name}, paper", *(scores[k] for k in labels)] for name, scores in setting.paper.items()]
    passes = runs[DCD][0]["trace"]["passes"][-1]
    early = [reached(runs[k][0], "passes", passes, "score") for k in labels]
    rows.append(
        [f"ours, first look at {passes:g} passes or later", *(None if y is None else round(100 * y, 2) for y in early)]
    )
    final = [final_scores(runs, k) for k in labels]
    rows.append([f"ours, after {_budget(runs):.3g} CPU s", *(round(values[0], 2) for values in final)])
    rows.append([f"ours, means of {len(final[0])} orders", *(round(float(np.mean(values)), 2) for values in final)])
    return Table("table1", f"Table 1: test {setting.measure}, %", ["task", *labels], rows)


def _results(setting: Setting, shown: Records) -> Table:
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
    for method in _methods(setting):
        run, trace = shown[method.label], shown[method.label]["trace"]
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


def _figure(setting: Setting, shown: Records, name: str, title: str, labels: Sequence[str], paper: str) -> Chart:
    def panel(heading: str, column: str, y: str, scale: Any, factor: float) -> Panel:
        curves = [
            Curve(
                label, shown[label]["trace"]["cpu_seconds"][1:], [factor * v for v in shown[label]["trace"][column][1:]]
            )
            for label in labels
            if label in shown
        ]
        return Panel(heading, "CPU seconds", y, curves, x_scale="log", y_scale=scale)

    panels = [panel(f"test {setting.measure}", "score", f"{setting.measure}, %", "linear", 100.0)]
    if name == WITH_OBJECTIVE:
        panels.append(panel("objective", "primal", "primal objective / C", "log", 1.0))
    return Chart(name, title, panels, paper=paper)


def final_scores(runs: Runs, label: str) -> list[float]:
    """Return scores in % at the end of DCD-SSVM's time, one per order."""
    return [100 * by_time(run, "score", _budget(runs)) for run in runs[label]]


def over_time(
    run: Mapping[str, Any], column: str, begin: float, end: float, of: Callable[[float], float] = float
) -> float:
    """Return the mean of `of(column)` over log CPU seconds, interpolated linearly between evaluations."""
    trace = run["trace"]
    times = np.log(np.maximum(trace["cpu_seconds"][1:], 1e-9))
    values = [of(value) for value in trace[column][1:]]
    return float(np.mean(np.interp(np.linspace(math.log(begin), math.log(end), 100), times, values)))


def by_time(run: Mapping[str, Any], column: str, seconds: float) -> float:
    """Return the column's value at the last evaluation within so many CPU seconds.

    The run's last pass counts if it had begun by then. Before the first evaluation, that one's value is returned.
    """
    times, values = run["trace"]["cpu_seconds"], run["trace"][column]
    seen = sum(time <= seconds for time in times)
    begun = seen == len(times) - 1
    return float(values[-1] if begun else values[max(seen, 1) - 1])


def objective_at(run: Mapping[str, Any], seconds: float) -> float:
    """Return the objective after so many CPU seconds; its logarithm is interpolated between evaluations."""
    trace = run["trace"]
    return float(np.exp(np.interp(seconds, trace["cpu_seconds"], np.log(trace["primal"]))))


def reached(run: Mapping[str, Any], column: str, least: float, give: str = "cpu_seconds") -> float | None:
    """Return `give` at the first evaluation where the column is at least `least`; None if there is none."""
    return first(run["trace"], column, least=least, give=give)


def largest_fall(run: Mapping[str, Any], seconds: float) -> float:
    """Return the largest fall of the score between evaluations within so many CPU seconds, after the first pass."""
    trace = run["trace"]
    scores = [y for x, y in zip(trace["cpu_seconds"][1:], trace["score"][1:], strict=True) if x <= seconds]
    return max([0.0, *(float(a - b) for a, b in zip(scores, scores[1:], strict=False))])
