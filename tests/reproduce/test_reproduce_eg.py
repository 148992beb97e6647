"""The experiments of the EG papers: what they make of records, and a whole run on made-up images."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from partwise import MaxentClassifier
from partwise.reproduce import Chart, Claim, Curve, Panel, Table, follow, run, smo, tasks
from partwise.reproduce import curves as c
from partwise.reproduce.catalogue import get
from partwise.reproduce.claims import write_claims
from partwise.reproduce.outcome import Shown
from partwise.reproduce.tasks import Task
from partwise.reproduce.training import train, train_sgd


def made(passes, primal, **columns):
    trace = {"passes": passes, "cpu_seconds": [0.1 * p for p in passes], "primal": primal, **columns}
    return {"trace": trace}


def test_numbers_of_records():
    slow = made([0, 1, 2, 4, 8], [9.0, 8.0, 7.0, 6.0, 5.0])
    fast = made([0, 2, 4, 8], [20.0, 8.0, 5.0, 4.0])
    assert c.overtakes(fast, slow) == 4
    assert c.overtakes(slow, fast) is None
    assert c.overtakes(made([0, 8], [1.0, 1.0]), slow) == 0
    assert c.passes_to(slow, 5.0, 0.2) == 4
    assert c.passes_to(slow, 5.0, 0.2, "cpu_seconds") == pytest.approx(0.4)
    assert c.passes_to(slow, 4.0, 0.2) is None
    assert c.seconds_per_pass(slow) == pytest.approx(0.1)
    pair = [made([0, 1], [9.0, 6.0], dual=[1.0, 4.0]), made([0, 1], [9.0, 7.0], dual=[1.0, 5.0])]
    assert c.optimum(pair) == 5.5
    assert c.straightness([0, 1, 2, 3], [math.exp(-k) for k in range(4)]) == pytest.approx(1.0)
    assert c.straightness([0, 1, 2, 3], [1.0, 0.1, 0.1, 1.0]) < 0.5
    assert math.isnan(c.straightness([0, 1], [1.0, 0.5]))
    assert c.scores(made([0, 1], [1, 1], score=[0.5, math.nan])) == [50.0]
    low, high = c.near_best([Curve("a", [0, 1], [7.0, math.nan]), Curve("b", [0], [12.0])], 2.0)
    assert low < 7.0 < high == 9.0


def duals(values, seconds):
    passes = [1.0, 2.0, 5.0, 10.0]
    return {"trace": {"passes": passes, "dual": values, "cpu_seconds": seconds}}


def test_findings_of_smo():
    plateau = {
        "smo": duals([50.0, 60.0, 80.0, 80.0], [1.0, 2.0, 3.0, 4.0]),
        "eg": duals([1.0, 2.0, 70.0, 100.0], [1.0, 2.0, 3.0, 4.0]),
        "smo-eg, 2 passes": duals([50.0, 60.0, 99.5, 101.0], [1.0, 2.0, 3.0, 4.0]),
    }
    assert [claim.holds for claim in smo.findings(plateau, 2.0)] == [True, True, True, True]
    none = plateau | {"smo": duals([50.0, 60.0, 90.0, 101.0], [1.0, 2.0, 3.0, 4.0])}
    found = smo.findings(none, 2.0)
    assert [claim.holds for claim in found] == [True, False, False, False]
    assert all(claim.why for claim in found[1:])
    slow = plateau | {"smo": duals([0.5, 1.0, 80.0, 80.0], [1.0, 2.0, 3.0, 4.0])}
    assert smo.findings(slow, 2.0)[0].holds is False
    assert smo.after(plateau["smo"], 11) is None
    assert smo.first_at(plateau["eg"], 70.0) == (5.0, 3.0)


@pytest.fixture
def digits(monkeypatch):
    """Made-up images in place of MNIST."""
    rng = np.random.default_rng(1)
    centres = rng.uniform(size=(4, 12))
    y = rng.integers(4, size=160)
    X = np.clip(centres[y] + 0.3 * rng.normal(size=(160, 12)), 0, 1)
    small = Task(MaxentClassifier(fit_intercept=False), X[:100], y[:100], X[100:], y[100:])
    monkeypatch.setitem(tasks.TASKS, "mnist", lambda data, limit: small)
    tasks.task.cache_clear()
    yield small
    tasks.task.cache_clear()


@pytest.mark.parametrize("name", ["eg-bounds", "eg-mnist", "eg-mnist-path"])
def test_whole_runs(name, digits, tmp_path):
    experiment = get(name)
    found = run([replace(experiment, data=())], tmp_path, quick=True, say=lambda line: None)[name]
    assert found.claims
    assert found.tables
    assert found.charts
    for chart in found.charts:
        assert (tmp_path / name / f"{chart.name}.png").stat().st_size > 1000
        assert all(panel.curves for panel in chart.panels)
        assert any(each.points(False, False) for panel in chart.panels for each in panel.curves)


def test_sgd_takes_the_first_step_with_the_best_score(digits):
    found = train_sgd(None, of="mnist", l2=1.0, max_passes=3, first_steps=[1e-6, 0.1])
    assert found["eta0"] == 0.1
    assert [eta0 for eta0, _ in found["tried"]] == [1e-6, 0.1]
    assert found["trace"]["passes"][-1] == pytest.approx(3.0)  # without those of the choice
    alone = train_sgd(None, of="mnist", l2=1.0, max_passes=3, first_steps=[1e-6], score=False)
    assert alone["eta0"] == 1e-6
    assert alone["tried"] == []
    assert "score" not in alone["trace"]


def test_sessions_are_read_once(digits, monkeypatch):
    first = digits.session("log", 2.0)
    again = digits.session("log", 0.5)
    assert again.problem.l2 == pytest.approx(0.5)
    assert again.preview == first.preview
    fresh = Task(digits.estimator, digits.X, digits.y, digits.X_held, digits.y_held).session("log", 0.5)
    weights = np.random.default_rng(0).normal(size=first.problem.n_weights)
    assert again.problem.value(weights) == fresh.problem.value(weights)
    assert digits.session("hinge", 0.5).problem.loss.name == "hinge"
    with_l1 = digits.session("log", 1.0, penalty="elasticnet", l1_ratio=0.5)
    assert digits.session("log", 2.0, penalty="elasticnet", l1_ratio=0.5).problem.l1 == 2 * with_l1.problem.l1 > 0


def test_scorer_is_the_score(digits):
    session = digits.session("log", 1.0)
    weights = np.random.default_rng(0).normal(size=session.problem.n_weights)
    score = digits.scorer(session)
    assert score(weights) == session.preview(weights).score(digits.X_held, digits.y_held)
    assert score(-weights) == session.preview(-weights).score(digits.X_held, digits.y_held)


def test_scores_are_fewer_than_looks(digits):
    found = train(None, of="mnist", solver="eg", l2=1.0, max_passes=20, score=True, score_share=1.0)["trace"]
    scored = [k for k, score in enumerate(found["score"]) if not math.isnan(score)]
    assert scored[:4] == [0, 1, 2, 4]
    assert scored[-1] == len(found["score"]) - 1


def test_a_solver_without_certificates_makes_one_step(digits):
    problem = digits.session("hinge", 1.0).problem
    found = follow(problem, "perceptron", max_passes=5, certified=True)
    assert found["status"] == "no certificate"
    assert found["trace"]["passes"] == [0.0, 1.0]


def test_two_files_of_one_name_are_refused(tmp_path):
    def show(records):
        panel = Panel("", "x", "y", [Curve("a", [0, 1], [0, 1])])
        return [Table("same", "", ["x"], [[1]]), Chart("same", "", [panel])]

    experiment = replace(get("eg-mnist-path"), data=(), cells=lambda quick: [], show=show)
    with pytest.raises(ValueError, match="two tables or charts have the name 'same'"):
        run([experiment], tmp_path, say=lambda line: None)


def test_claims_as_markdown(tmp_path):
    page, experiment = tmp_path / "page.md", get("smo")
    page.write_text("# Title\n\n<!-- claims smo -->\nstale\n<!-- end -->\n\nThe end.\n")
    shown = {"smo": Shown(claims=[Claim("a | b", True, r"1 \ 2"), Claim("no", False, "3 > 2", "it is so")])}
    for _ in range(2):  # the second time replaces the first
        write_claims(page, [experiment], shown)
        text = page.read_text()
        assert "| a \\| b | holds | 1 \\ 2 |" in text
        assert "| no | does not hold | 3 > 2. it is so |" in text
        assert "stale" not in text
        assert text.startswith("# Title\n")
        assert text.endswith("\nThe end.\n")
        assert text.count("<!-- claims smo -->") == 1
    fresh = tmp_path / "new.md"
    write_claims(fresh, [experiment], shown)
    assert fresh.read_text().startswith("<!-- claims smo -->\n`smo`")
