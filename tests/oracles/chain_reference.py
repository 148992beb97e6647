"""Chains in log space and extended precision, for lengths and numbers of labels that cannot be enumerated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.longdouble]


@dataclass(frozen=True)
class ChainSums:
    """The value smax, its node (T, L) and edge (T - 1, L, L) marginals, and its entropy, in extended precision."""

    value: float
    nodes: Array
    edges: Array
    entropy: float


def split_slots(
    scores: NDArray[np.float64], length: int, n_labels: int, width: int, tied: bool, ends: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split a slot vector into node scores (T, L), which include the scores of ends, and edge scores (T - 1, L, L)."""
    nodes = scores[: length * width].reshape(length, width)[:, :n_labels].copy()
    tables = 1 if tied else length - 1
    block = n_labels * width
    edges = scores[length * width : length * width + tables * block].reshape(tables, n_labels, width)[:, :, :n_labels]
    if ends:
        tail = scores[length * width + tables * block :].reshape(2, width)[:, :n_labels]
        nodes[0] += tail[0]
        nodes[-1] += tail[1]
    return nodes, np.broadcast_to(edges, (length - 1, n_labels, n_labels)) if tied else edges


def join_slots(sums: ChainSums, n_labels: int, width: int, tied: bool, ends: bool) -> NDArray[np.float64]:
    """Return the expected counts as a slot vector."""
    length = len(sums.nodes)
    rows = np.zeros((length, width))
    rows[:, :n_labels] = sums.nodes
    edges = np.zeros((length - 1, n_labels, width))
    edges[:, :, :n_labels] = sums.edges
    table = edges.sum(axis=0) if tied else edges
    tail = rows[[0, -1]] if ends else np.zeros(0)
    return np.concatenate([rows.ravel(), table.ravel(), tail.ravel()])


def chain_sums(nodes: NDArray[np.float64], edges: NDArray[np.float64], temperature: float = 1.0) -> ChainSums:
    """Compute sums by forward and backward recursions on logarithms."""
    node = nodes.astype(np.longdouble) / np.longdouble(temperature)
    length = len(node)
    same = length > 1 and edges.strides[0] == 0  # a table that is broadcast to all edges is converted once
    edge = (edges[:1] if same else edges).astype(np.longdouble) / np.longdouble(temperature)
    at = (lambda t: edge[0]) if same else (lambda t: edge[t])
    forward, backward = np.empty_like(node), np.zeros_like(node)
    forward[0] = node[0]
    for t in range(1, length):
        forward[t] = node[t] + np.logaddexp.reduce(forward[t - 1][:, None] + at(t - 1), axis=0)
    for t in range(length - 2, -1, -1):
        backward[t] = np.logaddexp.reduce(at(t) + (node[t + 1] + backward[t + 1]), axis=1)
    log_z = np.logaddexp.reduce(forward[-1])
    p_nodes = np.exp(forward + backward - log_z)
    full = np.broadcast_to(edge, (max(length - 1, 0), *edge.shape[1:]))
    logs = forward[:-1, :, None] + full + (node[1:] + backward[1:])[:, None, :] - log_z
    p_edges = np.exp(logs)
    # H = sum over edges of H(edge) - sum over inner nodes of H(node); -p log p -> 0 where p underflows.
    entropy = plogp(p_nodes[1:-1]) - plogp(p_edges) if length > 1 else -plogp(p_nodes)
    return ChainSums(float(log_z * np.longdouble(temperature)), p_nodes, p_edges, float(entropy))


def chain_covariance(
    nodes: NDArray[np.float64], edges: NDArray[np.float64], d_nodes: NDArray[np.float64], d_edges: NDArray[np.float64]
) -> ChainSums:
    """Cov(counts) direction: the derivatives of node and edge marginals along (d_nodes, d_edges), at temperature 1.

    A marginal is exp(forward + scores + backward - log Z): its derivative is the marginal times the exponent's.
    """
    node, d_node = nodes.astype(np.longdouble), d_nodes.astype(np.longdouble)
    edge, d_edge = edges.astype(np.longdouble), d_edges.astype(np.longdouble)
    length = len(node)
    forward, backward = np.empty_like(node), np.zeros_like(node)
    d_forward, d_backward = np.empty_like(node), np.zeros_like(node)
    forward[0], d_forward[0] = node[0], d_node[0]
    for t in range(1, length):
        into = forward[t - 1][:, None] + edge[t - 1]
        total = np.logaddexp.reduce(into, axis=0)
        forward[t] = node[t] + total
        d_forward[t] = d_node[t] + (np.exp(into - total) * (d_forward[t - 1][:, None] + d_edge[t - 1])).sum(axis=0)
    for t in range(length - 2, -1, -1):
        out = edge[t] + (node[t + 1] + backward[t + 1])
        backward[t] = np.logaddexp.reduce(out, axis=1)
        weight = np.exp(out - backward[t][:, None])
        d_backward[t] = (weight * (d_edge[t] + (d_node[t + 1] + d_backward[t + 1]))).sum(axis=1)
    log_z = np.logaddexp.reduce(forward[-1])
    d_log_z = np.exp(forward[-1] - log_z) @ d_forward[-1]
    p_nodes = np.exp(forward + backward - log_z)
    logs = forward[:-1, :, None] + edge + (node[1:] + backward[1:])[:, None, :] - log_z
    d_logs = d_forward[:-1, :, None] + d_edge + (d_node[1:] + d_backward[1:])[:, None, :] - d_log_z
    return ChainSums(float(d_log_z), p_nodes * (d_forward + d_backward - d_log_z), np.exp(logs) * d_logs, float("nan"))


def plogp(p: Array) -> np.longdouble:
    """sum p log p, with 0 log 0 = 0."""
    return np.sum(p * np.log(np.where(p > 0, p, 1)))


def chain_best(nodes: NDArray[np.float64], edges: NDArray[np.float64]) -> tuple[float, list[int]]:
    """Viterbi's algorithm: the value and one best labelling."""
    # Extended precision, so that the sum of 1e5 terms rounds to the nearest double
    value, back = nodes[0].astype(np.longdouble), []
    for t in range(1, len(nodes)):
        table = value[:, None] + edges[t - 1]
        back.append(table.argmax(axis=0))
        value = nodes[t] + table.max(axis=0)
    labels = [int(value.argmax())]
    for step in reversed(back):
        labels.append(int(step[labels[-1]]))
    return float(value.max()), labels[::-1]
