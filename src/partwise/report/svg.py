"""Texts, shapes and colours of pictures: everything that comes from outside is escaped here."""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Sequence

from markupsafe import Markup, escape

#: Width of a Latin letter over the font's size, on the safe side for the fonts that browsers take.
_LETTER = 0.6
#: Colours of words, and of what differs from gold; size of words; letters of a word that are shown.
INK, WRONG, SIZE, LONGEST = "#1f2933", "#c62828", 14.0, 40
#: Styles of words, tags and small texts.
STYLE = (
    "<style>.pw-word{font-size:14px;unicode-bidi:isolate}.pw-tag{font-size:12px;font-weight:600;unicode-bidi:isolate}"
    ".pw-small{font-size:11px;unicode-bidi:isolate}</style>"
)
#: Characters that change the direction of what follows.
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufffe\uffff")


class Drawing(Markup):
    """A finished picture (SVG), which notebooks show and reports take as it is."""

    def _repr_html_(self) -> str:
        return str(self)


def clean(value: object) -> str:
    """Return a value as text that a page can hold: lone surrogates and control characters are made visible."""
    text = str(value)
    return text if text.isprintable() and text.isascii() else "".join(map(_visible, text))


def safe(value: object) -> str:
    """Return a value as clean text, escaped for the inside of an element or an attribute."""
    return str(escape(clean(value)))


def _visible(letter: str) -> str:
    code = ord(letter)
    if code < 0x20 or code == 0x7F:
        return chr(0x2400 + min(code, 0x21))  # the pictures of control characters; that of 0x7F is the last
    # Line separators, direction overrides and other controls could rearrange what stands around them.
    if 0xD800 <= code <= 0xDFFF or unicodedata.category(letter) in ("Cc", "Zl", "Zp") or letter in _DIRECTIONS:
        return "\ufffd"
    return letter


def text_width(value: str, size: float) -> float:
    """Return about how wide a text is drawn."""
    total = 0.0
    for letter in value:
        if not (unicodedata.combining(letter) or unicodedata.category(letter) in ("Cf", "Mn")):
            total += 1.05 if unicodedata.east_asian_width(letter) in "WF" else _LETTER + 0.12 * letter.isupper()
    return total * size


def shorten(value: object, most: int = LONGEST) -> str:
    """Return a value as clean text of at most this many letters, with an ellipsis where some are left out."""
    text = clean(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def text(x: float, y: float, value: object, *, anchor: str = "middle", cls: str = "", fill: str = "") -> str:
    """Return a text element; its content is escaped."""
    extra = (f' class="{cls}"' if cls else "") + (f' fill="{fill}"' if fill else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{safe(value)}</text>'


def shape(name: str, title: object = "", **attributes: str | float | None) -> str:
    """Return an element with these attributes (`stroke_width` is stroke-width; None: left out) and a title."""
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            shown = value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
            parts.append(f'{key.replace("_", "-")}="{shown}"')
    content = f"><title>{safe(title)}</title></{name}>" if title != "" else "/>"
    return f"<{' '.join(parts)}{content}"


def picture(width: float, height: float, body: Sequence[str], label: str, style: str = "") -> Drawing:
    """Return the shapes in a frame of this size; `label` is its text for screen readers."""
    font = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif"
    return Drawing(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{safe(label)}" style="{font};{style}">'
        + "".join(body)
        + "</svg>"
    )


def colour_of(name: str) -> tuple[str, str]:
    """Return (light, strong) colours that belong to a name, the same everywhere."""
    if name in ("O", "_", ""):
        return "#eef0f3", "#52606d"
    hue = zlib.crc32(clean(name).encode()) * 137.508 % 360
    return f"hsl({hue:.0f},70%,90%)", f"hsl({hue:.0f},55%,28%)"


def check_lengths(n: int, **given: Sequence[object] | None) -> None:
    """Raise ValueError, with its name, if a sequence is not of the tokens' length."""
    for name, values in given.items():
        if values is not None and len(values) != n:
            raise ValueError(f"there are {n} tokens but {len(values)} {name}")
