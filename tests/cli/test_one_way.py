"""Commands load only the task and estimator that they need, use the public API, and read each sentence once."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import partwise.cli
from partwise import ConstituencyParser, DependencyParser, MaxentClassifier, SequenceTagger
from partwise.callbacks import TrainingCallback
from partwise.cli.tasks import TASKS, task_of
from partwise.io import make_sentence, read_columns
from partwise.metrics import chunk_scores
from partwise.model_files import KINDS
from partwise.models.sequences.template_reader import TemplateReader

pytestmark = pytest.mark.filterwarnings("ignore::partwise.ConvergenceWarning")

QUICK = {"solver": "lbfgs", "max_passes": 3, "tol": 1.0}


def small_models():
    bank = [make_sentence([("a", "a", tag), ("b", "b", "V")], [2, 0], ["x", "y"]) for tag in "DN"]
    yield "dep", DependencyParser(**QUICK).fit(bank)
    yield "cfg", ConstituencyParser(**QUICK).fit([("S", ("A", "a"), ("B", "b")), ("S", ("B", "a"), ("A", "b"))])
    yield "maxent", MaxentClassifier(**QUICK).fit(np.eye(3), [1, 2, 2])
    yield "tag", SequenceTagger(template="pos", **QUICK).fit([["a", "b"]], [["X", "Y"]])


LOOK = """
import sys
from partwise.cli.models import load_model
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
    with pytest.raises(ValueError, match="there is no command for models of type int"):
        task_of(1)


def test_the_kind_of_each_task_is_its_estimators():
    for name, model in small_models():
        assert type(model) is task_of(model).estimator
        assert KINDS[TASKS[name].kind] == (type(model).__module__, type(model).__qualname__)


def test_commands_use_the_public_side_of_estimators():
    for path in Path(partwise.cli.__file__).parent.rglob("*.py"):
        assert "._model" not in path.read_text(), path


def test_description_of_a_tagger():
    X, y = [["a", "b", "a"]], [["X", "Y", "X"]]
    tagger = SequenceTagger(template="pos", **QUICK).fit(X, y)
    assert tagger.template_.columns == [0]
    names, classes = tagger.attributes_, tagger.classes_.tolist()
    arrays = zip(*(part.tolist() for part in tagger.state_weights_), strict=True)
    assert {(names[a], classes[b]): w for a, b, w in arrays} == tagger.state_features_
    assert SequenceTagger(**QUICK).fit([[["a"], ["b"]]], [["X", "Y"]]).template_ is None


def test_training_sentences_are_read_once_though_they_are_scored(cli_json, files, tmp_path, monkeypatch):
    path, model = files / "treebank" / "train.txt", tmp_path / "m.pw"
    monkeypatch.setattr("partwise.cli.train.SCORED", 50)
    flags = ("--solver", "lbfgs", "--max-passes", "8", "--features", "chunk", "-o", model)
    seen = []
    once = TemplateReader.read

    def counted(self, sequences, *args, **options):
        seen.append(len(sequences.table))
        return once(self, sequences, *args, **options)

    monkeypatch.setattr(TemplateReader, "read", counted)
    said = cli_json("train", "tag", path, *flags)
    table = read_columns(path)
    assert seen == [len(table)]
    assert said["scored_on"] == "50 sentences of the training data"
    some = table.take(np.array([k * len(table) // 50 for k in range(50)]))
    scores = chunk_scores(some.column(2), partwise.load(model).predict(some.without(2)))
    assert (said["f1"], said["accuracy"], said["unknown_rate"]) == (scores.f1, scores.accuracy, 0.0)


class Watch(TrainingCallback):
    """Callback that keeps the answers for some training examples."""

    def __init__(self, which):
        self.which, self.found = which, None

    def end(self, session, result):
        if result is not None and session.answers is not None:
            self.found = session.answers(result.weights, np.array(self.which))


@pytest.mark.parametrize(
    ("options", "there"),
    [
        ({}, True),
        ({"transition_features": "all"}, True),
        ({"loss": "hinge", "solver": "bcfw"}, True),
        ({"features": "all"}, True),
        ({"features": "all", "min_count": 2}, False),  # rare attributes have no weight
        ({"model": "maxent"}, False),  # training looks at single positions
    ],
)
def test_answers_for_training_examples(options, there):
    rng = np.random.default_rng(0)
    X = [[list(rng.choice(list("abcdefgh"), 2)) for _ in range(n)] for n in (3, 1, 4, 2, 5, 3, 2)]
    X[0][0] = ["once"]
    y = [[str(rng.choice(["x", "y", "z"])) for _ in each] for each in X]
    watch = Watch([5, 0, 5, 2])
    tagger = SequenceTagger(**{"solver": "auto", "max_passes": 5, "tol": 1e-2, "callbacks": watch, **options})
    tagger.fit(X, y)
    best = tagger.predict([X[i] for i in watch.which])
    assert (watch.found == best) if there else (watch.found is None)
    watch.found = None
    tagger.fit(X, y, sample_weight=[1, 1, 0, 1, 1, 1, 1])  # example 2 is not in the batch
    assert watch.found is None
