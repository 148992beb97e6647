"""Label sequences to numbers and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, repeat
from typing import Any, NoReturn, Self, cast

import numpy as np
from numpy.typing import NDArray

from partwise.io.coded import CodedSequences
from partwise.model_files.values import object_array, string_array
from partwise.models.label_counts import check_distinct
from partwise.models.sequences.inputs import Sequences
from partwise.support.arrays import Floats, Ints
from partwise.support.checks import check_choice
from partwise.support.lazy import cached_property


class Targets(Sequences):
    """Labels as users give them, in the order of the sequences; flattened once."""

    @classmethod
    def of(cls, X: Any, name: str = "y") -> Targets:
        """All of `X`: `CodedSequences`, or a list of label sequences."""
        if isinstance(X, CodedSequences):
            return CodedTargets(cast(Any, X), range(len(X)))
        plain = Sequences.of(X, name)
        return cls(plain.items, plain.numbers)

    def take(self, indices: Ints) -> Targets:
        """Some of them, under their own numbers."""
        some = super().take(indices)
        return type(self)(some.items, some.numbers)

    def check(self, lengths: Ints) -> Self:
        """Itself; ValueError unless they fit sequences of these lengths."""
        if len(self.items) != len(lengths):
            raise ValueError(f"X has {len(lengths)} {self.one}s but y has {len(self.items)}")
        own = self.lengths("y")
        wrong = np.flatnonzero(own != lengths)
        if len(wrong):
            i = int(wrong[0])
            raise ValueError(f"{self.one} {self.numbers[i]} has {lengths[i]} {self.row}s but {own[i]} labels")
        return self

    @cached_property
    def flat(self) -> list[Any]:
        """All labels end to end."""
        return list(chain.from_iterable(self.items))

    def check_count(self) -> None:
        """ValueError for more distinct labels than there may be, before they are put in order and have numbers."""
        check_distinct(chain.from_iterable(self.items))

    def classes(self) -> NDArray[Any]:
        """The distinct labels, sorted; labels of unlike types are sorted by type first."""
        try:
            distinct = set(self.flat)
        except TypeError:
            self._refuse(lambda label: not _hashable(label), "label {!r} is not hashable")
        if any(map(_missing, distinct)):
            self._refuse(_missing, "label missing ({!r})")
        return sorted_labels(label.item() if isinstance(label, np.generic) else label for label in distinct)

    def encode(self, classes: NDArray[Any]) -> Ints:
        """Indices into `classes`, all labels end to end; -1 for a label that is not among them."""
        return encode_flat(self.flat, classes)

    def _refuse(self, bad: Callable[[Any], bool], message: str) -> NoReturn:
        row = next(row for row, label in enumerate(self.flat) if bad(label))
        raise ValueError(f"y: {self.where(self.lengths('y'), row)}: {message.format(self.flat[row])}") from None


class CodedTargets(Targets):
    """Labels that are strings and have numbers already: what is done per label is done per distinct one."""

    @property
    def coded(self) -> CodedSequences:
        """The labels."""
        return cast(CodedSequences, self.items)

    def take(self, indices: Ints) -> CodedTargets:
        return CodedTargets(cast(Any, self.coded.take(indices)), [self.numbers[i] for i in indices.tolist()])

    def lengths(self, name: str = "y") -> Ints:
        return self.coded.lengths

    def check_count(self) -> None:
        check_distinct(self.coded.distinct())

    def classes(self) -> NDArray[Any]:
        return sorted_labels(self.coded.distinct())

    def encode(self, classes: NDArray[Any]) -> Ints:
        return self.coded.numbers_in(classes.tolist())


def sorted_labels(distinct: Iterable[Any]) -> NDArray[Any]:
    """Distinct labels in order; those of unlike types by type first."""
    plain = list(distinct)
    try:
        plain.sort()
    except TypeError:
        plain.sort(key=lambda label: (type(label).__name__, repr(label)))
    return label_array(plain)


def all_labels(found: NDArray[Any], given: Any) -> NDArray[Any]:
    """The labels found, or those given, which must have them among them."""
    if given is None:
        return found
    known = set(given.tolist() if isinstance(given, np.ndarray) else given)
    missing = [label for label in found.tolist() if label not in known]
    if missing:
        raise ValueError(f"y has the label {missing[0]!r}, which is not among classes")
    return sorted_labels(known)


def label_array(plain: list[Any]) -> NDArray[Any]:
    """One-dimensional array of labels; of objects where NumPy's own types would change a label or take much memory."""
    if all(isinstance(label, str) for label in plain):
        return string_array(plain)
    if all(type(label) is int for label in plain):
        array = np.array(plain)
        if array.dtype.kind == "i":
            return array
    return object_array(plain)


def encode_flat(flat: list[Any], classes: NDArray[Any]) -> Ints:
    """Indices into `classes`; -1 for a label that is not among them."""
    index = {label: i for i, label in enumerate(classes.tolist())}
    return np.fromiter(map(index.get, flat, repeat(-1)), dtype=np.int64, count=len(flat))


def label_lists(indices: Ints, classes: NDArray[Any], lengths: Ints) -> list[list[Any]]:
    """The labels that these indices into `classes` stand for, cut into sequences."""
    labels = classes.astype(object)  # one string per label: of an array of strings it would be one per position
    return split(labels[indices].tolist(), lengths)


def label_dicts(arrays: list[Floats], labels: list[Any], output: str = "dict") -> list[Any]:
    """Probabilities of labels, (length, n_labels) per sequence, as they are, or as a dict for each position."""
    check_choice("output", output, ("dict", "array"))
    if output == "array":
        return arrays
    return [[dict(zip(labels, row, strict=True)) for row in array.tolist()] for array in arrays]


def split(values: Any, lengths: Ints) -> list[Any]:
    """Cut a list or an array of all positions' values into sequences."""
    ends = np.cumsum(lengths).tolist()
    return [values[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]


def _missing(label: Any) -> bool:
    return label is None or bool(label != label)  # NaN alone differs from itself


def _hashable(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True
