"""The report: one HTML file that needs nothing else, no script and no network."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from markupsafe import Markup
from numpy.typing import ArrayLike

from partwise.io.files import atomic_write
from partwise.problem.result import HISTORY, Result
from partwise.report import parts as shown
from partwise.report.parts import STATUS, Scores, number
from partwise.report.plots import convergence_plots
from partwise.report.svg import Drawing, clean
from partwise.solvers.engine.registry import has_certificates

if TYPE_CHECKING:
    from jinja2 import Environment, Template

    from partwise.metrics import Calibration
    from partwise.models.inspection import TopFeatures

#: With fewer certificates the report has a table instead of plots.
_ENOUGH = 6


def write_report(
    path: str | os.PathLike[str],
    result: Result | Mapping[str, Result] | None = None,
    *,
    title: str = "Training report",
    subtitle: str = "",
    scores: Scores | None = None,
    plots: Iterable[object] = (),
    calibration: Calibration | None = None,
    confusion: tuple[Sequence[object], ArrayLike] | None = None,
    top_features: shown.Groups | TopFeatures | None = None,
    examples: Iterable[object] = (),
    sections: Iterable[tuple[str, Scores, Iterable[object]]] = (),
    settings: Mapping[str, object] | None = None,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write a report to an HTML file; every part is optional, and all text is escaped.

    Names such as `relative_gap` of scores and settings are shown in words.

    Parameters
    ----------
    path : replaced in one step, or left as it was
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
    sections : iterable of (title, scores, examples), one per model on a page about several
    settings : mapping, shown as a table
    notes : mapping, with a further sentence about "confusion" and "weights"
    """
    from partwise import __version__

    cards, tables = shown.scores(scores or {})
    results = result if isinstance(result, Mapping) else {} if result is None else {"": result}
    drawings = list(map(_example, examples))
    page = _template().render(
        version=__version__,
        title=title,
        subtitle=subtitle,
        results=[{"of": of, **_summary(each)} for of, each in results.items()],
        score_cards=cards,
        score_tables=tables,
        plots=list(map(_drawing, plots)),
        calibration=None if calibration is None else shown.calibration(calibration),
        confusion=None if confusion is None else shown.confusion(*confusion),
        weights=shown.weights(top_features),
        examples=drawings,
        drawn=any(isinstance(each["drawing"], Drawing) for each in drawings),
        sections=[_section(*section) for section in sections],
        settings=shown.settings(settings or {}),
        notes=notes or {},
    )
    with atomic_write(path, "w") as file:
        file.write(page)


def _summary(result: Result) -> dict[str, object]:
    status = STATUS.get(result.status, result.status)
    cards = {"status": status, "solver": result.solver, "primal": number(result.primal)}
    if math.isfinite(result.gap):
        cards |= {"dual": number(result.dual), "relative gap": f"{result.relative_gap:.1e}"}
        where = f"is {result.primal:.10g} in double precision"
        for digits in range(16, 5, -1):  # as few as tell the two apart, at most those of a float
            dual, primal = f"{result.dual:.{digits}g}", f"{result.primal:.{digits}g}"
            if dual != primal:
                where = f"lies between {dual} and {primal}"
        share = result.relative_gap
        percent = f"{100 * share:.2g} %" if share >= 1e-6 else f"{share:.1e}"
        sentence = (
            f"The best objective that any weights can reach {where}: "
            f"these weights are at most {percent} of their objective away from it."
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
    cards |= {"passes": f"{result.passes:.4g}", "seconds": f"{result.seconds:.3g}"}
    # The number of all weights is left out: some only pad the core's registers and belong to no feature.
    cards["weights not zero"] = f"{result.n_nonzero:,}"
    n_points = len(result.history.get("passes", ()))
    mood = {"status": "good" if result.converged else "open"}
    return {
        "cards": [{"name": name, "value": value, "mood": mood.get(name)} for name, value in cards.items()],
        "sentence": sentence,
        "message": _unsaid(result),
        "plots": convergence_plots(result.history) if n_points >= _ENOUGH else [],
        "history": _history(result) if 1 < n_points < _ENOUGH else None,
    }


def _unsaid(result: Result) -> str:
    """Return the remarks of a result's message that the cards and the sentence do not say."""
    said = f"{result.solver}: {result.status} after "
    remarks = []
    for remark in result.message.split("; "):
        if not remark.startswith(said):
            remarks.append(remark)
        elif ", of which rounding" in remark:
            remarks.append("of the gap" + remark.partition(", of which")[2])
    return "; ".join(remarks)


def _history(result: Result) -> dict[str, object]:
    rows = []
    for passes, seconds, primal, dual, gap in zip(*(map(float, result.history[name]) for name in HISTORY), strict=True):
        shown_gap = f"{gap:.2e}" if math.isfinite(gap) else "–"
        rows.append((f"{passes:.4g}", [f"{seconds:.3g}", number(primal), number(dual), shown_gap]))
    return {"title": "", "corner": HISTORY[0], "columns": HISTORY[1:], "parts": [rows]}


def notebook_view(result: Result) -> str:
    """Return the summary and the plots of a result as a piece of HTML."""
    source = """<div><table><tbody>{% for card in cards %}
<tr><td style="{{ style }}">{{ card.name }}</td><td style="{{ style }}"><b>{{ card.value }}</b></td></tr>
{% endfor %}</tbody></table><p>{{ sentence }}</p>
<div style="display:flex;flex-wrap:wrap;gap:8px">{% for plot in plots %}{{ plot }}{% endfor %}</div></div>"""
    view = _environment().from_string(source)
    return view.render(**_summary(result), style="text-align:left;padding:2px 14px 2px 0")


@cache
def _environment() -> Environment:
    """Return Jinja's environment; it escapes everything but finished drawings."""
    from jinja2 import Environment

    def finalize(value: object) -> object:
        return value if isinstance(value, Markup) else clean(value)

    return Environment(autoescape=True, finalize=finalize, trim_blocks=True)


@cache
def _template() -> Template:
    source = resources.files("partwise.report").joinpath("page.html").read_text(encoding="utf-8")
    return _environment().from_string(source)


def _drawing(given: object) -> str:
    return given if isinstance(given, Drawing) else clean(given)


def _example(given: object) -> dict[str, object]:
    if isinstance(given, tuple) and len(given) == 2:
        return {"title": given[0], "drawing": given[1]}
    return {"title": "", "drawing": _drawing(given)}


def _section(title: str, scores: Scores, examples: Iterable[object]) -> dict[str, object]:
    cards, tables = shown.scores(scores)
    return {"title": title, "cards": cards, "tables": tables, "examples": list(map(_example, examples))}
