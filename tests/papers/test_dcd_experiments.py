"""The comparison of Chang and Yih 2013: runs on random sentences, and claims from made-up records."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from papers import Chart, Claim, Table, run
from papers import tasks as tasks_module
from papers.dcd_comparison import (
    CS,
    DCD,
    FW,
    METHODS,
    SGD,
    SVM,
    Setting,
    by_time,
    cells,
    experiment,
    largest_fall,
    objective_at,
    reached,
    show,
)
from papers.dcd_runs import choose, compete
from papers.tasks import TASKS, Task
from partwise import SequenceTagger
from partwise.metrics import chunk_f1

SCORES = {DCD: 80.0, "Perceptron": 79.0, "MIRA": 79.0, SGD: 79.0}
SETTING = Setting("made-up", "F1", 6, 2, 1.0, 30, {"theirs": SCORES}, most=40)


def made_up(data, limit):
    rng = np.random.default_rng(0)

    def sentences(n):
        X = [[[f"w={w}", f"odd={w % 2}"] for w in rng.integers(9, size=rng.integers(2, 6))] for _ in range(n)]
        y = [["B-x" if row[1] == "odd=1" or rng.random() < 0.1 else "O" for row in each] for each in X]
        return X, y

    (X, y), (X_test, y_test), (X_dev, y_dev) = sentences(60), sentences(50), sentences(45)
    # unlike y_test, so that a mix-up would show
    y_dev = [["O" if label == "B-x" else "B-x" for label in each] for each in y_dev]
    return Task(SequenceTagger(), X, y, X_test, y_test, chunk_f1, X_dev, y_dev).first(limit)


@pytest.fixture
def task(monkeypatch):
    monkeypatch.setitem(TASKS, "made-up", made_up)
    tasks_module.task.cache_clear()
    yield tasks_module.task("made-up", None, 40)
    tasks_module.task.cache_clear()


@pytest.fixture
def records():
    """Make records as in the paper: objectives fall as 1 / t, and scores rise, each at its own rate."""
    rates = {DCD: 4.0, "DCD-Light": 2.0, "CPD": 0.2, FW: 2.0, SVM: 1.0}
    best = {DCD: 0.8, "DCD-Light": 0.78, "CPD": 0.75, FW: 0.78, SVM: 0.7, "Perceptron": 0.77, "MIRA": 0.77, SGD: 0.76}
    t = np.linspace(0.0, 10.0, 41)
    found = {}
    for method in METHODS:
        label = method.label
        score = best.get(label, 0.7) * t / (t + 0.1)
        if label == SVM:
            score[9] -= 0.1
        primal = 100.0 / (1.0 + rates.get(label, 1.0) * t)
        trace = {"passes": t, "seconds": t, "cpu_seconds": t, "primal": primal, "dual": 0 * t, "gap": primal}
        trace = {name: column.tolist() for name, column in {**trace, "score": score}.items()}
        found[label] = {"C": 0.1, "limit": 40, "status": "max_passes", "trace": trace}
    rows = [{"C": C, "status": "max_passes", "score": 0.5} for C in CS]
    return found | {f"C of {label}": {"limit": 40, "rows": rows, "C": 0.01} for label in (DCD, FW, SGD)}


def verdicts(shown):
    return {item.text: item.holds for item in shown if isinstance(item, Claim)}


def test_the_comparison_runs(task, tmp_path):
    found = experiment("made-up", "Made up", "wnut17", "Table 9", (), SETTING)
    changed = type(found)(**{**vars(found), "data": ()})
    shown = run([changed], tmp_path, say=lambda line: None)["made-up"]
    assert len(shown.claims) == 10
    assert {table.name for table in shown.tables} == {"table1", "runs", "choice"}
    rows = {row[0]: row for row in next(table for table in shown.tables if table.name == "runs").rows}
    assert set(rows) == {method.label for method in METHODS}
    assert rows[DCD][2] == 6
    assert rows["Perceptron"][1] is None
    time = rows[DCD][3]
    # every run ends with the pass during which the time limit is reached
    assert all(row[3] >= time for row in rows.values())
    assert min(row[4] for row in rows.values()) > 50


def test_choosing_a_penalty(task):
    options = {"of": "made-up", "solver": "dcd", "loss": "squared-hinge", "options": {}, "limit": 40}
    record = choose(None, **options, Cs=[1e-9, 1.0], passes=5)
    assert [row["C"] for row in record["rows"]] == [1e-9, 1.0]
    tagger = SequenceTagger(loss="squared-hinge", C=1.0, tol=1e-5).fit(task.X, task.y)
    exact = chunk_f1(task.y_dev, tagger.predict(task.X_dev))
    assert record["rows"][1]["score"] == pytest.approx(exact, abs=0.05)
    assert exact < 0.5 < chunk_f1(task.y_held, tagger.predict(task.X_held))
    ahead = max(record["rows"], key=lambda row: row["score"])
    assert record["C"] == ahead["C"]
    equal = choose(None, **options, Cs=[1.0, 1.0 + 1e-9], passes=5)
    assert equal["C"] == 1.0


def test_the_same_time(task):
    options = {"of": "made-up", "loss": "squared-hinge", "limit": 40, "share": 0.3}
    earlier = {"C of x": {"C": 0.25}, "x": {"trace": {"cpu_seconds": [0.0, 0.05]}}}
    first = compete(None, **options, solver="dcd", options={}, C="C of x", passes=4, earlier=earlier)
    assert first["C"] == 0.25
    assert first["trace"]["passes"][-1] == 4
    problem = task.session("squared-hinge", 4.0).problem
    assert first["trace"]["primal"][0] == problem.value(np.zeros(problem.n_weights))
    best = SequenceTagger(loss="squared-hinge", C=0.25, tol=1e-6).fit(task.X, task.y).result_.primal
    assert best * 0.5 < first["trace"]["dual"][-1] < best * (1 + 1e-9) < first["trace"]["primal"][-1] < best * 2
    other = compete(None, **options, solver="cpd", options={}, C="C of x", time_of="x", earlier=earlier)
    seconds = other["trace"]["cpu_seconds"]
    assert seconds[-2] < 0.05 <= seconds[-1]


def test_cells():
    found = {cell.name: cell for cell in cells(SETTING, quick=False)}
    assert [cell.name for cell in found["CPD"].after] == [f"C of {DCD}", DCD]
    assert [cell.name for cell in found[SVM].after] == [f"C of {FW}", DCD]
    assert [cell.name for cell in found["MIRA"].after] == [DCD]
    assert found[f"C of {SGD}"].options["Cs"] == list(CS)
    assert {cell.options["loss"] for cell in found.values()} == {"hinge", "squared-hinge"}
    losses = {name: found[name].options["loss"] for name in (DCD, "DCD-Light", "CPD", FW, SVM, SGD)}
    assert [loss == "squared-hinge" for loss in losses.values()] == [True] * 3 + [False] * 3


def test_claims_that_hold(records):
    shown = show(SETTING, records)
    assert set(verdicts(shown).values()) == {True}
    assert len(verdicts(shown)) == 10
    assert all(item.numbers for item in shown if isinstance(item, Claim))
    assert all(len(row) == len(table.headings) for table in shown if isinstance(table, Table) for row in table.rows)
    assert [chart.name for chart in shown if isinstance(chart, Chart)] == ["figure1", "figure2", "figure3"]
    assert set(verdicts(show(Setting(**{**vars(SETTING), "most": None}), records)).values()) == {None}


@pytest.mark.parametrize(
    ("ahead", "behind", "column", "fail"),
    [
        ("CPD", DCD, "primal", {"DCD-SSVM's objective is the lowest of its family on the way"}),
        ("DCD-Light", DCD, "score", {"DCD-SSVM's test F1 is the best of its family on the way"}),
        ("CPD", "DCD-Light", "primal", {"early on DCD-Light is well ahead of CPD"}),
        (SVM, FW, "score", {"FW-Struct beats SVM-Struct in test F1 on the way"}),
        (SVM, DCD, "score", {"DCD-SSVM has SVM-Struct's best test F1 in less time"}),
        (SVM, FW, "score", {"SVM-Struct's test F1 is unstable at first"}),
        (FW, DCD, "primal", set()),
        ("Perceptron", DCD, "score", {"DCD-SSVM beats Perceptron"}),
        ("MIRA", DCD, "score", {"DCD-SSVM beats MIRA"}),
        (SGD, DCD, "score", {"DCD-SSVM beats SGD"}),
    ],
)
def test_claims_that_fail(records, ahead, behind, column, fail):
    changed = copy.deepcopy(records)
    sign = 1.0 if column == "score" else -1.0
    values = changed[behind]["trace"][column]
    changed[ahead]["trace"][column] = [value + sign * 0.01 * k / 40 for k, value in enumerate(values)]
    failed = {text for text, holds in verdicts(show(SETTING, changed)).items() if not holds}
    assert fail <= failed
    assert len(failed) <= 3  # changing one curve may affect other claims about it


def test_a_paper_in_which_another_method_is_better(records):
    setting = Setting(**{**vars(SETTING), "paper": {"theirs": {**SCORES, SGD: 80.1}}})
    assert verdicts(show(setting, records))["SGD beats DCD-SSVM by a little"] is False


def in_orders(records, ends):
    """Copy records to five orders with these final scores, and return the claims by text."""
    for label, scores in ends.items():
        for k, score in enumerate(scores):
            other = copy.deepcopy(records[label])
            other["trace"]["score"][-1] = score
            records[label if k == 0 else f"{label}, order {k}"] = other
    return {item.text: item for item in show(SETTING, records) if isinstance(item, Claim)}


def test_claims_are_about_means(records):
    """Claims compare means over five orders: a single order may differ, and close means give no verdict."""
    ours = [0.80, 0.78, 0.79, 0.77, 0.81]
    ends = {DCD: ours, "Perceptron": [0.82, 0.72, 0.71, 0.73, 0.72], "MIRA": [0.81, 0.77, 0.79, 0.78, 0.79]}
    claims = in_orders(records, ends | {SGD: [0.9, 0.89, 0.91, 0.9, 0.88]})
    verdicts = [claims[f"DCD-SSVM beats {label}"].holds for label in ("Perceptron", "MIRA", SGD)]
    assert verdicts == [True, None, False]
    assert "79.00 ± 0.71 and 78.80 ± 0.66" in claims["DCD-SSVM beats MIRA"].numbers
    del records["Perceptron, order 4"]
    again = {item.text: item.holds for item in show(SETTING, records) if isinstance(item, Claim)}
    assert again["DCD-SSVM beats Perceptron"] is None


def test_final_models_do_not_decide(records):
    """A rival that is ahead in the last model only does not have the better curve."""
    records["CPD"]["trace"]["score"][-1] = 0.99
    records["CPD"]["trace"]["primal"][-1] = 1e-3
    assert set(verdicts(show(SETTING, records)).values()) == {True}


def test_svm_struct_stops_at_its_best_score(records):
    """SVM-Struct's time is counted up to its best score, not to its end; here it reaches that score early."""
    trace = records[SVM]["trace"]
    trace["score"] = [0.75 if t >= 0.5 else 0.0 for t in trace["cpu_seconds"]]
    assert verdicts(show(SETTING, records))["DCD-SSVM has SVM-Struct's best test F1 in less time"] is False


