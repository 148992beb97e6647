"""All segmentations of a sequence with labels, and all labellings of a second-order chain, each as an `Enumeration`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .enumerate import Enumeration, _allowed, enumerator

Segmentation = tuple[tuple[int, int, int], ...]


def segmentations(length: int, max_lengths: list[int], begin: int = 0) -> Iterator[Segmentation]:
    """Every way to cut [begin, length) into segments (begin, end, label) of at most max_lengths[label] positions."""
    if begin == length:
        yield ()
    for end in range(begin + 1, length + 1):
        for label, longest in enumerate(max_lengths):
            if end - begin <= longest:
                for rest in segmentations(length, max_lengths, end):
                    yield ((begin, end, label), *rest)


def without_joints(every: Enumeration, allowed: Any, width: int) -> Enumeration:
    """Keep segmentations that continue no segment at a position where `allowed` is 0 for its label.

    allowed: a byte per position and label. A position continues a segment if it is not the first of the segment.
    """
    codes = every.labellings
    joined = np.take_along_axis(np.asarray(allowed).reshape(-1, width), (codes // 2).T, axis=1).T
    return _kept(codes, every.counts, np.all((codes % 2 == 0) | (joined > 0), axis=1))


def segment_slots(structure: Any, i: int, segments: Segmentation) -> list[int]:
    """The slots of a segmentation. A slot that is used k times is listed k times."""
    length, width = int(structure.lengths[i]), structure.width
    ptr, begins, ends = structure.listed
    own = list(zip(begins[ptr[i] : ptr[i + 1]].tolist(), ends[ptr[i] : ptr[i + 1]].tolist(), strict=True))
    rows: list[tuple[int, int]] = []
    for k, (begin, end, label) in enumerate(segments):
        rows += [(u, label) for u in range(begin, end)]
        rows += [(length + begin, label), (2 * length + end - 1, label), (3 * length + end - begin - 1, label)]
        edges = 3 * length + structure.max_length
        if k > 0:
            rows.append((edges + segments[k - 1][2], label))
        if (begin, end) in own:
            rows.append((edges + structure.n_labels + own.index((begin, end)), label))
    return [row * width + label for row, label in rows]


@enumerator("SegmentChain")
def segment_chain_of(structure: Any, i: int) -> Enumeration:
    """All segmentations. labellings: for each position 2 * label + (0 where a segment begins, else 1)."""
    length = int(structure.lengths[i])
    every = list(segmentations(length, structure.max_lengths.tolist()))
    labellings = np.zeros((len(every), length), dtype=np.int64)
    counts = np.zeros((len(every), structure.num_slots(i)))
    for codes, row, segments in zip(labellings, counts, every, strict=True):
        for begin, end, label in segments:
            codes[begin:end] = 2 * label + 1
            codes[begin] = 2 * label
        np.add.at(row, segment_slots(structure, i, segments), 1.0)
    return _kept(labellings, counts, _allowed(counts, structure.mask(i)))


def _kept(labellings: Any, counts: Any, keep: Any) -> Enumeration:
    none = np.zeros((int(keep.sum()), 0), dtype=np.int64)
    return Enumeration(labellings[keep], counts[keep], none, np.array([0]))


@enumerator("SecondOrderChain")
def second_order_chain_of(structure: Any, i: int) -> Enumeration:
    """All label sequences. Slots: T rows of labels, rows (a, b) of pairs, then for each a rows (b, c) of triples."""
    length, n_labels, width = int(structure.lengths[i]), structure.n_labels, structure.width
    labellings = np.array(list(itertools.product(range(n_labels), repeat=length)), dtype=np.int64)
    counts = np.zeros((len(labellings), structure.num_slots(i)))
    pairs = length * width
    triples = pairs + n_labels * width
    for row, labels in zip(counts, labellings.tolist(), strict=True):
        for t, c in enumerate(labels):
            row[t * width + c] += 1
            if t > 0:
                row[pairs + labels[t - 1] * width + c] += 1
            if t > 1:
                row[triples + (labels[t - 2] * n_labels + labels[t - 1]) * width + c] += 1
    return _kept(labellings, counts, _allowed(counts, structure.mask(i)))
