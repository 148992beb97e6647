"""A report with all parts, strings that try to break out of a page, and parsers of pages and drawings."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import Any

import numpy as np

from helpers.model_cases import as_names, sequences
from partwise import SequenceTagger
from partwise.metrics import calibration
from partwise.report import Drawing, draw_arcs, draw_curve, draw_tags, draw_tree

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
    """Return arguments of `write_report` with these strings in every place that takes a string."""
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
        "plots": [draw_curve([(1, 0.5), (2, 0.75), (4, 0.7)], "F1 by passes", names[0])],
        "calibration": calibration([["a", "b", "a"]], [[[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]], ["a", "b"]),
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


class Reader(HTMLParser):
    """Collects elements, attributes and texts of a page, and checks that all elements are closed."""

    VOID = ("meta", "link", "rect", "path", "circle")

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found, self.attributes, self.ids, self.texts, self.open = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def texts_of(drawing: Drawing) -> list[str]:
    return ["".join(e.itertext()) for e in ET.fromstring(str(drawing)).iter() if e.tag.endswith("}text")]
