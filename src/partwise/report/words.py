"""Names of scores and settings as people say them."""

from __future__ import annotations

import re
from typing import Any

_WHOLE = {
    "tol": "tolerance",
    "n_jobs": "threads",
    "random_state": "seed",
    "n_nonzero": "weights not zero",
    "max_passes": "most passes",
    "max_seconds": "most seconds",
    "max_length": "most words",
    "min_count": "least count",
    "dev": "development data",
}
_PARTS = {"f1": "F1", "uas": "UAS", "las": "LAS", "clas": "CLAS", "n": ""}
_NAME = re.compile(r"[A-Za-z0-9]+(_[A-Za-z0-9]+)+")
_SHORT = re.compile(r"\b(f1|uas|las|clas)\b")

#: How a run ended (`Result.status`).
STATUS = {
    "max_passes": "limit of passes",
    "max_seconds": "limit of time",
    "no certificate": "ended",
}


def in_words(name: Any) -> str:
    """`relative_gap` as "relative gap", `n_features` as "features", `uas` as "UAS"; other texts as they are."""
    text = str(name)
    if text in _WHOLE:
        return _WHOLE[text]
    if _NAME.fullmatch(text):
        text = " ".join(filter(None, (_PARTS.get(part, part) for part in text.split("_"))))
    return _SHORT.sub(lambda found: _PARTS[found[0]], text)


def titled(name: Any) -> str:
    """The same as the beginning of a title."""
    text = in_words(name)
    return text[:1].upper() + text[1:]
