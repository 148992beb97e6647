"""Constraints at prediction: which labels a position may have, and which may follow which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from partwise.models.constraints import as_booleans, check_choices, check_entries, label_mask
from partwise.models.errors import ConstraintError
from partwise.models.sequences.schemes import LabelRule, named_rule
from partwise.support.arrays import Booleans, Ints


def no_labelling(number: int, error: ValueError, legal: bool = False) -> ConstraintError:
    """The structure's complaint about a mask, with the sequence's number; legal: whether labels keep to a scheme."""
    also = "; predictions keep to the scheme of the labels unless legal=False" if legal else ""
    return ConstraintError(f"sequence {number}: no labelling is allowed ({error}{also})", number)


def label_masks(allowed: Any, lengths: Ints, classes: NDArray[Any]) -> Sequence[Booleans | None]:
    """For each sequence (the empty ones too) a mask of shape (length, n_labels), or None for no constraint."""
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


def transition_rule(allowed: Any, classes: NDArray[Any]) -> LabelRule | None:
    """`allowed_transitions` of `SequenceTagger`: the name of a scheme, or a table of pairs."""
    if allowed is None or isinstance(allowed, str):
        return None if allowed is None else named_rule(allowed, tuple(classes.tolist()))
    n = len(classes)
    pairs = as_booleans(allowed, (n, n))
    if pairs is None:
        raise ValueError(f"allowed_transitions must be a boolean array of shape ({n}, {n}), or the name of a scheme")
    return LabelRule.of_pairs(pairs)
