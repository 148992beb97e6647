"""Scores of constituent trees: PARSEVAL's labelled brackets, as EVALB counts them with COLLINS.prm.

A bracket is a phrase's label with the words it covers. Words with the tags in `DELETED` (punctuation, empty elements)
are removed first, then phrases with such labels and those without words. Labels count up to their function tags
(NP-SBJ as NP), ADVP and PRT are one. Brackets are matched as multisets: a chain of two equal phrases is two brackets.

EVALB leaves a sentence out of its figures where the two trees disagree about punctuation or there is no parse. Here no
sentence is left out: the gold tags alone decide which words are punctuation, and without a parse all gold brackets are
missed and all tags wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from itertools import compress
from typing import Any

from partwise.io.trees import EMPTY, Tree, check_tree, is_leaf, is_parsed, leaves
from partwise.metrics.labels import Ratios, share

#: Labels that do not count: the top node, empty elements, punctuation.
DELETED = frozenset(("TOP", "", EMPTY, ",", ":", "``", "''", "."))
#: Labels that count as another one.
EQUAL = {"PRT": "ADVP"}
_SUFFIX = re.compile(r"(?<=.)[-=].*", re.DOTALL)

Bracket = tuple[str, int, int]


@dataclass
class ParsevalScores(Ratios):
    """Counts of brackets and tags; shares are between 0 and 1.

    Attributes
    ----------
    n_sentences, n_failed : all sentences, and those without a parse
    n_gold, n_predicted, n_right : brackets
    n_exact : sentences with all brackets right and no other
    n_crossing : predicted brackets that cross a gold bracket
    n_without_crossing, n_few_crossing : parsed sentences with none of those, and with two or fewer
    n_words, n_right_tags : words that are not punctuation, and those with the right tag
    short : the same for sentences of at most `max_length` words
    max_length : the length of a short sentence
    labels : for each label its gold, predicted and right brackets
    """

    n_sentences: int = 0
    n_failed: int = 0
    n_gold: int = 0
    n_predicted: int = 0
    n_right: int = 0
    n_exact: int = 0
    n_crossing: int = 0
    n_without_crossing: int = 0
    n_few_crossing: int = 0
    n_words: int = 0
    n_right_tags: int = 0
    max_length: int = 40
    short: ParsevalScores | None = None
    labels: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def exact(self) -> float:
        """The share of sentences whose whole tree is right."""
        return self.n_exact / self.n_sentences

    @property
    def crossing(self) -> float:
        """Crossing brackets per parsed sentence."""
        return share(self.n_crossing, self.n_sentences - self.n_failed)

    @property
    def without_crossing(self) -> float:
        return share(self.n_without_crossing, self.n_sentences - self.n_failed)

    @property
    def few_crossing(self) -> float:
        return share(self.n_few_crossing, self.n_sentences - self.n_failed)

    @property
    def tag_accuracy(self) -> float:
        """The share of words whose tag is right."""
        return share(self.n_right_tags, self.n_words)

    def add(self, other: ParsevalScores) -> None:
        """Add the counts of other sentences."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for label, counts in other.labels.items():
            own = self.labels.get(label, (0, 0, 0))
            self.labels[label] = tuple(a + b for a, b in zip(own, counts, strict=True))

    def __str__(self) -> str:
        parts = [("all sentences", self)]
        if self.short is not None and self.short.n_sentences > 0:
            parts.append((f"up to {self.max_length} words", self.short))
        lines = [f"{'':28}" + "".join(f" {name:>16}" for name, _ in parts)]
        for title, name in _ROWS.items():
            values = [getattr(each, name) for _, each in parts]
            percent = 1 if name == "crossing" else 100
            texts = [str(value) if isinstance(value, int) else f"{percent * value:.2f}" for value in values]
            lines.append(f"{title:28}" + "".join(f" {text:>16}" for text in texts))
        return "\n".join(lines)


#: What `ParsevalScores.add` adds up.
_COUNTS = [item.name for item in fields(ParsevalScores) if item.name.startswith("n_")]
#: Rows of the table of scores: titles and attributes of `ParsevalScores`, in per cent but for counts.
_ROWS = {
    "sentences": "n_sentences",
    "without a parse": "n_failed",
    "gold brackets": "n_gold",
    "predicted brackets": "n_predicted",
    "labelled precision": "precision",
    "labelled recall": "recall",
    "labelled F1": "f1",
    "exact match": "exact",
    "crossing brackets": "crossing",
    "no crossing": "without_crossing",
    "two or fewer crossing": "few_crossing",
    "tagging accuracy": "tag_accuracy",
}


