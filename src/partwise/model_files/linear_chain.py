"""A linear chain as other tools keep it, and as a `SequenceTagger`: names, labels, and weights of pairs.

Readers and writers of other tools' files work on `LinearChain`; what becomes of it here is one place. A chain has no
weights for the beginning and the end of a sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from partwise.features import Vocabulary
from partwise.features.template import Template
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.names import encode_names, read_names
from partwise.model_files.parts import Array, ModelParts
from partwise.model_files.values import encode, string_array
from partwise.support.arrays import Floats, Ints, pointers

#: Bytes that a table of transitions may take whatever the size of the file, and how many times the file's size.
TABLE, RATIO = 1 << 26, 100


@dataclass(frozen=True)
class LinearChain:
    """Attributes' names as their UTF-8 bytes end to end and where each begins; `states` and `transitions` are the
    numbers of (attribute, label) and (label, next label), one column per weight, no pair twice; `edges` those of
    (attribute, label, next label). template: what makes attributes of words, where that is not the user.
    """

    labels: list[str]
    names: Array
    offsets: Ints
    states: Ints
    state_weights: Floats
    transitions: Ints
    transition_weights: Floats
    edges: Ints = field(default_factory=lambda: np.empty((3, 0), dtype=np.int64))
    edge_weights: Floats = field(default_factory=lambda: np.empty(0))
    template: Template | None = None

    @property
    def n_attributes(self) -> int:
        return len(self.offsets) - 1

    def attribute_names(self) -> list[str]:
        return read_names(ModelParts("names", {}, {"bytes": self.names, "offsets": self.offsets}))


def to_tagger(chain: LinearChain, size: int, tool: str, separator: str = "=") -> Any:
    """A `SequenceTagger` that answers as the chain does.

    size: of the file, which must be in proportion. separator: what joins the names and strings of dicts.

    Its certificate is empty: the file does not say what was trained on which data.
    """
    from partwise.estimators import SequenceTagger
    from partwise.model_files.estimators import from_parts
    from partwise.models.readers import NameReader
    from partwise.models.sequences.template_reader import TemplateReader

    n = len(chain.labels)
    if 8 * n * n > TABLE + RATIO * size:
        raise ModelFormatError(f"has {n} labels, a table of {8 * n * n:.3g} bytes: out of proportion to its size")
    tagger = SequenceTagger(legal=False)
    parameters = tagger.get_params(deep=False)
    parameters = {name: encode(value, name) for name, value in parameters.items() if name != "callbacks"}
    parts = ModelParts("tagger", {"parameters": parameters}, version=1)
    unknown = {name: encode(float("nan"), name) for name in ("primal", "passes", "seconds", "l2", "l1")}
    unknown |= {"dual": encode(float("-inf"), "dual"), "gap": encode(float("inf"), "gap")}
    message = f"read from a file of {tool}, which holds no certificate"
    parts.settings["result"] = unknown | {"status": "no certificate", "solver": tool, "message": message}
    parts.settings["history"] = {name: [] for name in ("passes", "seconds", "primal", "dual", "gap")}
    # Labels in order, as `fit` has them.
    order = np.argsort(string_array(chain.labels))
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    parts.settings["labels"] = {"dtype": "str", "values": [encode(chain.labels[k], "label") for k in order]}
    vocabulary = Vocabulary(np.ascontiguousarray(chain.names), chain.offsets)
    if chain.template is None:
        parts.add("reader", NameReader(vocabulary, separator).to_parts())
    else:
        parts.add("reader", TemplateReader(chain.template, vocabulary).to_parts())
    parts.add("model", _weights(chain, place))
    return from_parts(SequenceTagger, parts)


def _weights(chain: LinearChain, place: Ints) -> ModelParts:
    n = len(place)
    attributes, labels = chain.states[0], place[chain.states[1]]
    order = np.lexsort((labels, attributes))
    nodes = ModelParts("pairs", {"all": False, "n_attributes": chain.n_attributes})
    nodes.arrays["weights"] = chain.state_weights[order]
    nodes.arrays["columns"] = labels[order]
    nodes.arrays["offsets"] = pointers(np.bincount(attributes, minlength=chain.n_attributes))
    parts = ModelParts("chain", {"ends": False})
    parts.add("nodes", nodes)
    if len(chain.edge_weights):
        _add_edges(chain, place, parts)
        return parts
    table, known = np.zeros((n, n)), np.zeros((n, n), dtype=np.uint8)
    cells = place[chain.transitions[0]], place[chain.transitions[1]]
    table[cells], known[cells] = chain.transition_weights, 1
    parts.arrays |= {"transitions": known, "transition_weights": table}
    return parts


def _add_edges(chain: LinearChain, place: Ints, parts: ModelParts) -> None:
    """Weights of pairs of labels: of edge attribute 0, which every edge has, and of the attributes that have some."""
    n = len(place)
    chosen = np.zeros(chain.n_attributes, dtype=np.uint8)
    chosen[chain.edges[0]] = 1
    number = np.cumsum(chosen, dtype=np.int64)
    attributes = np.concatenate([np.zeros(len(chain.transition_weights), dtype=np.int64), number[chain.edges[0]]])
    before, after = place[np.concatenate([chain.transitions, chain.edges[1:]], axis=1)]
    weights = np.concatenate([chain.transition_weights, chain.edge_weights])
    order = np.lexsort((before * n + after, attributes))
    edges = ModelParts("triples", {"all": False, "n_attributes": int(chosen.sum()) + 1})
    edges.arrays["weights"] = weights[order]
    edges.arrays["columns"] = (before * n + after)[order]
    edges.arrays["offsets"] = pointers(np.bincount(attributes, minlength=int(chosen.sum()) + 1))
    parts.add("edges", edges)
    parts.arrays["on_edges"] = chosen


def of_tagger(tagger: Any, tool: str, separator: str) -> LinearChain:
    """The chain of a fitted estimator; ValueError if it is none, or has what a chain does not.

    separator: what the tool joins names and strings of dicts by. Weights are divided by the loss's temperature, which
    chains elsewhere do not have.
    """
    from partwise.models.readers import VocabularyReader
    from partwise.models.sequences.chain import ChainModel
    from partwise.problem.losses import get_loss

    model = tagger._fitted()
    if type(model) is not ChainModel:
        raise ValueError(f"files of {tool} hold first-order chains: not available for this model")
    if not isinstance(model.reader, VocabularyReader):
        raise ValueError(f"files of {tool} hold attributes by name: not available for columns of numbers")
    if model.ends or not model.tied:
        what = "ends=True" if model.ends else "transition_features"
        raise ValueError(f"files of {tool} have no place for the weights of {what}")
    if (scheme := model.kept_scheme()) is not None:
        raise ValueError(
            f"files of {tool} do not hold the rule that labels keep to {scheme}: set_params(legal=False) first"
        )
    if model.reader.joins_otherwise(separator):
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
    reader, number = model.reader.keep(used)
    return LinearChain(
        labels,
        np.asarray(reader.known.bytes),
        np.asarray(reader.known.offsets),
        np.stack([number[attributes[some]], columns[some]]),
        weights[some],
        np.stack([cells[pairs] // model.width, cells[pairs] % model.width]),
        others[pairs],
    )


def names_of(strings: list[str]) -> tuple[Array, Ints]:
    """Strings as `LinearChain` has them."""
    found = encode_names(strings)
    return found["bytes"], found["offsets"]
