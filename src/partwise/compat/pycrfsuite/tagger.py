"""`Tagger`: labels and probabilities from a model file of CRFsuite."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any

import numpy as np

from partwise.compat.pycrfsuite.items import sequence_of, token_of
from partwise.model_files import crfsuite
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.linear_chain import LinearChain


class ParsedDump:
    """What a model holds.

    Attributes
    ----------
    transitions : dict {(label, next label): weight}
    state_features : dict {(attribute, label): weight}
    header : dict of texts
    labels, attributes : dict {name: number as text}
    """

    def __init__(self, chain: LinearChain, size: int) -> None:
        names, labels = chain.attribute_names(), chain.labels
        self.header = {
            "magic": "lCRF", "size": str(size), "type": "FOMC", "version": "100", "num_features": "0",
            "num_labels": str(len(labels)), "num_attrs": str(len(names)),
        }  # fmt: skip
        self.labels = {label: str(k) for k, label in enumerate(labels)}
        self.attributes = {name: str(k) for k, name in enumerate(names)}
        self.transitions = {
            (labels[a], labels[b]): w
            for a, b, w in zip(*chain.transitions.tolist(), chain.transition_weights.tolist(), strict=True)
        }
        self.state_features = {
            (names[a], labels[b]): w
            for a, b, w in zip(*chain.states.tolist(), chain.state_weights.tolist(), strict=True)
        }


def _tokens(xseq: Any) -> list[Any]:
    """A sequence as estimators take it: as it is, where its items are of their forms too."""
    if type(xseq) is list and all(type(item) is dict or type(item) is list for item in xseq):
        return xseq
    return [token_of(item) for item in sequence_of(xseq)]


def _answers(ask: Callable[[list[Any]], list[Any]], sequences: list[list[Any]]) -> list[Any]:
    """Answers about sequences; what an estimator does not take is brought into its form (bytes, nested sets, ...)."""
    try:
        return ask(sequences)
    except ValueError:
        return ask([[token_of(item) for item in sequence_of(sequence)] for sequence in sequences])


class _OneLabel:
    """What `Tagger` asks of an estimator, for a model with one label or, without training data, with none."""

    def __init__(self, labels: list[str]) -> None:
        self.labels = labels

    def predict(self, sequences: list[list[Any]]) -> list[list[str]]:
        return [[label for _ in xseq for label in self.labels] for xseq in sequences]

    def predict_marginals(self, sequences: list[list[Any]]) -> list[list[dict[str, float]]]:
        return [[dict.fromkeys(self.labels, 1.0) for _ in xseq] for xseq in sequences]

    def log_probability(self, sequences: list[list[Any]], labels: list[list[str]]) -> list[float]:
        if any(label not in self.labels for label in labels[0]):
            raise ValueError(f"the model's labels are {self.labels}, got {labels[0]}")
        return [0.0 for _ in sequences]


class Tagger:
    """Labels sequences with a model (`open`)."""

    _tagger: Any
    _chain: LinearChain | None
    _set: list[Any] | None
    _marginals: list[dict[str, float]] | None

    def __init__(self) -> None:
        self.close()

    def open(self, name: str | os.PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model file; OSError if it cannot be read, ValueError if it is not one."""
        with open(name, "rb") as file:
            return self._use(file.read(), name)

    def open_inmemory(self, value: bytes) -> contextlib.closing[Tagger]:
        """Open a model from the bytes of its file."""
        return self._use(value, None)

    def _use(self, data: bytes, name: Any) -> contextlib.closing[Tagger]:
        try:
            chain = crfsuite.parse(data)
            # With fewer than two labels there is nothing to choose.
            self._tagger = crfsuite.to_tagger(chain, len(data)) if len(chain.labels) > 1 else _OneLabel(chain.labels)
        except ModelFormatError as error:
            raise ModelFormatError(error.message, name) from None
        self._chain, self._size = chain, len(data)
        return contextlib.closing(self)

    def close(self) -> None:
        """Forget the model."""
        self._tagger = self._chain = self._set = self._marginals = None
        self._size = 0

    def labels(self) -> list[str]:
        """The model's labels."""
        return list(self._opened().labels)

    def set(self, xseq: Any) -> None:
        """The sequence that `tag`, `probability` and `marginal` are about."""
        self._opened()
        self._set = _tokens(xseq)
        self._marginals = None

    def tag(self, xseq: Any = None) -> list[str]:
        """The best labels of a sequence, by default of the one that was set."""
        self._opened()
        if xseq is not None:
            self.set(xseq)
        answer: list[str] = _answers(self._tagger.predict, [self._current()])[0]
        return answer

    def tag_many(self, X: Sequence[Any]) -> list[list[str]]:
        """The best labels of many sequences, at once; the one that was set stays."""
        self._opened()
        answers: list[list[str]] = _answers(self._tagger.predict, [_tokens(xseq) for xseq in X])
        return answers

    def marginals_of_many(self, X: Sequence[Any]) -> list[list[dict[str, float]]]:
        """The probabilities of labels at all items of many sequences, at once."""
        self._opened()
        answers: list[list[dict[str, float]]] = _answers(self._tagger.predict_marginals, [_tokens(xseq) for xseq in X])
        return answers

    def probability(self, yseq: Sequence[str]) -> float:
        """The probability of these labels of the sequence that was set."""
        current, labels = self._current(), [list(yseq)]
        found = _answers(lambda sequences: self._tagger.log_probability(sequences, labels), [current])
        return float(np.exp(found[0])) if current else 1.0

    def marginal(self, y: str, pos: int) -> float:
        """The probability that the item at `pos` of the sequence that was set has the label `y`."""
        if self._marginals is None:
            self._marginals = _answers(self._tagger.predict_marginals, [self._current()])[0]
        if y not in self._opened().labels:
            raise ValueError(f"the model has no label {y!r}")
        if not 0 <= pos < len(self._marginals):
            raise ValueError(f"there is no item {pos} in a sequence of {len(self._marginals)}")
        return float(self._marginals[pos][y])

    def info(self) -> ParsedDump:
        """The model's names and weights; RuntimeError if none is open."""
        return ParsedDump(self._dumped(), self._size)

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write the model as text to a file, by default to standard output."""
        self._dumped()
        if filename is None:
            self._write(sys.stdout)
        else:
            with open(filename, "w", encoding="utf-8") as file:
                self._write(file)

    def _write(self, file: IO[str]) -> None:
        info = self.info()
        numbers = {"FILEHEADER": info.header, "LABELS": info.labels, "ATTRIBUTES": info.attributes}
        for title, entries in numbers.items():
            lines = (
                f"  {name}: {value}" if title == "FILEHEADER" else f"{int(value):>7}: {name}"
                for name, value in entries.items()
            )
            file.write("\n".join([f"{title} = {{", *lines, "}\n\n"]))
        for kind, (title, weights) in enumerate(
            [("TRANSITIONS", info.transitions), ("STATE_FEATURES", info.state_features)]
        ):
            lines = (f"  ({1 - kind}) {a} --> {b}: {w:f}" for (a, b), w in weights.items())
            file.write("\n".join([f"{title} = {{", *lines, "}\n\n"]))

    def _opened(self) -> LinearChain:
        if self._chain is None:
            raise ValueError("no model is open: call open() first")
        return self._chain

    def _dumped(self) -> LinearChain:
        if self._chain is None:
            raise RuntimeError("no model is open: call open() first")
        return self._chain

    def _current(self) -> list[Any]:
        if self._set is None:
            raise ValueError("no sequence was given: call set() or tag(xseq) first")
        return self._set
