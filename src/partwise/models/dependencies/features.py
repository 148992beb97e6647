"""Features of arcs: templates, and which of their features have a weight; and the classifier of arcs' names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from partwise.features import ArcIndex, ArcMap, ArcTokens, Attributes, multiclass_map
from partwise.features.arcs import COLUMNS, PREFIX, ArcTable, feature_keys, parse_templates
from partwise.io.conllu import BLANK, split_feats
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.models.dependencies.inputs import Words, input_columns
from partwise.models.features import PairCounts, PairLayout, is_sparse, places_in
from partwise.models.files import layout_parts, read_layout
from partwise.models.labels import encode_flat, label_array, warn_of_many_labels
from partwise.problem import Batch, LabelledBatch, Problem
from partwise.problem.inference import best_labellings
from partwise.problem.result import Result
from partwise.solvers import solve, suitable_solvers
from partwise.solvers.engine.auto import too_many_slots
from partwise.structures import Multiclass, padded_width
from partwise.support.arrays import Booleans, Bytes, Floats, Ints, UInt64s


def fitted_table(text: str, words: Words, inputs: str | Sequence[str] | None) -> ArcTable:
    """Return the templates on columns that vary; inputs: the columns that may be looked at."""
    return ArcTable.fitted(text, words.tokens(feature_keys(parse_templates(text))), input_columns(inputs))


@dataclass(frozen=True)
class ArcFeatures:
    """Templates, and which of their features have a weight."""

    table: ArcTable
    index: ArcIndex

    @classmethod
    def seen(cls, table: ArcTable, tokens: ArcTokens, heads: Ints | None, min_count: int) -> ArcFeatures:
        """Return the features that occur `min_count` times on arcs from these heads (None: on all arcs)."""
        return cls(table, check_features(table.index(tokens, heads, min_count), min_count))

    def tokens(self, words: Words) -> ArcTokens:
        """Return words with the columns that the templates look at."""
        return words.tokens(self.table.keys)

    def map(self, tokens: ArcTokens, memory_limit: float = 0.0, n_jobs: int = 1) -> ArcMap:
        return self.table.map(tokens, self.index, memory_limit, n_jobs)

    def attributes(self, tokens: ArcTokens, heads: Ints) -> Attributes:
        """Return features of the arcs from these heads, one row per word."""
        return Attributes(*self.index.attributes(self.table.compiled, tokens, heads), self.index.num_weights)

    def unknown(self, tokens: ArcTokens, heads: Ints) -> tuple[int, int]:
        """How many features of the arcs from these heads have no weight, and of how many."""
        return self.index.unknown(self.table.compiled, tokens, heads)

    def keep(self, used: Bytes) -> tuple[ArcFeatures, Booleans]:
        """Return the used features with those that the core finds them by, and which features these are."""
        needed = self.index.with_plain(used).astype(bool)
        return ArcFeatures(self.table, ArcIndex(self.index.keys[needed])), needed

    def carried(self, weights: Floats, old: ArcFeatures) -> Floats | None:
        """Return another model's weights for these features, 0 where it lacks one; None for other templates or bits."""
        if self.table.templates != old.table.templates or self.index.bits != old.index.bits:
            return None
        if self.index.bits:
            return weights.copy()
        out = np.zeros(self.index.num_weights)
        order = np.argsort(old.index.keys)
        at = places_in(old.index.keys[order], self.index.keys)
        out[at >= 0] = weights[order[at[at >= 0]]]
        return out

    def explain(self, words: Words, word: int, head: int, weights: Floats) -> list[tuple[str, float]]:
        """Return (template with its values, sum of its weights) for one arc, the largest first."""
        tokens, n = self.tokens(words), int(words.lengths[0])
        heads = np.ones(n, dtype=np.int64)  # any heads will do, but no word may be its own head
        heads[0] = min(2, n)
        heads[word - 1] = head

        def value(name: str, position: int) -> str:
            if not 1 <= position <= n:
                return "-" if position else "ROOT"
            if name == "prefix":
                return words.columns[0][position - 1][:PREFIX]
            base, _, key = name.partition(".")
            cell = words.columns[COLUMNS.index(base)][position - 1]
            return split_feats(cell).get(key, BLANK) if key else cell

        def named(name: str, at: int, offset: int) -> str:
            return f"{name}{offset:+d}={value(name, at + offset)}" if offset else f"{name}={value(name, at)}"

        found = []
        for template in self.table.templates:
            row_ptr, ids = self.index.attributes([template.compiled(self.table.keys)], tokens, heads)
            own = ids[row_ptr[word - 1] : row_ptr[word]]
            if len(own):
                places = (head, template.head), (word, template.modifier)
                sides = [" ".join(named(name, at, offset) for name, offset in side) for at, side in places]
                text = " | ".join([*sides, template.between] if template.between else sides).strip()
                found.append((text, float(weights[own].sum())))
        return sorted(found, key=lambda item: -abs(item[1]))

    @classmethod
    def restored(cls, templates: str, bits: int, keys: UInt64s) -> ArcFeatures:
        """Return the features of these templates, with these keys or hashed to `bits` bits."""
        return cls(ArcTable.from_text(templates), ArcIndex.hashed(bits) if bits else ArcIndex(keys))

    def __reduce__(self) -> tuple[object, ...]:
        return ArcFeatures.restored, (self.table.text, self.index.bits, self.index.keys)

    def to_parts(self) -> ModelParts:
        arrays = {} if self.index.bits else {"keys": self.index.keys.view(np.int64)}
        return ModelParts("arcs", {"templates": self.table.text, "bits": self.index.bits}, arrays)

    @classmethod
    def from_parts(cls, parts: ModelParts) -> ArcFeatures:
        bits, text = parts.integer("bits", 0, 31), parts.text("templates")
        keys = np.empty(0, dtype=np.int64) if bits else parts.ints("keys", None, low=-(1 << 63), high=1 << 63)
        return cls.restored(text, bits, np.ascontiguousarray(keys).view(np.uint64))


