"""``partwise path``: many penalties in one run, the best one kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click
import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.flags import (
    FILE,
    Flags,
    Parameters,
    Strengths,
    argument,
    default_strength,
    estimator_settings,
    flag,
    flag_name,
    penalty_settings,
    training_flags,
    was_given,
)
from partwise.cli.output import check_outputs, print_json, resources, table
from partwise.cli.summary import Fields, result_fields, size_text
from partwise.cli.tasks import Data, Estimator, Task, TaskGroup
from partwise.cli.train import output_of, read_dev, save_models, saved

if TYPE_CHECKING:
    from partwise.problem.result import Result


def path_flags(task: Task) -> list[click.Parameter]:
    """Return the arguments and flags of `path`."""
    l2 = 1.0 / default_strength(task)
    return [
        argument("data"),
        flag("-o --output=MODEL", "Write the best model to this file [default: DATA's name, .pw].", FILE),
        flag("--dev", "Choose C by the labelled data in this file.", FILE),
        flag(
            "--hold-out",
            "Without --dev: choose C by this share of DATA, and then train the best on all.",
            click.FloatRange(0, 1, min_open=True, max_open=True),
            0.1,
        ),
        flag("--C-min C_min", "Begin at this C.", float, 0.01),
        flag("--C-max C_max", "End at this C.", float, 100.0),
        flag("--points", "Train for so many C, evenly in logarithms.", click.IntRange(2), 9),
        flag("--grid=C,C,...", "Train for these C instead, such as 0.01,0.1,1; in any order.", Strengths()),
        flag("--l1-min=X", "Go over l1 instead of C: from where all weights are zero down to X, at one l2.", float),
        flag("--l2", f"With --l1-min: set the strength of the penalty l2 / 2 |w|^2 [default: {l2:g}].", float),
        *training_flags(task),
        flag("--report=FILE.html", "Write a report: every point, and the model kept.", FILE),
    ]


@dataclass(frozen=True)
class Grid:
    """What a path goes over: these `Cs`, or without them l1 at one l2, from where all weights are zero to `l1_min`."""

    Cs: Sequence[float] = ()
    l1_min: float = 0.0
    l2: float = 0.0
    points: int = 0
    l1_max: float | None = None

    @property
    def name(self) -> str:
        return "C" if self.Cs else "l1"

    def fit(self, model: Estimator, data: Data) -> list[Result]:
        """Fit along the path; return the results."""
        if self.Cs:
            return model.fit_path(self.Cs, data.X, data.y)
        return model.fit_l1_path(self.l1_min, data.X, data.y, l1_max=self.l1_max, points=self.points)

    def settings_at(self, k: int, results: Sequence[Result]) -> Parameters:
        """Return the estimator's penalty at a point."""
        from partwise.estimators.parameters import penalty_parameters

        return {"C": self.Cs[k]} if self.Cs else penalty_parameters(results[k].l1, self.l2)

    def until(self, k: int, results: Sequence[Result]) -> Grid:
        """Return the grid up to a point, for a path on other data."""
        if self.Cs:
            return Grid(self.Cs[: k + 1])
        return replace(self, l1_min=results[k].l1, points=k + 1, l1_max=results[0].l1)


def path(task: Task, flags: Flags) -> None:
    """Train for many C or l1 at once and keep the best on held-out data: partwise path TASK DATA -o MODEL.

    The strongest penalty is solved first and each other one from the solution of the one before, which takes little
    more than a single training; every point is certified.
    """
    from partwise.cli.tasks.labels import check_weighted_labels
    from partwise.solvers.engine.registry import has_certificates

    begin = time.perf_counter()
    output, report, dev = output_of(flags), flags["report"], flags["dev"]
    settings = estimator_settings(task, flags)
    if not has_certificates(flags["solver"]):  # it solves no problem, and the points would be one long run
        raise UserError(f"--solver {flags['solver']} has no penalty to go over: partwise train is enough for it")
    grid = _l1_grid(task, settings, flags) if flags["l1_min"] is not None else _c_grid(flags)
    beside = task.beside(flags, output)
    check_outputs(output, report, *beside, inputs=(flags["data"], dev))
    task.estimator(**settings).check_parameters()
    whole = task.read(flags["data"], flags, labelled=True)
    held = read_dev(task, {**flags, **task.remember(flags, whole)})
    whole, held, others = task.prepared(flags, whole, held)
    training, where = whole, dev
    if held is None:
        training, held = _hold_out(task, whole, flags["hold_out"], flags["seed"])
        where = f"{held.n_examples} {task.unit} held out"
    model: Estimator = task.make(flags, training, settings)
    check_weighted_labels(model, whole)
    points: list[Fields] = []
    evaluations = []
    results = grid.fit(model, training)
    for k, result in enumerate(results):
        model.use(result)
        evaluations.append(task.evaluate(model, held))
        name, score = task.main_score(evaluations[-1])
        own = {"n_nonzero": task.n_nonzero(model), "score": score}
        points.append({**({"C": grid.Cs[k]} if grid.Cs else {}), **result_fields(result), **own})
    # of equal scores the first, with the strongest penalty
    best = max(range(len(points)), key=lambda k: (points[k]["score"], -k))
    model.set_params(**grid.settings_at(best, results))
    if training is whole:
        model.use(results[best])
    else:
        grid.until(best, results).fit(model, whole)
    save_models(task, [model, *others], [output, *beside], task.remember(flags, training))
    if report:
        from partwise.cli.report import write

        plot, rows = _points_report(grid.name, name, points)
        found = (task, model, held, evaluations[best], flags["data"], where)
        with saved(output):
            write(report, *found, held_out=training is whole, plots=[plot], tables={f"by {grid.name}": rows})
    if flags["as_json"]:
        print_json(
            {
                "task": task.name,
                "model": output,
                "report": report,
                "C": model.C,
                "score": points[best]["score"],
                "score_name": name,
                "scored_on": where,
                **result_fields(model.result_),
                "n_features": task.size(model),
                **resources(begin),
                "points": points,
            }
        )
        return
    text = f"best {name} on {where}: {grid.name} = {points[best][grid.name]:.4g}; model {output}{size_text(output)}"
    click.echo(f"{_points_table(grid.name, name, points, best)}\n\n{text}", err=output == "-")


