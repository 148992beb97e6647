"""Invalid input to structures raises ValueError (IndexError for indices) with a message that says what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.enumerate import enumeration_of
from partwise import _core


@pytest.fixture(params=["multiclass", "chain"])
def structure(request):
    if request.param == "multiclass":
        return _core.Multiclass(2, 3)
    return _core.Chain(np.array([2, 3], dtype=np.int64), 3, ends=True)


def calls(structure, i, scores):
    """Every method that takes scores, as a function without arguments."""
    return {
        "maximize": lambda: structure.maximize(i, scores),
        "log_partition": lambda: structure.log_partition(i, scores),
        "k_best": lambda: structure.k_best(i, scores, 2),
        "sample": lambda: structure.sample(i, scores, 1.0, 1, 0),
        "covariance_product": lambda: structure.covariance_product(i, scores, 1.0, np.zeros_like(scores)),
        "clique_marginals": lambda: structure.clique_marginals(i, scores, 1.0),
    }


METHODS = ["maximize", "log_partition", "k_best", "sample", "covariance_product", "clique_marginals"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extra", [-1, 1])
def test_scores_of_the_wrong_length(structure, method, extra):
    with pytest.raises(ValueError, match="scores has"):
        calls(structure, 1, np.zeros(structure.num_slots(1) + extra))[method]()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_must_be_finite(structure, method, bad):
    scores = np.zeros(structure.num_slots(1))
    scores[1] = bad
    with pytest.raises(ValueError, match="NaN or infinity"):
        calls(structure, 1, scores)[method]()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("i", [-1, 2, 10**12])
def test_no_such_example(structure, method, i):
    with pytest.raises((ValueError, IndexError), match="example"):
        calls(structure, i, np.zeros(structure.num_slots(1)))[method]()


@pytest.mark.parametrize("i", [-1, 2])
def test_examples_out_of_range_in_other_calls(structure, i):
    with pytest.raises((ValueError, IndexError), match="example"):
        structure.num_slots(i)
    with pytest.raises((ValueError, IndexError), match="example"):
        structure.mask(i)
    with pytest.raises((ValueError, IndexError), match="example"):
        structure.set_mask(i, None)
    with pytest.raises((ValueError, IndexError), match="example"):
        structure.clique_offsets(i)


@pytest.mark.parametrize("temperature", [-1.0, np.nan, np.inf])
def test_temperature(structure, temperature):
    scores = np.zeros(structure.num_slots(0))
    with pytest.raises(ValueError, match="temperature"):
        structure.log_partition(0, scores, temperature)
    with pytest.raises(ValueError, match="temperature"):
        structure.sample(0, scores, temperature, 1, 0)


def test_covariance_and_cliques_need_a_positive_temperature(structure):
    scores = np.zeros(structure.num_slots(0))
    with pytest.raises(ValueError, match="temperature"):
        structure.covariance_product(0, scores, 0.0, scores)


def test_wrong_kind_of_array(structure):
    size = structure.num_slots(0)
    with pytest.raises((ValueError, TypeError)):
        structure.maximize(0, np.zeros((size, 1)))
    with pytest.raises((ValueError, TypeError)):
        structure.maximize(0, "scores")
    with pytest.raises((ValueError, TypeError)):
        structure.maximize(0, np.zeros(size, dtype=complex))


def test_k_and_n(structure):
    scores = np.zeros(structure.num_slots(0))
    with pytest.raises(ValueError, match="k"):
        structure.k_best(0, scores, 0)
    with pytest.raises(ValueError, match="n"):
        structure.sample(0, scores, 1.0, -1, 0)


def test_mask_of_the_wrong_length(structure):
    with pytest.raises(ValueError, match="mask"):
        structure.set_mask(1, np.ones(structure.num_slots(1) + 1, dtype=np.uint8))
    with pytest.raises(ValueError, match="mask"):
        structure.set_mask(1, np.ones(0, dtype=np.uint8))


def test_a_mask_must_leave_a_labelling(structure):
    before = structure.mask(1)
    with pytest.raises(ValueError, match="mask"):
        structure.set_mask(1, np.zeros(structure.num_slots(1), dtype=np.uint8))
    assert before is None
    assert structure.mask(1) is None  # unchanged


def test_masks_without_a_path_are_refused():
    chain = _core.Chain(np.array([3], dtype=np.int64), 2)
    width = chain.width
    no_label = np.ones(chain.num_slots(0), dtype=np.uint8)
    no_label[width : width + 2] = 0
    with pytest.raises(ValueError, match="mask"):
        chain.set_mask(0, no_label)
    cut = np.ones(chain.num_slots(0), dtype=np.uint8)
    cut[3 * width : 5 * width] = 0  # forbids all transitions
    with pytest.raises(ValueError, match="mask"):
        chain.set_mask(0, cut)
    winding = np.ones(chain.num_slots(0), dtype=np.uint8)
    winding[3 * width + 0] = winding[3 * width + 1] = winding[4 * width + 0] = 0  # allows only 1 -> 1
    winding[2 * width + 1] = 0  # forbids label 1 at the end
    with pytest.raises(ValueError, match="mask"):
        chain.set_mask(0, winding)
    assert chain.mask(0) is None


def test_mask_round_trip(structure, rng):
    counts = enumeration_of(structure, 1).counts[0]
    allowed = ((rng.random(len(counts)) < 0.5) | (counts > 0)).astype(np.uint8)
    structure.set_mask(1, allowed)
    np.testing.assert_array_equal(structure.mask(1), allowed)
    assert structure.mask(0) is None
    structure.set_mask(1, None)
    assert structure.mask(1) is None


def test_labels_out_of_range(structure):
    n = 2 if isinstance(structure, _core.Multiclass) else 5
    for bad in (-1, 3):
        labels = np.zeros(n, dtype=np.int64)
        labels[1] = bad
        with pytest.raises(ValueError, match="label"):
            structure.encode(labels)
    with pytest.raises(ValueError, match="label"):
        structure.encode(np.zeros(n + 1, dtype=np.int64))


def test_invalid_labellings_are_refused(structure):
    with pytest.raises(ValueError):
        structure.check_labelling(0, np.array([0, 1]), np.array([1.0, 1.0]))
    with pytest.raises(ValueError):
        structure.check_labelling(0, np.array([], dtype=np.int64), np.array([]))
    with pytest.raises(ValueError):
        structure.check_labelling(0, np.array([10**9]), np.array([1.0]))
    with pytest.raises(ValueError):
        structure.check_labelling(0, np.array([-1]), np.array([1.0]))
    with pytest.raises(ValueError):
        structure.check_labelling(0, np.array([0]), np.array([1.0, 1.0]))


def test_cost_refuses_slots_out_of_range(structure):
    with pytest.raises(ValueError):
        structure.cost(0, np.array([10**9]), np.array([1.0]))
    with pytest.raises(ValueError):
        structure.cost(0, np.array([-1]), np.array([1.0]))


def test_decode_refuses_invalid_labellings(structure):
    indptr, slots, counts = structure.encode(
        np.zeros(2 if isinstance(structure, _core.Multiclass) else 5, dtype=np.int64)
    )
    with pytest.raises(ValueError):
        structure.decode(indptr[:-1], slots, counts)
    with pytest.raises(ValueError):
        structure.decode(indptr, slots[:-1], counts[:-1])
    wrong = slots.copy()
    wrong[0] = -5
    with pytest.raises(ValueError):
        structure.decode(indptr, wrong, counts)


def test_cliques_of_the_wrong_length(structure):
    size = int(structure.clique_offsets(1)[-1])
    for method in (structure.slots_from_cliques, structure.entropy_of_cliques, structure.scores_from_cliques):
        with pytest.raises(ValueError, match="marginals has"):
            method(1, np.zeros(size + 1))


def test_constructors():
    with pytest.raises(ValueError, match="label"):
        _core.Multiclass(2, 0)
    with pytest.raises(ValueError):
        _core.Multiclass(-1, 3)
    with pytest.raises(ValueError, match="label"):
        _core.Chain(np.array([2], dtype=np.int64), 0)
    with pytest.raises(ValueError, match="1"):
        _core.Chain(np.array([2, 0], dtype=np.int64), 3)
    with pytest.raises((ValueError, TypeError)):
        _core.Chain(np.array([2.5]), 3)


class Wide(_core.Structure):
    def num_slots(self, i):
        return 2**62


@pytest.mark.parametrize(
    "make",
    [
        lambda: _core.Chain(np.array([2**62]), 3),
        lambda: _core.Chain(np.full(4, 2**62), 1),
        lambda: _core.Chain(np.array([2]), 2**62),
        lambda: _core.Chain(np.array([2]), 2**63 - 1),
        lambda: _core.Chain(np.array([2]), 2**32),
        lambda: _core.Chain(np.array([2**40]), 2**12, tied=False),
        lambda: _core.Chain(np.full(64, 2**54), 1),  # each length can be counted, but not their sum
        lambda: _core.Multiclass(1, 2**62),
        lambda: _core.Multiclass(1, 2**63 - 1),
        lambda: _core.padded_width(2**63 - 1),
        lambda: Wide(4).slot_offsets(),
    ],
)
def test_sizes_that_cannot_be_counted(make):
    with pytest.raises(ValueError, match="too large"):
        make()
