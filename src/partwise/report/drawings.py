"""Predictions as pictures, from plain lists: tags as strips, dependencies as arcs, trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .svg import Drawing, clean, colour_of, picture, safe, shorten, text, text_width

WRONG = "#c62828"
INK = "#1f2933"
_GREY = "#7b8794"
SIZE = 14.0
LONGEST = 40  # letters of a word that are shown


def draw_tags(
    tokens: Sequence[Any],
    tags: Sequence[Any],
    gold: Sequence[Any] | None = None,
    probabilities: Sequence[float] | None = None,
    *,
    max_width: float = 860.0,
) -> Drawing:
    """Words with their tags under them, as strips; where `gold` differs, the gold tag is shown in red.

    Parameters
    ----------
    tokens, tags : sequences of the same length
    gold : sequence, optional
        The right tags.
    probabilities : sequence of float, optional
        How sure the model is of each tag, drawn as a bar.
    max_width : float
        Where lines are broken.
    """
    n = len(tokens)
    _check_lengths(n, tags=tags, gold=gold, probabilities=probabilities)
    words = [shorten(clean(token), LONGEST) for token in tokens]
    names = [shorten(clean(tag), LONGEST) for tag in tags]
    right = names if gold is None else [shorten(clean(tag), LONGEST) for tag in gold]
    wrong = [gold is not None and str(a) != str(b) for a, b in zip(tags, gold or tags, strict=True)]
    widths = [
        max(text_width(word, SIZE), text_width(name, 12), text_width(other, 12) if bad else 0.0, 26.0) + 14
        for word, name, other, bad in zip(words, names, right, wrong, strict=True)
    ]
    row_height = 50.0 + (18 if any(wrong) else 0) + (10 if probabilities is not None else 0) + 8
    body: list[str] = []
    x, y, widest = 2.0, 0.0, 60.0
    for k in range(n):
        if x > 2 and x + widths[k] > max_width:
            x, y = 2.0, y + row_height
        width = widths[k]
        light, strong = colour_of(_kind(names[k]))
        middle, at = x + width / 2, y + 26
        body.append(text(middle, y + 16, words[k], fill=INK, cls="pw-word"))
        stroke = WRONG if wrong[k] else light
        body.append(
            f'<rect x="{x + 2:.1f}" y="{at:.1f}" width="{width - 4:.1f}" height="20" rx="5" fill="{light}" '
            f'stroke="{stroke}" stroke-width="1.5"><title>{safe(tokens[k])}: {safe(tags[k])}</title></rect>'
        )
        body.append(text(middle, at + 14.5, names[k], fill=strong, cls="pw-tag"))
        at += 24
        if probabilities is not None:
            share = min(max(float(probabilities[k]), 0.0), 1.0)
            room = width - 8
            body.append(f'<rect x="{x + 4:.1f}" y="{at:.1f}" width="{room:.1f}" height="4" rx="2" fill="#e4e7eb"/>')
            body.append(
                f'<rect x="{x + 4:.1f}" y="{at:.1f}" width="{room * share:.1f}" height="4" rx="2" fill="{strong}">'
                f"<title>{share:.3f}</title></rect>"
            )
            at += 10
        if wrong[k]:
            body.append(text(middle, at + 11, right[k], fill=WRONG, cls="pw-tag"))
        x += width
        widest = max(widest, x)
    label = "Tags: " + " ".join(f"{word}/{name}" for word, name in zip(words[:50], names, strict=False))
    return picture(widest + 2, y + row_height if n else 20.0, [STYLE, *body], label)


def draw_arcs(
    tokens: Sequence[Any],
    heads: Sequence[int],
    labels: Sequence[Any] | None = None,
    gold_heads: Sequence[int] | None = None,
) -> Drawing:
    """A dependency tree: arcs from heads to their words, above the sentence.

    Arcs that differ from `gold_heads` are red, with the gold ones below the sentence, dashed.

    Parameters
    ----------
    tokens : sequence of words
    heads : sequence of int
        Head of each word, counted from 1; 0 is the root.
    labels : sequence, optional
    gold_heads : sequence of int, optional
    """
    n = len(tokens)
    _check_lengths(n, heads=heads, labels=labels, gold_heads=gold_heads)
    for name, given in (("heads", heads), ("gold_heads", gold_heads or ())):
        bad = [int(head) for head in given if not 0 <= int(head) <= n]
        if bad:
            raise ValueError(f"{name}: {bad[0]} is not one of the words 1 to {n}, nor 0 for the root")
    words = [shorten(clean(token), LONGEST) for token in tokens]
    names = [""] * n if labels is None else [shorten(clean(label), 16) for label in labels]
    widths = [max(text_width(word, SIZE) + 22, 46.0) for word in words]
    for k, head in enumerate(heads):  # a label must fit under its arc
        if labels is not None and head and abs(int(head) - 1 - k) == 1:
            widths[k] = max(widths[k], text_width(names[k], 11) + 14)
    middles, x = [], 6.0
    for width in widths:
        middles.append(x + width / 2)
        x += width
    above = _levels([(int(head) - 1, k) for k, head in enumerate(heads) if head])
    missed = (
        {}
        if gold_heads is None
        else {
            (int(gold) - 1, k)
            for k, (gold, head) in enumerate(zip(gold_heads, heads, strict=True))
            if gold and gold != head
        }
    )
    below = _levels(sorted(missed))
    step = 30.0 if labels is not None else 24.0
    base = 34.0 + step * max([0, *above.values()])
    lowest = base + 30 + 22 * max([0, *below.values()]) + 6
    body: list[str] = []
    for k, head in enumerate(heads):
        wrong = gold_heads is not None and int(gold_heads[k]) != int(head)
        colour = WRONG if wrong else "#3e6fb0"
        if not head:
            top = 10.0
            body.append(f'<path d="M{middles[k]:.1f} {top:.1f}V{base - 5:.1f}" stroke="{colour}" fill="none"/>')
            body.append(_tip(middles[k], base - 4, colour, down=True))
            body.append(text(middles[k] + 4, top + 4, names[k] or "root", anchor="start", cls="pw-small", fill=colour))
            continue
        level = above[int(head) - 1, k]
        body.append(_arc(middles, int(head) - 1, k, base - 4, base - 4 - step * level, colour))
        body.append(_tip(_landing(middles, int(head) - 1, k), base - 4, colour, down=True))
        if names[k]:
            place = (middles[k] + middles[int(head) - 1]) / 2
            body.append(text(place, base - 8 - step * level, names[k], cls="pw-small", fill=colour))
    for head, k in sorted(missed):
        depth = base + 24 + 22 * below[head, k]
        body.append(_arc(middles, head, k, base + 24, depth, _GREY, dashed=True))
        body.append(_tip(_landing(middles, head, k), base + 24, _GREY, down=False))
    for k, word in enumerate(words):
        body.append(text(middles[k], base + 14, word, cls="pw-word", fill=INK))
    label = "Dependencies: " + " ".join(f"{word}<-{head}" for word, head in zip(words[:50], heads, strict=False))
    return picture(max(x + 6, 60), lowest, [STYLE, *body], label)


def draw_tree(tree: Any) -> Drawing:
    """A tree of nested tuples (label, child, ...); whatever is not a tuple or a list is a word."""
    # An explicit stack: a tree may be deeper than Python's own allows.
    nodes: list[tuple[str, int, int | None]] = []  # label, depth, parent
    children: list[list[int]] = []
    stack: list[tuple[Any, int, int | None]] = [(tree, 0, None)]
    while stack:
        node, depth, parent = stack.pop()
        inner = isinstance(node, (tuple, list))
        if inner and not node:
            raise ValueError("a node of a tree needs a label")
        number = len(nodes)
        nodes.append((shorten(clean(node[0] if inner else node), LONGEST), depth, parent))
        children.append([])
        if parent is not None:
            children[parent].append(number)
        if inner:
            stack.extend((child, depth + 1, number) for child in reversed(node[1:]))
    # Numbers are in preorder: words from left to right, and children after their parents.
    deepest = max(depth for _, depth, _ in nodes)
    x, places = 6.0, [0.0] * len(nodes)
    for k, (name, _, _) in enumerate(nodes):
        if not children[k]:
            width = max(text_width(name, SIZE), 20.0) + 14
            places[k] = x + width / 2
            x += width
    shift = 0.0
    for k in range(len(nodes) - 1, -1, -1):
        if children[k]:
            places[k] = (places[children[k][0]] + places[children[k][-1]]) / 2
            half = text_width(nodes[k][0], 12) / 2 + 8
            shift = max(shift, half - places[k])
            x = max(x, places[k] + half)
    step = 40.0
    body: list[str] = []
    for k, (name, depth, parent) in enumerate(nodes):
        px, py = places[k] + shift, 8 + step * (depth if children[k] else deepest)
        if parent is not None:
            above = 8 + step * nodes[parent][1] + 20
            body.append(
                f'<path d="M{places[parent] + shift:.1f} {above:.1f}L{px:.1f} {py - 1:.1f}" stroke="#9aa5b1" '
                f'fill="none"{"" if children[k] else " stroke-dasharray=" + chr(34) + "3 3" + chr(34)}/>'
            )
        if children[k]:
            light, strong = colour_of(name)
            width = text_width(name, 12) + 12
            body.append(
                f'<rect x="{px - width / 2:.1f}" y="{py:.1f}" width="{width:.1f}" height="19" rx="5" fill="{light}"/>'
            )
            body.append(text(px, py + 14, name, cls="pw-tag", fill=strong))
        else:
            body.append(text(px, py + 14, name, cls="pw-word", fill=INK))
    words = " ".join(name for k, (name, _, _) in enumerate(nodes) if not children[k])
    return picture(x + shift + 6, 8 + step * deepest + 26, [STYLE, *body], f"Tree: {shorten(words, 300)}")


STYLE = (
    "<style>.pw-word{font-size:14px;unicode-bidi:isolate}.pw-tag{font-size:12px;font-weight:600;unicode-bidi:isolate}"
    ".pw-small{font-size:11px;unicode-bidi:isolate}</style>"
)


def _kind(tag: str) -> str:
    """What B-NP, I-NP and the like are about."""
    return tag[2:] if len(tag) > 2 and tag[0] in "BIESLUM" and tag[1] in "-_" else tag


def _check_lengths(n: int, **given: Any) -> None:
    for name, values in given.items():
        if values is not None and len(values) != n:
            raise ValueError(f"there are {n} tokens but {len(values)} {name}")


def _levels(arcs: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """How high each arc goes: one more than the highest it spans."""
    levels: dict[tuple[int, int], int] = {}
    for arc in sorted(arcs, key=lambda arc: abs(arc[0] - arc[1])):
        low, high = min(arc), max(arc)
        inside = [
            level for other, level in levels.items() if (low <= min(other) and max(other) <= high) or _cross(other, arc)
        ]
        levels[arc] = 1 + max(inside, default=0)
    return levels


def _cross(a: tuple[int, int], b: tuple[int, int]) -> bool:
    (p, q), (r, s) = sorted(a), sorted(b)
    return p < r < q < s or r < p < s < q


def _landing(middles: list[float], head: int, word: int) -> float:
    """Where an arc comes down: a little to the side its head is on."""
    return middles[word] + (6 if head > word else -6)


def _arc(middles: list[float], head: int, word: int, base: float, top: float, colour: str, dashed: bool = False) -> str:
    start = middles[head] + (6 if word > head else -6)
    end = _landing(middles, head, word)
    bend = 10.0 if end > start else -10.0
    turn = 10.0 if top < base else -10.0
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return (
        f'<path d="M{start:.1f} {base:.1f}V{top + turn:.1f}Q{start:.1f} {top:.1f} {start + bend:.1f} {top:.1f}'
        f'H{end - bend:.1f}Q{end:.1f} {top:.1f} {end:.1f} {top + turn:.1f}V{base:.1f}" '
        f'stroke="{colour}" stroke-width="1.4" fill="none"{dash}/>'
    )


def _tip(x: float, y: float, colour: str, down: bool) -> str:
    back = -7 if down else 7
    return f'<path d="M{x:.1f} {y:.1f}l-3.5 {back}h7z" fill="{colour}"/>'
