"""Short calls take a direct path with the same bits as batches, after any change and from any thread."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import time

import numpy as np
import pytest

from partwise import SequenceTagger
from partwise.compat import pycrfsuite
from partwise.models.sequences.chain import ChainModel
from partwise.problem.inference import PackedItems

LABELS = {
    "few": ["a", "b", "c"],
    "numbers": [0, 1, 2, 3, 4],
    "iob2": ["O", "B-x", "I-x", "B-y", "I-y"],
    "many": [f"L{k}" for k in range(37)],
}


def made_up(labels, n=60, seed=0):
    """Make random sequences (dicts and lists of names, some empty). Labels that look like IOB2 follow IOB2."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        numbers = rng.integers(12, size=rng.integers(0 if i % 10 == 9 else 1, 9))
        if i % 3:
            X.append(
                [
                    {"w": f"ü{k}", "odd": bool(k % 2), "size": float(k) - 3.5, "in": {"a": ["p", f"q{k}"]}}
                    for k in numbers
                ]
            )
        else:
            X.append([[f"w=ü{k}", "odd", f"other{rng.integers(30)}"] for k in numbers])
        row = [labels[(k + int(rng.integers(2))) % len(labels)] for k in numbers]
        if "B-x" in labels:
            row = [label if label[0] != "I" else "B" + label[1:] for label in row]
            row = ["I" + b[1:] if a == b and a != "O" else b for a, b in zip([None, *row], row, strict=False)]
        y.append(row)
    return X, y


@pytest.fixture
def by_batches(monkeypatch):
    """Return a function that makes a call through batches, with `ChainModel.shortcut` switched off."""

    def ask(call, *args, **options):
        with monkeypatch.context() as patched:
            patched.setattr(ChainModel, "shortcut", lambda self, X: None)
            return call(*args, **options)

    return ask


def fitted(labels, **options):
    X, y = made_up(LABELS[labels])
    full = [i for i, x in enumerate(X) if x]
    return SequenceTagger(tol=0.05, **options).fit([X[i] for i in full], [y[i] for i in full])


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        ("few", {}),
        ("few", {"ends": True, "features": "all"}),
        ("numbers", {"loss": "softmax-margin", "min_count": 2}),
        ("iob2", {}),
        ("iob2", {"ends": True, "legal": False}),
        ("many", {"loss": "log", "transitions": "all"}),
    ],
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_same_bits_as_through_batches(by_batches, labels, options, n_jobs):
    tagger = fitted(labels, **options).set_params(n_jobs=n_jobs)
    X, _ = made_up(LABELS[labels], seed=1)
    assert tagger._fitted().shortcut(X) is not None
    assert [] in X
    best = tagger.predict(X)
    unknown = tagger.unknown_counts_
    assert best == by_batches(tagger.predict, X)
    assert unknown == tagger.unknown_counts_
    assert unknown[0] > 0
    assert [tagger.predict_single(x) for x in X] == best
    assert {type(label) for row in best for label in row} == {type(LABELS[labels][0])}
    arrays = tagger.predict_marginals(X, output="array")
    for own, other in zip(arrays, by_batches(tagger.predict_marginals, X, output="array"), strict=True):
        assert np.array_equal(own, other)
        assert own.shape == other.shape
    assert tagger.predict_marginals(X) == by_batches(tagger.predict_marginals, X)
    assert tagger.predict_marginals_single(X[1]) == by_batches(tagger.predict_marginals_single, X[1])
    # these calls compute the answers of partwise.compat's `Tagger`
    model = tagger._fitted()
    chain, index = model.named_chain, {label: k for k, label in enumerate(model.classes.tolist())}
    rows = chain.read(X)
    numbers = np.array([index[label] for row in best for label in row])
    found = chain.values(rows, numbers) - chain.sums(rows)[1]
    assert np.array_equal(found, tagger.log_probability(X, best))


