"""Reports and drawings: every part is present, all text is escaped, and drawings show their data."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from helpers.report_cases import HOSTILE, all_parts, fitted, read, texts_of
from partwise.io.trees import flat_tree
from partwise.problem.result import Result
from partwise.report import (
    Drawing,
    convergence_plots,
    draw_arcs,
    draw_curve,
    draw_spans,
    draw_tags,
    draw_tree,
    write_report,
)
from partwise.report.plots import log_ticks

SECTIONS = ["scores", "summary", "convergence", "confusion", "calibration", "examples", "weights", "settings"]
TAGS = frozenset(
    """html head meta link title style body main header h1 h2 h3 p section div span i table thead tbody tr th td
    footer svg text rect path circle dl dt dd details summary""".split()  # noqa: SIM905 - thirty quoted names are harder to read
)


@pytest.fixture(scope="module")
def result() -> Result:
    return fitted()[0].result_


def test_every_part(result, tmp_path):
    result.report(tmp_path / "r.html", **all_parts())
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    reader = read(text)
    assert reader.ids == SECTIONS
    shown = " ".join(reader.texts)
    for words in (
        "Report one",
        "converged",
        "lbfgs",
        "Primal and dual by passes",
        "Gap by passes",
        "F1 by passes",
        "Share that is right, by confidence",
        "accuracy",
        "three",
    ):
        assert words in shown
    n_plots = len(convergence_plots(result.history)) + 2  # plus the curve of a score and the reliability diagram
    # each plot has an inner svg for its frame; three more are drawings
    assert reader.found.count("svg") == 2 * n_plots + 3
    # the page loads nothing: its only address is the name space of SVG
    assert text.count("http") == text.count("http://www.w3.org/2000/svg") + text.count("http-equiv")
    assert not {"src", "srcset", "xlink:href", "action"} & set(reader.attributes)
    assert text.count("href") == 1  # the page's icon is empty


def test_a_result_is_shown_without_its_weights(result):
    assert "array" not in repr(result)
    assert f"gap={result.gap!r}" in repr(result)


def test_parts_are_optional(tmp_path):
    write_report(tmp_path / "r.html")
    assert read((tmp_path / "r.html").read_text()).ids == []
    write_report(tmp_path / "r.html", scores={"f1": 0.5})
    assert read((tmp_path / "r.html").read_text()).ids == ["scores"]


def test_hostile_text_stays_text(result, tmp_path):
    hostile = Result(**{**vars(result), "message": HOSTILE[0], "solver": HOSTILE[1]})
    hostile.report(tmp_path / "r.html", **all_parts(HOSTILE))
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    reader = read(text)
    assert set(reader.found) <= TAGS
    assert not [name for name in reader.attributes if name.startswith("on")]
    assert reader.ids == SECTIONS
    shown = "".join(reader.texts)
    for words in HOSTILE[:7]:
        assert words in shown
    assert "49" not in "".join(text.split("{{ 7 * 7 }}")[1][:3])
    for letter in "\x00\x07\x7f\u2028\u202e":
        assert letter not in text
    assert hostile._repr_html_().count("<script") == 0


@pytest.mark.parametrize("words", [HOSTILE, ["plain", "words"]])
def test_drawings_are_xml(words):
    n = len(words)
    drawings = [
        draw_tags(words, words, words[::-1], [0.5] * n),
        draw_arcs(words, [0, *range(1, n)], words),
        draw_tree(("S", *[(word or "x", word) for word in words])),
        draw_spans(words, [(words[0], 0, 1), (words[1], 1, 2, 0.5)], [(words[-1], 1, 2)]),
        draw_curve([(1, 0.5), (2, 0.75)], words[0], words[1]),
    ]
    for drawing in drawings:
        assert isinstance(drawing, Drawing)
        assert drawing._repr_html_() == str(drawing)
        root = ET.fromstring(str(drawing))
        names = {element.tag.split("}")[1] for element in root.iter()}
        assert names <= {"svg", "style", "text", "rect", "path", "title", "circle"}


def test_tags_say_what_is_wrong():
    drawing = draw_tags(["a", "b", "c"], ["X", "Y", "X"], ["X", "Z", "X"])
    assert texts_of(drawing) == ["a", "X", "b", "Y", "Z", "c", "X"]
    assert str(drawing).count('stroke="#c62828"') == 1
    assert "#c62828" not in str(draw_tags(["a"], ["X"], ["X"]))
    assert "#c62828" not in str(draw_tags(["a"], ["X"]))


def test_long_sentences_are_broken_into_lines():
    words = ["word"] * 100
    root = ET.fromstring(str(draw_tags(words, ["TAG"] * 100, max_width=500)))
    assert float(root.get("width")) <= 505
    assert len({e.get("y") for e in root.iter() if e.get("class") == "pw-word"}) > 5
    assert draw_tags([], []).startswith("<svg")


def test_arcs_nest():
    # 1 <- 2 -> 3, 2 -> 5, 5 -> 4: the arc from 2 to 5 encloses that from 5 to 4, and is higher
    drawing = draw_arcs(list("abcde"), [2, 0, 2, 5, 2], ["l1", "r", "l3", "l4", "l5"])
    places = {
        "".join(e.itertext()): float(e.get("y"))
        for e in ET.fromstring(str(drawing)).iter()
        if e.get("class") == "pw-small"
    }
    assert places["l5"] < places["l3"]
    assert places["l5"] < places["l4"]
    assert places["l1"] == places["l3"] == places["l4"]
    assert "dasharray" not in str(drawing)
    assert "dasharray" in str(draw_arcs(list("abc"), [2, 0, 2], gold_heads=[3, 0, 2]))


def test_deep_trees():
    tree = "word"
    for _ in range(3000):
        tree = ("X", tree)
    assert texts_of(draw_tree(tree)).count("X") == 3000
    assert texts_of(draw_tree("word")) == ["word"]


GOLD = ("S", ("NP", ("D", "the"), ("N", "cat")), ("VP", ("V", "saw"), ("NP", ("N", "it"))))


def red_boxes(drawing: Drawing) -> int:
    return sum(e.get("stroke") == "#c62828" for e in ET.fromstring(str(drawing)).iter() if e.tag.endswith("}rect"))


def test_trees_beside_gold():
    same = draw_tree(GOLD, GOLD)
    assert texts_of(same)[0] == "as in gold"
    assert texts_of(same)[1:] == texts_of(draw_tree(GOLD))
    assert "#c62828" not in same
    # The inner VP is wrong, the gold's second NP is missing, a tag differs: two red boxes in each tree.
    other = ("S", ("NP", ("D", "the"), ("N", "cat")), ("VP", ("VP", ("V", "saw"), ("P", "it"))))
    both = draw_tree(other, GOLD)
    assert red_boxes(both) == 4
    texts = texts_of(both)
    assert texts[0] == "predicted"
    assert texts.index("gold") == 1 + len(texts_of(draw_tree(other)))
    flat = draw_tree(flat_tree(["the", "cat", "saw", "it"], list("DNVN"), "S"), GOLD)
    assert texts_of(flat)[0] == "no parse"
    assert red_boxes(flat) == 3
    with pytest.raises(ValueError, match="different words"):
        draw_tree(GOLD, ("S", "the", "dog"))


def test_trees_are_beside_each_other_if_there_is_room():
    def size(n):
        trees = [("S", *[(tag, f"word{k}") for k in range(n)]) for tag in "AB"]
        root = ET.fromstring(str(draw_tree(*trees)))
        return float(root.get("width")), float(root.get("height"))

    (narrow, low), (wide, high) = size(3), size(12)
    assert narrow > float(ET.fromstring(str(draw_tree(("S", *[("A", f"word{k}") for k in range(3)])))).get("width"))
    assert wide < 890
    assert high > 1.8 * low


def test_tags_have_room():
    drawing = draw_tree(("S", ("LONGTAG", "a"), ("LONGTAG", "b")))
    boxes = [e for e in ET.fromstring(str(drawing)).iter() if e.tag.endswith("}rect")]
    (_, left, right) = ((float(e.get("x")), float(e.get("width"))) for e in boxes)
    assert left[0] + left[1] < right[0]


def test_refusals(tmp_path):
    for draw in (
        lambda: draw_tags(["a"], ["X", "Y"]),
        lambda: draw_tags(["a"], ["X"], ["X", "Y"]),
        lambda: draw_arcs(["a"], [2]),
        lambda: draw_arcs(["a"], [-1]),
        lambda: draw_arcs(["a"], [0], gold_heads=[5]),
        lambda: draw_tree(()),
        lambda: write_report(tmp_path / "r.html", confusion=(["a"], [[1, 2], [3, 4]])),
        lambda: write_report(tmp_path / "r.html", confusion=(["a"], [[math.nan]])),
    ):
        with pytest.raises(ValueError):
            draw()
    assert list(tmp_path.iterdir()) == []


def test_confusion_of_many_labels(tmp_path):
    n = 50
    write_report(tmp_path / "r.html", confusion=([f"L{k}" for k in range(n)], np.diag(np.arange(n))))
    text = (tmp_path / "r.html").read_text()
    assert "the 30 most frequent of 50 labels" in text
    assert "L49" in text
    assert ">L3<" not in text


def test_a_result_without_a_certificate(result, tmp_path):
    history = {**result.history, "gap": np.full_like(result.history["gap"], math.inf)}
    changes = {"dual": -math.inf, "gap": math.inf, "status": "no certificate", "l2": 0.0, "history": history}
    bare = Result(**{**vars(result), **changes})
    bare.report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "no dual value" in text
    assert "inf" not in text.replace("information", "")
    assert "nothing to show" in text


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"dual": -math.inf, "gap": math.inf}, "the dual value is beyond double precision"),
        ({"primal": math.nan, "gap": math.inf}, "the weights were changed after training"),
        ({"primal": 0.1 + 0.2, "dual": 0.1 + 0.2, "gap": 1e-20}, "can reach is 0.3 in double precision"),
        ({"primal": 3.5, "dual": 3.25, "gap": 0.25}, "lies between 3.25 and 3.5"),
    ],
)
def test_words_about_a_certificate(result, tmp_path, changes, told):
    Result(**{**vars(result), **changes}).report(tmp_path / "r.html")
    assert told in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("low", "high"), [(1, 1e6), (3, 4), (1e-12, 1e-3), (202.1, 202.9), (0.5, 70), (1e-300, 1e300), (99.99, 100.0)]
)
def test_ticks(low, high):
    ticks = log_ticks(low, high)
    values = [value for value, _ in ticks]
    assert 2 <= len(ticks) <= 9
    assert values == sorted(values)
    assert all(low <= value <= high * (1 + 1e-12) for value in values)
    assert len({name for _, name in ticks}) == len(ticks)


def test_odd_histories():
    for history in (
        {"passes": [0.0], "seconds": [0.0], "primal": [1.0], "dual": [0.5], "gap": [0.5]},
        {"passes": [0.0, 1.0], "seconds": [0.0, 0.0], "primal": [5.0, 5.0], "dual": [-3.0, 5.0], "gap": [8.0, 0.0]},
        {"passes": [1.0, 2.0], "seconds": [1.0, 2.0], "primal": [0.0, 0.0], "dual": [0.0, 0.0], "gap": [0.0, 0.0]},
        {
            "passes": [1.0, 2.0],
            "seconds": [1.0, 2.0],
            "primal": [1e300, 1e-300],
            "dual": [1e-310, 1e-305],
            "gap": [1e300, 1e-320],
        },
    ):
        plots = convergence_plots(history)
        assert len(plots) in (2, 4)
        for plot in plots:
            ET.fromstring(str(plot))
            assert "nan" not in str(plot)


def test_matplotlib(result):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = result.plot()
    assert len(figure.axes) == 4
    assert [len(axes.lines) for axes in figure.axes] == [2, 2, 1, 1]
    assert all(axes.get_xscale() == axes.get_yscale() == "log" for axes in figure.axes)
    shown = figure.axes[2].lines[0].get_ydata()
    assert set(shown) <= set(result.history["gap"])
    with pytest.raises(ValueError, match="4 are needed"):
        result.plot(axes=figure.axes[:2])
    pyplot.close(figure)


def test_notebook_view(result):
    reader = read(result._repr_html_())
    assert reader.found.count("svg") == 2 * len(convergence_plots(result.history))
    assert "converged" in reader.texts


def test_sections_of_several_models(tmp_path):
    path = tmp_path / "report.html"
    drawing = draw_tags(["a", "b"], ["X", "Y"])
    sections = [
        ("One <b>", {"first": {"right": 0.5, "passes": 3}, "second": {"right": 0.75}}, [("seen", drawing)]),
        ("Two", {"f1": 0.25}, []),
    ]
    hostile = [(words, {words: 0.5, "table": {words: {words: 1}}}, [(words, drawing)]) for words in HOSTILE]
    write_report(path, sections=hostile)
    assert set(read(path.read_text(encoding="utf-8")).found) <= TAGS
    write_report(path, sections=sections)
    page = path.read_text(encoding="utf-8")
    one, two = page.split('<section id="section-2">')
    assert "<h2>One &lt;b&gt;</h2>" in one
    assert "0.7500" in one
    assert "<h3>seen</h3>" in one
    assert one.count("<svg") == 1
    assert "<h2>Two</h2>" in two
    assert "0.2500" in two
    assert "<svg" not in two
