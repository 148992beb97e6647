"""Trees as nested tuples: (label, child, ...), where a child is a tree or a word.

Nothing here calls itself: a tree may be deeper than Python's stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

Tree: TypeAlias = tuple[Any, ...]


class FlatTree(tuple[Any, ...]):
    """The answer where there is no parse: all words under one node. It is a tree like others, but `parsed` is False."""

    __slots__ = ()
    parsed = False

    def __getnewargs__(self) -> tuple[tuple[Any, ...]]:
        return (tuple(self),)


def flat_tree(words: Sequence[str], tags: Sequence[str], label: str) -> FlatTree:
    """One node above the tagged words, marked as no parse."""
    if not words:
        raise ValueError("a tree has at least one word")
    return FlatTree((label, *zip(tags, words, strict=True)))


def is_parsed(tree: Tree) -> bool:
    """False for a `FlatTree`."""
    return bool(getattr(tree, "parsed", True))


def is_leaf(tree: Tree) -> bool:
    """Whether a node is a word with its tag."""
    return len(tree) == 2 and isinstance(tree[1], str)


def check_tree(tree: Any, what: str) -> None:
    """ValueError that begins with `what` if something is not a tree: each node has a label and at least one child."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, tuple) or len(node) < 2 or not isinstance(node[0], str):
            raise ValueError(f"{what}: {_short(node)} is not a tree: expected a tuple of a label and children")
        waiting.extend(child for child in node[1:] if not isinstance(child, str))


def leaves(tree: Tree) -> Iterator[tuple[str | None, str]]:
    """(tag, word) of each word from left to right; the tag of a word that has brothers or sisters is None."""
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            yield None, node
        elif is_leaf(node):
            yield node[0], node[1]
        else:
            waiting.extend(reversed(node[1:]))


def words_of(tree: Tree) -> list[str]:
    """The words of a tree from left to right."""
    return [word for _, word in leaves(tree)]


def postorder(tree: Tree) -> Iterator[Tree]:
    """All nodes, each after its children, from left to right; words are no nodes."""
    # Each node twice: the first time to put its children on top of it.
    waiting: list[tuple[Tree, bool]] = [(tree, False)]
    while waiting:
        node, seen = waiting.pop()
        if seen or is_leaf(node):
            yield node
        else:
            waiting.append((node, True))
            waiting.extend((child, False) for child in reversed(node[1:]) if not isinstance(child, str))


def _short(node: Any) -> str:
    try:
        text = repr(node)
    except RecursionError:
        text = "a deep tuple"
    return text if len(text) <= 80 else text[:77] + "..."
