"""A linear chain as other tools keep it, and as a `SequenceTagger`: names, labels, and weights of pairs.

Readers and writers of other tools' files work on `LinearChain`. A chain has no weights for the beginning and the end of
a sequence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
#: A text model from a pipe, whose header does not say its length, may take this many bytes, and so many per weight.
PIPED, PER_WEIGHT = 3 << 19, 256


class Tool(NamedTuple):
    """Another tool's model files.

    magic: the first bytes. separator: what joins names and strings of dicts. limit: gives the bytes that a file may
    have, by its first bytes and its length (None for a pipe). parse: gives the chain, or raises ModelFormatError.
    """

    name: str
    magic: bytes
    separator: str
    limit: Callable[[bytes, int | None], int]
    parse: Callable[[bytes], LinearChain]


@dataclass(frozen=True)
class LinearChain:
    """Attributes' names as their UTF-8 bytes end to end and where each begins; `states` and `transitions` are the
    numbers of (attribute, label) and (label, next label), one column per weight, no pair twice; `edges` those of
    (attribute, label, next label). template: what makes attributes of words, where that is not the user.
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

    def attribute_names(self) -> list[str]:
        return ModelParts("names", {}, {"bytes": self.names, "offsets": self.offsets}).names()

    def to_tagger(self, size: int, tool: Tool) -> SequenceTagger:
        """Return a `SequenceTagger` that answers as the chain does, which a file of this size had.

        Its certificate is empty: the file does not say what was trained on which data.
        """
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
        unknown = Result(
            np.empty(0), nan, -math.inf, math.inf, nan, nan, "no certificate", tool.name, nan, history, l1=nan
        )
        add_result(parts, replace(unknown, message=message))
        # Labels in order, as `fit` has them.
        order = np.argsort(string_array(self.labels))
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        parts.settings["labels"] = {"dtype": "str", "values": [encode(self.labels[k], "label") for k in order]}
        vocabulary = Vocabulary(np.ascontiguousarray(self.names), self.offsets)
        if self.template is None:
            parts.add("reader", NameReader(vocabulary, tool.separator).to_parts())
        else:
            parts.add("reader", TemplateReader(self.template, vocabulary).to_parts())
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


def of_tagger(tagger: SequenceTagger, tool: str, separator: str) -> LinearChain:
    """Return the chain of a fitted `SequenceTagger`; ValueError if a file of the tool cannot hold all of it.

    separator: what the tool joins names and strings of dicts by. Weights are divided by the loss's temperature, which
    chains elsewhere do not have.
    """
    from partwise.models.readers import NameReader, VocabularyReader
    from partwise.models.sequences.chain import ChainModel
    from partwise.problem.losses import get_loss

    model = tagger._fitted()
    if type(model) is not ChainModel:
        raise ValueError(f"files of {tool} hold first-order chains: not available for this model")
    reader = model.reader
    if not isinstance(reader, VocabularyReader):
        raise ValueError(f"files of {tool} hold attributes by name: not available for columns of numbers")
    if model.ends or not model.tied:
        what = "ends=True" if model.ends else "transition_features"
        raise ValueError(f"files of {tool} have no place for the weights of {what}")
    if (scheme := model.kept_scheme()) is not None:
        rule = f"the rule that labels keep to {scheme}"
        raise ValueError(f"files of {tool} do not hold {rule}: set_params(legal=False) first")
    if isinstance(reader, NameReader) and reader.joined and reader.separator != separator:
        raise ValueError(
            f"names of dicts are not joined by {separator!r} here, as {tool}'s tools do: "
            "train on lists of names, or through partwise.compat"
        )
    labels = model.classes.tolist()
    if not all(isinstance(label, str) for label in labels):
        raise ValueError(f"files of {tool} hold labels that are strings, not {type(labels[0]).__name__}")
    attributes, columns, weights = model.node_features()
    _, cells, others = model.edge_features()
    temperature = get_loss(tagger.loss).temperature or 1.0
    weights, others = weights / temperature, others / temperature
    some, pairs = weights != 0, others != 0
    used = np.zeros(model.n_attributes, dtype=bool)
    used[attributes[some]] = True
    kept, number = reader.keep(used)
    return LinearChain(
        labels,
        np.asarray(kept.known.bytes),
        np.asarray(kept.known.offsets),
        np.stack([number[attributes[some]], columns[some]]),
        weights[some],
        np.stack(np.divmod(cells[pairs], model.width)),
        others[pairs],
    )


def names_of(strings: list[str]) -> tuple[Array, Ints]:
    """Return strings as `LinearChain` has them."""
    found = encode_names(strings)
    return found["bytes"], found["offsets"]


def text_limit(header: re.Pattern[bytes]) -> Callable[[bytes, int | None], int]:
    """Return the `limit` of a text model, whose header ends with the number of weights.

    A file may be as long as it is, a pipe what is in proportion to its weights.
    """

    def limit(start: bytes, length: int | None) -> int:
        found = header.search(start)
        n_weights = int(found[found.lastindex or 0]) if found else 0
        return max(PIPED, PER_WEIGHT * n_weights) if length is None else length

    return limit
