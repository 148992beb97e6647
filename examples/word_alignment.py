"""Which word translates which: a structure written in Python with nothing but a maximum.

An alignment gives every word of a sentence one word of its translation, or none, and no two words the same one. The
best alignment for given scores is an assignment, which SciPy finds; the sum over all of them has no efficient
algorithm. A structure that has only `maximize` trains with every solver that needs no more: `bcfw` and `dcd` here, each
to a certificate.

    python examples/word_alignment.py

The sentences are made up: a lexicon in which words have one or two translations, some of them similar (cognates), most
of them not; function words without a translation; translations in another order. What there is to learn is how much
to trust co-occurrence, similarity and position. Each test word is compared with its right partner; the baseline takes
the partner with the best co-occurrence (the Dice coefficient), as far as it is free.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import linear_sum_assignment

from partwise import Model, Structure, StructuredEstimator
from partwise.features import slot_map
from partwise.models import Labellings, Learnt, Reading
from partwise.problem import Batch, LabelledBatch
from partwise.problem.inference import best_labellings

# --- the structure: which alignments there are, and the best of them


class Alignment(Structure):
    """Sentences of n words, translations of m words: slot s * (m + 1) + t is word s with t, or with none (t = m)."""

    def __init__(self, sizes):
        super().__init__(len(sizes))
        self.sizes = sizes  # (n, m) of each example

    def num_slots(self, i):
        n, m = self.sizes[i]
        return n * (m + 1)

    def maximize(self, i, scores):
        n, m = self.sizes[i]
        table = scores.reshape(n, m + 1)
        # n columns for "none", so that all words can have it.
        words, partners = linear_sum_assignment(np.hstack([table[:, :m], np.repeat(table[:, m:], n, axis=1)]), True)
        slots = words * (m + 1) + np.minimum(partners, m)
        return scores[slots].sum(), slots, np.ones(n)

    def cost(self, i, slots, counts):
        """One for each word with a wrong partner."""
        wrong = np.ones(self.num_slots(i))
        wrong[slots] = 0
        return wrong


# --- the model: pairs of sentences as structures and features, labellings as partners


class AlignmentModel(Model):
    """X: pairs of sentences (lists of words); y: for each word the number of its partner, -1 for none."""

    def learn(self, X, y, sample_weight, training):
        self.dice = dice_of(X)
        reading = self.read(X)
        gold, possible = self.encode(reading, y)
        if not possible.all():
            raise ValueError(f"example {int(np.argmin(possible))}: {y[int(np.argmin(possible))]} is no alignment")
        return Learnt(LabelledBatch(reading.batch, gold, sample_weight))

    def read(self, X, n_jobs=1):
        structure = Alignment([(len(source), len(target)) for source, target in X])
        rows = [pair_features(source, target, self.dice) for source, target in X]
        return Reading(Batch(structure, slot_map(structure, rows)), len(X))

    def decode(self, reading, which, labellings, n_jobs=1):
        sizes, ends = reading.batch.structure.sizes, labellings.indptr
        found = []
        for i, a, b in zip(which, ends, ends[1:], strict=False):
            n, m = sizes[i]
            partners = np.empty(n, dtype=np.int64)
            partners[labellings.slots[a:b] // (m + 1)] = labellings.slots[a:b] % (m + 1)
            found.append(np.where(partners == m, -1, partners).tolist())
        return found

    def encode(self, reading, y):
        sizes, found, possible = reading.batch.structure.sizes, [], []
        for (n, m), partners in zip(sizes, y, strict=True):
            taken = [t for t in partners if t >= 0]
            fits = len(partners) == n and len(set(taken)) == len(taken) and all(-1 <= t < m for t in partners)
            own = np.array([m if t < 0 else t for t in partners] if fits else [m] * n)
            found.append(np.arange(n) * (m + 1) + own)
            possible.append(fits)
        return Labellings.of_slots(found), np.array(possible)

    def score(self, X, y, predicted, sample_weight):
        return accuracy(y, predicted)


class WordAligner(StructuredEstimator):
    """Aligns the words of sentences with those of their translations."""

    def __init__(self, **training):
        super().__init__(**training)

    def _make_model(self):
        return AlignmentModel()


# --- features of a pair of words


def dice_of(X):
    """2 n(s, t) / (n(s) + n(t)), counted in sentences: how much two words occur together."""
    ones, twos, both = {}, {}, {}
    for source, target in X:
        for s in set(source):
            ones[s] = ones.get(s, 0) + 1
            for t in set(target):
                both[s, t] = both.get((s, t), 0) + 1
        for t in set(target):
            twos[t] = twos.get(t, 0) + 1
    return {(s, t): 2 * count / (ones[s] + twos[t]) for (s, t), count in both.items()}


def similarity(s, t):
    """Share of the letters that both words begin with."""
    same = 0
    while same < min(len(s), len(t)) and s[same] == t[same]:
        same += 1
    return same / max(len(s), len(t))


def pair_features(source, target, dice):
    """A row per slot: (a pair, its co-occurrence, similarity, distance; no partner, the best co-occurrence then)."""
    n, m = len(source), len(target)
    rows = np.zeros((n, m + 1, 6))
    for a, s in enumerate(source):
        together = [dice.get((s, t), 0.0) for t in target]
        rows[a, :m, 0] = 1.0
        rows[a, :m, 1] = together
        rows[a, :m, 2] = [similarity(s, t) for t in target]
        rows[a, :m, 3] = np.abs(np.arange(m) / m - a / n)
        rows[a, m, 4] = 1.0
        rows[a, m, 5] = max(together, default=0.0)
    return rows


# --- data


def make_sentences(n, seed=0, n_words=250):
    """Pairs of sentences and their alignments, from a lexicon that is the same for every seed."""
    spell = np.random.default_rng(12)

    def word(syllables):
        return "".join(spell.choice(list("bdfgklmnprstvz")) + spell.choice(list("aeiou")) for _ in range(syllables))

    lexicon = []  # (word, translations)
    for _ in range(n_words):
        own = word(spell.integers(2, 5))
        cognate = own[: max(3, len(own) - 2)] + word(1)
        first = cognate if spell.random() < 0.3 else word(spell.integers(2, 5))
        lexicon.append((own, [first] if spell.random() < 0.7 else [first, word(3)]))
    particles = [word(1) for _ in range(8)]
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, n_words + 1)
    X, y = [], []
    for _ in range(n):
        source, target = [], []  # target: (place in the translation, word, word that it translates)
        for k in rng.choice(n_words, size=rng.integers(4, 12), p=frequency / frequency.sum()):
            if rng.random() < 0.25:
                source.append(str(rng.choice(particles)))
            if rng.random() < 0.12:
                target.append((len(source) + rng.normal(0, 2), str(rng.choice(particles)), -1))
            own, translations = lexicon[k]
            if rng.random() < 0.92:  # now and then a word is left out in the translation
                target.append((len(source) + rng.normal(0, 1.2), str(rng.choice(translations)), len(source)))
            source.append(own)
        target.sort()
        partners = [-1] * len(source)
        for t, (_, _, s) in enumerate(target):
            if s >= 0:
                partners[s] = t
        X.append((source, [text for _, text, _ in target] or [particles[0]]))
        y.append(partners)
    return X, y


def accuracy(y, predicted):
    """Share of the words with the right partner."""
    return float(np.mean(np.concatenate([np.equal(a, b) for a, b in zip(y, predicted, strict=True)])))


def greedy(X, dice):
    """The baseline: pairs of words by co-occurrence, the best first, as long as both are free."""
    found = []
    for source, target in X:
        pairs = [(-dice.get((s, t), 0.0), a, b) for a, s in enumerate(source) for b, t in enumerate(target)]
        partners, free = [-1] * len(source), set(range(len(target)))
        for value, a, b in sorted(pairs):
            if value < 0 and partners[a] < 0 and b in free:
                partners[a] = b
                free.remove(b)
        found.append(partners)
    return found


# --- what a call costs


class Timed(Alignment):
    """Notes how long its own code takes."""

    seconds, calls = 0.0, 0

    def maximize(self, i, scores):
        begin = time.perf_counter()
        found = super().maximize(i, scores)
        Timed.seconds += time.perf_counter() - begin
        Timed.calls += 1
        return found


def seconds_per_call(model, X):
    """Inside the structure's own code, and around it: scores of slots, arrays for Python, checks of the answer."""
    reading = model.read(X)
    batch = Batch(Timed(reading.batch.structure.sizes), reading.batch.features)
    runs = []
    for _ in range(5):
        Timed.seconds, Timed.calls = 0.0, 0
        begin = time.perf_counter()
        best_labellings(batch, model.weights)
        total = time.perf_counter() - begin
        runs.append((Timed.seconds / Timed.calls, (total - Timed.seconds) / Timed.calls))
    return min(inside for inside, _ in runs), min(around for _, around in runs)


