"""The report: one HTML file that needs nothing else, no script and no network."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from markupsafe import Markup

from partwise.io.files import atomic_write
from partwise.problem.result import HISTORY, Result
from partwise.report import parts as shown
from partwise.report.parts import number
from partwise.report.plots import convergence_plots
from partwise.report.svg import Drawing, clean, safe
from partwise.report.words import STATUS
from partwise.solvers.engine.registry import has_certificates

#: Certificates that a plot is worth; fewer are a table.
_ENOUGH = 6


def write_report(
    path: str | os.PathLike[str],
    result: Result | Mapping[str, Result] | None = None,
    *,
    title: str = "Training report",
    subtitle: str = "",
    scores: Mapping[str, Any] | None = None,
    plots: Iterable[Any] = (),
    calibration: Any = None,
    confusion: tuple[Sequence[Any], Any] | None = None,
    top_features: Any = None,
    examples: Iterable[Any] = (),
    sections: Iterable[tuple[str, Mapping[str, Any], Iterable[Any]]] = (),
    settings: Mapping[str, Any] | None = None,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write a report to an HTML file; every part is optional, and all text is escaped.

    Names such as `relative_gap` of scores and settings are shown in words.

    Parameters
    ----------
    path : path
        Replaced in one step, or left as it was.
    result : Result or mapping, optional
        Certificate and convergence: plots, or a table where there are few points. Several results are given by what
        they are of: ``{"heads": ..., "relations": ...}``.
    title, subtitle : str
    scores : mapping, optional
        Numbers by name, and tables as mappings of row names to mappings of column names to numbers: either
        ``{"f1": 0.93, "per label": {"NP": {"precision": 0.9}}}``, or such a table by itself.
    plots : iterable, optional
        Drawings (`draw_curve`) that belong to the scores.
    calibration : Calibration, optional
        What `metrics.calibration` gives: its numbers and a reliability diagram.
    confusion : (labels, matrix), optional
        Counts: rows are the right labels, columns the predicted ones.
    top_features : TopFeatures or mapping, optional
        What `estimator.top_features()` gives, or lists of (name, weight) by title.
    examples : iterable, optional
        Drawings (`draw_tags`, `draw_arcs`, `draw_tree`), or pairs (title, drawing).
    sections : iterable of (title, scores, examples), optional
        A section each, for a page on several models.
    settings : mapping, optional
        Shown as a table.
    notes : mapping, optional
        More to say about "confusion" and "weights": a sentence each.
    """
    with atomic_write(path, "w") as file:
        file.write(
            render(
                result,
                title=title,
                subtitle=subtitle,
                scores=scores,
                plots=plots,
                calibration=calibration,
                confusion=confusion,
                top_features=top_features,
                examples=examples,
                sections=sections,
                settings=settings,
                notes=notes,
            )
        )


def render(result: Result | Mapping[str, Result] | None = None, **parts: Any) -> str:
    """The report as text; see `write_report`."""
    import partwise

    cards, tables = shown.scores(parts.get("scores") or {})
    results = result if isinstance(result, Mapping) else {} if result is None else {"": result}
    examples = [_example(example) for example in parts.get("examples") or ()]
    page: str = _template().render(
        version=partwise.__version__,
        title=parts.get("title", "Training report"),
        subtitle=parts.get("subtitle", ""),
        results=[{"of": of, **summary(each)} for of, each in results.items()],
        score_cards=cards,
        score_tables=tables,
        plots=[plot if isinstance(plot, Drawing) else clean(plot) for plot in parts.get("plots") or ()],
        calibration=shown.calibration(parts.get("calibration")),
        confusion=shown.confusion(parts.get("confusion")),
        weights=shown.weights(parts.get("top_features")),
        examples=examples,
        drawn=any(isinstance(each["drawing"], Drawing) for each in examples),
        sections=[_section(*section) for section in parts.get("sections") or ()],
        settings=shown.settings(parts.get("settings") or {}),
        notes=parts.get("notes") or {},
    )
    return page


