"""Certificates and runs in JSON and in words."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from partwise.problem.losses import LOSSES, Loss, get_loss

if TYPE_CHECKING:
    from partwise.cli.tasks import Estimator
    from partwise.problem.result import Result

#: Fields of a command's JSON output by name.
Fields = dict[str, Any]


def result_fields(result: Result) -> Fields:
    """Return the fields of a run."""
    names = ("solver", "status", "l2", "l1", "primal", "dual", "gap", "relative_gap", "passes", "seconds")
    return {name: getattr(result, name) for name in names}


def loss_fields(loss: str | Loss) -> Fields:
    """Return the fields of a loss."""
    found = get_loss(loss)
    return {"loss": found.name, "temperature": found.temperature, "cost_scale": found.cost_scale}


def certificate_lines(fields: Fields) -> list[tuple[str, str]]:
    """Return the fields of a run in words, as (heading, text)."""
    if math.isnan(fields["passes"]):  # another tool's file
        return [("trained", f"by {fields['solver']}, whose files hold no certificate")]
    certificate = f"primal {fields['primal']:.6g}"
    if fields["status"] == "no certificate" or not math.isfinite(fields["gap"]):
        certificate = f"none ({_missing_certificate(fields)}); {certificate}"
    else:
        certificate += f", dual {fields['dual']:.6g}, gap {fields['gap']:.2g}"
        certificate += f" ({fields['relative_gap']:.1e} of the primal)"
    run = f"{fields['solver']}: {fields['status']} after {fields['passes']:.4g} passes, {fields['seconds']:.2f} s"
    return [("solver", run), ("certified", certificate)]


def _missing_certificate(fields: Fields) -> str:
    from partwise.solvers.engine.registry import has_certificates

    if fields["l2"] == 0:
        return "l2 = 0"
    if math.isnan(fields["primal"]):
        return "trained by partial_fit, or changed after training"
    return "beyond double precision" if has_certificates(fields["solver"]) else f"{fields['solver']} has none"


def features_text(fields: Fields) -> str:
    """Return what a model looks at in words, "" if there was no choice."""
    if "features" not in fields:
        return ""
    columns = fields["feature_columns"]
    of = f" of column{'s' * (len(columns) > 1)} {', '.join(map(str, columns))}" if columns else ""
    learnt = f"; target {fields['target']} from {fields['inputs']}" if "target" in fields else ""
    return f"features {fields['features']}{of}{learnt}"


def loss_text(fields: Fields) -> str:
    """Return the loss in words, with its temperature and cost scale where they are not its defaults."""
    known = LOSSES.get(fields["loss"])
    usual = {"temperature": None, "cost_scale": None} if known is None else loss_fields(known)
    changes = [f"{name.replace('_', ' ')} {fields[name]:g}" for name in usual if fields[name] != usual[name]]
    return " with ".join([fields["loss"], *([" and ".join(changes)] if changes else [])])


def trained_text(task: str, sizes: Iterable[str], fields: Fields) -> str:
    """Return in words what a model was trained from, its features, loss and penalty."""
    weights = f"{fields['n_features']} features, {fields['n_nonzero']} weights not zero"
    penalty = f"l1 = {fields['l1']:g}, l2 = {fields['l2']:g}" if fields["l1"] else f"C = {fields['C']:g}"
    parts = [f"{task} from {', '.join([*sizes, weights])}", features_text(fields)]
    return "; ".join([*filter(None, parts), f"loss {loss_text(fields)}, {penalty}"])


def model_text(path: str) -> str:
    """Return the name and size of a model file, or "standard output"."""
    return f"{path}{size_text(path)}" if path != "-" else "standard output"


def unknown_text(model: Estimator) -> str:
    """Return the name of features that a model does not know: an l1 penalty leaves those without a weight out."""
    return "features without a weight" if model.result_.l1 else "unknown features"


def size_text(path: str) -> str:
    """Return a file's size in brackets, "" if there is no such file."""
    if not os.path.isfile(path):
        return ""
    size = os.path.getsize(path)
    power = min((len(str(size)) - 1) // 3, 3)
    return f" ({size / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB')[power]})"


def aligned(lines: Iterable[tuple[str, str]]) -> str:
    """Return lines of a heading and a text."""
    return "\n".join(f"{head:10}{text}" for head, text in lines)
