"""Trees in brackets: ``(S (NP (DT the) (NN cat)) (VP (VBD sat)))``.

A tree is a tuple of its label and its children; a child is a tree or a word (a string). Line ends mean no more than
spaces. The Penn treebank's outer pair of brackets without a label is removed; empty elements (``-NONE-``) and
function tags are kept as they are. Words with brackets or spaces cannot be written: the Penn treebank has ``-LRB-``
and ``-RRB-`` for brackets, which users have to replace themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from partwise.io.errors import FormatError
from partwise.io.files import Path, atomic_write, read_text

Tree = tuple[Any, ...]

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
            node = open_nodes.pop()
            start = starts.pop()
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

    Raises
    ------
    ValueError
        If something is not a tree, or a label or word is empty or has brackets, spaces, tabs or line ends.
    """
    lines = [format_tree(tree) + "\n" for tree in trees]
    with atomic_write(path) as file:
        file.write("".join(lines).encode("utf-8"))


def format_tree(tree: Tree) -> str:
    """Return a tree in brackets, on one line."""
    parts: list[str] = []
    # What is yet to be written, the next node last; None closes a bracket.
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
