"""Feature maps made from rows of input equal maps built by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from partwise.features import (
    Attributes,
    AttributeSegment,
    DenseSegment,
    LinearMap,
    RowLayout,
    SharedSegment,
    attribute_map,
    chain_map,
    multiclass_map,
)
from partwise.structures import Chain, Multiclass

LENGTHS = np.array([3, 1, 2], dtype=np.int64)


def scores(features, i, seed=0):
    return features.scores(i, np.random.default_rng(seed).normal(size=features.num_weights))


def same(one: LinearMap, two: LinearMap) -> None:
    assert one.num_weights == two.num_weights
    assert one.num_examples == two.num_examples
    for i in range(one.num_examples):
        np.testing.assert_allclose(scores(one, i), scores(two, i), atol=1e-13)


def test_dense_and_sparse_rows_agree(rng):
    rows = rng.normal(size=(5, 4)) * (rng.random((5, 4)) < 0.6)
    structure = Multiclass(5, 3)
    by_hand = LinearMap([DenseSegment(rows, np.arange(6), 3, structure.width)])
    same(multiclass_map(structure, rows), by_hand)
    same(multiclass_map(structure, csr_matrix(rows)), by_hand)
    same(attribute_map(structure, rows), by_hand)


@pytest.mark.parametrize("ends", [False, True])
def test_tied_chain(ends, rng):
    rows = rng.normal(size=(6, 2))
    structure = Chain(LENGTHS, 3, tied=True, ends=ends)
    width = structure.width
    segments = [DenseSegment(rows, np.array([0, 3, 4, 6]), 3, width), SharedSegment(3 * width, LENGTHS - 1)]
    if ends:
        segments.append(SharedSegment(2 * width, np.full(3, 2)))
    same(chain_map(structure, rows), LinearMap(segments))
    same(attribute_map(structure, rows), LinearMap(segments))
    assert chain_map(structure, rows).num_slots(0) == structure.num_slots(0)


@pytest.mark.parametrize("ends", [False, True])
def test_untied_chain(ends, rng):
    rows, edges = rng.normal(size=(6, 2)), rng.normal(size=(3, 5))
    structure = Chain(LENGTHS, 3, tied=False, ends=ends)
    width = structure.width
    segments = [DenseSegment(rows, np.array([0, 3, 4, 6]), 3, width)]
    segments.append(DenseSegment(edges, np.array([0, 2, 2, 3]), 3 * width, 3 * width))
    if ends:
        segments.append(SharedSegment(2 * width, np.full(3, 2)))
    same(chain_map(structure, rows, edge_rows=edges), LinearMap(segments))
    assert chain_map(structure, rows, edge_rows=edges).num_slots(0) == structure.num_slots(0)


def test_an_untied_chain_without_edge_input_has_one_table(rng):
    rows = rng.normal(size=(6, 2))
    tied, untied = Chain(LENGTHS, 3, tied=True), Chain(LENGTHS, 3, tied=False)
    one, two = chain_map(tied, rows), chain_map(untied, rows)
    assert one.num_weights == two.num_weights
    value = tied.log_partition(0, scores(one, 0))[0]
    assert untied.log_partition(0, scores(two, 0))[0] == pytest.approx(value, abs=1e-12)


def test_layouts_choose_the_weights():
    attributes = Attributes(np.array([0, 2, 3]), np.array([0, 1, 1]), 2)
    structure = Multiclass(2, 3)
    layout = RowLayout.observed(2, 3, structure.width, attributes.row_ptr, attributes.attributes, np.array([0, 2]))
    features = multiclass_map(structure, attributes, layout=layout)
    by_hand = LinearMap([AttributeSegment(layout, np.arange(3), attributes.row_ptr, attributes.attributes)])
    same(features, by_hand)
    assert layout.num_pairs == 3


def test_masked_transitions_have_no_weight():
    structure = Chain(LENGTHS, 2)
    mask = np.ones(2 * structure.width, dtype=np.uint8)
    mask[1] = 0
    transitions = []
    for allowed in (mask, None):
        features = chain_map(structure, np.ones((6, 1)), transition_mask=allowed)
        weights = np.zeros(features.num_weights)
        features.add_transpose(0, np.ones(features.num_slots(0)), 1.0, weights)
        transitions.append(weights[structure.width :])
    np.testing.assert_array_equal(transitions[0], mask)
    np.testing.assert_array_equal(transitions[1], np.ones(len(mask)))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: multiclass_map(Multiclass(2, 2), np.ones((3, 2))), "3 rows of input, the structure has 2"),
        (lambda: multiclass_map(Multiclass(2, 2), np.ones(2)), "two-dimensional"),
        (lambda: multiclass_map(Multiclass(2, 2), np.ones((2, 2)), layout=RowLayout.dense(2, 2, 4)), "sparse rows"),
        (
            lambda: multiclass_map(Multiclass(2, 3), csr_matrix(np.ones((2, 2))), layout=RowLayout.dense(2, 2, 4)),
            "the layout has 2 columns in rows of 4, the structure 3",
        ),
        (lambda: chain_map(Chain(LENGTHS, 2), np.ones((6, 1)), edge_rows=np.ones((3, 1))), "untied chain"),
        (
            lambda: chain_map(Chain(LENGTHS, 2, tied=False), np.ones((6, 1)), transition_mask=np.ones(8, np.uint8)),
            "tied chain",
        ),
        (
            lambda: chain_map(Chain(LENGTHS, 2, tied=False), np.ones((6, 1)), edge_rows=np.ones((4, 1))),
            "4 rows of input, the structure has 3",
        ),
    ],
)
def test_rows_that_do_not_fit_the_structure_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_weights_of_linear_maps_are_coordinates(rng):
    features = chain_map(Chain(LENGTHS, 3), rng.normal(size=(6, 2)))
    one, two = rng.normal(size=(2, features.num_weights))
    assert features.capabilities() == {"explicit weights"}
    assert features.dot(one, two) == pytest.approx(one @ two, rel=1e-13)
    with pytest.raises(ValueError, match="other has"):
        features.dot(one, two[1:])
