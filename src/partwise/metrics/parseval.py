"""Scores of constituent trees: PARSEVAL's labelled brackets, as EVALB counts them with COLLINS.prm.

A bracket is a phrase's label with the words it covers. Words with the tags in `DELETED` (punctuation, empty elements)
are taken out first, then phrases with such labels and those without words. Labels count up to their function tags
(NP-SBJ as NP), ADVP and PRT are one. Brackets are matched as multisets: a chain of two equal phrases is two brackets.

EVALB leaves a sentence out of its figures where the two trees disagree about punctuation or there is no parse. Here no
sentence is left out: the gold tags alone decide which words are punctuation, and without a parse all gold brackets are
missed and all tags wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from partwise.metrics.ratios import Ratios
from partwise.models.constituents.treebank.trees import EMPTY, Tree, check_tree, is_leaf, is_parsed, leaves

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
    short : the same for sentences of at most `max_length` words; None inside of itself
    max_length : what `short` means
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
    labels: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    @property
    def exact(self) -> float:
        """The share of sentences whose whole tree is right."""
        return self.n_exact / self.n_sentences

    @property
    def crossing(self) -> float:
        """Crossing brackets per parsed sentence."""
        return self._per_parse(self.n_crossing)

    @property
    def without_crossing(self) -> float:
        """Share of the parsed sentences."""
        return self._per_parse(self.n_without_crossing)

    @property
    def few_crossing(self) -> float:
        """Share of the parsed sentences."""
        return self._per_parse(self.n_few_crossing)

    @property
    def tag_accuracy(self) -> float:
        """The share of words whose tag is right."""
        return self.n_right_tags / self.n_words if self.n_words else 0.0

    def _per_parse(self, n: int) -> float:
        parsed = self.n_sentences - self.n_failed
        return n / parsed if parsed else 0.0

    def __str__(self) -> str:
        parts = [("all sentences", self)]
        if self.short is not None and self.short.n_sentences > 0:
            parts.append((f"up to {self.max_length} words", self.short))
        lines = [f"{'':28}" + "".join(f" {name:>16}" for name, _ in parts)]
        for name, value in _ROWS:
            lines.append(f"{name:28}" + "".join(f" {value(each):>16}" for _, each in parts))
        return "\n".join(lines)


_ROWS: list[tuple[str, Any]] = [
    ("sentences", lambda each: each.n_sentences),
    ("without a parse", lambda each: each.n_failed),
    ("gold brackets", lambda each: each.n_gold),
    ("predicted brackets", lambda each: each.n_predicted),
    ("labelled precision", lambda each: f"{100 * each.precision:.2f}"),
    ("labelled recall", lambda each: f"{100 * each.recall:.2f}"),
    ("labelled F1", lambda each: f"{100 * each.f1:.2f}"),
    ("exact match", lambda each: f"{100 * each.exact:.2f}"),
    ("crossing brackets", lambda each: f"{each.crossing:.2f}"),
    ("no crossing", lambda each: f"{100 * each.without_crossing:.2f}"),
    ("two or fewer crossing", lambda each: f"{100 * each.few_crossing:.2f}"),
    ("tagging accuracy", lambda each: f"{100 * each.tag_accuracy:.2f}"),
]


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
    deleted : tags of words that are taken out, and labels of phrases that do not count
    equal : labels that count as other ones; by default PRT as ADVP

    Raises
    ------
    ValueError
        If the numbers of trees differ, there are none, something is not a tree, or two trees have different words.
    """
    truths, guesses = list(gold), list(predicted)
    if len(truths) != len(guesses):
        raise ValueError(f"{len(truths)} gold trees, {len(guesses)} predicted ones")
    if not truths:
        raise ValueError("there are no trees to score")
    rules = _Rules(frozenset(deleted), EQUAL if equal is None else equal)
    every, short = _Sums(), _Sums()
    for i, (truth, guess) in enumerate(zip(truths, guesses, strict=True)):
        check_tree(truth, f"gold tree {i}")
        if guess is not None:
            check_tree(guess, f"predicted tree {i}")
        length, one = rules.compare(truth, guess, i)
        every.add(one)
        if length <= max_length:
            short.add(one)
    return every.scores(max_length, short.scores(max_length))


@dataclass(frozen=True)
class _Comparison:
    gold: Counter[Bracket]
    predicted: Counter[Bracket]
    failed: bool
    crossing: int
    n_words: int
    n_right_tags: int


