"""Sentences, trees and spans as the constituency parser takes them. Errors are ValueErrors that name the sentence."""

from collections.abc import Collection, Iterable, Sized
from typing import Any, cast

import numpy as np

from partwise.io.trees import Tree, words_of
from partwise.models.constituents.treebank.transform import TreeTransform
from partwise.models.readers import as_list, as_trees

#: Label (None: any), begin and end.
Span = tuple[str | None, int, int]


def is_tree(item: object) -> bool:
    """Return whether this is a tree rather than a list of words."""
    return isinstance(item, tuple) and any(isinstance(child, tuple) for child in item)


def chart_bytes(n_words: int, n_symbols: int) -> float:
    """Return the bytes of a chart: two triangles of values and two of slopes for each symbol."""
    return 16.0 * n_words * (n_words + 1) * n_symbols


def read_sentences(X: object, transform: TreeTransform, max_length: int) -> list[list[str]]:
    """Return the words of all sentences, which may be given as trees; `transform` cleans these."""
    sentences = []
    for i, item in enumerate(as_list(X, "X must be a list of sentences", single=is_tree(X))):
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
        X = y = as_list(X, "X must be a list of sentences", single=is_tree(X))
        for i, item in enumerate(y):
            if not is_tree(item):
                raise ValueError(f"sentence {i} has no tree: give y, or trees in place of sentences")
    sentences = read_sentences(X, transform, max_length)
    given = as_trees(y, len(sentences), single=is_tree(y))
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


def read_spans(given: object, name: str, sentence: str, n: int, labels: Collection[str]) -> list[Span]:
    """Read spans (begin, end) or (label, begin, end) as (label or None, begin, end); labels: those known."""
    if given is None:
        return []
    if isinstance(given, (str, dict)) or not isinstance(given, Iterable):
        raise ValueError(f"{name}: {sentence} needs None or a list of spans, got {given!r}")
    spans: list[Span] = []
    for item in given:
        parts = tuple(item) if isinstance(item, (tuple, list)) else ()
        label, ends = (parts[0], parts[1:]) if len(parts) == 3 else (None, parts)
        whole = len(ends) == 2 and all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in ends)
        if not whole or not (label is None or isinstance(label, str)):
            raise ValueError(f"{name}: {sentence}: {item!r} is not a span: (begin, end) or (label, begin, end)")
        if not 0 <= ends[0] < ends[1] <= n:
            raise ValueError(f"{name}: {sentence}: there is no span {item!r} in {n} words")
        if label is not None and label not in labels:
            raise ValueError(f"{name}: {sentence}: the model has no label {label!r}")
        spans.append((label, int(ends[0]), int(ends[1])))
    return spans
