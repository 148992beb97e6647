"""Scores of CoNLL-U's columns, as in the CoNLL 2018 shared task's evaluation: dependency trees and features."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from partwise.io.conllu import split_feats
from partwise.metrics.chunks import TypeScores
from partwise.metrics.labels import share

#: Relations of function words, which CLAS leaves out along with punctuation.
FUNCTIONAL = frozenset(("aux", "cop", "mark", "det", "clf", "case", "cc"))
PUNCTUATION = "punct"
#: The features that the CoNLL 2018 shared task's UFeats counts (those of layers such as Number[psor] are not).
UNIVERSAL = frozenset((
    "PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number", "Case", "Definite",
    "Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident", "Polarity", "Person", "Polite",
))  # fmt: skip

#: A `ConlluSentence`, a list of heads (0 is the root), or a list of (head, relation) pairs.
Sentence = Any
#: A word's head and the name of its arc, if arcs have names.
Arc = tuple[int, str | None]
#: How many words there are for each (whether both heads are the same, gold relation, predicted relation).
Agreements = Counter[tuple[bool, str | None, str | None]]


@dataclass(frozen=True)
class AttachmentScores:
    """Counts of right words; shares are between 0 and 1. Without relations (all are `_`) `las` and `clas` are None.

    UAS is the share of words with the right head; LAS the share with the right head and the right universal relation
    (what is before ":"); CLAS the F1 of the latter over content words, which are neither function words nor punctuation
    (a word counts as predicted content where its predicted relation is one). Relations that Universal Dependencies does
    not have count as content here; the shared task's evaluation leaves them out.

    Attributes
    ----------
    n_words, n_right_heads, n_right : all words, and those with the right head, and with the right relation too
    n_gold_content, n_predicted_content, n_right_content : what CLAS is made of
    without_punctuation : the same scores over words that are not punctuation
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
                shares = ("-" if value is None else f"{100 * value:.2f}" for value in (each.uas, each.las, each.clas))
                lines.append(f"{name:20} {each.n_words:8d}" + "".join(f" {text:>7}" for text in shares))
        return "\n".join(lines)


def attachment_scores(
    gold: Iterable[Sentence], predicted: Iterable[Sentence], *, punctuation: Iterable[Sequence[bool]] | None = None
) -> AttachmentScores:
    """Compare predicted with gold trees.

    Parameters
    ----------
    gold, predicted : iterables of sentences
        Each a `ConlluSentence`, a list of heads (0 is the root), or a list of (head, relation) pairs.
    punctuation : iterable of lists of bool, optional
        Which words are punctuation. By default those whose form has no other characters (CoNLL-X's rule), or, where the
        gold sentences have no forms, those of the relation "punct".

    Raises ValueError if the numbers of sentences or words differ, or there are no words.
    """
    truths, guesses = list(gold), list(predicted)
    if len(truths) != len(guesses):
        raise ValueError(f"{len(truths)} gold sentences, {len(guesses)} predicted ones")
    marks = None if punctuation is None else list(punctuation)
    if marks is not None and len(marks) != len(truths):
        raise ValueError(f"{len(truths)} gold sentences, {len(marks)} lists of punctuation")
    every, words = Agreements(), Agreements()
    for i, (truth, guess) in enumerate(zip(truths, guesses, strict=True)):
        right, found = _tree(truth, i, "gold"), _tree(guess, i, "predicted")
        if len(right) != len(found):
            raise ValueError(f"sentence {i} has {len(right)} words in gold, {len(found)} in the prediction")
        mark = _punctuation(truth, right) if marks is None else list(marks[i])
        if len(mark) != len(right):
            raise ValueError(f"sentence {i} has {len(right)} words, its list of punctuation has {len(mark)}")
        agreements = [(one[0] == other[0], one[1], other[1]) for one, other in zip(right, found, strict=True)]
        every.update(agreements)
        words.update(each for each, skip in zip(agreements, mark, strict=True) if not skip)
    if not every:
        raise ValueError("there are no words to score")
    return _attachment(every, _attachment(words) if words else None)


def _attachment(agreements: Agreements, without: AttachmentScores | None = None) -> AttachmentScores:
    n, heads = agreements.total(), sum(count for (same, _, _), count in agreements.items() if same)
    for side in (1, 2):
        if {each[side] for each in agreements} == {"_"} or any(each[side] is None for each in agreements):
            return AttachmentScores(n, heads, without_punctuation=without)  # "_" is a column without a value
    labelled = content_gold = content_predicted = content_both = 0
    for (same, *names), count in agreements.items():
        one, other = (str(name).partition(":")[0] for name in names)
        gold, predicted = (name not in FUNCTIONAL and name != PUNCTUATION for name in (one, other))
        right = same and one == other
        labelled += count * right
        content_gold += count * gold
        content_predicted += count * predicted
        content_both += count * (right and gold)
    return AttachmentScores(n, heads, labelled, content_gold, content_predicted, content_both, without)


