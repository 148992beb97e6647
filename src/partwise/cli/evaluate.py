"""``partwise evaluate``: scores of a model on labelled data."""

from __future__ import annotations

import time

import click

from partwise.cli.errors import UserError
from partwise.cli.flags import FILE, JSON, LENGTH, THREADS, UNPACK, Flags, argument, flag, make_command
from partwise.cli.models import evaluate_pipeline, load_models, refuse_model
from partwise.cli.output import check_outputs, peak_memory, print_json, warn_blank
from partwise.cli.summary import result_fields, unknown_text


def evaluate(flags: Flags) -> None:
    """Score a MODEL on labelled data (GOLD, "-": standard input) in the format of its training data.

    Of several models each is scored on what those before it fill in: a parser on predicted tags.

    For chunks (labels such as B-NP) the table is conlleval's; precision, recall and F1 are of whole chunks.
    """
    begin = time.perf_counter()
    gold, calibration, report, as_json = (flags[name] for name in ("gold", "calibration", "report", "as_json"))
    check_outputs(report, inputs=(*flags["models"], gold))
    refuse_model(gold)
    loaded = load_models(flags["models"], flags["threads"], flags["max_length"])
    if len(loaded) > 1:
        if calibration or report:
            raise UserError("--calibration and --report are not available for several models")
        evaluate_pipeline(loaded, gold, as_json)
        return
    model, fitted, task = loaded[0]
    data = task.read(gold, task.recall(fitted), labelled=True)
    evaluation = task.evaluate(fitted, data)
    warn_blank(task.blank(fitted), gold)
    found = task.calibration(fitted, data) if calibration else None
    if calibration and found is None:
        raise UserError("--calibration: this model gives no probabilities of labels")
    if report:
        from partwise.cli.report import write

        write(report, task, fitted, data, evaluation, gold)
    if as_json:
        print_json(
            {
                "task": task.name,
                "model": model,
                "n_examples": data.n_examples,
                "n_tokens": data.n_tokens,
                "n_features": task.size(fitted),
                **result_fields(fitted.result_),
                "seconds": time.perf_counter() - begin,
                "peak_memory": peak_memory(),
                **evaluation.scores,
                **evaluation.details,
                **({} if found is None else {"ece": found.ece, "brier": found.brier}),
                "labels": evaluation.by_label,
            }
        )
        return
    click.echo(evaluation.table)
    if evaluation.details.get("unseen_labels"):
        unseen = evaluation.details["unseen_labels"]
        more = f", ... ({len(unseen)} in all)" if len(unseen) > 20 else ""
        click.echo(f"labels that the model does not know: {', '.join(map(str, unseen[:20]))}{more}")
    if "unknown_rate" in evaluation.details:
        click.echo(f"{unknown_text(fitted)}: {evaluation.details['unknown_rate']:.2%} of those in the data")
    if found is not None:
        click.echo(f"\n{found}")


command = make_command(
    "evaluate",
    evaluate,
    argument("models", nargs=-1, required=True, metavar="MODEL..."),
    argument("gold"),
    flag("--calibration", "Compare probabilities with observed frequencies.", bool),
    flag("--report=FILE.html", "Write a report with scores, confusion matrix, examples.", FILE),
    LENGTH,
    THREADS,
    UNPACK,
    JSON,
)
