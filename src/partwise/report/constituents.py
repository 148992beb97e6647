"""Constituent trees as pictures; with a gold tree, two of them side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from partwise.models.constituents.treebank.nodes import is_parsed
from partwise.report.drawings import INK, LONGEST, SIZE, STYLE, WRONG
from partwise.report.svg import Drawing, clean, colour_of, picture, shorten, text, text_width

_STEP = 40.0  # from one level to the next
_GAP = 48.0  # between two trees
_CAPTION = 22.0

_FILLED = 0.6  # of a line, at least: after that it may be broken where few phrases are

Phrase = tuple[str, int, int]


def draw_tree(tree: Any, gold: Any = None, *, max_width: float = 890.0) -> Drawing:
    """A tree of nested tuples (label, child, ...); whatever is not a tuple or a list is a word.

    With `gold`, the right tree of the same words, both are drawn where they differ: phrases and tags that the other
    tree does not have are red. They stand side by side if there is room, else one above the other.

    A tree that is wider than `max_width` is broken into lines, as its sentence is. Each line has the phrases of its
    words; one that goes on in another line has a dashed edge, and above are the names of those that all of its words
    are in.

    Raises
    ------
    ValueError
        If a node has no label, or the two trees have different words.
    """
    found = _Nodes(tree)
    if gold is None:
        return _picture([(found, set(), "")], max_width)
    right = _Nodes(gold)
    if found.words() != right.words():
        raise ValueError(f"the trees have different words: {found.words()} and, in gold, {right.words()}")
    wrong, missed = found.without(right), right.without(found)
    if not wrong and not missed:
        return _picture([(found, set(), "as in gold")], max_width)
    return _picture(
        [(found, wrong, "predicted" if is_parsed(tree) else "no parse"), (right, missed, "gold")], max_width
    )


@dataclass
class _Node:
    name: str
    depth: int
    parent: int | None
    inner: bool
    begin: int = 0  # the words it has: [begin, end)
    end: int = 0


class _Nodes:
    """The nodes of a tree in pre-order."""

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

    def widths(self) -> list[float]:
        """The room that each word needs; the box of its tag too."""
        n_children = Counter(one.parent for one in self.nodes)
        found = []
        for one in self.nodes:
            if not one.inner:
                width = max(text_width(one.name, SIZE), 20.0) + 14
                if one.parent is not None and n_children[one.parent] == 1:
                    width = max(width, text_width(self.nodes[one.parent].name, 12) + 18)
                found.append(width)
        return found

    def lines(self, most: float) -> list[_Line]:
        """The tree in lines of at most this width, broken where few phrases are."""
        widths = self.widths()
        whole = _Line(self, 0, len(widths), widths)
        if whole.width <= most:
            return [whole]
        cut = [0] * (len(widths) + 1)  # phrases that a break before this word goes through
        for one in self.nodes:
            for k in range(one.begin + 1, one.end):
                cut[k] += 1
        found, begin = [], 0
        while begin < len(widths):
            end, used = begin + 1, widths[begin] + 24
            candidates = [end]
            while end < len(widths) and used + widths[end] <= most:
                used += widths[end]
                end += 1
                if used >= _FILLED * most:
                    candidates.append(end)
            if end < len(widths):
                end = min(candidates[1:] or [end], key=lambda k: (cut[k], -k))
            found.append(_Line(self, begin, end, widths))
            begin = end
        return found


class _Line:
    """The part of a tree over the words from `begin` up to, not including, `end`, and where it is drawn."""

    def __init__(self, tree: _Nodes, begin: int, end: int, widths: list[float]) -> None:
        self.nodes, self.begin, self.end = tree.nodes, begin, end
        mine = [k for k, one in enumerate(tree.nodes) if one.begin < end and one.end > begin]
        # The first of those with all of the line's words that go on beyond it are named, not drawn, but for the last.
        self.path: list[str] = []
        while len(mine) > 1 and self._passes(mine[0]) and self._covers(mine[1]):
            self.path.append(tree.nodes[mine.pop(0)].name)
        self.mine = mine
        self.top = tree.nodes[mine[0]].depth
        self.deepest = max(tree.nodes[k].depth for k in mine) - self.top
        self.x: dict[int, float] = {}
        right = max(6.0, self._place(widths))
        self.width = right + 6
        self.height = (18 if self.path else 0) + 8 + _STEP * self.deepest + 26

    def _covers(self, k: int) -> bool:
        return self.nodes[k].begin <= self.begin and self.nodes[k].end >= self.end and self.nodes[k].inner

    def _passes(self, k: int) -> bool:
        """Whether a node goes on in another line."""
        return self.nodes[k].begin < self.begin or self.nodes[k].end > self.end

    def _place(self, widths: list[float]) -> float:
        """Words from left to right, a phrase in the middle of its first and its last child; returns the right end."""
        right = 6.0
        for k in self.mine:
            one = self.nodes[k]
            if not one.inner:
                self.x[k] = right + widths[one.begin] / 2
                right += widths[one.begin]
        first: dict[int, float] = {}
        last: dict[int, float] = {}
        shift = 0.0
        for k in reversed(self.mine):
            one = self.nodes[k]
            if one.inner:
                self.x[k] = (first[k] + last[k]) / 2
                half = text_width(one.name, 12) / 2 + 8
                shift = max(shift, half - self.x[k])
                right = max(right, self.x[k] + half)
            if one.parent is not None:
                first[one.parent] = self.x[k]
                last.setdefault(one.parent, self.x[k])
        self.x = {k: x + shift for k, x in self.x.items()}
        return right + shift

    def shapes(self, red: set[int], left: float, top: float) -> list[str]:
        body: list[str] = []
        if self.path:
            body.append(
                text(left + 8, top + 12, " › ".join(self.path) + " ›", anchor="start", cls="pw-small", fill=INK)
            )
            top += 18
        drawn = set(self.mine)
        for k in self.mine:
            one = self.nodes[k]
            x, y = left + self.x[k], top + 8 + _STEP * (one.depth - self.top if one.inner else self.deepest)
            if one.parent in drawn:
                above = top + 28 + _STEP * (self.nodes[one.parent].depth - self.top)
                dash = "" if one.inner else ' stroke-dasharray="3 3"'
                body.append(
                    f'<path d="M{left + self.x[one.parent]:.1f} {above:.1f}L{x:.1f} {y - 1:.1f}" '
                    f'stroke="{WRONG if k in red else "#9aa5b1"}" fill="none"{dash}/>'
                )
            if not one.inner:
                body.append(text(x, y + 14, one.name, cls="pw-word", fill=INK))
                continue
            light, strong = ("#fdecea", WRONG) if k in red else colour_of(one.name)
            edge = f' stroke="{WRONG}" stroke-width="1.5"' if k in red else ""
            if self._passes(k):
                edge = (edge or f' stroke="{strong}"') + ' stroke-dasharray="4 3"'
            width = text_width(one.name, 12) + 12
            body.append(
                f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="19" rx="5" '
                f'fill="{light}"{edge}/>'
            )
            body.append(text(x, y + 14, one.name, cls="pw-tag", fill=strong))
        return body


def _picture(trees: list[tuple[_Nodes, set[int], str]], most: float) -> Drawing:
    """Trees with their red nodes and captions."""
    parts = [nodes.lines(most) for nodes, _, _ in trees]
    together = sum(lines[0].width for lines in parts) + _GAP * (len(trees) - 1)
    beside = together <= most and all(len(lines) == 1 for lines in parts)
    left = top = width = height = 0.0
    body = [STYLE]
    for (_, red, caption), lines in zip(trees, parts, strict=True):
        down = top
        if caption:
            body.append(text(left + 8, down + 14, caption, anchor="start", cls="pw-small", fill=INK))
            down += _CAPTION
        for line in lines:
            body += line.shapes(red, left, down)
            width, down = max(width, left + line.width), down + line.height + 8
        height = max(height, down - 8)
        if beside:
            left += lines[0].width + _GAP
        else:
            top = down + 12
    words = shorten(" ".join(trees[0][0].words()), 300)
    return picture(width, height, body, f"Tree: {words}")
