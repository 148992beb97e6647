"""Kernel functions of two rows of input.

    linear        <x, y>
    polynomial    (gamma <x, y> + coef0)^degree
    rbf           exp(-gamma |x - y|^2)
    precomputed   the rows are the kernel's values themselves, one column per training row

gamma None is 1 / (number of inputs * variance of the training rows' values), as scikit-learn's "scale". `bias` is a
constant added to the kernel: what an attribute that every row has would add.
"""

from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any, ClassVar, Self

import numpy as np

from partwise._core import KernelFunction
from partwise.features import Attributes

#: Values with a larger variance have squares that are no double precision numbers.
MOST_VARIANCE = 1e300


@dataclass(frozen=True)
class Linear:
    """<x, y> + bias."""

    name: ClassVar[str] = "linear"
    bias: float = 0.0

    def __post_init__(self) -> None:
        self.core()

    def core(self) -> KernelFunction:
        """The function in the core; ValueError if its parameters make no kernel."""
        return KernelFunction("linear", bias=self.bias)

    def fitted(self, rows: Any) -> Self:
        """The kernel with everything that depends on the training rows settled."""
        return self


@dataclass(frozen=True)
class Polynomial:
    """(gamma <x, y> + coef0)^degree + bias."""

    name: ClassVar[str] = "polynomial"
    degree: int = 3
    gamma: float | None = None
    coef0: float = 1.0
    bias: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or not isinstance(self.degree, int):
            raise ValueError(f"degree must be an integer >= 1, got {self.degree!r}")
        _check_gamma(self.gamma)
        self.core()

    def core(self) -> KernelFunction:
        """The function in the core; ValueError if its parameters make no kernel."""
        gamma = 1.0 if self.gamma is None else self.gamma
        return KernelFunction("polynomial", gamma, self.coef0, self.degree, self.bias)

    def fitted(self, rows: Any) -> Self:
        """The kernel with everything that depends on the training rows settled."""
        return self if self.gamma is not None else replace(self, gamma=scale_gamma(rows))


@dataclass(frozen=True)
class RBF:
    """exp(-gamma |x - y|^2) + bias."""

    name: ClassVar[str] = "rbf"
    gamma: float | None = None
    bias: float = 0.0

    def __post_init__(self) -> None:
        _check_gamma(self.gamma)
        self.core()

    def core(self) -> KernelFunction:
        """The function in the core; ValueError if its parameters make no kernel."""
        return KernelFunction("rbf", 1.0 if self.gamma is None else self.gamma, bias=self.bias)

    def fitted(self, rows: Any) -> Self:
        """The kernel with everything that depends on the training rows settled."""
        return self if self.gamma is not None else replace(self, gamma=scale_gamma(rows))


@dataclass(frozen=True)
class Precomputed:
    """Rows of kernel values, a column for each training row."""

    name: ClassVar[str] = "precomputed"

    def fitted(self, rows: Any) -> Self:
        """The kernel itself."""
        return self


KernelLike = Linear | Polynomial | RBF | Precomputed

_KERNELS: dict[str, type[KernelLike]] = {
    "linear": Linear,
    "polynomial": Polynomial,
    "poly": Polynomial,
    "rbf": RBF,
    "precomputed": Precomputed,
}


def get_kernel(kernel: str | KernelLike, **parameters: Any) -> KernelLike:
    """The kernel of this name with these parameters; None among them means the default. A kernel stays what it is.

    Raises
    ------
    ValueError
        If the name is unknown, or the kernel has no such parameter.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    if isinstance(kernel, KernelLike):
        if given:
            raise ValueError(f"{', '.join(given)}: a kernel's name is needed, got {kernel!r}")
        return kernel
    if kernel not in _KERNELS:
        raise ValueError(f"unknown kernel {kernel!r}; there are {', '.join(_KERNELS)}")
    cls = _KERNELS[kernel]
    known = [item.name for item in fields(cls)]
    unknown = [name for name in given if name not in known]
    if unknown:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise ValueError(f"kernel {kernel!r} has no parameter {', '.join(unknown)}; {has}")
    return cls(**given)


def scale_gamma(rows: Any) -> float:
    """1 / (number of inputs * variance of all values), zeros included; 1 if all values are the same."""
    if isinstance(rows, Attributes):
        present = rows.attributes >= 0
        values = np.ones(int(present.sum())) if rows.values is None else rows.values[present]
        size, n_inputs = rows.n_rows * rows.num_attributes, rows.num_attributes
        mean = float(values.sum()) / max(size, 1)
        variance = (float(((values - mean) ** 2).sum()) + (size - len(values)) * mean * mean) / max(size, 1)
    else:
        n_inputs, variance = rows.shape[1], float(rows.var())
    if not variance <= MOST_VARIANCE:
        column, value = _largest(rows)
        raise ValueError(f"X: column {column} has a value of {value:g}: the variance is beyond double precision")
    return 1.0 / (n_inputs * variance) if variance > 0 else 1.0


def _largest(rows: Any) -> tuple[int, float]:
    """The column and the value that is the largest in size."""
    if isinstance(rows, Attributes):
        values = np.ones(len(rows.attributes)) if rows.values is None else rows.values
        at = int(np.argmax(np.abs(values)))
        return int(rows.attributes[at]), float(values[at])
    at = int(np.argmax(np.abs(rows)))
    return at % rows.shape[1], float(rows.flat[at])


def _check_gamma(gamma: Any) -> None:
    if gamma is None:
        return
    if isinstance(gamma, bool) or not isinstance(gamma, (int, float, np.number)) or not (isfinite(gamma) and gamma > 0):
        raise ValueError(f"gamma must be a number > 0 or None, got {gamma!r}")
