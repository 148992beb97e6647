"""Text chunking: the CoNLL-2000 data and the usual attributes of its tokens."""

from __future__ import annotations

import os
from collections.abc import Sequence

from partwise.datasets.columns import read_columns
from partwise.datasets.folder import Dataset, data_file

Attributes = list[list[list[str]]]

_WINDOW = 2


def conll2000(data: str | os.PathLike[str] | None = None) -> Dataset[Attributes, list[list[str]]]:
    """Read the CoNLL-2000 chunking data from ``conll2000/{train,test}.txt`` (or ``.gz``).

    X holds each token's `chunk_features`, y its chunk label in IOB2.
    """
    train, test = _read_part("train.txt", data), _read_part("test.txt", data)
    return Dataset(*train, *test)


def _read_part(name: str, data: str | os.PathLike[str] | None) -> tuple[Attributes, list[list[str]]]:
    path = data_file("conll2000", name, data)
    sentences = read_columns(path)
    if sentences and len(sentences[0]) != 3:
        raise ValueError(f"{path}: {len(sentences[0])} columns, expected word, part of speech and chunk")
    return [chunk_features(words, tags) for words, tags, _ in sentences], [labels for _, _, labels in sentences]


def chunk_features(tokens: Sequence[str], pos: Sequence[str]) -> list[list[str]]:
    """Attributes of a sentence's tokens, by the 19 templates of CRFsuite's chunking example.

    Words and parts of speech up to two tokens away, the word pairs with the neighbours, all part-of-speech pairs and
    triples inside that window. A template that reaches past the sentence gives no attribute; the first token has
    ``__BOS__`` besides and the last ``__EOS__``.
    """
    n = len(tokens)
    if len(pos) != n:
        raise ValueError(f"{n} tokens but {len(pos)} parts of speech")
    if not n:
        return []
    pad = [""] * _WINDOW
    w, p = [*pad, *tokens, *pad], [*pad, *pos, *pad]
    rows = [
        [
            f"w[-2]={w2}",
            f"w[-1]={w1}",
            f"w[0]={w0}",
            f"w[1]={v1}",
            f"w[2]={v2}",
            f"w[-1]|w[0]={w1}|{w0}",
            f"w[0]|w[1]={w0}|{v1}",
            f"pos[-2]={p2}",
            f"pos[-1]={p1}",
            f"pos[0]={p0}",
            f"pos[1]={q1}",
            f"pos[2]={q2}",
            f"pos[-2]|pos[-1]={p2}|{p1}",
            f"pos[-1]|pos[0]={p1}|{p0}",
            f"pos[0]|pos[1]={p0}|{q1}",
            f"pos[1]|pos[2]={q1}|{q2}",
            f"pos[-2]|pos[-1]|pos[0]={p2}|{p1}|{p0}",
            f"pos[-1]|pos[0]|pos[1]={p1}|{p0}|{q1}",
            f"pos[0]|pos[1]|pos[2]={p0}|{q1}|{q2}",
        ]
        for w2, w1, w0, v1, v2, p2, p1, p0, q1, q2 in zip(
            w, w[1:], w[2:], w[3:], w[4:], p, p[1:], p[2:], p[3:], p[4:], strict=False
        )
    ]
    # Templates are written out for every token, which is fast; what reached past the ends is dropped after.
    for t in {*range(min(_WINDOW, n)), *range(max(n - _WINDOW, 0), n)}:
        rows[t] = [text for text, (low, high) in zip(rows[t], _REACH, strict=True) if t + low >= 0 and t + high < n]
    rows[0].append("__BOS__")
    rows[-1].append("__EOS__")
    return rows


# The first and last offset each template looks at, in the order above.
_REACH = (
    *((k, k) for k in range(-2, 3)),
    *((-1, 0), (0, 1)),
    *((k, k) for k in range(-2, 3)),
    *((k, k + 1) for k in range(-2, 2)),
    *((k, k + 2) for k in range(-2, 1)),
)
