"""The objectives of the compared systems in plain NumPy and SciPy, without using partwise.

    P(w) = l2/2 |w|^2 + sum of losses

A loss is phi(smax(scores + kappa * number of wrong labels) - score of the gold labels), where smax is
tau log sum exp(. / tau), or the maximum for tau = 0, and phi(t) is t or max(t, 0)^2; the log loss has tau = 1 and
kappa = 0. Chains have tied transitions and no begin or end weights. Each system's model is first turned into two
arrays: state weights (attributes x labels) and transitions (label x next label).
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
    """Labelled sequences as arrays; the tokens of all sequences are concatenated."""

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
        """Make the array of state weights from a mapping of (attribute, label)."""
        number = {label: k for k, label in enumerate(self.labels)}
        matrix = np.zeros((len(self.attributes), len(self.labels)))
        for (attribute, label), value in weights.items():
            matrix[self.attributes[attribute], number[label]] = value
        return matrix

    def transition_matrix(self, weights: Mapping[tuple[str, str], float]) -> Floats:
        """Make the array of transitions from a mapping of (label, next label)."""
        number = {label: k for k, label in enumerate(self.labels)}
        matrix = np.zeros((len(self.labels), len(self.labels)))
        for (before, after), value in weights.items():
            matrix[number[before], number[after]] = value
        return matrix


@dataclass(frozen=True)
class ChainLoss:
    """A loss: tau, kappa, and whether phi is the square."""

    temperature: float = 1.0
    cost: float = 0.0
    squared: bool = False


LOG = ChainLoss()


def chain_objective(data: ChainData, state: Floats, transitions: Floats, l2: float) -> float:
    """Evaluate P of a linear-chain CRF."""
    return chain_primal(data.design @ state, state, transitions, data.gold, data.lengths, l2)


def chain_primal(
    emissions: Floats, state: Floats, transitions: Floats, gold: Ints, lengths: Ints, l2: float, loss: ChainLoss = LOG
) -> float:
    """Evaluate P of a chain; `emissions` (tokens x labels) are the scores that the weights `state` give."""
    norm2 = float(np.vdot(state, state) + np.vdot(transitions, transitions))
    violations = chain_violations(emissions, transitions, gold, lengths, loss)
    return 0.5 * l2 * norm2 + float((np.maximum(violations, 0.0) ** 2 if loss.squared else violations).sum())


def chain_log_loss(emissions: Floats, transitions: Floats, gold: Ints, lengths: Ints) -> float:
    """Sum -log p(gold) over the sequences."""
    return float(chain_violations(emissions, transitions, gold, lengths, LOG).sum())


def chain_violations(emissions: Floats, transitions: Floats, gold: Ints, lengths: Ints, loss: ChainLoss) -> Floats:
    """Return smax - gold score of each sequence, by the forward algorithm on padded batches of similar lengths."""
    ends = np.cumsum(lengths)
    begins = ends - lengths
    here = emissions[np.arange(len(gold)), gold]
    inside = np.ones(len(gold), dtype=bool)
    inside[begins[lengths > 0]] = False
    after = np.flatnonzero(inside)
    here[after] += transitions[gold[after - 1], gold[after]]
    path = np.concatenate([[0.0], np.cumsum(here)])
    scores = emissions + loss.cost * (np.arange(emissions.shape[1]) != gold[:, None])

    def smax(values: Floats, axis: int) -> Floats:
        if loss.temperature == 0:
            return np.asarray(values.max(axis=axis))
        return np.asarray(loss.temperature * logsumexp(values / loss.temperature, axis=axis))

    out = -(path[ends] - path[begins])
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    for first in range(0, len(order), _BATCH):
        chosen = order[first : first + _BATCH]
        length = lengths[chosen]
        alpha = scores[begins[chosen]]  # sequences x labels
        for t in range(1, int(length.max())):
            going = length > t
            step = smax(alpha[going][:, :, None] + transitions, 1)
            alpha[going] = step + scores[begins[chosen[going]] + t]
        out[chosen] += smax(alpha, 1)
    return out


def multiclass_objective(X: Floats, y: Ints, weights: Floats, l2: float) -> float:
    """Evaluate P of multinomial logistic regression without intercept.

    weights: labels x inputs, or 1 x inputs for two labels. X may be sparse. y: label numbers.
    """
    scores = X @ weights.T
    if len(weights) == 1:
        scores = np.column_stack([np.zeros(len(y)), scores])
    loss = logsumexp(scores, axis=1).sum() - scores[np.arange(len(y)), y].sum()
    return float(0.5 * l2 * np.vdot(weights, weights) + loss)
