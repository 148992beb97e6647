"""Trees as nested tuples, (label, child, ...) where a child is a tree or a word, and files of trees in brackets.

Files have ``(S (NP (DT the) (NN cat)) (VP (VBD sat)))``; a line end means the same as a space. An outer pair of
brackets without a label, as in the Penn treebank, is removed; empty elements (``-NONE-``) and function tags are kept.
Words with brackets or spaces cannot be written: users have to write ``-LRB-`` and ``-RRB-``, as the Penn treebank does.
No function here calls itself: a tree may be deeper than Python's stack.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from partwise.io.errors import FormatError
from partwise.io.files import Path, atomic_write, read_text
from partwise.support.arrays import Ints

Tree: TypeAlias = tuple[Any, ...]

#: The tag of traces and other empty elements, which are not in the text.
EMPTY = "-NONE-"
#: The part after a label: function tags and indices (NP-SBJ-1, NP=2), an alternative label (ADVP|PRT).
_SUFFIX = re.compile(r"(?<=.)[-=|].*", re.DOTALL)
#: How the Penn treebank writes brackets, which cannot be written in trees.
BRACKETS = str.maketrans({"(": "-LRB-", ")": "-RRB-"})

# A carriage return is white space before a line's end only.
_TOKEN = re.compile(r"(?P<space>(?:[ \t\n]|\r\n)+)|(?P<open>\()|(?P<close>\))|(?P<text>(?:[^() \t\n\r]|\r(?!\n))+)")


def read_trees(path: Path) -> list[Tree]:
    """Return all trees of a file; raise FormatError if a bracket or a label is missing."""
    return list(iterate_trees(path))


def iterate_trees(path: Path) -> Iterator[Tree]:
    """Yield the trees of a file."""
    yield from parse_trees(read_text(path), path)


def parse_trees(text: str, path: Path = "<input>", *, line: int = 1) -> Iterator[Tree]:
    """Yield the trees of a text; `path` and the line of the file at which the text begins are for messages."""

    def error(message: str, offset: int) -> FormatError:
        return FormatError(message, path, text.count("\n", 0, offset) + line, offset - text.rfind("\n", 0, offset))

    open_nodes: list[list[Any]] = []  # label (None: not seen yet), then children
    starts: list[int] = []
    for match in _TOKEN.finditer(text):
        kind, at = match.lastgroup, match.start()
        if kind == "open":
            if open_nodes and open_nodes[-1][0] is None:
                if len(open_nodes) > 1:
                    raise error("a label is missing", at)
                open_nodes[-1][0] = ""
            open_nodes.append([None])
            starts.append(at)
        elif kind == "text":
            if not open_nodes:
                raise error("expected an opening bracket", at)
            if open_nodes[-1][0] is None:
                open_nodes[-1][0] = match[0]
            else:
                open_nodes[-1].append(match[0])
        elif kind == "close":
            if not open_nodes:
                raise error("a closing bracket without an opening one", at)
            node, start = open_nodes.pop(), starts.pop()
            if len(node) < 2:
                raise error("a node without children", start)
            if node[0] == "" and any(isinstance(child, str) for child in node[1:]):
                raise error("a label is missing: a word follows a phrase", start)
            tree = tuple(node)
            if open_nodes:
                open_nodes[-1].append(tree)
            else:
                yield tree[1] if tree[0] == "" and len(tree) == 2 and isinstance(tree[1], tuple) else tree
    if open_nodes:
        raise error("an opening bracket without a closing one", starts[0])


def write_trees(path: Path, trees: Iterable[Tree]) -> None:
    """Write trees, one per line.

    ValueError if something is not a tree, or a label or word is empty or has brackets, spaces, tabs or line ends.
    """
    lines = [format_tree(tree) + "\n" for tree in trees]
    with atomic_write(path) as file:
        file.write("".join(lines).encode("utf-8"))


def format_tree(tree: Tree) -> str:
    """Return a tree in brackets, on one line."""
    parts: list[str] = []
    # Nodes still to be written, the next one last; None: a closing bracket.
    waiting: list[object] = [tree]
    if not isinstance(tree, tuple):
        raise ValueError(f"{tree!r} is not a tree: expected a tuple of a label and children")
    while waiting:
        node = waiting.pop()
        if node is None:
            parts.append(")")
        elif isinstance(node, str):
            parts.append(" " + _checked(node))
        elif isinstance(node, tuple) and len(node) > 1 and isinstance(node[0], str):
            bare = node[0] == "" and not parts and len(node) > 2 and all(isinstance(child, tuple) for child in node[1:])
            parts.append((" (" if parts else "(") + ("" if bare else _checked(node[0])))
            waiting.append(None)
            waiting.extend(reversed(node[1:]))
        else:
            raise ValueError(f"{node!r} is not a tree: expected a tuple of a label and children")
    return "".join(parts)


def _checked(text: str) -> str:
    if not text or set(text) & set("() \t\n"):
        raise ValueError(f"{text!r} cannot be written in a tree: empty, or with brackets, spaces or line ends")
    return text


class FlatTree(tuple[Any, ...]):
    """The answer where there is no parse: all words under one node. It is a tree like others, but `parsed` is False."""

    __slots__ = ()
    parsed = False


def flat_tree(words: Sequence[str], tags: Sequence[str], label: str) -> FlatTree:
    """Return one node above the tagged words, marked as no parse."""
    if not words:
        raise ValueError("a tree has at least one word")
    return FlatTree((label, *zip(tags, words, strict=True)))


def is_parsed(tree: Tree) -> bool:
    """Return whether a tree is a parse: False for a `FlatTree`."""
    return bool(getattr(tree, "parsed", True))


def is_leaf(tree: Tree) -> bool:
    """Return whether a node is a word with its tag."""
    return len(tree) == 2 and isinstance(tree[1], str)


def check_tree(tree: object, what: str) -> None:
    """Raise ValueError, beginning with `what`, unless each node is a tuple of a label and at least one child."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, tuple) or len(node) < 2 or not isinstance(node[0], str):
            try:
                text = repr(node)
            except RecursionError:
                text = "a deep tuple"
            text = text if len(text) <= 80 else text[:77] + "..."
            raise ValueError(f"{what}: {text} is not a tree: expected a tuple of a label and children")
        waiting.extend(child for child in node[1:] if not isinstance(child, str))


