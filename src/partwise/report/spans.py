"""Labelled segments of a sentence as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partwise.report.drawings import INK, LONGEST, SIZE, STYLE, WRONG
from partwise.report.svg import Drawing, clean, colour_of, picture, safe, shorten, text, text_width

_LINE, _BAR = 26.0, 20.0


def draw_spans(
    tokens: Sequence[Any],
    spans: Sequence[Any],
    gold: Sequence[Any] | None = None,
    *,
    max_width: float = 860.0,
) -> Drawing:
    """Words with bars under the segments that were found; below, in red, the gold ones that were not.

    Parameters
    ----------
    tokens : sequence of words
    spans : sequence of (label, begin, end) or (label, begin, end, probability)
        Segments from `begin` up to, not including, `end`; one that `gold` has not is drawn with a red edge.
    gold : sequence of (label, begin, end), optional
        The right ones.
    max_width : float
        Where lines are broken.
    """
    n = len(tokens)
    for name, given in (("spans", spans), ("gold", gold or ())):
        for _, begin, end, *_ in given:
            if not 0 <= begin < end <= n:
                raise ValueError(f"{name}: [{begin}, {end}) is not in a sentence of {n} words")
    found = [tuple(span[:3]) for span in spans]
    missed = [] if gold is None else [tuple(span[:3]) for span in gold if tuple(span[:3]) not in found]
    titles = {k: _title(span) for k, span in enumerate(spans)}
    words = [shorten(clean(token), LONGEST) for token in tokens]
    widths = [max(text_width(word, SIZE), 12.0) + 12 for word in words]
    shown = [(titles[k], *found[k][1:]) for k in range(len(spans))] + [(str(label), b, e) for label, b, e in missed]
    for title, begin, end in shown:  # a title must fit into its bar
        lack = text_width(title, 12) + 14 - sum(widths[begin:end])
        for t in range(begin, end):
            widths[t] += max(0.0, lack) / (end - begin)
    height = _LINE + _BAR + (_BAR + 4 if missed else 0) + 14
    places: list[tuple[float, float]] = []
    x, y, widest = 2.0, 0.0, 60.0
    for width in widths:
        if x > 2 and x + width > max_width:
            x, y = 2.0, y + height
        places.append((x, y))
        x += width
        widest = max(widest, x)
    body = [
        text(x + w / 2, y + 16, word, fill=INK, cls="pw-word")
        for (x, y), w, word in zip(places, widths, words, strict=True)
    ]
    right = set(found) if gold is None else {tuple(span[:3]) for span in gold}
    for k, span in enumerate(found):
        body += _bars(places, widths, span, titles[k], _LINE, span not in right, dashed=False)
    for span in missed:
        body += _bars(places, widths, span, str(span[0]), _LINE + _BAR + 4, True, dashed=True)
    label = ", ".join(titles.values()) or "no segments"
    return picture(widest + 4, y + height, [STYLE, *body], f"{' '.join(words)}: {label}")


def _title(span: Any) -> str:
    known = len(span) > 3 and span[3] is not None
    return f"{clean(span[0])} {span[3]:.0%}" if known else clean(span[0])


def _bars(
    places: Sequence[tuple[float, float]],
    widths: Sequence[float],
    span: Any,
    title: str,
    down: float,
    wrong: bool,
    *,
    dashed: bool,
) -> list[str]:
    """The bar of a segment, in pieces where its line is broken."""
    label, begin, end = span
    light, strong = colour_of(str(label))
    pieces: list[list[int]] = []
    for t in range(begin, end):
        if pieces and places[pieces[-1][-1]][1] == places[t][1]:
            pieces[-1].append(t)
        else:
            pieces.append([t])
    body = []
    for piece in pieces:
        x, y = places[piece[0]]
        width = places[piece[-1]][0] + widths[piece[-1]] - x
        style = f'fill="{"none" if dashed else light}" stroke="{WRONG if wrong else light}" stroke-width="1.5"'
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        place = f'x="{x + 2:.1f}" y="{y + down:.1f}" width="{width - 4:.1f}" height="{_BAR:.0f}"'
        body.append(f'<rect {place} rx="5" {style}{dashes}><title>{safe(title)}</title></rect>')
        body.append(text(x + width / 2, y + down + 14.5, title, fill=WRONG if dashed else strong, cls="pw-tag"))
    return body
