"""Chunk scores against hand-made cases and against an independent token-by-token reader."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.metrics import chunk_f1, chunk_scores, chunk_spans


def conlleval_counts(y_true, y_pred):
    """Count chunks by the algorithm of the CoNLL-2000 shared task, which finds starts and ends token by token."""

    def parts(label):
        prefix, _, name = label.partition("-")
        return prefix, name

    def ends(p, pt, q, qt):
        if (p + q) in {"BB", "BO", "IB", "IO", "BS", "IS"} or p in "ES":
            return True
        return p != "O" and pt != qt

    def starts(p, pt, q, qt):
        if q in "BS" or (p + q) in {"OI", "OE", "EE", "EI", "SI", "SE"}:
            return True
        return q != "O" and pt != qt

    found = guessed = correct = right = tokens = 0
    for gold, guess in zip(y_true, y_pred, strict=True):
        tokens += len(gold)
        inside, before_g, before_p = False, ("O", ""), ("O", "")
        for a, b in [*zip(gold, guess, strict=True), ("O", "O")]:
            g, p = parts(a), parts(b)
            end_g, end_p = ends(*before_g, *g), ends(*before_p, *p)
            if inside:
                if end_g and end_p and before_g[1] == before_p[1]:
                    inside = False
                    correct += 1
                elif end_g != end_p or g[1] != p[1]:
                    inside = False
            start_g, start_p = starts(*before_g, *g), starts(*before_p, *p)
            if start_g and start_p and g[1] == p[1]:
                inside = True
            found += start_g
            guessed += start_p
            before_g, before_p = g, p
        right += sum(a == b for a, b in zip(gold, guess, strict=True))
    return found, guessed, correct, tokens, right


@pytest.mark.parametrize(
    ("labels", "spans"),
    [
        ("B-NP I-NP O", [("NP", 0, 2)]),
        ("I-NP I-NP B-NP", [("NP", 0, 2), ("NP", 2, 3)]),  # in IOB1, B separates chunks of one type
        ("O I-NP", [("NP", 1, 2)]),
        ("B-NP I-VP", [("NP", 0, 1), ("VP", 1, 2)]),
        ("B-NP B-NP", [("NP", 0, 1), ("NP", 1, 2)]),
        ("S-NP S-NP B-VP E-VP", [("NP", 0, 1), ("NP", 1, 2), ("VP", 2, 4)]),
        ("B-NP I-NP E-NP I-NP", [("NP", 0, 3), ("NP", 3, 4)]),
        ("E-NP E-NP", [("NP", 0, 1), ("NP", 1, 2)]),
        ("I-NP S-NP I-NP", [("NP", 0, 1), ("NP", 1, 2), ("NP", 2, 3)]),
        ("E-NP B-NP", [("NP", 0, 1), ("NP", 1, 2)]),
        ("B-A-B I-A-B", [("A-B", 0, 2)]),
        ("B I O", [("", 0, 2)]),
        ("O O", []),
        ("", []),
    ],
)
def test_spans(labels, spans):
    assert chunk_spans(labels.split()) == spans


def test_overall_and_types():
    gold = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "B-PP"]]
    guess = [["B-NP", "I-NP", "O", "B-NP"], ["I-NP", "O"]]
    scores = chunk_scores(gold, guess)
    assert (scores.n_gold, scores.n_predicted, scores.n_right) == (4, 3, 2)
    assert scores.precision == pytest.approx(2 / 3)
    assert scores.recall == pytest.approx(1 / 2)
    assert scores.f1 == pytest.approx(4 / 7)
    assert scores.accuracy == pytest.approx(3 / 6)
    assert list(scores.by_type) == ["NP", "PP", "VP"]
    assert scores.by_type["NP"].precision == pytest.approx(2 / 3)
    assert scores.by_type["NP"].recall == 1.0
    assert scores.by_type["PP"].f1 == 0.0
    assert chunk_f1(gold, guess) == scores.f1


def test_a_longer_chunk_is_wrong_twice_over():
    scores = chunk_scores([["B-NP", "I-NP"]], [["B-NP", "O"]])
    assert (scores.n_gold, scores.n_predicted, scores.n_right) == (1, 1, 0)


def test_chunks_do_not_cross_sentences():
    one = chunk_scores([["B-NP", "I-NP"]], [["B-NP", "I-NP"]])
    two = chunk_scores([["B-NP"], ["I-NP"]], [["B-NP"], ["I-NP"]])
    assert (one.n_gold, two.n_gold) == (1, 2)


def test_report_has_conlleval_layout():
    report = str(chunk_scores([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "B-VP", "O"]]))
    assert report.splitlines() == [
        "processed 4 tokens with 2 phrases; found: 2 phrases; correct: 1.",
        "accuracy:  50.00%; precision:  50.00%; recall:  50.00%; FB1:  50.00",
        "               NP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1",
        "               VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1",
    ]


def test_nothing_to_find():
    scores = chunk_scores([["O"], []], [["O"], []])
    assert (scores.precision, scores.recall, scores.f1, scores.accuracy) == (0.0, 0.0, 0.0, 1.0)
    assert chunk_scores([], []).accuracy == 0.0


def test_numpy_labels():
    gold = [np.array(["B-NP", "I-NP"]), np.array(["O"], dtype=object)]
    assert chunk_f1(gold, gold) == 1.0


@pytest.mark.parametrize(
    ("gold", "guess", "message"),
    [
        ([["O"]], [["O"], ["O"]], "1 sentences"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], "sentence 1"),
        (["O"], [["O"]], "string"),
        ([["NOUN"]], [["O"]], "'NOUN'"),
    ],
)
def test_bad_input(gold, guess, message):
    with pytest.raises(ValueError, match=message):
        chunk_scores(gold, guess)


pairs = st.lists(st.tuples(*[st.sampled_from(["O"] + [f"{p}-{t}" for p in "BIES" for t in "XY"])] * 2), max_size=8)


@given(st.lists(pairs, max_size=4))
def test_counts_match_the_token_by_token_reader(sentences):
    gold = [[a for a, _ in s] for s in sentences]
    guess = [[b for _, b in s] for s in sentences]
    scores = chunk_scores(gold, guess)
    assert (
        scores.n_gold,
        scores.n_predicted,
        scores.n_right,
        scores.n_tokens,
        scores.n_right_tokens,
    ) == conlleval_counts(gold, guess)
    assert sum(row.n_right for row in scores.by_type.values()) == scores.n_right


def test_fast_enough_for_a_test_set():
    rng = np.random.default_rng(0)
    names = np.array(["O", "B-NP", "I-NP", "B-VP", "I-VP"], dtype=object)
    gold = [names[rng.integers(5, size=24)].tolist() for _ in range(2000)]
    guess = [names[rng.integers(5, size=24)].tolist() for _ in range(2000)]
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        chunk_scores(gold, guess)
        seconds.append(time.process_time() - begin)
    assert min(seconds) < 0.2
