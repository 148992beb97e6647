"""Reading and writing of whole files: gzip, standard streams, and no half-written or left-over output."""

import errno
import gzip
import io
import os
import re
import secrets
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from itertools import islice
from typing import IO, Any, BinaryIO, cast

from partwise.io.errors import FormatError

try:
    import fcntl

    LOCKS = True
except ImportError:  # Windows
    LOCKS = False

Path = str | os.PathLike[str]

_GZIP = b"\x1f\x8b"
#: The exceptions that reading a damaged gzip file raises.
DAMAGES = (EOFError, gzip.BadGzipFile, zlib.error)
#: A gzip file may unpack to this many bytes whatever its size, and to this many times its size. Columns and
#: treebanks unpack to 3 to 10 times their size; gzip allows a thousand times.
UNPACKED, RATIO = 3 << 19, 25
_CHUNK = 1 << 18
#: The most entries of a folder to search for leftovers, so that saving to a large folder is not slow.
MOST = 10_000
_limit: ContextVar[int | None] = ContextVar("unpack_limit", default=0)


@contextmanager
def unpack_limit(size: int | None) -> Iterator[None]:
    """Within this block gzip files may unpack to `size` bytes (None: to any number), even out of proportion.

    Otherwise a file is refused as soon as more than 1.5 MiB of it and more than 25 times its own size would have to be
    held in memory. Files that are read piece by piece are not, as long as the pieces fit.
    """
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
        raise ValueError(f"size must be None or a number of bytes, got {size!r}")
    token = _limit.set(size)
    try:
        yield
    finally:
        _limit.reset(token)


class Packed:
    """A gzip file's own bytes while they are read, with the limit of what they may unpack to."""

    def __init__(self, file: BinaryIO, path: Path, size: int = 0) -> None:
        self._file, self._path, self._size = file, path, size
        self._read = 0
        with suppress(OSError, AttributeError):  # the size of a pipe is not known
            status = os.fstat(file.fileno())
            self._size = status.st_size if stat.S_ISREG(status.st_mode) else size

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._read += len(data)
        return data

    def check(self, unpacked: int, line: int | None = None) -> None:
        """Raise FormatError if this many unpacked bytes are more than may be held in memory."""
        given, packed = _limit.get(), max(self._size, self._read)
        if given is not None and unpacked > (most := max(UNPACKED, RATIO * packed, given)):
            hint = "accept it with --max-unpacked BYTES (in Python: io.unpack_limit), or unpack the file"
            message = f"{packed:,} bytes of gzip unpack to more than {most:,}, out of proportion: {hint}"
            raise FormatError(message, self._path, line)


def standard_input() -> BinaryIO:
    """Return the bytes of standard input; raise OSError if it was closed before the process began."""
    return _bytes_of(sys.stdin, "standard input")


def _bytes_of(stream: object, name: str) -> BinaryIO:
    if stream is None:
        raise OSError(errno.EBADF, "is closed", name)
    return cast(BinaryIO, cast(io.TextIOWrapper, stream).buffer)


@contextmanager
def open_bytes(path: Path) -> Iterator[tuple[io.BufferedIOBase, Packed | None]]:
    """Open a file ("-": standard input) to be read bit by bit, unpacked; yield its packed bytes, too, if it is gzipped.

    Reading a damaged gzip file raises one of `DAMAGES`. A caller that holds much of it in memory has to `check` that.
    """
    with ExitStack() as opened:
        name = os.fspath(path)
        file: Any = standard_input() if name == "-" else opened.enter_context(open(name, "rb"))
        if not hasattr(file, "peek"):
            file = io.BufferedReader(file)
        packed = None
        if file.peek(2)[:2] == _GZIP:
            packed = Packed(file, path)
            file = opened.enter_context(gzip.GzipFile(fileobj=cast(Any, packed), mode="rb"))
        yield file, packed


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes ("-": standard input), unpacked if they are gzip's, whatever the file's name.

    FormatError if a gzip file is damaged or cut short, or unpacks to more than `unpack_limit` takes.
    """
    if os.fspath(path) == "-":
        data = standard_input().read()
    else:
        with open(path, "rb") as file:
            data = file.read()
    if not data.startswith(_GZIP):
        return data
    packed, out = Packed(io.BytesIO(data), path, len(data)), io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=cast(Any, packed), mode="rb") as unpacked:
            while chunk := unpacked.read(_CHUNK):
                packed.check(out.tell() + len(chunk))
                out.write(chunk)
    except DAMAGES as error:
        raise FormatError(f"damaged gzip file ({error})", path) from None
    return out.getvalue()


def read_text(path: Path) -> str:
    """Return a file's UTF-8 text without its byte order mark; FormatError for other bytes and damaged gzip files."""
    return decode_text(read_bytes(path), path)


