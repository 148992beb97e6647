"""Coded sequences (strings stored as numbers) behave like lists of lists, and train the same models bit for bit."""

import pickle

import numpy as np
import pytest

from partwise import SequenceTagger
from partwise.features import Template
from partwise.io import CodedSequences, Sentences, parse_columns
from partwise.models.labels import Targets

TEXT = b"the D O\nred J B-X\n\nhouse N I-X\nis V O\nred J B-X\n\nthe D O\n\n"


@pytest.fixture
def table():
    return parse_columns(TEXT)


@pytest.mark.parametrize("j", [0, 1, 2, -1])
def test_it_is_a_list_of_lists_of_strings(table, j):
    coded, lists = CodedSequences.of(table, j), table.column(j)
    assert list(coded) == lists
    assert [coded[i] for i in range(-3, 3)] == [lists[i] for i in range(-3, 3)]
    assert (coded, len(coded), coded[1:]) == (lists, 3, lists[1:])
    assert coded != lists[1:]
    assert coded.flat() == [name for row in lists for name in row]
    assert list(coded.take(np.array([2, 0, 2]))) == [lists[2], lists[0], lists[2]]
    assert pickle.loads(pickle.dumps(coded)) == lists
    assert CodedSequences.from_lists(lists) == coded
    with pytest.raises(IndexError):
        coded[3]


def test_names_that_are_left_after_a_choice(table):
    coded = CodedSequences.of(table, 2)
    assert (coded.names, coded.distinct()) == (["O", "B-X", "I-X"], ["O", "B-X", "I-X"])
    assert coded.take(np.array([2, 0])).distinct() == ["O", "B-X"]
    assert coded.numbers_in(["B-X", "O"]).tolist() == [1, 0, -1, 1, 0, 1]


def test_no_sequences_and_empty_ones():
    assert list(CodedSequences.from_lists([])) == []
    assert list(CodedSequences.from_lists([[], ["a"], []])) == [[], ["a"], []]


def test_labels_are_not_turned_to_strings(table, monkeypatch):
    """Training and scoring convert each distinct label once, and never make the strings of all positions."""
    coded = CodedSequences.of(table, 2)
    for name in ("flat", "__iter__", "__getitem__"):
        monkeypatch.setattr(CodedSequences, name, lambda *_: pytest.fail("strings were made"))
    tagger = SequenceTagger(template=Template.preset("pos"), solver="lbfgs").fit(table.without(2), coded)
    assert tagger.classes_.tolist() == ["B-X", "I-X", "O"]
    tagger.score(table.without(2), coded)
    tagger.log_probability(table.without(2), coded)


@pytest.mark.parametrize("model", ["crf", "maxent"])
@pytest.mark.parametrize("weight", [None, [1.0, 0.0, 2.0], [0.5, 1.0, 0.0]])
def test_models_are_the_same_to_the_bit(table, model, weight):
    X, lists, coded = table.without(2), table.column(2), CodedSequences.of(table, 2)
    one, two = (
        SequenceTagger(template=Template.preset("pos"), model=model, solver="lbfgs").fit(X, y, sample_weight=weight)
        for y in (lists, coded)
    )
    assert one.classes_.tolist() == two.classes_.tolist()
    assert one.coef_.tobytes() == two.coef_.tobytes()
    assert one.score(X, lists) == two.score(X, coded)
    assert np.array_equal(one.log_probability(X, lists), two.log_probability(X, coded))


def test_messages_are_the_same(table):
    X, coded = table.without(2), CodedSequences.of(table, 2)
    for y in (coded[1:], coded.take(np.array([0, 0, 0])), coded.take(np.array([2, 2, 2]))):
        messages = []
        for labels in (y, list(y)):
            with pytest.raises(ValueError, match=r"sequence") as error:
                SequenceTagger(template=Template.preset("pos")).fit(X, labels)
            messages.append(str(error.value))
        assert messages[0] == messages[1]
    with pytest.raises(ValueError, match="one label only"):
        SequenceTagger(template=Template.preset("pos")).fit(X.take(np.array([2])), coded[2:])


def test_labels_of_sequences_that_are_left_out_do_not_count():
    lists = [["a", "b"], ["c"], ["b"]]
    for y in (lists, CodedSequences.from_lists(lists)):
        some = Targets.of(y).take(np.array([0, 2]))
        assert some.classes().tolist() == ["a", "b"]
        assert some.encode(np.array(["b", "c"])).tolist() == [-1, 0, 0]
        assert some.where(some.lengths(), 2) == "sequence 2, position 0"


def test_columns_of_a_table_in_any_order(table):
    assert list(table.select([2, 0]))[::2] == [[("O", "the"), ("B-X", "red")], [("O", "the")]]
    assert list(table.select([-1])) == table.column(2)
    some = table.select([2, 0, 1]).take(np.array([2, 0])).without(1)
    assert list(some) == [[("O", "D")], [("O", "D"), ("B-X", "J")]]
    assert list(pickle.loads(pickle.dumps(some))) == list(some)
    with pytest.raises(ValueError, match="no column 3"):
        table.select([0, 3])


def test_a_table_keeps_its_text():
    data = bytearray(TEXT)
    table = parse_columns(bytes(data))
    del data
    assert table.without(1).without(1)[1] == ["house", "is", "red"]


def test_lines_of_a_sentence(table):
    assert table.lines(1, ["x", "y\tz", ""]) == "house\tN\tI-X\tx\nis\tV\tO\ty\tz\nred\tJ\tB-X\t\n\n"
    assert Sentences.from_lists([["ä"], []]).lines(0, ["ß"]) == "ä\tß\n\n"
    assert Sentences.from_lists([["ä"], []]).lines(1, []) == "\n"
    with pytest.raises(ValueError, match="sentence 1 has 3 tokens but 2 texts"):
        table.lines(1, ["x", "y"])
    with pytest.raises(ValueError, match="expected a string"):
        table.lines(2, [1])
    for wrong in (-1, 3):
        with pytest.raises(IndexError):
            table.lines(wrong, [])
