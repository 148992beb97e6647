"""Trees with large scores, low temperatures or long sentences, and with words whose best heads are each other."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from math import log

import numpy as np
import pytest

from oracles.enumerate import enumeration_of
from oracles.tree_reference import projective_log_partition, spanning_sums
from partwise.structures import ProjectiveTree, SpanningTree

both_kinds = pytest.mark.parametrize("kind", [ProjectiveTree, SpanningTree])
both_rules = pytest.mark.parametrize("single_root", [True, False])


def one(kind, n, single_root=True, **options):
    return kind(np.array([n], dtype=np.int64), single_root=single_root, **options)


def exact_sums(trees, scores, temperature):
    """log Z, marginals and entropy by enumeration in extended precision."""
    everything = enumeration_of(trees, 0)
    values = everything.counts.astype(np.longdouble) @ scores.astype(np.longdouble) / np.longdouble(temperature)
    p = np.exp(values - values.max())
    log_z = values.max() + np.log(p.sum())
    p /= p.sum()
    logs = values - log_z
    entropy = -(p[p > 0] * logs[p > 0]).sum()
    return float(temperature * log_z), (p @ everything.counts).astype(float), float(entropy)


@both_kinds
@both_rules
@pytest.mark.parametrize("scale", [30.0, 300.0, 1e3])
@pytest.mark.parametrize("temperature", [1.0, 1e-2, 1e-4])
def test_large_scores_and_low_temperatures(kind, single_root, scale, temperature, rng):
    trees = one(kind, 5, single_root)
    # Scores have a relative error of 2^-53, so exponents have errors of about scale / temperature * 1e-16 per word.
    tolerance = max(1e-12, 5 * scale / temperature * 1e-15)
    for _ in range(3):
        scores = rng.uniform(-scale, scale, 30)
        value, marginals, entropy = trees.log_partition(0, scores, temperature)
        expected = exact_sums(trees, scores, temperature)
        assert value == pytest.approx(expected[0], rel=1e-13)
        np.testing.assert_allclose(marginals, expected[1], atol=tolerance)
        assert entropy == pytest.approx(expected[2], abs=10 * tolerance)
        assert entropy >= 0.0


@both_kinds
@both_rules
@pytest.mark.parametrize("temperature", [1.0, 1e-2, 1e-4])
def test_near_ties_of_large_scores(kind, single_root, temperature, rng):
    """Whole columns have scores of +-1e3; differences of the size of the temperature decide."""
    trees = one(kind, 5, single_root)
    scores = np.repeat(rng.choice([-1e3, 1e3], 5), 6) + temperature * rng.normal(size=30)
    value, marginals, entropy = trees.log_partition(0, scores, temperature)
    expected = exact_sums(trees, scores, temperature)
    assert expected[2] > 1.0
    tolerance = max(1e-12, 5e3 / temperature * 1e-15)
    assert value == pytest.approx(expected[0], rel=1e-13)
    np.testing.assert_allclose(marginals, expected[1], atol=tolerance)
    assert entropy == pytest.approx(expected[2], abs=10 * tolerance)
    direction = rng.normal(size=30)
    p = enumeration_of(trees, 0).probabilities(scores - 1e3 * np.sign(scores), temperature)
    covariance = enumeration_of(trees, 0).covariance(p)
    product = trees.covariance_product(0, scores, temperature, direction)
    np.testing.assert_allclose(product, covariance @ direction, atol=10 * tolerance)


@both_rules
@pytest.mark.parametrize("strength", [30.0, 200.0, 500.0])
def test_words_that_prefer_each_other(single_root, strength, rng):
    """Each of two words is by far the best head of the other. Differences of entries of the inverse Laplacian would
    lose all digits of such marginals, and plain weights would underflow."""
    n = 6
    scores = rng.normal(size=n * (n + 1))
    for a, b in ((1, 2), (3, 4), (5, 6)):
        scores[(a - 1) * (n + 1) + b] += strength
        scores[(b - 1) * (n + 1) + a] += strength
    value, marginals, entropy = one(SpanningTree, n, single_root).log_partition(0, scores)
    expected = spanning_sums(scores, single_root, 1.0, digits=60 + int(1.4 * strength))
    assert value == pytest.approx(expected[0], rel=1e-14, abs=1e-12)
    np.testing.assert_allclose(marginals, expected[1], atol=1e-12)
    assert value == pytest.approx(float(marginals @ scores) + entropy, rel=1e-13, abs=1e-11)


@both_kinds
@both_rules
@pytest.mark.parametrize("strength", [3.0, 30.0, 200.0, 500.0])
def test_covariance_of_words_that_prefer_each_other(kind, single_root, strength, rng):
    """Every tree contradicts some strong preference, so that the plain weights of all likely trees underflow."""
    n = 4
    trees = one(kind, n, single_root)
    scores, direction = rng.normal(size=(2, n * (n + 1)))
    for a, b in ((1, 2), (3, 4)):
        scores[(a - 1) * (n + 1) + b] += strength
        scores[(b - 1) * (n + 1) + a] += strength
    everything = enumeration_of(trees, 0)
    expected = everything.covariance(everything.probabilities(scores)) @ direction
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(trees.covariance_product(0, scores, 1.0, direction), expected, atol=1e-11)


@both_kinds
@both_rules
@pytest.mark.parametrize("closed", [[1], [3], [2, 3], [1, 2, 4], [1, 2, 3, 4]])
def test_covariance_where_the_root_is_the_only_way_out(kind, single_root, closed, rng):
    """Words have only each other or the root as heads: a Laplacian without the root would be singular."""
    n = 4
    trees = one(kind, n, single_root)
    mask = np.ones((n, n + 1), dtype=np.uint8)
    for m in closed:
        mask[m - 1] = [h == 0 or h in closed for h in range(n + 1)]
    trees.set_mask(0, mask.ravel())
    scores, direction = rng.normal(size=(2, n * (n + 1)))
    everything = enumeration_of(trees, 0)
    p = everything.probabilities(scores)
    np.testing.assert_allclose(trees.log_partition(0, scores)[1], p @ everything.counts, atol=1e-12)
    product = trees.covariance_product(0, scores, 1.0, direction)
    np.testing.assert_allclose(product, everything.covariance(p) @ direction, atol=1e-12)


@both_rules
@pytest.mark.parametrize("n", [3, 17, 40])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e3])
def test_projective_against_extended_precision(n, scale, single_root, rng):
    scores = rng.uniform(-scale, scale, n * (n + 1))
    for temperature in (1.0, 1e-4):
        value, _, _ = one(ProjectiveTree, n, single_root).log_partition(0, scores, temperature)
        assert value == pytest.approx(projective_log_partition(scores, single_root, temperature), rel=1e-13)


@both_kinds
@both_rules
@pytest.mark.parametrize("scale", [0.0, 3.0, 1e3])
def test_two_hundred_words(kind, single_root, scale, rng):
    n = 200
    trees = one(kind, n, single_root)
    scores = rng.uniform(-scale, scale, n * (n + 1))
    best, slots, _ = trees.maximize(0, scores)
    trees.check_labelling(0, slots, np.ones(n))
    log_count = (n - 1) * log(n + 1)  # a lower bound: the number of trees
    for temperature in (1.0, 1e-4):
        value, marginals, entropy = trees.log_partition(0, scores, temperature)
        rounding = n * scale * 1e-14 + 1e-11
        assert best - rounding <= value <= best + temperature * log_count + rounding
        assert value == pytest.approx(float(marginals @ scores) + temperature * entropy, abs=10 * rounding)
        assert 0.0 <= entropy <= log_count + 1e-9
        assert marginals.min() >= 0.0
        assert not marginals.reshape(n, n + 1)[np.arange(n), np.arange(n) + 1].any()
        np.testing.assert_allclose(marginals.reshape(n, n + 1).sum(axis=1), 1.0, atol=1e-12)
        if single_root:
            assert marginals[:: n + 1].sum() == pytest.approx(1.0, abs=1e-6 * max(1.0, scale / temperature / 1e5))
    if scale == 0.0 and kind is SpanningTree:
        assert value == pytest.approx(1e-4 * (n - 1) * log(n if single_root else n + 1), rel=1e-12)


@both_kinds
def test_marginals_of_two_hundred_words_by_differences(kind, rng):
    n, step = 200, 1e-3
    trees, scores, direction = one(kind, n), rng.normal(size=n * (n + 1)), rng.normal(size=n * (n + 1)) / 10
    _, marginals, _ = trees.log_partition(0, scores)
    up, down = (trees.log_partition(0, scores + s * direction)[0] for s in (step, -step))
    assert (up - down) / (2 * step) == pytest.approx(float(marginals @ direction), abs=1e-5)


@both_rules
def test_two_hundred_words_against_the_determinant(single_root, rng):
    n = 200
    scores = rng.normal(size=n * (n + 1))
    weights = np.exp(scores).reshape(n, n + 1)
    inner = weights[:, 1:] * (1 - np.eye(n))  # row: modifier, column: head
    laplacian = np.diag(inner.sum(axis=1)) - inner
    if single_root:
        laplacian[:, 0] = weights[:, 0]
    else:
        laplacian += np.diag(weights[:, 0])
    value, marginals, _ = one(SpanningTree, n, single_root).log_partition(0, scores)
    assert value == pytest.approx(np.linalg.slogdet(laplacian)[1], rel=1e-12)
    if not single_root:
        inverse = np.linalg.inv(laplacian)
        np.testing.assert_allclose(marginals[:: n + 1], weights[:, 0] * np.diag(inverse), atol=1e-12)


@both_kinds
def test_where_doubles_give_way_to_logs(kind, rng):
    """While the temperature falls, doubles give way to logarithms; the entropy must fall steadily, without a jump."""
    n = 30
    trees, scores = one(kind, n), rng.normal(size=n * (n + 1))
    entropies, values = [], []
    for temperature in np.geomspace(1.0, 1e-3, 60):
        value, marginals, entropy = trees.log_partition(0, scores, temperature)
        assert value == pytest.approx(float(marginals @ scores) + temperature * entropy, abs=1e-9)
        entropies.append(entropy)
        values.append(value)
    assert np.all(np.diff(entropies) <= 1e-9)
    assert np.all(np.diff(values) <= 1e-9)


@both_kinds
def test_a_sentence_that_is_too_long(kind):
    start = time.process_time()
    message = (
        "sentence 1 has 2000 words, more than max_length = 1000: "
        r"it would take about \d+ MB of memory and \S+ operations"
    )
    with pytest.raises(ValueError, match=message):
        kind(np.array([3, 2000], dtype=np.int64))
    with pytest.raises(ValueError, match="sentence 0 has 1000000000000 words"):
        kind(np.array([10**12], dtype=np.int64))
    with pytest.raises(ValueError, match="max_length must be from 1"):
        kind(np.array([3], dtype=np.int64), max_length=10**12)
    assert time.process_time() - start < 1.0


SHORT_OF_MEMORY = """
import resource, sys
import numpy as np
import partwise.structures
trees = getattr(partwise.structures, sys.argv[1])(np.array([2000], dtype=np.int64), max_length=2000)
scores = np.zeros(trees.num_slots(0))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, used + 2**26))
for method in (trees.maximize, trees.log_partition):
    try:
        method(0, scores)
    except MemoryError:
        print("refused")
