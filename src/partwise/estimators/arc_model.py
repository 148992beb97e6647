"""What a dependency parser has learnt: its arc features, and the classifier that names arcs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise._core import ArcIndex, ArcMap, ArcTokens, Multiclass, RowLayout, decode
from partwise.estimators.chains import PairLayout
from partwise.estimators.inputs import Floats, Ints
from partwise.estimators.labels import encode_labels, label_array
from partwise.estimators.saving import layout_parts, read_layout
from partwise.estimators.trees import Words
from partwise.features import Attributes, multiclass_map
from partwise.features.arcs import COLUMNS, PREFIX, ArcTable
from partwise.models.errors import ModelFormatError
from partwise.models.parts import ModelParts
from partwise.problem import Problem
from partwise.result import Result
from partwise.solvers import solve, suitable_solvers


@dataclass(frozen=True)
class ArcModel:
    """Templates, and which of their features have a weight."""

    table: ArcTable
    index: ArcIndex

    def features(self, tokens: ArcTokens, memory_limit: float = 0.0, n_jobs: int = 1) -> ArcMap:
        """The feature map of these sentences."""
        return self.table.map(tokens, self.index, memory_limit, n_jobs)

    def attributes(self, tokens: ArcTokens, heads: Ints) -> Attributes:
        """Features of the arcs from these heads, a row a word."""
        row_ptr, attributes = self.table.attributes(tokens, self.index, heads)
        return Attributes(row_ptr, attributes, self.index.num_weights)

    def unknown(self, tokens: ArcTokens, heads: Ints) -> tuple[int, int]:
        """How many features of the arcs from these heads have no weight, and of how many."""
        return self.table.unknown(tokens, self.index, heads)

    def carried(self, weights: Floats, old: ArcModel) -> Floats:
        """Another model's weights for the features of this one; 0 for features that it did not have."""
        out = np.zeros(self.index.num_weights)
        if self.index.bits or old.index.bits:
            return weights.copy() if self.index.bits == old.index.bits else out
        order = np.argsort(old.index.keys)
        keys, mine = old.index.keys[order], self.index.keys
        at = np.minimum(np.searchsorted(keys, mine), max(len(keys) - 1, 0))
        same = keys[at] == mine
        out[same] = weights[order[at[same]]]
        return out

    def explain(self, words: Words, word: int, head: int, weights: Floats) -> list[tuple[str, float]]:
        """(template with its values, sum of its weights) of one arc of one sentence, the largest first."""
        tokens, n = words.tokens(), int(words.lengths[0])
        heads = np.where(np.arange(1, n + 1) == 1, min(2, n), 1)  # no matter what, but no word its own head
        heads = np.where(np.arange(1, n + 1) == word, head, heads) if n > 1 else np.array([head])

        def value(name: str, position: int) -> str:
            if position == 0:
                return "ROOT"
            if not 1 <= position <= n:
                return "-"
            form = words.columns[0][position - 1]
            return form[:PREFIX] if name == "prefix" else words.columns[COLUMNS.index(name)][position - 1]

        found = []
        for template in self.table.templates:
            row_ptr, ids = self.index.attributes([template.compiled()], tokens, heads)
            own = ids[row_ptr[word - 1] : row_ptr[word]]
            if len(own):
                sides = [
                    " ".join(f"{name}{offset:+d}={value(name, at + offset)}" if offset else f"{name}={value(name, at)}"
                             for name, offset in side)
                    for at, side in ((head, template.head), (word, template.modifier))
                ]  # fmt: skip
                text = " | ".join([*sides, template.between] if template.between else sides).strip()
                found.append((text, float(weights[own].sum())))
        return sorted(found, key=lambda item: -abs(item[1]))

    @classmethod
    def restored(cls, templates: str, bits: int, keys: NDArray[np.uint64]) -> ArcModel:
        """The model with these templates, and keys or bits."""
        return cls(ArcTable.from_text(templates), ArcIndex.hashed(bits) if bits else ArcIndex(keys))

    def __reduce__(self) -> tuple[Any, ...]:
        return ArcModel.restored, (self.table.text, self.index.bits, self.index.keys)

    def to_parts(self) -> ModelParts:
        """For a model file."""
        arrays = {} if self.index.bits else {"keys": self.index.keys.view(np.int64)}
        return ModelParts("arcs", {"templates": self.table.text, "bits": self.index.bits}, arrays)

    @classmethod
    def from_parts(cls, parts: ModelParts) -> ArcModel:
        """The inverse of `to_parts`."""
        bits, text = parts.integer("bits", 0, 31), parts.text("templates")
        if bits:
            return cls.restored(text, bits, np.empty(0, dtype=np.uint64))
        keys = np.ascontiguousarray(parts.ints("keys", None, low=-(1 << 63), high=1 << 63))
        return cls.restored(text, 0, keys.view(np.uint64))


@dataclass(frozen=True)
class ArcLabeller:
    """A multinomial classifier of arcs: one label a word, given its head."""

    model: ArcModel
    layout: PairLayout
    classes: NDArray[Any]
    weights: Floats

    @classmethod
    def fitted(
        cls,
        model: ArcModel,
        tokens: ArcTokens,
        heads: Ints,
        relations: list[str],
        weight: Floats | None,
        **options: Any,
    ) -> tuple[ArcLabeller, Result]:
        """Train on gold arcs, one example a word; options as for `solve`, with `l2` and `n_jobs`."""
        classes = label_array(sorted(set(relations)))
        labels = encode_labels(relations, classes)
        rows = model.attributes(tokens, heads)
        structure = Multiclass(len(heads), len(classes))
        layout = RowLayout.observed(
            rows.num_attributes, len(classes), structure.width, rows.row_ptr, rows.attributes, labels
        )
        l2, n_jobs = options.pop("l2"), options.pop("n_jobs")
        problem = Problem(
            multiclass_map(structure, rows, layout=layout),
            structure,
            structure.encode(labels),
            "log",
            l2,
            sample_weight=weight,
            n_jobs=n_jobs,
        )
        # Blocks are diagonal unless an arc has the same feature twice (hashing); tiny problems need no exact answer.
        result = solve(problem, "sdca" if "sdca" in suitable_solvers(problem) else "eg", **options)
        return cls(model, PairLayout(layout, all_pairs=False), classes, result.weights), result

    def predict(self, tokens: ArcTokens, heads: Ints, n_jobs: int) -> list[str]:
        """The label of each word's arc."""
        structure = Multiclass(len(heads), len(self.classes))
        features = multiclass_map(structure, self.model.attributes(tokens, heads), layout=self.layout.core)
        best = structure.decode(*decode(structure, features, self.weights, n_jobs)[:3])
        names: list[str] = self.classes.astype(object)[best].tolist()  # one string a label, not one a word
        return names

    def to_parts(self) -> ModelParts:
        """For a model file; the labels are kept by the parser."""
        parts = ModelParts("labeller")
        parts.add("arcs", self.model.to_parts())
        parts.add("pairs", layout_parts(self.layout, self.weights))
        return parts

    @classmethod
    def from_parts(cls, parts: ModelParts, classes: NDArray[Any]) -> ArcLabeller:
        """The inverse of `to_parts`."""
        model = ArcModel.from_parts(parts.part("arcs"))
        layout, weights = read_layout(parts.part("pairs"), len(classes))
        if layout.core.num_attributes != model.index.num_weights:
            raise ModelFormatError("has weights of labels for another number of features")
        return cls(model, layout, classes, weights)
