"""Parts of a report: scores, confusions, weights and settings as texts and colours for the template."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from partwise.report.plots import draw_reliability
from partwise.report.svg import shorten

if TYPE_CHECKING:
    from partwise.metrics import Calibration
    from partwise.models.inspection import TopFeatures

#: Labels of a confusion matrix and groups of weights that are shown at most, and groups that are shown unfolded.
MOST_LABELS, MOST_GROUPS, OPEN_GROUPS = 30, 60, 12
#: Letters of a label in the table of confusions; rows of a table in one column.
_LONGEST, _LONG = 60, 14

#: Numbers by name, and tables of numbers.
Scores = Mapping[str, Any]
#: Weights by the title of a group: (name, weight) of each.
Groups = Mapping[str, Sequence[tuple[str, float]]]
Part = dict[str, object]


_WHOLE = {
    "tol": "tolerance",
    "n_jobs": "threads",
    "random_state": "seed",
    "n_nonzero": "weights not zero",
    "max_passes": "most passes",
    "max_seconds": "most seconds",
    "max_length": "most words",
    "min_count": "least count",
    "dev": "development data",
}
_PARTS = {"f1": "F1", "uas": "UAS", "las": "LAS", "clas": "CLAS", "n": ""}
_NAME = re.compile(r"[A-Za-z0-9]+(_[A-Za-z0-9]+)+")
_SHORT = re.compile(r"\b(f1|uas|las|clas)\b")

#: How a run ended, by `Result.status`.
STATUS = {"max_passes": "limit of passes", "max_seconds": "limit of time", "no certificate": "ended"}


def in_words(name: object) -> str:
    """Return `relative_gap` as "relative gap", `n_features` as "features", `uas` as "UAS"; other texts as they are."""
    text = str(name)
    if text in _WHOLE:
        return _WHOLE[text]
    if _NAME.fullmatch(text):
        text = " ".join(filter(None, (_PARTS.get(part, part) for part in text.split("_"))))
    return _SHORT.sub(lambda found: _PARTS[found[0]], text)


def titled(name: object) -> str:
    """Return a name in words, as the beginning of a title."""
    text = in_words(name)
    return text[:1].upper() + text[1:]


def number(value: float) -> str:
    """Return a number as text, with at most seven digits."""
    shown = f"{value:,.2f}" if 1e3 <= abs(value) < 1e9 else f"{value:.6g}"
    return shown if math.isfinite(value) else "–"


def cell(value: object) -> str:
    """Return a value of a table as text: four decimals for shares."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return str(value)
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    plain = float(value)
    return f"{plain:.4f}" if abs(plain) <= 1 else number(plain)


def scores(given: Scores) -> tuple[list[tuple[str, str]], list[Part]]:
    """Return cards and tables of scores."""
    tables = {name: value for name, value in given.items() if isinstance(value, Mapping)}
    nested = any(isinstance(each, Mapping) for row in tables.values() for each in row.values())
    if given and len(tables) == len(given) and not nested:
        return [], [table("", given)]
    cards = [(in_words(name), cell(value)) for name, value in given.items() if name not in tables]
    return cards, [table(in_words(name), value) for name, value in tables.items()]


