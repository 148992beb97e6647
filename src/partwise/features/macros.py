"""What a template can look at: a cell as it is, or a function of it.

A function takes a string to another or to None, where there is nothing to say; it is called once for each distinct
string of a column, in Python, so that letters and digits are what Unicode says they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from partwise._core import CodedColumn, Sentences
from partwise.io.conllu import split_feats

Function = Callable[[str], str | None]


def shape(word: str) -> str:
    """The word with X for capitals, x for other letters and d for digits: "McDonald-2" is "XxXxxxxx-d"."""
    return "".join(
        "X" if c.isupper() or c.istitle() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word
    )


def short_shape(word: str) -> str:
    """The shape with runs of one kind as one: "XxXx-d"."""
    return re.sub(r"(X|x|d)\1+", r"\1", shape(word))


def _flag(test: Callable[[str], bool]) -> Function:
    return lambda word: "" if test(word) else None


def _prefix(n: int) -> Function:
    return lambda word: word[:n] if len(word) >= n else None


def _suffix(n: int) -> Function:
    return lambda word: word[-n:] if len(word) >= n else None


#: Functions without an argument.
PLAIN: dict[str, Function] = {
    "lower": str.lower,
    "shape": shape,
    "shortshape": short_shape,
    "hasdigit": _flag(lambda word: any(map(str.isdigit, word))),
    "hasupper": _flag(lambda word: any(map(str.isupper, word))),
    "hashyphen": _flag(lambda word: "-" in word),
    "alldigits": _flag(lambda word: word.isdigit()),
    "allupper": _flag(lambda word: word.isupper()),
    "capital": _flag(lambda word: word[:1].isupper()),
}
#: Functions of a length: the first or last n characters, None if there are fewer.
COUNTED: dict[str, Callable[[int], Function]] = {"prefix": _prefix, "suffix": _suffix}

#: Words of a phrase; more would be a text, and looking for it take as long at every word of a sentence.
MOST_WORDS = 100
#: What ends a phrase: no word, as words have no spaces.
_END = " "

_Words = dict[str, Any]


class Gazetteer:
    """Phrases to be found in sentences, whatever their case: "B" at a match's first token, "I" at the others.

    The longest match from the left counts, and matches do not overlap.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        phrases = list(phrases)
        for phrase in phrases:
            if not isinstance(phrase, str):
                raise ValueError(f"a gazetteer must hold phrases, got {phrase!r:.60}")
        self.phrases = tuple(dict.fromkeys(" ".join(phrase.lower().split()) for phrase in phrases))
        self._next: _Words = {}
        for phrase in self.phrases:
            words = phrase.split()
            if not words:
                raise ValueError("a gazetteer has an empty phrase")
            if len(words) > MOST_WORDS:
                raise ValueError(
                    f"a gazetteer has a phrase of {len(words)} words, more than {MOST_WORDS}: {words[0]} ..."
                )
            node = self._next
            for word in words:
                node = node.setdefault(word, {})
            node[_END] = None

    def mark(self, tokens: Sequence[str]) -> list[str | None]:
        """B, I or None for each token of a sentence."""
        words = [token.lower() for token in tokens]
        marks: list[str | None] = [None] * len(words)
        t = 0
        while t < len(words):
            length = self._longest_match(words, t)
            marks[t : t + length] = ["B", *["I"] * (length - 1)] if length else []
            t += max(length, 1)
        return marks

    def _longest_match(self, words: list[str], t: int) -> int:
        """Number of words of the longest phrase that begins at word t, or 0."""
        node, end, longest = self._next.get(words[t]), t + 1, 0
        while node is not None:
            if _END in node:
                longest = end - t
            node = node.get(words[end]) if end < len(words) else None
            end += 1
        return longest

    def column(self, sentences: Sentences, j: int) -> CodedColumn:
        """The marks of all tokens."""
        marks: list[str | None] = []
        for tokens in sentences.column(j):
            marks += self.mark(tokens)
        return CodedColumn.from_list(marks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gazetteer) and self.phrases == other.phrases

    def __hash__(self) -> int:
        return hash(self.phrases)


def cluster_function(clusters: Mapping[str, str], n: int) -> Function:
    """The first n bits of a word's cluster (all, if it has fewer); None for words in no cluster."""

    def function(word: str) -> str | None:
        path = clusters.get(word)
        return None if path is None else path[:n]

    return function


def feature_function(key: str) -> Function:
    """The value of one feature of a list such as Case=Nom|Number=Sing; None where there is none.

    ValueError for a cell that is no such list.
    """
    return lambda cell: split_feats(cell).get(key)
