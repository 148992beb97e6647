"""Inspection of taggers: largest weights, why an answer was given, models without their small weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from partwise._core import Vocabulary
from partwise.estimators.chains import ChainModel, PairLayout, edge_attributes, expand_pairs
from partwise.estimators.explaining import Contribution, Explanation, TopFeatures, choose_kept, explanation, largest
from partwise.estimators.inputs import ColumnReader, Floats, Ints, Rows, pointers
from partwise.estimators.kernel_chain import KernelChainModel
from partwise.estimators.local import LocalModel, tags_before
from partwise.estimators.warm import look_up


def name_of(reader: Any) -> Callable[[int], Any]:
    """The name of an attribute by its number: one string at a time, not all of them."""
    if isinstance(reader, ColumnReader):
        return int
    vocabulary: Vocabulary = reader.vocabulary
    return vocabulary.__getitem__


def top_of_tagger(
    reader: Any, model: ChainModel | LocalModel, weights: Floats, classes: list[Any], n: int
) -> TopFeatures:
    """The largest weights of every label and every transition."""
    names = name_of(reader)
    attributes, labels, values = model.node_features(weights)
    found = {}
    for b, label in enumerate(classes):
        own = labels == b
        found[label] = largest(names, attributes[own], values[own], n)
    pairs: dict[tuple[Any, ...], list[tuple[Any, float]]] = {}
    if isinstance(model, LocalModel):
        pairs = {key: [(None, weight)] for key, weight in model.named_history(weights, classes).items() if weight}
    else:
        ids, cells, values = model.edge_features(weights)
        # Attribute 0 is the pair's own weight.
        chosen = np.flatnonzero(model.edge_ids > 0) if model.edge_ids is not None else np.empty(0, dtype=np.int64)
        attributes = np.concatenate([[-1], chosen])[ids]
        order = np.argsort(cells, kind="stable")
        cells, starts = np.unique(cells[order], return_index=True)
        for cell, own in zip(cells.tolist(), np.split(order, starts[1:]), strict=True):
            first, second = divmod(cell, model.width)
            rows = largest(names, attributes[own], values[own], n) if second < len(classes) else []
            if rows:
                pairs[classes[first], classes[second]] = rows
    return TopFeatures(found, dict(sorted(pairs.items(), key=lambda item: -abs(item[1][0][1]))))


def explain_tags(
    reader: Any,
    model: ChainModel,
    weights: Floats,
    classes: list[Any],
    rows: Rows,
    answers: list[tuple[Ints, float]],
) -> Explanation:
    """The features that make one labelling of a sequence better than another."""
    (one, score), (two, other) = answers
    names = name_of(reader)
    found = _positions(names, model, weights, classes, rows, one, two)
    # transitions: their own weight is edge attribute 0
    if len(one) > 1:
        found += _edges(names, model, weights, classes, rows, one, two)
    if model.ends:
        begin, end = model.split(weights)[2].reshape(2, model.width)
        for kind, row, t in (("begin", begin, 0), ("end", end, len(one) - 1)):
            amount = float(row[one[t]] - row[two[t]])
            found.append(Contribution(kind, None, t, classes[one[t]], classes[two[t]], amount))
    best, second = ([classes[label] for label in labels] for labels in (one.tolist(), two.tolist()))
    return explanation(best, second, (score, other), found)


def explain_local_tags(
    reader: Any,
    model: LocalModel,
    weights: Floats,
    classes: list[Any],
    rows: Rows,
    answers: list[tuple[Ints, float]],
) -> Explanation:
    """The features that make one labelling of a sequence likelier than another under a maxent tagger.

    log p(y) is the scores of y's features less, at each position, log Z of the labels that could stand there after
    y's tags: where the tags before differ, so does Z.
    """
    (one, score), (two, other) = answers
    found = _positions(name_of(reader), model, weights, classes, rows, one, two)
    none, names = model.n_labels, [*classes, None]
    scores, after = model.position_scores(rows, weights), model.history_scores(weights)
    sides = []
    for labels in (one, two):
        back = tags_before(rows.lengths, labels, none)[: model.history]
        tables = [after.of_last(back[0])]  # weights of one tag before, and of two
        if model.history == 2:
            tables.append(after.of_pairs(back[1] * (none + 1) + back[0]))
        own = [np.take_along_axis(table, labels[:, None], axis=1)[:, 0] for table in tables]
        sides.append((np.stack([*back[::-1], labels]), own, logsumexp(scores + sum(tables), axis=1)))
    # tags: oldest first, then the label itself
    (tags, own, log_partition), (others, others_own, other_log_partition) = sides
    for t in range(len(one)):
        best, second = (tuple(names[tag] for tag in side[:, t].tolist()) for side in (tags, others))
        for n, (mine, theirs) in enumerate(zip(own, others_own, strict=True), start=1):
            amount = float(mine[t] - theirs[t])
            found.append(Contribution("transition", None, t, best[-1 - n :], second[-1 - n :], amount))
        if best[:-1] != second[:-1]:
            amount = float(other_log_partition[t] - log_partition[t])
            found.append(Contribution("normaliser", None, t, best[:-1], second[:-1], amount))
    first, last = ([classes[label] for label in labels] for labels in (one.tolist(), two.tolist()))
    return explanation(first, last, (score, other), found)


def _positions(
    names: Callable[[int], Any],
    model: ChainModel | LocalModel,
    weights: Floats,
    classes: list[Any],
    rows: Rows,
    one: Ints,
    two: Ints,
) -> list[Contribution]:
    found: list[Contribution] = []
    table = rows.attributes()
    owner = np.repeat(np.arange(len(one)), np.diff(table.row_ptr))
    differ = np.flatnonzero((one != two)[owner] & (table.attributes >= 0))
    ids, place = table.attributes[differ], owner[differ]
    values = 1.0 if table.values is None else table.values[differ]
    features = model.node_features(weights)
    amounts = values * (look_up(features, ids, one[place]) - look_up(features, ids, two[place]))
    for i, t, amount in zip(ids.tolist(), place.tolist(), amounts.tolist(), strict=True):
        found.append(Contribution("attribute", names(i), t, classes[one[t]], classes[two[t]], amount))
    return found


def _edges(
    names: Callable[[int], Any],
    model: ChainModel,
    weights: Floats,
    classes: list[Any],
    rows: Rows,
    one: Ints,
    two: Ints,
) -> list[Contribution]:
    n_edges = len(one) - 1
    if model.edge_ids is None:
        ids, owner, values = np.zeros(n_edges, dtype=np.int64), np.arange(n_edges), np.ones(n_edges)
        attributes = np.array([-1])
    else:
        table = edge_attributes(rows, model.edge_ids)
        ids, owner = table.attributes, np.repeat(np.arange(n_edges), np.diff(table.row_ptr))
        values = np.ones(len(ids)) if table.values is None else table.values
        attributes = np.concatenate([[-1], np.flatnonzero(model.edge_ids > 0)])
    first, second = (labels[:-1] * model.width + labels[1:] for labels in (one, two))
    features = model.edge_features(weights)
    amounts = values * (look_up(features, ids, first[owner]) - look_up(features, ids, second[owner]))
    found = []
    for k in np.flatnonzero(first[owner] != second[owner]).tolist():
        t, name = int(owner[k]) + 1, int(attributes[ids[k]])
        best, other = ((classes[labels[t - 1]], classes[labels[t]]) for labels in (one, two))
        found.append(Contribution("transition", None if name < 0 else names(name), t, best, other, float(amounts[k])))
    return found


def prune_tagger(
    reader: Any, model: Any, weights: Floats, threshold: float | None, keep: float | None
) -> tuple[Any, Any, Floats, tuple[int, int, float]]:
    """(reader, model, weights) without small weights, and (weights before, after, the largest dropped)."""
    if isinstance(model, KernelChainModel):
        return _prune_kernel(reader, model, weights, threshold, keep)
    if isinstance(model, LocalModel):
        return _prune_local(reader, model, weights, threshold, keep)
    nodes, edges, ends = model.split(weights)
    node_ids, node_columns = expand_pairs(*model.nodes.core.pairs())
    node_values = model.nodes.core.unpack(nodes)
    edge_ids, cells, edge_values = model.edge_features(weights)
    real = cells % model.width < model.n_labels  # a layout of all pairs has padded cells too
    edge_ids, cells, edge_values = edge_ids[real], cells[real], edge_values[real]
    kept = choose_kept(np.concatenate([node_values, edge_values]), threshold, keep)
    counts = _counts(np.concatenate([node_values, edge_values]), kept)
    on_nodes, on_edges = kept[: len(node_values)], kept[len(node_values) :]
    # Attributes without any weight are no longer known.
    used = np.zeros(model.n_attributes, dtype=bool)
    used[node_ids[on_nodes]] = True
    edges_used = None
    if model.edge_ids is not None:
        chosen = np.flatnonzero(model.edge_ids > 0)
        has_weight = np.zeros(len(chosen) + 1, dtype=bool)
        has_weight[edge_ids[on_edges]] = True
        edges_used = chosen[has_weight[1:]]
        used[edges_used] = True
    reader, number = _without_names(reader, used)
    n = int(number.max(initial=-1)) + 1
    layout, run = _layout(n, model.n_labels, model.width, number[node_ids[on_nodes]], node_columns[on_nodes])
    parts = [run(node_values[on_nodes])]
    if model.edge_ids is None:
        table = np.zeros_like(edges)
        table[cells[on_edges]] = edge_values[on_edges]
        mask = np.zeros_like(model.transition_mask)
        mask[cells[on_edges]] = 1
        parts.append(table)
        pruned = replace(model, nodes=layout, transition_mask=mask)
    else:
        assert edges_used is not None
        renumbered = np.concatenate([[0], np.where(has_weight[1:], np.cumsum(has_weight[1:]), -1)])
        picked = np.zeros(n, dtype=bool)
        picked[number[edges_used]] = True
        size = model.n_labels * model.width
        edge_layout, run = _layout(len(edges_used) + 1, size, size, renumbered[edge_ids[on_edges]], cells[on_edges])
        parts.append(run(edge_values[on_edges]))
        new_ids = np.where(picked, np.cumsum(picked), -1).astype(np.int64)
        pruned = replace(model, nodes=layout, edges=edge_layout, edge_ids=new_ids)
    return reader, pruned, np.concatenate([*parts, ends]), counts


def _prune_local(
    reader: Any, model: LocalModel, weights: Floats, threshold: float | None, keep: float | None
) -> tuple[Any, LocalModel, Floats, tuple[int, int, float]]:
    core = model.nodes.core
    ids, columns = expand_pairs(*core.pairs())
    values = core.unpack(weights)
    kept = choose_kept(values, threshold, keep)
    used = np.zeros(core.num_attributes, dtype=bool)
    used[ids[kept]] = True
    reader, number = _without_names(reader, used[: model.n_attributes])
    n = int(number.max(initial=-1)) + 1
    history = np.arange(core.num_attributes - model.n_attributes)
    number = np.concatenate([number, n + history])
    layout, run = _layout(n + len(history), model.n_labels, model.width, number[ids[kept]], columns[kept])
    pruned = replace(model, n_attributes=n, nodes=layout)
    return reader, pruned, run(values[kept]), _counts(values, kept)


def _prune_kernel(
    reader: Any, model: KernelChainModel, weights: Floats, threshold: float | None, keep: float | None
) -> tuple[Any, KernelChainModel, Floats, tuple[int, int, float]]:
    if threshold is None or keep is not None:
        raise ValueError(
            "with a kernel, prune takes a threshold: training positions below it in all labels are dropped"
        )
    choose_kept(weights, threshold, None)
    structure = model.structure(np.ones(1, dtype=np.int64))
    support, kept = model.support.compress(structure, weights, float(threshold))
    pruned = replace(model, training=support, support=support)
    return reader, pruned, kept, (len(weights), len(kept), float(threshold) if len(kept) < len(weights) else 0.0)


def _counts(values: Floats, kept: Any) -> tuple[int, int, float]:
    return len(values), int(kept.sum()), float(np.abs(values[~kept]).max(initial=0.0))


def _layout(
    n_attributes: int, n_columns: int, width: int, ids: Ints, columns: Ints
) -> tuple[PairLayout, Callable[[Floats], Floats]]:
    """A layout of these pairs, in order, and the function that makes its weights."""
    indptr = pointers(np.bincount(ids, minlength=n_attributes).astype(np.int64))
    layout = PairLayout.some(n_attributes, n_columns, width, indptr, np.ascontiguousarray(columns))
    return layout, layout.core.pack


def _without_names(reader: Any, used: Any) -> tuple[Any, Ints]:
    """The reader with the used names only, and the new number of each attribute (-1: gone). Columns stay."""
    if isinstance(reader, ColumnReader):
        return reader, np.arange(len(used), dtype=np.int64)
    number = np.where(used, np.cumsum(used) - 1, -1).astype(np.int64)
    offsets, data = reader.vocabulary.offsets, reader.vocabulary.bytes
    lengths = np.diff(offsets)
    smaller = Vocabulary(np.ascontiguousarray(data[np.repeat(used, lengths)]), pointers(lengths[used]))
    return reader.with_vocabulary(smaller), number
