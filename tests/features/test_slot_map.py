"""Feature maps of slots for structures that users write: any number of slots, used more than once."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize
from scipy.sparse import coo_array, csr_matrix

from oracles.enumerate import Enumeration
from oracles.features import check_slot_rows
from oracles.objective import LOSSES, DenseProblem, matrix_of
from partwise import Problem, Structure, _core, solve
from partwise.features import Attributes, SlotRows, multiclass_map, slot_map
from partwise.structures import Multiclass


class Bags(Structure):
    """Bags of `size` items: slot r is item r, which may be in the bag up to `uses` times. Examples differ in items."""

    def __init__(self, n_items, size, uses):
        super().__init__(len(n_items))
        self.n_items = n_items
        tables = [np.array([c for c in product(range(uses + 1), repeat=n) if sum(c) == size]) for n in n_items]
        none = np.zeros((1, 0), dtype=np.int64)
        self.examples = [Enumeration(t, t.astype(np.float64), none, np.zeros(1, dtype=np.int64)) for t in tables]

    def num_slots(self, i):
        return self.n_items[i]

    def maximize(self, i, scores):
        value, best = self.examples[i].maximum(scores)
        counts = self.examples[i].counts[best]
        slots = np.flatnonzero(counts)
        return value, slots, counts[slots]

    def log_partition(self, i, scores, temperature=1.0):
        return self.examples[i].smax(scores, temperature)

    def cost(self, i, slots, counts):
        wrong = np.ones(self.n_items[i])
        wrong[slots] = 0
        return wrong


def blocks_of(structure, rows):
    return np.split(rows, structure.slot_offsets()[1:-1])


def random_rows(rng, structure, n_weights):
    n_slots = structure.slot_offsets()[-1]
    return rng.normal(size=(n_slots, n_weights)) * (rng.random((n_slots, n_weights)) < 0.6)


def test_rows_of_every_form(rng):
    structure = Bags([4, 2, 3], 2, 2)
    rows = random_rows(rng, structure, 5)
    slots, features = map(np.ascontiguousarray, np.nonzero(rows))
    values = rows[slots, features]
    row_ptr = np.searchsorted(slots, np.arange(10))
    # the last entry is given in two halves, and one entry is ignored
    split = Attributes(
        np.append(row_ptr[:-1], row_ptr[-1] + 2),
        np.append(features, [features[-1], -1]),
        5,
        np.concatenate([values[:-1], values[-1:] / 2, values[-1:] / 2, [7.0]]),
    )
    assert slots[-1] == 8
    for form in (rows, rows.tolist(), np.asfortranarray(rows), csr_matrix(rows), coo_array(rows), split):
        made = slot_map(structure, form)
        assert (made.num_examples, made.num_weights) == (3, 5)
        assert made.row_length >= (rows != 0).sum(axis=1).max()
        for i, block in enumerate(blocks_of(structure, rows)):
            np.testing.assert_array_equal(matrix_of(made, i), block)
            check_slot_rows(made, i, np.arange(len(block)), block)
            check_slot_rows(made, i, np.arange(1, len(block), 2), block)


def test_rows_may_be_given_example_by_example(rng):
    structure = Bags([4, 2, 4], 2, 2)
    rows = random_rows(rng, structure, 5)
    blocks = blocks_of(structure, rows)
    mixed = [csr_matrix(blocks[0]), blocks[1].tolist(), coo_array(blocks[2])]
    for form in (blocks, tuple(blocks), [blocks[0].reshape(2, 2, 5), blocks[1], blocks[2]], mixed):
        made = slot_map(structure, form, n_weights=5)
        assert made.num_weights == 5
        for i, block in enumerate(blocks):
            np.testing.assert_array_equal(matrix_of(made, i), block)


def test_examples_of_one_size_are_one_array(rng):
    rows = rng.normal(size=(3, 2, 2, 5))
    made = slot_map(Bags([4, 4, 4], 2, 2), rows)
    for i in range(3):
        np.testing.assert_array_equal(matrix_of(made, i), rows[i].reshape(4, 5))


@pytest.mark.parametrize("form", [np.asarray, csr_matrix, lambda rows: [rows[:2], rows[2:]]])
def test_a_row_for_several_labels_has_a_weight_per_number_and_label(rng, form):
    rows = rng.normal(size=(3, 4)) * [[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]]
    made = slot_map(Bags([6, 3], 2, 2), SlotRows(form(rows), n_labels=3))
    expected = np.kron(rows, np.eye(3))
    np.testing.assert_array_equal(matrix_of(made, 0), expected[:6])
    np.testing.assert_array_equal(matrix_of(made, 1), expected[6:])


def test_attributes_of_several_labels_may_be_unknown_and_repeated():
    rows = Attributes(np.array([0, 3, 4]), np.array([1, -1, 1, 0]), 2)
    made = slot_map(Bags([4], 2, 2), SlotRows(rows, n_labels=2))
    np.testing.assert_array_equal(matrix_of(made, 0), np.kron([[0, 2], [1, 0]], np.eye(2)))


def test_blocks_follow_each_other_with_weights_of_their_own(rng):
    """An example has two rows of three labels, as in a chain, and then four slots with one weight each."""
    structure = Bags([10, 7], 2, 2)
    words = [rng.normal(size=(2, 4)), rng.normal(size=(1, 4))]
    made = slot_map(structure, SlotRows(words, n_labels=3, uses=2), [np.eye(4)] * 2, uses=2, n_weights=16)
    for i, own in enumerate(words):
        expected = np.zeros((structure.num_slots(i), 16))
        expected[:-4, :12], expected[-4:, 12:] = np.kron(own, np.eye(3)), np.eye(4)
        np.testing.assert_array_equal(matrix_of(made, i), expected)
        counts = structure.examples[i].counts
        psi = (counts[:, None] - counts[None]) @ expected
        assert made.psi2_bound(i) >= np.square(psi).sum(axis=-1).max()


def test_a_map_without_examples_keeps_its_weights():
    for call in (
        lambda s: slot_map(s, [], n_weights=4),
        lambda s: slot_map(s, np.empty((0, 4))),
        lambda s: slot_map(s, SlotRows([], n_labels=2), n_weights=4),
        lambda s: slot_map(s, np.empty((0, 3)), np.empty((0, 1)), n_weights=4),
    ):
        made = call(Bags([], 1, 1))
        assert (made.num_examples, made.num_weights) == (0, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: slot_map(s), "slot_map needs rows of input"),
        (lambda s: slot_map(s, [np.ones((2, 3))]), "rows of input of 1 examples, the structure has 2"),
        (lambda s: slot_map(s, np.ones((3, 2, 1))), "rows of input of 3 examples, the structure has 2"),
        (lambda s: slot_map(s, [np.ones((2, 3)), np.ones((2, 3))]), "example 1: rows of input for 2 slots, .* has 3"),
        (
            lambda s: slot_map(s, [np.ones((2, 3)), np.ones((3, 2))]),
            "example 1: rows of 2 numbers, .* example 0 have 3",
        ),
        (lambda s: slot_map(s, [np.ones((2, 3)), np.ones(3)]), "example 1: .* two dimensions or more, got 1"),
        (lambda s: slot_map(s, [np.ones((2, 1)), [["a"]] * 3]), "example 1: .* array of numbers"),
        (lambda s: slot_map(s, [np.ones((2, 1)), [[1], [1, 2]]]), "example 1: .* array of numbers"),
        (lambda s: slot_map(s, np.ones((5, 2)), [np.ones((0, 1))] * 2), "block 0 of rows is not given example by"),
        (lambda s: slot_map(s, np.ones((5, 2)), n_weights=3), "rows of input for 2 weights, expected 3"),
        (lambda s: slot_map(s, SlotRows(np.ones((3, 2)), n_labels=2)), "6 rows of input, the structure has 5 slots"),
        (lambda s: slot_map(s, SlotRows(np.ones((5, 2)), n_labels=0)), "n_labels must be an integer >= 1"),
        (lambda s: slot_map(s, [[[1.0], [np.nan]], np.ones((3, 1))]), "slot 1 of example 0: .* NaN"),
        (lambda s: slot_map(Bags([], 1, 1), []), "no examples: slot_map needs n_weights"),
        (lambda s: slot_map(s, np.ones((6, 2))), "6 rows of input, the structure has 5 slots"),
        (lambda s: slot_map(s, csr_matrix(np.ones((4, 2)))), "4 rows of input, the structure has 5 slots"),
        (lambda s: slot_map(s, np.ones(5)), "two-dimensional"),
        (
            lambda s: slot_map(s, np.array([[1.0], [1], [1], [np.nan], [1]])),
            "slot 1 of example 1: feature 0 has a value that is NaN",
        ),
        (lambda s: slot_map(s, np.full((5, 1), 1e160)), "slot 0 of example 0: feature 0"),
        (lambda s: slot_map(s, np.ones((5, 2)), uses=0), "uses must be an integer >= 1"),
        (lambda s: slot_map(s, np.ones((5, 2)), uses=1.5), "uses must be an integer >= 1"),
        (lambda s: slot_map(s, np.ones((5, 2)), parts=0), "parts must be an integer >= 1"),
    ],
)
def test_rows_that_do_not_fit_the_structure_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(Bags([2, 3], 1, 1))


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 4), st.booleans())
def test_bounds_hold_for_repeated_use(seed, uses, size, known):
    rng = np.random.default_rng(seed)
    structure = Bags([int(rng.integers(-(-size // uses), 5)) for _ in range(2)], size, uses)
    rows = random_rows(rng, structure, 3)
    made = slot_map(structure, rows, uses=uses, parts=size if known else None)
    for i, block in enumerate(blocks_of(structure, rows)):
        counts = structure.examples[i].counts
        psi = (counts[:, None] - counts[None]) @ block
        assert made.psi2_bound(i) >= (psi**2).sum(axis=-1).max() * (1 - 1e-12)
        assert made.reach(i) >= np.linalg.norm(counts @ np.abs(block), axis=1).max() * (1 - 1e-12)


@pytest.mark.parametrize(
    ("rows", "uses", "parts", "bound"),
    [
        # Each slot is used up to `uses` times: |sum of the absolute rows|^2, which non-negative rows attain.
        ([[1.0, 0.0], [2.0, 3.0], [0.0, 4.0]], 1, None, 3.0**2 + 7.0**2),
        ([[1.0, 0.0], [2.0, 3.0], [0.0, 4.0]], 3, None, 9 * (3.0**2 + 7.0**2)),
        ([[1.0], [-2.0]], 1, None, 9.0),
        # Three parts of the column sum to at most 11 = 2 * 5 + 1 and at least -4. The limit excludes 2 * 5 + 2 * 1.
        ([[1.0], [5.0], [-2.0]], 2, 3, (11.0 + 4.0) ** 2),
        ([[1.0], [5.0]], 2, 3, 11.0**2),
        # One part: the difference is two slots' rows, whose norms give a better bound than the ranges of five columns.
        (np.diag([1.0, 3.0, 2.0, 1.0, 1.0]), 1, 1, 16.0),
        (-np.diag([3.0, 2.0]), 1, 1, 13.0),
        # Two labellings of two parts each are four rows, none used more than twice.
        (np.diag([1.0, 3.0, 2.0, 1.0, 1.0, 1.0]), 2, 2, 4 * 17.0),
        (np.tile(np.diag([2.0, 1.0]), (1, 20)), 2, 2, 20 * 4 * 5.0),
    ],
)
def test_bounds_computed_by_hand(rows, uses, parts, bound):
    made = slot_map(Bags([len(rows)], 1, 1), np.array(rows), uses=uses, parts=parts)
    assert made.psi2_bound(0) == pytest.approx(bound, rel=1e-14)
    with_more = [made.psi2_bound(0)]
    for more in (2, 10, None):
        parts = None if more is None or parts is None else parts + more
        with_more.append(slot_map(Bags([len(rows)], 1, 1), np.array(rows), uses=uses, parts=parts).psi2_bound(0))
    assert with_more == sorted(with_more)


def test_squares_of_entries(rng):
    """The diagonal of the Hessian adds up squared features: it equals the diagonal of a map made from attributes."""
    structure = Multiclass(4, 3)
    inputs, labels = rng.normal(size=(4, 2)), np.array([0, 2, 1, 0])
    by_attributes = multiclass_map(structure, inputs)
    by_slots = slot_map(structure, np.vstack([matrix_of(by_attributes, i) for i in range(4)]))
    weights = rng.normal(size=by_attributes.num_weights)
    gold = structure.encode(labels)
    diagonals = [
        _core.Hessian(_core.Objective(structure, features, *gold, *LOSSES["log"]), weights).diagonal()
        for features in (by_attributes, by_slots)
    ]
    assert diagonals[0].max() > 0.1
    np.testing.assert_allclose(diagonals[1], diagonals[0], rtol=1e-13, atol=1e-15)


def bags_problem(loss, rng):
    """Return a problem of bags of two items, drawn from two to five, and the enumerated problem."""
    structure = Bags([3, 5, 2, 4], 2, 2)
    rows = random_rows(rng, structure, 6)
    gold = [e.counts[rng.integers(len(e))] for e in structure.examples]
    slots = [np.flatnonzero(counts) for counts in gold]
    encoded = (
        np.cumsum([0, *map(len, slots)]),
        np.concatenate(slots),
        np.concatenate([c[s] for c, s in zip(gold, slots, strict=True)]),
    )
    costs = [structure.cost(i, s, None) for i, s in enumerate(slots)]
    features = slot_map(structure, rows, uses=2, parts=2)
    weight = rng.uniform(0.5, 2.0, 4)
    dense = DenseProblem(structure.examples, blocks_of(structure, rows), gold, costs, weight, 0.3, *LOSSES[loss])
    return Problem(features, structure, encoded, loss, 0.3, sample_weight=weight), dense


def brute_force(dense):
    """Return the optimum: by BFGS where the loss is smooth, else by a quadratic program over all labellings."""
    if dense.temperature > 0:
        return minimize(dense.primal, np.zeros(dense.dim), jac=dense.gradient, options={"gtol": 1e-9}).fun
    n, power = dense.n, 1 if dense.link == "identity" else 2

    def value(z):
        return 0.5 * dense.l2 * z[n:] @ z[n:] + dense.sample_weight @ z[:n] ** power

    def gradient(z):
        return np.append(dense.sample_weight * power * z[:n] ** (power - 1), dense.l2 * z[n:])

    # slack_i + <psi_iy, w> >= cost_iy for every labelling y of every example i
    rows = [np.hstack([np.tile(np.eye(n)[i], (len(dense.psi(i)), 1)), dense.psi(i)]) for i in range(n)]
    bounds = np.concatenate([dense.label_costs(i) for i in range(n)])
    start = np.append(np.full(n, bounds.max()), np.zeros(dense.dim))
    constraint = LinearConstraint(np.vstack(rows), bounds, np.inf)
    found = minimize(value, start, jac=gradient, constraints=constraint, method="SLSQP", options={"ftol": 1e-14})
    return found.fun


@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        *((name, "log") for name in ("lbfgs", "eg", "eg-batch", "eg-primal")),
        *((name, "softmax-margin") for name in ("lbfgs", "eg")),
        *((name, "hinge") for name in ("bcfw", "excessive-gap")),
        *((name, "squared-hinge") for name in ("dcd", "cpd")),
    ],
)
def test_training_a_structure_in_python(solver, loss, rng):
    problem, dense = bags_problem(loss, rng)
    tol = 1e-3 if solver == "excessive-gap" else 1e-7
    result = solve(problem, solver, tol=tol, max_passes=20_000)
    best = brute_force(dense)
    assert result.status == "converged"
    assert result.primal == pytest.approx(dense.primal(result.weights), rel=1e-12)
    assert result.dual - 1e-7 <= best <= result.primal + 1e-7
    assert result.primal - best <= 2 * tol * best
    assert best < 0.9 * dense.primal(np.zeros(dense.dim))
