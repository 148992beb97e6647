"""Hooks for extensions: sums over some examples, user-defined tasks, features of labels."""

from __future__ import annotations

from functools import partial
from types import FunctionType

import numpy as np
import pytest
from scipy import sparse

from helpers.cut_problems import ElsewhereExecutor, cut, references
from helpers.small_problems import Small
from oracles.objective import LOSSES
from partwise import Problem, solve
from partwise.features import SlotRows, chain_map, label_features, multiclass_map, slot_map
from partwise.problem import register_task
from partwise.problem.losses import Loss
from partwise.problem.tasks import TASKS
from partwise.structures import Chain, Multiclass


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "python"])
def test_the_gradient_of_some_examples(kind, loss, rng):
    small = Small(kind, loss)
    problem, w = small.problem, rng.normal(size=small.problem.n_weights)
    value, gradient = problem.value_and_gradient(w)
    everything = problem.value_and_gradient(w, examples=range(problem.n_examples))
    assert everything[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(everything[1], gradient, atol=1e-10)
    singles = [problem.plane(w, [i]) for i in range(problem.n_examples)]
    for chosen in ([0], [3, 1], [2, 2, 4], []):
        found, slope = problem.value_and_gradient(w, examples=chosen)
        losses, u = (sum(singles[i][k] for i in chosen) for k in (0, 1))
        assert found == pytest.approx(losses + problem.penalty_value(w), rel=1e-12)
        np.testing.assert_allclose(slope, problem.gradient(w, u * np.ones(len(w))), atol=1e-10)
    # the mean of the estimate over all draws is the gradient
    n = problem.n_examples
    estimates = [problem.gradient(w, n * singles[i][1]) for i in range(n)]
    np.testing.assert_allclose(np.mean(estimates, axis=0), gradient, atol=1e-9)


def test_some_examples_of_several_batches(rng):
    executor = ElsewhereExecutor()
    own, w = Loss("log", *LOSSES["log"]), None
    found = []
    for batches, options in (
        (cut("chain-tied", 5, (3, 1, 2)), {}),
        (references("chain-tied", 5, (3, 1, 2)), {"executor": executor}),
    ):
        problem = Problem.of(batches, own, 0.7, **options)
        w = rng.normal(size=problem.n_weights) if w is None else w
        found.append(problem.value_and_gradient(w, examples=[5, 0, 4]))
    executor.close()
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])
    whole = Problem.of(cut("chain-tied", 5, (6,)), own, 0.7).value_and_gradient(w, examples=[5, 0, 4])
    assert found[0][0] == pytest.approx(whole[0], rel=1e-12)
    np.testing.assert_allclose(found[0][1], whole[1], atol=1e-10)


@pytest.mark.parametrize(
    ("examples", "message"),
    [([5], "examples: 5 is not between 0 and 4"), ([-1], "-1 is not between"), ([0.5], "whole numbers"), (3, "whole")],
)
def test_examples_that_are_missing_are_named(examples, message):
    problem = Small("multiclass", "log").problem
    with pytest.raises(ValueError, match=message):
        problem.value_and_gradient(np.zeros(problem.n_weights), examples=examples)
    with pytest.raises(ValueError, match="leave examples out"):
        problem.value_and_gradient(np.zeros(problem.n_weights), np.empty(problem.n_slots), [0])
    slack = Small("multiclass", "hinge").problem
    slack = Problem(
        slack.sums.in_memory()[0].features, slack.sums.in_memory()[0].structure, slack.gold, "slack-hinge", 1.0
    )
    with pytest.raises(ValueError, match="not available with slack rescaling"):
        slack.plane(np.zeros(slack.n_weights), [0])


def largest_score(sums, n_jobs, weights):
    """Return the largest score of any slot of a batch; registered as a task by the tests."""
    return max(
        float(sums.features.scores(i, weights).max())
        for i in range(sums.structure.num_examples)
        if sums.sample_weight[i]
    )


