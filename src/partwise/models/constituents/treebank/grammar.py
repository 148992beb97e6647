"""The grammar of a treebank: its rules in Chomsky normal form, its roots and its lexicon, with counts.

Words that the lexicon does not have count as their class, which goes by how they are written.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from partwise.io.trees import Tree, is_leaf, postorder
from partwise.support.arrays import Floats, Ints
from partwise.support.lazy import cached_property

#: The class of unknown words whose own class no rare word has: all rare words together.
ANY_CLASS = "any"
#: Suffixes have at most so many characters, and leave at least so many of the word.
LONGEST_SUFFIX, SHORTEST_STEM = 3, 2


@dataclass(frozen=True)
class WordClasses:
    """Classes of words by capitals, digits, hyphens, being first in the sentence, and the longest of `suffixes`."""

    suffixes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, words: Iterable[str], frequent: int = 30) -> WordClasses:
        """Make classes with the suffixes that at least `frequent` of the words have."""
        counts = Counter(suffix for word in words for suffix in _suffixes(word))
        return cls(frozenset(suffix for suffix, n in counts.items() if n >= frequent))

    def __call__(self, word: str, first: bool) -> str:
        """Return the class of a word; `first`: whether its sentence begins with it."""
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
    return [low[-n:] for n in range(min(LONGEST_SUFFIX, len(low) - SHORTEST_STEM), 0, -1) if low[-n:].isalpha()]


@dataclass(frozen=True)
class TreebankGrammar:
    """A grammar in Chomsky normal form with counts (or weights).

    Terminals are numbered: first the words, then the classes of unknown words, the last of which is for all others.

    Attributes
    ----------
    symbols : the symbols, sorted; rules have their numbers
    rules : (n, 3) array of parent, left, right, sorted; `rule_counts` says how often each was seen
    roots : the symbols that trees begin with, sorted, with `root_counts`
    words : the words with entries of their own, sorted
    classes : classes of unknown words; empty if a word outside the lexicon is an error
    lexical : (m, 2) array of symbol, terminal, sorted, with `lexical_counts`
    word_classes : which class a word has; None if there are none
    """

    symbols: tuple[str, ...]
    rules: Ints
    rule_counts: Floats
    roots: Ints
    root_counts: Floats
    words: tuple[str, ...]
    classes: tuple[str, ...]
    lexical: Ints
    lexical_counts: Floats
    word_classes: WordClasses | None = None

    @property
    def n_symbols(self) -> int:
        return len(self.symbols)

    @property
    def n_terminals(self) -> int:
        """Number of words and of classes of unknown words."""
        return len(self.words) + len(self.classes)

    @property
    def usual_root(self) -> str:
        """The symbol that most trees begin with."""
        return self.symbols[int(self.roots[self.root_counts.argmax()])]

    @cached_property
    def symbol_numbers(self) -> dict[str, int]:
        return {symbol: k for k, symbol in enumerate(self.symbols)}

    @cached_property
    def _terminal_numbers(self) -> tuple[dict[str, int], dict[str, int]]:
        words = {word: k for k, word in enumerate(self.words)}
        return words, {name: k for k, name in enumerate(self.classes, len(self.words))}

    def terminals(self, words: Sequence[str]) -> Ints:
        """Return the number of each word of a sentence, or of its class; -1 for a word that has neither."""
        known, classes = self._terminal_numbers
        numbers = [known.get(word, -1) for word in words]
        if self.word_classes is not None:
            for k, number in enumerate(numbers):
                if number < 0:
                    numbers[k] = classes.get(self.word_classes(words[k], k == 0), self.n_terminals - 1)
        return np.array(numbers, dtype=np.int64)

    def check_words(self, words: Sequence[str], what: str = "the sentence") -> Ints:
        """Return `terminals(words)`; ValueError names the first word that is not in the lexicon."""
        numbers = self.terminals(words)
        if len(numbers) and numbers.min() < 0:
            at = int(np.argmin(numbers))
            raise ValueError(f"{what}: the word {words[at]!r} (number {at + 1}) is not in the grammar's lexicon")
        return numbers


def read_off(trees: Iterable[Tree], *, rare: int = 1, frequent_suffix: int = 30) -> TreebankGrammar:
    """Return the grammar of trees in normal form (`TreeTransform.binary`).

    - trees: nodes are (symbol, left, right) or (symbol, word); ValueError names a tree that is not in normal form.
    - rare: words that are seen so many times or fewer count as their class of unknown words, here and in sentences to
      parse; with 0 there are no classes, and a word outside the lexicon is an error.
    - frequent_suffix: a suffix that so many rare words have makes a class.
    """
    counts = GrammarCounts()
    counts.add(trees)
    return counts.grammar(rare, frequent_suffix)


class GrammarCounts:
    """Rules, roots and words of trees in normal form, counted over sets of them."""

    def __init__(self) -> None:
        self._rules: Counter[tuple[str, str, str]] = Counter()
        self._roots: Counter[str] = Counter()
        self._leaves: Counter[tuple[str, str, bool]] = Counter()

    def add(self, trees: Iterable[Tree]) -> None:
        """Count trees; ValueError naming one that is not in normal form."""
        for number, tree in enumerate(trees):
            self._roots[tree[0]] += 1
            first = True
            for node in postorder(tree):
                if is_leaf(node):
                    self._leaves[node[0], node[1], first] += 1
                    first = False
                elif len(node) == 3 and not isinstance(node[1], str) and not isinstance(node[2], str):
                    self._rules[node[0], node[1][0], node[2][0]] += 1
                else:
                    what = f"{node[0]!r} must have two phrases or one word below it"
                    raise ValueError(f"tree {number} is not in normal form: {what}")

    def grammar(self, rare: int = 1, frequent_suffix: int = 30) -> TreebankGrammar:
        """Return the grammar of all trees so far; the parameters are those of `read_off`."""
        if rare < 0:
            raise ValueError(f"rare={rare} must be 0 or more")
        if not self._roots:
            raise ValueError("there are no trees to read a grammar off")
        return numbered_grammar(self._rules, self._roots, self._leaves, rare, frequent_suffix)


def numbered_grammar(
    rules: Mapping[tuple[str, str, str], float],
    roots: Mapping[str, float],
    leaves: Mapping[tuple[str, str, bool], float],
    rare: int = 0,
    frequent_suffix: int = 30,
) -> TreebankGrammar:
    """Return a grammar of counts by names; leaves are (symbol, word, whether it is the first of its sentence)."""
    symbols = sorted({symbol for rule in rules for symbol in rule} | set(roots) | {leaf[0] for leaf in leaves})
    number = {symbol: k for k, symbol in enumerate(symbols)}
    seen: defaultdict[str, float] = defaultdict(float)
    for (_, word, _), n in leaves.items():
        seen[word] += n
    words = sorted(seen if not rare else (word for word, n in seen.items() if n > rare))
    known = {word: k for k, word in enumerate(words)}
    # Without rare words unknown ones would have no class: then all words count once more, as words of their classes.
    unknown = set(seen) - set(known) or set(seen)
    word_classes = WordClasses.of(sorted(unknown), frequent_suffix) if rare else None
    lexical: defaultdict[tuple[int, ...], float] = defaultdict(float)
    by_class: defaultdict[tuple[int, str], float] = defaultdict(float)
    for (symbol, word, first), n in leaves.items():
        if word in known:
            lexical[number[symbol], known[word]] += n
        if word_classes is not None and word in unknown:
            by_class[number[symbol], word_classes(word, first)] += n
    classes = [*sorted({name for _, name in by_class}), ANY_CLASS] if rare else []
    at = {name: k for k, name in enumerate(classes, len(words))}
    for (a, name), n in by_class.items():
        lexical[a, at[name]] += n
        lexical[a, at[ANY_CLASS]] += n
    binary = _arrays({tuple(number[x] for x in rule): n for rule, n in rules.items()}, 3)
    tops, top_counts = _arrays({(number[symbol],): n for symbol, n in roots.items()}, 1)
    names, roots_of = (tuple(words), tuple(classes)), (tops.reshape(-1), top_counts)
    return TreebankGrammar(tuple(symbols), *binary, *roots_of, *names, *_arrays(lexical, 2), word_classes)


def _arrays(counts: Mapping[tuple[int, ...], float], width: int) -> tuple[Ints, Floats]:
    keys = sorted(counts)
    return np.array(keys, dtype=np.int64).reshape(-1, width), np.array([counts[key] for key in keys], dtype=np.float64)
