"""Model files and checkpoints: a safetensors container with a digest over everything in it.

    8 bytes    length of the header, little-endian
    header     JSON, beginning {"__metadata__":{"sha256":"<64 hexadecimal digits>" and padded with spaces to 8 bytes
    data       the arrays end to end, little-endian

The digest is the SHA-256 of the whole file with its own 64 digits replaced by zeros, at the same place in every format
version. The header is read first: it says how long the file is, which bounds what is read of a pipe or a device. Then
the digest is checked against damage, and all else against forgery. A large file is mapped into memory, not read; the
core copies, or checks again, the numbers that indices depend on, so a program that writes to it changes weights only.
"""

import hashlib
import json
import math
import mmap
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partwise.io.files import Path, atomic_write, standard_input
from partwise.model_files.errors import ContainerError, ModelFormatError
from partwise.support.memory import check_room

Array = NDArray[Any]
#: A value of JSON.
Json = Any

#: 2: weights of hashed features where most are zero.
FORMAT_VERSION = 2


class Kind(NamedTuple):
    """A kind of file: the name of its format, the newest version that is known here, what to call it in messages."""

    format: str
    version: int
    noun: str
    error: type[ContainerError]
    hint: str = ""


_HINT = " (models are loaded from files that `save` wrote, never from pickles)"
MODEL = Kind("partwise model", FORMAT_VERSION, "model file", ModelFormatError, _HINT)

_PREFIX = b'{"__metadata__":{"sha256":"'
_BLANK = b"0" * 64
_DIGEST = slice(8 + len(_PREFIX), 8 + len(_PREFIX) + 64)
#: The largest header in bytes, as in safetensors: headers hold labels and settings alone.
MAX_HEADER = 100_000_000
_CHUNK = 1 << 24
#: What errors about memory say the program was doing.
READING = "reading this model file"
_PIPE_CHUNK = 1 << 20
#: Bytes from which a file is mapped into memory.
_LARGE = 1 << 26

_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U16": "<u2", "U8": "|u1"}
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}


class Source:
    """An open model file; `length` is that of a regular file, None for a pipe or a device, which may be endless."""

    def __init__(self, file: BinaryIO, length: int | None) -> None:
        self.length = length
        self._file = file
        self._read = b""

    def first(self, size: int) -> bytes:
        """Return the first bytes; fewer if there are no more. Memory is taken as the bytes come."""
        parts, missing = [self._read], size - len(self._read)
        while missing > 0 and (part := self._file.read(min(missing, _PIPE_CHUNK))):
            parts.append(part)
            missing -= len(part)
        self._read = b"".join(parts)
        return self._read[:size]

    def whole(self, limit: int) -> NDArray[np.uint8]:
        """Return all bytes, of a pipe up to `limit`; ContainerError if there are more, TooLarge without the memory."""
        length = limit if self.length is None else self.length
        if length > limit:
            raise ContainerError(f"is damaged: {length} bytes long, its header allows {limit}")
        if length > _LARGE and self.length is not None:
            # The page cache is read in place: a copy would take as long as the digest, most of it for new pages.
            return np.frombuffer(mmap.mmap(self._file.fileno(), length, access=mmap.ACCESS_READ), dtype=np.uint8)
        check_room(length, READING)
        data = self.first(length)
        if self._file.read(1):
            raise ContainerError(
                f"is damaged, or no model for a pipe: it does not end after the {limit} bytes that its header allows; "
                "give the file itself"
            )
        return np.frombuffer(data, dtype=np.uint8)


@contextmanager
def opened(path: Path, noun: str = "model file") -> Iterator[Source]:
    """Open a file, a pipe or standard input ("-")."""
    if os.fspath(path) == "-":
        yield Source(standard_input(), None)
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed below)
    except IsADirectoryError:
        raise ContainerError(f"is a directory, not a {noun}") from None
    with file:
        status = os.fstat(file.fileno())
        yield Source(file, status.st_size if stat.S_ISREG(status.st_mode) else None)


def save(path: Path, kind: Kind, metadata: dict[str, str], arrays: dict[str, Array], version: int = 0) -> None:
    """Write a file of this kind in one step; version: that of its format, by default the newest."""
    known = {"format": kind.format, "format_version": str(version or kind.version)}
    with atomic_write(path) as file:
        write(file, known | metadata, arrays)


