"""Tags and labelled segments of a sentence as pictures: strips under the words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from partwise.report import svg

#: From the top of a line to the bars of segments, and their height.
_LINE, _BAR = 26.0, 20.0

#: (label, begin, end), perhaps with a probability.
Span = Sequence[Any]


def draw_tags(
    tokens: Sequence[object],
    tags: Sequence[object],
    gold: Sequence[object] | None = None,
    probabilities: Sequence[float] | None = None,
    *,
    max_width: float = 860.0,
) -> svg.Drawing:
    """Draw words with their tags under them, as strips; where `gold` differs, the gold tag is shown in red.

    Parameters
    ----------
    tokens, tags, gold : sequences of the same length; gold tags are optional
    probabilities : sequence of float, optional
        How sure the model is of each tag, drawn as a bar.
    max_width : where lines are broken
    """
    svg.check_lengths(len(tokens), tags=tags, gold=gold, probabilities=probabilities)
    words, names = list(map(svg.shorten, tokens)), list(map(svg.shorten, tags))
    right = names if gold is None else list(map(svg.shorten, gold))
    wrong = [gold is not None and str(a) != str(b) for a, b in zip(tags, gold or tags, strict=True)]
    widths = [
        max(svg.text_width(word, svg.SIZE), svg.text_width(name, 12), svg.text_width(other, 12) if bad else 0.0, 26.0)
        + 14
        for word, name, other, bad in zip(words, names, right, wrong, strict=True)
    ]
    height = 50.0 + (18 if any(wrong) else 0) + (10 if probabilities is not None else 0) + 8
    places, widest, bottom = _places(widths, max_width, height)
    body = [svg.STYLE]
    for k, ((x, y), width) in enumerate(zip(places, widths, strict=True)):
        # B-NP, I-NP and the like have the colour of NP.
        light, strong = svg.colour_of(re.sub("^[BIESLUM][-_](?=.)", "", names[k]))
        middle, at = x + width / 2, y + _LINE
        body.append(svg.text(middle, y + 16, words[k], fill=svg.INK, cls="pw-word"))
        title = f"{svg.clean(tokens[k])}: {svg.clean(tags[k])}"
        body.append(_bar(x, at, width, light, svg.WRONG if wrong[k] else light, title))
        body.append(svg.text(middle, at + 14.5, names[k], fill=strong, cls="pw-tag"))
        at += 24
        if probabilities is not None:
            share = min(max(float(probabilities[k]), 0.0), 1.0)
            place = {"x": x + 4, "y": at, "height": 4, "rx": 2}
            body.append(svg.shape("rect", **place, width=width - 8, fill="#e4e7eb"))
            body.append(svg.shape("rect", f"{share:.3f}", **place, width=(width - 8) * share, fill=strong))
            at += 10
        if wrong[k]:
            body.append(svg.text(middle, at + 11, right[k], fill=svg.WRONG, cls="pw-tag"))
    label = "Tags: " + " ".join(f"{word}/{name}" for word, name in zip(words[:50], names, strict=False))
    return svg.picture(widest + 2, bottom if tokens else 20.0, body, label)


def draw_spans(
    tokens: Sequence[object], spans: Sequence[Span], gold: Sequence[Span] | None = None, *, max_width: float = 860.0
) -> svg.Drawing:
    """Draw words with bars under the segments that were found; below, in red, the gold ones that were missed.

    Parameters
    ----------
    tokens : sequence of words
    spans : sequence of (label, begin, end) or (label, begin, end, probability)
        Segments from `begin` up to, not including, `end`; one that is not in `gold` is drawn with a red edge.
    gold : sequence of (label, begin, end), optional
    max_width : where lines are broken
    """
    n = len(tokens)
    found, right = _segments("spans", spans, n), _segments("gold", gold or (), n)
    missed = [span for span in right if span not in found]
    words = list(map(svg.shorten, tokens))
    widths = [max(svg.text_width(word, svg.SIZE), 12.0) + 12 for word in words]
    titles = [svg.clean(span[0]) + "".join(f" {p:.0%}" for p in span[3:4] if p is not None) for span in spans]
    bars = [(title, span, gold is not None and span not in right) for title, span in zip(titles, found, strict=True)]
    for title, (_, begin, end), _ in [*bars, *((str(span[0]), span, True) for span in missed)]:
        lack = svg.text_width(title, 12) + 14 - sum(widths[begin:end])  # a title must fit into its bar
        for t in range(begin, end):
            widths[t] += max(0.0, lack) / (end - begin)
    height = _LINE + _BAR + (_BAR + 4 if missed else 0) + 14
    places, widest, bottom = _places(widths, max_width, height)
    body = [svg.STYLE]
    for (x, y), width, word in zip(places, widths, words, strict=True):
        body.append(svg.text(x + width / 2, y + 16, word, fill=svg.INK, cls="pw-word"))
    for title, span, wrong in bars:
        light, strong = svg.colour_of(span[0])
        for x, y, width in _pieces(places, widths, span):
            body.append(_bar(x, y + _LINE, width, light, svg.WRONG if wrong else light, title))
            body.append(svg.text(x + width / 2, y + _LINE + 14.5, title, fill=strong, cls="pw-tag"))
    for span in missed:
        for x, y, width in _pieces(places, widths, span):
            y += _LINE + _BAR + 4
            body.append(_bar(x, y, width, "none", svg.WRONG, span[0], dashes="4 3"))
            body.append(svg.text(x + width / 2, y + 14.5, span[0], fill=svg.WRONG, cls="pw-tag"))
    label = ", ".join(titles) or "no segments"
    return svg.picture(widest + 4, bottom, body, f"{' '.join(words)}: {label}")


def _places(widths: Sequence[float], most: float, height: float) -> tuple[list[tuple[float, float]], float, float]:
    """Return where words are drawn, in lines of at most this width, and the right and lower end of all lines."""
    places: list[tuple[float, float]] = []
    x, y, widest = 2.0, 0.0, 60.0
    for width in widths:
        if x > 2 and x + width > most:
            x, y = 2.0, y + height
        places.append((x, y))
        x += width
        widest = max(widest, x)
    return places, widest, y + height


def _bar(x: float, y: float, width: float, fill: str, stroke: str, title: str, dashes: str | None = None) -> str:
    place = {"x": x + 2, "y": y, "width": width - 4, "height": _BAR, "rx": 5, "stroke_width": 1.5}
    return svg.shape("rect", title, **place, fill=fill, stroke=stroke, stroke_dasharray=dashes)


def _segments(name: str, spans: Sequence[Span], n: int) -> list[tuple[str, int, int]]:
    """Return (label, begin, end) of each segment; ValueError for one outside of a sentence of n words."""
    found = []
    for label, begin, end, *_ in spans:
        if not 0 <= begin < end <= n:
            raise ValueError(f"{name}: [{begin}, {end}) is not in a sentence of {n} words")
        found.append((str(label), int(begin), int(end)))
    return found


def _pieces(
    places: Sequence[tuple[float, float]], widths: Sequence[float], span: tuple[str, int, int]
) -> list[tuple[float, float, float]]:
    """Return (left end, top, width) of a segment, in pieces where its line is broken."""
    pieces: list[tuple[float, float, float]] = []
    for (x, y), width in list(zip(places, widths, strict=True))[span[1] : span[2]]:
        if pieces and pieces[-1][1] == y:
            left = pieces.pop()[0]
            pieces.append((left, y, x + width - left))
        else:
            pieces.append((x, y, width))
    return pieces
