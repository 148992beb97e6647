"""``partwise path``: many penalties in one run, the best one kept."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from partwise.cli.errors import UserError, message_of
from partwise.cli.flags import File, Strengths
from partwise.cli.objective import penalty_settings
from partwise.cli.output import check_outputs, json_flag, peak_memory, print_json, table, threads_flag, unpack_flag
from partwise.cli.summary import result_fields, size_text
from partwise.cli.taskgroup import TaskGroup
from partwise.cli.tasks import TASKS, Data, Evaluation, Task
from partwise.cli.train import default_output, default_strength, estimator_settings, training_flags


@click.command("path", cls=TaskGroup, make=lambda task: make_command(task))
def command() -> None:
    """Train for many C or l1 at once, keep the one that does best on held-out data: partwise path TASK DATA -o MODEL.

    The strongest penalty is solved first and each other one from the solution of the one before, which takes little
    more than a single training; every point is certified.
    """


def make_command(task: Task) -> click.Command:
    """The command of one task."""

    def run(**flags: Any) -> None:
        path(task, **flags)

    l2 = 1.0 / default_strength(task)

    parameters: list[click.Parameter] = [
        click.Argument(["data"], type=File()),
        click.Option(
            ["-o", "--output"],
            type=File(),
            metavar="MODEL",
            help="Where the best model goes [default: DATA's name, .pw].",
        ),
        click.Option(["--dev"], type=File(), metavar="FILE", help="Labelled data to choose C by."),
        click.Option(
            ["--hold-out"],
            type=click.FloatRange(0, 1, min_open=True, max_open=True),
            default=0.1,
            show_default=True,
            help="Without --dev: share of DATA to choose C by; the best C is then trained on all.",
        ),
        click.Option(["--C-min", "C_min"], type=float, default=0.01, show_default=True, help="The smallest C."),
        click.Option(["--C-max", "C_max"], type=float, default=100.0, show_default=True, help="The largest C."),
        click.Option(
            ["--points"], type=click.IntRange(2), default=9, show_default=True, help="How many C, evenly in logarithms."
        ),
        click.Option(["--grid"], type=Strengths(), help="These C instead, such as 0.01,0.1,1; in any order."),
        click.Option(
            ["--l1-min"],
            type=float,
            metavar="X",
            help="Go over l1 instead of C: from where all weights are zero down to X, at one l2.",
        ),
        click.Option(
            ["--l2"], type=float, help=f"With --l1-min: strength of the penalty l2 / 2 |w|^2 [default: {l2:g}]."
        ),
        *training_flags(task),
        click.Option(
            ["--report"], type=File(), metavar="FILE.html", help="Write a report: every point, and the model kept."
        ),
    ]
    return json_flag(
        threads_flag(
            unpack_flag(click.Command(task.name, params=parameters, callback=run, help=TASKS[task.name].summary))
        )
    )


def path(
    task: Task, *, data: str, output: str | None, dev: str | None, report: str | None, as_json: bool, **flags: Any
) -> None:
    """Fit along the path, score each point, save the best."""
    begin = time.perf_counter()
    output = output or default_output(data)
    if as_json and output == "-":
        raise UserError("--json cannot be combined with a model on standard output")
    settings = estimator_settings(task, flags)
    _check_solver(flags["solver"])
    over = _over_l1(task, settings, flags) if flags["l1_min"] is not None else _over_strengths(flags)
    beside = task.beside(flags, output)
    check_outputs(output, report, *beside, inputs=(data, dev))
    task.estimator(**settings).check_parameters()
    whole = task.read(data, flags, labelled=True)
    held = None if dev is None else task.read(dev, {**flags, **task.remember(flags, whole)}, labelled=True)
    whole, held, others = task.prepared(flags, whole, held)
    training, where = whole, dev
    if held is None:
        training, held = _hold_out(task, whole, flags["hold_out"], flags["seed"])
        where = f"{held.n_examples} {task.unit} held out"

    from partwise.cli.tasks.labels import check_weighted_labels

    model = task.make(flags, training, settings)
    check_weighted_labels(model, whole)
    points, evaluations = [], []
    results = over.fit(model, training)
    for result, named in zip(results, over.names(results), strict=True):
        model.use(result)
        evaluations.append(task.evaluate(model, held))
        name, score = task.main_score(evaluations[-1])
        points.append({**named, **result_fields(result), "n_nonzero": task.n_nonzero(model), "score": score})
    # of equal scores the first, with the strongest penalty
    best = max(range(len(points)), key=lambda k: (points[k]["score"], -k))
    if training is whole:
        model.set_params(**over.parameters(results, best))
        model.use(results[best])
    else:
        over.fit_again(model, whole, results, best)
    model.input_settings_ = {"task": task.name, **task.remember(flags, training)}
    model.save(output)
    for place, other in zip(beside, others, strict=True):
        other.save(place)
    if report:
        try:
            _report(
                report, task, model, held, evaluations[best], data, where, over.name, name, points, training is whole
            )
        except (OSError, UserError) as error:
            raise UserError(f"{message_of(error)} (the model is in {output})") from None
    fields = {
        "task": task.name,
        "model": output,
        "report": report,
        "C": model.C,
        "score": points[best]["score"],
        "score_name": name,
        "scored_on": where,
        **result_fields(model.result_),
        "n_features": task.size(model),
        "total_seconds": time.perf_counter() - begin,
        "peak_memory": peak_memory(),
        "points": points,
    }
    if as_json:
        print_json(fields)
        return
    sparse = any(point["l1"] for point in points)
    rows = [[over.name, "primal", "dual", "gap / primal", "passes", "seconds", *(["not zero"] if sparse else []), name]]
    rows += [
        [
            f"{point[over.name]:.4g}",
            f"{point['primal']:.6g}",
            f"{point['dual']:.6g}",
            f"{point['relative_gap']:.1e}",
            f"{point['passes']:.4g}",
            f"{point['seconds']:.2f}",
            *([str(point["n_nonzero"])] if sparse else []),
            f"{point['score']:.2%}{' *' if k == best else '  '}",
        ]
        for k, point in enumerate(points)
    ]
    click.echo(table(rows, left=0), err=output == "-")
    text = f"\nbest {name} on {where}: {over.name} = {points[best][over.name]:.4g}; model {output}{size_text(output)}"
    click.echo(text, err=output == "-")


def _report(
    report: str,
    task: Task,
    model: Any,
    held: Data,
    evaluation: Evaluation,
    data: str,
    where: str | None,
    over: str,
    score: str,
    points: list[dict[str, Any]],
    held_out: bool,
) -> None:
    """The model kept, with its scores when it was chosen; the points as a curve and a table.

    held_out: whether it was not trained on the data that it was chosen by after that.
    """
    from partwise.cli import reporting
    from partwise.report import draw_curve
    from partwise.report.parts import titled

    columns = ("score", "relative_gap", "passes", "seconds", "n_nonzero")
    rows = {f"{point[over]:.4g}": {name: _said(name, point[name]) for name in columns} for point in points}
    title = f"{titled(score)} by {over}"
    reporting.write(
        report,
        task,
        model,
        held,
        evaluation,
        data,
        where,
        plots=[draw_curve([(point[over], point["score"]) for point in points], title, over, logarithmic=True)],
        held_out=held_out,
        tables={f"by {over}": rows},
    )


def _said(name: str, value: Any) -> Any:
    formats = {"score": ".2%", "relative_gap": ".1e", "passes": ".4g", "seconds": ".3g"}
    return f"{value:{formats[name]}}" if name in formats else value


class _OverC:
    """Values of C, from the smallest."""

    name = "C"

    def __init__(self, Cs: list[float]) -> None:
        self.Cs = Cs

    def fit(self, model: Any, data: Data) -> list[Any]:
        """The results of the path."""
        found: list[Any] = model.fit_path(self.Cs, data.X, data.y)
        return found

    def names(self, results: list[Any]) -> list[dict[str, float]]:
        """What the points are told apart by."""
        return [{"C": C} for C in self.Cs]

    def parameters(self, results: list[Any], best: int) -> dict[str, Any]:
        """The estimator's, for a point."""
        return {"C": self.Cs[best]}

    def fit_again(self, model: Any, data: Data, results: list[Any], best: int) -> None:
        """The path on other data, up to a point."""
        model.fit_path(self.Cs[: best + 1], data.X, data.y)


