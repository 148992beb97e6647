"""A bundle: planes (u, b) below the losses, with their inner products, that a cutting-plane method keeps."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from partwise.problem import Problem
from partwise.support.arrays import Array, Booleans, Floats, Ints, pointers
from partwise.support.lazy import cached_property

#: A slope with at most this share of nonzero numbers is stored sparsely: late planes have few errors.
SPARSE = 0.25
#: Arrays of a bundle with an entry for each plane.
OF_PLANES = ("offsets", "gram", "at", "idle")


@dataclass(frozen=True)
class Slope:
    """The u of a plane: its nonzero numbers and their places, or all numbers (places None)."""

    values: Floats
    places: NDArray[np.int32] | None
    n_weights: int

    @classmethod
    def of(cls, u: Floats, sparse: bool) -> "Slope":
        if sparse and len(u) < 2**31 and np.count_nonzero(u) <= SPARSE * len(u):
            places = np.flatnonzero(u)
            return cls(u[places], places.astype(np.int32), len(u))
        return cls(u.copy(), None, len(u))

    @property
    def bytes(self) -> int:
        return self.values.nbytes + (self.places.nbytes if self.places is not None else 0)

    @cached_property
    def row(self) -> csr_array:
        """A sparse slope as a matrix of one row, whose products make no copies."""
        return csr_array((self.values, self.places, [0, len(self.values)]), shape=(1, self.n_weights))

    def dot(self, problem: Problem, other: Floats) -> float:
        if self.places is None:
            return problem.dot(self.values, other)
        return float((self.row @ other)[0])

    def add_to(self, total: Floats, scale: float) -> None:
        if self.places is None:
            total += scale * self.values
        else:
            total[self.places] += scale * self.values


@dataclass
class Bundle:
    """Planes b_k - <u_k, w> on weights (d,).

    slopes: u_k. offsets: b_k, (m,). gram: <u_k, u_l>, (m, m). at: <u_k, w> at the method's best weights w, (m,).
    idle: rounds since plane k was last part of the best mixture, (m,).
    """

    n_weights: int
    slopes: list[Slope] = field(default_factory=list)
    offsets: Floats = field(default_factory=lambda: np.empty(0))
    gram: Floats = field(default_factory=lambda: np.empty((0, 0)))
    at: Floats = field(default_factory=lambda: np.empty(0))
    idle: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def size(self) -> int:
        return len(self.slopes)

    @property
    def bytes(self) -> int:
        return sum(slope.bytes for slope in self.slopes)

    def add(self, problem: Problem, u: Floats, b: float, at: float) -> None:
        """Add a plane; at: <u, w> at the best weights."""
        new = Slope.of(u, problem.sums.explicit_weights)
        row = np.array([*(slope.dot(problem, u) for slope in self.slopes), new.dot(problem, u)])
        self.slopes.append(new)
        self.offsets, self.at, self.idle = np.append(self.offsets, b), np.append(self.at, at), np.append(self.idle, 0)
        gram = np.empty((self.size, self.size))
        gram[:-1, :-1], gram[-1], gram[:, -1] = self.gram, row, row
        self.gram = gram

    def mixture(self, x: Floats) -> tuple[Floats, float]:
        u = np.zeros(self.n_weights)
        for k in np.flatnonzero(x).tolist():
            self.slopes[k].add_to(u, float(x[k]))
        return u, float(x @ self.offsets)

    def keep(self, which: Booleans) -> None:
        places = np.flatnonzero(which)
        if len(places) < self.size:
            self.slopes = [self.slopes[k] for k in places.tolist()]
            self.offsets, self.at, self.idle = self.offsets[places], self.at[places], self.idle[places]
            self.gram = self.gram[np.ix_(places, places)]

    def check(self, problem: Problem) -> None:
        """Raise ValueError unless `gram`, times a drawn vector, agrees with the inner products of the slopes."""
        norms = np.sqrt(np.maximum(self.gram.diagonal(), 0.0))
        # Without these weights long slopes would hide short ones.
        x = np.random.default_rng(0).uniform(1.0, 2.0, size=self.size) / np.where(norms > 0, norms, 1.0)
        u, _ = self.mixture(x)
        found = np.array([slope.dot(problem, u) for slope in self.slopes])
        if not (np.abs(found - self.gram @ x) <= 1e-9 * norms * self.size).all():
            raise ValueError("the inner products of its planes are not theirs")

    def to_arrays(self) -> dict[str, Array]:
        given = [np.empty(0, dtype=np.int32) if slope.places is None else slope.places for slope in self.slopes]
        return {
            "values": np.concatenate([np.empty(0), *(slope.values for slope in self.slopes)]),
            "places": np.concatenate([np.empty(0, dtype=np.int32), *given]),
            "n_values": np.array([len(slope.values) for slope in self.slopes], dtype=np.int64),
            "n_places": np.array(list(map(len, given)), dtype=np.int64),
            **{name: getattr(self, name) for name in OF_PLANES},
        }

    def restored(self, arrays: dict[str, Array]) -> "Bundle":
        """Return the bundle of these arrays, on as many weights as this one; ValueError if they are not a bundle's."""
        own = self.to_arrays()
        if set(arrays) != set(own) or any(arrays[name].dtype != own[name].dtype for name in own):
            raise ValueError("it has no bundle of planes")
        m = len(arrays["offsets"])
        shapes = dict.fromkeys(("n_values", "n_places", "offsets", "at", "idle"), (m,)) | {"gram": (m, m)}
        flat = arrays["values"].ndim == arrays["places"].ndim == 1
        if m == 0 or not flat or any(arrays[name].shape != shape for name, shape in shapes.items()):
            raise ValueError("the arrays of its planes do not fit each other")
        if not all(np.isfinite(array).all() for array in arrays.values()) or (arrays["idle"] < 0).any():
            raise ValueError("its planes have invalid numbers")
        copies = {name: arrays[name].copy() for name in OF_PLANES}
        return Bundle(self.n_weights, list(self._slopes(arrays)), **copies)

    def _slopes(self, arrays: dict[str, Array]) -> Iterator[Slope]:
        n_values, n_places = arrays["n_values"], arrays["n_places"]
        dense = (n_places == 0) & (n_values == self.n_weights)
        if (n_values < 0).any() or not (dense | (n_places == n_values)).all():
            raise ValueError("its planes have invalid sizes")
        value_ptr, place_ptr = pointers(n_values), pointers(n_places)
        if value_ptr[-1] != arrays["values"].size or place_ptr[-1] != arrays["places"].size:
            raise ValueError("its planes have invalid sizes")
        for k in range(len(n_values)):
            values = arrays["values"][value_ptr[k] : value_ptr[k + 1]].copy()
            places = arrays["places"][place_ptr[k] : place_ptr[k + 1]].copy()
            if places.size and not (places[0] >= 0 and places[-1] < self.n_weights and (np.diff(places) > 0).all()):
                raise ValueError("its planes have invalid places")
            yield Slope(values, None if dense[k] and self.n_weights else places, self.n_weights)
