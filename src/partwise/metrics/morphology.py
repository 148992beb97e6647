"""Scores of morphological features: whole FEATS values, and each feature by itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from partwise.io.conllu import split_feats
from partwise.metrics.ratios import Ratios

#: The features that the CoNLL 2018 shared task's UFeats counts (those of layers such as Number[psor] are not).
UNIVERSAL = frozenset(
    (
        "PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number", "Case", "Definite",
        "Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident", "Polarity", "Person", "Polite",
    )
)  # fmt: skip


@dataclass(frozen=True)
class FeatureCounts(Ratios):
    """How often a feature is there in truth, is predicted, and both with the same value; of `n_words` words.

    `n_same`: words where its value, or its absence, is right.
    """

    n_gold: int
    n_predicted: int
    n_right: int
    n_same: int
    n_words: int

    @property
    def accuracy(self) -> float:
        """The share of words whose values of the feature, or its absence, are right."""
        return self.n_same / self.n_words if self.n_words else 0.0


@dataclass(frozen=True)
class FeatsScores:
    """Scores of FEATS values.

    Attributes
    ----------
    n_words, n_right : words, and those whose whole list of features is right
    n_right_universal : those whose universal features are (UFeats of the CoNLL 2018 shared task)
    by_feature : counts by the feature's name
    all_features : the counts of all features together (key and value)
    n_unknown, n_unknown_right : words whose combination of features is not among those known, and the right ones
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
        """Share of the words whose combination of features is not known: a tagger of whole lists gets none right."""
        return self.n_unknown / self.n_words


def feats_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], known: Collection[str] | None = None
) -> FeatsScores:
    """Scores of FEATS values (``Case=Nom|Number=Sing``, ``_``) of words, sentence by sentence; order does not matter.

    known : the values that a tagger knows; words with others are counted

    Raises
    ------
    ValueError
        If the two are not of the same lengths, there are no words, or a value is no list of features.
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
    counts: dict[str, list[int]] = {}  # gold, predicted, right, wrong words
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
            for key in {*truth, *guess}:
                row = counts.setdefault(key, [0, 0, 0, 0])
                row[0] += key in truth
                row[1] += key in guess
                row[2] += key not in wrong
                row[3] += key in wrong
    if not n:
        raise ValueError("there are no words to score")
    by_feature = {
        key: FeatureCounts(row[0], row[1], row[2], n - row[3], n)
        for key, row in sorted(counts.items(), key=lambda item: (-item[1][0], item[0]))
    }
    n_gold, n_predicted, n_right = (sum(row[k] for row in counts.values()) for k in range(3))
    together = FeatureCounts(n_gold, n_predicted, n_right, right, n)
    return FeatsScores(n, right, universal, by_feature, together, unknown, unknown_right)
