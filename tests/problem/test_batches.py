"""Batches, and the sums that a problem computes over several of them."""

from __future__ import annotations

import pytest

from oracles.problems import make_case
from partwise.problem import Batch, LabelledBatch
from partwise.problem.losses import Loss, get_loss


def test_a_batch_is_structure_and_features():
    case = make_case("chain-tied", 3)
    batch = Batch(case.structure, case.features)
    assert (batch.n_examples, batch.n_weights) == (case.n, case.features.num_weights)
    assert batch.n_slots == case.structure.slot_offsets()[-1]
    with pytest.raises(ValueError, match=f"features of {case.n} examples, a structure of 2"):
        Batch(make_case("chain-tied", 3, n=2).structure, case.features)


def test_opening_a_labelled_batch_returns_the_batch():
    case = make_case("chain-tied", 3)
    batch = Batch(case.structure, case.features)
    labelled = LabelledBatch(batch, case.gold, case.sample_weight)
    assert labelled.open() is labelled
    assert (labelled.n_examples, labelled.n_slots, labelled.n_weights) == (case.n, batch.n_slots, batch.n_weights)
    with pytest.raises(ValueError, match="sample_weight has shape"):
        LabelledBatch(batch, case.gold, [1.0])


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("log", True),
        ("softmax-margin", True),
        ("hinge", False),
        ("squared-hinge", False),
        ("smoothed-hinge", False),
        (Loss("squared log", 1.0, 0.5, "squared"), False),
        (Loss("mine", 0.1, 1.0), True),
        (get_loss("smoothed-hinge", temperature=0.5), False),
    ],
)
def test_which_losses_are_probabilistic(loss, expected):
    assert get_loss(loss).probabilistic is expected
