"""Files of rules for ``partwise predict --constraints``: about labels, heads of words, spans.

Rules about labels, one per line; ``#`` begins a comment, and blank lines are skipped:

    scheme iob2              labels follow each other as the scheme wants it (iob1, iob2, iobes)
    forbid B-NP I-VP         I-VP may not follow B-NP; * is any label, ^ the sentence's beginning, $ its end
    word Rockwell B-NP I-NP  a token whose first column is this word has one of these labels
    token 3 7 B-NP           token 7 of sentence 3 (both counted from 1) has one of these labels
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.cli.errors import UserError
from partwise.io.conllu import is_number
from partwise.io.errors import FormatError
from partwise.io.files import read_text
from partwise.models.constraints import ConstraintError
from partwise.models.sequences.constraints import SCHEMES, rule_of

Bools = NDArray[np.bool_]
#: Words of a line, each with its column in the file.
Words = list[tuple[str, int]]

BEGIN, END, ANY = "^", "$", "*"
#: Rules about labels: how many words each takes, and whether it takes more.
RULES = {"scheme": (1, ""), "forbid": (2, ""), "word": (2, " or more"), "token": (3, " or more")}


@contextmanager
def counting_from_one(path: str, part: str, first: int) -> Iterator[None]:
    """Count from 1 in errors about sentences without an allowed answer; `first` sentences of the file come before."""
    try:
        yield
    except ConstraintError as error:
        place = f"sentence {first + error.sequence + 1}"
        if error.position is not None:
            place += f", {part} {error.position + 1}"
        raise UserError(f"{path}: the rules leave {place} without an answer") from None


@dataclass
class Constraints:
    """Rules over a model's labels, as masks in the order of its `classes_`."""

    labels: list[str]
    follow: Bools
    first: Bools
    last: Bools
    words: dict[str, Bools] = field(default_factory=dict)
    #: By sentence: tokens with their masks, and the errors for a missing sentence and a missing token.
    tokens: dict[int, list[tuple[int, Bools, FormatError, FormatError]]] = field(default_factory=dict)

    def check(self, n_examples: int) -> None:
        """Raise FormatError if a rule is for a sentence beyond the end of a file of this many."""
        for sentence, rules in self.tokens.items():
            if sentence >= n_examples:
                raise rules[0][2]

    def allowed(self, sentences: Sequence[Sequence[str]], before: int = 0) -> list[Bools | None]:
        """Return a mask (length, labels) for each sentence that has rules, else None.

        sentences: words, which are first columns; `before` sentences of the file come before these.
        """
        found: list[Bools | None] = []
        ends = not (self.first.all() and self.last.all())
        for number, words in enumerate(sentences, before):
            masks = [(t, self.words[word]) for t, word in enumerate(words) if word in self.words]
            for t, mask, _, no_token in self.tokens.get(number, ()):
                if t >= len(words):
                    raise no_token
                masks.append((t, mask))
            if not (masks or (ends and words)):
                found.append(None)
                continue
            allowed = np.ones((len(words), len(self.labels)), dtype=bool)
            for t, mask in ((0, self.first), (-1, self.last), *masks):
                allowed[t] &= mask
            found.append(allowed)
        return found


def read_constraints(path: str, labels: Sequence[object]) -> Constraints:
    """Read a file of rules about labels; raise FormatError with the place of a word that is not understood."""
    names = [str(label) for label in labels]
    n = len(names)
    rules = Constraints(names, np.ones((n, n), dtype=bool), np.ones(n, dtype=bool), np.ones(n, dtype=bool))
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.lstrip().startswith("#"):
            _Line(rules, path, number, [(found[0], found.start() + 1) for found in re.finditer(r"\S+", line)]).read()
    return rules


@dataclass
class _Line:
    """One line of rules about labels; its words know their column."""

    rules: Constraints
    path: str
    number: int
    words: Words

    def error(self, message: str, column: int) -> FormatError:
        return FormatError(message, self.path, self.number, column)

    def read(self) -> None:
        if not self.words:
            return
        (rule, column), *rest = self.words
        if rule not in RULES:
            raise self.error(f"unknown rule {rule!r}: there are {', '.join(RULES)}", column)
        least, more = RULES[rule]
        if len(rest) < least or (len(rest) > least and not more):
            raise self.error(f"{rule!r} takes {least}{more} words", column)
        getattr(self, f"_{rule}")(rest)

    def _scheme(self, rest: Words) -> None:
        name, column = rest[0]
        if name not in SCHEMES:
            raise self.error(f"unknown scheme {name!r}: there are {', '.join(SCHEMES)}", column)
        scheme = rule_of(name, tuple(self.rules.labels))
        self.rules.follow &= scheme.pairs
        self.rules.first &= scheme.first
        self.rules.last &= scheme.last

    def _forbid(self, rest: Words) -> None:
        (before, _), (after, _) = rest
        if before == BEGIN:
            self.rules.first &= ~self._mask(rest[1:], star=True)
        elif after == END:
            self.rules.last &= ~self._mask(rest[:1], star=True)
        else:
            self.rules.follow &= ~np.outer(self._mask(rest[:1], star=True), self._mask(rest[1:], star=True))

    def _word(self, rest: Words) -> None:
        word, mask = rest[0][0], self._mask(rest[1:])
        self.rules.words[word] = self.rules.words.get(word, True) & mask

    def _token(self, rest: Words) -> None:
        (sentence, _), (token, _) = rest[:2]
        for text, column in rest[:2]:
            if not (text.isascii() and text.isdigit() and int(text) > 0):
                raise self.error(f"expected a number from 1, got {text!r}", column)
        no_sentence = self.error(f"there is no sentence {sentence}", rest[0][1])
        no_token = self.error(f"there is no token {token} in sentence {sentence}", rest[1][1])
        rule = int(token) - 1, self._mask(rest[2:]), no_sentence, no_token
        self.rules.tokens.setdefault(int(sentence) - 1, []).append(rule)

    def _mask(self, words: Words, star: bool = False) -> Bools:
        labels = self.rules.labels
        mask = np.zeros(len(labels), dtype=bool)
        for word, column in words:
            if star and word == ANY:
                mask[:] = True
            elif word in labels:
                mask[labels.index(word)] = True
            else:
                raise self.error(f"the model has no label {word!r}", column)
        return mask


