"""Constituent trees as pictures; with a gold tree, two of them side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from partwise.trees.nodes import is_parsed

from .drawings import INK, LONGEST, SIZE, STYLE, WRONG
from .svg import Drawing, clean, colour_of, picture, shorten, text, text_width

_STEP = 40.0  # from one level to the next
_GAP = 48.0  # between two trees
_MOST = 890.0  # pictures that are wider together stand one above the other
_CAPTION = 22.0

Phrase = tuple[str, int, int]


def draw_tree(tree: Any, gold: Any = None) -> Drawing:
    """A tree of nested tuples (label, child, ...); whatever is not a tuple or a list is a word.

    With `gold`, the right tree of the same words, both are drawn where they differ: phrases and tags that the other
    tree does not have are red.

    Raises
    ------
    ValueError
        If a node has no label, or the two trees have different words.
    """
    found = _Nodes(tree)
    if gold is None:
        return _picture([(found, set(), "")])
    right = _Nodes(gold)
    if found.words() != right.words():
        raise ValueError(f"the trees have different words: {found.words()} and, in gold, {right.words()}")
    wrong, missed = found.without(right), right.without(found)
    if not wrong and not missed:
        return _picture([(found, set(), "as in gold")])
    return _picture([(found, wrong, "predicted" if is_parsed(tree) else "no parse"), (right, missed, "gold")])


@dataclass
class _Node:
    name: str
    depth: int
    parent: int | None
    inner: bool
    begin: int = 0  # the words it has: [begin, end)
    end: int = 0
    x: float = 0.0


class _Nodes:
    """The nodes of a tree in pre-order, and where they are drawn."""

    def __init__(self, tree: Any) -> None:
        self.nodes: list[_Node] = []
        # An explicit stack: a tree may be deeper than Python's own allows.
        stack: list[tuple[Any, int, int | None]] = [(tree, 0, None)]
        n_words = 0
        while stack:
            node, depth, parent = stack.pop()
            inner = isinstance(node, (tuple, list))
            if inner and not node:
                raise ValueError("a node of a tree needs a label")
            number = len(self.nodes)
            name = shorten(clean(node[0] if inner else node), LONGEST)
            has_children = inner and len(node) > 1
            self.nodes.append(_Node(name, depth, parent, has_children, n_words, n_words))
            if has_children:
                stack.extend((child, depth + 1, number) for child in reversed(node[1:]))
            else:
                n_words += 1
                self.nodes[-1].end = n_words
        for one in reversed(self.nodes):
            if one.parent is not None:
                above = self.nodes[one.parent]
                above.end = max(above.end, one.end)
        self._place()

    def _place(self) -> None:
        """Words from left to right, a phrase in the middle of its first and its last child."""
        right = 6.0
        first: dict[int, float] = {}
        last: dict[int, float] = {}
        n_children = Counter(one.parent for one in self.nodes)
        for one in self.nodes:
            if not one.inner:
                width = max(text_width(one.name, SIZE), 20.0) + 14
                if one.parent is not None and n_children[one.parent] == 1:  # the box of its tag has room too
                    width = max(width, text_width(self.nodes[one.parent].name, 12) + 18)
                one.x = right + width / 2
                right += width
        shift = 0.0
        for k in range(len(self.nodes) - 1, -1, -1):
            one = self.nodes[k]
            if one.inner:
                one.x = (first[k] + last[k]) / 2
                half = text_width(one.name, 12) / 2 + 8
                shift = max(shift, half - one.x)
                right = max(right, one.x + half)
            if one.parent is not None:
                first[one.parent] = one.x
                last.setdefault(one.parent, one.x)
        for one in self.nodes:
            one.x += shift
        self.width = right + shift + 6
        self.deepest = max(one.depth for one in self.nodes)
        self.height = 8 + _STEP * self.deepest + 26

    def words(self) -> list[str]:
        return [one.name for one in self.nodes if not one.inner]

    def phrases(self) -> Counter[Phrase]:
        return Counter((one.name, one.begin, one.end) for one in self.nodes if one.inner)

    def without(self, other: _Nodes) -> set[int]:
        """The numbers of the phrases and tags that the other tree does not have, or not so often."""
        extra = self.phrases() - other.phrases()
        found = set()
        for k, one in enumerate(self.nodes):
            if one.inner and extra[one.name, one.begin, one.end] > 0:
                extra[one.name, one.begin, one.end] -= 1
                found.add(k)
        return found

    def shapes(self, red: set[int], left: float, top: float) -> list[str]:
        body: list[str] = []
        for k, one in enumerate(self.nodes):
            x, y = left + one.x, top + 8 + _STEP * (one.depth if one.inner else self.deepest)
            if one.parent is not None:
                above = self.nodes[one.parent]
                dash = "" if one.inner else ' stroke-dasharray="3 3"'
                body.append(
                    f'<path d="M{left + above.x:.1f} {top + 28 + _STEP * above.depth:.1f}L{x:.1f} {y - 1:.1f}" '
                    f'stroke="{WRONG if k in red else "#9aa5b1"}" fill="none"{dash}/>'
                )
            if not one.inner:
                body.append(text(x, y + 14, one.name, cls="pw-word", fill=INK))
                continue
            light, strong = ("#fdecea", WRONG) if k in red else colour_of(one.name)
            edge = f' stroke="{WRONG}" stroke-width="1.5"' if k in red else ""
            width = text_width(one.name, 12) + 12
            body.append(
                f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="19" rx="5" '
                f'fill="{light}"{edge}/>'
            )
            body.append(text(x, y + 14, one.name, cls="pw-tag", fill=strong))
        return body


def _picture(trees: list[tuple[_Nodes, set[int], str]]) -> Drawing:
    """Trees with their red nodes and captions, side by side if there is room."""
    beside = sum(nodes.width for nodes, _, _ in trees) + _GAP * (len(trees) - 1) <= _MOST
    left = top = width = height = 0.0
    body = [STYLE]
    for nodes, red, caption in trees:
        if caption:
            body.append(text(left + 8, top + 14, caption, anchor="start", cls="pw-small", fill=INK))
        down = _CAPTION if caption else 0.0
        body += nodes.shapes(red, left, top + down)
        width, height = max(width, left + nodes.width), max(height, top + down + nodes.height)
        if beside:
            left += nodes.width + _GAP
        else:
            top += down + nodes.height + 12
    words = shorten(" ".join(trees[0][0].words()), 300)
    return picture(width, height, body, f"Tree: {words}")
