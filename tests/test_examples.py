"""The programs in examples/ run, do what they say, and agree with the pages that quote them."""

from __future__ import annotations

import importlib.util
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from partwise.report import Drawing

ROOT = Path(__file__).parents[1]
#: The gallery's programs; word_alignment belongs to a how-to page.
GALLERY = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem != "word_alignment")


def program(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_gallery_has_one_of_each():
    assert {"tagging", "parsing", "constituents", "graphs", "paths", "kernels", "solvers"} <= set(GALLERY)


@pytest.mark.parametrize("name", GALLERY)
def test_examples_run_and_end_with_a_picture(name, monkeypatch, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.setattr(pyplot, "show", lambda: None)
    module = program(name)
    title, line = module.__doc__.strip().splitlines()[:2]
    assert line == "=" * len(title)
    assert capsys.readouterr().out
    if hasattr(module, "drawing"):
        assert isinstance(module.drawing, Drawing)
    else:
        assert module.figure.axes
        pyplot.close(module.figure)
    results = [value for value in vars(module).values() if hasattr(value, "result_")]
    results = [each.result_ for each in results] or module.results
    assert all(0 <= result.gap < 0.1 * result.primal for result in results)


@pytest.fixture(scope="module")
def alignment():
    return program("word_alignment")


def test_alignments_are_trained_to_a_certificate(alignment, capsys):
    found = alignment.main(n_train=60, n_test=60, tol=1e-2)
    for solver in ("bcfw", "dcd"):
        result, right = found[solver]
        assert result.status == "converged"
        assert result.solver == solver
        assert 0 <= result.gap <= 1e-2 * result.primal
        assert right > found["baseline"] + 0.05
    assert 0 < found["overhead"] < 1e-2
    said = capsys.readouterr().out
    assert said.count("gap ") == 2
    assert "us around it" in said


def test_the_maximum_is_that_of_all_alignments(alignment, rng):
    for n, m in [(1, 1), (1, 3), (2, 2), (3, 1), (3, 3), (2, 0)]:
        structure = alignment.Alignment([(n, m)])
        for _ in range(5):
            scores = rng.normal(size=n * (m + 1))
            values = [
                sum(scores[s * (m + 1) + t] for s, t in enumerate(partners))
                for partners in product(range(m + 1), repeat=n)
                if len({t for t in partners if t < m}) == sum(t < m for t in partners)
            ]
            value, slots, counts = structure.maximize(0, scores)
            assert value == pytest.approx(max(values), abs=1e-12)
            assert scores[slots] @ counts == pytest.approx(value)
            assert sorted(slots // (m + 1)) == list(range(n))


def test_solvers_that_need_more_than_a_maximum(alignment):
    X, y = alignment.make_sentences(10)
    for loss, solver in (("log", "lbfgs"), ("log", "auto"), ("hinge", "excessive-gap")):
        with pytest.raises(ValueError, match="expectation oracle"):
            alignment.WordAligner(loss=loss, solver=solver).fit(X, y)
    with pytest.raises(ValueError, match=r"example 0: .* is no alignment"):
        alignment.WordAligner(loss="hinge").fit(X, [[0] * len(partners) for partners in y])
    aligner = alignment.WordAligner(loss="hinge").fit(X, y)
    assert all(len(partners) == len(source) for partners, (source, _) in zip(aligner.predict(X), X, strict=True))
    np.testing.assert_array_less(0.5, aligner.score(X, y))


def test_the_page_quotes_the_program():
    source = (ROOT / "examples" / "word_alignment.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "how_to_add_a_structure.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^```py\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(quoted) == 2
    assert all(block in source for block in quoted)