def main(n_train=400, n_test=200, tol=1e-2):
    """Train with two solvers; returns what it prints, by solver."""
    X, y = make_sentences(n_train, seed=0)
    X_test, y_test = make_sentences(n_test, seed=1)
    base = accuracy(y_test, greedy(X_test, dice_of(X)))
    print(f"{n_train} pairs of sentences, {sum(map(len, y))} words; baseline (co-occurrence): {base:.1%} right")
    found = {"baseline": base}
    for loss, solver in (("hinge", "bcfw"), ("squared-hinge", "dcd")):
        aligner = WordAligner(loss=loss, solver=solver, C=1.0, tol=tol).fit(X, y)
        result, right = aligner.result_, aligner.score(X_test, y_test)
        print(
            f"{solver:5s} {loss:14s} primal {result.primal:.3f}, dual {result.dual:.3f}, gap {result.relative_gap:.1e} "
            f"of the primal after {result.passes:g} passes, {result.seconds:.2f} s: {right:.1%} right"
        )
        found[solver] = (result, right)
    inside, around = seconds_per_call(aligner._model, X_test)
    print(f"an oracle call: {1e6 * inside:.1f} us in the assignment solver and {1e6 * around:.1f} us around it")
    found["overhead"] = around
    return found


if __name__ == "__main__":
    main()