class _Rules:
    def __init__(self, deleted: frozenset[str], equal: dict[str, str]) -> None:
        self.deleted = deleted
        self.equal = equal

    def compare(self, truth: Tree, guess: Tree | None, i: int) -> tuple[int, _Comparison]:
        """The sentence's length and what is to be counted of it."""
        words = [(tag, word) for tag, word in leaves(truth) if tag != EMPTY]
        keep = [tag not in self.deleted for tag, _ in words]
        right = self.brackets(truth, keep, [tag != EMPTY for tag, _ in leaves(truth)])
        failed = guess is None or not is_parsed(guess)
        found: Counter[Bracket] = Counter()
        tags = 0
        if guess is not None:
            others = list(leaves(guess))
            # Where the guess has the gold tree's empty elements, too, gold tags alone say which these are.
            whole = list(leaves(truth))
            if [word for _, word in others] == [word for _, word in whole]:
                present = [tag != EMPTY for tag, _ in whole]
            else:
                present = [tag != EMPTY for tag, _ in others]
            others = [leaf for leaf, there in zip(others, present, strict=True) if there]
            _check_words([word for _, word in words], [word for _, word in others], i)
            if not failed:
                found = self.brackets(guess, keep, present)
                pairs = zip(keep, words, others, strict=True)
                tags = sum(kept and self.same_tag(one[0], other[0]) for kept, one, other in pairs)
        return len(words), _Comparison(right, found, failed, _crossing(right, found), sum(keep), tags)

    def same_tag(self, tag: str | None, other: str | None) -> bool:
        return tag == other or (tag is not None and other is not None and self.name(tag) == self.name(other))

    def name(self, label: str) -> str:
        return self.equal.get(label, label)

    def brackets(self, tree: Tree, keep: list[bool], present: list[bool]) -> Counter[Bracket]:
        """The brackets that count, over the words that are kept; `present`: which leaves are no empty elements."""
        found: Counter[Bracket] = Counter()
        there = iter(present)
        at = 0  # the next word's number, empty elements not counted
        kept = 0  # how many of the words before it are kept
        waiting: list[Any] = [tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, list):  # a phrase whose words are all seen: its label, and where it began
                label, begin = node
                if begin < kept and label not in self.deleted:
                    found[self.name(label), begin, kept] += 1
            elif isinstance(node, str) or is_leaf(node):
                if next(there):
                    kept += keep[at]
                    at += 1
            else:
                waiting.append([_SUFFIX.sub("", node[0], count=1), kept])
                waiting.extend(reversed(node[1:]))
        return found


def _crossing(gold: Counter[Bracket], predicted: Counter[Bracket]) -> int:
    """How many predicted brackets overlap a gold one with neither inside the other."""
    spans = {(begin, end) for _, begin, end in gold}
    return sum(
        n
        for (_, begin, end), n in predicted.items()
        if any(a < begin < b < end or begin < a < end < b for a, b in spans)
    )


def _check_words(gold: list[str], predicted: list[str], i: int) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"sentence {i} has {len(gold)} words in gold, {len(predicted)} in the prediction")
    for k, (word, other) in enumerate(zip(gold, predicted, strict=True), 1):
        if word != other:
            raise ValueError(f"sentence {i}: word {k} is {word!r} in gold, {other!r} in the prediction")


class _Sums:
    def __init__(self) -> None:
        self.scores_so_far = ParsevalScores()
        self.by_label: dict[str, list[int]] = {}

    def add(self, one: _Comparison) -> None:
        sums = self.scores_so_far
        common = one.gold & one.predicted
        n_gold, n_predicted, n_right = one.gold.total(), one.predicted.total(), common.total()
        sums.n_sentences += 1
        sums.n_gold += n_gold
        sums.n_predicted += n_predicted
        sums.n_right += n_right
        sums.n_words += one.n_words
        sums.n_right_tags += one.n_right_tags
        for column, brackets in enumerate((one.gold, one.predicted, common)):
            for (label, _, _), n in brackets.items():
                self.by_label.setdefault(label, [0, 0, 0])[column] += n
        if one.failed:
            sums.n_failed += 1
            return
        sums.n_exact += n_gold == n_predicted == n_right
        sums.n_crossing += one.crossing
        sums.n_without_crossing += one.crossing == 0
        sums.n_few_crossing += one.crossing <= 2

    def scores(self, max_length: int, short: ParsevalScores | None = None) -> ParsevalScores:
        found = self.scores_so_far
        found.max_length, found.short = max_length, short
        found.labels = {label: (a, b, c) for label, (a, b, c) in sorted(self.by_label.items())}
        return found
