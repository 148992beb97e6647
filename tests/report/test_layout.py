"""Layout of reports: nothing too wide or repeated, names written as words, readable colours."""

from __future__ import annotations

import colorsys
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest

from helpers.report_cases import fitted, read, texts_of
from partwise.metrics import calibration
from partwise.problem.result import Result
from partwise.report import convergence_plots, draw_arcs, draw_curve, draw_reliability, draw_tree, write_report
from partwise.report.parts import confusion, in_words
from partwise.report.plots import linear_ticks
from partwise.report.svg import colour_of

WORDS = [f"w{k}-{'x' * (k % 9)}" for k in range(60)]
NUMBER = re.compile(r"-?\d+\.?\d*")


def size(drawing):
    root = ET.fromstring(str(drawing))
    return float(root.get("width")), float(root.get("height"))


def lines_of(drawing):
    """Return the words of each line, from top to bottom and left to right."""
    places = {}
    for e in ET.fromstring(str(drawing)).iter():
        if e.get("class") == "pw-word":
            places.setdefault(float(e.get("y")), []).append((float(e.get("x")), "".join(e.itertext())))
    return [[word for _, word in sorted(own)] for _, own in sorted(places.items())]


def random_tree(rng, words):
    if len(words) == 1:
        return ("T", words[0])
    cut = int(rng.integers(1, len(words)))
    return (f"P{int(rng.integers(4))}", random_tree(rng, words[:cut]), random_tree(rng, words[cut:]))


@pytest.mark.parametrize("most", [860.0, 500.0])
def test_arcs_are_broken_into_lines(most, rng):
    heads = [0, *(int(rng.integers(1, k + 1)) for k in range(1, 60))]
    gold = [0, *(int(rng.integers(1, k + 1)) for k in range(1, 60))]
    drawing = draw_arcs(WORDS, heads, [f"label{k}" for k in range(60)], gold_heads=gold, max_width=most)
    width, height = size(drawing)
    lines = lines_of(drawing)
    assert width <= most
    assert [word for line in lines for word in line] == WORDS
    assert len(lines) > 3
    shown = texts_of(drawing)
    assert all(shown.count(f"label{k}") == 1 for k in range(60))
    # all arcs lie inside the picture
    for e in ET.fromstring(str(drawing)).iter():
        for command, rest in re.findall(r"([MHV])([^A-Za-z]*)", e.get("d") or ""):
            values = [float(value) for value in NUMBER.findall(rest)]
            assert all(0 <= v <= (height if command == "V" else max(width, height)) for v in values)
            if command == "H":
                assert values[0] <= width


def test_an_arc_between_lines_is_in_both():
    heads = [0, *[1] * 29]
    drawing = draw_arcs(["word"] * 30, heads, max_width=500)
    lines = lines_of(drawing)
    assert len(lines) >= 3
    arcs = [e.get("d") for e in ET.fromstring(str(drawing)).iter() if "Q" in (e.get("d") or "")]
    assert (
        len(arcs) == 2 * (30 - len(lines[0])) + len(lines[0]) - 1
    )  # an arc between lines is drawn as two ends, any other arc as one path
    assert len(lines_of(draw_arcs(["word"] * 5, [0, 1, 1, 1, 1], max_width=500))) == 1


def test_lines_of_arcs_are_about_as_long():
    lines = lines_of(draw_arcs(["word"] * 20, [0, *[1] * 19], max_width=860))
    assert len(lines) == 2
    assert abs(len(lines[0]) - len(lines[1])) <= 1


@pytest.mark.parametrize("most", [860.0, 400.0])
def test_trees_are_broken_into_lines(most, rng):
    for _ in range(10):
        tree, other = random_tree(rng, WORDS), random_tree(rng, WORDS)
        drawing = draw_tree(tree, max_width=most)
        width, _ = size(drawing)
        assert width <= most
        assert [word for line in lines_of(drawing) for word in line] == WORDS
        assert texts_of(drawing).count("T") == 60
        assert 'stroke-dasharray="4 3"' in drawing  # a dashed end marks a phrase that continues on another line
        both = draw_tree(tree, other, max_width=most)
        assert size(both)[0] <= most
        assert [word for line in lines_of(both) for word in line] == [*WORDS, *WORDS]
    small = draw_tree(random_tree(rng, WORDS[:5]))
    assert len(lines_of(small)) == 1
    assert 'stroke-dasharray="4 3"' not in small


def test_lines_of_trees_say_what_their_words_are_in():
    rest = ("X", *[("T", word) for word in WORDS])
    drawing = draw_tree(("S", ("A", "first"), ("V", ("W", rest))), max_width=400)
    assert texts_of(drawing).count("S › V › W ›") == len(lines_of(drawing)) - 1


def history(n, rate=lambda k: 1.0):
    k = np.arange(1, n + 1, dtype=float)
    seconds = np.array([k[i] * rate(i) for i in range(n)])
    return {"passes": k, "seconds": seconds, "primal": 1 + 1 / k, "dual": 1 - 1 / k, "gap": 2 / k}


def test_plots_by_seconds_only_where_they_look_different():
    titles = [texts_of(plot)[0] for plot in convergence_plots(history(8))]
    assert titles == ["Primal and dual by passes", "Gap by passes"]
    titles = [texts_of(plot)[0] for plot in convergence_plots(history(8, lambda k: 1.0 + k))]
    assert titles[2:] == ["Primal and dual by seconds", "Gap by seconds"]


