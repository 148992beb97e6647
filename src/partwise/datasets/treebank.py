"""A treebank from a small hand-written grammar: tags, chunks, dependencies and constituents that have to be learnt.

Difficulties are words with several tags ("saw", "her", "fish", ...) that only their neighbours, and sometimes not even
these ("she saw her duck"), tell apart; new words; phrases that belong to the verb or to the noun before them, by the
words on either side (one sees a baker *with a telescope* but a baker *with a scarf*, hits a nail *with a hammer* but
sees a man *with a hammer*); coordination and nested clauses. One phrase in twenty is attached against the rule, so that
no parser gets everything right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partwise.datasets.grammar import Grammar, Phrase, Word
from partwise.io.trees import Tree, format_tree

#: Universal parts of speech of the grammar's tags; "IN" is a preposition but for the "that" of a subordinate sentence,
#: and a file has one name for a tag.
UNIVERSAL = {
    "DT": "DET", "NN": "NOUN", "NNP": "PROPN", "PRP": "PRON", "PRP$": "PRON", "WDT": "PRON", "JJ": "ADJ", "RB": "ADV",
    "VBD": "VERB", "VB": "VERB", "MD": "AUX", "IN": "ADP", "CC": "CCONJ", ".": "PUNCT",
}  # fmt: skip


@dataclass(frozen=True)
class Treebank:
    """Sentences with their words, tags, heads and trees: one entry per sentence in every list.

    heads : the number of each word's head, counted from 1; 0 is the root
    labels : the names of the arcs from a word's head to it
    trees : nested tuples: ``("S", ("NP", ("NNP", "Ada")), ("VP", ("VBD", "slept")), (".", "."))``
    """

    words: list[list[str]]
    tags: list[list[str]]
    heads: list[list[int]]
    labels: list[list[str]]
    trees: list[Tree]

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, part: slice) -> Treebank:
        """Return a part of the treebank: ``treebank[:100]``."""
        if not isinstance(part, slice):
            raise TypeError("a treebank is cut by slices, as in treebank[:100]")
        return Treebank(self.words[part], self.tags[part], self.heads[part], self.labels[part], self.trees[part])

    @property
    def chunks(self) -> list[list[str]]:
        """Chunk labels in IOB2: the words that lie directly under a phrase, as in the CoNLL-2000 task."""
        return [_chunks(tree) for tree in self.trees]

    def columns(self, wrong_tags: float = 0.0) -> str:
        """Return the text of a file of columns: word, tag, chunk label.

        wrong_tags : share of tags that are another word's, as if a tagger had made them; the same ones each time
        """
        tags = self.tags
        if wrong_tags > 0:
            rng = np.random.default_rng(len(self))
            pool = [tag for row in self.tags for tag in row]
            tags = [[tag if rng.random() >= wrong_tags else str(rng.choice(pool)) for tag in row] for row in self.tags]
        sentences = zip(self.words, tags, self.chunks, strict=True)
        return "\n".join("".join(f"{' '.join(row)}\n" for row in zip(*rows, strict=True)) for rows in sentences)

    def conllu(self) -> str:
        """Return the text of a CoNLL-U file."""
        lines = []
        for rows in zip(self.words, self.tags, self.heads, self.labels, strict=True):
            for number, (word, tag, head, label) in enumerate(zip(*rows, strict=True), 1):
                lines.append(f"{number}\t{word}\t_\t{UNIVERSAL[tag]}\t{tag}\t_\t{head}\t{label}\t_\t_\n")
            lines.append("\n")
        return "".join(lines)

    def bracketed(self) -> str:
        """Return the text of a file of bracketed trees, one per line."""
        return "".join(f"({format_tree(tree)})\n" for tree in self.trees)


def make_treebank(n: int, seed: int = 0, *, nonprojective: float = 0.0) -> Treebank:
    """Draw sentences with tags, heads and trees from a small English-like grammar.

    Parameters
    ----------
    n : number of sentences
    seed : the same seed gives the same sentences; the first k of n sentences are those of n = k
    nonprojective : share of sentences in which a phrase stands apart from the noun it belongs to ("the baker slept
        with a scarf"), so that arcs cross. In its tree such a phrase is a child of the sentence.
    """
    if n < 0:
        raise ValueError(f"n={n} is negative")
    if not 0.0 <= nonprojective <= 1.0:
        raise ValueError(f"nonprojective={nonprojective} is not between 0 and 1")
    treebank = Treebank([], [], [], [], [])
    grammar = Grammar(np.random.default_rng(seed))
    for _ in range(n):
        sentence = grammar.sentence(nonprojective)
        words = sentence.leaves()
        number = {id(word): i for i, word in enumerate(words, 1)}
        treebank.words.append([word.text for word in words])
        treebank.tags.append([word.tag for word in words])
        treebank.heads.append([0 if word.head is None else number[id(word.head)] for word in words])
        treebank.labels.append([word.relation for word in words])
        treebank.trees.append(_tree(sentence))
    return treebank


def _tree(node: Phrase | Word) -> Tree:
    return (node.tag, node.text) if isinstance(node, Word) else (node.label, *map(_tree, node.children))


def _chunks(tree: Tree) -> list[str]:
    labels: list[str] = []
    prefix = "B"
    for child in tree[1:]:
        is_phrase = isinstance(child[1], tuple)
        outside = tree[0] == "S" or child[0] == "CC"
        labels += _chunks(child) if is_phrase else ["O" if outside else f"{prefix}-{tree[0]}"]
        prefix = "B" if is_phrase or outside else "I"
    return labels
