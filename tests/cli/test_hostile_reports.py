"""Strings that try to break out of a report do not: the page has the structure of one with harmless strings."""

from __future__ import annotations

import math
import warnings

import pytest
from click.testing import CliRunner

from helpers.report_cases import Reader
from partwise.cli import main
from partwise.report import plots

#: No white space, brackets or separators of the formats: these would be read as such.
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img/src=x/onerror=alert`1`>',
    "'onmouseover='alert`1`",
    "</style></svg></title><b>",
    "javascript:alert`1`",
    "{{7*7}}{%raw%}",
    "&lt;b&gt;&amp;",
    "]]><!--",
    "\u2028\u202e\u2066\u200b",
    "\x01\x07\x7f\x1b[31m",
    "<a/href=//x.example>",
    "--><iframe/srcdoc=x>",
]
PLAIN = [f"plain{k}" for k in range(len(HOSTILE))]


class Page(Reader):
    """An HTML reader that also collects the links' targets."""

    def __init__(self):
        super().__init__()
        self.links = []

    def handle_starttag(self, tag, attrs):
        super().handle_starttag(tag, attrs)
        self.links += [value for name, value in attrs if name in ("href", "src", "srcdoc", "xlink:href", "action")]


def columns(w):
    return "".join(
        f"{w[k % 12]} {w[(k + 3) % 12]} B-{w[k % 2]}\n{w[(k + 5) % 12]} {w[k % 12]} I-{w[k % 2]}\n{w[7]} x O\n\n"
        for k in range(12)
    )


def conllu(w):
    row = "{0}\t{1}\t{1}\t{2}\t{3}\t_\t{4}\t{5}\t_\t_\n"
    return "".join(
        f"# text = {w[k]}\n"
        + row.format(1, w[k], w[1], w[2], 2, w[(k + 1) % 3])
        + row.format(2, w[(k + 4) % 12], w[k % 3], w[4], 0, w[3])
        + row.format(3, w[(k + 6) % 12], w[5], w[k % 5], 2, w[4])
        + "\n"
        for k in range(12)
    )


def trees(w):
    w = [word.translate(dict.fromkeys(map(ord, "()"))) for word in w]
    return "".join(f"({w[0]} ({w[1]} ({w[2]} {w[k]})) ({w[3]} ({w[4]} {w[(k + 1) % 12]})))\n" for k in range(12))


def items(w):
    w = [word.replace(":", "\\:") for word in w]
    return "".join(f"{w[k % 3]}\t{w[k]}\t{w[(k + 1) % 12]}\n{w[(k + 1) % 3]}\t{w[5]}\n\n" for k in range(12))


def page_of(folder, words, task, make, name, flags):
    """Train with a report, and return the parsed page."""
    folder.mkdir()
    data, report = folder / name, folder / "r.html"
    data.write_text(make(words), encoding="utf-8")
    arguments = [*task.split(), str(data), "-o", str(folder / "m.pw"), "--dev", str(data), "--report", str(report)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = CliRunner().invoke(main, [*arguments, *flags])
    assert done.exit_code == 0, done.output
    text = report.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page, text


CASES = {
    "tag": ("train tag", columns, ".txt", ["--max-passes", "3"]),
    "items": ("train tag", items, ".items", ["--max-passes", "3"]),
    "conllu": ("train tag", conllu, ".conllu", ["--max-passes", "3"]),
    "segment": ("train segment", columns, ".txt", ["--max-passes", "3"]),
    "dep": ("train dep", conllu, ".conllu", ["--max-passes", "3"]),
    "cfg": ("train cfg", trees, ".mrg", ["--max-passes", "3"]),
    "path": ("path tag", columns, ".txt", ["--tol", "0.5"]),
}


@pytest.mark.parametrize("case", CASES)
def test_no_string_becomes_markup(tmp_path, case, monkeypatch):
    # no plots over seconds: whether they are shown depends on the clock
    monkeypatch.setattr(plots, "_VARIES", math.inf)
    task, make, end, flags = CASES[case]
    hostile, text = page_of(tmp_path / "<b>&'", HOSTILE, task, make, f'<img src=x onerror=y>"{end}', flags)
    plain, _ = page_of(tmp_path / "plain", PLAIN, task, make, f"data{end}", flags)
    assert set(hostile.found) <= set(plain.found) | {"title"}
    assert set(hostile.attributes) <= set(plain.attributes)
    assert hostile.found.count("script") == plain.found.count("script")
    assert hostile.found.count("style") - hostile.found.count("svg") == plain.found.count("style") - plain.found.count(
        "svg"
    )
    assert hostile.ids == plain.ids
    assert set(hostile.links) == set(plain.links)
    for letter in "\x01\x07\x1b\x7f\u2028\u202e\u2066":
        assert letter not in text
    assert "<script>alert" in "".join(hostile.texts)  # the string is on the page, as text
