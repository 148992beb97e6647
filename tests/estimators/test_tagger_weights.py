"""class_weight of taggers, and rules about neighbouring labels given by the name of a scheme."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import partwise
from partwise import SegmentTagger, SequenceTagger
from partwise.datasets import make_treebank
from partwise.metrics import chunk_scores
from partwise.models.base import NotAvailable

BANK = make_treebank(25, seed=6)
X = [[[f"w={word}", f"s={word[-1]}"] for word in words] for words in BANK.words]


def by_hand(y, weights, balanced=False, sample=None):
    sample = np.ones(len(y)) if sample is None else sample
    if balanced:
        counts = {}
        for labels, weight in zip(y, sample, strict=True):
            for label in labels:
                counts[label] = counts.get(label, 0.0) + weight
        total, used = sum(counts.values()), sum(value > 0 for value in counts.values())
        weights = {label: total / (used * value) if value else 1.0 for label, value in counts.items()}
    means = [np.mean([weights.get(label, 1.0) for label in labels]) for labels in y]
    return sample * np.array(means)


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("kind", [SequenceTagger, SegmentTagger])
def test_a_sequence_weighs_the_mean_of_its_labels(kind, loss):
    y, weights = BANK.chunks, {"B-NP": 3.0, "O": 0.5}
    weighed = kind(loss=loss, class_weight=weights, tol=1e-4).fit(X, y)
    other = kind(loss=loss, tol=1e-4).fit(X, y, sample_weight=by_hand(y, weights))
    np.testing.assert_array_equal(weighed.coef_, other.coef_)
    assert weighed.result_.primal == other.result_.primal
    plain = kind(loss=loss, tol=1e-4).fit(X, y)
    assert plain.result_.primal != pytest.approx(weighed.result_.primal, rel=1e-3)


@pytest.mark.parametrize("model", ["crf", "maxent"])
def test_balanced(model):
    sample = np.arange(25) % 3 + 0.0
    weighed = SequenceTagger(model=model, class_weight="balanced").fit(X, BANK.tags, sample_weight=sample)
    weights = by_hand(BANK.tags, None, True, sample)
    other = SequenceTagger(model=model).fit(X, BANK.tags, sample_weight=weights)
    np.testing.assert_allclose(weighed.coef_, other.coef_, rtol=1e-9)


def test_a_rare_label_is_found_more_often():
    rare = min({tag for tags in BANK.tags for tag in tags}, key=lambda tag: sum(tags.count(tag) for tags in BANK.tags))
    plain = SequenceTagger(C=0.01).fit(X, BANK.tags).predict(X)
    heavy = SequenceTagger(C=0.01, class_weight={rare: 1000.0}).fit(X, BANK.tags).predict(X)
    assert sum(tags.count(rare) for tags in heavy) >= sum(tags.count(rare) for tags in plain)


def test_invalid_class_weights(tmp_path):
    for weights, message in (
        ({"O": -1.0}, "class_weight of label 'O'"),
        ("equal", "class_weight"),
        (3, "class_weight must be None"),
    ):
        with pytest.raises(ValueError, match=message):
            SequenceTagger(class_weight=weights).fit(X, BANK.chunks)
    with pytest.raises(ValueError, match="no row with a weight above 0"):
        SequenceTagger(class_weight={"a": 0.0, "b": 0.0}).fit([[["x"], ["y"]]], [["a", "b"]])
    with pytest.raises(ValueError, match="not available with partial_fit"):
        tags = {tag for tags in BANK.tags for tag in tags}
        SequenceTagger(class_weight="balanced").partial_fit(X, BANK.tags, classes=sorted(tags))
    with pytest.raises(NotAvailable, match="class_weight of taggers"):
        partwise.out_of_core.partitions.write(tmp_path / "p", SequenceTagger(class_weight="balanced"), [(X, BANK.tags)])
    with pytest.raises(NotAvailable, match="class_weight of taggers"):
        parts = partwise.out_of_core.partitions.write(tmp_path / "q", SequenceTagger(), [(X, BANK.tags)])
        SequenceTagger(class_weight="balanced").fit(parts)


def test_partial_fit_weighs_too():
    labels = sorted({tag for tags in BANK.tags for tag in tags})
    weights = {labels[0]: 5.0}
    one, two = SequenceTagger(class_weight=weights), SequenceTagger()
    for start in (0, 12):
        part = slice(start, start + 12)
        one.partial_fit(X[part], BANK.tags[part], classes=labels)
        weight = by_hand(BANK.tags[part], weights)
        two.partial_fit(X[part], BANK.tags[part], classes=labels, sample_weight=weight)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_labels_of_weight_0_are_left_out(tmp_path):
    y = [["a", "a"], ["b"], ["a", "b"]]
    tagger = SequenceTagger(class_weight={"b": 0.0}).fit([[["x"], ["y"]], [["z"]], [["x"], ["z"]]], y)
    assert "y" in tagger.attributes_
    only = SequenceTagger(class_weight={"b": 0.0}).fit([[["x"], ["q"]], [["only"]], [["x"], ["z"]]], y)
    assert "only" not in only.attributes_
    only.save(tmp_path / "m.pw")
    assert partwise.load(tmp_path / "m.pw").class_weight == {"b": 0.0}


def test_class_weight_on_the_command_line(tmp_path):
    from click.testing import CliRunner

    from partwise.cli import main

    path = tmp_path / "train.txt"
    path.write_text(BANK.columns(), encoding="utf-8")
    for weight in ("B-NP=3", "balanced"):
        arguments = ["train", "tag", str(path), "-o", str(tmp_path / "m.pw"), "--class-weight", weight]
        answer = CliRunner().invoke(main, arguments)
        assert answer.exit_code == 0, answer.output
        assert partwise.load(tmp_path / "m.pw").class_weight == ({"B-NP": 3.0} if "=" in weight else "balanced")
    answer = CliRunner().invoke(main, [*arguments[:-1], "B-NP"])
    assert answer.exit_code == 2
    assert "expected LABEL=WEIGHT" in answer.output


# Rules by the name of a scheme

SCHEMES = {
    "iob2": ["O", "B-x", "I-x", "B-y", "I-y"],
    "bio": ["O", "B-x", "I-x", "B-y", "I-y"],
    "iob1": ["O", "B-x", "I-x", "B-y", "I-y"],
    "bioes": ["O", "B-x", "I-x", "E-x", "S-x", "S-y"],
    "iobes": ["O", "B-x", "I-x", "E-x", "S-x", "S-y"],
    "bilou": ["O", "B-x", "I-x", "L-x", "U-x", "U-y"],
}


def keeps(name, labels):
    """Return whether a labelling follows a scheme, implemented independently."""
    if name == "bilou":
        labels = [{"L": "E", "U": "S"}.get(label[0], label[0]) + label[1:] for label in labels]
    if name in ("iob2", "bio", "iob1"):
        for before, label in zip(["O", *labels], labels, strict=False):
            inside = before != "O" and before[2:] == label[2:]
            if name == "iob1" and label[0] == "B" and not inside:
                return False
            if name != "iob1" and label[0] == "I" and not inside:
                return False
        return True
    opened = None
    for label in labels:
        if label[0] in "IE":
            if opened != label[2:]:
                return False
        elif opened is not None:
            return False
        opened = label[2:] if label[0] in "BI" else None
    return opened is None


@pytest.mark.parametrize("name", list(SCHEMES))
def test_rules_by_name_against_enumeration(name):
    labels = SCHEMES[name]
    rng = np.random.default_rng(len(name))
    words = [[[f"w{k}"] for k in rng.integers(9, size=4)] for _ in range(30)]
    y = [[labels[k] for k in rng.integers(len(labels), size=4)] for _ in words]
    tagger = SequenceTagger(legal=False, C=10.0, features="all", tol=1e-2).fit(words, y)
    free = tagger.predict_k_best(words[:6], len(labels) ** 4)
    held = tagger.predict_k_best(words[:6], 10_000, allowed_transitions=name)
    for every, some in zip(free, held, strict=True):
        expected = [(answer, score) for answer, score in every if keeps(name, answer)]
        assert len(expected) == len(some)
        assert sorted(answer for answer, _ in expected) == sorted(answer for answer, _ in some)
        np.testing.assert_allclose([score for _, score in some], [score for _, score in expected], atol=1e-9)
    assert all(keeps(name, answer) for answer in tagger.predict(words, allowed_transitions=name))
    if name in ("iob2", "iob1", "iobes"):
        assert chunk_scores(y, y).f1 == 1.0
    assert sum(1 for each in itertools.product(labels, repeat=4) if keeps(name, list(each))) == len(held[0])


def test_names_that_do_not_fit():
    tagger = SequenceTagger().fit([[["a"], ["b"]]], [["B-x", "I-y"]])
    with pytest.raises(ValueError, match="allowed_transitions='iob3': there are iob1, iob2, bio"):
        tagger.predict([[["a"]]], allowed_transitions="iob3")
    other = SequenceTagger().fit([[["a"], ["b"]]], [["DET", "B-x"]])
    with pytest.raises(ValueError, match="the label 'DET' is none of O, B-x, I-x"):
        other.predict([[["a"]]], allowed_transitions="bio")
    number = SequenceTagger().fit([[["a"], ["b"]]], [[1, 2]])
    with pytest.raises(ValueError, match="the label 1 is none of"):
        number.predict([[["a"]]], allowed_transitions="bioes")
    segments = SegmentTagger().fit(X, BANK.chunks)
    with pytest.raises(ValueError, match="segments keep to a scheme by themselves"):
        segments.predict(X, allowed_transitions="iob2")
