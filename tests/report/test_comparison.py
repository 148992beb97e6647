"""Comparison of runs: the table, the figure, and enough certificates to draw curves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helpers.specimens import SPECIMENS
from partwise import MaxentClassifier, SequenceTagger, compare, solve
from partwise.callbacks import EachPass
from partwise.problem.losses import LOSSES
from partwise.problem.result import Result
from partwise.solvers import available_solvers, suitable_solvers

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def problem():
    return SPECIMENS["Chain"].problem(LOSSES["log"])


def run_of(solver="a", passes=(1.0, 2.0), primal=(3.0, 2.0), dual=(0.5, 1.0), status="converged", rounding=0.0):
    history = {"passes": passes, "seconds": np.multiply(passes, 0.5), "primal": primal, "dual": dual}
    history["gap"] = np.subtract(primal, dual)
    return Result(
        weights=np.zeros(2),
        primal=primal[-1],
        dual=dual[-1],
        gap=primal[-1] - dual[-1],
        passes=passes[-1],
        seconds=passes[-1] * 0.5,
        status=status,
        solver=solver,
        l2=1.0,
        history={name: np.array(values, dtype=float) for name, values in history.items()},
        rounding=rounding,
    )


def test_numbers_of_a_comparison():
    found = compare({"one": run_of(), "two": run_of(primal=(4.0, 1.5), dual=(-3.0, 1.2))})
    assert (found.primal, found.dual) == (1.5, 1.2)
    np.testing.assert_allclose(found.above_best("one"), [1.8 / 1.5, 0.8 / 1.5])
    np.testing.assert_allclose(found.relative_gaps("two"), [7 / 4, 0.2])
    assert found.first("one", 0.5) == (2.0, 1.0)
    assert found.first("one", 0.4) is None
    assert found.first("one", 1.0) == (1.0, 0.5)


def test_the_table_has_the_best_run_first_and_what_is_known():
    lines = str(compare({"one": run_of(), "two": run_of(primal=(4.0, 1.0005), dual=(-3.0, 1.0))})).splitlines()
    assert lines[0].split()[:4] == ["run", "status", "passes", "seconds"]
    assert lines[1].split() == ["two", "converged", "2", "1", "1.0005", "0.0005", "5.0e-04", "1", "1", "1"]
    assert lines[2].split() == ["one", "converged", "2", "1", "2", "1", "5.0e-01", "-", "-", "-"]
    assert lines[3] == "the optimum is between 1 (one) and 1.0005 (two)"
    assert len({len(line) for line in lines[:3]}) == 1


def test_runs_are_named():
    a, b = run_of(), run_of("b")
    assert list(compare([a, b, a]).runs) == ["a 1", "b", "a 2"]
    assert list(compare(a).runs) == ["a"]
    assert list(compare(iter([b])).runs) == ["b"]
    classifier = MaxentClassifier().fit([[0.0], [1.0]], [0, 1])
    assert compare({"mine": classifier}).runs["mine"] is classifier.result_


def test_incomparable_runs_are_refused():
    with pytest.raises(ValueError, match="at least one run"):
        compare([])
    with pytest.raises(TypeError, match="compare: run number 1 is no Result and has none, it is of type int"):
        compare([run_of(), 3])
    with pytest.raises(TypeError, match="run 'x' is no Result"):
        compare({"x": SequenceTagger()})
    other = run_of("b", primal=(9.0, 8.0), dual=(2.0, 3.0))
    with pytest.raises(ValueError, match=r"bound of 'b', 3, is above the value of 'a', 2: .* not runs on the same pro"):
        compare([run_of(), other])
    assert compare([run_of(rounding=0.6), run_of("b", primal=(9.0, 8.0), dual=(2.0, 3.0), rounding=0.6)])


def lines_of(axes):
    """Return the curves by label, without the dots at their ends."""
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_the_figure_has_every_curve_in_four_panels(problem):
    names = ("lbfgs", "eg", "newton")
    runs = {name: solve(problem, name, tol=1e-6) for name in names}
    runs["short"] = solve(problem, "lbfgs", tol=0, max_passes=2)
    found = compare(runs)
    figure = found.plot()
    try:
        panels = figure.axes
        assert [(axes.get_xscale(), axes.get_yscale()) for axes in panels] == [("log", "log")] * 4
        assert [axes.get_xlabel() for axes in panels[2:]] == ["passes", "seconds"]
        for k, axes in enumerate(panels):
            lines = lines_of(axes)
            assert set(lines) == set(runs)
            for name, line in lines.items():
                x = runs[name].history[("passes", "seconds")[k % 2]]
                y = (found.relative_gaps, found.above_best)[k // 2](name)
                shown = (x > 0) & (y > 0) & np.isfinite(y)
                np.testing.assert_array_equal(line.get_xdata(), x[shown])
                np.testing.assert_array_equal(line.get_ydata(), y[shown])
        assert [text.get_text() for text in figure.legends[0].get_texts()] == list(runs)
        ends = [line.get_markerfacecolor() for line in panels[0].get_lines() if line.get_label().startswith("_")]
        assert [face == "white" for face in ends] == [False, False, False, True]
    finally:
        pyplot.close(figure)


def test_curves_go_into_axes_of_the_users_own():
    figure, axes = pyplot.subplots(1, 4)
    try:
        assert compare([run_of()]).plot(axes) is figure
        assert len(lines_of(axes[3])) == 1
        with pytest.raises(ValueError, match="4 are needed, got 3"):
            compare([run_of()]).plot(axes[:3])
    finally:
        pyplot.close(figure)


def test_files_and_notebooks_get_a_picture(tmp_path):
    found = compare([run_of(), run_of("none", dual=(-math.inf, -math.inf), status="no certificate")])
    found.savefig(tmp_path / "runs.svg")
    assert (tmp_path / "runs.svg").read_text().startswith("<?xml")
    assert found._repr_png_().startswith(b"\x89PNG")
    alone = compare([run_of("none", dual=(-math.inf, -math.inf), status="no certificate")])
    assert "no run has a lower bound" in str(alone)
    alone.savefig(tmp_path / "alone.png")


@pytest.mark.filterwarnings("ignore::partwise.FeatureWarning")
@pytest.mark.parametrize("solver", available_solvers())
def test_each_pass_has_a_point_and_changes_nothing(solver):
    problems = (SPECIMENS[kind].problem(loss) for kind in SPECIMENS for loss in LOSSES.values())
    problem = next(each for each in problems if solver in suitable_solvers(each))
    plain = solve(problem, solver, tol=0, max_passes=9)
    often = solve(problem, solver, tol=0, max_passes=9, callback=EachPass())
    np.testing.assert_array_equal(plain.weights, often.weights)
    assert (plain.passes, plain.primal, plain.dual, plain.status) == (
        often.passes, often.primal, often.dual, often.status,
    )  # fmt: skip
    passes = often.history["passes"]
    assert set(plain.history["passes"]) <= set(passes)
    assert (np.diff(passes) > 0).all()
    assert (np.diff(often.history["seconds"]) >= 0).all()
    often = solve(problem, solver, tol=0, max_passes=9, callback=EachPass(1e-9))
    longest_step = np.diff(often.history["passes"], prepend=0.0).max()
    assert np.diff(passes, prepend=0.0).max() <= max(1.0, longest_step) + longest_step


def test_estimators_take_it_and_the_interval():
    X, y = [[["a"], ["b"]], [["b"]], [["c"], ["a"]]], [["A", "B"], ["B"], ["B", "A"]]

    def passes(*callbacks):
        tagger = SequenceTagger(solver="eg", tol=1e-7, callbacks=list(callbacks)).fit(X, y)
        return tagger.result_.history["passes"]

    assert len(passes(EachPass())) > len(passes(EachPass(4.0))) >= len(passes())
    once = EachPass()
    assert len(passes(once)) == len(passes(once))  # a second run starts again
    for bad in (0, -1, float("nan"), "a", None):
        with pytest.raises(ValueError, match="every must be a number of passes above 0"):
            EachPass(bad)
