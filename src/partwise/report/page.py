"""The report: one HTML file that needs nothing else, no script and no network."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ..io.files import atomic_write
from ..solvers.registry import has_certificates
from .plots import convergence_plots
from .svg import Drawing, clean, safe, shorten

if TYPE_CHECKING:
    from ..result import Result

#: Labels of a confusion matrix and groups of weights that are shown at most.
_MOST_LABELS, _MOST_GROUPS = 30, 60
_LONGEST = 60  # letters of a label in the table of confusions, where it stands many times


def write_report(
    path: str | os.PathLike[str],
    result: Result | None = None,
    *,
    title: str = "Training report",
    subtitle: str = "",
    scores: Mapping[str, Any] | None = None,
    confusion: tuple[Sequence[Any], Any] | None = None,
    top_features: Any = None,
    examples: Iterable[Any] = (),
    sections: Iterable[tuple[str, Mapping[str, Any], Iterable[Any]]] = (),
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Write a report to an HTML file; every part is optional, and all text is escaped.

    Parameters
    ----------
    path : path
        Replaced in one step, or left as it was.
    result : Result, optional
        Certificate and convergence plots.
    title, subtitle : str
    scores : mapping, optional
        Numbers by name, and tables as mappings of row names to mappings of column names to numbers: either
        ``{"f1": 0.93, "per label": {"NP": {"precision": 0.9}}}``, or such a table by itself.
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
    """
    with atomic_write(path, "w") as file:
        file.write(
            render(
                result,
                title=title,
                subtitle=subtitle,
                scores=scores,
                confusion=confusion,
                top_features=top_features,
                examples=examples,
                sections=sections,
                settings=settings,
            )
        )


def render(result: Result | None = None, **parts: Any) -> str:
    """The report as text; see `write_report`."""
    import partwise

    cards, tables = _scores(parts.get("scores") or {})
    groups, left_out = _weights(parts.get("top_features"))
    settings = parts.get("settings") or {}
    page: str = _template().render(
        version=partwise.__version__,
        title=parts.get("title", "Training report"),
        subtitle=parts.get("subtitle", ""),
        result=None if result is None else summary(result),
        score_cards=cards,
        score_tables=tables,
        confusion=_confusion(parts.get("confusion")),
        weights=groups,
        weights_left_out=left_out,
        examples=[_example(example) for example in parts.get("examples") or ()],
        sections=[_section(*section) for section in parts.get("sections") or ()],
        settings=[(name, _setting(value)) for name, value in settings.items()],
    )
    return page


