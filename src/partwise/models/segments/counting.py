"""Which features a segment model has, chosen from counts over blocks of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partwise.models.features import PairLayout, Rows, layout_of
from partwise.models.segments.choosing import segment_counts, some_rows, without_types
from partwise.models.segments.spans import Segments
from partwise.models.segments.storing import TABLES
from partwise.models.sequences.features import Choice, LayoutCounts, transition_counts
from partwise.support.arrays import Ints

if TYPE_CHECKING:
    from partwise.models.segments.model import SegmentModel


class SegmentCounts:
    """Counts the attributes of positions inside segments and at their borders, and pairs of neighbouring segments."""

    def __init__(self, model: SegmentModel) -> None:
        self.model = model
        n = model.n_types
        choice = Choice(
            n_attributes=model.reader.n_attributes,
            n_labels=n,
            observed=model.observed,
            observed_transitions=False,  # those of segments are counted here
            min_count=int(model.min_count),
            edge_only=None,
            edge_ids=None,
            plain=True,
        )
        self._tables = {"inside": LayoutCounts(choice)}
        self._tables |= {name: LayoutCounts(choice) for name in ("first", "last") if model.borders in ("both", name)}
        self._transitions: Ints = np.zeros(n * model.width, dtype=np.int64)

    def add(self, rows: Rows, gold: Segments) -> None:
        """A block of sequences with their segments."""
        places = {"first": gold.firsts, "last": gold.lasts}
        for name, counts in self._tables.items():
            if name == "inside":
                counts.add(rows, gold.types)
            else:
                counts.add(some_rows(rows, places[name]), gold.types[places[name]])
        self._transitions += transition_counts(segment_counts(gold), gold.types[gold.firsts], self.model.n_types)

    def choose(self) -> None:
        """The model's features."""
        model, n = self.model, self.model.n_types
        none = layout_of(0, n, model.width, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        model.layouts = dict.fromkeys(TABLES, none)
        for name, counts in self._tables.items():
            layout = counts.nodes()
            model.layouts[name] = layout if name == "inside" else without_types(layout, model.outside)
        n_whole = len(model.whole.names)
        if n_whole and model.whole.needs_words:
            # every listed segment of training text may take a feature's weight, whose sign then says what it is not
            model.layouts["whole"] = PairLayout.every(n_whole, n, model.width)
        observed = (model.features if model.transitions == "auto" else model.transitions) == "observed"
        mask = np.tile((np.arange(model.width) < n).astype(np.uint8), n)
        if observed:
            mask = (self._transitions >= int(model.min_count)).astype(np.uint8)
        model.transition_mask = mask if model.reader.plain_transitions else np.zeros_like(mask)
