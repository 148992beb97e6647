"""Small problems of segment chains and second-order chains, like those of `problems.make_case` for other structures."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import segments  # noqa: F401 - registers enumerations
from .enumerate import enumeration_of
from .objective import matrix_of
from .problems import WEIGHTLESS, Case, bare_columns, random_weights


def segment_case(
    kind: str, seed: int, n: int, n_inputs: int, scale: float, plain: bool, part: tuple[int, int] | None
) -> Case:
    """Sequences of one to three positions with dense inputs and random labels. All segments of two positions are
    listed and have inputs too."""
    from partwise._core import SecondOrderChain, SegmentChain
    from partwise.features import TableRows, second_order_map, segment_map

    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, n).astype(np.int64)
    inputs, pairs = (rng.normal(size=(int(m), k)) for m, k in ((lengths.sum(), n_inputs), ((lengths - 1).sum(), 2)))
    labels = rng.integers(0, 2, len(inputs)).astype(np.int64)
    joined = rng.random(len(inputs)) < 0.7
    if not plain:
        empty, weightless = bare_columns(n_inputs)
        inputs[:, empty] = 0.0
        inputs[np.repeat(np.arange(n), lengths) != WEIGHTLESS, weightless] = 0.0
    weight = random_weights(rng, n, plain)
    chosen = slice(0, n) if part is None else slice(*part)
    owner = np.repeat(np.arange(n), lengths)
    mine = (owner >= chosen.start) & (owner < chosen.stop)
    pair_owner = np.repeat(np.arange(n), lengths - 1)
    pairs = pairs[(pair_owner >= chosen.start) & (pair_owner < chosen.stop)]
    lengths, inputs, labels, joined = lengths[chosen], scale * inputs[mine], labels[mine], joined[mine]
    weight, n = weight[chosen], chosen.stop - chosen.start
    if kind == "second-order":
        structure: Any = SecondOrderChain(lengths, 2)
        features = second_order_map(structure, inputs)
        gold = structure.encode(labels)
    else:
        begins = np.concatenate([np.arange(length - 1) for length in lengths.tolist()]).astype(np.int64)
        listed = (np.concatenate([[0], np.cumsum(lengths - 1)]), begins, begins + 2)
        structure = SegmentChain(lengths, 2, 2, listed=listed)
        rows = TableRows(inputs)
        features = segment_map(structure, rows, first=TableRows(inputs[:, :2].copy()), whole=TableRows(pairs))
        starts = np.ones(len(labels), dtype=np.uint8)
        position = np.concatenate([np.arange(length) for length in lengths.tolist()])
        for t in np.flatnonzero(joined & (position > 0)).tolist():
            starts[t] = not (labels[t] == labels[t - 1] and starts[t - 1])
        gold = structure.encode(labels, starts)
    examples = [enumeration_of(structure, i) for i in range(n)]
    return Case(
        structure, features, gold, weight, examples, [matrix_of(features, i) for i in range(n)], lengths.tolist()
    )