@pytest.fixture
def registered():
    register_task(largest_score)
    yield
    del TASKS["largest_score"]


def test_a_registered_task_is_asked_of_every_batch(registered, rng):
    executor = ElsewhereExecutor()
    own = Loss("log", *LOSSES["log"])
    here = Problem.of(cut("chain-tied", 5, (3, 1, 2)), own, 0.7)
    there = Problem.of(references("chain-tied", 5, (3, 1, 2)), own, 0.7, executor=executor)
    w = rng.normal(size=here.n_weights)
    found = here.ask("largest_score", w)
    assert len(found) == 3
    assert max(found) == here.sums.linear_scores(w, 0.0).max()
    assert there.ask("largest_score", w) == found
    executor.close()


def test_names_of_tasks(registered):
    problem = Small("multiclass", "log").problem
    with pytest.raises(ValueError, match="unknown task 'nothing': register it"):
        problem.ask("nothing")

    def plane(sums, n_jobs):
        """A task with the name of a built-in task."""

    with pytest.raises(ValueError, match=r"there is another task 'plane': partwise\.problem\.tasks\.BatchSums\.plane"):
        register_task(plane)
    # registering the same function again is allowed, as when a notebook's cell is run again
    assert register_task(largest_score) is largest_score
    other = FunctionType(largest_score.__code__, globals(), "largest_score")
    other.__module__ = "another_plugin"
    with pytest.raises(
        ValueError, match=r"there is another task 'largest_score': .*test_extension_hooks\.largest_score"
    ):
        register_task(other)
    with pytest.raises(TypeError, match="register_task takes a function, got functools"):
        register_task(partial(largest_score, n_jobs=1))


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_features_of_labels(convert, rng):
    labels = rng.integers(4, size=80)
    X = rng.normal(size=(80, 3)) + 2.0 * np.eye(4, 3)[labels]
    structure = Multiclass(80, 4)
    gold = structure.encode(labels)

    def train(features):
        return solve(Problem(features, structure, gold, "log", 0.5), "lbfgs", tol=1e-10)

    own = train(multiclass_map(structure, X))
    result = train(slot_map(structure, label_features(convert(X), convert(np.eye(4)), structure.width)))
    # one indicator feature per label is the same as one weight per label
    assert result.primal == pytest.approx(own.primal, rel=1e-9)
    shared = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    result = train(slot_map(structure, label_features(convert(X), convert(shared), structure.width)))
    assert result.weights.shape == (3 * 2,)
    scores = X @ result.weights.reshape(3, 2) @ shared.T  # gives scores to labels that did not occur in training too
    problem = Problem(multiclass_map(structure, X), structure, gold, "log", 0.5)
    losses = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(80), labels]
    assert result.primal == pytest.approx(losses.sum() + 0.25 * result.weights @ result.weights, rel=1e-9)
    assert result.primal > problem.value(own.weights)


def test_features_of_the_labels_of_a_chain(rng):
    structure = Chain(np.array([3, 2]), 4)
    rows = [rng.normal(size=(length, 2)) for length in (3, 2)]
    pairs = [np.eye(4 * structure.width)] * 2
    features = slot_map(structure, SlotRows(label_features(rows, np.eye(4), structure.width)), SlotRows(pairs, uses=2))
    plain = chain_map(structure, np.concatenate(rows))
    assert features.num_weights == 2 * 4 + 4 * structure.width
    assert [features.num_slots(i) for i in (0, 1)] == [plain.num_slots(i) for i in (0, 1)]
    first, second = label_features([[1.0, 2.0], [3.0, 4.0]], np.eye(2))  # a row for each example
    np.testing.assert_array_equal(first.toarray(), [[1, 0, 2, 0], [0, 1, 0, 2]])
    np.testing.assert_array_equal(second.toarray(), [[3, 0, 4, 0], [0, 3, 0, 4]])
    with pytest.raises(ValueError, match="features of 4 labels for rows of 3 slots"):
        label_features(rows[0], np.eye(4), 3)