@dataclass(frozen=True)
class SentenceRules:
    """Rules about single sentences, by the sentence's number from 1; each with its line in the file of rules."""

    path: str
    by_sentence: dict[int, list[tuple[int, Any]]] = field(default_factory=dict)

    def add(self, line: int, sentence: int, rule: tuple[object, ...]) -> None:
        self.by_sentence.setdefault(sentence, []).append((line, rule))

    def check(self, n_examples: int) -> None:
        """Raise FormatError if a rule is for a sentence beyond the end of a file of this many."""
        wrong = [(rules[0][0], k) for k, rules in self.by_sentence.items() if not 1 <= k <= n_examples]
        if wrong:
            line, sentence = min(wrong)
            raise FormatError(f"there is no sentence {sentence}: there are {n_examples}", self.path, line)


class ArcRules(SentenceRules):
    """Rules (rule, word, heads) about the heads of words."""

    def allowed(self, lengths: Sequence[int], before: int = 0) -> list[dict[int, list[int]] | None]:
        """Return for each sentence None or {word: heads that it may have}; `before` sentences come before these."""
        allowed = []
        for sentence, n in enumerate(lengths, before + 1):
            found: dict[int, list[int]] = {}
            for line, (rule, word, heads) in self.by_sentence.get(sentence, ()):
                if not 1 <= word <= n or any(head > n for head in heads):
                    raise FormatError(f"sentence {sentence} has {n} words only", self.path, line)
                choices = set(found.get(word, range(n + 1)))
                found[word] = sorted(choices & set(heads) if rule == "head" else choices - set(heads))
            allowed.append(found or None)
        return allowed


def read_arc_rules(path: str) -> ArcRules:
    """Read rules about heads, one per line: ``head SENTENCE WORD HEAD...`` and ``forbid SENTENCE WORD HEAD...``.

    Sentences and words are counted from 1, the head 0 is the root, and ``#`` begins a comment.
    """
    rules = ArcRules(path)
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        rule, *rest = line.partition("#")[0].split() or [""]
        if not rule:
            continue
        if rule not in ("head", "forbid"):
            raise FormatError(f"unknown rule {rule!r}: there are head and forbid", path, number)
        if len(rest) < 3 or not all(map(is_number, rest)):
            raise FormatError(f"{rule} takes the numbers of a sentence, of a word and of heads", path, number)
        sentence, word, *heads = map(int, rest)
        rules.add(number, sentence, (rule, word, heads))
    return rules


class SpanRules(SentenceRules):
    """Rules (rule, label or None, first word, last word) about spans."""

    def spans(self, lengths: Sequence[int], before: int = 0) -> dict[str, list[Any]]:
        """Return `required` and `forbidden` for `ConstituencyParser`; `before` sentences come before these."""
        found: dict[str, list[Any]] = {"required": [], "forbidden": []}
        for sentence, n in enumerate(lengths, before + 1):
            own: dict[str, list[object]] = {"require": [], "forbid": []}
            for line, (rule, label, begin, end) in self.by_sentence.get(sentence, ()):
                if not 1 <= begin <= end <= n:
                    message = f"there are no words {begin} to {end} in sentence {sentence}: it has {n}"
                    raise FormatError(message, self.path, line)
                own[rule].append((begin - 1, end) if label is None else (label, begin - 1, end))
            found["required"].append(own["require"] or None)
            found["forbidden"].append(own["forbid"] or None)
        return found


def read_span_rules(path: str, labels: Sequence[str]) -> SpanRules:
    """Read rules about spans, one per line: ``require SENTENCE FIRST LAST [LABEL]`` and ``forbid ...``.

    Sentences and words are counted from 1, the last word belongs to the span, and a word that begins with ``#`` begins
    a comment.
    """
    rules = SpanRules(path)
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        words = line.split()
        # A tag may begin with the character, too.
        comments = (k for k, word in enumerate(words) if word.startswith("#") and not (k == 4 and word in labels))
        rule, *rest = words[: next(comments, None)] or [""]
        if not rule:
            continue
        if rule not in ("require", "forbid"):
            raise FormatError(f"unknown rule {rule!r}: there are require and forbid", path, number)
        if not 3 <= len(rest) <= 4 or not all(map(is_number, rest[:3])):
            message = f"{rule} takes the numbers of a sentence, of a first and of a last word, and perhaps a label"
            raise FormatError(message, path, number)
        label = rest[3] if len(rest) > 3 else None
        if label is not None and label not in labels:
            raise FormatError(f"the model has no label {label!r}", path, number)
        sentence, first, last = map(int, rest[:3])
        rules.add(number, sentence, (rule, label, first, last))
    return rules
