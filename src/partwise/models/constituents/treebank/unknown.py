"""Classes of words that the lexicon does not have, by how they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

#: Suffixes have at most so many characters, and leave at least so many of the word.
LONGEST_SUFFIX, SHORTEST_STEM = 3, 2


@dataclass(frozen=True)
class WordClasses:
    """Classes from capitals, digits, hyphens, whether the word is the first, and the longest suffix that is listed.

    Parameters
    ----------
    suffixes : the suffixes that make classes of their own
    """

    suffixes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, words: Iterable[str], frequent: int = 30) -> WordClasses:
        """With the suffixes that at least `frequent` of the words have."""
        counts: Counter[str] = Counter()
        for word in words:
            counts.update(_suffixes(word))
        return cls(frozenset(suffix for suffix, n in counts.items() if n >= frequent))

    def __call__(self, word: str, first: bool) -> str:
        """The class of a word; `first`: whether its sentence begins with it."""
        parts = [_case(word, first)]
        if any(character.isdigit() for character in word):
            parts.append("digit" if any(character.isalpha() for character in word) else "number")
        if "-" in word[1:-1]:
            parts.append("hyphen")
        parts += [f"-{suffix}" for suffix in _suffixes(word) if suffix in self.suffixes][:1]
        return " ".join(parts)


def _case(word: str, first: bool) -> str:
    if not any(character.isalpha() for character in word):
        return "no letters"
    if word == word.lower():
        return "lower"
    if word == word.upper() and len(word) > 1:
        return "capitals"
    if word[:1] != word[:1].lower():
        return "first capital" if first else "capital"
    return "mixed"


def _suffixes(word: str) -> list[str]:
    """Suffixes of letters, the longest first."""
    low = word.lower()
    found = []
    for n in range(min(LONGEST_SUFFIX, len(low) - SHORTEST_STEM), 0, -1):
        if low[-n:].isalpha():
            found.append(low[-n:])
    return found
