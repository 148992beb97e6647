"""Text files in blocks of whole sentences: for files larger than the memory, and for pipes that wait for answers.

A block is shorter than asked for if no more input comes for a moment (on a pipe or a terminal), so that a program that
writes a sentence and waits gets an answer. It is longer only for one sentence that is longer.
"""

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase

from partwise._core import ParseError
from partwise.io.errors import FormatError
from partwise.io.files import DAMAGES, Path, open_bytes

#: Seconds to wait for more input: a program needs some time to fill a pipe again.
PATIENCE = 0.01

#: A function that returns where a text may be cut (0: nowhere), given the text and the beginning of a line before which
#: it cannot be cut.
Cut = Callable[[bytearray, int], int]


@dataclass(frozen=True)
class Block:
    """Some lines of a file, and the number of the first of them, counted from 1."""

    data: bytes
    line: int = 1


def text_blocks(path: Path, cut: Cut, size: int) -> Iterator[Block]:
    """Yield a file ("-": standard input), gzipped or plain, in blocks of about `size` bytes that end where `cut` says.

    FormatError if a gzip file is damaged or cut short, or a block of it is out of proportion (see `unpack_limit`).
    """
    held, line = bytearray(), 1
    seen, fresh = 0, False  # the beginning of the last line that `cut` was given, and whether more lines have come
    with open_bytes(path) as (file, packed):
        while chunk := _read(file, packed is not None, size - len(held) if len(held) < size else size, path):
            held += chunk
            if packed is not None:
                packed.check(len(held), line)
            fresh = fresh or b"\n" in chunk
            if not fresh or (len(held) < size and (packed is not None or _more_is_ready(file))):
                continue
            fresh = False
            end = cut(held, seen)
            if not end:
                seen = held.rfind(b"\n", seen, held.rfind(b"\n", seen)) + 1 or seen
                continue
            data = bytes(held[:end])
            del held[:end]
            yield Block(data, line)
            line += data.count(b"\n")
            seen = 0
    if held:
        yield Block(bytes(held), line)


def _read(file: BufferedIOBase, packed: bool, size: int, path: Path) -> bytes:
    try:
        # `read1` returns the bytes that a pipe has now, without waiting for more.
        return file.read(size) if packed else file.read1(size)
    except DAMAGES as error:
        raise FormatError(f"damaged gzip file ({error})", path) from None


def _more_is_ready(file: BufferedIOBase) -> bool:
    """Return whether there is more to read. `read1` leaves nothing in Python's buffer, so the system knows."""
    try:
        return bool(select.select([file], [], [], PATIENCE)[0])
    except (OSError, ValueError, TypeError):  # `select` cannot be used on this kind of file
        return True


def _lines_from_the_end(held: bytearray, first: int) -> Iterator[tuple[int, bytes]]:
    """Yield (end, line) of each whole line after `first`, the last line first."""
    stop = held.rfind(b"\n", first) + 1
    while stop > first:
        start = held.rfind(b"\n", first, stop - 1) + 1 or first
        yield stop, bytes(held[start:stop])
        stop = start


def after_blank_lines(held: bytearray, first: int) -> int:
    """Cut files of columns: behind a line of spaces and tabs."""
    lines = _lines_from_the_end(held, first)
    return next((stop for stop, line in lines if not _body(line).strip(b" \t")), 0)


def after_empty_lines(held: bytearray, first: int) -> int:
    """Cut files of items: behind an empty line."""
    return next((stop for stop, line in _lines_from_the_end(held, first) if not _body(line)), 0)


def after_lines(held: bytearray, first: int) -> int:
    """Cut files of rows: behind any line."""
    return held.rfind(b"\n", first) + 1


def is_content(line: str) -> bool:
    """Return whether a line has more than white space."""
    return bool(line.strip("\ufeff \t\r\n"))


def before_sentences(held: bytearray, first: int) -> int:
    """Cut CoNLL-U: before the first line of a sentence, as the blank lines before it belong to the one before."""
    after_content = False
    for stop, line in _lines_from_the_end(held, first):
        content = is_content(line.decode(errors="replace"))
        if after_content and not content:
            # Blank lines at the file's beginning belong to its first sentence.
            return stop if is_content(held[:stop].decode(errors="replace")) else 0
        after_content = content
    return 0


def after_trees(held: bytearray, first: int) -> int:
    """Cut bracketed trees: behind the last line at whose end no bracket is open."""
    found = depth = at = 0
    while stop := held.find(b"\n", at) + 1:
        depth += held.count(b"(", at, stop) - held.count(b")", at, stop)
        at = stop
        if depth <= 0:
            found = stop
    return found


def _body(line: bytes) -> bytes:
    return line[:-1].removesuffix(b"\r")


@contextmanager
def from_line(data: bytes, path: Path, line: int) -> Iterator[bytes]:
    """Yield the text for a native parser of data that begin at this line of a file; its errors become FormatErrors.

    Parsers drop a byte order mark at the beginning of a text; elsewhere than in a file's first line it is a character.
    """
    marked = line > 1 and data.startswith(b"\xef\xbb\xbf")
    try:
        yield b"\n" + data if marked else data
    except ParseError as error:
        found, column, message = error.args
        raise FormatError(message, path, line - 1 - marked + found, column) from None
