"""Reading sequences of attribute names and of dicts.

Items of the usual forms are read by the core, four million attributes in about a second; others in Python.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, ClassVar

import numpy as np

from partwise.features import Attributes, Vocabulary
from partwise.model_files.names import read_vocabulary
from partwise.model_files.parts import ModelParts
from partwise.models.rows import Rows
from partwise.models.sequences.dicts import TOO_DEEP, add_dict, add_names
from partwise.models.sequences.inputs import Sequences, input_form
from partwise.models.sequences.reader import VocabularyReader, not_finite
from partwise.support.arrays import Floats, Ints, pointers


class NameReader(VocabularyReader):
    """Reads sequences of attribute names: items are lists of strings or dicts {name: value}."""

    kind: ClassVar[str] = "names"
    #: What joins the name and the string of a dict's entry.
    separator: str = "="

    #: Whether the vocabulary was learnt from dicts, whose names are joined.
    joined: bool = False

    def __init__(self, vocabulary: Vocabulary | None = None, separator: str = "=", joined: bool = False) -> None:
        super().__init__(vocabulary)
        self.separator, self.joined = separator, joined

    def joins_otherwise(self, separator: str) -> bool:
        return self.joined and self.separator != separator

    def sequences(self, X: Any) -> Sequences:
        sequences = Sequences.of(X)
        if input_form(sequences) not in ("names", "none"):
            raise ValueError(f"X: {sequences.one}s must be lists of attribute names or dicts, as in fit")
        return sequences

    def with_vocabulary(self, vocabulary: Vocabulary) -> NameReader:
        return NameReader(vocabulary, self.separator, self.joined)

    def to_parts(self) -> ModelParts:
        settings: dict[str, Any] = {} if self.separator == "=" else {"separator": self.separator}
        settings |= {"joined": True} if self.joined else {}
        return ModelParts(self.kind, settings, {"bytes": self.known.bytes, "offsets": self.known.offsets})

    @classmethod
    def from_parts(cls, parts: ModelParts) -> NameReader:
        separator = parts.text("separator") if parts.has("separator") else "="
        return cls(read_vocabulary(parts), separator, parts.has("joined") and parts.flag("joined"))

    def read(self, sequences: Sequences, min_count: int = 1, n_jobs: int = 1) -> Rows:
        """All positions end to end; names that are not in the vocabulary have the id -1, which the core ignores."""
        lengths = sequences.lengths()
        tokens = list(chain.from_iterable(sequences.items))
        counts, ids, values = self._read(sequences, lengths, tokens, min_count)
        size, unknown = self.n_attributes, int(np.count_nonzero(ids < 0))
        return Rows(lengths, size, Attributes(pointers(counts), ids, size, values), (unknown, len(ids)))

    def _read(
        self, sequences: Sequences, lengths: Ints, tokens: list[Any], min_count: int
    ) -> tuple[Ints, Ints, Floats | None]:
        """How many attributes each token has, their numbers and values; learns the vocabulary if there is none."""
        if self.vocabulary is not None:
            found = self.vocabulary.read_items(tokens, self.separator)
            if found is not None:
                return found
        else:
            learnt = Vocabulary.learn_items(tokens, self.separator, min_count)
            if learnt is not None:
                self.vocabulary, found, self.joined = learnt
                return found
        # Other forms of items, or something is wrong with them.
        counts, names, values = _named_values(sequences, lengths, tokens, self.separator)
        try:
            if self.vocabulary is None:
                self.joined = any(isinstance(token, dict) for token in tokens)
                self.vocabulary, ids = Vocabulary.learn(names, min_count)
            else:
                ids = self.vocabulary.ids(names)
        except ValueError:
            self._refuse_surrogate(sequences, lengths, counts, names)
            raise
        return counts, ids, values

    @staticmethod
    def _refuse_surrogate(sequences: Sequences, lengths: Ints, counts: Ints, names: list[str]) -> None:
        for k, name in enumerate(names):
            try:
                name.encode("utf-8")
            except UnicodeEncodeError:
                row = int(np.searchsorted(np.cumsum(counts), k, side="right"))
                raise ValueError(
                    f"X: {sequences.where(lengths, row)}: {name!r} holds a lone surrogate, which is not a character"
                ) from None


def _named_values(
    sequences: Sequences, lengths: Ints, tokens: list[Any], separator: str
) -> tuple[Ints, list[str], Floats | None]:
    """Items that are dicts (or sets, or a mixture): attributes and values, zeros left out."""
    counts = np.empty(len(tokens), dtype=np.int64)
    names: list[str] = []
    values: list[float] = []
    for row, token in enumerate(tokens):
        before = len(names)
        try:
            if isinstance(token, dict):
                add_dict("", token, names, values, separator)
            elif isinstance(token, (list, tuple, set, frozenset)):
                add_names("", token, names, values)
            elif isinstance(token, np.ndarray) and token.dtype.kind in "UO":
                add_names("", token.tolist(), names, values)
            else:
                raise TypeError(f"expected a list of strings or a dict, got {type(token).__name__}")
        except TypeError as error:
            raise ValueError(f"X: {sequences.where(lengths, row)}: {error}") from None
        except RecursionError:
            raise ValueError(f"X: {sequences.where(lengths, row)}: {TOO_DEEP}") from None
        counts[row] = len(names) - before
    array = np.fromiter(values, dtype=np.float64, count=len(values))
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        row = int(np.searchsorted(np.cumsum(counts), bad[0], side="right"))
        not_finite(array[bad[0]], sequences.where(lengths, row), f"attribute {names[bad[0]]!r}")
    return counts, names, None if (array == 1.0).all() else array
