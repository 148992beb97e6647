"""What reads sequences: the interface, and what readers of named attributes share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np

from partwise.features import Vocabulary
from partwise.features.template import Template
from partwise.model_files.parts import ModelParts
from partwise.models.rows import Rows
from partwise.models.sequences.inputs import Sequences
from partwise.support.arrays import Booleans, Ints, pointers


class Reader(ABC):
    """Sequences to rows of attributes. The first reading learns which attributes there are."""

    #: Its name in model files.
    kind: ClassVar[str]
    #: Whether attributes have names, and not numbers alone.
    named: ClassVar[bool] = True
    #: What makes attributes of strings, where that is not the user.
    template: Template | None = None

    @property
    def plain_transitions(self) -> bool:
        """Whether pairs of labels have weights of their own."""
        return True

    @property
    @abstractmethod
    def n_attributes(self) -> int:
        """Number of attributes it knows."""

    @abstractmethod
    def sequences(self, X: Any) -> Sequences:
        """Sequences of the form that it reads."""

    @abstractmethod
    def read(self, sequences: Any, min_count: int = 1, n_jobs: int = 1) -> Rows:
        """All positions end to end.

        The first call learns the attributes that are seen `min_count` times; later ones ignore those it did not learn.
        """

    @abstractmethod
    def names(self) -> list[str] | None:
        """Names of the attributes in the order of their numbers; None where numbers are all they have."""

    @abstractmethod
    def name(self, attribute: int) -> Any:
        """The name of one attribute: for large vocabularies quicker than `names`."""

    @abstractmethod
    def pick(self, chosen: Any, what: str = "transition_features") -> Booleans:
        """Which attributes `transition_features`, or another parameter, names: "all" or a list."""

    def edge_attributes(self) -> Booleans | None:
        """Which attributes are about pairs of labels by themselves, if any."""
        return None

    def edge_only(self) -> Booleans | None:
        """Which of these have no weights for labels alone, if there are any."""
        return self.edge_attributes()

    def edge_ids(self, chosen: Any) -> Ints | None:
        """Attribute -> edge attribute, counted from 1, or -1; None for transitions tied together.

        chosen: `transition_features`, or None. Attributes that are about pairs of labels are edge attributes anyway.
        """
        given = self.edge_attributes()
        if chosen is None and given is None:
            return None
        if chosen is not None and not (chosen == "all" if isinstance(chosen, str) else isinstance(chosen, Iterable)):
            raise ValueError(f"transition_features must be None, 'all' or a list, got {chosen!r}")
        picked = np.zeros(self.n_attributes, dtype=bool) if chosen is None else self.pick(chosen)
        if given is not None:
            picked |= given
        return np.where(picked, np.cumsum(picked), -1).astype(np.int64)

    @abstractmethod
    def numbers_in(self, old: Reader) -> Ints | None:
        """The number that each attribute has in another reader, -1 for none; None if they cannot have any in common."""

    @abstractmethod
    def keep(self, used: Booleans) -> tuple[Self, Ints]:
        """The reader of these attributes alone where they have names, and the new number of each (-1: gone)."""

    @abstractmethod
    def to_parts(self) -> ModelParts:
        """For a model file."""

    @classmethod
    @abstractmethod
    def from_parts(cls, parts: ModelParts) -> Self:
        """The inverse of `to_parts`."""


class VocabularyReader(Reader):
    """A reader whose attributes have names.

    `vocabulary` maps names to ids, the most frequent first, so that the rows of weights used most lie together; None
    before the first reading.
    """

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self.vocabulary = vocabulary

    @property
    def known(self) -> Vocabulary:
        """The vocabulary, which there is after the first reading."""
        assert self.vocabulary is not None
        return self.vocabulary

    @property
    def n_attributes(self) -> int:
        return 0 if self.vocabulary is None else len(self.vocabulary)

    def names(self) -> list[str]:
        return self.known.names()

    def name(self, attribute: int) -> str:
        return self.known[attribute]

    def pick(self, chosen: Any, what: str = "transition_features") -> Booleans:
        prefixes = ("",) if isinstance(chosen, str) else tuple(chosen)
        if not all(isinstance(prefix, str) for prefix in prefixes):
            raise ValueError(f"{what} must be prefixes of attribute names, got {chosen!r}")
        return self.known.starts_with(prefixes).astype(bool)

    def joins_otherwise(self, separator: str) -> bool:
        """Whether its names are made of dicts' names and strings, joined by something else."""
        return False

    def numbers_in(self, old: Reader) -> Ints | None:
        if not isinstance(old, VocabularyReader):
            return None
        return old.known.packed_ids(self.known.bytes, self.known.offsets)

    def keep(self, used: Booleans) -> tuple[Self, Ints]:
        number = np.where(used, np.cumsum(used) - 1, -1).astype(np.int64)
        lengths = np.diff(self.known.offsets)
        data = np.ascontiguousarray(self.known.bytes[np.repeat(used, lengths)])
        return self.with_vocabulary(Vocabulary(data, pointers(lengths[used]))), number

    def with_names_of(self, other: VocabularyReader, chosen: Ints) -> Self:
        """The same reader with some attributes of another one behind its own."""
        more, _ = other.keep(np.isin(np.arange(other.n_attributes), chosen))
        data = np.concatenate([self.known.bytes, more.known.bytes])
        lengths = np.concatenate([np.diff(self.known.offsets), np.diff(more.known.offsets)])
        return self.with_vocabulary(Vocabulary(np.ascontiguousarray(data), pointers(lengths)))

    @abstractmethod
    def with_vocabulary(self, vocabulary: Vocabulary) -> Self:
        """The same reader with other attributes."""


def not_finite(value: float, where: str, what: str) -> None:
    """Refuse a value."""
    raise ValueError(f"X: {where}, {what} is {value}: features must be finite (no NaN, no inf)")
