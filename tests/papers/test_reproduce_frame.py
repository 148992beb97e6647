"""The runner of ``python -m papers``: cells run once, records are kept, all results are written."""

from __future__ import annotations

import csv
import inspect
import io
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

from papers import EXPERIMENTS, PAPERS, Cell, Chart, Claim, Curve, Experiment, Panel, Table, find, follow, run
from papers.__main__ import command
from papers.catalogue import get
from papers.experiment import ORDERS, in_orders, orders_of
from papers.histories import first
from papers.tasks import Task
from partwise import MaxentClassifier
from partwise.datasets import DATA_SETS

calls: list[float] = []


def work(data, factor):
    calls.append(factor)
    return {"values": np.arange(1.0, 4.0) * factor}


def experiment(factors=(1.0, 2.0), **changes):
    def show(records):
        curves = [Curve(name, [1, 2, 3], record["values"]) for name, record in records.items()]
        return [
            Table("numbers", "Some <b> numbers", ["x", "paper"], [[1.5, None], [math.nan, "two, or so"]]),
            Chart("curves", "Curves", [Panel("one", "x", "y", curves)], paper="curves that rise"),
            Claim("values grow", True, "1 < 2"),
            Claim("values fall", False, "1 < 2", "they grow"),
        ]

    given = {
        "name": "made-up", "title": "Made up", "paper": "huang2010", "source": "Table 9", "setup": "Nothing.",
        "cells": lambda quick: [Cell(f"factor {f:g}", work, {"factor": f * (0.5 if quick else 1)}) for f in factors],
        "show": show,
    }  # fmt: skip
    return Experiment(**{**given, **changes})


def test_writes_tables_charts_and_a_page(tmp_path):
    said: list[str] = []
    run([experiment()], tmp_path, say=said.append)
    assert list(csv.reader(io.StringIO((tmp_path / "made-up/numbers.csv").read_text()))) == [
        ["x", "paper"], ["1.5", ""], ["", "two, or so"],
    ]  # fmt: skip
    assert (tmp_path / "made-up/curves.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "made-up/curves.csv").read_text().splitlines()[1:3] == [
        "one,factor 1,1,1.0",
        "one,factor 1,2,2.0",
    ]
    page = (tmp_path / "index.html").read_text()
    assert "Some &lt;b&gt; numbers" in page
    assert "data:image/png;base64," in page
    assert "curves that rise" in page
    assert "does not hold" in page
    assert "they grow" in page
    assert PAPERS["huang2010"].split(":")[0] in page
    assert any("[2/2] made-up: factor 2" in line for line in said)


def test_cells_run_once(tmp_path):
    calls.clear()
    run([experiment()], tmp_path, say=lambda line: None)
    run([experiment(factors=(1.0, 2.0, 3.0))], tmp_path, say=lambda line: None)
    assert calls == [1.0, 2.0, 3.0]
    run([experiment()], tmp_path, quick=True, say=lambda line: None)
    assert calls[3:] == [0.5, 1.0]  # other options: the records of the full form do not apply
    calls.clear()
    run([experiment()], tmp_path, quick=True, again=True, say=lambda line: None)
    assert calls == [0.5, 1.0]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"key": 1}', '{"key": "KEY", "record": 3}'])
def test_damaged_records_are_made_again(tmp_path, damage):
    run([experiment(factors=(1.0,))], tmp_path, say=lambda line: None)
    file = tmp_path / "cells/made-up/factor-1.json"
    file.write_text(damage.replace("KEY", json.loads(file.read_text())["key"]))
    calls.clear()
    run([experiment(factors=(1.0,))], tmp_path, say=lambda line: None)
    assert calls == [1.0]


def test_an_interrupted_experiment_resumes(tmp_path):
    def stops(data, factor):
        raise KeyboardInterrupt

    cells = [Cell("good", work, {"factor": 1.0}), Cell("bad", stops, {"factor": 1.0})]
    with pytest.raises(KeyboardInterrupt):
        run([experiment(cells=lambda quick: cells)], tmp_path, say=lambda line: None)
    calls.clear()
    run(
        [experiment(cells=lambda quick: [cells[0], Cell("bad", work, {"factor": 2.0})])],
        tmp_path,
        say=lambda line: None,
    )
    assert calls == [2.0]


def test_records_of_earlier_cells(tmp_path):
    def later(data, scale, earlier):
        return {"values": [scale * sum(earlier["first"]["values"])] * 3}

    def cells(factor):
        first = Cell("first", work, {"factor": factor})
        return [first, Cell("other", work, {"factor": 9.0}), Cell("last", later, {"scale": 2.0}, after=(first,))]

    calls.clear()
    for factor in (1.0, 1.0, 2.0):  # the last cell runs again only when the options of the first one change
        shown = run([experiment(cells=lambda quick, f=factor: cells(f))], tmp_path, say=lambda line: None)
        assert list(shown["made-up"].charts[0].panels[0].curves[2].y) == [12.0 * factor] * 3
    assert calls == [1.0, 9.0, 2.0]


def from_earlier(data, earlier):
    return {"values": [sum(earlier["factor 1"]["values"])] * 3}


def test_cells_in_processes_of_their_own(tmp_path):
    """Cells in several processes make the records of a single process, and wait for the cells that they depend on."""

    def cells(quick):
        first = Cell("factor 1", work, {"factor": 1.0})
        others = (Cell(f"factor {f}", work, {"factor": float(f)}) for f in (2, 3))
        return [first, Cell("last", from_earlier, after=(first,)), *others]

    calls.clear()
    made = experiment(cells=cells)
    assert run([made], tmp_path, say=lambda line: None, jobs=2, records_only=True) == {}
    assert calls == []
    assert not (tmp_path / "index.html").exists()
    alone = run([made], tmp_path / "alone", say=lambda line: None)["made-up"].charts
    assert calls == [1.0, 2.0, 3.0]
    assert run([made], tmp_path, say=lambda line: None)["made-up"].charts == alone
    assert calls == [1.0, 2.0, 3.0]  # no cell runs again