def _tree(sentence: Sentence, i: int, name: str) -> list[Arc]:
    if hasattr(sentence, "deprels"):
        if len(sentence.heads) != len(sentence):
            raise ValueError(f"{name} sentence {i} has no heads")
        return list(zip(sentence.heads, sentence.deprels, strict=True))
    try:
        return [(int(w[0]), str(w[1])) if isinstance(w, (tuple, list)) else (int(w), None) for w in sentence]
    except (IndexError, TypeError, ValueError):
        raise ValueError(f"{name} sentence {i} must be a list of heads or of (head, relation) pairs") from None


def _punctuation(sentence: Sentence, tree: list[Arc]) -> list[bool]:
    if hasattr(sentence, "forms"):
        forms: Sequence[str] = sentence.forms
        return [bool(form) and all(unicodedata.category(letter).startswith("P") for letter in form) for form in forms]
    return [relation is not None and relation.partition(":")[0] == PUNCTUATION for _, relation in tree]


@dataclass(frozen=True)
class FeatureCounts(TypeScores):
    """Numbers of words with a feature in gold, predicted, and right; `n_same`: its value, or lack of it, is right."""

    n_same: int
    n_words: int

    @property
    def accuracy(self) -> float:
        """The share of words whose values of the feature, or its absence, are right."""
        return share(self.n_same, self.n_words)


@dataclass(frozen=True)
class FeatsScores:
    """Scores of FEATS values.

    Attributes
    ----------
    n_words, n_right : number of words, and of words whose whole list of features is right
    n_right_universal : number of words whose universal features are right (UFeats of the CoNLL 2018 shared task)
    by_feature : counts of each feature, by its name
    all_features : counts of all features together; a feature is right if its name and value are
    n_unknown, n_unknown_right : number of words whose gold combination of features is not in `known` of `feats_scores`
        (what a tagger learnt), and of the right ones among them
    """

    n_words: int
    n_right: int
    n_right_universal: int
    by_feature: dict[str, FeatureCounts]
    all_features: FeatureCounts
    n_unknown: int = 0
    n_unknown_right: int = 0

    @property
    def accuracy(self) -> float:
        """The share of words whose whole list of features is right."""
        return self.n_right / self.n_words

    @property
    def ufeats(self) -> float:
        """The share of words whose universal features are right."""
        return self.n_right_universal / self.n_words

    @property
    def unknown_share(self) -> float:
        """The share of words with an unknown combination of features: a tagger of whole lists gets them wrong."""
        return self.n_unknown / self.n_words


def feats_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], known: Collection[str] | None = None
) -> FeatsScores:
    """Return scores of words' FEATS (``Case=Nom|Number=Sing``, ``_``), sentence by sentence; order does not matter.

    known : the FEATS values that a tagger knows; words with other gold values are counted as unknown

    Raises ValueError if lengths differ, there are no words, or a value is not a list of features.
    """
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} sentences of gold features, {len(predicted)} of predicted ones")
    split: dict[str, dict[str, str]] = {}

    def features(cell: str) -> dict[str, str]:
        if cell not in split:
            split[cell] = split_feats(cell)
        return split[cell]

    combinations = None if known is None else {frozenset(features(cell).items()) for cell in known}
    n = right = universal = unknown = unknown_right = 0
    in_gold, in_guess, rights, wrongs = (Counter[str]() for _ in range(4))  # words by feature
    for i, (one, other) in enumerate(zip(gold, predicted, strict=True)):
        if len(one) != len(other):
            raise ValueError(f"sentence {i}: {len(one)} words with gold features, {len(other)} with predicted ones")
        for truth, guess in ((features(a), features(b)) for a, b in zip(one, other, strict=True)):
            n += 1
            same = truth == guess
            right += same
            wrong = {key for key in (*truth, *guess) if truth.get(key) != guess.get(key)}
            universal += not wrong & UNIVERSAL
            if combinations is not None and frozenset(truth.items()) not in combinations:
                unknown += 1
                unknown_right += same
            in_gold.update(truth.keys())
            in_guess.update(guess.keys())
            wrongs.update(wrong)
            rights.update((truth.keys() | guess.keys()) - wrong)
    if not n:
        raise ValueError("there are no words to score")
    by_feature = {
        key: FeatureCounts(in_gold[key], in_guess[key], rights[key], n - wrongs[key], n)
        for key in sorted(in_gold | in_guess, key=lambda key: (-in_gold[key], key))
    }
    together = FeatureCounts(in_gold.total(), in_guess.total(), rights.total(), right, n)
    return FeatsScores(n, right, universal, by_feature, together, unknown, unknown_right)