def leaves(tree: Tree) -> Iterator[tuple[str | None, str]]:
    """Yield (tag, word) from left to right; the tag of a word that has siblings is None."""
    waiting: list[Tree | str] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            yield None, node
        elif is_leaf(node):
            yield node[0], node[1]
        else:
            waiting.extend(reversed(node[1:]))


def words_of(tree: Tree) -> list[str]:
    """Return the words of a tree from left to right."""
    return [word for _, word in leaves(tree)]


def postorder(tree: Tree) -> Iterator[Tree]:
    """Yield all nodes, each after its children, from left to right; words are not nodes."""
    # Each node is taken twice: the first time its children are put on top of it.
    waiting: list[tuple[Tree, bool]] = [(tree, False)]
    while waiting:
        node, seen = waiting.pop()
        if seen or is_leaf(node):
            yield node
        else:
            waiting.append((node, True))
            waiting.extend((child, False) for child in reversed(node[1:]) if not isinstance(child, str))


def bare_label(label: str) -> str:
    """Return a label without function tags and indices; labels in hyphens, as ``-LRB-``, have none."""
    return label if label.startswith("-") else _SUFFIX.sub("", label, count=1)


def clean_tree(tree: Tree, *, traces: bool = True, functions: bool = True, what: str = "the tree") -> Tree:
    """Return a tree without empty elements and function tags; ValueError if it is not a tree or nothing is left of it.

    traces: whether words tagged ``-NONE-`` are left out, and phrases that have no other words. functions: whether
    labels are cut to what is before their function tags. what: the name of the tree in messages.
    """
    check_tree(tree, what)
    # Cleaned nodes whose parent is still to come, from left to right; None: nothing is left of the node.
    ready: list[Tree | None] = []
    for node in postorder(tree):
        label = bare_label(node[0]) if functions else node[0]
        if is_leaf(node):
            ready.append(None if traces and node[0] == EMPTY else (label, node[1]))
            continue
        begin = len(ready) - sum(not isinstance(child, str) for child in node[1:])
        inner = iter(ready[begin:])
        del ready[begin:]
        children = [child if isinstance(child, str) else next(inner) for child in node[1:]]
        kept = [child for child in children if child is not None]
        ready.append((label, *kept) if kept else None)
    (cleaned,) = ready
    if cleaned is None:
        raise ValueError(f"{what}: all of its words are empty elements ({EMPTY})")
    if cleaned[0] == "" and len(cleaned) == 2 and isinstance(cleaned[1], tuple):
        return cleaned[1]  # as readers of files do: an outer pair of brackets without a label
    return cleaned


def common_root(trees: Sequence[Tree]) -> str | None:
    """Return the label of a node that all trees begin with and that means nothing (TOP, ROOT); None if there is none.

    It has one child, which is not a word, and its label is nowhere else.
    """
    label = trees[0][0] if trees else None
    for tree in trees:
        if tree[0] != label or len(tree) != 2 or isinstance(tree[1], str):
            return None
        if any(node[0] == label for node in postorder(tree[1])):
            return None
    return label


def rows_of_tree(tree: Tree, numbers: Mapping[str, int]) -> Ints:
    """Return the 2 n - 1 nodes of a tree in normal form over n words, as `partwise.structures.Grammar` reads them.

    They are rows (symbol, begin, end) in pre-order; symbols without a number are -1.
    """
    rows: list[list[int]] = []
    waiting: list[Tree | list[int]] = [tree]
    at = 0
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):  # both subtrees have been seen
            node[2] = at
            continue
        row = [numbers.get(node[0], -1), at, at + 1]
        rows.append(row)
        if is_leaf(node):
            at += 1
        else:
            waiting += [row, node[2], node[1]]
    return np.array(rows, dtype=np.int64)


def tree_of_rows(rows: Ints, symbols: Sequence[str], words: Sequence[str]) -> Tree:
    """Return the tree in normal form of the rows of `rows_of_tree`."""
    ready: list[Tree] = []
    for symbol, begin, end in rows[::-1].tolist():
        name = symbols[symbol]
        ready.append((name, words[begin]) if end == begin + 1 else (name, ready.pop(), ready.pop()))
    (tree,) = ready
    return tree