def summary(result: Result) -> dict[str, Any]:
    """What a report says of a result."""
    certified = math.isfinite(result.gap)
    status = STATUS.get(result.status, result.status)
    cards: list[dict[str, str]] = [
        {"name": "status", "value": status, "mood": "good" if result.status == "converged" else "open"},
        {"name": "solver", "value": result.solver},
        {"name": "primal", "value": number(result.primal)},
    ]
    if certified:
        cards += [
            {"name": "dual", "value": number(result.dual)},
            {"name": "relative gap", "value": f"{result.relative_gap:.1e}"},
        ]
        dual, primal = _apart(result)
        where = (
            f"lies between {dual} and {primal}" if dual != primal else f"is {result.primal:.10g} in double precision"
        )
        sentence = (
            f"The best objective that any weights can reach {where}: "
            f"these weights are at most {_percent(result.relative_gap)} of their objective away from it."
        )
    else:
        sentence = "There is no certificate: "
        if result.l2 == 0:
            sentence += "without a penalty there is no dual value, and the gradient norm is what was brought down."
        elif math.isnan(result.primal) and "partial_fit" in result.message:
            sentence += "the examples of earlier calls of partial_fit are not known any more."
        elif math.isnan(result.primal):
            sentence += "the weights were changed after training."
        elif not has_certificates(result.solver):
            sentence += f"{result.solver} has none."
        else:
            sentence += "the dual value is beyond double precision."
    # Of how many is not said: some weights only pad the core's registers and belong to no feature.
    weights = f"{result.n_nonzero:,}"
    cards += [
        {"name": "passes", "value": f"{result.passes:.4g}"},
        {"name": "seconds", "value": f"{result.seconds:.3g}"},
        {"name": "weights not zero", "value": weights},
    ]
    n_points = len(result.history.get("passes", ()))
    return {
        "cards": cards,
        "sentence": sentence,
        "message": _unsaid(result),
        "plots": convergence_plots(result.history) if n_points >= _ENOUGH else [],
        "history": _history(result) if 1 < n_points < _ENOUGH else None,
    }


def _unsaid(result: Result) -> str:
    """The remarks of a result's message: the cards and the sentence say the rest."""
    said = f"{result.solver}: {result.status} after "
    remarks = []
    for remark in result.message.split("; "):
        if not remark.startswith(said):
            remarks.append(remark)
        elif ", of which rounding" in remark:
            remarks.append("of the gap" + remark[remark.index(", of which rounding") + len(", of which") :])
    return "; ".join(remarks)


def _history(result: Result) -> dict[str, Any]:
    """The certificates as a table."""
    columns = [[float(value) for value in result.history[name]] for name in HISTORY]
    rows = [
        (
            f"{passes:.4g}",
            [f"{seconds:.3g}", number(primal), number(dual), f"{gap:.2e}" if math.isfinite(gap) else "–"],
        )
        for passes, seconds, primal, dual, gap in zip(*columns, strict=True)
    ]
    return {"title": "", "corner": HISTORY[0], "columns": HISTORY[1:], "parts": [rows]}


def notebook_view(result: Result) -> str:
    """The summary and the plots as a piece of HTML."""
    found = summary(result)
    left = 'style="text-align:left;padding:2px 14px 2px 0"'
    rows = [
        f"<tr><td {left}>{safe(card['name'])}</td><td {left}><b>{safe(card['value'])}</b></td></tr>"
        for card in found["cards"]
    ]
    plots = "".join(found["plots"])
    return (
        f"<div><table><tbody>{''.join(rows)}</tbody></table><p>{safe(found['sentence'])}</p>"
        f'<div style="display:flex;flex-wrap:wrap;gap:8px">{plots}</div></div>'
    )


def _apart(result: Result) -> tuple[str, str]:
    """Dual and primal with as many digits as it takes to tell them apart, as far as there are any."""
    for digits in range(6, 17):
        dual, primal = f"{result.dual:.{digits}g}", f"{result.primal:.{digits}g}"
        if dual != primal:
            break
    return dual, primal


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share >= 1e-6 else f"{share:.1e}"


@cache
def _template() -> Any:
    from jinja2 import Environment

    source = resources.files("partwise.report").joinpath("page.html").read_text(encoding="utf-8")
    return Environment(autoescape=True, finalize=_finalize, trim_blocks=True).from_string(source)


def _finalize(value: Any) -> Any:
    return value if isinstance(value, Markup) else clean(value)


def _example(given: Any) -> dict[str, Any]:
    if isinstance(given, tuple) and len(given) == 2:
        return {"title": given[0], "drawing": given[1]}
    return {"title": "", "drawing": given if isinstance(given, Drawing) else clean(given)}


def _section(title: str, scores: Mapping[str, Any], examples: Iterable[Any]) -> dict[str, Any]:
    cards, tables = shown.scores(scores)
    return {"title": title, "cards": cards, "tables": tables, "examples": [_example(each) for each in examples]}
