"""Which features a segment model has, chosen from training data."""

from __future__ import annotations

import numpy as np

from partwise.features import Attributes
from partwise.models.costs import row_costs
from partwise.models.features import PairLayout, Rows, expand_pairs, layout_of
from partwise.models.segments.spans import Segments
from partwise.problem.batch import structure_costs
from partwise.structures import SegmentChain
from partwise.support.arrays import Booleans, Floats, Ints, pointers


def some_rows(rows: Rows, places: Ints) -> Rows:
    """Some of the rows, as a sequence each."""
    lengths = np.ones(len(places), dtype=np.int64)
    if not isinstance(rows.table, Attributes):
        return Rows(lengths, rows.n_attributes, rows.table[places])
    table = rows.table
    sizes = np.diff(table.row_ptr)[places]
    entries = np.repeat(table.row_ptr[:-1][places] - pointers(sizes)[:-1], sizes) + np.arange(int(sizes.sum()))
    values = None if table.values is None else table.values[entries]
    return Rows(
        lengths, rows.n_attributes, Attributes(pointers(sizes), table.attributes[entries], table.num_attributes, values)
    )


def without_types(layout: PairLayout, types: Booleans) -> PairLayout:
    """The layout without pairs of these types.

    The borders of O are its inside: the same feature three times would be one that is three times as large, and slow
    training down.
    """
    attributes, columns = expand_pairs(*layout.core.pairs())
    kept = ~types[columns]
    return layout_of(
        layout.core.num_attributes, layout.core.n_columns, layout.core.width, attributes[kept], columns[kept]
    )


def segment_counts(gold: Segments) -> Ints:
    """Number of segments of each sequence."""
    ends = np.cumsum(gold.lengths)
    return np.diff(np.searchsorted(gold.firsts, ends), prepend=0)


def costs_of_segments(structure: SegmentChain, gold: tuple[Ints, Ints, Floats], table: Floats | None) -> Floats | None:
    """The user's costs of positions by their types, with the structure's of borders; None if there are none."""
    if table is None:
        return None
    others = structure_costs(structure, gold)
    types, _ = structure.decode(*gold)
    return row_costs(structure.slot_offsets(), structure.lengths, structure.width, types, table, others)
