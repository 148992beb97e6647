"""What a solver knows between two steps, in a form that can be written to a file and read back to the same bits."""

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._core import WorkingSets

Array = NDArray[Any]
S = TypeVar("S", bound="State")


@dataclass(kw_only=True)
class State:
    """Counters that every solver has; a solver adds its arrays, numbers and generator as further fields.

    epoch: steps made. visits: examples visited, every trial step counted. checked_*: what the last certificate said,
    for choosing when to issue the next one. gain: the solver's own measure of the last step's progress.
    """

    epoch: int = 0
    visits: int = 0
    gain: float = float("inf")
    checked_epoch: int = 0
    checked_gap: float = float("inf")
    checked_primal: float = 0.0
    checked_gain: float = 0.0


def pack(state: State) -> tuple[dict[str, Array], dict[str, Any]]:
    """(arrays, everything else as JSON values). Floats survive JSON exactly; a generator becomes its state.

    Working sets become arrays named "field.array".
    """
    arrays: dict[str, Array] = {}
    scalars: dict[str, Any] = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif isinstance(value, WorkingSets):
            arrays |= {f"{field.name}.{name}": array for name, array in value.to_arrays().items()}
        elif isinstance(value, np.random.Generator):
            scalars[field.name] = {"generator": value.bit_generator.state}
        else:
            scalars[field.name] = value.item() if isinstance(value, np.generic) else value
    return arrays, scalars


def unpack(cls: type[S], arrays: dict[str, Array], scalars: dict[str, Any]) -> S:
    """The inverse of `pack`."""
    values: dict[str, Any] = {**scalars}
    parts: dict[str, dict[str, Array]] = {}
    for key, array in arrays.items():
        name, _, part = key.partition(".")
        if part:
            parts.setdefault(name, {})[part] = array
        else:
            values[name] = array
    values |= {name: WorkingSets.from_arrays(**own) for name, own in parts.items()}
    names = {field.name for field in fields(cls)}
    if names != set(values):
        raise ValueError(f"the saved state's fields are not those of {cls.__name__}: {sorted(names ^ set(values))}")
    for name, value in values.items():
        if isinstance(value, dict) and "generator" in value:
            kind = getattr(np.random, value["generator"]["bit_generator"])
            bits = kind()
            bits.state = value["generator"]
            values[name] = np.random.Generator(bits)
    return cls(**values)
