"""Products with the Hessian of the objective, as `Problem.hessian` gives them."""

from dataclasses import dataclass

from ..arrays import Floats
from .sums import Sums


@dataclass(frozen=True, eq=False)
class SecondDerivatives:
    """The Hessian of P at one point: products with it, and its diagonal or something near it."""

    losses: Sums
    l2: float
    weights: Floats
    every: int
    marginals: Floats | None
    partial: bool
    """Whether it is an estimate from a part of the examples."""

    def __call__(self, direction: Floats) -> Floats:
        product = self.losses.hessian_product(self.weights, self.every, self.marginals, direction)
        product += self.l2 * direction
        return product

    def diagonal(self) -> Floats:
        """Exact where an example uses a weight in one slot of one part (see `_core.Hessian.diagonal`)."""
        return self.l2 + self.losses.hessian_diagonal(self.weights, self.every, self.marginals)