def test_few_points_are_a_table(tmp_path):
    result = fitted()[0].result_
    for n, ids in ((1, ["summary"]), (3, ["summary"]), (8, ["summary", "convergence"])):
        Result(**{**vars(result), "history": history(n)}).report(tmp_path / "r.html")
        reader = read((tmp_path / "r.html").read_text())
        assert reader.ids == ids
        assert reader.found.count("svg") == (4 if n == 8 else 0)
        assert reader.found.count("table") == (1 if n == 3 else 0)


def test_names_are_in_words(tmp_path):
    said = {
        "relative_gap": "relative gap",
        "n_features": "features",
        "uas_without_punctuation": "UAS without punctuation",
        "f1": "F1",
        "f1, all": "F1, all",
        "tol": "tolerance",
        "B-NP": "B-NP",
        "C": "C",
        "a_": "a_",
    }
    assert {name: in_words(name) for name in said} == said
    scores = {"exact_match": 0.5, "by label": {"my_label": {"n_found": 3}}}
    write_report(tmp_path / "r.html", scores=scores, settings={"fit_intercept": True, "n_jobs": 1})
    shown = read((tmp_path / "r.html").read_text()).texts
    assert {"exact match", "my_label", "found", "fit intercept", "yes", "threads"} <= set(shown)


def test_long_tables_are_in_columns(tmp_path):
    for n, parts in ((10, 1), (20, 2), (50, 3)):
        write_report(tmp_path / "r.html", scores={"by label": {f"L{k}": {"f1": k / n} for k in range(n)}})
        text = (tmp_path / "r.html").read_text()
        assert text.count("<table>") == parts
        assert [f"L{k}" in text for k in range(n)] == [True] * n


def test_the_largest_weights_are_shown_and_others_on_request(tmp_path):
    groups = {f"group {k}": [(f"feature {k}", 1.0 + k)] for k in range(20)}
    write_report(tmp_path / "r.html", top_features=groups)
    first, others = (tmp_path / "r.html").read_text().split("<details>")
    assert [k for k in range(20) if f">group {k}<" in first] == list(range(8, 20))
    assert [k for k in range(20) if f">group {k}<" in others] == list(range(8))


def test_curves():
    drawing = draw_curve([(1, 0.5), (3, 0.75), (2, 0.8), (4, float("nan"))], "F1 by passes", "passes")
    circles = [e for e in ET.fromstring(str(drawing)).iter() if e.tag.endswith("circle")]
    assert len(circles) == 4  # three points, and a ring around the best
    assert (circles[1].get("cx"), circles[1].get("cy")) == (circles[3].get("cx"), circles[3].get("cy"))
    assert all(float(a.get("cx")) < float(b.get("cx")) for a, b in pairwise(circles[:3]))
    assert "nothing to show" in draw_curve([], "t", "x")
    assert "nothing to show" in draw_curve([(0, 1)], "t", "C", logarithmic=True)
    for points in ([(1, 0.5)], [(0, 0), (0, 0)], [(1e-9, 1), (1e9, 1)]):
        for logarithmic in (False, True):
            ET.fromstring(str(draw_curve(points, "t", "<x>", logarithmic=logarithmic)))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.8, 0.9), (-0.02, 1.02), (1e-9, 2e-9), (0, 1e6), (17.3, 17.4)])
def test_linear_ticks(low, high):
    ticks = linear_ticks(low, high)
    assert 3 <= len(ticks) <= 7
    assert len({name for _, name in ticks}) == len(ticks)
    assert all(low - 1e-9 <= value <= high + 1e-9 * abs(high) for value, _ in ticks)


def test_the_reliability_diagram_shows_shares():
    found = calibration([["a"] * 4], [[[0.75, 0.25]] * 3 + [[0.35, 0.65]]], ["a", "b"])
    drawing = draw_reliability(found)
    titles = [e.text for e in ET.fromstring(str(drawing)).iter() if e.tag.endswith("title")]
    assert "100.0% right of 3 with mean confidence 0.750" in titles
    assert "0.0% right of 1 with mean confidence 0.650" in titles
    assert "75.0% of all have a confidence of 0.7 to 0.8" in titles


def rgb(colour):
    if colour.startswith("#"):
        return tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))
    hue, saturation, light = map(float, NUMBER.findall(colour))
    return tuple(255 * part for part in colorsys.hls_to_rgb(hue / 360, light / 100, saturation / 100))


def luminance(colour):
    parts = [value / 255 for value in colour]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return np.dot((0.2126, 0.7152, 0.0722), linear)


def contrast(a, b):
    """Return the contrast ratio of the Web Content Accessibility Guidelines, which demand at least 4.5."""
    low, high = sorted(map(luminance, (a, b)))
    return (high + 0.05) / (low + 0.05)


def test_texts_can_be_read():
    for name in ["O", *(f"label{k}" for k in range(300))]:
        light, strong = colour_of(name)
        assert contrast(rgb(light), rgb(strong)) >= 4.5, name
    for share in np.linspace(0, 1, 41):
        matrix = [[share, 1 - share], [1 - share, share]]
        for row in confusion(["a", "b"], matrix)["rows"]:
            for cell in row["cells"]:
                assert contrast(rgb(cell["colour"]), rgb(cell["ink"])) >= 4.5, share
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)


def test_pictures_have_texts_for_screen_readers():
    for drawing in (
        draw_arcs(["a", "b"], [0, 1]),
        draw_tree(("S", "a")),
        draw_curve([(1, 1)], "F1 by passes", "passes"),
    ):
        root = ET.fromstring(str(drawing))
        assert root.get("role") == "img"
        assert len(root.get("aria-label")) > 6
