"""The state of a solver between two steps, in a form that can be written to a file and read back to the same bits."""

import math
from copy import deepcopy
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from partwise.solvers.planes.bundle import Bundle
from partwise.solvers.working_sets.kept_labellings import KeptLabellings
from partwise.support.arrays import Array

S = TypeVar("S", bound="State")

#: Generators of random numbers that a saved state may have.
BIT_GENERATORS = {
    kind.__name__: kind
    for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
}
#: Counters are below this.
MOST = 2**53


@dataclass(kw_only=True)
class State:
    """Counters that every solver has; a solver adds its arrays, numbers and generator as further fields.

    epoch: steps made. visits: examples visited, every trial step counted. checked_*: values of the last certificate.
    gain: the solver's own measure of the last step's progress. A field with init=False is not written to files: it can
    be made again from the others, to the same bits.
    """

    #: Fields whose numbers are above 0.
    positive: ClassVar[frozenset[str]] = frozenset()
    #: Arrays that are empty at first and later have one number per weight.
    growing: ClassVar[frozenset[str]] = frozenset()

    epoch: int = 0
    visits: int = 0
    gain: float = float("inf")
    checked_epoch: int = 0
    checked_gap: float = float("inf")
    checked_primal: float = 0.0
    checked_gain: float = 0.0

    def copied(self) -> Self:
        """Return a copy of the state, with arrays of its own."""
        return type(self)(**{field.name: deepcopy(getattr(self, field.name)) for field in _saved(self)})

    def complaint(self, fresh: Self) -> str:
        """Return what is wrong with a state that was read from a file, or "". fresh: one before the first step."""
        return "its last certificate is from a later step than its last one" if self.checked_epoch > self.epoch else ""


def pack(state: State) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return (arrays, other values as JSON), from which `unpack` makes the same bits; parts are "field.array"."""
    arrays: dict[str, Array] = {}
    scalars: dict[str, Any] = {}
    for field in _saved(state):
        value = getattr(state, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif isinstance(value, KeptLabellings | Bundle):
            arrays |= {f"{field.name}.{name}": array for name, array in value.to_arrays().items()}
        elif isinstance(value, np.random.Generator):
            scalars[field.name] = {"generator": _plain(value.bit_generator.state)}
        else:
            scalars[field.name] = value.item() if isinstance(value, np.generic) else value
    return arrays, scalars


def unpack(fresh: S, arrays: dict[str, Array], scalars: dict[str, Any]) -> S:
    """Return the state that `pack` took apart; ValueError unless types, shapes and ranges are like those of `fresh`."""
    parts: dict[str, dict[str, Array]] = {}
    for key, array in arrays.items():
        name, _, part = key.partition(".")
        parts.setdefault(name, {})[part] = array
    names = [field.name for field in _saved(fresh)]
    if set(names) != {*parts, *scalars} or len(names) != len(parts) + len(scalars):
        odd = sorted(set(names) ^ {*parts, *scalars})[:3]
        raise ValueError(f"its fields are not those of {type(fresh).__name__}: {odd}")
    values: dict[str, Any] = {}
    for name in names:
        like, own = getattr(fresh, name), parts.get(name, {})
        if isinstance(like, KeptLabellings):
            values[name] = _working_sets(name, own, like)
        elif isinstance(like, Bundle):
            values[name] = like.restored(own)
        elif isinstance(like, np.ndarray):
            grown = fresh.weights.shape if name in fresh.growing else like.shape  # type: ignore[attr-defined]
            values[name] = _array(name, own, like, {like.shape, grown}, name in fresh.positive)
        elif name not in scalars:
            raise ValueError(f"{name} is an array")
        elif isinstance(like, np.random.Generator):
            values[name] = generator_of(scalars[name])
        else:
            values[name] = _scalar(name, scalars[name], like, name in fresh.positive)
    state = type(fresh)(**values)
    if complaint := state.complaint(fresh):
        raise ValueError(complaint)
    return state


def _saved(state: State) -> "list[Field[Any]]":
    return [field for field in fields(state) if field.init]


def _array(name: str, parts: dict[str, Array], like: Array, shapes: set[tuple[int, ...]], positive: bool) -> Array:
    array = parts.get("")
    if array is None or len(parts) > 1 or array.dtype != like.dtype or array.shape not in shapes:
        raise ValueError(f"{name} is not an array of the kind, type and shape expected in this run")
    least = array.min(initial=1)
    if not np.isfinite(array).all() or (positive and not least > 0) or (array.dtype.kind == "i" and least < 0):
        raise ValueError(f"{name} has invalid numbers")
    return array.copy()  # what was read must not be written to


def _working_sets(name: str, parts: dict[str, Array], like: KeptLabellings) -> KeptLabellings:
    own = like.to_arrays()
    if set(parts) != set(own) or any(parts[key].dtype != own[key].dtype or parts[key].ndim != 1 for key in own):
        raise ValueError(f"{name} is not a set of labellings")
    if len(parts["example_ptr"]) != len(own["example_ptr"]) or (parts["coefficients"] < 0).any():
        raise ValueError(f"{name} has invalid labellings")
    return KeptLabellings.from_arrays(like.sizes, **{key: array.copy() for key, array in parts.items()})


def _scalar(name: str, value: Any, like: Any, positive: bool) -> Any:
    if like is None or isinstance(like, bool | str):
        good = type(value) is type(like)
    elif isinstance(like, int | np.integer):
        good = type(value) is int and min(int(like), 0) <= value < MOST
    else:
        if type(value) is int and abs(value) < MOST:
            value = float(value)
        good = type(value) is float and not math.isnan(value)
    if not good or (positive and not value > 0):
        raise ValueError(f"{name} is {str(value)[:40]}, which is invalid")
    return value


def generator_of(value: Any) -> np.random.Generator:
    """Return the generator that `pack` wrote; ValueError if the value is invalid."""
    try:
        own = value["generator"]
        bits = BIT_GENERATORS[own["bit_generator"]](0)
        bits.state = own
        if _plain(bits.state) != own:
            raise ValueError("not a state")
    except (KeyError, TypeError, ValueError, OverflowError, IndexError, AttributeError):
        raise ValueError("the state of its random number generator is invalid") from None
    return np.random.Generator(bits)


def _plain(value: Any) -> Any:
    """Return the value with lists in place of arrays, as JSON needs it."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
