"""How certificates are shown, in JSON and in words."""

from __future__ import annotations

import math
import os
from typing import Any

from partwise.result import Result


def result_fields(result: Result) -> dict[str, Any]:
    """What JSON output says of a run."""
    return {
        "solver": result.solver,
        "status": result.status,
        "l2": result.l2,
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
    if fields["status"] == "no certificate" or not math.isfinite(fields["gap"]):
        certificate = f"none ({_reason(fields)}); primal {fields['primal']:.6g}"
    else:
        certificate = f"primal {fields['primal']:.6g}, dual {fields['dual']:.6g}, gap {fields['gap']:.2g}"
        certificate += f" ({share:.1e} of the primal)"
    run = f"{fields['solver']}: {fields['status']} after {fields['passes']:.4g} passes, {fields['seconds']:.2f} s"
    return [("solver", run), ("certified", certificate)]


def _reason(fields: dict[str, Any]) -> str:
    """Why there is no certificate."""
    from partwise.solvers.registry import has_certificates

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
    return f"features {fields['features']}{of}"


def size_text(path: str) -> str:
    """A file's size in brackets, if it is one."""
    if not os.path.isfile(path):
        return ""
    size = os.path.getsize(path)
    power = min((len(str(size)) - 1) // 3, 3)
    return f" ({size / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB')[power]})"
