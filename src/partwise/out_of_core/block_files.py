"""Files of dual blocks: the dual variables of one batch's examples between two visits of it.

    8 bytes    length of the header, little-endian
    header     JSON: format, version, numbers of the state, (name, type, shape) of each array
    data       the arrays end to end, little-endian

Whoever reads a file must know its digest: the SHA-256 of the header and of each array's CRC-32, which tells damage, not
forgery (a SHA-256 of all bytes would take as long as the work on them). Vectors with a number per weight are left out,
except the block's plane u_k; of a sparse plane the numbers other than 0 are written.
"""

import hashlib
import json
import math
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partwise.io.files import atomic_write
from partwise.model_files.errors import PartitionError
from partwise.solvers.engine.state import generator_of, pack
from partwise.solvers.online.base import BlockSolver, OnlineState
from partwise.solvers.working_sets.kept_labellings import KeptLabellings
from partwise.support.arrays import Floats

Array = NDArray[Any]

FORMAT, VERSION = "partwise dual block", 1
#: Types of arrays; bytes of a header, at most.
_TYPES = {"<f8", "<i8"}
_MOST_HEADER = 1 << 24
_PLANE = "block plane"
#: How far a plane that was updated may be from that of its dual variables, relative to its largest number.
DRIFT = 1e-6


class Block(NamedTuple):
    """A state without its vectors, and the block's plane u_k."""

    state: Any
    plane: Floats


def write_block(path: str, solver: BlockSolver[Any], block: Block, spare: str = "") -> bytes:
    """Write a block in one step and return the digest. The file may be lost with the machine until `os.fsync`.

    spare: a file that is not needed, to be overwritten if it exists: four times as fast as a new file.
    """
    arrays, scalars = pack(block.state)
    arrays = {name: array for name, array in arrays.items() if name not in solver.vectors}
    used = np.flatnonzero(block.plane)
    if 2 * len(used) < len(block.plane):
        arrays |= {f"{_PLANE}.indices": used, f"{_PLANE}.values": block.plane[used]}
    else:
        arrays[_PLANE] = block.plane
    plain = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    described = [(name, array.dtype.str, array.shape) for name, array in plain.items()]
    text = json.dumps({"format": FORMAT, "version": VERSION, "numbers": scalars, "arrays": described})
    header = text.encode() + b" " * (-len(text.encode()) % 8)
    digest = hashlib.sha256(header)
    with _open_for_writing(path, spare) as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for array in plain.values():
            _add(digest, array)
            file.write(array.reshape(-1).view(np.uint8).data)
    return digest.digest()


@contextmanager
def _open_for_writing(path: str, spare: str) -> Iterator[BinaryIO]:
    """Open a file to write to, which gets its name when it is complete."""
    try:
        file = open(spare, "r+b") if spare else None  # noqa: SIM115
    except FileNotFoundError:  # another process did the same work, and has used the file
        file = None
    if file is None:
        with atomic_write(path, sync=False) as new:
            yield new
        return
    with file:
        yield file
        file.truncate()
    os.replace(spare, path)


def read_block(path: str, digest: bytes, solver: BlockSolver[Any], n_examples: int, n_weights: int) -> Block:
    """Return the block of a file; PartitionError if the file is missing, damaged, or another one.

    `weights` of the state is empty; other vectors are zero.
    """
    try:
        with open(path, "rb") as file:
            numbers, arrays, found = _read(file)
        if found != digest:
            raise ValueError("is damaged, or is not the file that was written")
        plane = _plane(arrays, n_weights)
        return Block(_state(solver, arrays, numbers, n_examples, n_weights), plane)
    except FileNotFoundError:
        raise PartitionError(
            "is missing: dual variables of the run lay there (a copy of a checkpoint is of no use once the run has "
            "gone on, nor without the folder of its dual variables)",
            path,
        ) from None
    except OSError as error:
        raise PartitionError(f"cannot be read ({(error.strerror or str(error)).lower()})", path) from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, struct.error) as error:
        raise PartitionError(str(error) or "cannot be read", path) from None


def check_plane(kept: Floats, summed: Floats, message: str) -> None:
    """Raise ValueError unless a plane that was updated equals that of the dual variables, except for rounding."""
    size = 1.0 + max(float(np.abs(kept).max(initial=0.0)), float(np.abs(summed).max(initial=0.0)))
    if not float(np.abs(kept - summed).max(initial=0.0)) <= DRIFT * size:
        raise ValueError(message)


def _read(file: BinaryIO) -> tuple[dict[str, Any], dict[str, Array], bytes]:
    size = os.fstat(file.fileno()).st_size
    start = file.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else size + 1
    if length > min(_MOST_HEADER, size):
        raise ValueError("is cut off or damaged")
    header = file.read(length)
    found = json.loads(header)
    if not isinstance(found, dict) or found.get("format") != FORMAT or found.get("version") != VERSION:
        raise ValueError("is not a file of dual blocks of this version")
    digest, arrays = hashlib.sha256(header), {}
    described = [(str(name), str(kind), tuple(map(int, shape))) for name, kind, shape in found["arrays"]]
    sizes = [8 * math.prod(shape) for _, _, shape in described]
    if any(each < 0 for _, _, shape in described for each in shape) or 8 + length + sum(sizes) != size:
        raise ValueError("is cut off or damaged")
    for name, kind, shape in described:
        if kind not in _TYPES or name in arrays:
            raise ValueError("is damaged")
        array = np.empty(shape, dtype=kind)
        if file.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:  # type: ignore[attr-defined]
            raise ValueError("is cut off: it became shorter while it was read")
        _add(digest, array)
        arrays[name] = array
    return dict(found["numbers"]), arrays, digest.digest()


def _add(digest: Any, array: Array) -> None:
    digest.update(struct.pack("<I", zlib.crc32(array.reshape(-1).view(np.uint8).data)))


def _plane(arrays: dict[str, Array], n_weights: int) -> Floats:
    if _PLANE in arrays:
        plane: Floats = arrays.pop(_PLANE)
    else:
        indices, values = arrays.pop(f"{_PLANE}.indices"), arrays.pop(f"{_PLANE}.values")
        plane = np.zeros(n_weights)
        if indices.min(initial=0) < 0 or indices.max(initial=0) >= n_weights:
            raise ValueError("has a plane of other weights")
        plane[indices] = values
    if plane.shape != (n_weights,) or not np.isfinite(plane).all():
        raise ValueError("has a plane of other weights")
    return plane


def _state(
    solver: BlockSolver[Any], arrays: dict[str, Array], numbers: dict[str, Any], n_examples: int, n_weights: int
) -> OnlineState:
    values: dict[str, Any] = dict(numbers)
    sets: dict[str, dict[str, Array]] = {}
    for key, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"has an invalid number in {key}")
        name, _, part = key.partition(".")
        if part:
            sets.setdefault(name, {})[part] = array
        else:
            values[name] = array
    values |= {name: KeptLabellings.from_arrays([n_examples], **parts) for name, parts in sets.items()}
    values["rng"] = generator_of(values["rng"])
    for cls in solver.state_types:
        vectors = {item.name for item in fields(cls) if item.name in solver.vectors}
        if {item.name for item in fields(cls) if item.init} == {*values, *vectors}:
            values |= {name: np.zeros(0 if name == "weights" else n_weights) for name in vectors}
            return cls(**values)
    raise ValueError(f"is not of solver {solver.name!r}")


def remove_files(paths: Iterable[str]) -> None:
    """Remove files, if they exist."""
    for path in paths:
        with suppress(FileNotFoundError):
            os.remove(path)
