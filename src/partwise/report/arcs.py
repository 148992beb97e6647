"""Dependency trees as pictures: arcs above the words, broken into lines as the words are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from partwise.report import svg

_BLUE, _GREY = "#3e6fb0", "#6b7785"
#: The margin at both ends of a line, where arcs come in from another line.
_MARGIN = 12.0
#: From one level of dashed arcs to the next.
_BELOW = 22.0


@dataclass(frozen=True)
class _Arc:
    """An arc from a head to its word; `below`: a gold arc that was not predicted, drawn dashed under the words."""

    head: int
    word: int
    name: str
    colour: str
    below: bool = False

    @property
    def ends(self) -> tuple[int, int]:
        return min(self.head, self.word), max(self.head, self.word)


def draw_arcs(
    tokens: Sequence[object],
    heads: Sequence[int],
    labels: Sequence[object] | None = None,
    gold_heads: Sequence[int] | None = None,
    *,
    max_width: float = 860.0,
) -> svg.Drawing:
    """Draw a dependency tree: arcs from heads to their words, above the sentence.

    An arc is red if its word's head differs from `gold_heads`; the word's gold arc is then dashed, below the sentence.
    If the sentence is broken into lines, an arc between words of two lines is broken too: one part runs out at the end
    of the upper line, the other part comes in at the beginning of the lower line.

    Parameters
    ----------
    tokens : sequence of words
    heads, gold_heads : sequences of int
        Head of each word, counted from 1; 0 is the root. Gold heads are optional.
    labels : sequence, optional
        Label of the arc from each word's head.
    max_width : width beyond which lines are broken
    """
    n = len(tokens)
    svg.check_lengths(n, heads=heads, labels=labels, gold_heads=gold_heads)
    for name, given in (("heads", heads), ("gold_heads", gold_heads or ())):
        bad = [int(head) for head in given if not 0 <= int(head) <= n]
        if bad:
            raise ValueError(f"{name}: {bad[0]} is not one of the words 1 to {n}, nor 0 for the root")
    words = list(map(svg.shorten, tokens))
    names = [""] * n if labels is None else [svg.shorten(label, 16) for label in labels]
    widths = [max(svg.text_width(word, svg.SIZE) + 22, 46.0) for word in words]
    arcs: list[_Arc] = []
    for k, head in enumerate(int(head) for head in heads):
        gold = head if gold_heads is None else int(gold_heads[k])
        # A root is an arc from the word to itself, which has no level.
        arcs.append(_Arc(head - 1 if head else k, k, names[k], svg.WRONG if gold != head else _BLUE))
        if gold != head and gold:
            arcs.append(_Arc(gold - 1, k, "", _GREY, below=True))
        if head and abs(head - 1 - k) == 1:  # a label must fit under its arc
            widths[k] = max(widths[k], svg.text_width(names[k], 11) + 14 if names[k] else 0.0)
    step = 30.0 if labels is not None else 24.0
    body: list[str] = []
    y, widest = 0.0, 60.0
    for begin, end in _lines(widths, max_width):
        line = _Line(begin, end, widths[begin:end], y, step)
        body += line.shapes(arcs, words)
        y, widest = line.bottom, max(widest, line.right)
    label = "Dependencies: " + " ".join(f"{word}<-{head}" for word, head in zip(words[:50], heads, strict=False))
    return svg.picture(widest, max(y, 20.0), [svg.STYLE, *body], label)


def _lines(widths: Sequence[float], most: float) -> list[tuple[int, int]]:
    """Return ranges of words that fit into a line; all lines but the last are about as long."""
    n_lines = max(1, -(-int(sum(widths)) // int(max(most - 2 * _MARGIN, 1))))
    goal = max(sum(widths) / n_lines, 1.0)
    found: list[tuple[int, int]] = []
    begin, used = 0, 0.0
    for k, width in enumerate(widths):
        full = used + width > most - 2 * _MARGIN or (used + width / 2 > goal and len(found) < n_lines - 1)
        if k > begin and full:
            found.append((begin, k))
            begin, used = k, 0.0
        used += width
    return [*found, (begin, len(widths))] if widths else []


class _Line:
    """Words from `begin` up to, not including, `end`, and the arcs over them, from y = `top` down."""

    def __init__(self, begin: int, end: int, widths: Sequence[float], top: float, step: float) -> None:
        self.begin, self.end, self.top, self.step = begin, end, top, step
        edges = list(accumulate(widths, initial=_MARGIN))
        self.middles = [left + width / 2 for left, width in zip(edges, widths, strict=False)]
        self.right = edges[-1] + _MARGIN
        self.base = self.bottom = 0.0  # where the words begin, and the line ends

    def shapes(self, arcs: Sequence[_Arc], words: Sequence[str]) -> list[str]:
        mine = [arc for arc in arcs if arc.ends[0] < self.end and arc.ends[1] >= self.begin]
        above = self._levels([arc for arc in mine if not arc.below])
        below = self._levels([arc for arc in mine if arc.below])
        self.base = self.top + 34.0 + self.step * max([0, *above.values()])
        self.bottom = self.base + 30 + _BELOW * max([0, *below.values()]) + 6
        body: list[str] = []
        for arc in mine:
            if arc.head == arc.word:
                body += self._root(arc)
            elif arc.below:
                body += self._shapes(arc, self.base + 24, self.base + 24 + _BELOW * below[arc])
            else:
                body += self._shapes(arc, self.base - 4, self.base - 4 - self.step * above[arc])
        for k in range(self.begin, self.end):
            body.append(svg.text(self.middles[k - self.begin], self.base + 14, words[k], cls="pw-word", fill=svg.INK))
        return body

    def _levels(self, arcs: Sequence[_Arc]) -> dict[_Arc, int]:
        """Return the level of each arc: one more than the highest that it spans or crosses in this line."""
        levels: dict[_Arc, int] = {}
        # Of an arc that continues in another line, the part in this line and one word more count.
        ends = {arc: (max(arc.ends[0], self.begin - 1), min(arc.ends[1], self.end)) for arc in arcs}
        drawn = [arc for arc in arcs if arc.head != arc.word]
        for arc in sorted(drawn, key=lambda arc: (ends[arc][1] - ends[arc][0], arc.ends)):
            low, high = ends[arc]
            # No arc that has its level yet is wider, so none of them spans this one.
            met = [level for other, level in levels.items() if ends[other][0] < high and low < ends[other][1]]
            levels[arc] = 1 + max(met, default=0)
        return levels

    def _root(self, arc: _Arc) -> list[str]:
        x, top = self.middles[arc.word - self.begin], self.top + 10.0
        return [
            svg.shape("path", d=f"M{x:.1f} {top:.1f}V{self.base - 5:.1f}", stroke=arc.colour, fill="none"),
            _tip(x, self.base - 4, arc.colour, down=True),
            svg.text(x + 4, top + 4, arc.name or "root", anchor="start", cls="pw-small", fill=arc.colour),
        ]

    def _shapes(self, arc: _Arc, base: float, top: float) -> list[str]:
        """Return an arc from `base` over `top`; to the line's edge where the head or the word is in another line."""
        low, high = arc.ends
        # An arc meets a word a little to the side where its other end is.
        left = self.middles[low - self.begin] + 6 if low >= self.begin else None
        right = self.middles[high - self.begin] - 6 if high < self.end else None
        turn = 10.0 if top < base else -10.0
        path, end = f"M2 {top:.1f}", f"H{self.right - 2:.1f}"
        if left:
            path = f"M{left:.1f} {base:.1f}V{top + turn:.1f}Q{left:.1f} {top:.1f} {left + 10:.1f} {top:.1f}"
        if right:
            end = f"H{right - 10:.1f}Q{right:.1f} {top:.1f} {right:.1f} {top + turn:.1f}V{base:.1f}"
        style = {"fill": "none", "stroke_dasharray": "4 3" if arc.below else None}
        body = [svg.shape("path", d=path + end, stroke=arc.colour, stroke_width=1.4, **style)]
        tip = right if arc.word == high else left
        if tip is not None:
            body.append(_tip(tip, base, arc.colour, down=not arc.below))
            if arc.name:
                middle = ((left or 2.0) + (right or self.right - 2)) / 2
                half = svg.text_width(arc.name, 11) / 2 + 2
                place = min(max(middle, half), self.right - half)  # inside of a line that the arc leaves
                body.append(svg.text(place, top - 4, arc.name, cls="pw-small", fill=arc.colour))
        return body


def _tip(x: float, y: float, colour: str, down: bool) -> str:
    return svg.shape("path", d=f"M{x:.1f} {y:.1f}l-3.5 {-7 if down else 7}h7z", fill=colour)
