"""Scores of relations between words for the JSON output and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from partwise.cli.tasks.labels import MAX_CONFUSION
from partwise.metrics import confusion_matrix


def by_relation(gold: Sequence[Any], guess: Sequence[Any]) -> list[dict[str, Any]]:
    """Precision, recall and F1 of arcs by their relation; empty without relations."""
    truth: Counter[str] = Counter()
    found: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for one, other in zip(gold, guess, strict=True):
        for a, b in zip(one, other, strict=True):
            if not isinstance(b, tuple):
                return []
            truth[a[1]] += 1
            found[b[1]] += 1
            right[a[1]] += a == b
    return [
        {
            "label": name,
            "precision": right[name] / found[name] if found[name] else 0.0,
            "recall": right[name] / truth[name] if truth[name] else 0.0,
            "f1": 2 * right[name] / (truth[name] + found[name]),
            "gold": truth[name],
            "found": found[name],
        }
        for name in sorted(truth | found, key=lambda name: (-truth[name], name))
    ]


def confused(gold: Sequence[Any], guess: Sequence[Any]) -> tuple[list[str], list[list[int]]] | None:
    """The most frequent relations of the words whose head is right, gold ones in rows; None without relations."""
    words = [pair for one, other in zip(gold, guess, strict=True) for pair in zip(one, other, strict=True)]
    pairs = [(a[1], b[1]) for a, b in words if isinstance(b, tuple) and a[0] == b[0]]
    if not pairs:
        return None
    counts = Counter(name for pair in pairs for name in pair)
    names = [name for name, _ in counts.most_common(MAX_CONFUSION)]
    known = set(names)
    kept = [pair for pair in pairs if known.issuperset(pair)]
    truth, found = zip(*kept, strict=True) if kept else ((), ())
    return names, confusion_matrix([truth], [found], labels=names).counts.tolist()
