"""Which labels a position may have, and which may follow which: users' constraints, and schemes of chunk labels.

iob2    O, B-x, I-x: I-x comes after B-x or I-x
iobes   O, B-x, I-x, E-x, S-x: a chunk is S-x, or B-x, any number of I-x, E-x
iob1    O, B-x, I-x: B-x comes after B-x or I-x; never chosen by itself
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from partwise.models.constraints import ConstraintError, as_booleans, check_choices, check_entries, label_mask
from partwise.models.labels import LabelArray
from partwise.support.arrays import Booleans, Bytes, Ints, pointers
from partwise.support.lazy import cached_property

SCHEMES = ("iob1", "iob2", "iobes")
#: Up to this share of the sequences may break a scheme by mistake.
MISTAKES = 0.1
#: By the name that users may give: the scheme, and the first letters that its labels have.
NAMES = {
    "iob1": ("iob1", "OBI"),
    "iob2": ("iob2", "OBI"),
    "bio": ("iob2", "OBI"),
    "iobes": ("iobes", "OBIES"),
    "bioes": ("iobes", "OBIES"),
    "bilou": ("iobes", "OBILU"),
}

Labels: TypeAlias = tuple[Hashable, ...]


def may_follow(scheme: str, before: str, label: str, at_start: bool = False) -> bool:
    """Return whether a label may follow another one (O stands for a sentence's ends)."""
    head, _, kind = label.partition("-")
    last, _, kind_before = before.partition("-")
    opened = last in ("B", "I")
    inside = opened and kind == kind_before
    if scheme == "iob1":
        # B only parts two chunks of one type that touch.
        return head != "B" or (not at_start and inside)
    if scheme == "iob2":
        return head != "I" or inside
    return inside if head in ("I", "E") else not opened


@dataclass(frozen=True)
class LabelRule:
    """Which labels (columns) may follow which (rows), which may come first, which last."""

    pairs: Booleans
    first: Booleans
    last: Booleans

    def __and__(self, other: LabelRule | None) -> LabelRule:
        if other is None:
            return self
        return LabelRule(self.pairs & other.pairs, self.first & other.first, self.last & other.last)

    @property
    def for_any_length(self) -> bool:
        """Whether some label can fill a sequence of any length alone, so that every sequence has an answer."""
        return bool((self.first & self.last & np.diagonal(self.pairs)).any())

    def allows(self, labels: Ints, lengths: Ints) -> Booleans:
        """Return whether each of these sequences, concatenated and none of them empty, keeps to the rule."""
        ends = pointers(lengths)
        good = np.ones(len(labels), dtype=bool)
        good[1:] = self.pairs[labels[:-1], labels[1:]]
        good[ends[:-1]] = self.first[labels[ends[:-1]]]
        good[ends[1:] - 1] &= self.last[labels[ends[1:] - 1]]
        return np.logical_and.reduceat(good, ends[:-1]) if len(lengths) else np.ones(0, dtype=bool)

    def put_on(self, structure: Any) -> None:
        structure.set_follow(*self.as_bytes)

    @cached_property
    def as_bytes(self) -> tuple[Bytes, Bytes, Bytes]:
        """The three parts as `set_follow` of structures takes them."""
        pairs, first, last = (part.astype(np.uint8).ravel() for part in (self.pairs, self.first, self.last))
        return pairs, first, last


@lru_cache(maxsize=32)
def rule_of(scheme: str, labels: tuple[str, ...]) -> LabelRule:
    """Return the rule of a scheme, remembered because single predictions ask for it each time."""
    return LabelRule(
        np.array([[may_follow(scheme, before, label) for label in labels] for before in labels]),
        np.array([may_follow(scheme, "O", label, at_start=True) for label in labels]),
        np.array([may_follow(scheme, label, "O") for label in labels]),
    )


def transition_rule(allowed: object, classes: LabelArray) -> LabelRule | None:
    """Return the rule of `allowed_transitions` of `SequenceTagger`: the name of a scheme, or a table of pairs."""
    if allowed is None:
        return None
    labels = tuple(classes.tolist())
    if not isinstance(allowed, str):
        shape = len(labels), len(labels)
        pairs = as_booleans(allowed, shape)
        if pairs is None:
            raise ValueError(f"allowed_transitions must be a boolean array of shape {shape}, or the name of a scheme")
        ends = np.ones(len(labels), dtype=bool)
        return LabelRule(pairs, ends, ends)
    if allowed not in NAMES:
        raise ValueError(f"allowed_transitions={allowed!r}: there are {', '.join(NAMES)}, or a boolean array")
    scheme, heads = NAMES[allowed]
    for label in labels:
        head, dash, kind = label.partition("-") if isinstance(label, str) else ("", "", "")
        if not head or head not in heads or (head != "O") != bool(dash and kind):
            known = ", ".join(letter if letter == "O" else f"{letter}-x" for letter in heads)
            raise ValueError(f"allowed_transitions={allowed!r}: the label {label!r} is none of {known}")
    alike = {"L": "E", "U": "S"} if allowed == "bilou" else {}
    return rule_of(scheme, tuple(alike.get(label[0], label[0]) + label[1:] for label in labels))


def label_masks(allowed: object, lengths: Ints, classes: LabelArray) -> Sequence[Booleans | None]:
    """Return for each sequence (the empty ones too) a mask (length, n_labels), or None for no constraint."""
    if allowed is None:
        return [None] * len(lengths)
    index = {label: i for i, label in enumerate(classes.tolist())}
    found: list[Booleans | None] = []
    for number, value in enumerate(check_entries(allowed, len(lengths), "sequences")):
        mask = None
        if value is not None:
            where, positions = f"allowed: sequence {number}", range(int(lengths[number]))
            mask = label_mask(value, index, where, "position", positions)
            check_choices(mask, number, where, "position", positions)
        found.append(mask)
    return found


def no_labelling(number: int, error: ValueError, legal: bool = False) -> ConstraintError:
    """Return the error of a structure that refuses a mask, with the sequence's number; legal: if a scheme is kept."""
    also = "; predictions keep to the scheme of the labels unless legal=False" if legal else ""
    return ConstraintError(f"sequence {number}: no labelling is allowed ({error}{also})", number)


@lru_cache(maxsize=32)
def scheme_of(labels: Labels) -> str | None:
    """Return the scheme that labels look like: "iob2", "iobes", or None for labels of another form, or without I."""
    heads = set()
    for label in labels:
        if not isinstance(label, str):
            return None
        head, dash, kind = label.partition("-")
        if head not in ("B", "I", "O", "E", "S") or (head == "O" and dash) or (dash and not kind):
            return None
        heads.add(head)
    found = "iobes" if heads & {"E", "S"} else "iob2" if {"B", "I"} <= heads else None
    return found if found and rule_of(found, labels).for_any_length else None


def kept_scheme(
    labels: Labels, codes: Ints, lengths: Ints, numbers: Sequence[int] | None = None, warn: bool = False
) -> str | None:
    """Return the scheme that the labels look like, if all of these sequences, none of them empty, keep to it.

    warn: about the first sequence that does not, if that may be a mistake. numbers: the sequences' numbers.
    """
    scheme = scheme_of(labels)
    if scheme is None:
        return None
    rule = rule_of(scheme, labels)
    allowed = rule.allows(codes, lengths)
    if allowed.all():
        return scheme
    n = int(np.count_nonzero(~allowed))
    # Labels that often break the scheme were not meant to follow it, and neither were labels that all follow IOB1.
    iob1 = scheme == "iob2" and rule_of("iob1", labels).allows(codes, lengths).all()
    if warn and n <= MISTAKES * len(lengths) and not iob1:
        first = int(np.argmin(allowed))
        begin = int(pointers(lengths)[first])
        row = codes[begin : begin + int(lengths[first])]
        good = np.concatenate([[rule.first[row[0]]], rule.pairs[row[:-1], row[1:]]])
        at = int(np.argmin(good)) if not good.all() else len(row) - 1
        warnings.warn(
            f"y: sequence {first if numbers is None else numbers[first]}, position {at}: the label {labels[row[at]]!r} "
            f"is not allowed there in {scheme} ({n:,} of {len(lengths):,} sequences break the scheme), so that "
            "predictions are not kept to it: mend the labels, or say legal=True (kept to it) or legal=False (not)",
            UserWarning,
            stacklevel=3,
        )
    return None
