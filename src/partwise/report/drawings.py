"""Predictions as pictures, from plain lists: tags as strips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partwise.report.svg import Drawing, clean, colour_of, picture, safe, shorten, text, text_width

WRONG = "#c62828"
INK = "#1f2933"
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
    check_lengths(n, tags=tags, gold=gold, probabilities=probabilities)
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


STYLE = (
    "<style>.pw-word{font-size:14px;unicode-bidi:isolate}.pw-tag{font-size:12px;font-weight:600;unicode-bidi:isolate}"
    ".pw-small{font-size:11px;unicode-bidi:isolate}</style>"
)


def _kind(tag: str) -> str:
    """What B-NP, I-NP and the like are about."""
    return tag[2:] if len(tag) > 2 and tag[0] in "BIESLUM" and tag[1] in "-_" else tag


def check_lengths(n: int, **given: Any) -> None:
    """ValueError, with its name, if one of these is not of the tokens' length."""
    for name, values in given.items():
        if values is not None and len(values) != n:
            raise ValueError(f"there are {n} tokens but {len(values)} {name}")
