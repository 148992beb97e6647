"""Scores of morphological taggers for people and for JSON: lists of features, lemmas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from partwise.cli.output import table
from partwise.cli.tasks import Evaluation
from partwise.io import ConlluSentence
from partwise.metrics.morphology import feats_scores


def evaluate_feats(gold: Sequence[Sequence[str]], guess: Sequence[Sequence[str]], known: Iterable[str]) -> Evaluation:
    """Scores of whole FEATS values, and of each feature."""
    found = feats_scores(gold, guess, set(map(str, known)))
    rows = [
        {
            "label": name,
            "precision": row.precision,
            "recall": row.recall,
            "f1": row.f1,
            "accuracy": row.accuracy,
            "gold": row.n_gold,
            "found": row.n_predicted,
        }
        for name, row in found.by_feature.items()
    ]
    cells = [["feature", "precision", "recall", "F1", "accuracy", "gold", "found"]]
    cells += [
        [
            name,
            *(f"{value:.2%}" for value in (row.precision, row.recall, row.f1, row.accuracy)),
            str(row.n_gold),
            str(row.n_predicted),
        ]
        for name, row in found.by_feature.items()
    ]
    scores = {"accuracy": found.accuracy, "ufeats": found.ufeats, "feature_f1": found.all_features.f1}
    text = (
        f"accuracy {found.accuracy:.2%} of whole FEATS ({found.n_right} of {found.n_words}); "
        f"universal features alone (UFeats) {found.ufeats:.2%}; F1 of single features {found.all_features.f1:.2%}\n"
        f"combinations that the model does not know: {found.unknown_share:.2%} of the words\n\n{table(cells)}"
    )
    return Evaluation(scores, text, rows, None, {"unknown_combinations": found.unknown_share})


def evaluate_lemmas(sentences: Sequence[ConlluSentence], guess: Sequence[Sequence[str]]) -> Evaluation:
    """Scores of lemmas, whatever the rules that made them; those of words that differ from their lemmas, too."""
    words = [
        (form, lemma, found)
        for sentence, each in zip(sentences, guess, strict=True)
        for form, lemma, found in zip(sentence.forms, sentence.column("lemma"), each, strict=True)
    ]
    other = [(lemma, found) for form, lemma, found in words if form.lower() != lemma.lower()]
    right, changed = sum(lemma == found for _, lemma, found in words), sum(a == b for a, b in other)
    anycase = sum(lemma.lower() == found.lower() for _, lemma, found in words)
    scores = {"accuracy": right / len(words), "accuracy_any_case": anycase / len(words)}
    text = f"accuracy {scores['accuracy']:.2%} of lemmas ({right} of {len(words)}); "
    text += f"whatever their case {scores['accuracy_any_case']:.2%}"
    if other:
        scores["accuracy_changed"] = changed / len(other)
        text += f"\nwhere the lemma is not the form: {scores['accuracy_changed']:.2%} ({changed} of {len(other)})"
    return Evaluation(scores, text)


def lemma_accuracy(sentences: Sequence[ConlluSentence], guess: Sequence[Sequence[str]]) -> float:
    """Share of words with the right lemma."""
    gold = chain.from_iterable(sentence.column("lemma") for sentence in sentences)
    pairs = list(zip(gold, chain.from_iterable(guess), strict=True))
    return sum(a == b for a, b in pairs) / len(pairs)
