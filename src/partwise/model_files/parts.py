"""What an estimator gives to a model file and takes from one: settings (JSON) and arrays, read with checks."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.features import Vocabulary
from partwise.model_files.container import FORMAT_VERSION, Json
from partwise.model_files.errors import ModelFormatError
from partwise.support.arrays import Bytes, Floats, InputRows, Ints, pointers
from partwise.support.lazy import cached_property

Array = NDArray[Any]


@dataclass(eq=False)
class ModelParts:
    """A model, or a part of one: its kind (which class reads it), settings (JSON values) and arrays, by name.

    Arrays are of float64, float32, int64, int32, uint16 or uint8; `save(dtype="float32")` rounds those whose name ends
    in "weights". version: that of the file's format when it is read; when it is written, the first that has all of it.
    """

    kind: str
    settings: dict[str, Json] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    version: int = FORMAT_VERSION

    def add(self, name: str, part: ModelParts) -> None:
        """Put a part into this one."""
        self.settings[name] = {"kind": part.kind, **part.settings}
        self.arrays.update({f"{name}.{key}": array for key, array in part.arrays.items()})

    def has(self, name: str) -> bool:
        """Return whether there is a setting or a part of this name."""
        return self.settings.get(name) is not None

    def part(self, name: str) -> ModelParts:
        """Return the part that `add` put in."""
        settings = self.settings.get(name)
        if not isinstance(settings, dict) or not isinstance(settings.get("kind"), str):
            raise ModelFormatError(f"lacks its part {name!r}")
        rest = {key: value for key, value in settings.items() if key != "kind"}
        return ModelParts(settings["kind"], rest, self._arrays_of_parts.get(name, {}), self.version)

    @cached_property
    def _arrays_of_parts(self) -> dict[str, dict[str, Array]]:
        """The arrays of each part, found once: a model may have thousands of parts."""
        found: dict[str, dict[str, Array]] = {}
        for key, array in self.arrays.items():
            name, dot, rest = key.partition(".")
            if dot:
                found.setdefault(name, {})[rest] = array
        return found

    def integer(self, name: str, low: int = 0, high: int = 1 << 40) -> int:
        """Return a whole number between `low` and `high`."""
        value = self.settings.get(name)
        if type(value) is not int or not low <= value <= high:
            raise self._wrong(name, f"expected a number from {low} to {high}")
        return value

    def _wrong(self, name: str, why: str) -> ModelFormatError:
        text = repr(self.settings.get(name))
        return ModelFormatError(f"has {name} = {text if len(text) <= 40 else text[:40] + '...'}, {why}")

    def flag(self, name: str) -> bool:
        """Return True or False."""
        value = self.settings.get(name)
        if type(value) is not bool:
            raise self._wrong(name, "expected true or false")
        return value

    def number(self, name: str) -> float:
        """Return a float, which may be written as {"float": "inf"}."""
        value = self.settings.get(name)
        if isinstance(value, dict) and value.get("float") in ("inf", "-inf", "nan"):
            return float(value["float"])
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "expected a number")
        if abs(value) > sys.float_info.max:
            raise self._wrong(name, "a number beyond double precision")
        return float(value)

    def text(self, name: str) -> str:
        """Return a string."""
        value = self.settings.get(name)
        if type(value) is not str:
            raise self._wrong(name, "expected text")
        return value

    def floats(self, name: str, *shape: int | None) -> Floats:
        """Return finite numbers of this shape (None: any length) as float64."""
        return self.stored_floats(name, *shape).astype(np.float64, copy=False)

    def stored_floats(self, name: str, *shape: int | None) -> InputRows:
        """Return finite numbers of this shape (None: any length), as float64 or float32."""
        found = self._array(name, "f", shape)
        # If the sum is finite, so are all values. If not, it may have overflowed: then each value is checked.
        with np.errstate(invalid="ignore", over="ignore"):
            finite = math.isfinite(float(found.sum(dtype=np.float64)))
        if not finite and not np.isfinite(found).all():
            raise ModelFormatError(f"has numbers in {name!r} that are not finite")
        return found

    def ints(self, name: str, *shape: int | None, low: int, high: int) -> Ints:
        """Return whole numbers >= `low` and < `high`, as int64."""
        return self.columns(name, *shape, low=low, high=high).astype(np.int64, copy=False)

    def columns(self, name: str, *shape: int | None, low: int = 0, high: int) -> Array:
        """Return whole numbers >= `low` and < `high`, as uint16 where they are stored so, else as int64."""
        found = self._array(name, "iu", shape)
        if found.size and not (int(found.min()) >= low and int(found.max()) < high):
            raise ModelFormatError(f"has numbers in {name!r} outside [{low}, {high})")
        return found if found.dtype == np.uint16 else found.astype(np.int64, copy=False)

    def pointers(self, name: str, n: int | None, end: int) -> Ints:
        """Return offsets of `n` runs (None: any number): from 0 to `end`, never falling."""
        found = self._array(name, "i", (None if n is None else n + 1,)).astype(np.int64, copy=False)
        if not len(found) or found[0] != 0 or found[-1] != end or bool((found[1:] < found[:-1]).any()):
            raise ModelFormatError(f"has offsets in {name!r} that are not in order from 0 to {end}")
        return found

    def length(self, name: str) -> int:
        """Return the length of a one-dimensional array."""
        found = self.arrays.get(name)
        if found is None or found.ndim != 1:
            raise ModelFormatError(f"lacks its array {name!r}")
        return len(found)

    def bytes(self, name: str, *shape: int | None) -> Bytes:
        """Return bytes of this shape."""
        return self._array(name, "u1", shape)

    def mask(self, name: str, *shape: int | None) -> NDArray[np.bool_]:
        """Return zeros and ones as booleans."""
        found = self._array(name, "u1", shape)
        if found.size and int(found.max()) > 1:
            raise ModelFormatError(f"has values in {name!r} that are neither 0 nor 1")
        return found.astype(bool)

    def vocabulary(self) -> Vocabulary:
        """Return the strings of `encode_names` as a vocabulary; ModelFormatError unless they are UTF-8 and differ."""
        data = self.bytes("bytes", None)
        offsets = self.pointers("offsets", None, len(data))
        try:
            return Vocabulary(np.ascontiguousarray(data), np.ascontiguousarray(offsets))
        except ValueError as error:
            raise ModelFormatError(f"has a wrong name: {error}") from None

    def names(self) -> list[str]:
        """Return the strings of `encode_names`, of which some may be equal; ModelFormatError unless they are UTF-8."""
        data = self.bytes("bytes", None)
        offsets = self.pointers("offsets", None, len(data)).tolist()
        raw = data.tobytes()
        try:
            return [raw[a:b].decode() for a, b in pairwise(offsets)]
        except UnicodeDecodeError as error:
            raise ModelFormatError(f"has names that are not UTF-8 ({error.reason})") from None

    def _array(self, name: str, kinds: str, shape: tuple[int | None, ...]) -> Array:
        found = self.arrays.get(name)
        if found is None:
            raise ModelFormatError(f"lacks its array {name!r}")
        right = found.dtype == np.uint8 if kinds == "u1" else found.dtype.kind in kinds
        if not right or len(shape) != found.ndim or any(map(lambda n, have: n not in (None, have), shape, found.shape)):
            wanted = tuple("any" if each is None else each for each in shape)
            got = f"{name!r} of type {found.dtype} and shape {found.shape}"
            raise ModelFormatError(f"has {got}, expected shape {wanted}")
        return found


def encode_names(names: Sequence[str]) -> dict[str, Array]:
    """Return strings as arrays `bytes` and `offsets`; ValueError for one that is not text (a lone surrogate)."""
    try:
        coded = [name.encode() for name in names]
    except UnicodeEncodeError:
        wrong = next(name for name in names if any("\ud800" <= letter <= "\udfff" for letter in name))
        raise ValueError(f"the name {wrong!r} holds a lone surrogate, which is not text") from None
    offsets = pointers(np.fromiter(map(len, coded), dtype=np.int64, count=len(coded)))
    return {"bytes": np.frombuffer(b"".join(coded), dtype=np.uint8), "offsets": offsets}
