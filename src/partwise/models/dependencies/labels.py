"""Names of arcs: a classifier of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.features import ArcTokens, multiclass_map
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.models.dependencies.features import ArcFeatures
from partwise.models.dependencies.inputs import Words
from partwise.models.features import PairCounts, PairLayout, is_sparse
from partwise.models.files import layout_parts, read_layout
from partwise.models.labels import encode_flat, label_array, warn_of_many_labels
from partwise.problem import Batch, LabelledBatch, Problem
from partwise.problem.inference import best_labellings
from partwise.problem.result import Result
from partwise.solvers import solve, suitable_solvers
from partwise.solvers.engine.auto import too_many_slots
from partwise.structures import Multiclass, padded_width
from partwise.support.arrays import Floats, Ints


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
        """Return the label of each word's arc."""
        structure = Multiclass(len(heads), len(self.classes))
        batch = self._batch(structure, self.features.tokens(words), heads)
        best = best_labellings(batch, self.weights, n_jobs)
        # one string per label, not one per word
        names: list[str] = self.classes.astype(object)[structure.decode(*best)].tolist()
        return names

    def without_zeros(self) -> ArcLabeller:
        """Return the labeller without zero weights and features that have no other weights."""
        core = self.layout.core
        values = core.unpack(self.weights)
        kept = values != 0
        if not is_sparse(values):
            return self
        used = np.zeros(core.num_attributes, dtype=np.uint8)
        used[self.layout.pairs()[0][kept]] = 1
        features, needed = self.features.keep(used)
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
        """Read what `to_parts` wrote."""
        features = ArcFeatures.from_parts(parts.part("arcs"))
        layout, weights = read_layout(parts.part("pairs"), len(classes))
        if layout.core.num_attributes != features.index.num_weights:
            raise ModelFormatError("has weights of labels for another number of features")
        return cls(features, layout, classes, weights)
