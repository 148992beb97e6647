"""Scores of dependency trees: UAS, LAS and CLAS as in the CoNLL 2018 shared task's evaluation.

UAS is the share of words with the right head; LAS the share with the right head and the right universal relation (what
is before ":"); CLAS the F1 of the latter over content words, which are neither function words nor punctuation (a word
counts as predicted content where its predicted relation is one). Relations that Universal Dependencies does not have
count as content here; that evaluation leaves them out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

#: Relations of function words, which CLAS leaves out along with punctuation.
FUNCTIONAL = frozenset(("aux", "cop", "mark", "det", "clf", "case", "cc"))
PUNCTUATION = "punct"
#: A column without a value.
BLANK = "_"


@dataclass(frozen=True)
class AttachmentScores:
    """Counts of right words; shares are between 0 and 1. Without relations (all are `_`) `las` and `clas` are None.

    Attributes
    ----------
    n_words, n_right_heads, n_right : all words, and those with the right head, and with the right relation too
    n_gold_content, n_predicted_content, n_right_content : what CLAS is made of
    without_punctuation : the same scores over words that are not punctuation; None inside of itself
    """

    n_words: int
    n_right_heads: int
    n_right: int | None = None
    n_gold_content: int = 0
    n_predicted_content: int = 0
    n_right_content: int = 0
    without_punctuation: AttachmentScores | None = None

    @property
    def uas(self) -> float:
        return self.n_right_heads / self.n_words

    @property
    def las(self) -> float | None:
        return None if self.n_right is None else self.n_right / self.n_words

    @property
    def clas(self) -> float | None:
        total = self.n_gold_content + self.n_predicted_content
        return None if self.n_right is None or not total else 2.0 * self.n_right_content / total

    def __str__(self) -> str:
        rows = [("all words", self), ("without punctuation", self.without_punctuation)]
        lines = [f"{'':20} {'words':>8} {'UAS':>7} {'LAS':>7} {'CLAS':>7}"]
        for name, each in rows:
            if each is not None and each.n_words:
                shares = "".join(" " + _percent(value) for value in (each.uas, each.las, each.clas))
                lines.append(f"{name:20} {each.n_words:8d}{shares}")
        return "\n".join(lines)


def attachment_scores(
    gold: Iterable[Any], predicted: Iterable[Any], *, punctuation: Iterable[Sequence[bool]] | None = None
) -> AttachmentScores:
    """Compare predicted with gold trees.

    Parameters
    ----------
    gold, predicted : iterables of sentences
        Each a `ConlluSentence`, a list of heads (0 is the root), or a list of (head, relation) pairs.
    punctuation : iterable of lists of bool, optional
        Which words are punctuation. By default those whose form has no other characters (CoNLL-X's rule), or, where the
        gold sentences have no forms, those of the relation "punct".

    Raises
    ------
    ValueError
        If the numbers of sentences or words differ, or there are no words.
    """
    truths, guesses = list(gold), list(predicted)
    if len(truths) != len(guesses):
        raise ValueError(f"{len(truths)} gold sentences, {len(guesses)} predicted ones")
    marks = None if punctuation is None else list(punctuation)
    if marks is not None and len(marks) != len(truths):
        raise ValueError(f"{len(truths)} gold sentences, {len(marks)} lists of punctuation")
    every, words = _Counts(), _Counts()
    for i, (truth, guess) in enumerate(zip(truths, guesses, strict=True)):
        right, found = _tree(truth, i, "gold"), _tree(guess, i, "predicted")
        if len(right) != len(found):
            raise ValueError(f"sentence {i} has {len(right)} words in gold, {len(found)} in the prediction")
        mark = _punctuation(truth, right) if marks is None else list(marks[i])
        if len(mark) != len(right):
            raise ValueError(f"sentence {i} has {len(right)} words, its list of punctuation has {len(mark)}")
        for one, other, skip in zip(right, found, mark, strict=True):
            every.add(one, other)
            if not skip:
                words.add(one, other)
    if not every.n:
        raise ValueError("there are no words to score")
    return every.scores(words.scores() if words.n else None)


class _Counts:
    def __init__(self) -> None:
        self.n = self.heads = self.both = self.gold = self.predicted = self.content = 0
        self.labelled = True
        self.named_gold = self.named_guess = False

    def add(self, truth: tuple[int, str | None], guess: tuple[int, str | None]) -> None:
        self.n += 1
        same = truth[0] == guess[0]
        self.heads += same
        if truth[1] is None or guess[1] is None:
            self.labelled = False
            return
        one, other = truth[1].partition(":")[0], guess[1].partition(":")[0]
        self.named_gold |= one != BLANK
        self.named_guess |= other != BLANK
        same = same and one == other
        self.both += same
        self.gold += _is_content(one)
        self.predicted += _is_content(other)
        self.content += same and _is_content(one)

    def scores(self, without: AttachmentScores | None = None) -> AttachmentScores:
        if not (self.labelled and self.named_gold and self.named_guess):
            return AttachmentScores(self.n, self.heads, without_punctuation=without)
        return AttachmentScores(self.n, self.heads, self.both, self.gold, self.predicted, self.content, without)


def _is_content(relation: str) -> bool:
    return relation not in FUNCTIONAL and relation != PUNCTUATION


def _tree(sentence: Any, i: int, name: str) -> list[tuple[int, str | None]]:
    if hasattr(sentence, "deprels"):
        if len(sentence.heads) != len(sentence):
            raise ValueError(f"{name} sentence {i} has no heads")
        return list(zip(sentence.heads, sentence.deprels, strict=True))
    try:
        return [
            (int(word[0]), str(word[1])) if isinstance(word, (tuple, list)) else (int(word), None) for word in sentence
        ]
    except (IndexError, TypeError, ValueError):
        raise ValueError(f"{name} sentence {i} must be a list of heads or of (head, relation) pairs") from None


def _punctuation(sentence: Any, tree: list[tuple[int, str | None]]) -> list[bool]:
    if hasattr(sentence, "forms"):
        return [is_punctuation(form) for form in sentence.forms]
    return [relation is not None and relation.partition(":")[0] == PUNCTUATION for _, relation in tree]


def is_punctuation(form: str) -> bool:
    """Whether a word has no characters but punctuation."""
    return bool(form) and all(unicodedata.category(character).startswith("P") for character in form)


def _percent(value: float | None) -> str:
    return f"{'-':>7}" if value is None else f"{100 * value:7.2f}"
