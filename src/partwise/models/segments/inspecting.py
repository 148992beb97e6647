"""Weights of segment models by name, explanations, pruning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.models.base import Reading
from partwise.models.features import layout_of, look_up
from partwise.models.inspection import (
    Contribution,
    Explanation,
    TopFeatures,
    choose_kept,
    counts_of,
    explanation,
    largest,
)
from partwise.models.sequences.explain import contrasted, labels_of
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.models.segments.model import SegmentModel

#: What an attribute of a table is called in front of its name.
PREFIX = {"inside": "", "first": "first: ", "last": "last: ", "whole": "segment: "}
KINDS = {"inside": "attribute", "first": "first", "last": "last", "whole": "segment"}


def top_features(model: SegmentModel, n: int) -> TopFeatures:
    """The largest weights of every type, tables together, and of every pair of types."""
    found: dict[Any, list[tuple[Any, float]]] = {}
    tables = {name: model.table(name) for name in PREFIX}
    lengths = model.length_features()
    for b in range(model.n_types):
        label = model.type_name(b)
        rows: list[tuple[Any, float]] = []
        for table, (attributes, types, weights) in tables.items():
            own = types == b
            rows += [
                (f"{PREFIX[table]}{name}", weight)
                for name, weight in largest(
                    lambda k, table=table: model.attribute_name(table, k), attributes[own], weights[own], n
                )
            ]
        rows += [(f"length {d}", weight) for (d, name), weight in lengths.items() if name == label and weight]
        found[label] = sorted(rows, key=lambda row: -abs(row[1]))[:n]
    pairs = {pair: [(None, weight)] for pair, weight in model.transition_features().items() if weight}
    return TopFeatures(found, dict(sorted(pairs.items(), key=lambda item: -abs(item[1][0][1]))))


def explain_segments(model: SegmentModel, reading: Reading, position: int | None = None, *labels: Any) -> Explanation:
    """What each feature adds to the best segmentation, less what it adds to another one (see `contrasted`)."""
    structure: Any = reading.batch.structure
    found_two = contrasted(model, reading, position, *labels)
    one, two = (model.classes[row].tolist() for row in labels_of(model, reading, list(found_two)))
    counts = np.zeros((2, structure.num_slots(0)))
    for row, (_, slots, uses) in zip(counts, found_two, strict=True):
        row[slots] = uses
    found = _contributions(model, reading, counts.reshape(2, -1, model.width), one, two)
    return explanation(one, two, (found_two[0][0], found_two[1][0]), found, position)


def _contributions(model: SegmentModel, reading: Reading, counts: Floats, one: Any, two: Any) -> list[Contribution]:
    """What the slots in which the two differ add; counts: how often each has them."""
    rows = counts[0] - counts[1]
    length, n, longest = len(one), model.n_types, model.max_length
    found: list[Contribution] = []
    source = reading.source.rows
    table = source.attributes()
    for k, name in enumerate(("inside", "first", "last")):
        if model.layouts[name].core.num_attributes:
            found += _of_rows(model, name, rows[k * length : (k + 1) * length], table, np.arange(length), one, two)
    runs = model.split(model.weights)
    start = 3 * length
    for name, size in (("lengths", longest), ("transitions", n)):
        own, weights = rows[start : start + size, :n], runs[name].reshape(size, model.width)[:, :n]
        for a, b in np.argwhere(own).tolist():
            title = (
                f"{a + 1} {model.type_name(b)}" if name == "lengths" else f"{model.type_name(a)} {model.type_name(b)}"
            )
            kind = "length" if name == "lengths" else "transition"
            first, second = (int(each[start + a, b]) for each in counts)
            found.append(Contribution(kind, title, None, first, second, float(own[a, b] * weights[a, b])))
        start += size
    if model.layouts["whole"].core.num_attributes:
        listed = model.find(source)
        found += _of_rows(model, "whole", rows[start:], listed.rows, listed.listed[1], one, two)
    return found


def _of_rows(
    model: SegmentModel, name: str, rows: Floats, table: Any, positions: Ints, one: Any, two: Any
) -> list[Contribution]:
    owner = np.repeat(np.arange(len(rows)), np.diff(table.row_ptr))
    values = np.ones(len(owner)) if table.values is None else table.values
    features, found = model.table(name), []
    for b in range(model.n_types):
        some = np.flatnonzero((rows[owner, b] != 0) & (table.attributes >= 0))
        ids, place = table.attributes[some], owner[some]
        amounts = rows[place, b] * values[some] * look_up(features, ids, np.full(len(ids), b))
        for j, t, amount in zip(ids.tolist(), positions[place].tolist(), amounts.tolist(), strict=True):
            found.append(Contribution(KINDS[name], model.attribute_name(name, j), t, one[t], two[t], amount))
    return found


def prune_segments(
    model: SegmentModel, threshold: float | None, keep: float | None
) -> tuple[SegmentModel, tuple[int, int, float]]:
    """The model without small weights; attributes without any are no longer known."""
    runs, n, width = model.split(model.weights), model.n_types, model.width
    tables = {name: model.table(name) for name in PREFIX}
    cells = {
        "lengths": np.flatnonzero(model.length_mask),
        "transitions": np.flatnonzero(model.transition_mask),
    }
    values = {name: tables[name][2] if name in tables else runs[name][cells[name]] for name in runs}
    everything = np.concatenate(list(values.values()))
    kept = choose_kept(everything, threshold, keep)
    parts = np.split(kept, np.cumsum([len(value) for value in values.values()])[:-1])
    chosen = dict(zip(values, parts, strict=True))
    pruned = model.with_weights(model.weights)
    used = np.zeros(model.reader.n_attributes, dtype=bool)
    for name in ("inside", "first", "last"):
        used[tables[name][0][chosen[name]]] = True
    pruned.reader, number = model.reader.keep(used)
    of_whole = np.zeros(len(model.whole.names), dtype=bool)
    of_whole[tables["whole"][0][chosen["whole"]]] = True
    pruned.whole, whole_number = model.whole.kept(of_whole)
    pruned.layouts, new = {}, {}
    for name, (attributes, types, weights) in tables.items():
        renumbered = whole_number if name == "whole" else number
        own = chosen[name]
        size = int(renumbered.max(initial=-1)) + 1 if model.layouts[name].core.num_attributes else 0
        pruned.layouts[name] = layout_of(size, n, width, renumbered[attributes[own]], types[own])
        new[name] = pruned.layouts[name].core.pack(weights[own])
    for name, where in cells.items():
        new[name] = np.zeros_like(runs[name])
        new[name][where[chosen[name]]] = values[name][chosen[name]]
    pruned.transition_mask = np.zeros_like(model.transition_mask)
    pruned.transition_mask[cells["transitions"][chosen["transitions"]]] = 1
    return pruned.with_weights(np.concatenate([new[name] for name in runs])), counts_of(everything, kept)