def test_orders_of_a_cell():
    cell = Cell("a", work, {"factor": 1.0, "l2s": [1, 2]})
    found = in_orders(cell, quick=False, l2s=[1])
    assert [each.options.get("random_state", 0) for each in found] == list(ORDERS)
    assert [each.options["l2s"] for each in found] == [[1, 2], [1], [1], [1], [1]]
    assert in_orders(cell, quick=True) == [cell]
    records = {each.name: {"order": k} for k, each in enumerate(found)} | {"b": {"order": 9}}
    assert [record["order"] for record in orders_of(records, "a")] == [0, 1, 2, 3, 4]
    assert orders_of(records, "b") == [{"order": 9}]


def test_two_cells_of_one_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="two cells have the name 'factor-1'"):
        run([experiment(factors=(1.0, 1.0))], tmp_path, say=lambda line: None)


def test_missing_data_in_one_sentence(tmp_path):
    answer = CliRunner().invoke(command, ["eg-mnist-path", "--data", str(tmp_path), "-o", str(tmp_path / "o")])
    assert answer.exit_code == 2
    assert "train-images-idx3-ubyte" in answer.output
    assert "partwise data fetch mnist" in answer.output
    assert str(tmp_path) in answer.output
    assert not (tmp_path / "o").exists()


def test_unknown_name():
    answer = CliRunner().invoke(command, ["eg-mnits"])
    assert answer.exit_code == 2
    assert "no experiment 'eg-mnits'" in answer.output
    assert "eg-mnist-path" in answer.output


def test_list():
    answer = CliRunner().invoke(command, ["--list"])
    assert answer.exit_code == 0
    assert all(name in answer.output for name in EXPERIMENTS)


def test_find_by_paper():
    assert [each.name for each in find(["all"])] == list(EXPERIMENTS)
    assert {each.paper for each in find(["collins2008"])} == {"collins2008"}


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("quick", [True, False])
def test_declarations(name, quick):
    found = get(name)
    assert found.name == name
    assert found.paper in PAPERS
    assert set(found.data) <= set(DATA_SETS)
    cells = list(found.cells(quick))
    assert cells
    assert len({cell.name for cell in cells}) == len(cells)
    for k, cell in enumerate(cells):
        earlier = {"earlier": {}} if cell.after else {}
        inspect.signature(cell.function).bind(None, **cell.options, **earlier)
        assert all(before in cells[:k] for before in cell.after)
        cell.key("1")  # fails unless options are plain values
        assert cell.seconds > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_form(name, data_dir, tmp_path):
    shown = run(find([name]), tmp_path, str(data_dir), quick=True, say=lambda line: None)[name]
    assert shown.claims
    assert shown.tables or shown.charts


@pytest.fixture
def small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = (X[:, 0] + 0.3 * rng.normal(size=80) > 0).astype(int)
    return Task(MaxentClassifier(fit_intercept=False), X[:60], y[:60], X[60:], y[60:])


def test_follow(small):
    session = small.session("log", 0.5)
    found = follow(session.problem, "eg", tol=1e-6, score=small.scorer(session))
    trace = found["trace"]
    assert found["status"] == "converged"
    assert trace["passes"][0] == 0.0
    assert trace["gap"][-1] <= 1e-6 * trace["primal"][-1] < 1e-6 * trace["primal"][0]
    assert all(np.diff(trace["cpu_seconds"]) >= 0)
    assert all(np.diff(trace["passes"]) > 0)
    whole = MaxentClassifier(fit_intercept=False, C=2.0, tol=1e-9).fit(small.X, small.y)
    assert trace["primal"][-1] == pytest.approx(whole.result_.primal, rel=1e-6)
    assert trace["score"][-1] == whole.score(small.X_held, small.y_held)
    place = next(k for k, p in enumerate(trace["passes"]) if p >= 1.0)
    assert first(trace, "passes", least=1.0, give="primal") == trace["primal"][place]
    assert first(trace, "passes", least=1e9, give="primal") is None
    assert first(trace, "gap", most=trace["gap"][-1], give="passes") == trace["passes"][-1]
    assert first(trace, "gap", most=-1.0, give="passes") is None


def test_follow_ends_at_its_limits(small):
    problem = small.session("log", 0.5).problem
    assert follow(problem, "lbfgs", max_passes=3)["status"] == "max_passes"
    assert follow(problem, "eg", max_seconds=1e-9)["status"] == "max_seconds"
    hinge = small.session("hinge", 0.5).problem
    assert follow(hinge, "perceptron", max_passes=3)["status"] == "no certificate"
    with pytest.raises(ValueError, match="would never end"):
        follow(problem, "eg")


def test_prepare_is_what_fit_solves(small):
    session = small.session("log", 0.5)
    other = MaxentClassifier(fit_intercept=False, C=2.0, solver="lbfgs", tol=1e-10).fit(small.X, small.y)
    assert session.problem.value(other.result_.weights) == pytest.approx(other.result_.primal, rel=1e-12)
    preview = session.preview(other.result_.weights)
    assert (preview.predict(small.X_held) == other.predict(small.X_held)).all()
    assert not hasattr(small.estimator, "result_")