def decode_text(data: bytes, path: Path = "<input>", line: int = 1) -> str:
    """Do what `read_text` does with bytes in memory, which begin at this line of a file."""
    try:
        text = data.decode("utf-8")
        return text.removeprefix("\ufeff") if line == 1 else text
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        byte = data[error.start]
        surrogate = byte == 0xED and data[error.start + 1 : error.start + 2] >= b"\xa0"
        message = "a lone surrogate is not a character" if surrogate else f"not UTF-8 (byte 0x{byte:02X})"
        column = len(before) - before.rfind("\n")
        raise FormatError(message, path, line + before.count("\n"), column) from None


@contextmanager
def atomic_write(path: Path, mode: str = "wb", *, sync: bool = True) -> Iterator[Any]:
    """Write a file in full or, if the block fails, not at all.

    The block writes to a temporary file in the same folder, which is then renamed. A file whose name ends in ".gz" is
    compressed (equal content gives equal bytes). "-" is standard output, and devices and pipes are written to as they
    are. Errors of the system name the file. mode: "wb" for bytes, "w" for text, which is written as UTF-8 with line
    feeds at line ends. sync: whether the file is flushed to the disk, so that it survives a power cut, and temporary
    files that killed processes have left of it are removed.
    """
    if mode not in ("wb", "w"):
        raise ValueError(f"mode must be 'wb' or 'w', got {mode!r}")
    name = os.fspath(path)
    if name == "-":
        out = _bytes_of(sys.stdout, "standard output")
        with _naming("standard output"):
            with _layers(out, mode, packed=False) as file:
                yield file
            out.flush()
        return
    packed = name.endswith(".gz")
    target = os.path.realpath(name)
    if os.path.exists(target) and not os.path.isfile(target):
        with _naming(name), open(target, "wb") as raw, _layers(raw, mode, packed) as file:
            yield file
        return
    if sync:
        clear_left(target)
    with _naming(name), temporary_beside(target, _make, name) as temporary:
        with open(temporary, "wb") as raw:
            with _layers(raw, mode, packed) as file:
                yield file
            raw.flush()
            if sync:
                os.fsync(raw.fileno())
        os.replace(temporary, target)
    if sync:
        sync_folder(os.path.dirname(target))


def _make(temporary: str) -> None:
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name the file in errors such as "no space left on device", where the system does not."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = path
        raise


@contextmanager
def _layers(raw: IO[bytes], mode: str, packed: bool) -> Iterator[Any]:
    """Yield the raw file under compression and text encoding, as asked for; it is not closed at the end."""
    with ExitStack() as layers:
        file: Any = raw
        if packed:
            file = layers.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0))
        if mode == "w":
            file = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
            layers.callback(file.detach)  # which flushes it
        yield file


def sync_folder(folder: str) -> None:
    """Make a rename last through a power cut, where folders can be opened."""
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError), ExitStack() as opened:
            descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY)
            opened.callback(os.close, descriptor)
            os.fsync(descriptor)


@contextmanager
def temporary_beside(target: str, make: Callable[[str], object], name: str) -> Iterator[str]:
    """Yield a new name beside the target, at which `make` has made a file or folder; the block renames it.

    If the block fails, the file is removed, and errors of the system name `name` instead. Writers lock it (`flock`):
    a file without a lock was left behind by a killed process. On systems without such locks it stays.
    """
    temporary, guard = "", None
    try:
        while guard is None:
            folder, base = os.path.split(target)
            temporary = os.path.join(folder, f".{base[:100]}.{secrets.token_hex(6)}.tmp")
            make(temporary)
            guard = _lock(temporary)
        yield temporary
    except BaseException as error:
        _remove(temporary)
        if isinstance(error, OSError) and error.filename == temporary:
            raise OSError(error.errno, error.strerror, name) from None
        raise
    finally:
        if guard is not None and guard >= 0:
            with suppress(OSError):
                os.close(guard)


def _lock(temporary: str) -> int | None:
    """Return a descriptor that holds the lock, -1 without locks, or None if another process has removed the file."""
    if not LOCKS:
        return -1
    try:
        guard = os.open(temporary, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with suppress(OSError):
        fcntl.flock(guard, fcntl.LOCK_EX)  # a process in `clear_left` holds the lock for a moment
    if os.path.exists(temporary):
        return guard
    os.close(guard)
    return None


def clear_left(target: str) -> None:
    """Remove temporary files that writers of the same target left behind when they were killed."""
    if not LOCKS:
        return
    folder, base = os.path.split(target)
    left = re.compile(rf"\.{re.escape(base[:100])}\.[0-9a-f]{{12}}\.tmp")
    with suppress(OSError), os.scandir(folder or ".") as entries:
        for entry in islice(entries, MOST):
            if left.fullmatch(entry.name):
                with suppress(OSError), ExitStack() as opened:
                    descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                    opened.callback(os.close, descriptor)
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError if it is being written
                    _remove(entry.path)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        os.unlink(path)