def test_no_claims_about_methods_that_the_paper_did_not_run(records):
    del records[SVM]
    found = verdicts(show(replace(SETTING, without=(SVM,)), records))
    assert not [text for text in found if SVM in text]
    assert [cell.name for cell in cells(replace(SETTING, without=(SVM,)), quick=True) if cell.name == SVM] == []


def test_objectives_between_looks():
    run = {"trace": {"cpu_seconds": [0.0, 1.0, 3.0], "primal": [1000.0, 100.0, 1.0]}}
    found = [objective_at(run, seconds) for seconds in (0.0, 0.5, 1.0, 2.0, 3.0, 9.0)]
    assert found == pytest.approx([1000.0, 100.0 * np.sqrt(10.0), 100.0, 10.0, 1.0, 1.0])


def test_values_by_time():
    run = {"trace": {"cpu_seconds": [0.0, 1.0, 2.0, 4.0], "score": [0.1, 0.5, 0.4, 0.6]}}
    assert by_time(run, "score", -1.0) == by_time(run, "score", 0.5) == 0.1
    assert by_time({"trace": {"cpu_seconds": [1.0], "score": [0.3]}}, "score", 0.5) == 0.3
    assert by_time(run, "score", 1.0) == 0.5
    assert by_time(run, "score", 1.9) == 0.5
    assert by_time(run, "score", 3.0) == 0.6  # the last pass began earlier
    assert by_time(run, "score", 9.0) == 0.6
    assert reached(run, "score", 0.4) == 1.0
    assert reached(run, "score", 0.7) is None
    assert reached(run, "cpu_seconds", 2.0, "score") == 0.4
    assert largest_fall(run, 4.0) == pytest.approx(0.1)
    assert largest_fall(run, 1.5) == 0.0
    assert largest_fall({"trace": {"cpu_seconds": [0.0, 1.0, 2.0], "score": [0.0, 0.1, 0.2]}}, 9.0) == 0.0