def check_features(index: ArcIndex, min_count: int) -> ArcIndex:
    """Return the index; ValueError if it has no feature."""
    if not index.num_weights:
        raise ValueError(f"no feature occurs {min_count} times: min_count is too high")
    return index


@dataclass(frozen=True)
class ArcLabeller:
    """A multinomial classifier of arcs: one label per word, given its head."""

    features: ArcFeatures
    layout: PairLayout
    classes: NDArray[Any]
    weights: Floats

    @classmethod
    def seen(cls, features: ArcFeatures, tokens: ArcTokens, heads: Ints, relations: list[str]) -> ArcLabeller:
        """Return the labeller of the pairs of a feature and a label that gold arcs have, with weights 0."""
        classes = label_array(sorted(set(relations)))
        labels = encode_flat(relations, classes)
        warn_of_many_labels(np.bincount(labels), what="names of arcs")
        rows = features.attributes(tokens, heads)
        counts = PairCounts(rows.num_attributes, len(classes), padded_width(len(classes)))
        counts.add(rows, labels)
        layout = counts.layout(min_count=1)
        return cls(features, layout, classes, np.zeros(layout.core.num_weights))

    def trained(self, problem: Problem, **options: Any) -> tuple[ArcLabeller, Result]:
        """Return the labeller with the weights that solve the problem of its examples; options as for `solve`."""
        if problem.l1 or too_many_slots(problem):  # dual variables of many names would take more than the data
            solver = "auto"
        else:
            # Blocks are diagonal unless an arc has a feature twice (hashing); tiny problems need no exact answer.
            solver = "sdca" if "sdca" in suitable_solvers(problem) else "eg"
        result = solve(problem, solver, **options)
        return replace(self, weights=result.weights), result

    def examples(self, tokens: ArcTokens, heads: Ints, labels: Ints, weight: Floats | None) -> LabelledBatch:
        """Return gold arcs as examples to train on, with the chosen features."""
        structure = Multiclass(len(heads), len(self.classes))
        return LabelledBatch(self._batch(structure, tokens, heads), structure.encode(labels), weight)

    def _batch(self, structure: Multiclass, tokens: ArcTokens, heads: Ints) -> Batch:
        rows = self.features.attributes(tokens, heads)
        return Batch(structure, multiclass_map(structure, rows, layout=self.layout.core))

    def predict(self, words: Words, heads: Ints, n_jobs: int) -> list[str]:
        structure = Multiclass(len(heads), len(self.classes))
        batch = self._batch(structure, self.features.tokens(words), heads)
        numbers = structure.decode(*best_labellings(batch, self.weights, n_jobs))
        return cast(list[str], self.classes.astype(object)[numbers].tolist())  # one string per label, not per word

    def without_zeros(self) -> ArcLabeller:
        """Return the labeller without zero weights and features that have no other weights."""
        values = self.layout.core.unpack(self.weights)
        if not is_sparse(values):
            return self
        kept = values != 0
        used = np.isin(np.arange(self.layout.core.num_attributes), self.layout.pairs()[0][kept])
        features, needed = self.features.keep(used.astype(np.uint8))
        layout = self.layout.chosen(kept, np.cumsum(needed) - 1)
        return ArcLabeller(features, layout, self.classes, layout.core.pack(values[kept]))

    def to_parts(self) -> ModelParts:
        """Return the parts of a model file; the parser adds the labels."""
        parts = ModelParts("labeller")
        parts.add("arcs", self.features.to_parts())
        parts.add("pairs", layout_parts(self.layout, self.weights))
        return parts

    @classmethod
    def from_parts(cls, parts: ModelParts, classes: NDArray[Any]) -> ArcLabeller:
        features = ArcFeatures.from_parts(parts.part("arcs"))
        layout, weights = read_layout(parts.part("pairs"), len(classes))
        if layout.core.num_attributes != features.index.num_weights:
            raise ModelFormatError("has weights of labels for another number of features")
        return cls(features, layout, classes, weights)