"""


@both_kinds
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory the Linux way")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer needs address space")
def test_too_little_memory_is_an_error(kind):
    done = subprocess.run(
        [sys.executable, "-c", SHORT_OF_MEMORY, kind.__name__], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["refused", "refused"]), done.stderr


@pytest.mark.slow
@both_kinds
def test_two_thousand_words_with_a_larger_limit(kind):
    trees = one(kind, 2000, max_length=2000)
    scores = np.zeros(trees.num_slots(0))
    value, slots, _ = trees.maximize(0, scores)
    assert value == 0.0
    trees.check_labelling(0, slots, np.ones(2000))
    value, marginals, _ = trees.log_partition(0, scores)
    assert value >= 2000 * log(2)
    np.testing.assert_allclose(marginals.reshape(2000, 2001).sum(axis=1), 1.0, atol=1e-9)


DEEP = """
import threading
import numpy as np
from partwise.structures import ProjectiveTree

def best(n=900):
    for heads in (range(n), [*range(2, n + 1), 0], [0] + [1] * (n - 1)):
        scores = np.zeros((n, n + 1))
        scores[np.arange(n), list(heads)] = 10.0
        print([value for value, _, _ in ProjectiveTree(np.array([n])).k_best(0, scores.ravel(), 3)])

threading.stack_size(128 * 1024)
thread = threading.Thread(target=best)
thread.start()
thread.join()
"""


def test_k_best_of_a_long_sentence_in_a_small_stack():
    """k best must not need a deep stack: spans nest as deep as the sentence is long, and some threads have 128 kB."""
    done = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == ["[9000.0, 8990.0, 8990.0]"] * 3
