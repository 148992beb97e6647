"""What a tagger of CoNLL-U learns: labels from the columns of a sentence, and labels back to columns.

upos, xpos              the column's values
feats                   the whole list of features as one label, features in the format's order
feats.KEY, misc.KEY     the value of one key, `_` where there is none
lemma-rule              what to do with the form to get the lemma (`partwise.conllu.lemma_rules`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from partwise.conllu.lemma_rules import apply_lemma_rule, lemma_rule
from partwise.io.conllu import (
    FEATS,
    LEMMA,
    MISC,
    UPOS,
    XPOS,
    Column,
    ConlluSentence,
    column_values,
    feats_at,
    has_value,
    join_feats,
)
from partwise.io.errors import FormatError

#: Rules of lemmas that are learnt have been seen so often; words with others are taken for their own lemmas.
RARE = 2

LEMMA_RULE = "lemma-rule"


class Target:
    """A column, or a key of one, as it is.

    Attributes
    ----------
    name : as it is given and remembered, in lower case but for keys
    column : what predictions fill
    """

    def __init__(self, name: str, column: Column) -> None:
        self.name = name
        self.column = column

    def labels(self, sentence: ConlluSentence) -> list[str]:
        """The label of each word."""
        return [value for (value,) in column_values([sentence], [self.column])[0]]

    def values(self, sentence: ConlluSentence, labels: Sequence[str]) -> list[str]:
        """What the column holds for these labels of the sentence's words."""
        return list(labels)

    def put(self, sentence: ConlluSentence, labels: Sequence[str]) -> ConlluSentence:
        """The sentence with these labels in their column."""
        return self.column.put(sentence, self.values(sentence, labels))

    def check(self, sentences: Sequence[ConlluSentence], path: str) -> None:
        """FormatError if the column is blank in every word."""
        if has_value(sentences, self.column):
            return
        if self.column.key is None:
            raise FormatError(f"column {self.column.base.upper()}, the target, is blank (_) in every word", path)
        raise FormatError(f"no word has {self.column.key} in {self.column.base.upper()}, the target", path)

    def training_labels(self, sentences: Sequence[ConlluSentence]) -> list[list[str]]:
        """The labels to learn."""
        return [self.labels(sentence) for sentence in sentences]


class FeatsTarget(Target):
    """Whole FEATS values."""

    def labels(self, sentence: ConlluSentence) -> list[str]:
        cells = sentence.column(FEATS)
        return [join_feats(feats_at(cell, sentence, word)) for word, cell in enumerate(cells, 1)]


class LemmaTarget(Target):
    """Rules from forms to lemmas."""

    def labels(self, sentence: ConlluSentence) -> list[str]:
        return list(map(lemma_rule, sentence.forms, sentence.column(LEMMA)))

    def values(self, sentence: ConlluSentence, labels: Sequence[str]) -> list[str]:
        return list(map(apply_lemma_rule, labels, sentence.forms))

    def training_labels(self, sentences: Sequence[ConlluSentence]) -> list[list[str]]:
        labels = [self.labels(sentence) for sentence in sentences]
        seen = Counter(label for each in labels for label in each)
        return [
            [
                rule if seen[rule] >= RARE else lemma_rule(form, form)
                for rule, form in zip(each, sentence.forms, strict=True)
            ]
            for each, sentence in zip(labels, sentences, strict=True)
        ]


def get_target(text: str) -> Target:
    """A target by its name, in upper or lower case. ValueError if there is none of this name."""
    name = text.strip() if isinstance(text, str) else ""
    if name.lower() == LEMMA_RULE:
        return LemmaTarget(LEMMA_RULE, Column(LEMMA))
    if name.lower() == "lemma":
        raise ValueError("target 'lemma': lemmas are learnt as rules, which is target 'lemma-rule'")
    try:
        column = Column.named(name)
    except ValueError:
        column = None
    if column is None or (column.key is None and column.number not in (UPOS, XPOS, FEATS)):
        raise ValueError(f"there is no target {text!r}: take UPOS, XPOS, FEATS, LEMMA-rule, FEATS.KEY or MISC.KEY")
    if column.number == FEATS and column.key is None:
        return FeatsTarget(column.name, column)
    assert column.number in (UPOS, XPOS, FEATS, MISC)
    return Target(column.name, column)