def parseval(
    gold: Iterable[Tree],
    predicted: Iterable[Tree | None],
    *,
    max_length: int = 40,
    deleted: Iterable[str] = DELETED,
    equal: dict[str, str] | None = None,
) -> ParsevalScores:
    """Compare predicted with gold trees.

    Parameters
    ----------
    gold, predicted : iterables of trees
        Nested tuples. No parse: None, or a tree whose attribute `parsed` is False.
    max_length : sentences of at most so many words (empty elements not counted) are scored once more, as `short`
    deleted : tags of words that are removed, and labels of phrases that do not count
    equal : labels that count as other ones; by default PRT as ADVP

    Raises ValueError if the numbers of trees differ, there are none, something is not a tree, or words differ.
    """
    truths, guesses = list(gold), list(predicted)
    if len(truths) != len(guesses):
        raise ValueError(f"{len(truths)} gold trees, {len(guesses)} predicted ones")
    if not truths:
        raise ValueError("there are no trees to score")
    rules = _Rules(frozenset(deleted), EQUAL if equal is None else equal)
    every, short = ParsevalScores(max_length=max_length), ParsevalScores(max_length=max_length)
    for i, (truth, guess) in enumerate(zip(truths, guesses, strict=True)):
        check_tree(truth, f"gold tree {i}")
        if guess is not None:
            check_tree(guess, f"predicted tree {i}")
        length, one = rules.compare(truth, guess, i)
        for scores in (every, short) if length <= max_length else (every,):
            scores.add(one)
    for scores in (every, short):
        scores.labels = dict(sorted(scores.labels.items()))
    every.short = short
    return every


@dataclass(frozen=True)
class _Rules:
    """Which brackets and words count."""

    deleted: frozenset[str]
    equal: dict[str, str]

    def compare(self, truth: Tree, guess: Tree | None, i: int) -> tuple[int, ParsevalScores]:
        whole = list(leaves(truth))
        present = [tag != EMPTY for tag, _ in whole]
        words = list(compress(whole, present))
        keep = [tag not in self.deleted for tag, _ in words]
        right = self.brackets(truth, keep, present)
        failed = guess is None or not is_parsed(guess)
        found: Counter[Bracket] = Counter()
        tags = 0
        if guess is not None:
            others = list(leaves(guess))
            # Where the guess has the gold tree's empty elements, too, gold tags alone say which these are.
            if [word for _, word in others] != [word for _, word in whole]:
                present = [tag != EMPTY for tag, _ in others]
            others = list(compress(others, present))
            _check_words([word for _, word in words], [word for _, word in others], i)
            if not failed:
                found = self.brackets(guess, keep, present)
                names = [
                    [None if tag is None else self.equal.get(tag, tag) for tag, _ in side] for side in (words, others)
                ]
                tags = sum(kept and one == other for kept, one, other in zip(keep, *names, strict=True))
        common = right & found
        n_gold, n_found, n_common = right.total(), found.total(), common.total()
        scores = ParsevalScores(1, failed, n_gold, n_found, n_common, n_words=sum(keep), n_right_tags=tags)
        if not failed:
            scores.n_exact = n_gold == n_found == n_common
            scores.n_crossing = _crossing(right, found)
            scores.n_without_crossing, scores.n_few_crossing = scores.n_crossing == 0, scores.n_crossing <= 2
        by_label = [Counter(label for label, _, _ in brackets.elements()) for brackets in (right, found, common)]
        scores.labels = {label: tuple(counts[label] for counts in by_label) for label in by_label[0] | by_label[1]}
        return len(words), scores

    def brackets(self, tree: Tree, keep: list[bool], present: list[bool]) -> Counter[Bracket]:
        """Return the brackets that count, over the words that are kept; present: leaves that are not empty elements."""
        found: Counter[Bracket] = Counter()
        there = iter(present)
        at = 0  # the next word's number, empty elements not counted
        kept = 0  # how many of the words before it are kept
        waiting: list[Tree | str | list[Any]] = [tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, list):  # a phrase whose words are all seen: its label, and where it began
                label, begin = node
                if begin < kept and label not in self.deleted:
                    found[self.equal.get(label, label), begin, kept] += 1
            elif isinstance(node, str) or is_leaf(node):
                if next(there):
                    kept += keep[at]
                    at += 1
            else:
                waiting.append([_SUFFIX.sub("", node[0], count=1), kept])
                waiting.extend(reversed(node[1:]))
        return found


def _crossing(gold: Counter[Bracket], predicted: Counter[Bracket]) -> int:
    """Return how many predicted brackets overlap a gold bracket with neither inside the other."""
    spans = {(begin, end) for _, begin, end in gold}
    return sum(n for (_, c, d), n in predicted.items() if any(a < c < b < d or c < a < d < b for a, b in spans))


def _check_words(gold: list[str], predicted: list[str], i: int) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"sentence {i} has {len(gold)} words in gold, {len(predicted)} in the prediction")
    for k, (word, other) in enumerate(zip(gold, predicted, strict=True), 1):
        if word != other:
            raise ValueError(f"sentence {i}: word {k} is {word!r} in gold, {other!r} in the prediction")