class _OverL1:
    """Values of l1, from the smallest at which all weights are zero."""

    name = "l1"

    def __init__(self, l1_min: float, l2: float, points: int) -> None:
        self.l1_min, self.l2, self.points = l1_min, l2, points

    def fit(self, model: Any, data: Data) -> list[Any]:
        """The results of the path."""
        found: list[Any] = model.fit_l1_path(self.l1_min, data.X, data.y, points=self.points)
        return found

    def names(self, results: list[Any]) -> list[dict[str, float]]:
        """What the points are told apart by."""
        return [{"l1": result.l1} for result in results]

    def parameters(self, results: list[Any], best: int) -> dict[str, Any]:
        """The estimator's, for a point."""
        from partwise.estimators.parameters import penalty_parameters

        return penalty_parameters(results[best].l1, self.l2)

    def fit_again(self, model: Any, data: Data, results: list[Any], best: int) -> None:
        """The path on other data, up to a point."""
        model.set_params(**self.parameters(results, best))
        model.fit_l1_path(results[best].l1, data.X, data.y, l1_max=results[0].l1, points=best + 1)


def _over_strengths(flags: dict[str, Any]) -> _OverC:
    if flags["l2"] is not None:
        raise UserError("--l2 is for paths over l1 (--l1-min): others go over C = 1 / l2")
    if flags["grid"] is not None:
        _refuse(("C_min", "C_max", "points"), "--grid, which says what the values of C are")
        return _OverC(flags["grid"])
    if not 0 < flags["C_min"] < flags["C_max"] < float("inf"):
        raise UserError("--C-min must be above 0 and below --C-max")
    return _OverC(np.geomspace(flags["C_min"], flags["C_max"], flags["points"]).tolist())


