"""What is on the way of a sentence through the commands, and what is not."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import partwise.cli
from partwise import DependencyParser, MaxentClassifier, SequenceTagger
from partwise.cli.tasks import TASKS, task_of
from partwise.io import make_sentence
from partwise.model_files import KINDS

QUICK = {"solver": "lbfgs", "max_passes": 3, "tol": 1.0}


def small_models():
    bank = [make_sentence([("a", "a", tag), ("b", "b", "V")], [2, 0], ["x", "y"]) for tag in "DN"]
    yield "dep", DependencyParser(**QUICK).fit(bank)
    yield "maxent", MaxentClassifier(**QUICK).fit(np.eye(3), [1, 2, 2])
    yield "tag", SequenceTagger(template="pos", **QUICK).fit([["a", "b"]], [["X", "Y"]])


LOOK = """
import sys
from partwise.cli.loading import load_model
print(load_model(sys.argv[1], 1, None)[1].name)
print(*sorted(name for name in sys.modules if name.startswith(("partwise.estimators.", "partwise.cli.tasks."))))
"""


def test_a_model_brings_its_own_task_and_estimator_alone(tmp_path):
    homes = {name: KINDS[entry.kind][0] for name, entry in TASKS.items()}
    for name, model in small_models():
        model.save(tmp_path / "m.pw")
        done = subprocess.run(
            [sys.executable, "-c", LOOK, tmp_path / "m.pw"], check=True, stdout=subprocess.PIPE, text=True
        )
        found, modules = done.stdout.splitlines()
        assert found == name
        assert set(homes.values()) & set(modules.split()) == {homes[name]}
        assert {entry.module for entry in TASKS.values()} & set(modules.split()) == {TASKS[name].module}


def test_tasks_of_derived_classes_and_of_others():
    class Own(SequenceTagger):
        pass

    assert task_of(Own()).name == "tag"
    with pytest.raises(ValueError, match="no command is made for a int"):
        task_of(1)


def test_the_kind_of_each_task_is_its_estimators():
    for name, model in small_models():
        assert type(model) is task_of(model).estimator
        assert KINDS[TASKS[name].kind] == (type(model).__module__, type(model).__qualname__)


def test_commands_use_the_public_side_of_estimators():
    for path in Path(partwise.cli.__file__).parent.rglob("*.py"):
        assert "._model" not in path.read_text(), path


def test_what_a_tagger_says_of_itself():
    X, y = [["a", "b", "a"]], [["X", "Y", "X"]]
    tagger = SequenceTagger(template="pos", **QUICK).fit(X, y)
    assert tagger.template_.columns == [0]
    names, classes = tagger.attributes_, tagger.classes_.tolist()
    arrays = zip(*(part.tolist() for part in tagger.state_weights_), strict=True)
    assert {(names[a], classes[b]): w for a, b, w in arrays} == tagger.state_features_
    assert SequenceTagger(**QUICK).fit([[["a"], ["b"]]], [["X", "Y"]]).template_ is None
