"""Scores of labels for people and for JSON: single labels, whole chunks, features, lemmas, relations between words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np

from partwise.cli.output import table
from partwise.cli.summary import Fields
from partwise.cli.tasks import Evaluation
from partwise.io import ConlluSentence
from partwise.metrics import TypeScores, chunk_scores, feats_scores
from partwise.metrics.labels import Ratios, share

Label = TypeVar("Label", bound=Hashable)
Confusion = tuple[list[str], list[list[int]]]

#: Labels of the largest confusion matrix that people may want to see.
MAX_CONFUSION = 60


def label_row(label: object, counts: Ratios, **more: float) -> Fields:
    """Return precision, recall, F1, further shares and counts of a label."""
    shares = {"precision": counts.precision, "recall": counts.recall, "f1": counts.f1}
    return {"label": str(label), **shares, **more, "gold": counts.n_gold, "found": counts.n_predicted}


def _label_rows(
    gold: Iterable[Label], guess: Iterable[Label], right: Iterable[Label]
) -> tuple[list[Label], list[Fields]]:
    """Return the labels, the most frequent first, and a row for each; `right`: gold labels that are predicted so."""
    truth, found, hits = Counter(gold), Counter(guess), Counter(right)
    names = sorted(truth | found, key=lambda name: (-truth[name], str(name)))
    return names, [label_row(name, TypeScores(truth[name], found[name], hits[name])) for name in names]


def score_table(rows: Iterable[Fields], what: str = "label") -> str:
    """Return rows of scores as text: shares in percent, counts as they are."""
    cells = [[str(v) if isinstance(v, str | int) else f"{v:.2%}" for v in row.values()] for row in rows]
    columns = ["precision", "recall", "F1", *(["accuracy"] if what == "feature" else []), "gold", "found"]
    return table([[what, *columns], *cells])


def evaluate_sequences(gold: Sequence[Sequence[str]], guess: Sequence[Sequence[str]], chunks: bool) -> Evaluation:
    """Return scores of label sequences; chunks: those of whole chunks."""
    single = evaluate_labels(list(chain.from_iterable(gold)), list(chain.from_iterable(guess)))
    if not chunks:
        return single
    found = chunk_scores(gold, guess)
    rows = [label_row(name, row) for name, row in found.by_type.items()]
    scores = {name: getattr(found, name) for name in ("f1", "precision", "recall", "accuracy")}
    return Evaluation(scores, str(found), rows, single.confusion)


def evaluate_labels(gold: Sequence[Label], guess: Sequence[Label]) -> Evaluation:
    """Return scores of single labels: accuracy, and precision, recall and F1 of each."""
    right = [a for a, b in zip(gold, guess, strict=True) if a == b]
    names, rows = _label_rows(gold, guess, right)
    accuracy = share(len(right), len(gold))
    text = f"accuracy {accuracy:.2%} ({len(right)} of {len(gold)})\n\n{score_table(rows)}"
    confusion = _confusion(names, list(zip(gold, guess, strict=True))) if 0 < len(names) <= MAX_CONFUSION else None
    return Evaluation({"accuracy": accuracy}, text, rows, confusion)


def _confusion(names: Sequence[Label], pairs: Iterable[tuple[Label, Label]]) -> Confusion:
    """Return (labels, matrix with a row per gold label) of pairs (gold label, label)."""
    place = {name: k for k, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), dtype=np.int64)
    rows = np.array([(place[a], place[b]) for a, b in pairs], dtype=np.int64).reshape(-1, 2)
    np.add.at(matrix, (rows[:, 0], rows[:, 1]), 1)
    return [str(name) for name in names], matrix.tolist()


def evaluate_feats(gold: Sequence[Sequence[str]], guess: Sequence[Sequence[str]], known: Iterable[str]) -> Evaluation:
    """Return scores of whole FEATS values, and of each feature; known: the values that the model can predict."""
    found = feats_scores(gold, guess, set(map(str, known)))
    rows = [label_row(name, row, accuracy=row.accuracy) for name, row in found.by_feature.items()]
    scores = {"accuracy": found.accuracy, "ufeats": found.ufeats, "feature_f1": found.all_features.f1}
    text = (
        f"accuracy {found.accuracy:.2%} of whole FEATS ({found.n_right} of {found.n_words}); "
        f"universal features alone (UFeats) {found.ufeats:.2%}; F1 of single features {found.all_features.f1:.2%}\n"
        f"combinations that the model does not know: {found.unknown_share:.2%} of the words\n\n"
        f"{score_table(rows, 'feature')}"
    )
    return Evaluation(scores, text, rows, None, {"unknown_combinations": found.unknown_share})


def evaluate_lemmas(sentences: Sequence[ConlluSentence], guess: Sequence[Sequence[str]]) -> Evaluation:
    """Return scores of lemmas, and of the lemmas of words that differ from their lemmas."""
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
    """Return the share of words with the right lemma."""
    gold = chain.from_iterable(sentence.column("lemma") for sentence in sentences)
    pairs = list(zip(gold, chain.from_iterable(guess), strict=True))
    return sum(a == b for a, b in pairs) / len(pairs)


Arc = int | tuple[int, str]


def relation_scores(
    gold: Sequence[Sequence[tuple[int, str]]], guess: Sequence[Sequence[Arc]]
) -> tuple[list[Fields], Confusion | None]:
    """Return scores of arcs by relation, and a confusion matrix (frequent relations) of words whose head is right.

    Predictions without relations have neither.
    """
    words = list(zip(chain.from_iterable(gold), chain.from_iterable(guess), strict=True))
    named = [(a, b) for a, b in words if isinstance(b, tuple)]
    if len(named) < len(words):
        return [], None
    _, rows = _label_rows((a[1] for a, _ in named), (b[1] for _, b in named), (a[1] for a, b in named if a == b))
    pairs = [(a[1], b[1]) for a, b in named if a[0] == b[0]]
    shown = [name for name, _ in Counter(chain.from_iterable(pairs)).most_common(MAX_CONFUSION)]
    known = set(shown)
    kept = [pair for pair in pairs if known.issuperset(pair)]
    return rows, _confusion(shown, kept) if pairs else None