def _over_l1(task: Task, settings: dict[str, Any], flags: dict[str, Any]) -> _OverL1:
    _refuse(("C_min", "C_max", "grid", "penalty", "l1_ratio"), "--l1-min, which goes over l1 at one l2")
    given = {"C": None, "l1": flags["l1_min"], "l2": flags["l2"]}
    if not flags["l1_min"] > 0:
        raise UserError(f"--l1-min must be a number above 0, got {flags['l1_min']:g}")
    settings |= penalty_settings(settings, default_strength(task), given)
    l2 = 1.0 / default_strength(task) if flags["l2"] is None else flags["l2"]
    return _OverL1(flags["l1_min"], l2, flags["points"])


def _check_solver(name: str) -> None:
    from partwise.solvers.engine.registry import has_certificates

    if not has_certificates(name):  # it solves no problem, and the points would be one long run
        raise UserError(f"--solver {name} has no penalty to go over: partwise train is enough for it")


def _refuse(names: tuple[str, ...], other: str) -> None:
    """UserError if one of these flags was given."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UserError(f"--{name.replace('_', '-')} cannot be combined with {other}")


def _hold_out(task: Task, data: Data, share: float, seed: int) -> tuple[Data, Data]:
    count = round(share * data.n_examples)
    if not 0 < count < data.n_examples:
        raise UserError(f"--hold-out: {share:g} of {data.n_examples} {task.unit} leaves nothing to train or to score")
    order = np.random.default_rng(seed).permutation(data.n_examples)
    return task.take(data, np.sort(order[count:]).tolist()), task.take(data, np.sort(order[:count]).tolist())
