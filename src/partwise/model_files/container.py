"""Model files and checkpoints: a safetensors container with a digest over everything in it.

    8 bytes    length of the header, little-endian
    header     JSON, beginning {"__metadata__":{"sha256":"<64 hexadecimal digits>" and padded with spaces to 8 bytes
    data       the arrays end to end, little-endian

The digest is the SHA-256 of the whole file with its own 64 digits replaced by zeros, at the same place in every format
version. It is checked before the header is read as JSON, so what is read is what was written; what follows guards
against files that were made on purpose. A large file is mapped, not read; the core copies, or looks at again, whatever
an index depends on, so that a program that writes to the file meanwhile does no harm beyond wrong weights.
"""

import hashlib
import io
import json
import math
import mmap
import os
import stat
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..io.files import standard_input
from .errors import ContainerError, ModelFormatError

Array = NDArray[Any]

FORMAT = "partwise model"
#: 2: weights of hashed features where most are zero.
FORMAT_VERSION = 2


class Kind(NamedTuple):
    """A kind of file: the name of its format, the newest version that is known here, what to call it in messages."""

    format: str
    version: int
    noun: str
    error: type[ContainerError]
    hint: str = ""


MODEL = Kind(
    FORMAT,
    FORMAT_VERSION,
    "model file",
    ModelFormatError,
    " (models are loaded from files that `save` wrote, never from pickles)",
)

_PREFIX = b'{"__metadata__":{"sha256":"'
_BLANK = b"0" * 64
_DIGEST = slice(8 + len(_PREFIX), 8 + len(_PREFIX) + 64)
#: Headers hold labels and settings, no more; safetensors draws the line there too.
MAX_HEADER = 100_000_000
_CHUNK = 1 << 24
#: Bytes from which a file is mapped into memory.
_LARGE = 1 << 26

_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U16": "<u2", "U8": "|u1"}
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}


