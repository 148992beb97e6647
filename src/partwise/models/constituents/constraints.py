"""Constraints at prediction: spans that must be constituents, and spans that must not."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from partwise.models.constituents.grammar import ParsingGrammar
from partwise.structures import Grammar
from partwise.support.arrays import Bytes

Span = tuple[str | None, int, int]


def read_spans(given: object, name: str, sentence: str, n: int, labels: Collection[str]) -> list[Span]:
    """Read spans (begin, end) or (label, begin, end) as (label or None, begin, end); labels: those known."""
    if given is None:
        return []
    if isinstance(given, (str, dict)) or not isinstance(given, Iterable):
        raise ValueError(f"{name}: {sentence} needs None or a list of spans, got {given!r}")
    spans: list[Span] = []
    for item in given:
        parts = tuple(item) if isinstance(item, (tuple, list)) else ()
        label, ends = (parts[0], parts[1:]) if len(parts) == 3 else (None, parts)
        whole = len(ends) == 2 and all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in ends)
        if not whole or not (label is None or isinstance(label, str)):
            raise ValueError(f"{name}: {sentence}: {item!r} is not a span: (begin, end) or (label, begin, end)")
        if not 0 <= ends[0] < ends[1] <= n:
            raise ValueError(f"{name}: {sentence}: there is no span {item!r} in {n} words")
        if label is not None and label not in labels:
            raise ValueError(f"{name}: {sentence}: the model has no label {label!r}")
        spans.append((label, int(ends[0]), int(ends[1])))
    return spans


def span_mask(
    structure: Grammar, i: int, grammar: ParsingGrammar, required: list[Span], forbidden: list[Span]
) -> Bytes:
    """Return which slots are allowed, a byte per slot.

    No span that crosses a required one is allowed: then it is a node of every binary tree. There it must have the
    label, or be a constituent at all. Every word is a span: only labels can be required of it, or forbidden.
    """
    n = int(structure.lengths[i])
    mask = np.ones(structure.num_slots(i), dtype=np.uint8)
    *_, spans, words, other = structure.table_offsets(i)
    *_, span_width, word_width = structure.widths
    begins, ends = np.triu_indices(n + 1, 2)
    rows = mask[spans:words].reshape(len(begins), span_width or 1)
    lexical = mask[words:other].reshape(n, word_width)

    def columns(label: str | None, word: bool) -> list[int]:
        """Return the columns in which a span is a constituent with this label."""
        if word:
            return [k for k, labels in enumerate(grammar.word_labels) if label is None or label in labels]
        return [k for k, c in enumerate(grammar.columns) if not c.made and (label is None or label in c.labels)]

    def row(begin: int, end: int) -> Bytes:
        own: Bytes = lexical[begin] if end == begin + 1 else rows[np.flatnonzero((begins == begin) & (ends == end))[0]]
        return own

    for label, begin, end in required:
        left = (begins < begin) & (begin < ends) & (ends < end)
        rows[left | ((begin < begins) & (begins < end) & (end < ends))] = 0
        own = row(begin, end)
        kept = np.zeros_like(own)
        kept[columns(label, end == begin + 1)] = 1
        own &= kept
    for label, begin, end in forbidden:
        if label is None and end > begin + 1:
            own = row(begin, end)
            kept = np.zeros_like(own)
            kept[[k for k, c in enumerate(grammar.columns) if c.made]] = 1
            own &= kept
        else:
            row(begin, end)[columns(label, end == begin + 1)] = 0
    return mask