def test_forms_that_only_batches_take(by_batches):
    tagger = fitted("few")
    names = [{"w=ü1", "odd"}, {"w=ü2"}]
    for X in (
        [names, [["odd"]]],
        [np.array([["w=ü1", "odd"], ["w=ü2", "odd"]])],
        np.array([[["odd"]], [["w=ü1"]]], dtype=object),
        [[{"w": "ü1", "size": np.float32(2.0)}]],
    ):
        assert tagger._fitted().shortcut(X) is None
        assert tagger.predict(X) == by_batches(tagger.predict, X)
    assert tagger.predict(([["odd"], ["w=ü1"]],)) == by_batches(tagger.predict, [[["odd"], ["w=ü1"]]])
    assert tagger.predict([]) == by_batches(tagger.predict, [])
    for X, error in [
        ("odd", "list of sequences"), (["odd"], "sequence 0"),
        ([[["odd"]], [{"a": float("nan")}]], "sequence 1, position 0"), ([[["odd", 1]]], "sequence 0, position 0"),
        ([[[0.5]]], "attribute names"), ([[["odd", "\ud800"]]], "surrogate"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=error):
            tagger.predict(X)


def test_calls_with_constraints_use_batches():
    tagger = fitted("few")
    x = [["odd"], ["w=ü1"], ["w=ü2"]]
    allowed = np.zeros((3, 3), dtype=bool)
    allowed[:, 2] = True
    assert tagger.predict([x], allowed_transitions=allowed) != tagger.predict([x])
    assert tagger.predict([x], allowed_transitions=None) == [tagger.predict_single(x)]
    with pytest.raises(TypeError, match="no constraint"):
        tagger.predict([x], forbidden=[1])


def test_direct_calls_see_a_changed_model(by_batches):
    tagger = fitted("iob2")
    X, _ = made_up(LABELS["iob2"], seed=2)

    def same(model):
        assert model.predict(X) == by_batches(model.predict, X)
        ours, theirs = (ask(X, output="array") for ask in (model.predict_marginals, model.predict_marginals))
        assert all(map(np.array_equal, ours, by_batches(model.predict_marginals, X, output="array")))
        return theirs

    before = same(tagger)
    twins = [pickle.loads(pickle.dumps(tagger)), copy.deepcopy(tagger)]
    assert all(np.array_equal(a, b) for twin in twins for a, b in zip(same(twin), before, strict=True))
    rng = np.random.default_rng(0)
    other = tagger.with_weights(tagger.coef_ + rng.normal(size=tagger.coef_.shape))
    assert not np.array_equal(same(other)[0], before[0])
    tagger.set_params(legal=False)
    assert not np.array_equal(same(tagger)[0], before[0])
    tagger.coef_ = -tagger.coef_
    turned = same(tagger)
    assert not np.array_equal(turned[0], before[0])
    tagger.coef_[:] = 0.0
    assert not np.array_equal(same(tagger)[0], turned[0])
    tagger.prune(keep=20)
    same(tagger)


def test_sixteen_threads_share_a_tagger():
    tagger = fitted("many")
    X, _ = made_up(LABELS["many"], n=40, seed=3)
    best, marginals = tagger.predict(X), tagger.predict_marginals(X)
    wrong = []
    gate = threading.Barrier(16)

    def work(number):
        gate.wait()
        for i in np.random.default_rng(number).integers(len(X), size=60):
            if tagger.predict_single(X[i]) != best[i] or tagger.predict_marginals_single(X[i]) != marginals[i]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("call", ["predict_single", "predict_marginals_single"])
def test_the_gil_is_released(call):
    """A prediction releases the GIL: another thread runs although the interpreter does not switch threads by itself."""
    tagger = fitted("many")
    x = [["odd", f"w=ü{k % 12}"] for k in range(40)]
    ask = getattr(tagger, call)
    ask(x)
    seen = []
    interval = sys.getswitchinterval()
    other = threading.Thread(target=lambda: (time.sleep(0.02), seen.append(True)))
    sys.setswitchinterval(1000.0)
    try:
        other.start()
        begin = time.perf_counter()
        while not seen and time.perf_counter() - begin < 5.0:
            ask(x)
        released = bool(seen)
    finally:
        sys.setswitchinterval(interval)
        other.join()
    assert released


def test_a_dict_that_contains_itself():
    tagger = fitted("few")
    endless = {"odd": True}
    endless["in"] = endless
    with pytest.raises(ValueError, match="sequence 1, position 2: dicts are nested too deeply"):
        tagger.predict([[["odd"]], [["odd"], {"w": "ü1"}, endless]])
    with pytest.raises(ValueError, match="nested too deeply"):
        tagger.predict_single([endless])
    with pytest.raises(ValueError, match="sequence 0, position 1: dicts are nested too deeply"):
        SequenceTagger().fit([[["odd"], endless]], [["a", "b"]])
    with pytest.raises(ValueError, match="item 1: dicts are nested too deeply"):
        pycrfsuite.ItemSequence([["odd"], endless])


def test_packed_items():
    items = [{"a": "ü", "b": 0.0, "c": {"d": [], "e": ["f"]}, "g": 2.5}, ["a", "a"], []]
    packed = PackedItems.read(items, ":")
    lists = [(["a:ü", "b", "c:e:f", "g"], [1.0, 0.0, 1.0, 2.5]), (["a", "a"], [1.0, 1.0]), ([], [])]
    assert packed.lists() == lists
    assert len(packed) == 3
    assert pickle.loads(pickle.dumps(packed)).lists() == PackedItems.of_lists(lists).lists() == lists
    assert PackedItems.read([{"a"}], ":") is None
    assert PackedItems.read("ab", ":") is None
    assert pickle.loads(pickle.dumps(pycrfsuite.ItemSequence(items))).items()[0] == dict(zip(*lists[0], strict=True))
    with pytest.raises(ValueError, match="as many values"):
        PackedItems.of_lists([(["a"], [])])
    with pytest.raises(ValueError, match="item 0"):
        PackedItems.of_lists([([1], [1.0])])


def test_prepared_items_among_others(by_batches):
    tagger = fitted("few")
    X = [[{"w": "ü1", "odd": 0.0}, ["odd"]], [["other1"]], [{"size": 2.0, "w": "ü3"}]]
    packed = PackedItems.read(X[0], "=")
    assert tagger.predict([packed, X[1], packed, X[2]]) == [tagger.predict(X)[k] for k in (0, 1, 0, 2)]
    ours = tagger.predict_marginals([X[1], packed, X[2]], output="array")
    assert all(
        map(np.array_equal, ours, by_batches(tagger.predict_marginals, [X[k] for k in (1, 0, 2)], output="array"))
    )
    assert tagger._fitted().named_chain.read([PackedItems.of_lists([(["odd"], [float("nan")])])]) is None
