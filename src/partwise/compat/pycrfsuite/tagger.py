"""`Tagger`: labels and probabilities from a model file of CRFsuite."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.compat.pycrfsuite.items import Items, ItemSequence, packed_of, text_of
from partwise.io import atomic_write
from partwise.model_files import foreign
from partwise.model_files.container import opened
from partwise.model_files.errors import ContainerError, ModelFormatError
from partwise.model_files.foreign import crfsuite
from partwise.model_files.foreign.linear_chain import LinearChain
from partwise.model_files.parts import ModelParts
from partwise.models.labels import label_dicts
from partwise.models.sequences.chain import ChainModel
from partwise.problem.inference import NamedChain
from partwise.support.arrays import Floats, Ints


class ParsedDump:
    """The content of a model: weights by (label, next label) and (attribute, label), numbers (as texts) by name."""

    def __init__(self, chain: LinearChain, size: int) -> None:
        labels, arrays = chain.labels, {"bytes": chain.names, "offsets": chain.offsets}
        names = ModelParts("names", {}, arrays).names()
        self.header = {
            "magic": "lCRF", "size": str(size), "type": "FOMC", "version": "100", "num_features": "0",
            "num_labels": str(len(labels)), "num_attrs": str(len(names)),
        }  # fmt: skip
        self.labels = {label: str(k) for k, label in enumerate(labels)}
        self.attributes = {name: str(k) for k, name in enumerate(names)}
        self.transitions = _by_names(labels, labels, chain.transitions, chain.transition_weights)
        self.state_features = _by_names(names, labels, chain.states, chain.state_weights)


def _by_names(firsts: list[str], seconds: list[str], pairs: Ints, weights: Floats) -> dict[tuple[str, str], float]:
    return {(firsts[a], seconds[b]): w for a, b, w in zip(*pairs.tolist(), weights.tolist(), strict=True)}


@dataclass(slots=True)
class _Set:
    """A sequence that was read, and its sums and marginals once they were asked for."""

    rows: object
    sums: tuple[list[list[float]], float] | None = None
    marginals: list[dict[str, float]] | None = None


class _OneLabel:
    """What `Tagger` asks of a `NamedChain`, for a model with one label or, without training data, with none."""

    def __init__(self, labels: list[str]) -> None:
        self._labels = labels

    def read(self, sequences: Sequence[Items]) -> list[int]:
        return [len(packed_of(xseq)) for xseq in sequences]

    def best(self, lengths: list[int]) -> list[list[str]]:
        return [self._labels * length for length in lengths]

    def sums(self, lengths: list[int]) -> tuple[list[Floats], Floats]:
        return [np.ones((length, len(self._labels))) for length in lengths], np.zeros(len(lengths))

    def values(self, lengths: list[int], labels: Ints) -> Floats:
        return np.zeros(len(lengths))


class Tagger:
    """Labels sequences with a model (`open`)."""

    _calls: NamedChain | _OneLabel | None
    _chain: LinearChain | None
    _labels: dict[str, int]  # the labels' numbers in `_calls`
    _set: _Set | None

    def __init__(self) -> None:
        self.close()

    def open(self, name: str | os.PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model file; OSError if it cannot be read, ValueError if it is not one."""
        try:
            with opened(name) as source:
                return self.open_inmemory(foreign.read(source, crfsuite.TOOL))
        except ContainerError as error:
            raise ModelFormatError(error.message, name) from None

    def open_inmemory(self, value: bytes) -> contextlib.closing[Tagger]:
        """Open a model from the bytes of its file."""
        chain = crfsuite.parse(value)
        # With fewer than two labels there is nothing to choose.
        self._labels = {label: number for number, label in enumerate(sorted(chain.labels))}
        self._calls = _OneLabel(chain.labels)
        if len(chain.labels) > 1:
            model = chain.to_tagger(len(value), crfsuite.TOOL)._fitted()
            assert isinstance(model, ChainModel)
            self._calls = model.named_chain
        self._chain, self._size = chain, len(value)
        return contextlib.closing(self)

    def close(self) -> None:
        self._calls = self._chain = self._set = None
        self._size = 0

    def labels(self) -> list[str]:
        self._opened()
        return [] if self._chain is None else list(self._chain.labels)

    def set(self, xseq: Items) -> None:
        """Give the sequence that `tag`, `probability` and `marginal` are about."""
        self._set = _Set(self._read([xseq]))

    def tag(self, xseq: Items | None = None) -> list[str]:
        """Return the best labels of a sequence, by default of the one that was set."""
        calls = self._opened()
        current = self._current() if xseq is None else _Set(self._read([xseq]))
        self._set = current  # `current` is kept: another thread may set `_set` before the next line
        answer: list[str] = calls.best(current.rows)[0]
        return answer

    def tag_many(self, X: Sequence[Items]) -> list[list[str]]:
        """Return the best labels of many sequences, at once; the one that was set stays."""
        answers: list[list[str]] = self._opened().best(self._read(X))
        return answers

    def marginals_of_many(self, X: Sequence[Items]) -> list[list[dict[str, float]]]:
        """Return the probabilities of labels at all items of many sequences, at once."""
        return label_dicts(self._opened().sums(self._read(X))[0], list(self._labels))

    def probability(self, yseq: Sequence[str]) -> float:
        """Return the probability of these labels of the sequence that was set."""
        calls, current = self._opened(), self._current()
        try:
            numbers = np.array([self._labels[text_of(label)] for label in yseq], dtype=np.int64)
        except KeyError:
            raise ValueError(f"the model's labels are {self.labels()}, got {list(yseq)}") from None
        return math.exp(calls.values(current.rows, numbers)[0] - self._sums(current)[1])

    def marginal(self, y: str, pos: int) -> float:
        """Return the probability that the item at `pos` of the sequence that was set has the label `y`."""
        current = self._set
        if current is None or current.marginals is None:
            current = self._current()
            current.marginals = [dict(zip(self._labels, row, strict=True)) for row in self._sums(current)[0]]
        try:  # asked once for each label of each item: every step counts
            if pos >= 0:
                return current.marginals[pos][y]
        except (KeyError, IndexError):
            pass
        if y not in self._labels:
            raise ValueError(f"the model has no label {y!r}")
        raise ValueError(f"there is no item {pos} in a sequence of {len(current.marginals)}")

    def _read(self, X: Sequence[Items]) -> Any:
        """Return sequences as the core reads them; other forms (bytes, nested sets, ...) are converted first."""
        calls = self._opened()
        rows = calls.read([xseq.packed if isinstance(xseq, ItemSequence) else xseq for xseq in X])
        if rows is None:
            rows = calls.read([packed_of(xseq) for xseq in X])
        if rows is None:
            raise ValueError("an item has a value that is not a finite number")
        return rows

    def _sums(self, current: _Set) -> tuple[list[list[float]], float]:
        """Return probabilities of labels at the items of a sequence, and the log of its sum over all labellings."""
        if current.sums is None:
            (marginals,), values = self._opened().sums(current.rows)
            current.sums = marginals.tolist(), float(values[0])
        return current.sums

    def info(self) -> ParsedDump:
        """Return the model's names and weights; RuntimeError if none is open."""
        if self._chain is None:
            raise RuntimeError("no model is open: call open() first")
        return ParsedDump(self._chain, self._size)

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write the model as text to a file, by default to standard output."""
        info = self.info()
        parts = {"FILEHEADER": [f"  {name}: {value}" for name, value in info.header.items()]}
        for title, numbers in (("LABELS", info.labels), ("ATTRIBUTES", info.attributes)):
            parts[title] = [f"{int(number):>7}: {name}" for name, number in numbers.items()]
        for title, kind, weights in (("TRANSITIONS", 1, info.transitions), ("STATE_FEATURES", 0, info.state_features)):
            parts[title] = [f"  ({kind}) {a} --> {b}: {w:f}" for (a, b), w in weights.items()]
        with contextlib.nullcontext(sys.stdout) if filename is None else atomic_write(filename, "w") as file:
            for title, lines in parts.items():
                file.write("\n".join([f"{title} = {{", *lines, "}\n\n"]))

    def _opened(self) -> Any:
        if self._calls is None:
            raise ValueError("no model is open: call open() first")
        return self._calls

    def _current(self) -> _Set:
        if self._set is None:
            raise ValueError("no sequence was given: call set() or tag(xseq) first")
        return self._set
