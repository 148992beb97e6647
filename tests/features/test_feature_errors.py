"""Invalid input to feature maps raises ValueError before any computation."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import _core

LAYOUT = (3, 2, 4)


def attribute_segment(example_ptr=(0, 2), row_ptr=(0, 1, 3), attributes=(0, 1, 2), values=None, layout=None):
    return _core.AttributeSegment(
        layout or _core.RowLayout.dense(*LAYOUT),
        np.array(example_ptr, dtype=np.int64),
        np.array(row_ptr, dtype=np.int64),
        np.array(attributes, dtype=np.int64),
        None if values is None else np.array(values, dtype=np.float64),
    )


def test_the_unchanged_arguments_are_accepted():
    features = _core.LinearMap([attribute_segment(values=(1.0, 2.0, 3.0))])
    assert features.num_slots(0) == 8
    assert features.num_examples == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attributes": (0, 1, 3)}, "attribute"),
        ({"attributes": (0, 1, -2)}, "attribute"),
        ({"row_ptr": (0, 1, 4)}, "row"),
        ({"row_ptr": (0, 1, 2)}, "row|attribute"),
        ({"row_ptr": (0, 2, 1)}, "row"),
        ({"row_ptr": (1, 1, 3)}, "row"),
        ({"row_ptr": ()}, "row"),
        ({"example_ptr": (0, 3)}, "example|row"),
        ({"example_ptr": (0, 1)}, "example|row"),
        ({"example_ptr": (0, 2, 1)}, "example"),
        ({"example_ptr": (1, 2)}, "example"),
        ({"example_ptr": ()}, "example"),
        ({"values": (1.0, 2.0)}, "value"),
        ({"values": ()}, "value"),
        ({"values": (1.0, np.nan, 2.0)}, "finite|NaN|row"),
        ({"values": (1.0, np.inf, 2.0)}, "finite|NaN|row"),
    ],
)
def test_attribute_segment(change, words):
    with pytest.raises(ValueError, match=rf"(?i){words}"):
        attribute_segment(**change)


def slot_segment(num_weights=3, slot_ptr=(0, 0, 2), row_ptr=(0, 1, 3), features=(0, 1, 2), values=None, **options):
    return _core.SlotSegment(
        num_weights,
        np.array(slot_ptr, dtype=np.int64),
        np.array(row_ptr, dtype=np.int64),
        np.array(features, dtype=np.int64),
        None if values is None else np.array(values, dtype=np.float64),
        **options,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": (0, 3, 2)}, "slot 1 of example 1: feature 3 is out of range, there are 3"),
        ({"features": (-2, 1, 2)}, "slot 0 of example 1: feature -2 is out of range"),
        ({"row_ptr": (0, 1, 4)}, "row_ptr"),
        ({"row_ptr": (0, 1, 2)}, "row_ptr"),
        ({"row_ptr": (0, 4, 3)}, "row_ptr"),
        ({"row_ptr": (1, 1, 3)}, "row_ptr"),
        ({"row_ptr": ()}, "row_ptr"),
        ({"slot_ptr": (0, 0, 3)}, "slot_ptr"),
        ({"slot_ptr": (0, 1)}, "slot_ptr"),
        ({"slot_ptr": (0, 3, 2)}, "slot_ptr"),
        ({"slot_ptr": (1, 2)}, "slot_ptr"),
        ({"slot_ptr": ()}, "slot_ptr"),
        ({"values": (1.0, 2.0)}, "values has 2"),
        ({"values": (1.0, 2.0, np.nan)}, "slot 1 of example 1: feature 2 has a value that is NaN"),
        ({"values": (np.inf, 2.0, 1.0)}, "slot 0 of example 1: feature 0"),
        ({"num_weights": -1}, "the number of features is out of range"),
        ({"num_weights": 2**31}, "the number of features is out of range"),
        ({"uses": 0}, "uses must be at least 1"),
        ({"parts": 0}, "parts must be at least 1"),
    ],
)
def test_slot_segment(change, message):
    assert slot_segment(values=(1.0, 2.0, 3.0)).num_examples == 2
    with pytest.raises(ValueError, match=message):
        slot_segment(**change)


@pytest.mark.parametrize(
    "call",
    [
        lambda: _core.DenseSegment(np.array([[1.0, np.nan]]), np.array([0, 1]), 2, 4),
        lambda: _core.DenseSegment(np.array([[1.0, -np.inf]]), np.array([0, 1]), 2, 4),
        lambda: _core.DenseSegment(np.ones((2, 2)), np.array([0, 3]), 2, 4),
        lambda: _core.DenseSegment(np.ones((2, 2)), np.array([0, 1]), 2, 4),
        lambda: _core.DenseSegment(np.ones((2, 2)), np.array([0, 2, 1]), 2, 4),
        lambda: _core.DenseSegment(np.ones((2, 2)), np.array([0, 2]), 5, 4),
        lambda: _core.SharedSegment(-1, np.array([1])),
        lambda: _core.SharedSegment(4, np.array([-1])),
        lambda: _core.SharedSegment(4, np.array([1]), np.ones(3, dtype=np.uint8)),
        lambda: _core.LinearMap([]),
        lambda: _core.LinearMap([attribute_segment(), _core.SharedSegment(4, np.array([1, 1]))]),
    ],
)
def test_other_segments_and_the_stack(call):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: attribute_segment(values=None, attributes=("a", "b", "c")),
        lambda: _core.AttributeSegment(
            _core.RowLayout.dense(*LAYOUT), np.array([0.5, 2]), np.array([0, 1]), np.array([0])
        ),
        lambda: _core.DenseSegment(np.ones(4), np.array([0, 1]), 2, 4),
        lambda: _core.DenseSegment(np.ones((1, 2), dtype=complex), np.array([0, 1]), 2, 4),
        lambda: _core.LinearMap([None]),
    ],
)
def test_wrong_types(call):
    with pytest.raises((ValueError, TypeError)):
        call()


class TestCalls:
    @pytest.fixture
    def features(self):
        return _core.LinearMap([attribute_segment()])

    @pytest.mark.parametrize("i", [-1, 1, 10**12])
    def test_no_such_example(self, features, i):
        w, slots = np.zeros(features.num_weights), np.zeros(8)
        for call in (
            lambda: features.num_slots(i),
            lambda: features.scores(i, w),
            lambda: features.add_transpose(i, slots, 1.0, w),
            lambda: features.add_transpose_shrunk(i, slots, 1.0, 0.1, 1.0, w, w.copy()),
            lambda: features.project(i, slots),
            lambda: features.slot_rows(i, np.arange(2)),
            lambda: features.transpose_norm2(i, slots),
            lambda: features.psi2_bound(i),
        ):
            with pytest.raises((ValueError, IndexError), match="example"):
                call()

    @pytest.mark.parametrize(
        ("slots", "message"), [([-1], "no slot -1"), ([2, 8], "no slot 8"), ([3, 3], "ascend"), ([4, 3], "ascend")]
    )
    def test_no_such_slots(self, features, slots, message):
        with pytest.raises(ValueError, match=message):
            features.slot_rows(0, np.array(slots))

    @pytest.mark.parametrize("extra", [-1, 1])
    def test_wrong_lengths(self, features, extra):
        w, slots = np.zeros(features.num_weights), np.zeros(8)
        long_w, long_slots = np.zeros(features.num_weights + extra), np.zeros(8 + extra)
        vector = features.project(0, np.ones(8))
        for call in (
            lambda: features.scores(0, long_w),
            lambda: features.add_transpose(0, long_slots, 1.0, w),
            lambda: features.add_transpose(0, slots, 1.0, long_w),
            lambda: features.add_transpose_shrunk(0, long_slots, 1.0, 0.1, 1.0, w, w.copy()),
            lambda: features.add_transpose_shrunk(0, slots, 1.0, 0.1, 1.0, long_w, w),
            lambda: features.add_transpose_shrunk(0, slots, 1.0, 0.1, 1.0, w, long_w),
            lambda: features.project(0, long_slots),
            lambda: features.transpose_norm2(0, long_slots),
        ):
            with pytest.raises(ValueError):
                call()
        if extra < 0:
            with pytest.raises(ValueError):
                vector.axpy(1.0, np.zeros(3))
            with pytest.raises(ValueError):
                vector.dot(np.zeros(3))

    def test_weights_that_cannot_be_updated_in_place_are_refused(self, features):
        """Weights that would have to be copied (another dtype, strided) are refused, as updates of a copy are lost."""
        slots = np.ones(8)
        for w in (np.zeros(features.num_weights, dtype=np.float32), np.zeros(2 * features.num_weights)[::2]):
            with pytest.raises((ValueError, TypeError)):
                features.add_transpose(0, slots, 1.0, w)
        frozen = np.zeros(features.num_weights)
        frozen.flags.writeable = False
        with pytest.raises((ValueError, TypeError)):
            features.add_transpose(0, slots, 1.0, frozen)


def test_the_input_may_be_dropped_or_changed_afterwards():
    """Segments copy or keep alive the arrays that they were given."""
    rows = np.ones((2, 3))
    features = _core.LinearMap([_core.DenseSegment(rows, np.array([0, 2]), 2, 4)])
    w = np.ones(features.num_weights)
    before = features.scores(0, w)
    del rows
    junk = [np.full((2, 3), -1.0) for _ in range(50)]
    np.testing.assert_array_equal(features.scores(0, w), before)
    assert len(junk) == 50


@pytest.mark.parametrize(
    "make",
    [
        lambda: _core.RowLayout.dense(4, 2**62, 2**62),
        lambda: _core.RowLayout.dense(4, 2**32, 2**32),
        lambda: _core.RowLayout.observed(1, 2**40, 2**40, np.array([0]), np.empty(0, int), np.empty(0, int)),
        lambda: _core.RowLayout.dense(1, 3, 4).pack(np.ones(3), room=2**63 - 1),
        lambda: _core.DenseSegment(np.ones((4, 4)), np.arange(5), 2**62, 2**62),
        lambda: _core.DenseSegment(np.ones((1, 4)), np.arange(2), 2**62, 2**62),
        lambda: _core.DenseSegment(np.ones((4, 1)), np.array([0, 4]), 2**62, 2**62),
        lambda: _core.KernelSegment(
            _core.DenseKernel(_core.KernelFunction("rbf"), np.ones((4, 1))), np.arange(5), 2**62, 2**62, 1e9
        ),
        lambda: _core.SharedSegment(2**62, np.ones(1, dtype=np.int64)),
        lambda: _core.LinearMap([_core.SharedSegment(2**59, np.ones(1, dtype=np.int64))] * 32),
        lambda: _core.ArcTokens(np.full(4, 2**62), []),
    ],
)
def test_sizes_that_cannot_be_counted(make):
    with pytest.raises(ValueError, match="too large"):
        make()
