"""User-defined tasks in files of their own become commands."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from partwise.cli import main
from partwise.cli.tasks import TASKS, Task, register_task
from partwise.cli.tasks.tag import TagTask
from partwise.model_files.files import _GIVEN, KINDS

PLUGIN = '''
from pathlib import Path

import numpy as np

from partwise import MaxentClassifier, model_files
from partwise.cli.tasks import Data, Evaluation, Task, register_task


class Points(MaxentClassifier):
    """Points of the plane."""


class PointsTask(Task):
    """Label points of the plane: lines `label x y`."""

    name = "points"
    unit = "points"
    estimator = Points

    def read(self, path, settings, labelled):
        rows = [line.split() for line in Path(path).read_text(encoding="utf-8").splitlines()]
        y = [row[0] for row in rows]
        return Data(np.array([row[1:] for row in rows], dtype=float), y, len(y), len(y))

    def make(self, settings, data, training):
        return Points(**training)

    def predict(self, model, data, request):
        return (f"{label}\\n" for label in model.predict(data.X))

    def evaluate(self, model, data, guess=None):
        accuracy = model.score(data.X, data.y)
        return Evaluation({"accuracy": accuracy}, f"accuracy {accuracy:.1%}")

    def main_score(self, evaluation):
        return "accuracy", evaluation.scores["accuracy"]

    def baseline(self, train, data, score):
        return "always the first label", data.y.count(train.y[0]) / len(data.y)


model_files.register("points", Points)
register_task(PointsTask, "points")
'''


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False, standalone_mode=False).output


@pytest.fixture
def plugin(tmp_path):
    path = tmp_path / "points_task.py"
    path.write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "data.txt").write_text("a 0 1\na 0.2 2\nb 3 0.1\nb 2 0\n", encoding="utf-8")
    yield path
    for table, name in ((TASKS, "points"), (KINDS, "points"), (_GIVEN, "points")):
        table.pop(name, None)


def test_the_command_line_has_the_task_of_a_file(plugin, tmp_path):
    data, model = tmp_path / "data.txt", tmp_path / "model.pw"
    assert "Label points of the plane" in run("--plugin", plugin, "train", "--help")
    told = run("--plugin", plugin, "train", "points", data, "--dev", data, "-o", model)
    assert "always the first label" in told
    assert run("--plugin", plugin, "predict", model, data).split() == ["a", "a", "b", "b"]
    scores = json.loads(run("--plugin", plugin, "evaluate", model, data, "--json"))
    assert (scores["task"], scores["accuracy"]) == ("points", 1.0)
    assert "task points" in run("--plugin", plugin, "inspect", model)


def test_invalid_tasks_are_refused():
    class Other(TagTask):
        name = "tag"

    with pytest.raises(ValueError, match=r"there is another task 'tag': partwise\.cli\.tasks\.tag\.TagTask"):
        register_task(Other, "tagger")
    Other.name = "other"
    with pytest.raises(ValueError, match="there are no model files of kind 'nothing'"):
        register_task(Other, "nothing")
    with pytest.raises(ValueError, match="model files of kind 'tagger' belong to task 'tag': derive an estimator"):
        register_task(Other, "tagger")  # otherwise `predict` would use the new task for every tagger
    assert "other" not in TASKS
    for cls, message in (
        (3, "only subclasses of partwise.cli.tasks.Task can be registered, got 3"),
        (type("Bare", (Task,), {}), "task Bare has no .*estimator, evaluate, .*name, .*read"),
    ):
        with pytest.raises(TypeError, match=message):
            register_task(cls, "tagger")