def _points_table(penalty: str, score: str, points: Sequence[Fields], best: int) -> str:
    """Return the points as text, the best with a star."""
    formats = {penalty: ".4g", "primal": ".6g", "dual": ".6g", "relative_gap": ".1e", "passes": ".4g", "seconds": ".2f"}
    formats |= {"n_nonzero": "d"} if any(point["l1"] for point in points) else {}
    headings = {"relative_gap": "gap / primal", "n_nonzero": "not zero"}
    rows = [[*(headings.get(name, name) for name in formats), score]]
    for k, point in enumerate(points):
        share = f"{point['score']:.2%}{' *' if k == best else '  '}"
        rows.append([*(f"{point[name]:{form}}" for name, form in formats.items()), share])
    return table(rows, left=0)


def _points_report(penalty: str, score: str, points: Sequence[Fields]) -> tuple[str, Fields]:
    """Return the points as a curve and a table for the report."""
    from partwise.report import draw_curve
    from partwise.report.parts import titled

    formats = {"score": ".2%", "relative_gap": ".1e", "passes": ".4g", "seconds": ".3g"}
    rows: Fields = {}
    for point in points:
        said = {name: f"{point[name]:{form}}" for name, form in formats.items()}
        rows[f"{point[penalty]:.4g}"] = {**said, "n_nonzero": point["n_nonzero"]}
    curve = [(point[penalty], point["score"]) for point in points]
    return draw_curve(curve, f"{titled(score)} by {penalty}", penalty, logarithmic=True), rows


def _c_grid(flags: Flags) -> Grid:
    if flags["l2"] is not None:
        raise UserError("--l2 is for paths over l1 (--l1-min): others go over C = 1 / l2")
    if flags["grid"] is not None:
        _refuse(("C_min", "C_max", "points"), "--grid, which says what the values of C are")
        return Grid(flags["grid"])
    if not 0 < flags["C_min"] < flags["C_max"] < float("inf"):
        raise UserError("--C-min must be above 0 and below --C-max")
    return Grid(np.geomspace(flags["C_min"], flags["C_max"], flags["points"]).tolist())


def _l1_grid(task: Task, settings: Parameters, flags: Flags) -> Grid:
    _refuse(("C_min", "C_max", "grid", "penalty", "l1_ratio"), "--l1-min, which goes over l1 at one l2")
    if not flags["l1_min"] > 0:
        raise UserError(f"--l1-min must be a number above 0, got {flags['l1_min']:g}")
    given = {"C": None, "l1": flags["l1_min"], "l2": flags["l2"]}
    settings |= penalty_settings(settings, default_strength(task), given)
    l2 = 1.0 / default_strength(task) if flags["l2"] is None else flags["l2"]
    return Grid((), flags["l1_min"], l2, flags["points"])


def _refuse(names: Sequence[str], other: str) -> None:
    """Raise UserError if one of these flags was given."""
    for name in filter(was_given, names):
        raise UserError(f"{flag_name(name)} cannot be combined with {other}")


def _hold_out(task: Task, data: Data, share: float, seed: int) -> tuple[Data, Data]:
    count = round(share * data.n_examples)
    if not 0 < count < data.n_examples:
        raise UserError(f"--hold-out: {share:g} of {data.n_examples} {task.unit} leaves nothing to train or to score")
    order = np.random.default_rng(seed).permutation(data.n_examples)
    return task.take(data, np.sort(order[count:]).tolist()), task.take(data, np.sort(order[:count]).tolist())


command = TaskGroup("path", path_flags, path)
