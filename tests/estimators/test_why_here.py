"""`explain_label` and `explain_head`: why this label or head was predicted, against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from helpers.model_cases import TAGGERS, fitted_classifier, fitted_tagger
from partwise import DependencyParser, SegmentTagger, SequenceTagger
from partwise.datasets import make_treebank
from partwise.models.constraints import ConstraintError

WITH_WEIGHTS = [name for name, (_, options) in TAGGERS.items() if "kernel" not in options]


def add_up(told):
    total = math.fsum(each.amount for each in told.contributions)
    assert total == pytest.approx(told.difference, rel=1e-10, abs=1e-10)
    here = math.fsum(each.amount for each in told.contributions if each.position == told.position)
    assert here + told.elsewhere == pytest.approx(told.difference, abs=1e-10)


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_labels_here_against_all_labellings(name):
    case = fitted_tagger(name)
    tagger, labels = case.estimator, case.estimator.classes_.tolist()
    if "maxent" in name:
        tagger.set_params(beam_width=None)
    length = {id(x): x.shape[0] if hasattr(x, "shape") else len(x) for x in case.X}
    x = min((x for x in case.X if length[id(x)] > 1), key=lambda x: length[id(x)])
    n = length[id(x)]
    every = tagger.predict_k_best([x], len(labels) ** n)[0]
    for t, (given, against) in itertools.product(range(n), itertools.product([None, *labels], repeat=2)):
        one = next(each for each in every if given is None or each[0][t] == given)
        if one[0][t] == against:
            with pytest.raises(ValueError, match="itself"):
                tagger.explain(x, t, label=given, against=against)
            continue
        other = one[0][t]
        wanted = [each for each in every if (each[0][t] != other if against is None else each[0][t] == against)]
        told = tagger.explain(x, t, label=given, against=against)
        assert told.best_score == pytest.approx(one[1], abs=1e-9)
        assert told.second_score == pytest.approx(wanted[0][1], abs=1e-9)
        assert told.best[t] == one[0][t]
        assert told.second[t] != one[0][t]
        add_up(told)
    assert f"at {n - 1}" in str(tagger.explain(x, n - 1))


BANK = make_treebank(25, seed=2)
X = [[[f"w={word}", f"s={word[-1]}"] for word in words] for words in BANK.words]


@pytest.mark.parametrize("kind", [SequenceTagger, SegmentTagger])
def test_explanations_follow_the_scheme(kind):
    tagger = kind(C=0.1).fit(X, BANK.chunks)
    x = min(X, key=len)
    for t in range(len(x)):
        told = tagger.explain(x, t)
        assert told.best == tagger.predict_single(x)
        assert told.best[t] != told.second[t]
        add_up(told)
        if told.best[t] == "B-NP" and t == 0:
            with pytest.raises(ConstraintError, match="no labelling that is allowed has 'I-NP' at position 0"):
                tagger.explain(x, 0, against="I-NP")


def test_wrong_questions():
    tagger = SequenceTagger().fit(X, BANK.chunks)
    for wrong in (-1, len(X[0]), 1.5, True, "O"):
        with pytest.raises(ValueError, match="position must be between 0 and"):
            tagger.explain(X[0], wrong)
    with pytest.raises(ValueError, match="label and against are for one position"):
        tagger.explain(X[0], against="O")
    with pytest.raises(ValueError, match="against: the label 'XX' was not in the training data"):
        tagger.explain(X[0], 0, against="XX")
    with pytest.raises(ValueError, match="nothing to explain"):
        tagger.explain([], 0)


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "c"]])
def test_labels_of_a_row(labels):
    case = fitted_classifier(labels)
    model, weights = case.estimator, case.estimator._model.label_weights()
    scores = weights[0] @ case.X[0] + weights[1]
    for one, two in itertools.permutations(range(len(labels)), 2):
        told = model.explain(case.X[0], label=labels[one], against=labels[two])
        assert (told.best, told.second) == (labels[one], labels[two])
        assert told.difference == pytest.approx(scores[one] - scores[two])
        assert math.fsum(each.amount for each in told.contributions) == pytest.approx(told.difference)
    best = model.predict(case.X[:1])[0]
    assert model.explain(case.X[0]) == model.explain(case.X[0], label=best)
    rest = max((label for label in labels if label != best), key=lambda label: scores[labels.index(label)])
    assert model.explain(case.X[0]).second == rest
    with pytest.raises(ValueError, match="cannot be compared with itself"):
        model.explain(case.X[0], label="a", against="a")
    with pytest.raises(ValueError, match="label: the label 'x' was not"):
        model.explain(case.X[0], label="x")


@pytest.mark.parametrize("options", [{}, {"structure": "spanning"}, {"hash_bits": 12, "features": "hashed"}])
def test_heads_against_all_trees(options):
    words = [[("a", "D"), ("dog", "N"), ("ran", "V")], [("she", "P"), ("ran", "V"), ("home", "N")]] * 2
    heads = [[2, 3, 0], [2, 0, 2]] * 2
    parser = DependencyParser(**options).fit(words, heads)
    sentence = words[0]
    trees = parser.predict_k_best([sentence], 100)[0]
    bare = [([arc if isinstance(arc, int) else arc[0] for arc in tree], score) for tree, score in trees]
    for word in (1, 2, 3):
        told = parser.explain_head(sentence, word)
        own = bare[0][0][word - 1]
        assert told.best == bare[0][0]
        second = next(each for each in bare if each[0][word - 1] != own)
        assert told.second_score == pytest.approx(second[1])
        assert told.best_score == pytest.approx(bare[0][1])
        add_up(told)
        for against in {0, 1, 2, 3} - {word, own}:
            wanted = next((each for each in bare if each[0][word - 1] == against), None)
            if wanted is not None:
                found = parser.explain_head(sentence, word, against=against)
                assert found.second_score == pytest.approx(wanted[1])
                add_up(found)
                assert parser.explain_head(sentence, word, head=against, against=own).difference == pytest.approx(
                    -found.difference
                )
        with pytest.raises(ValueError, match=f"has the head {own} itself"):
            parser.explain_head(sentence, word, against=own)
    with pytest.raises(ValueError, match="there is no word 4"):
        parser.explain_head(sentence, 4)
    with pytest.raises(ValueError, match="there is no arc from 9 to 1"):
        parser.explain_head(sentence, 1, against=9)
    assert np.isfinite(parser.explain_head(sentence, 1).difference)
