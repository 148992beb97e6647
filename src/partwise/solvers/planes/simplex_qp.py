"""The inner problem of cutting-plane methods: the best mixture of a few planes.

Problem. Over the simplex (x >= 0, sum x = 1), maximise D(x) = <b, x> - x'Gx / (2 l2), where G holds the inner products
of the planes' slopes u_k. At the optimum the mixture's weights w = sum_k x_k u_k / l2 minimise the penalty plus the
highest plane, and x is positive only on planes that are highest there.

PIQP solves it, a proximal interior-point method (Schwan et al. 2023), which stays accurate where G is singular (more
planes than weights) and gives the same bits each time on one machine; docs/solvers.md compares others. Slopes of planes
far from the optimum may be many orders longer than those near it, and would hide them in a program solved relative to
its largest number. So the coefficients are scaled, x_k = a_k z_k, such that the numbers in x'Gx are no larger than the
differences of the offsets.

The answer is checked: small coefficients are set to 0 if that makes D no worse, the others are solved for once more (a
linear system), and `optimality` measures the distance from the optimum.
"""

import numpy as np
import piqp

from partwise.problem import DivergenceError
from partwise.support.arrays import Floats

#: Accuracies asked of PIQP, relative to the largest number of the problem; the second one if the first is not reached:
#: beyond double precision its steps lead away from the optimum.
ACCURACIES = (1e-12, 1e-9)
#: Optimality below which an answer is accepted whatever PIQP's status is.
GOOD = 1e-7
#: Coefficients below this share of the largest one may be set to 0.
SMALL = 1e-9


class QPError(DivergenceError):
    """The problem over the planes could not be solved."""


def best_mixture(gram: Floats, b: Floats, l2: float) -> Floats:
    """Return the x of the module's docstring, (m,); QPError if numbers are not finite or no optimum was found."""
    m = len(b)
    if gram.shape != (m, m) or m == 0:
        raise QPError(f"inner products of shape {gram.shape} for {m} planes")
    if not (np.isfinite(gram).all() and np.isfinite(b).all()):
        raise QPError("the planes have numbers that are not finite")
    if m == 1:
        return np.ones(1)
    with np.errstate(over="ignore"):
        quadratic, offset = gram / l2, b - b.max()  # a constant in b changes nothing: keep the digits
    if not (np.isfinite(quadratic).all() and np.isfinite(offset).all()):
        raise QPError("the planes have numbers beyond double precision")
    size = max(float(np.abs(quadratic).max()), float(np.abs(offset).max()))
    if size == 0.0:
        return np.full(m, 1.0 / m)
    sizes = quadratic.diagonal() + np.abs(offset)
    least = float(np.sqrt(sizes[sizes > 0].min()))
    lengths = np.maximum(np.sqrt(quadratic.diagonal()) + np.abs(offset) / least, least)
    scale = lengths.min() / lengths
    quadratic, offset = quadratic / size, offset / size
    best, nearest, status = None, np.inf, None
    for accuracy in ACCURACIES:
        x, status = _solved(quadratic, offset, scale, accuracy)
        off = optimality(quadratic, offset, x) if x is not None else np.inf
        if off < nearest:
            best, nearest = x, off
        if status == piqp.PIQP_SOLVED:
            break
    if best is None or (status != piqp.PIQP_SOLVED and nearest > GOOD):
        found = str(status).rsplit("PIQP_", maxsplit=1)[-1].lower().replace("_", " ")
        far = "" if best is None else f", {nearest:.1e} from the optimum"
        raise QPError(f"the best of {m} planes was not found ({found}{far})")
    return best


def optimality(quadratic: Floats, b: Floats, z: Floats, scale: Floats | float = 1.0) -> float:
    """Return the largest gradient of <b, x> - x'Qx / 2, x = scale z, less its mean under x; 0 at the optimum."""
    gradient = b - quadratic @ z
    return float((gradient / scale).max() - gradient @ z)


def _solved(quadratic: Floats, b: Floats, scale: Floats, accuracy: float) -> tuple[Floats | None, object]:
    """Return PIQP's answer x = scale z, cleaned (None: there is none), and PIQP's status."""
    m = len(b)
    scaled, offset = quadratic * np.outer(scale, scale), b * scale
    size = max(float(np.abs(scaled).max()), float(np.abs(offset).max()), np.finfo(np.float64).tiny)
    scaled, offset = scaled / size, offset / size
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = accuracy
    solver.setup(scaled, -offset, scale[None, :], np.ones(1), None, None, None, np.zeros(m), None)
    status = solver.solve()
    z = np.maximum(np.array(solver.result.x, dtype=np.float64), 0.0)
    total = float(scale @ z)
    if not (np.isfinite(total) and total > 0):
        return None, status
    x = scale * _cleaned(scaled, offset, scale, z / total)
    return x / x.sum(), status


def _cleaned(quadratic: Floats, b: Floats, scale: Floats, z: Floats) -> Floats:
    """Set small coefficients to 0 and solve once more for the others, where that is no worse."""
    used = z > SMALL * z.max()
    kept = np.where(used, z, 0.0) / (scale[used] @ z[used])
    k = int(used.sum())
    system = np.zeros((k + 1, k + 1))  # stationary over those used, with sum 1
    system[:k, :k], system[k, :k], system[:k, k] = quadratic[np.ix_(used, used)], scale[used], scale[used]
    exact = np.zeros(len(z))
    exact[used] = np.linalg.lstsq(system, np.append(b[used], 1.0), rcond=None)[0][:k]
    if exact.min() >= 0.0 and scale @ exact > 0.0:
        exact /= scale @ exact
        if optimality(quadratic, b, exact, scale) <= optimality(quadratic, b, kept, scale):
            return exact
    value, other = (float(b @ y - 0.5 * y @ quadratic @ y) for y in (z, kept))
    return kept if other >= value - ACCURACIES[0] else z
