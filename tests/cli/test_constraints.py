"""Constraint files: rules become masks, schemes allow exactly the well-formed labels, errors name the place."""

import itertools

import numpy as np
import pytest

from partwise.cli.tasks.rules import read_constraints
from partwise.io import FormatError
from partwise.metrics import chunk_spans
from partwise.models.sequences.constraints import SCHEMES, may_follow

LABELS = ["B-N", "B-V", "I-N", "I-V", "O"]


@pytest.fixture
def rules(tmp_path):
    def read(text, labels=LABELS):
        path = tmp_path / "rules.txt"
        path.write_text(text, encoding="utf-8")
        return read_constraints(str(path), labels)

    return read


def test_forbidden_pairs(rules):
    found = rules("# a comment\n\nforbid B-N I-V\nforbid * B-V\nforbid ^ I-N\nforbid O $\n")
    expected = np.ones((5, 5), dtype=bool)
    expected[0, 3] = False
    expected[:, 1] = False
    assert np.array_equal(found.follow, expected)
    assert found.first.tolist() == [True, True, False, True, True]
    assert found.last.tolist() == [True, True, True, True, False]


@pytest.mark.parametrize(("rule", "place"), [("token 3 1 O", "2:7: "), ("token 2 2 O", "2:9: ")])
def test_rules_about_missing_tokens(rules, rule, place):
    found = rules(f"token 1 1 O\n{rule}\n")
    with pytest.raises(FormatError, match=f"{place}there is no"):
        found.allowed([["a"], ["b"]])
        found.check(2)


def test_words_and_tokens(rules):
    found = rules("word Rockwell B-N I-N\ntoken 2 1 O\n")
    first, second, third = found.allowed([["Mr", "Rockwell"], ["so"], ["x"]])
    assert first.tolist() == [[True] * 5, [True, False, True, False, False]]
    assert second.tolist() == [[False, False, False, False, True]]
    assert third is None


def test_two_rules_about_one_word_both_hold(rules):
    found = rules("word a B-N O\nword a O B-V\n")
    assert found.words["a"].tolist() == [False, False, False, False, True]


def labels_of_spans(scheme, spans, n):
    """Return the labels by which a scheme writes chunks (first, last, type)."""
    labels = ["O"] * n
    for k, (first, last, kind) in enumerate(spans):
        touching = k > 0 and spans[k - 1][1] == first - 1 and spans[k - 1][2] == kind
        for t in range(first, last + 1):
            labels[t] = f"I-{kind}"
        if scheme == "iob2" or (scheme == "iob1" and touching):
            labels[first] = f"B-{kind}"
        if scheme == "iobes":
            labels[first], labels[last] = f"B-{kind}", f"E-{kind}"
            if first == last:
                labels[first] = f"S-{kind}"
    return labels


def all_spans(n, start=0):
    yield []
    for first in range(start, n):
        for last in range(first, n):
            for kind in ("N", "V"):
                for rest in all_spans(n, last + 1):
                    yield [(first, last, kind), *rest]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_allow_exactly_what_they_write(scheme, rules):
    """A label sequence of length 3 is allowed exactly if some set of chunks is written like that."""
    prefixes = {"iob1": "BI", "iob2": "BI", "iobes": "BIES"}[scheme]
    labels = ["O", *(f"{p}-{kind}" for p in prefixes for kind in ("N", "V"))]
    found = rules(f"scheme {scheme}\n", labels)
    place = {label: k for k, label in enumerate(labels)}
    written = {tuple(labels_of_spans(scheme, spans, 3)) for spans in all_spans(3)}
    for sequence in itertools.product(labels, repeat=3):
        ids = [place[label] for label in sequence]
        inside = found.first[ids[0]] and found.last[ids[-1]]
        inside = inside and all(found.follow[a, b] for a, b in itertools.pairwise(ids))
        assert inside == (sequence in written), sequence
    assert not may_follow("iob2", "O", "I-N")
    assert chunk_spans(["B-N", "I-N", "O"])


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("\nallow A B\n", "2:1", "unknown rule 'allow'"),
        ("forbid B-N X\n", "1:12", "no label 'X'"),
        ("forbid B-N\n", "1:1", "takes 2 words"),
        ("forbid B-N O O\n", "1:1", "takes 2 words"),
        ("scheme iob3\n", "1:8", "unknown scheme"),
        ("  token 0 1 O\n", "1:9", "number from 1"),
        ("word a\n", "1:1", "takes 2 or more words"),
    ],
)
def test_errors_have_a_place(rules, text, place, message):
    with pytest.raises(FormatError, match=message) as caught:
        rules(text)
    assert f":{place}: " in str(caught.value)
