"""The objectives of the compared systems in plain NumPy and SciPy, independent of partwise.

    P(w) = l2/2 |w|^2 + sum of log losses

Chains have tied transitions and no begin or end weights. Each system's model is first turned into two arrays: state
weights (attributes x labels) and transitions (label x next label).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BATCH = 256


@dataclass(frozen=True)
class ChainData:
    """Labelled sequences as arrays; tokens of all sequences end to end."""

    design: sp.csr_array  # tokens x attributes, how often a token has an attribute
    attributes: dict[str, int]
    labels: list[str]
    gold: Ints  # label of each token
    lengths: Ints

    @classmethod
    def from_strings(cls, X: Sequence[Sequence[Sequence[str]]], y: Sequence[Sequence[str]]) -> ChainData:
        """Number attributes and labels in order of appearance."""
        attributes: dict[str, int] = {}
        labels: dict[str, int] = {}
        columns: list[int] = []
        indptr = [0]
        gold: list[int] = []
        for sentence, targets in zip(X, y, strict=True):
            for row, label in zip(sentence, targets, strict=True):
                columns.extend(attributes.setdefault(name, len(attributes)) for name in row)
                indptr.append(len(columns))
                gold.append(labels.setdefault(label, len(labels)))
        shape = (len(gold), len(attributes))
        design = sp.csr_array((np.ones(len(columns)), np.array(columns), np.array(indptr)), shape=shape)
        design.sum_duplicates()
        return cls(design, attributes, list(labels), np.array(gold), np.array([len(s) for s in X]))

    def state_matrix(self, weights: Mapping[tuple[str, str], float]) -> Floats:
        """State weights from a mapping of (attribute, label)."""
        number = {label: k for k, label in enumerate(self.labels)}
        matrix = np.zeros((len(self.attributes), len(self.labels)))
        for (attribute, label), value in weights.items():
            matrix[self.attributes[attribute], number[label]] = value
        return matrix

    def transition_matrix(self, weights: Mapping[tuple[str, str], float]) -> Floats:
        """Transitions from a mapping of (label, next label)."""
        number = {label: k for k, label in enumerate(self.labels)}
        matrix = np.zeros((len(self.labels), len(self.labels)))
        for (before, after), value in weights.items():
            matrix[number[before], number[after]] = value
        return matrix


def chain_objective(data: ChainData, state: Floats, transitions: Floats, l2: float) -> float:
    """P of a linear-chain CRF."""
    emissions = data.design @ state
    norm2 = float(np.vdot(state, state) + np.vdot(transitions, transitions))
    return 0.5 * l2 * norm2 + chain_log_loss(emissions, transitions, data.gold, data.lengths)


def chain_log_loss(emissions: Floats, transitions: Floats, gold: Ints, lengths: Ints) -> float:
    """Sum over sequences of -log p(gold), by the forward algorithm on padded batches of like lengths."""
    ends = np.cumsum(lengths)
    begins = ends - lengths
    path = emissions[np.arange(len(gold)), gold].sum()
    inside = np.ones(len(gold), dtype=bool)
    inside[begins[lengths > 0]] = False
    after = np.flatnonzero(inside)
    path += transitions[gold[after - 1], gold[after]].sum()

    total = 0.0
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    for first in range(0, len(order), _BATCH):
        chosen = order[first : first + _BATCH]
        length = lengths[chosen]
        alpha = emissions[begins[chosen]]  # sequences x labels
        for t in range(1, int(length.max())):
            going = length > t
            step = logsumexp(alpha[going][:, :, None] + transitions, axis=1)
            alpha[going] = step + emissions[begins[chosen[going]] + t]
        total += logsumexp(alpha, axis=1).sum()
    return float(total - path)


def multiclass_objective(X: Floats, y: Ints, weights: Floats, l2: float) -> float:
    """P of multinomial logistic regression without intercept; weights is labels x inputs."""
    scores = X @ weights.T
    loss = logsumexp(scores, axis=1).sum() - scores[np.arange(len(y)), y].sum()
    return float(0.5 * l2 * np.vdot(weights, weights) + loss)
