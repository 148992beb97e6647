"""Weights in words: the largest ones, and those that decide between two trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.models.base import Labellings, Reading
from partwise.models.constituents.features import keys_of, name_of
from partwise.models.features import look_up
from partwise.models.inspection import Contribution, Explanation, Named, TopFeatures, explanation
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.models.constituents.model import ConstituencyModel


def rule_name(model: ConstituencyModel, rule: int) -> str:
    """A rule in symbols."""
    own = model.grammar.read_off
    parent, left, right = (own.symbols[a] for a in own.rules[rule].tolist())
    return f"{parent} -> {left} {right}"


def column_names(model: ConstituencyModel, table: str) -> list[str]:
    """What a table's columns are called."""
    if table == "word":
        return [model.grammar.read_off.symbols[a] for a in model.grammar.lexical.tolist()]
    return [str(column) for column in model.grammar.columns]


def top_weights(model: ConstituencyModel, n: int) -> TopFeatures:
    """The largest weights under each column's name, tables of phrases put together, and the largest rules."""
    found: dict[str, Named] = {}
    for table, (attributes, columns, weights) in model.tables.triples(model.weights):
        names = column_names(model, table)
        order = np.lexsort((-np.abs(weights), columns))
        begins = np.searchsorted(columns[order], np.arange(len(names) + 1))
        for column, name in enumerate(names):
            best = order[begins[column] : begins[column + 1]][:n]
            best = best[weights[best] != 0]
            keys = model.tables.tables[table].keys[attributes[best]].tolist()
            rows = [
                (f"{table} {name_of(table, key, model.tables.codes)}", float(w))
                for key, w in zip(keys, weights[best], strict=True)
            ]
            found.setdefault(name, []).extend(rows)
    rules = model.tables.split(model.weights)[0]
    largest = [k for k in np.argsort(-np.abs(rules), kind="stable")[:n].tolist() if rules[k]]
    labels = {name: sorted(rows, key=lambda row: -abs(row[1]))[:n] for name, rows in sorted(found.items()) if rows}
    return TopFeatures({"rules": [(rule_name(model, k), float(rules[k])) for k in largest], **labels})


def explained(model: ConstituencyModel, reading: Reading) -> Explanation:
    """What rules and attributes add to the best tree, over the second-best one."""
    structure: Any = reading.batch.structure
    scores = reading.batch.features.scores(0, model.weights)
    ranked = structure.k_best(0, scores, 2)
    which = np.zeros(len(ranked), dtype=np.int64)
    trees = model.decode(reading, which, Labellings.of([labelling for _, *labelling in ranked]))
    if len(ranked) < 2:
        return explanation(trees[0], None, (ranked[0][0], float("-inf")), [])
    uses = np.zeros((2, structure.num_slots(0)))
    for own, (_, slots, counts) in zip(uses, ranked, strict=True):
        own[slots] = counts
    words = reading.source[int(reading.numbers[0])]
    found = _of_rules(model, uses) + _of_tuples(model, uses)
    first = [*structure.table_offsets(0)]
    for k, (table, triples) in enumerate(model.tables.triples(model.weights)):
        width = structure.widths[k]
        changed = first[k] + np.flatnonzero(uses[0, first[k] : first[k + 1]] != uses[1, first[k] : first[k + 1]])
        keys = keys_of(table, model.tables.codes, [words])
        for slot in changed.tolist():
            row, column = divmod(slot - first[k], width)
            place = int(np.triu_indices(len(words) + 1, 2)[0][row]) if table == "span" else row
            found += _of_row(model, table, triples, keys[row], column, place, uses[:, slot])
    return explanation(trees[0], trees[1], (ranked[0][0], ranked[1][0]), found)


def _of_rules(model: ConstituencyModel, uses: Floats) -> list[Contribution]:
    rules = model.tables.split(model.weights)[0]
    best, second = uses[:, : len(rules)]
    return [
        Contribution(
            "rule", rule_name(model, k), None, int(best[k]), int(second[k]), float((best[k] - second[k]) * rules[k])
        )
        for k in np.flatnonzero(best != second).tolist()
    ]


def _of_tuples(model: ConstituencyModel, uses: Floats) -> list[Contribution]:
    """Hashed tuples have no names but their numbers."""
    weights = model.tables.split(model.weights)[1]["tuples"]
    best, second = uses[:, uses.shape[1] - len(weights) :]
    return [
        Contribution(
            "tuple", f"hash {k}", None, int(best[k]), int(second[k]), float((best[k] - second[k]) * weights[k])
        )
        for k in np.flatnonzero(best != second).tolist()
    ]


def _of_row(
    model: ConstituencyModel,
    table: str,
    triples: tuple[Ints, Ints, Floats],
    keys: Ints,
    column: int,
    place: int,
    uses: Floats,
) -> list[Contribution]:
    own = model.tables.tables[table]
    numbers = own.numbers(keys)
    weights = look_up(triples, numbers, np.full(len(numbers), column))
    name = column_names(model, table)[column]
    return [
        Contribution(
            f"{table} of {name}",
            name_of(table, int(keys[k]), model.tables.codes),
            place,
            int(uses[0]),
            int(uses[1]),
            float((uses[0] - uses[1]) * weights[k]),
        )
        for k in np.flatnonzero(weights).tolist()
    ]