def write(file: BinaryIO, metadata: dict[str, str], arrays: dict[str, Array]) -> None:
    """Write metadata and arrays to an open file. `read` asks for a "format" and a "format_version" in the metadata."""
    # With the widest type first, each array is aligned to the width of its type.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    plain = [np.ascontiguousarray(arrays[name], arrays[name].dtype.newbyteorder("<")) for name in order]
    if strange := [array.dtype for array in plain if array.dtype not in _NAMES]:
        raise TypeError(f"an array of {strange[0]} has no place in a file")
    entries: dict[str, Json] = {"__metadata__": {"sha256": _BLANK.decode(), **metadata}}
    begin = 0
    for name, array in zip(order, plain, strict=True):
        end = begin + array.nbytes
        entries[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
        begin = end
    text = json_text(entries).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise ValueError(f"labels and settings take {len(text)} bytes, a file has room for {MAX_HEADER}")
    head = bytearray(struct.pack("<Q", len(text)) + text)
    assert head[8 : _DIGEST.start] == _PREFIX
    digest = hashlib.sha256(head)
    for chunk in _chunks(plain):
        digest.update(chunk)
    head[_DIGEST] = digest.hexdigest().encode()
    file.write(head)
    file.writelines(_chunks(plain))


def digest_of(path: Path) -> str:
    """Return the digest that a file says it has; for files that `save` has just written."""
    with open(path, "rb") as file:
        return file.read(_DIGEST.stop)[_DIGEST].decode("ascii")


def read(path: Path, kind: Kind = MODEL) -> tuple[dict[str, str], dict[str, Array]]:
    """Return (metadata, arrays) of a file of this kind; raise the kind's error if it is not a whole, undamaged one.

    Arrays are read-only views of one block of memory. TooLarge if a pipe's header tells of more than there is memory.
    """
    try:
        with opened(path, kind.noun) as source:
            return parse(source, kind)
    except ContainerError as error:
        raise kind.error(error.message, path) from None


def _chunks(arrays: list[Array]) -> Iterator[memoryview]:
    for array in arrays:
        flat = array.reshape(-1).view(np.uint8).data
        for start in range(0, len(flat), _CHUNK):
            yield flat[start : start + _CHUNK]


def parse(source: Source, kind: Kind = MODEL) -> tuple[dict[str, str], dict[str, Array]]:
    """Return (metadata, arrays) of an open file. Its header says how long it is, and no more is read."""
    start = source.first(_DIGEST.stop)
    if len(start) < 8:
        raise ContainerError(f"is empty or far too short for a {kind.noun}")
    if start[8 : _DIGEST.start] != _PREFIX[: len(start) - 8] or len(start) == 8:
        raise ContainerError(f"is not a {kind.noun}{kind.hint}")
    if len(start) < _DIGEST.stop:
        raise ContainerError("is cut off")
    (size,) = struct.unpack("<Q", start[:8])
    if size > MAX_HEADER or (source.length is not None and 8 + size > source.length) or size < len(_PREFIX) + 64:
        raise ContainerError(f"is damaged: its header claims {size} bytes")
    metadata, entries = _header(source.first(8 + size)[8:], kind)
    length = 8 + size + sum(entry.end - entry.begin for entry in entries)
    block = source.whole(length)
    if len(block) != length:
        raise ContainerError(f"is cut off: its header tells of {length} bytes, there are {len(block)}")
    digest = hashlib.sha256(start[: _DIGEST.start] + _BLANK)
    digest.update(block.data[_DIGEST.stop :])
    if start[_DIGEST].decode("latin-1") != digest.hexdigest():
        raise ContainerError("is damaged: its content does not match its digest")
    return metadata, {entry.name: _array(block[8 + size :], entry) for entry in entries}


class _Entry(NamedTuple):
    begin: int
    end: int
    name: str
    dtype: np.dtype[Any]
    shape: list[int]


def _header(text: bytes, kind: Kind) -> tuple[dict[str, str], list[_Entry]]:
    """Return the metadata, and the descriptions of the arrays in their order, which follow one another."""
    try:
        header = parse_json(text.decode())
    except (ValueError, RecursionError) as error:
        raise ContainerError(f"is damaged: its header cannot be read ({error})") from None
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ContainerError("has a header without metadata")
    if metadata.get("format") != kind.format:
        raise ContainerError(f"is not a {kind.noun} (format {metadata.get('format')!r})")
    version = metadata.get("format_version", "")
    if not (version.isascii() and version.isdigit() and 0 < len(version) < 10 and int(version) > 0):
        raise ContainerError(f"has no valid format version ({version[:40]!r})")
    if int(version) > kind.version:
        known = f"this release reads versions up to {kind.version}"
        raise ContainerError(f"has format version {version}; {known}: update partwise")
    entries = sorted((_entry(name, entry) for name, entry in header.items()), key=lambda entry: entry[:2])
    end = 0
    for entry in entries:
        if entry.begin != end:
            raise ContainerError(f"has arrays that overlap or leave a hole at byte {end} of its data")
        end = entry.end
    return metadata, entries


def _entry(name: str, entry: Json) -> _Entry:
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
    if not begin <= end or math.prod(shape) * dtype.itemsize != end - begin:
        raise ContainerError(f"has an array {name!r} of shape {shape} that does not fit its bytes")
    return _Entry(begin, end, name, dtype, shape)


def _array(data: Array, entry: _Entry) -> Array:
    flat = data[entry.begin : entry.end]
    if entry.begin % entry.dtype.itemsize:
        flat = flat.copy()
    try:
        return flat.view(entry.dtype).reshape(entry.shape)
    except ValueError as error:  # shapes like (0, 2^61)
        raise ContainerError(f"has an array {entry.name!r} whose shape is invalid ({error})") from None


def json_text(value: Json) -> str:
    """Return a value as JSON without spaces, NaN and Infinity."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def parse_json(text: str) -> Json:
    """Return JSON without repeated names, NaN and Infinity; ValueError or RecursionError for anything else."""
    return json.loads(text, object_pairs_hook=no_repeats, parse_constant=_refuse)


def no_repeats(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return an object of JSON; ValueError if a name occurs twice in it."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not valid JSON")
