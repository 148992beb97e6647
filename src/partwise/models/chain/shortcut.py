"""Calls of chains over named attributes: items in, labels out, in one call of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partwise.models.sequences.labels import label_dicts
from partwise.models.sequences.name_reader import NameReader
from partwise.models.shortcut import Shortcut
from partwise.problem.calls import ItemRows, NamedChain
from partwise.support.checks import check_sums

if TYPE_CHECKING:
    from partwise.models.chain.model import ChainModel


def named_chain(model: ChainModel) -> NamedChain | None:
    """The core's form of a model; None if it is of another kind: columns, templates, transitions by observations."""
    if type(model.reader) is not NameReader or model.transition_mask is None:
        return None
    rule = model.kept_rule()
    if rule is not None and not rule.for_any_length:  # some sequence may be without an answer: batches name it
        return None
    reader, weights = model.reader, model.weights
    if weights.dtype != "float64" or not weights.flags.c_contiguous:
        return None
    return NamedChain(
        reader.known, reader.separator, model.nodes.core, tuple(model.classes.tolist()), model.transition_mask,
        model.ends, None if rule is None else rule.as_bytes, weights,
    )  # fmt: skip


class ChainShortcut(Shortcut):
    """Sequences of items."""

    def __init__(self, chain: NamedChain, labels: list[Any], rows: ItemRows) -> None:
        self._chain, self._labels, self._rows = chain, labels, rows
        self.unknown = rows.unknown

    def best(self, n_jobs: int = 1) -> list[list[Any]]:
        return self._chain.best(self._rows, n_jobs)

    def marginals(self, temperature: float, n_jobs: int = 1, output: str = "dict") -> list[Any]:
        marginals, values = self._chain.sums(self._rows, temperature, n_jobs)
        check_sums(values)
        return label_dicts(marginals, self._labels, output)
