"""A user's structure, model and estimator, written as in docs/how_to_add_a_structure.md, with data."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from partwise import Model, Structure, StructuredEstimator, model_files
from partwise.features import slot_map
from partwise.models import ConstraintError, Labellings, Learnt, Reading
from partwise.models.inspection import Contribution, TopFeatures, choose_kept, counts_of, explanation, largest
from partwise.problem import Batch, LabelledBatch
from partwise.support.checks import check_sample_weight

N_NUMBERS = 3


class Matching(Structure):
    """Assignments of n jobs to n workers, one each; slot i * n + j means that worker i gets job j."""

    def __init__(self, sizes):
        super().__init__(len(sizes))
        self.sizes = sizes
        self.all = {n: np.array([np.eye(n)[list(p)].ravel() for p in permutations(range(n))]) for n in set(sizes)}

    def num_slots(self, i):
        return self.sizes[i] ** 2

    def allowed(self, i):
        counts, mask = self.all[self.sizes[i]], self.mask(i)
        return counts if mask is None else counts[counts @ (mask == 0) == 0]

    def maximize(self, i, scores):
        return self.k_best(i, scores, 1)[0]

    def log_partition(self, i, scores, temperature=1.0):
        counts = self.allowed(i)
        values = counts @ scores
        if temperature == 0:
            return float(values.max()), counts[values.argmax()], 0.0
        p = np.exp((values - values.max()) / temperature)
        log_z = values.max() / temperature + np.log(p.sum())
        expected = p @ counts / p.sum()
        return float(temperature * log_z), expected, float(log_z - expected @ scores / temperature)

    def cost(self, i, slots, counts):
        wrong = np.ones(self.num_slots(i))
        wrong[slots] = 0
        return wrong

    def k_best(self, i, scores, k):
        values = self.allowed(i) @ scores
        rows = np.argsort(-values, kind="stable")[:k]
        return [(float(values[y]), *self._labelling(i, y)) for y in rows]

    def sample(self, i, scores, temperature, n, seed):
        values = self.allowed(i) @ scores / temperature
        p = np.exp(values - values.max())
        drawn = np.random.default_rng(seed).choice(len(p), size=n, p=p / p.sum())
        return [self._labelling(i, y) for y in drawn]

    def _labelling(self, i, y):
        return np.flatnonzero(self.allowed(i)[y]), np.ones(self.sizes[i])


class MatchingModel(Model):
    """Model of `Matcher`. An x is an array (workers x jobs x numbers), a y the list of the workers' jobs."""

    constraints = ("forbidden",)

    def learn(self, X, y, sample_weight, training):
        reading, weight = self.read(X), check_sample_weight(sample_weight, len(X), "example")
        gold, possible = self.encode(reading, y)
        if not possible.all():
            bad = reading.numbers[np.flatnonzero(~possible)[0]]
            raise ValueError(f"example {bad}: the jobs {y[bad]} are no permutation")
        return Learnt(LabelledBatch(reading.batch, gold, None if weight is None else weight[reading.numbers]))

    def read(self, X, n_jobs=1):
        kept = np.array([i for i, x in enumerate(X) if len(x)], dtype=np.int64)
        for i in kept:
            if np.ndim(X[i]) != 3 or len(X[i]) != len(X[i][0]):
                raise ValueError(f"example {i} must be workers x jobs x numbers, got shape {np.shape(X[i])}")
        structure = Matching([len(X[i]) for i in kept])
        rows = [np.asarray(X[i]) for i in kept]
        return Reading(Batch(structure, slot_map(structure, rows, n_weights=N_NUMBERS)), len(X), kept, source=rows)

    def decode(self, reading, which, labellings, n_jobs=1):
        sizes, ends = reading.batch.structure.sizes, labellings.indptr
        return [(labellings.slots[a:b] % sizes[i]).tolist() for i, a, b in zip(which, ends, ends[1:], strict=False)]

    def encode(self, reading, y):
        if len(y) != reading.n_examples:
            raise ValueError(f"X has {reading.n_examples} examples but y has {len(y)}")
        sizes, given = reading.batch.structure.sizes, [y[i] for i in reading.numbers]
        possible = np.array([sorted(jobs) == list(range(n)) for n, jobs in zip(sizes, given, strict=True)], dtype=bool)
        jobs = [np.array(each) if fits else np.arange(n) for n, each, fits in zip(sizes, given, possible, strict=True)]
        return Labellings.of_slots([np.arange(len(j)) * len(j) + j for j in jobs]), possible

    def marginals(self, reading, counts):
        tables = np.split(counts, reading.batch.slot_offsets[1:-1]) if len(counts) else []
        tables = [each.reshape(n, n) for n, each in zip(reading.batch.structure.sizes, tables, strict=True)]
        return reading.spread(tables, lambda: np.empty((0, 0)))

    def constrain(self, reading, forbidden):
        structure = reading.batch.structure
        for k, i in enumerate(reading.numbers):
            mask = np.ones((structure.sizes[k], structure.sizes[k]), dtype=np.uint8)
            for pair in forbidden[i]:
                mask[pair] = 0
            structure.set_mask(k, mask.ravel())
            if not len(structure.allowed(k)):
                raise ConstraintError(f"forbidden leaves example {i} no matching", int(i))

    def carried(self, old):
        return old.weights

    def explain(self, reading):
        scores = reading.batch.features.scores(0, self.weights)
        (first, one, _), (second, two, _) = reading.batch.structure.k_best(0, scores, 2)
        best, other = self.decode(reading, [0, 0], Labellings.of_slots([one, two]))
        rows = reading.source[0].reshape(-1, N_NUMBERS)
        amounts = (rows[one] - rows[two]) * self.weights  # one row of numbers per worker
        found = [
            Contribution("attribute", f"x{j}", i, best[i], other[i], float(amounts[i, j]))
            for i, j in np.ndindex(amounts.shape)
        ]
        return explanation(best, other, (first, second), found)

    def top_features(self, n=10):
        return TopFeatures({"pairs": largest(lambda j: f"x{j}", np.arange(len(self.weights)), self.weights, n)})

    def pruned(self, threshold, keep):
        kept = choose_kept(self.weights, threshold, keep)
        return self.with_weights(np.where(kept, self.weights, 0.0)), counts_of(self.weights, kept)

    def to_parts(self, parts):
        parts.arrays["weights"] = self.weights

    def from_parts(self, parts):
        return self.with_weights(parts.floats("weights", None))


class Matcher(StructuredEstimator):
    def __init__(self, **training):
        super().__init__(**training)

    def _make_model(self):
        return MatchingModel()


model_files.register("matching", Matcher)


def data(seed=0, n_examples=40, smallest=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(smallest, 6, size=n_examples)
    X = [rng.normal(size=(n, n, N_NUMBERS)) for n in sizes]
    scores = [x @ [2.0, -1.0, 0.5] + rng.gumbel(size=x.shape[:2]) for x in X]
    return X, [list(max(permutations(range(len(v))), key=lambda p, v=v: v[range(len(v)), p].sum())) for v in scores]