def write(file: BinaryIO, metadata: dict[str, str], arrays: dict[str, Array]) -> None:
    """Write metadata and arrays to an open file. `read` asks for a "format" and a "format_version" in the metadata."""
    # The widest first: every array is then aligned to its own width.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    plain = [np.ascontiguousarray(arrays[name]).astype(_little(arrays[name]), copy=False) for name in order]
    entries: dict[str, Any] = {"__metadata__": {"sha256": _BLANK.decode(), **metadata}}
    begin = 0
    for name, array in zip(order, plain, strict=True):
        end = begin + array.nbytes
        entries[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(entries, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise ValueError(f"labels and settings take {len(text)} bytes, a file has room for {MAX_HEADER}")
    head = bytearray(struct.pack("<Q", len(text)) + text)
    assert head[8 : _DIGEST.start] == _PREFIX
    digest = hashlib.sha256(head)
    for array in plain:
        for chunk in _chunks(array):
            digest.update(chunk)
    head[_DIGEST] = digest.hexdigest().encode()
    file.write(head)
    for array in plain:
        for chunk in _chunks(array):
            file.write(chunk)


def digest_of(path: str | os.PathLike[str]) -> str:
    """The digest that a file says it has, which `write` has just written."""
    with open(path, "rb") as file:
        return file.read(_DIGEST.stop)[_DIGEST].decode("ascii")


def read(
    path: str | os.PathLike[str], kind: Kind = MODEL, data: bytes | None = None
) -> tuple[dict[str, str], dict[str, Array]]:
    """(metadata, arrays) of a file of this kind. Arrays are read-only views of one block of memory.

    data: its bytes, if they were read already.

    Raises
    ------
    ContainerError
        (the kind's own) if the file is not a whole and undamaged one of a known version.
    OSError
        If it cannot be read.
    """
    try:
        if data is not None:
            block, size = _read_checked(io.BytesIO(data), kind)
        elif os.fspath(path) == "-":
            block, size = _read_checked(standard_input(), kind)
        else:
            with open(path, "rb") as file:
                block, size = _read_checked(file, kind)
        return _parse(block, size, kind)
    except IsADirectoryError:
        raise kind.error(f"is a directory, not a {kind.noun}", path) from None
    except ContainerError as error:
        raise kind.error(error.message, path) from None


def _little(array: Array) -> np.dtype[Any]:
    dtype = array.dtype.newbyteorder("<")
    if dtype not in _NAMES:
        raise TypeError(f"an array of {array.dtype} has no place in a file")
    return dtype


def _chunks(array: Array) -> Iterator[memoryview]:
    flat = array.reshape(-1).view(np.uint8).data
    for start in range(0, len(flat), _CHUNK):
        yield flat[start : start + _CHUNK]


def _read_checked(file: BinaryIO, kind: Kind) -> tuple[Array, int]:
    """All bytes of the file and the length of its header, once the digest is known to be right."""
    start = file.read(_DIGEST.stop)
    if len(start) < 8:
        raise ContainerError(f"is empty or far too short for a {kind.noun}")
    if start[8 : _DIGEST.start] != _PREFIX[: len(start) - 8] or len(start) == 8:
        raise ContainerError(f"is not a {kind.noun}{kind.hint}")
    if len(start) < _DIGEST.stop:
        raise ContainerError("is cut off")
    (size,) = struct.unpack("<Q", start[:8])
    length = None
    if not isinstance(file, io.BytesIO):
        status = os.fstat(file.fileno())
        length = status.st_size if stat.S_ISREG(status.st_mode) else None
    if size > MAX_HEADER or (length is not None and 8 + size > length) or size < len(_PREFIX) + 64:
        raise ContainerError(f"is damaged: its header claims {size} bytes")
    if length is None:  # a pipe
        rest = start + file.read()
        block = np.frombuffer(rest, dtype=np.uint8)
        found = hashlib.sha256(rest[: _DIGEST.start] + _BLANK)
        found.update(memoryview(rest)[_DIGEST.stop :])
    else:
        block, found = _read_hashed(file, start, length)
    if start[_DIGEST].decode("latin-1") != found.hexdigest():
        raise ContainerError("is damaged: its content does not match its digest")
    return block, size


def _read_hashed(file: BinaryIO, start: bytes, length: int) -> tuple[Array, Any]:
    """The file's bytes and their digest."""
    if length > _LARGE:
        # The page cache is read in place: a copy would take as long as the digest, most of it for new pages.
        block = np.frombuffer(mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ), dtype=np.uint8)
    else:
        block = np.frombuffer(start + file.read(length - len(start)), dtype=np.uint8)
    if len(block) != length:
        raise ContainerError("is cut off: it became shorter while it was read")
    digest = hashlib.sha256(start[: _DIGEST.start] + _BLANK)
    digest.update(block.data[_DIGEST.stop :])
    return block, digest


def _parse(block: Array, size: int, kind: Kind = MODEL) -> tuple[dict[str, str], dict[str, Array]]:
    text = block[8 : 8 + size].tobytes()
    try:
        header = parse_json(text.decode())
    except (ValueError, RecursionError) as error:
        raise ContainerError(f"has a header that cannot be read ({error})") from None
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ContainerError("has a header without metadata")
    if metadata.get("format") != kind.format:
        raise ContainerError(f"is not a {kind.noun} (format {metadata.get('format')!r})")
    check_version(metadata.get("format_version", ""), kind)
    data = block[8 + size :]
    spans: list[tuple[int, int]] = []
    arrays = {name: _array(data, name, entry, spans) for name, entry in header.items()}
    end = 0
    for begin, stop in sorted(spans):
        if begin != end:
            raise ContainerError(f"has arrays that overlap or leave a hole at byte {end} of its data")
        end = stop
    if end != len(data):
        raise ContainerError(f"has {len(data)} bytes of data, its arrays take {end}")
    return metadata, arrays


def check_version(version: str, kind: Kind = MODEL) -> None:
    """ContainerError for a version that this release does not know."""
    if not (version.isascii() and version.isdigit() and 0 < len(version) < 10 and int(version) > 0):
        raise ContainerError(f"has no valid format version ({version[:40]!r})")
    if int(version) > kind.version:
        raise ContainerError(
            f"has format version {version}; this release reads versions up to {kind.version}: update partwise"
        )


def _array(data: Array, name: str, entry: Any, spans: list[tuple[int, int]]) -> Array:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ContainerError(f"has an invalid description of the array {name!r}")
    shape, offsets, code = entry["shape"], entry["data_offsets"], entry["dtype"]
    if not isinstance(code, str) or code not in _DTYPES:
        raise ContainerError(f"has an array {name!r} of unknown type {code!r}")
    lists = isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2 and len(shape) <= 8
    if not lists or not all(type(value) is int and 0 <= value < 1 << 62 for value in [*shape, *offsets]):
        raise ContainerError(f"has an array {name!r} whose shape or place is invalid")
    begin, end = offsets
    dtype = np.dtype(_DTYPES[code])
    if not begin <= end <= len(data) or math.prod(shape) * dtype.itemsize != end - begin:
        raise ContainerError(f"has an array {name!r} of shape {shape} that does not fit its bytes")
    spans.append((begin, end))
    flat = data[begin:end]
    if begin % dtype.itemsize:
        flat = flat.copy()
    try:
        return flat.view(dtype).reshape(shape)
    except ValueError as error:  # shapes like (0, 2^61)
        raise ContainerError(f"has an array {name!r} whose shape is invalid ({error})") from None


def parse_json(text: str) -> Any:
    """JSON without repeated names, NaN and Infinity; ValueError or RecursionError for anything else."""
    return json.loads(text, object_pairs_hook=no_repeats, parse_constant=_refuse)


def no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For JSON: an object in which no name occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not valid JSON")
