"""The CoNLL-2000 data, for chunking and part-of-speech tagging, and the usual attributes of its tokens."""

from __future__ import annotations

import os
from collections.abc import Sequence

from partwise.datasets.columns import read_columns
from partwise.datasets.folder import Dataset, data_file

Attributes = list[list[list[str]]]

_WINDOW = 2


def conll2000(
    data: str | os.PathLike[str] | None = None, *, task: str = "chunks"
) -> Dataset[Attributes, list[list[str]]]:
    """Read the CoNLL-2000 data from ``conll2000/{train,test}.txt`` (or ``.gz``).

    task "chunks": X holds each token's `chunk_features`, y its chunk label in IOB2. task "pos": X holds each token's
    `pos_features`, y its part of speech.
    """
    if task not in ("chunks", "pos"):
        raise ValueError(f"task must be 'chunks' or 'pos', got {task!r}")
    train, test = _read_part("train.txt", data, task), _read_part("test.txt", data, task)
    return Dataset(*train, *test)


def _read_part(name: str, data: str | os.PathLike[str] | None, task: str) -> tuple[Attributes, list[list[str]]]:
    path = data_file("conll2000", name, data)
    sentences = read_columns(path)
    if sentences and len(sentences[0]) != 3:
        raise ValueError(f"{path}: {len(sentences[0])} columns, expected word, part of speech and chunk")
    if task == "pos":
        return [pos_features(words) for words, _, _ in sentences], [tags for _, tags, _ in sentences]
    return [chunk_features(words, tags) for words, tags, _ in sentences], [labels for _, _, labels in sentences]


def pos_features(tokens: Sequence[str]) -> list[list[str]]:
    """Attributes for part-of-speech tagging, after Ratnaparkhi 1996.

    The words up to two tokens away, prefixes and suffixes of up to four letters, and whether the word has a digit, an
    upper-case letter or a hyphen. (There the spelling is looked at for rare words only.) The tags before a token are
    the tagger's own business: ``SequenceTagger(model="maxent")``.
    """
    pad = ["__NONE__"] * _WINDOW
    w = [*pad, *tokens, *pad]
    rows = []
    for t, word in enumerate(tokens, _WINDOW):
        row = [f"w[{k}]={w[t + k]}" for k in range(-_WINDOW, _WINDOW + 1)]
        row += [f"prefix={word[:k]}" for k in range(1, min(4, len(word)) + 1)]
        row += [f"suffix={word[-k:]}" for k in range(1, min(4, len(word)) + 1)]
        row += [
            name
            for name, there in (
                ("digit", any(map(str.isdigit, word))),
                ("upper", any(map(str.isupper, word))),
                ("hyphen", "-" in word),
            )
            if there
        ]
        rows.append(row)
    return rows


def chunk_features(tokens: Sequence[str], pos: Sequence[str]) -> list[list[str]]:
    """Attributes of a sentence's tokens, by the 19 templates of CRFsuite's chunking example.

    Words and parts of speech up to two tokens away, the word pairs with the neighbours, all part-of-speech pairs and
    triples inside that window. A template that reaches past the sentence gives no attribute; the first token has
    also ``__BOS__`` and the last ``__EOS__``.
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
