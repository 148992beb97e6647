"""Sentences and trees as the constituency parser takes them. Errors are ValueErrors that name the sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any, cast

from partwise.io.trees import Tree, words_of
from partwise.models.constituents.treebank.transform import TreeTransform
from partwise.models.readers import as_list


def is_tree(item: object) -> bool:
    """Return whether this is a tree rather than a list of words."""
    return isinstance(item, tuple) and any(isinstance(child, tuple) for child in item)


def as_trees(X: object, name: str) -> list[Any]:
    """Return a list of sentences or trees."""
    return as_list(X, f"{name} must be a list of {'trees' if name == 'y' else 'sentences'}", single=is_tree(X))


def chart_bytes(n_words: int, n_symbols: int) -> float:
    """Return memory of a chart: two triangles of values and two of slopes for each symbol."""
    return 16.0 * n_words * (n_words + 1) * n_symbols


def read_sentences(X: object, transform: TreeTransform, max_length: int) -> list[list[str]]:
    """Return the words of all sentences, which may be given as trees; `transform` cleans these."""
    sentences = []
    for i, item in enumerate(as_trees(X, "X")):
        if is_tree(item):
            words = words_of(transform.cleaned(item, f"sentence {i}"))
        elif isinstance(item, (str, bytes, dict)) or not isinstance(item, Sized):
            raise ValueError(f"sentence {i} must be a list of words, got {type(item).__name__}")
        else:
            words = list(cast(Iterable[Any], item))
            for k, word in enumerate(words):
                if not isinstance(word, str) or not word:
                    raise ValueError(f"sentence {i}, word {k + 1}: a word must be a string, not empty; got {word!r}")
        if len(words) > max_length:
            raise ValueError(
                f"sentence {i} has {len(words)} words, more than max_length = {max_length}: it would take about "
                f"{chart_bytes(len(words), 1) / 1e6:.2g} MB for each symbol of the grammar, and time grows with the "
                "third power of the length; leave it out or raise that limit"
            )
        sentences.append(words)
    return sentences


def read_gold(X: object, y: object, transform: TreeTransform, max_length: int) -> list[Tree]:
    """Return the cleaned trees of the training data: y, or X if y is None. They must have the words of X."""
    if y is None:
        X = y = as_trees(X, "X")
        for i, item in enumerate(y):
            if not is_tree(item):
                raise ValueError(f"sentence {i} has no tree: give y, or trees in place of sentences")
    given = as_trees(y, "y")
    sentences = read_sentences(X, transform, max_length)
    if len(sentences) != len(given):
        raise ValueError(f"X has {len(sentences)} sentences, y has {len(given)} trees")
    trees = [transform.cleaned(tree, f"y: tree {i}") for i, tree in enumerate(given)]
    for i, (words, tree) in enumerate(zip(sentences, trees, strict=True)):
        check_same_words(tree, words, i)
    return trees


def check_same_words(tree: Tree, words: list[str], i: int) -> None:
    """Raise ValueError if the tree of sentence i has other words than the sentence."""
    own = words_of(tree)
    if own != words:
        at = next((k for k, (a, b) in enumerate(zip(own, words, strict=False)) if a != b), min(len(own), len(words)))
        found = f"its word {at + 1} is {own[at]!r}" if at < len(own) else f"it has {len(own)} words"
        raise ValueError(f"y: the tree of sentence {i} does not have the sentence's words: {found}")