def summary(result: Result, plots: bool = True) -> dict[str, Any]:
    """What a report says of a result."""
    certified = math.isfinite(result.gap)
    mood = "good" if result.status == "converged" else "open"
    cards: list[dict[str, str]] = [
        {"name": "status", "value": result.status, "mood": mood},
        {"name": "solver", "value": result.solver},
        {"name": "primal", "value": number(result.primal)},
    ]
    if certified:
        cards += [
            {"name": "dual", "value": number(result.dual)},
            {"name": "gap / primal", "value": f"{result.relative_gap:.1e}"},
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
    long_enough = len(result.history.get("passes", ())) > 1
    drawings = convergence_plots(result.history) if plots and long_enough else []
    return {"cards": cards, "sentence": sentence, "message": result.message, "plots": drawings}


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


def number(value: float) -> str:
    """Seven digits at most."""
    return f"{value:,.2f}" if 1e3 <= abs(value) < 1e9 else f"{value:.6g}"


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


def _scores(scores: Mapping[str, Any]) -> tuple[list[tuple[str, str]], list[dict[str, Any]]]:
    if scores and all(isinstance(value, Mapping) for value in scores.values()):
        flat = all(not isinstance(cell, Mapping) for row in scores.values() for cell in row.values())
        if flat:
            return [], [_table("", scores)]
    cards = [(name, _cell(value)) for name, value in scores.items() if not isinstance(value, Mapping)]
    return cards, [_table(name, value) for name, value in scores.items() if isinstance(value, Mapping)]


def _table(title: str, rows: Mapping[str, Any]) -> dict[str, Any]:
    if not all(isinstance(row, Mapping) for row in rows.values()):
        return {
            "title": title,
            "columns": ["value"],
            "rows": [(name, [_cell(row)]) for name, row in rows.items()],
        }
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    cells = [(name, [_cell(row[c]) if c in row else "" for c in columns]) for name, row in rows.items()]
    return {"title": title, "columns": columns, "rows": cells}


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return str(value)
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    plain = float(value)
    return f"{plain:.4f}" if abs(plain) <= 1 else number(plain)


def _confusion(given: tuple[Sequence[Any], Any] | None) -> dict[str, Any] | None:
    if given is None:
        return None
    import numpy as np

    labels, matrix = [shorten(clean(label), _LONGEST) for label in given[0]], np.asarray(given[1], dtype=np.float64)
    if matrix.shape != (len(labels), len(labels)):
        raise ValueError(f"confusion: {len(labels)} labels and a matrix of shape {matrix.shape}")
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise ValueError("confusion: counts must be finite and not negative")
    chosen = np.arange(len(labels))
    if len(labels) > _MOST_LABELS:
        chosen = np.sort(np.argsort(-(matrix.sum(axis=0) + matrix.sum(axis=1)), kind="stable")[:_MOST_LABELS])
    rows = []
    for i in chosen.tolist():
        total = matrix[i].sum()
        cells = []
        for j in chosen.tolist():
            share = float(matrix[i, j] / total) if total else 0.0
            # Errors are rare: their colours rise faster than their shares.
            strength = share if i == j else min(1.0, 1.6 * share**0.6)
            colour = _blend((255, 255, 255), (37, 99, 176) if i == j else (217, 119, 6), 0.9 * strength)
            ink = "#ffffff" if strength > 0.6 else "#1f2933" if matrix[i, j] else "#b8c0ca"
            count = f"{matrix[i, j]:,.0f}" if matrix[i, j] == int(matrix[i, j]) else number(float(matrix[i, j]))
            cells.append({"label": labels[j], "count": count, "share": f"{share:.1%}", "colour": colour, "ink": ink})
        rows.append({"label": labels[i], "cells": cells})
    return {"labels": [labels[j] for j in chosen.tolist()], "rows": rows, "left_out": len(labels) - len(chosen)}


def _blend(a: tuple[int, int, int], b: tuple[int, int, int], share: float) -> str:
    return "#" + "".join(f"{round(p + (q - p) * share):02x}" for p, q in zip(a, b, strict=True))


def _weights(given: Any) -> tuple[list[dict[str, Any]], int]:
    if given is None:
        return [], 0
    groups = given.groups() if hasattr(given, "groups") else given
    listed = [(title, [(name, float(weight)) for name, weight in rows]) for title, rows in groups.items() if rows]
    largest = max((abs(weight) for _, rows in listed for _, weight in rows), default=0.0) or 1.0
    found = [
        {
            "title": title,
            "bars": [
                {
                    "name": name,
                    "value": f"{weight:+.3f}",
                    "side": "plus" if weight >= 0 else "minus",
                    "width": f"{100 * abs(weight) / largest:.1f}",
                }
                for name, weight in rows
            ],
        }
        for title, rows in listed[:_MOST_GROUPS]
    ]
    return found, max(0, len(listed) - _MOST_GROUPS)


def _example(given: Any) -> dict[str, Any]:
    if isinstance(given, tuple) and len(given) == 2:
        return {"title": given[0], "drawing": given[1]}
    return {"title": "", "drawing": given if isinstance(given, Drawing) else clean(given)}


def _section(title: str, scores: Mapping[str, Any], examples: Iterable[Any]) -> dict[str, Any]:
    cards, tables = _scores(scores)
    return {"title": title, "cards": cards, "tables": tables, "examples": [_example(each) for each in examples]}


def _setting(value: Any) -> str:
    text = repr(value) if not isinstance(value, str) else value
    return text if len(text) <= 400 else text[:400] + "…"
