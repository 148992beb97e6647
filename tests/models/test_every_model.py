"""The methods that all `StructuredEstimator` classes share, each against an enumeration of all answers."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import partwise
from partwise import DependencyParser, GraphLabeler, MaxentClassifier, SegmentTagger, SequenceTagger
from partwise.datasets import make_treebank
from partwise.models import Ability, ConstraintError, NotAvailable
from partwise.problem.losses import get_loss

MANY = 1000  # exceeds the number of answers of every example here


@dataclass(frozen=True)
class Case:
    """A fitted estimator with small examples and their answers; scores give the last example weight 0."""

    estimator: Any
    X: Any
    y: Any


def _sequences(seed: int, n: int) -> tuple[list[Any], list[list[str]]]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, size=n)
    X = [rng.normal(size=(length, 3)) for length in lengths]
    return X, [[str(rng.choice(list("abc"), p=[0.5, 0.3, 0.2])) for _ in range(length)] for length in lengths]


def _tagger(**options: Any) -> Case:
    X, y = _sequences(0, 40)
    X_new, y_new = _sequences(1, 4)
    return Case(SequenceTagger(tol=1e-4, **options).fit(X, y), X_new, y_new)


def _segments(seed: int, n: int) -> tuple[list[Any], list[list[str]]]:
    X, y = _sequences(seed, n)
    for labels in y:
        for t, label in enumerate(labels):
            joined = t > 0 and labels[t - 1][2:] == label
            labels[t] = "O" if label == "c" else f"I-{label}" if joined else f"B-{label}"
    return X, y


def _segment_tagger(**options: Any) -> Case:
    return Case(SegmentTagger(tol=1e-4, max_length=4, **options).fit(*_segments(0, 40)), *_segments(1, 4))


def _trees(seed: int, n: int) -> tuple[list[Any], list[list[int]]]:
    bank = make_treebank(n, seed)
    return [list(zip(words, tags, strict=True)) for words, tags in zip(bank.words, bank.tags, strict=True)], bank.heads


def _parser(**options: Any) -> Case:
    X, y = _trees(1, 200)
    short = [i for i, sentence in enumerate(X) if 2 <= len(sentence) <= 4][:4]
    model = DependencyParser(tol=1e-3, **options).fit(*_trees(0, 60))
    return Case(model, [X[i] for i in short], [y[i] for i in short])


def _graphs(seed: int, n: int, *, features: bool = False) -> tuple[list[Any], list[list[str]]]:
    """Make graphs of up to four nodes: cycles, trees and single nodes, with edges of two types."""
    rng = np.random.default_rng(seed)
    nodes, y = _sequences(seed, n)
    X = []
    for rows in nodes:
        pairs = [(u, v) for u in range(len(rows)) for v in range(u) if rng.random() < 0.7]
        more = rng.normal(size=(len(pairs), 2)) if features else None
        X.append((rows, np.array(pairs).reshape(-1, 2).astype(int), more, rng.choice(["x", "y"], len(pairs)).tolist()))
    return X, y


def _labeler(features: bool = False, **options: Any) -> Case:
    model = GraphLabeler(tol=1e-4, **options).fit(*_graphs(0, 40, features=features))
    return Case(model, *_graphs(1, 4, features=features))


def _classifier(n_labels: int) -> Case:
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 4)), rng.integers(0, n_labels, size=60)
    model = MaxentClassifier(tol=1e-4).fit(X, np.array(list("pqrs"))[labels])
    return Case(model, X[:5], model.classes_[labels[:5]])


CASES = {
    "chain": lambda: _tagger(ends=True),
    "chain, softmax-margin": lambda: _tagger(loss="softmax-margin"),
    "chain, temperature 2": lambda: _tagger(loss=get_loss("log", temperature=2.0)),
    "chain, conditioned": lambda: _tagger(transition_features="all"),
    "chain, second order": lambda: _tagger(order=2),
    "kernel chain": lambda: _tagger(kernel="rbf"),
    "maxent chain": lambda: _tagger(model="maxent", beam_width=None),
    "segments": _segment_tagger,
    "segments, softmax-margin": lambda: _segment_tagger(loss="softmax-margin", borders="none", features="all"),
    "projective trees": _parser,
    "all trees": lambda: _parser(structure="spanning"),
    "graphs": _labeler,
    "graphs, undirected": lambda: _labeler(directed=False, loss="softmax-margin"),
    "graphs, features of edges": lambda: _labeler(features=True),
    "two classes": lambda: _classifier(2),
    "classes": lambda: _classifier(4),
}


@pytest.fixture(scope="module", params=CASES, ids=lambda name: name.replace(" ", "-"))
def case(request) -> Case:
    return CASES[request.param]()


def key(answer: Any) -> Any:
    """Return an answer in a hashable form."""
    return tuple(answer) if isinstance(answer, list) else str(answer)


def test_best_answers(case):
    """predict_k_best returns all answers, the best first, with probabilities that add up to 1."""
    every = case.estimator.predict_k_best(case.X, MANY, probabilities=True)
    best = case.estimator.predict(case.X)
    for answers, first in zip(every, best, strict=True):
        probabilities = [p for _, p in answers]
        assert len({key(answer) for answer, _ in answers}) == len(answers) < MANY
        assert sum(probabilities) == pytest.approx(1.0, abs=1e-9)
        assert probabilities == sorted(probabilities, reverse=True)
        assert key(answers[0][0]) == key(first)


def test_log_probabilities(case):
    every = case.estimator.predict_k_best(case.X, MANY, probabilities=True)
    for rank in (0, 1):
        some = [answers[min(rank, len(answers) - 1)] for answers in every]
        found = case.estimator.log_probability(case.X, [answer for answer, _ in some])
        np.testing.assert_allclose(found, np.log([p for _, p in some]), atol=1e-9)
    with pytest.raises(ValueError, match=r"X has [45] "):
        case.estimator.log_probability(case.X, list(case.y)[:-1])


def test_entropies(case):
    every = case.estimator.predict_k_best(case.X, MANY, probabilities=True)
    found = case.estimator.entropy(case.X)
    assert found.shape == (len(case.X),)
    for entropy, answers in zip(found, every, strict=True):
        p = np.array([p for _, p in answers if p > 0])
        assert entropy == pytest.approx(-(p @ np.log(p)), abs=1e-8)


def test_samples_have_the_probabilities_of_answers(case):
    n = 4000
    every = case.estimator.predict_k_best(case.X, MANY, probabilities=True)
    drawn = case.estimator.sample(case.X, n, random_state=0)
    assert [list(map(key, a)) for a in drawn] == [
        list(map(key, a)) for a in case.estimator.sample(case.X, n, random_state=0)
    ]
    for answers, samples in zip(every, drawn, strict=True):
        expected = {key(answer): p for answer, p in answers}
        assert len(samples) == n
        counts = dict.fromkeys(expected, 0)
        for sample in samples:
            counts[key(sample)] += 1  # a KeyError means an invalid answer
        for answer, p in expected.items():
            assert counts[answer] / n == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / n) + 1e-9)


def test_marginals_are_sums_of_probabilities_of_answers(case):
    options = {"output": "array"} if isinstance(case.estimator, (SequenceTagger, SegmentTagger, GraphLabeler)) else {}
    found = case.estimator.predict_marginals(case.X, **options)
    every = case.estimator.predict_k_best(case.X, MANY, probabilities=True)
    labels = getattr(case.estimator, "classes_", None)
    for table, answers in zip(found, every, strict=True):
        rows = np.zeros_like(np.atleast_2d(table))
        for answer, p in answers:
            for t, part in enumerate(answer if isinstance(answer, list) else [answer]):
                rows[t, part if labels is None else labels.tolist().index(part)] += p
        np.testing.assert_allclose(np.atleast_2d(table), rows, atol=1e-9)


def _forbidden(case: Case, answers: list[Any]) -> list[Any]:
    """Return constraints that forbid each answer by its first part."""
    if isinstance(case.estimator, DependencyParser):
        return [{1: [h for h in range(len(a) + 1) if h not in (1, a[0])]} for a in answers]
    labels = case.estimator.classes_.tolist()
    if isinstance(case.estimator, MaxentClassifier):
        return [[label for label in labels if label != a] for a in answers]
    return [[[label for label in labels if label != a[0]], *[None] * (len(a) - 1)] for a in answers]


def test_constraints(case):
    every = case.estimator.predict_k_best(case.X, MANY, probabilities=True)
    best = case.estimator.predict(case.X)
    keep = [i for i, a in enumerate(best) if not isinstance(a, list) or len(a) > 1]
    X, best = [case.X[i] for i in keep], [best[i] for i in keep]
    if isinstance(case.estimator, MaxentClassifier):
        X = np.array(X)
    allowed = _forbidden(case, best)
    first = {i: key(a)[0] for i, a in enumerate(best)}
    ranked = case.estimator.predict_k_best(X, MANY, probabilities=True, allowed=allowed)
    answers = case.estimator.predict(X, allowed=allowed)
    for i, answer in enumerate(answers):
        left = [(a, p) for a, p in every[keep[i]] if key(a)[0] != first[i]]
        total = sum(p for _, p in left)
        assert key(answer) == key(left[0][0]) == key(ranked[i][0][0])
        assert {key(a): p for a, p in ranked[i]} == pytest.approx({key(a): p / total for a, p in left})
    found = case.estimator.entropy(X, allowed=allowed)
    for entropy, answers in zip(found, ranked, strict=True):
        p = np.array([p for _, p in answers if p > 0])
        assert entropy == pytest.approx(-(p @ np.log(p)), abs=1e-8)
    some = [answers[-1] for answers in ranked]
    found = case.estimator.log_probability(X, [a for a, _ in some], allowed=allowed)
    np.testing.assert_allclose(found, np.log([p for _, p in some]), atol=1e-8)
    assert (case.estimator.log_probability(X, best, allowed=allowed) == -np.inf).all()
    drawn = case.estimator.sample(X, 50, random_state=1, allowed=allowed)
    assert all(key(a)[0] != first[i] for i, samples in enumerate(drawn) for a in samples)


def test_invalid_constraints(case):
    with pytest.raises(TypeError, match="has no constraint 'forbidden'; there are: allowed"):
        case.estimator.predict(case.X, forbidden=[None] * len(case.X))
    with pytest.raises(ValueError, match=f"allowed must hold one entry for each of {len(case.X)}"):
        case.estimator.predict(case.X, allowed=[None])
    none = [{1: []}] if isinstance(case.estimator, DependencyParser) else [[]]
    if isinstance(case.estimator, (SequenceTagger, SegmentTagger, GraphLabeler)):
        none = [[[], *[None] * (len(case.y[0]) - 1)]]
    with pytest.raises(ConstraintError) as error:
        case.estimator.predict(case.X, allowed=none + [None] * (len(case.X) - 1))
    assert error.value.sequence == 0


def test_pruning_nothing_changes_no_answer(case, tmp_path):
    model = pickle.loads(pickle.dumps(case.estimator))
    before = model.predict_k_best(case.X, 3)
    if isinstance(model, DependencyParser) or Ability.EXPLANATIONS in model._model.abilities():
        pruning = model.prune(keep=1.0, X=case.X, y=case.y)
    else:
        pruning = model.prune(0.0, X=case.X, y=case.y)
    assert pruning.score_before == pruning.score_after == model.score(case.X, case.y)
    assert pruning.weights_after <= pruning.weights_before
    assert model.result_.status == "no certificate"
    path = tmp_path / "model.pw"
    model.save(path)
    for other in (model, partwise.load(path), pickle.loads(pickle.dumps(model))):
        for old, new in zip(before, other.predict_k_best(case.X, 3), strict=True):
            assert [key(a) for a, _ in new] == [key(a) for a, _ in old]
            np.testing.assert_allclose([v for _, v in new], [v for _, v in old], atol=1e-9)


def test_pruned_parsers_forget_features():
    case = _parser()
    model, zeros = case.estimator, pickle.loads(pickle.dumps(case.estimator))
    threshold = float(np.median(np.abs(model.coef_)))
    pruning = model.prune(threshold)
    assert np.count_nonzero(model.coef_) == pruning.weights_after
    assert len(model.coef_) < 0.7 * pruning.weights_before
    zeros.coef_ = np.where(np.abs(zeros.coef_) > threshold, zeros.coef_, 0.0)
    for one, two in zip(model.predict_k_best(case.X, 5), zeros.predict_k_best(case.X, 5), strict=True):
        np.testing.assert_allclose([v for _, v in one], [v for _, v in two], atol=1e-9)
    hashed = _parser(features="hashed", hash_bits=12).estimator
    hashed.prune(keep=100)
    assert (np.count_nonzero(hashed.coef_), len(hashed.coef_)) == (100, 1 << 12)


def test_names_of_arcs_belong_to_their_trees():
    """Each of the k best trees has the relations that it gets when all its heads are fixed."""
    X, _ = _trees(1, 12)
    bank = make_treebank(60, 0)
    arcs = [list(zip(heads, names, strict=True)) for heads, names in zip(bank.heads, bank.labels, strict=True)]
    model = DependencyParser(tol=1e-2).fit(_trees(0, 60)[0], arcs)
    ranked = model.predict_k_best(X, 3)
    assert len({name for answers in ranked for tree, _ in answers for _, name in tree}) > 3
    for sentence, answers in zip(X, ranked, strict=True):
        for tree, _ in answers:
            only = {word: head for word, (head, _) in enumerate(tree, 1)}
            assert model.predict([sentence], allowed=[only]) == [tree]
    drawn = model.sample(X, 2, random_state=0)
    for sentence, trees in zip(X, drawn, strict=True):
        for tree in trees:
            only = {word: head for word, (head, _) in enumerate(tree, 1)}
            assert model.predict([sentence], allowed=[only]) == [tree]


def test_pickles_of_kernel_taggers_hold_the_support_alone():
    model = _tagger(kernel="rbf", loss="hinge", C=0.1).estimator
    copy = pickle.loads(pickle.dumps(model))
    assert model._model.training is not model._model.support
    assert copy._model.training is copy._model.support


def test_trees_that_the_model_does_not_have():
    model = _parser().estimator
    sentence = [("the", "DT"), ("dog", "NN"), ("ran", "VBD"), ("off", "RP")]
    crossing = [3, 4, 0, 3]
    assert model.log_probability([sentence, [], sentence], [crossing, [], [2, 3, 0, 3]])[[0, 1]].tolist() == [
        -np.inf,
        0,
    ]
    with pytest.raises(ValueError, match="the heads make a cycle"):
        model.log_probability([sentence], [[2, 1, 0, 3]])


def test_missing_capabilities_are_named():
    kernel = _tagger(kernel="rbf").estimator
    assert {Ability.TOP_FEATURES, Ability.EXPLANATIONS}.isdisjoint(kernel._model.abilities())
    for ask in (kernel.top_features, lambda: kernel.explain(np.ones((2, 3)))):
        with pytest.raises(NotAvailable, match="with a kernel there are no weights of attributes"):
            ask()
    hinge = _tagger(loss="hinge").estimator
    for name in ("sample", "predict_marginals", "log_probability", "entropy"):
        with pytest.raises(AttributeError, match="has no attribute"):
            getattr(hinge, name)
    with pytest.raises(AttributeError, match="not available"):
        hinge.predict_k_best([np.ones((2, 3))], 2, probabilities=True)


def test_empty_examples():
    tagger = _tagger().estimator
    X = [np.empty((0, 3)), np.ones((2, 3)), np.empty((0, 3))]
    assert [len(a) for a in tagger.predict(X)] == [0, 2, 0]
    assert [[len(a) for a in samples] for samples in tagger.sample(X, 2, random_state=0)] == [[0, 0], [2, 2], [0, 0]]
    assert tagger.predict_k_best(X, 2, probabilities=True)[2] == [([], 1.0)]
    assert tagger.log_probability(X, [[], ["a", "b"], []])[[0, 2]].tolist() == [0.0, 0.0]
    assert tagger.entropy(X)[[0, 2]].tolist() == [0.0, 0.0]
    assert [table.shape for table in tagger.predict_marginals(X, output="array")] == [(0, 3), (2, 3), (0, 3)]
    nothing = tagger.predict([])
    assert nothing == tagger.sample([]) == tagger.predict_k_best([], 2) == []
    parser = _parser().estimator
    assert parser.predict([[], ["a"], []]) == [[], [0], []]
    assert parser.sample([[], ["a"]], 2) == [[[], []], [[0], [0]]]


def test_scorer_of_weights(case):
    """`scorer` gives the score of an estimator with these weights, with the default and a given measure."""
    score = case.estimator.scorer(case.X, case.y)
    seen: list[Any] = []

    def one(*answers: Any) -> float:
        seen.append(answers)
        return 1.0

    measure = case.estimator.scorer(case.X, case.y, one)
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=len(case.estimator.weights_)) for _ in range(5)]
    expected = [case.estimator.with_weights(w).score(case.X, case.y) for w in weights]
    assert [score(w) for w in weights] == expected
    assert measure(weights[0]) == 1.0
    answers = case.estimator.with_weights(weights[0]).predict(case.X)
    assert seen[0][0] is case.y
    assert list(map(key, seen[0][1])) == list(map(key, answers))


def test_results_of_a_path(case):
    """`use` accepts every result of `fit_path`, in any order, and each equals the result of `fit` with that C."""
    if isinstance(case.estimator, DependencyParser):
        X, y = _trees(3, 20)
    elif isinstance(case.estimator, MaxentClassifier):
        X, y = case.X, case.y
    elif isinstance(case.estimator, GraphLabeler):
        X, y = _graphs(3, 15, features=case.X[0][2] is not None)
    elif isinstance(case.estimator, SegmentTagger):
        X, y = _segments(3, 15)
    else:
        X, y = _sequences(3, 15)
    model = pickle.loads(pickle.dumps(case.estimator)).set_params(tol=1e-6)
    results = model.fit_path([0.1, 1.0], X, y)
    assert model.C == 1.0
    for C, result in zip((0.1, 1.0), results, strict=True):
        model.use(result)
        alone = pickle.loads(pickle.dumps(case.estimator)).set_params(tol=1e-6, C=C).fit(X, y)
        assert result.primal == pytest.approx(alone.result_.primal, rel=3e-6)
        for one, two in itertools.islice(zip(model.predict(X), alone.predict(X), strict=True), 5):
            assert key(one) == key(two)
