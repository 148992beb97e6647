"""A report with every part in it, and strings that try to break out of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from modelcases import as_names, sequences

from partwise import SequenceTagger
from partwise.report import draw_arcs, draw_tags, draw_tree

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style></svg></title><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &amp;",
    "]]><!--",
    "nul \x00 bell \x07 delete \x7f line \u2028 override \u202e",
    "lone \ud800 surrogate \udfff",
    "שלום e\u0301 👩\u200d👧 東京",
    "",
]


def fitted() -> tuple[SequenceTagger, list[list[Any]], list[list[str]]]:
    arrays, y = sequences(0, 40, ["B-x", "I-x", "O"])
    X = as_names(arrays)
    return SequenceTagger(solver="lbfgs", tol=1e-8).fit(X, y), X, y


def all_parts(words: list[str] | None = None) -> dict[str, Any]:
    """Arguments of `write_report`, with these strings wherever one can stand."""
    names = words or ["one", "two", "three", "four"]
    n = len(names)
    rng = np.random.default_rng(0)
    heads = [0, *range(1, n)]
    tree: Any = ("S", *[(name, name) for name in names])
    return {
        "title": f"Report {names[0]}",
        "subtitle": names[-2],
        "scores": {
            "accuracy": 0.5,
            **{f"text {k}": name for k, name in enumerate(names)},
            "per label": {f"{name} {k}": {"f1": 0.25, f"{name} column": 3} for k, name in enumerate(names)},
        },
        "confusion": (names, rng.integers(0, 9, size=(n, n))),
        "top_features": {f"{name} {k}": [(name, 1.5), (names[0], -0.5)] for k, name in enumerate(names)},
        "examples": [
            (names[0], draw_tags(names, names[::-1], names, np.linspace(0, 1, n))),
            draw_arcs(names, heads, names, [2, 0, *heads[2:]]),
            ("tree", draw_tree(tree)),
            names[0],
        ],
        "settings": {f"{name} {k}": name for k, name in enumerate(names)},
    }
