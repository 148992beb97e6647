"""CoCoA+ (Ma et al. 2015, Algorithm 1 with adding, gamma = 1) for multinomial logistic regression, in plain NumPy.

Data are split among K machines. In a round each machine k improves its own part of the dual variables, for the
subproblem G_k with sigma', from the shared weights w:

    alpha_[k] += argmax-ish of  G_k(d) = sum_{i in k} -l_i*(-(alpha_i + d_i)) - <w, A d> - sigma' / (2 l2) |A d|^2
    w += 1/l2 sum_k A d_[k]                                    (everything is added)

which is seen by a machine as w_k = w + sigma'/l2 A d_[k]. sigma' = K is safe. The local solver makes one exact
coordinate step per example in turn (SDCA), with alpha_i a distribution over labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .sdca_reference import best_block

Floats = NDArray[np.float64]


class CocoaPlus:
    """x: (n, d) inputs. labels: (n,). machines: for each machine its examples in the order of its visits, in batches.

    An example that was never visited has all mass on its gold label. The first visit of a batch begins at `start`.
    """

    def __init__(
        self, x: Floats, labels: Sequence[int], n_labels: int, l2: float, machines: Sequence[Sequence[Sequence[int]]]
    ) -> None:
        self.x, self.labels, self.l2, self.machines = x, np.asarray(labels), l2, machines
        self.gold = np.eye(n_labels)[self.labels]
        self.p = self.gold.copy()
        self.w = np.zeros((x.shape[1], n_labels))
        self.begun: set[int] = set()

    def start(self, i: int) -> Floats:
        return np.full(self.gold.shape[1], 1.0 / self.gold.shape[1])

    def dual(self, w: Floats | None = None, p: Floats | None = None, l2: float | None = None) -> float:
        """The dual value of distributions p with weights w: sum_i H(p_i) - l2/2 |w|^2."""
        p = self.p if p is None else p
        entropy = -float(np.sum(p * np.log(np.where(p > 0, p, 1.0))))
        w, l2 = self.w if w is None else w, self.l2 if l2 is None else l2
        return entropy - 0.5 * l2 * float(np.sum(w * w))

    def round(self, sigma: float) -> list[float]:
        """Make one round; return the gains of the machines in their own subproblems."""
        moved, gains = np.zeros_like(self.w), []
        for batches in self.machines:
            own, own_l2 = self.w.copy(), self.l2 / sigma
            before = self.dual(own, l2=own_l2)
            for batch in batches:
                if batch[0] not in self.begun:
                    self.begun.add(batch[0])
                    for i in batch:
                        self._move(i, self.start(i), own, own_l2)
                for i in batch:
                    rho = np.full(self.gold.shape[1], float(self.x[i] @ self.x[i]) / own_l2)
                    self._move(i, best_block(self.x[i] @ own, self.p[i], rho), own, own_l2)
            gains.append(self.dual(own, l2=own_l2) - before)
            moved += (own - self.w) / sigma
        self.w = self.w + moved
        return gains

    def _move(self, i: int, q: Floats, w: Floats, l2: float) -> None:
        w += np.outer(self.x[i], self.p[i] - q) / l2
        self.p[i] = q