def table(title: str, rows: Scores) -> Part:
    """Return a table of rows by name; names of rows may be labels, and stay as they are."""
    if not all(isinstance(row, Mapping) for row in rows.values()):
        rows = {name: {"value": row} for name, row in rows.items()}
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    cells = [(name, [cell(row[c]) if c in row else "" for c in columns]) for name, row in rows.items()]
    # A long list of rows is cut into two or three parts of about the same length.
    n_parts = 1 if len(rows) <= _LONG else 2 if len(rows) <= 2 * _LONG else 3
    size = max(1, -(-len(rows) // n_parts))
    parts = [cells[k : k + size] for k in range(0, len(rows), size)] or [cells]
    return {"title": title, "columns": list(map(in_words, columns)), "parts": parts}


def confusion(names: Sequence[object], counts: ArrayLike) -> Part:
    """Return rows of counts with their colours."""
    labels, matrix = [shorten(name, _LONGEST) for name in names], np.asarray(counts, dtype=np.float64)
    if matrix.shape != (len(labels), len(labels)):
        raise ValueError(f"confusion: {len(labels)} labels and a matrix of shape {matrix.shape}")
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise ValueError("confusion: counts must be finite and not negative")
    chosen = np.arange(len(labels))
    if len(labels) > MOST_LABELS:
        chosen = np.sort(np.argsort(-(matrix.sum(axis=0) + matrix.sum(axis=1)), kind="stable")[:MOST_LABELS])
    rows = []
    for i in chosen.tolist():
        total = matrix[i].sum()
        cells = []
        for j in chosen.tolist():
            share = float(matrix[i, j] / total) if total else 0.0
            # Errors are rare: their colours rise faster than their shares.
            strength = share if i == j else min(1.0, 1.6 * share**0.6)
            full = (37, 99, 176) if i == j else (180, 83, 9)
            red, green, blue = (round(255 + (part - 255) * (0.9 * strength)) for part in full)
            count = f"{matrix[i, j]:,.0f}" if matrix[i, j] == int(matrix[i, j]) else number(float(matrix[i, j]))
            cells.append(
                {
                    "label": labels[j],
                    "count": count if matrix[i, j] else "",  # most are zero, and none of them is news
                    "share": f"{share:.1%}",
                    "colour": f"#{red:02x}{green:02x}{blue:02x}",
                    "ink": _ink((red, green, blue)),
                }
            )
        rows.append({"label": labels[i], "cells": cells})
    return {"labels": [labels[j] for j in chosen.tolist()], "rows": rows, "left_out": len(labels) - len(chosen)}


def _ink(paper: tuple[int, int, int]) -> str:
    """Return black or white, whichever has more contrast by the Web Content Accessibility Guidelines."""
    shares = [value / 255 for value in paper]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in shares)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000000" if (luminance + 0.05) ** 2 >= 0.05 * 1.05 else "#ffffff"


def weights(given: Groups | TopFeatures | None) -> Part:
    """Return groups of bars: those with the largest weights, and the others, in the order given."""
    groups = given if isinstance(given, Mapping) else {} if given is None else given.groups()
    listed = [(title, [(name, float(weight)) for name, weight in rows]) for title, rows in groups.items() if rows]
    sizes = [max(abs(weight) for _, weight in rows) for _, rows in listed]
    largest = max(sizes, default=0.0) or 1.0

    def bar(name: str, weight: float) -> dict[str, str]:
        side, width = "plus" if weight >= 0 else "minus", f"{100 * abs(weight) / largest:.1f}"
        return {"name": name, "value": f"{weight:+.3f}", "side": side, "width": width}

    bars = [{"title": title, "bars": [bar(*row) for row in rows]} for title, rows in listed]
    order = sorted(range(len(listed)), key=lambda k: -sizes[k])
    first, others = order[:OPEN_GROUPS], order[OPEN_GROUPS:MOST_GROUPS]
    shown = {"first": [bars[k] for k in sorted(first)], "others": [bars[k] for k in sorted(others)]}
    return {**shown, "left_out": max(0, len(listed) - MOST_GROUPS)}


def calibration(given: Calibration) -> Part:
    """Return the two numbers of a calibration, the diagram and its table."""
    rows = {}
    for b in given.count.nonzero()[0].tolist():
        shares = {"mean confidence": float(given.confidence[b]), "right": float(given.accuracy[b])}
        rows[f"{given.edges[b]:g} to {given.edges[b + 1]:g}"] = {"answers": int(given.count[b]), **shares}
    return {
        "cards": [("expected calibration error", cell(given.ece)), ("Brier score", cell(given.brier))],
        "table": table("", rows),
        "plot": draw_reliability(given),
    }


def settings(given: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return names and values in words."""
    return [(in_words(name), _setting(name, value)) for name, value in given.items()]


def _setting(name: str, value: object) -> str:
    if name == "memory_limit" and isinstance(value, (int, float)):
        return f"{value / 1e9:g} GB"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
    shown = text if isinstance(text, str) else repr(text)
    return shown if len(shown) <= 400 else shown[:400] + "…"
