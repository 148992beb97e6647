"""Damage to the bytes of files: the same for partwise's files and for those of other tools."""

from __future__ import annotations

import numpy as np


def damaged(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """Return `data` cut, with flipped bits, overwritten, or spliced with part of itself or `other`; never unchanged."""
    while True:
        wrong = _once(rng, data, other)
        if wrong != data:
            return wrong


def _once(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    out, at = bytearray(data), int(rng.integers(len(data)))
    kind = int(rng.integers(4))
    if kind == 0:
        return bytes(out[:at])
    if kind == 1:
        for place in rng.integers(len(data), size=int(rng.integers(1, 9))).tolist():
            out[place] ^= 1 << int(rng.integers(8))
        return bytes(out)
    size = int(rng.integers(1, 200))
    if kind == 2:
        out[at : at + size] = rng.bytes(min(size, len(out) - at)) if rng.random() < 0.7 else bytes(size)
        return bytes(out)
    source = other if rng.random() < 0.5 else data
    begin = int(rng.integers(len(source)))
    out[at : at + (size if rng.random() < 0.5 else 0)] = source[begin : begin + size]
    return bytes(out)
