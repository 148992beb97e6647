"""Products with the Hessian of the objective, as `Problem.hessian` gives them."""

import numpy as np
from numpy.typing import NDArray

from ._core import Hessian

Floats = NDArray[np.float64]


class SecondDerivatives:
    """The Hessian of P at one point: products with it, and its diagonal or something near it."""

    def __init__(self, losses: Hessian, l2: float, n_jobs: int) -> None:
        self._losses, self._l2, self._n_jobs = losses, l2, n_jobs

    def __call__(self, direction: Floats) -> Floats:
        product = self._losses.product(direction, self._n_jobs)
        product += self._l2 * direction
        return product

    def diagonal(self) -> Floats:
        """Exact where an example uses a weight in one slot of one part (see `_core.Hessian.diagonal`)."""
        return self._l2 + self._losses.diagonal(self._n_jobs)

    @property
    def partial(self) -> bool:
        """Whether it is an estimate from a part of the examples."""
        return self._losses.partial
