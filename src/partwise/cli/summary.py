"""How certificates and runs are shown, in JSON and in words."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from partwise.problem.losses import LOSSES, get_loss
from partwise.problem.result import Result

if TYPE_CHECKING:
    from partwise.cli.tasks import Task


def result_fields(result: Result) -> dict[str, Any]:
    """What JSON output says of a run."""
    return {
        "solver": result.solver,
        "status": result.status,
        "l2": result.l2,
        "l1": result.l1,
        "primal": result.primal,
        "dual": result.dual,
        "gap": result.gap,
        "relative_gap": result.relative_gap,
        "passes": result.passes,
        "seconds": result.seconds,
    }


def certificate_lines(fields: dict[str, Any]) -> list[tuple[str, str]]:
    """The same in words, as (heading, text)."""
    share = fields["relative_gap"]
    if math.isnan(fields["passes"]):  # another tool's file
        return [("trained", f"by {fields['solver']}, whose files hold no certificate")]
    if fields["status"] == "no certificate" or not math.isfinite(fields["gap"]):
        certificate = f"none ({_reason(fields)}); primal {fields['primal']:.6g}"
    else:
        certificate = f"primal {fields['primal']:.6g}, dual {fields['dual']:.6g}, gap {fields['gap']:.2g}"
        certificate += f" ({share:.1e} of the primal)"
    run = f"{fields['solver']}: {fields['status']} after {fields['passes']:.4g} passes, {fields['seconds']:.2f} s"
    return [("solver", run), ("certified", certificate)]


def _reason(fields: dict[str, Any]) -> str:
    """Why there is no certificate."""
    from partwise.solvers.engine.registry import has_certificates

    if fields["l2"] == 0:
        return "l2 = 0"
    if math.isnan(fields["primal"]):
        return "trained by partial_fit, or changed after training"
    return "beyond double precision" if has_certificates(fields["solver"]) else f"{fields['solver']} has none"


def features_text(fields: dict[str, Any]) -> str:
    """What a model looks at, in words."""
    columns = fields["feature_columns"]
    called = "column" if len(columns) == 1 else "columns"
    of = f" of {called} {', '.join(map(str, columns))}" if columns else ""
    learnt = f"; target {fields['target']} from {fields['inputs']}" if "target" in fields else ""
    return f"features {fields['features']}{of}{learnt}"


def loss_fields(loss: Any) -> dict[str, Any]:
    """What JSON output says of a loss, a name or a `Loss`."""
    found = get_loss(loss)
    return {"loss": found.name, "temperature": found.temperature, "cost_scale": found.cost_scale}


def loss_text(fields: dict[str, Any]) -> str:
    """The loss in words: with its temperature and cost scale, where they are not its own."""
    known = LOSSES.get(fields["loss"])
    usual = {"temperature": None, "cost_scale": None} if known is None else loss_fields(known)
    changes = [f"{name.replace('_', ' ')} {fields[name]:g}" for name in usual if fields[name] != usual[name]]
    return " with ".join([fields["loss"], *([" and ".join(changes)] if changes else [])])


def penalty_text(fields: dict[str, Any]) -> str:
    """The penalty in words: C where there is l2 alone."""
    return f"l1 = {fields['l1']:g}, l2 = {fields['l2']:g}" if fields["l1"] else f"C = {fields['C']:g}"


def weights_text(fields: dict[str, Any]) -> str:
    """How many weights there are."""
    return f"{fields['n_features']} features, {fields['n_nonzero']} weights not zero"


def unknown_text(model: Any) -> str:
    """What features are called that a model does not know: its file has none whose weights are all zero."""
    return "features without a weight" if model.result_.l1 else "unknown features"


def size_text(path: str) -> str:
    """A file's size in brackets, if it is one."""
    if not os.path.isfile(path):
        return ""
    size = os.path.getsize(path)
    power = min((len(str(size)) - 1) // 3, 3)
    return f" ({size / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB')[power]})"


def _early_text(found: dict[str, Any]) -> str:
    n, last = len(found["scores"]), found["scores"][-1]["passes"]
    best = f"{found['best_score']:.2%} at pass {found['best_passes']:.4g}"
    return f"{best}, the best of {n} scores up to pass {last:.4g}"


def training_text(task: Task, fields: dict[str, Any], main: tuple[str, float], notes: list[tuple[str, str]]) -> str:
    """The summary of `train`."""
    from partwise.cli.crossval import as_text
    from partwise.cli.going_on import start_text

    name, value = main
    sizes = [f"{fields['n_examples']} {task.unit}"]
    if fields["n_tokens"] != fields["n_examples"]:
        sizes.append(f"{fields['n_tokens']} tokens")
    if fields["n_labels"]:
        sizes.append(f"{fields['n_labels']} labels")
    sizes.append(weights_text(fields))
    score = f"{name} {value:.2%} on {fields['scored_on']}"
    if fields["baseline"]:
        score += f"; {fields['baseline']['name']}: {fields['baseline']['score']:.2%}"
    looks = f"; {features_text(fields)}" if "features" in fields else ""
    where = fields["model"] if fields["model"] != "-" else "standard output"
    lines = [
        ("trained", f"{task.name} from {', '.join(sizes)}{looks}; loss {loss_text(fields)}, {penalty_text(fields)}"),
        *([("from", start_text(fields["from"]))] if "from" in fields else []),
        *certificate_lines(fields),
        *([("dev", _early_text(fields["early_stopping"]))] if "early_stopping" in fields else []),
        *notes,
        ("score", score),
        *([("folds", as_text(fields["cross_validation"]))] if "cross_validation" in fields else []),
        *([("beside", " ".join(fields["beside"]) + ": to be given before the model")] if "beside" in fields else []),
        ("model", f"{where}{size_text(where)}" + (f", report {fields['report']}" if fields["report"] else "")),
    ]
    return "\n".join(f"{head:10}{text}" for head, text in lines)
