"""Small random data for the estimators' tests."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

LABELS = ["B", "I", "O"]


@dataclass(frozen=True)
class Sentences:
    """The same sequences in every form of input: columns are named "c0", "c1", ..."""

    arrays: list[np.ndarray]
    y: list[list[str]]

    @property
    def dicts(self) -> list[list[dict[str, float]]]:
        return [[{f"c{j}": float(v) for j, v in enumerate(row) if v} for row in x] for x in self.arrays]

    @property
    def names(self) -> list[list[list[str]]]:
        """Return the sequences as names: column j with value v becomes v copies of "cj"."""
        return [[[f"c{j}" for j, v in enumerate(row) for _ in range(int(v))] for row in x] for x in self.arrays]

    @property
    def sparse(self) -> list[Any]:
        return [sparse.csr_array(x) for x in self.arrays]

    def __len__(self) -> int:
        return len(self.y)


def make_sentences(n: int = 30, *, seed: int = 0, n_columns: int = 6, max_length: int = 6, labels=LABELS) -> Sentences:
    """Make sequences of counts whose labels depend on the columns and on the previous label.

    Some pairs never occur, so that some features have no count: the second label never follows the last label, and the
    last column is 0 wherever the label is the first one.
    """
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n_columns, len(labels)))
    moves = rng.normal(size=(len(labels), len(labels)))
    arrays, y = [], []
    for _ in range(n):
        x = rng.integers(0, 3, size=(int(rng.integers(1, max_length + 1)), n_columns)) * (rng.random(n_columns) < 0.5)
        before, row = 0, []
        for t, scores in enumerate(x @ table):
            noisy = scores + moves[before] + rng.gumbel(size=len(labels))
            if t and before == len(labels) - 1:
                noisy[1] = -np.inf
            before = int(np.argmax(noisy))
            x[t, -1] *= before != 0
            row.append(labels[before])
        arrays.append(x.astype(np.float64))
        y.append(row)
    return Sentences(arrays, y)


@pytest.fixture(scope="session")
def sentences() -> Sentences:
    return make_sentences()


@pytest.fixture(scope="session")
def fresh_sentences() -> Sentences:
    """Return sequences that no test trains on."""
    return make_sentences(12, seed=1, max_length=4)


@pytest.fixture(scope="session")
def sentence_maker():
    return make_sentences


def labelling_scores(tagger: Any, tokens: list[dict[str, float]]) -> dict[tuple[Any, ...], float]:
    """Return the score of every labelling of one sequence, summed from the tagger's named weights."""
    states, moves, bounds = tagger.state_features_, tagger.transition_features_, tagger.boundary_features_
    found = {}
    for labels in product(tagger.classes_.tolist(), repeat=len(tokens)):
        score = sum(
            states.get((name, a), 0.0) * v for token, a in zip(tokens, labels, strict=True) for name, v in token.items()
        )
        for t in range(1, len(labels)):
            a, b = labels[t - 1], labels[t]
            score += moves.get((a, b), 0.0)
            score += sum(moves.get((name, a, b), 0.0) * v for name, v in tokens[t].items())
        score += bounds.get(("begin", labels[0]), 0.0) + bounds.get(("end", labels[-1]), 0.0)
        found[labels] = score
    return found


@pytest.fixture(scope="session")
def all_scores():
    return labelling_scores
