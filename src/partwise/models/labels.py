"""Labels as users give them: their numbers, how many there may be, and weights of examples by their labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import Any, NoReturn, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from partwise.io.coded import CodedSequences
from partwise.model_files.values import object_array, string_array
from partwise.models.readers import Sequences
from partwise.support.arrays import Floats, Ints
from partwise.support.checks import MOST_WEIGHT, check_choice, check_positive
from partwise.support.lazy import cached_property
from partwise.support.memory import check_weights, size_text

#: Labels of examples, or distinct labels.
LabelArray: TypeAlias = NDArray[Any]
LabelSequence: TypeAlias = list[Hashable]

#: Labels that a model may have whose parts are pairs of labels: a table of all pairs takes 20 GB.
MOST_LABELS = 50_000
#: There is no warning of so few labels; a pass over so many pairs of labels times positions takes minutes.
FEW_LABELS, SLOW_PASS = 100, 1e11
#: A pass over so many segments with their types takes many seconds.
SLOW_SEGMENTS = 1e9
#: So many rows are checked for too many labels before any work; so many rows of items are searched for names.
MANY_ROWS, FIRST_ROWS = 100_000, 1000


class Targets(Sequences):
    """Labels as users give them, in the order of the sequences; flattened once."""

    @classmethod
    def of(cls, X: object, name: str = "y") -> Targets:
        """Return all of `X`: `CodedSequences`, or a list of label sequences."""
        if isinstance(X, CodedSequences):
            return CodedTargets(X, range(len(X)))
        plain = Sequences.of(X, name)
        return cls(plain.items, plain.numbers)

    def check(self, lengths: Ints) -> Self:
        """Return itself; ValueError unless the labels fit sequences of these lengths."""
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
        return list(chain.from_iterable(self.items))

    def classes(self) -> LabelArray:
        """Return the distinct labels, sorted; labels of unlike types are sorted by type first."""
        try:
            distinct = set(self.flat)
        except TypeError:
            self._refuse(_unhashable, "label {!r} is not hashable")
        if any(map(_missing, distinct)):
            self._refuse(_missing, "label missing ({!r})")
        check_distinct(distinct)  # before they are sorted and numbered
        return sorted_labels(label.item() if isinstance(label, np.generic) else label for label in distinct)

    def encode(self, classes: LabelArray) -> Ints:
        """Return indices into `classes` of all labels; -1 for a label that is not among them."""
        return encode_flat(self.flat, classes)

    def _refuse(self, bad: Callable[[object], bool], message: str) -> NoReturn:
        row = next(row for row, label in enumerate(self.flat) if bad(label))
        raise ValueError(f"y: {self.where(self.lengths('y'), row)}: {message.format(self.flat[row])}") from None


class CodedTargets(Targets):
    """Labels that are strings and have numbers already: what is done per label is done per distinct one."""

    def classes(self) -> LabelArray:
        distinct = self.items.distinct()
        check_distinct(distinct)
        return sorted_labels(distinct)

    def encode(self, classes: LabelArray) -> Ints:
        return cast(Ints, self.items.numbers_in(classes.tolist()))


def sorted_labels(distinct: Iterable[Any]) -> LabelArray:
    """Return distinct labels in order; those of unlike types by type first."""
    plain = list(distinct)
    try:
        plain.sort()
    except TypeError:
        plain.sort(key=lambda label: (type(label).__name__, repr(label)))
    return label_array(plain)


def all_labels(found: LabelArray, given: Any) -> LabelArray:
    """Return the labels found, or those given, which must include them."""
    if given is None:
        return found
    known = set(given.tolist() if isinstance(given, np.ndarray) else given)
    missing = [label for label in found.tolist() if label not in known]
    if missing:
        raise ValueError(f"y has the label {missing[0]!r}, which is not among classes")
    return sorted_labels(known)


def label_array(plain: list[Any]) -> LabelArray:
    """Return labels as an array; of objects where NumPy's own types would change a label or take much memory."""
    if all(isinstance(label, str) for label in plain):
        return string_array(plain)
    if all(type(label) is int for label in plain) and (array := np.array(plain)).dtype.kind == "i":
        return array
    return object_array(plain)


