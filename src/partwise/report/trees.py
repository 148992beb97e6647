"""Constituent trees as pictures; with a gold tree, two of them side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from partwise.io.trees import Tree, is_parsed
from partwise.report.svg import INK, SIZE, STYLE, WRONG, Drawing, colour_of, picture, shape, shorten, text, text_width

#: From one level to the next, between two trees, and the height of a caption.
_STEP, _GAP, _CAPTION = 40.0, 48.0, 22.0
#: The share of a line that is filled before the line may be broken.
_FILLED = 0.6

#: A phrase's label and words: from begin up to, not including, end.
Phrase = tuple[str, int, int]


def draw_tree(tree: Tree, gold: Tree | None = None, *, max_width: float = 890.0) -> Drawing:
    """Draw a tree of nested tuples (label, child, ...); whatever is not a tuple or a list is a word.

    Where the tree differs from `gold`, the gold tree of the same words, both are drawn: phrases and tags that the other
    tree does not have are red. They stand side by side if there is room, else one above the other.

    A tree that is wider than `max_width` is broken into lines. Each line has the phrases of its words; a phrase that
    continues in another line has a dashed edge. Above a line are the names of the phrases that have all of its words.

    Raises ValueError if a node has no label, or the two trees have different words.
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
    caption = "predicted" if is_parsed(tree) else "no parse"
    return _picture([(found, wrong, caption), (right, missed, "gold")], max_width)


@dataclass
class _Node:
    """A phrase, a tag or a word, with the words that it has: from `begin` up to, not including, `end`."""

    name: str
    depth: int
    parent: int | None
    inner: bool
    begin: int = 0
    end: int = 0


class _Nodes:
    """The nodes of a tree in pre-order."""

    def __init__(self, tree: object) -> None:
        self.nodes: list[_Node] = []
        # An explicit stack: a tree may be deeper than Python's own allows.
        stack: list[tuple[object, int, int | None]] = [(tree, 0, None)]
        n_words = 0
        while stack:
            node, depth, parent = stack.pop()
            if isinstance(node, (tuple, list)) and not node:
                raise ValueError("a node of a tree needs a label")
            label, *children = node if isinstance(node, (tuple, list)) else (node,)
            number = len(self.nodes)
            self.nodes.append(_Node(shorten(label), depth, parent, bool(children), n_words, n_words))
            if children:
                stack.extend((child, depth + 1, number) for child in reversed(children))
            else:
                n_words += 1
                self.nodes[-1].end = n_words
        for one in reversed(self.nodes):
            if one.parent is not None:
                above = self.nodes[one.parent]
                above.end = max(above.end, one.end)

    def words(self) -> list[str]:
        return [one.name for one in self.nodes if not one.inner]

    def phrases(self) -> list[tuple[Phrase, int]]:
        return [((one.name, one.begin, one.end), k) for k, one in enumerate(self.nodes) if one.inner]

    def without(self, other: _Nodes) -> set[int]:
        """Return the numbers of the phrases and tags that the other tree does not have, or not as often."""
        extra = Counter(phrase for phrase, _ in self.phrases()) - Counter(phrase for phrase, _ in other.phrases())
        found = set()
        for phrase, k in self.phrases():
            if extra[phrase] > 0:
                extra[phrase] -= 1
                found.add(k)
        return found

    def widths(self) -> list[float]:
        """Return the width that each word needs, with the box of its tag."""
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
        """Return the tree in lines of at most this width, broken where few phrases are."""
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
        # Phrases that have all of the line's words and more are named, not drawn, but for the last one.
        self.path: list[str] = []
        while len(mine) > 1 and self._passes(mine[0]):
            below = tree.nodes[mine[1]]
            if not (below.inner and below.begin <= begin and below.end >= end):
                break
            self.path.append(tree.nodes[mine.pop(0)].name)
        self.mine = mine
        self.top = tree.nodes[mine[0]].depth
        self.deepest = max(tree.nodes[k].depth for k in mine) - self.top
        self.x: dict[int, float] = {}
        self.width = self._place(widths) + 6
        self.height = (18 if self.path else 0) + 8 + _STEP * self.deepest + 26

    def _passes(self, k: int) -> bool:
        return self.nodes[k].begin < self.begin or self.nodes[k].end > self.end

    def _place(self, widths: list[float]) -> float:
        """Place words from left to right, a phrase in the middle of its first and last child; return the right end."""
        right = 6.0
        for k in self.mine:
            one = self.nodes[k]
            if not one.inner:
                self.x[k] = right + widths[one.begin] / 2
                right += widths[one.begin]
        first, last = dict[int, float](), dict[int, float]()
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
            names = " › ".join(self.path) + " ›"
            body.append(text(left + 8, top + 12, names, anchor="start", cls="pw-small", fill=INK))
            top += 18
        drawn = set(self.mine)
        for k in self.mine:
            one = self.nodes[k]
            x, y = left + self.x[k], top + 8 + _STEP * (one.depth - self.top if one.inner else self.deepest)
            if one.parent in drawn:
                above = top + 28 + _STEP * (self.nodes[one.parent].depth - self.top)
                path = f"M{left + self.x[one.parent]:.1f} {above:.1f}L{x:.1f} {y - 1:.1f}"
                edge, dashes = WRONG if k in red else "#9aa5b1", None if one.inner else "3 3"
                body.append(shape("path", d=path, stroke=edge, fill="none", stroke_dasharray=dashes))
            if not one.inner:
                body.append(text(x, y + 14, one.name, cls="pw-word", fill=INK))
                continue
            light, strong = ("#fdecea", WRONG) if k in red else colour_of(one.name)
            passes, width = self._passes(k), text_width(one.name, 12) + 12
            stroke, dashes = strong if passes or k in red else None, "4 3" if passes else None
            place = {"x": x - width / 2, "y": y, "width": width, "height": 19, "rx": 5}
            thick = 1.5 if k in red else None
            box = shape("rect", **place, fill=light, stroke=stroke, stroke_width=thick, stroke_dasharray=dashes)
            body += [box, text(x, y + 14, one.name, cls="pw-tag", fill=strong)]
        return body


def _picture(trees: list[tuple[_Nodes, set[int], str]], most: float) -> Drawing:
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
