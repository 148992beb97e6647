"""Sums over dependency trees by other means: a recursion in extended precision, and determinants in decimals."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def _log_sum(values: NDArray[np.longdouble]) -> np.longdouble:
    top = values.max()
    return top if top == -np.inf else top + np.log(np.exp(values - top).sum())


def projective_log_partition(scores: Floats, single_root: bool, temperature: float) -> float:
    """Eisner's recursion over nodes 0..n with the root as the first node, on logarithms in extended precision."""
    n = round((np.sqrt(1 + 4 * len(scores)) - 1) / 2)
    arcs = np.full((n + 1, n + 1), -np.inf, dtype=np.longdouble)  # head, modifier
    arcs[:, 1:] = np.asarray(scores, dtype=np.longdouble).reshape(n, n + 1).T / np.longdouble(temperature)
    right = np.full((n + 1, n + 1), -np.inf, dtype=np.longdouble)
    left, open_right, open_left = right.copy(), right.copy(), right.copy()
    for k in range(n + 1):
        right[k, k] = left[k, k] = 0.0
    for width in range(1, n + 1):
        for s in range(n + 1 - width):
            t = s + width
            earlier = right[s, s:t] if s > 0 or not single_root else right[0, :1]  # the root has no modifier yet
            between = _log_sum(earlier + left[s + 1 : s + 1 + len(earlier), t])
            open_right[s, t] = between + arcs[s, t]
            open_left[s, t] = between + arcs[t, s]
            right[s, t] = _log_sum(open_right[s, s + 1 : t + 1] + right[s + 1 : t + 1, t])
            left[s, t] = _log_sum(left[s, s:t] + open_left[s:t, t])
    return float(temperature * right[0, n])


def spanning_sums(scores: Floats, single_root: bool, temperature: float, digits: int) -> tuple[float, Floats]:
    """Return temperature * log Z, and marginals: the sum over trees in which m has head h, divided by Z."""
    n = round((np.sqrt(1 + 4 * len(scores)) - 1) / 2)
    with localcontext() as context:
        context.prec = digits
        context.Emin, context.Emax = -(10**12), 10**12
        weight = [[(Decimal(float(x)) / Decimal(temperature)).exp() for x in row] for row in scores.reshape(n, n + 1)]

        def total(weights: list[list[Decimal]]) -> Decimal:
            laplacian = [
                [
                    sum((w for h, w in enumerate(weights[m], start=0) if h not in (0, m + 1)), Decimal(0))
                    + (0 if single_root else weights[m][0])
                    if k == m
                    else -weights[m][k + 1]
                    for k in range(n)
                ]
                for m in range(n)
            ]  # row: modifier, column: head
            if not single_root:
                return determinant(laplacian)
            # Koo et al. 2007: replace one column of the Laplacian of the words by the root's weights.
            return determinant([[weights[m][0], *row[1:]] for m, row in enumerate(laplacian)])

        z = total(weight)
        marginals = np.zeros((n, n + 1))
        for m in range(n):
            for h in range(n + 1):
                if h != m + 1:
                    only = [
                        row if k != m else [w if j == h else Decimal(0) for j, w in enumerate(row)]
                        for k, row in enumerate(weight)
                    ]
                    marginals[m, h] = float(total(only) / z)
        return float(Decimal(temperature) * z.ln()), marginals.ravel()


def determinant(matrix: list[list[Decimal]]) -> Decimal:
    """The determinant, by elimination with the largest pivots."""
    rows = [list(row) for row in matrix]
    result = Decimal(1)
    for k in range(len(rows)):
        pivot = max(range(k, len(rows)), key=lambda i: abs(rows[i][k]))
        if rows[pivot][k] == 0:
            return Decimal(0)
        if pivot != k:
            rows[k], rows[pivot] = rows[pivot], rows[k]
            result = -result
        result *= rows[k][k]
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            for j in range(k, len(rows)):
                rows[i][j] -= factor * rows[k][j]
    return result