def encode_flat(flat: Sequence[Hashable], classes: LabelArray) -> Ints:
    """Return indices into `classes`; -1 for a label that is not among them."""
    index = {label: i for i, label in enumerate(classes.tolist())}
    return np.fromiter(map(index.get, flat, repeat(-1)), dtype=np.int64, count=len(flat))


def label_lists(indices: Ints, classes: LabelArray, lengths: Ints) -> list[LabelSequence]:
    """Return the labels that these indices into `classes` stand for, cut into sequences."""
    labels = classes.astype(object)  # one string per label: of an array of strings it would be one per position
    return split(labels[indices].tolist(), lengths)


def label_dicts(arrays: list[Floats], labels: LabelSequence, output: str = "dict") -> list[Any]:
    """Return probabilities of labels, (length, n_labels) per sequence, as they are or as a dict for each position."""
    check_choice("output", output, ("dict", "array"))
    if output == "array":
        return arrays
    return [[dict(zip(labels, row, strict=True)) for row in array.tolist()] for array in arrays]


def split(values: Any, lengths: Ints) -> list[Any]:
    """Cut a list or an array of all positions' values into sequences."""
    ends = np.cumsum(lengths).tolist()
    return [values[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]


def _missing(label: object) -> bool:
    return label is None or bool(label != label)  # NaN alone differs from itself


def _unhashable(label: object) -> bool:
    try:
        hash(label)
    except TypeError:
        return True
    return False


def check_distinct(labels: Iterable[Hashable], what: str = "labels") -> None:
    """Raise ValueError as soon as more than `MOST_LABELS` distinct labels have come; invalid labels are ignored."""
    found: set[Hashable] = set()
    left = iter(labels)
    try:
        while len(found) <= MOST_LABELS and (some := list(islice(left, MOST_LABELS))):
            found.update(some)
    except TypeError:  # the reader of the labels reports those that cannot be hashed
        return
    if len(found) > MOST_LABELS:
        size = size_text(8.0 * len(found) ** 2)
        raise ValueError(
            f"y has more than {MOST_LABELS} different {what}: tables of them would be too large (one of all pairs "
            f"takes {size} or more)"
        )


def check_table(X: object, y: object) -> None:
    """Raise TooLarge at once for more weights of (column, label) than fit: sorting very many labels takes seconds."""
    if not isinstance(y, (list, np.ndarray)) or len(y) < MANY_ROWS:
        return
    shape: tuple[int, ...] = getattr(X, "shape", ())
    rows = X[:FIRST_ROWS] if isinstance(X, list) else ()
    try:
        n_labels = len(set(y if isinstance(y, list) else y.tolist()))
        n_columns = shape[1] if len(shape) == 2 else len({name for row in rows for name in row})
    except TypeError:  # the readers of rows and labels report what is wrong with them
        return
    check_weights(n_labels * n_columns, f"{n_columns:,} features or more, {n_labels:,} classes")


def node_labels(trees: Iterable[object]) -> Iterator[Hashable]:
    """Yield the first entries of all tuples within tuples."""
    left = list(trees)
    while left:
        node = left.pop()
        if isinstance(node, tuple) and node:
            yield node[0]
            left.extend(node[1:])


def given_labels(X: object, y: object) -> Iterator[str]:
    """Yield labels of the nodes of trees as they are given, in y or in X."""
    given = X if y is None else y
    return (label for label in node_labels(given if isinstance(given, list) else ()) if isinstance(label, str))


def warn_of_many_labels(counts: Ints, label_table: int = 0, what: str = "labels", place: str = "position") -> None:
    """Warn if most labels occur once, or if `label_table` tuples of labels at each position take minutes."""
    n_labels, n_places = len(counts), int(counts.sum())
    once = int(np.count_nonzero(counts == 1))
    if n_labels > FEW_LABELS and 2 * once > n_labels:
        why = f"{once:,} of them occur once: are they {what}?"
    elif n_places * label_table > SLOW_PASS:
        why = f"a pass goes through {label_table:,} pairs of them at each of {n_places:,} {place}s"
    else:
        return
    warnings.warn(f"y has {n_labels:,} different {what}; {why}", UserWarning, stacklevel=3)


def warn_of_long_segments(lengths: Ints, max_length: int, n_types: int) -> None:
    """Warn where a pass over all segments of sequences of these lengths takes long."""
    work = n_types * float((lengths * np.minimum(lengths, max_length)).sum())
    if work > SLOW_SEGMENTS:
        what = f"a pass goes through {work:.2g} of them; max_length limits it"
        warnings.warn(f"segments may have {max_length:,} positions: {what}", UserWarning, stacklevel=3)


def with_class_weight(
    class_weight: object, y: LabelArray, weight: Floats | None, classes: LabelArray | None = None
) -> Floats | None:
    """Return row weights times the weights of their labels; classes: all labels, if y may have only some of them."""
    if class_weight is None:
        return weight
    seen, labels = np.unique(y, return_inverse=True)
    if classes is not None:
        seen, labels = classes, np.searchsorted(classes, seen)[labels]
    rows = np.ones(len(y)) if weight is None else weight
    return rows * _factors_of(class_weight, labels, rows, seen, classes is not None)


def sequence_weights(
    class_weight: object, targets: Targets, weight: Floats | None, classes: LabelArray | None = None
) -> Floats:
    """Return weights of sequences: each is multiplied by the mean of the weights of its labels.

    Positions cannot have weights: losses are not sums over them. classes: all labels, if `targets` may lack some.
    """
    lengths = targets.lengths("y")
    rows = np.ones(len(lengths)) if weight is None else weight
    known = targets.classes() if classes is None else classes
    labels = targets.encode(known)
    if (labels < 0).any():
        raise ValueError(f"y has the label {targets.flat[int(np.argmin(labels))]!r}, which is not known")
    each = _factors_of(class_weight, labels, np.repeat(rows, lengths), known, classes is not None)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    totals: Floats = np.bincount(owner, weights=each, minlength=len(lengths)) / np.maximum(lengths, 1)
    return rows * np.where(lengths > 0, totals, 1.0)


def _factors_of(class_weight: object, labels: Ints, weights: Floats, known: LabelArray, given: bool) -> Floats:
    """Return the factor of each label; given: whether the user named all labels, as for `partial_fit`."""
    if given and isinstance(class_weight, str):
        raise ValueError(f"class_weight={class_weight!r} is not available with partial_fit: give a mapping")
    sums = np.bincount(labels, weights=weights, minlength=len(known)).astype(np.float64)
    return label_factors(class_weight, known, sums)[labels]


def label_factors(class_weight: object, seen: LabelArray, sums: Floats) -> Floats:
    """Return the factor of each label's rows, whose weights have these sums; ValueError if all products are 0."""
    if class_weight is None:
        return np.ones(len(seen))
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ("balanced",))
        # Labels that only rows of weight 0 have do not count.
        return cast(Floats, sums.sum() / ((sums > 0).sum() * np.where(sums > 0, sums, 1.0)))
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight must be None, 'balanced' or a mapping, got {class_weight!r}")
    unknown = [label for label in class_weight if not np.any(seen == label)]
    if unknown:  # a fold of the data may lack labels
        names = ", ".join(map(repr, unknown[:5]))
        warnings.warn(f"class_weight names labels that are not in y: {names}", UserWarning, stacklevel=3)
    for label, value in class_weight.items():
        check_positive(f"class_weight of label {label!r}", value, zero=True)
        if value > MOST_WEIGHT:
            raise ValueError(f"class_weight of label {label!r} is {value}: at most {MOST_WEIGHT:g}")
    factors = np.array([float(class_weight.get(label, 1.0)) for label in seen.tolist()])
    if not (factors * sums).any():
        raise ValueError("class_weight and sample_weight leave no row with a weight above 0")
    return factors


def warn_of_gone(before: LabelArray, after: LabelArray) -> None:
    """Warn of labels that are gone, because class_weight leaves no example of them."""
    gone = [label for label in before.tolist() if not np.any(after == label)]
    if gone:
        what = f"all examples with {', '.join(map(repr, gone[:5]))} have weight 0"
        text = f"y: {what}, so that nothing is learnt of it and classes_ is without it"
        warnings.warn(text, UserWarning, stacklevel=3)
