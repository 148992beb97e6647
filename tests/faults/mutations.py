"""Random changes to the bytes, lines, fields and numbers of files."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

#: Strings that readers treat specially, or should not treat specially.
BITS = [b"\n", b"\t", b" ", b"", b"\0", b"\xff", b"\xed\xa0\x80", b"(", b")", b":", b"-1", b"9" * 30, b"1e400", b"nan",
        b"\r", b"\xef\xbb\xbf", b"#", b"%x[", b"]", b"_", b"1-2", b"1.1", b"\r\n", b"\\", b"'", b'"', b"|", b"=", b",",
        b"@", b"*", b"\x0b", b"\x0c", b"\x1c", b"\xc2\x85", b"\xc2\xa0", b"\xe2\x80\xa8", b"\xe2\x80\xae",
        b"\xf0\x9f\x98\x80", b"\xd7\xa9\xd7\x9c", b"\xe0\xa4\x95\xe0\xa5\x8d", b"e\xcc\x81", b"\xd9\xa3", b"\xc0\xaf",
        b"x" * 3000, b"<b>", b"__class__", b"../x"]  # fmt: skip
NUMBERS = [b"0", b"-0", b"-1", b"1", b"2", b"+1", b"00", b"1.5", b"1e308", b"-1e308", b"1e-320", b"inf", b"-inf",
           b"nan", b"NaN", b"0x1p3", b"1_0", b"2147483648", b"4294967295", b"9223372036854775808", b"1" + b"0" * 400,
           b"1e5", b"\xd9\xa3", b"\xef\xbc\x91", b""]  # fmt: skip
_NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)?")
_FIELDS = re.compile(rb"([\t ]+)")


def _bit(rng: random.Random, out: bytearray) -> None:
    at = rng.randrange(len(out) + 1)
    out[at : min(len(out), at + rng.choice([0, 1, 1, 3, 20, 200]))] = rng.choice(BITS)


def _noise(rng: random.Random, out: bytearray) -> None:
    at = rng.randrange(len(out) + 1)
    out[at : min(len(out), at + rng.choice([0, 1, 1, 3, 20]))] = rng.randbytes(rng.randrange(4))


def _copy(rng: random.Random, out: bytearray) -> None:
    at, begin = rng.randrange(len(out) + 1), rng.randrange(len(out) + 1)
    out[at:at] = out[begin : begin + rng.choice([1, 5, 50])]


def _flip(rng: random.Random, out: bytearray) -> None:
    if out:
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)


def _cut(rng: random.Random, out: bytearray) -> None:
    del out[rng.randrange(len(out) + 1) :]


def _number(rng: random.Random, out: bytearray) -> None:
    found = list(_NUMBER.finditer(out))
    if found:
        chosen = rng.choice(found)
        span = chosen.span()
        nearby = str(int(chosen[0].split(b".")[0][:30]) + rng.choice([-1, 1])).encode()
        del found, chosen  # `out` cannot change its length while a match refers to it
        out[slice(*span)] = nearby if rng.random() < 0.3 else rng.choice(NUMBERS)


def _line(rng: random.Random, out: bytearray) -> None:
    """Repeat, remove, move or empty one line, or change its line end."""
    lines = bytes(out).split(b"\n")
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        lines.insert(to, lines[at])
    elif kind == 1:
        del lines[at]
    elif kind == 2:
        lines[at], lines[to] = lines[to], lines[at]
    elif kind == 3:
        lines[at] = rng.choice([b"", b" ", b"\t", b"#", b"\xe2\x80\xa8"])
    else:
        lines[at] += b"\r"
    out[:] = b"\n".join(lines)


def _field(rng: random.Random, out: bytearray) -> None:
    """Repeat, remove or swap a field of a line, or replace it by a field of another line."""
    lines = bytes(out).split(b"\n")
    at = rng.randrange(len(lines))
    fields = _FIELDS.split(lines[at])
    one, two = 2 * rng.randrange((len(fields) + 1) // 2), 2 * rng.randrange((len(fields) + 1) // 2)
    kind = rng.randrange(4)
    if kind == 0:
        fields.insert(one, fields[two] + (fields[1] if len(fields) > 1 else b" "))
    elif kind == 1:
        del fields[one : one + 2]
    elif kind == 2:
        fields[one], fields[two] = fields[two], fields[one]
    else:
        fields[one] = rng.choice(_FIELDS.split(rng.choice(lines)))
    lines[at] = b"".join(fields)
    out[:] = b"\n".join(lines)


_TEXT: list[Callable[[random.Random, bytearray], None]] = [_bit, _noise, _copy, _flip, _number, _line, _field]
_BINARY: list[Callable[[random.Random, bytearray], None]] = [_noise, _copy, _flip, _flip, _cut]


def mutated(rng: random.Random, data: bytes, *, binary: bool = False) -> bytes:
    """Apply one to four changes. A fifth of all files is cut short or gets a byte order mark."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        rng.choice(_BINARY if binary else _TEXT)(rng, out)
    if binary:
        if rng.random() < 0.5 and len(out) >= 8:  # overwrite a number of four bytes
            at = 4 * rng.randrange(len(out) // 4)
            value = rng.choice([0, 1, 2, 3, 48, len(out), len(out) - 4, 1 << 31, (1 << 32) - 1, rng.randrange(1 << 12)])
            out[at : at + 4] = value.to_bytes(4, "little")
        return bytes(out)
    if rng.random() < 0.15:
        _cut(rng, out)
    return (b"\xef\xbb\xbf" if rng.random() < 0.05 else b"") + bytes(out)
