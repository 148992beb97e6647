"""The models of other tools' files: linear chains, without weights for the beginning and the end of a sequence."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from partwise.features import Vocabulary
from partwise.features.template import Template
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import Array, ModelParts, encode_names
from partwise.model_files.values import add_result, encode, string_array
from partwise.problem.result import HISTORY, Result
from partwise.support.arrays import Floats, Ints, pointers

if TYPE_CHECKING:
    from partwise.estimators import SequenceTagger

#: Bytes that a table of transitions may take whatever the size of the file, and how many times the file's size.
TABLE, RATIO = 1 << 26, 100
#: A text model from a pipe may have the larger of these: a number of bytes, and bytes per weight of its header.
PIPED, PER_WEIGHT = 3 << 19, 256


class Tool(NamedTuple):
    """Another tool's model files, which begin with `magic`.

    separator: what joins names and strings of dicts. limit: returns the bytes that a file may have, by its first bytes
    and its length (None for a pipe). parse: returns the chain of a file, or raises ModelFormatError.
    """

    name: str
    magic: bytes
    separator: str
    limit: Callable[[bytes, int | None], int]
    parse: Callable[[bytes], LinearChain]


@dataclass(frozen=True)
class LinearChain:
    """A linear chain with one weight for each column of `states`, `transitions` and `edges`.

    names, offsets: the attributes' names, in UTF-8 and concatenated, and where each begins. states: numbers of
    (attribute, label), transitions: of (label, next label), edges: of (attribute, label, next label); all columns
    differ. template: makes the attributes of words; None: the user does.
    """

    labels: list[str]
    names: Array
    offsets: Ints
    states: Ints = field(default_factory=lambda: np.empty((2, 0), dtype=np.int64))
    state_weights: Floats = field(default_factory=lambda: np.empty(0))
    transitions: Ints = field(default_factory=lambda: np.empty((2, 0), dtype=np.int64))
    transition_weights: Floats = field(default_factory=lambda: np.empty(0))
    edges: Ints = field(default_factory=lambda: np.empty((3, 0), dtype=np.int64))
    edge_weights: Floats = field(default_factory=lambda: np.empty(0))
    template: Template | None = None

    @classmethod
    def of_names(
        cls,
        labels: list[str],
        names: Sequence[str],
        node: Array,
        owner: Ints,
        place: Ints,
        weights: Floats,
        template: Template | None,
        plain: str | None,
    ) -> LinearChain:
        """Return the chain of weights that follow names: weight k is number `place[k]` of name `owner[k]`.

        node: whether a weight is one of a label, or of a pair of labels. plain: the name of the template's line without
        macros, if any, which is on every edge.
        """
        everywhere = np.array([name == plain for name in names], dtype=bool)
        number, n = np.cumsum(~everywhere) - 1, len(labels)
        pair, other = ~node & everywhere[owner], ~node & ~everywhere[owner]
        return cls(
            labels,
            *names_of([name for name, gone in zip(names, everywhere.tolist(), strict=True) if not gone]),
            np.stack([number[owner[node]], place[node]]),
            weights[node],
            np.stack(np.divmod(place[pair], n)),
            weights[pair],
            np.stack([number[owner[other]], *np.divmod(place[other], n)]),
            weights[other],
            template,
        )

    @property
    def n_attributes(self) -> int:
        return len(self.offsets) - 1

    def to_tagger(self, size: int, tool: Tool) -> SequenceTagger:
        """Return a `SequenceTagger`, with an empty certificate, that answers as the chain of a file of this size."""
        from partwise.estimators import SequenceTagger
        from partwise.model_files.files import from_parts
        from partwise.models.readers import NameReader
        from partwise.models.sequences.template_reader import TemplateReader

        n = len(self.labels)
        if 8 * n * n > TABLE + RATIO * size:
            raise ModelFormatError(f"has {n} labels, a table of {8 * n * n:.3g} bytes: out of proportion to its size")
        parts = ModelParts("tagger", {"parameters": {"legal": False}}, version=1)
        nan, history = math.nan, {name: np.empty(0) for name in HISTORY}
        message = f"read from a file of {tool.name}, which holds no certificate"
        numbers = np.empty(0), nan, -math.inf, math.inf, nan, nan
        add_result(parts, Result(*numbers, "no certificate", tool.name, nan, history, message=message, l1=nan))
        # Labels in the order of `fit`.
        order = np.argsort(string_array(self.labels))
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        parts.settings["labels"] = {"dtype": "str", "values": [encode(self.labels[k], "label") for k in order]}
        known, template = Vocabulary(np.ascontiguousarray(self.names), self.offsets), self.template
        reader = NameReader(known, tool.separator) if template is None else TemplateReader(template, known)
        parts.add("reader", reader.to_parts())
        parts.add("model", self._weights(place))
        tagger: SequenceTagger = from_parts(SequenceTagger, parts)
        return tagger

    def _weights(self, place: Ints) -> ModelParts:
        """Return the weights with label k in the place `place[k]`."""
        n = len(place)
        parts = ModelParts("chain", {"ends": False})
        labels = place[self.states[1]]
        parts.add("nodes", _table("pairs", self.n_attributes, self.states[0], labels, self.state_weights))
        if len(self.edge_weights):  # of edge attribute 0, which every edge has, and of the attributes that have some
            chosen = np.zeros(self.n_attributes, dtype=np.uint8)
            chosen[self.edges[0]] = 1
            of_pairs = np.zeros(len(self.transition_weights), dtype=np.int64)
            attributes = np.concatenate([of_pairs, np.cumsum(chosen, dtype=np.int64)[self.edges[0]]])
            before, after = place[np.concatenate([self.transitions, self.edges[1:]], axis=1)]
            weights = np.concatenate([self.transition_weights, self.edge_weights])
            parts.add("edges", _table("triples", int(chosen.sum()) + 1, attributes, before * n + after, weights))
            parts.arrays["on_edges"] = chosen
            return parts
        table, known = np.zeros((n, n)), np.zeros((n, n), dtype=np.uint8)
        cells = tuple(place[self.transitions])
        table[cells], known[cells] = self.transition_weights, 1
        parts.arrays |= {"transitions": known, "transition_weights": table}
        return parts


def _table(kind: str, n_attributes: int, attributes: Ints, columns: Ints, weights: Floats) -> ModelParts:
    """Return the weights of (attribute, column), as model files of chains have them."""
    order = np.lexsort((columns, attributes))
    offsets = pointers(np.bincount(attributes, minlength=n_attributes))
    arrays = {"weights": weights[order], "columns": columns[order], "offsets": offsets}
    return ModelParts(kind, {"all": False, "n_attributes": n_attributes}, arrays)


def names_of(strings: list[str]) -> tuple[Array, Ints]:
    """Return strings as `LinearChain` has them."""
    found = encode_names(strings)
    return found["bytes"], found["offsets"]


def text_limit(header: re.Pattern[bytes]) -> Callable[[bytes, int | None], int]:
    """Return the `limit` of text models, whose header ends with the number of weights: it bounds pipes alone."""

    def limit(start: bytes, length: int | None) -> int:
        found = header.search(start)
        n_weights = int(found[found.lastindex or 0]) if found else 0
        return max(PIPED, PER_WEIGHT * n_weights) if length is None else length

    return limit
