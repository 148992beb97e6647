"""Many strings as two arrays: their UTF-8 bytes end to end, and where each begins."""

from collections.abc import Sequence

import numpy as np

from partwise.features import Vocabulary
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import Array, ModelParts
from partwise.support.arrays import pointers


def encode_names(names: Sequence[str]) -> dict[str, Array]:
    """Arrays `bytes` and `offsets`; ValueError for a name that is not text (a lone surrogate)."""
    try:
        coded = [name.encode() for name in names]
    except UnicodeEncodeError:
        wrong = next(name for name in names if any("\ud800" <= letter <= "\udfff" for letter in name))
        raise ValueError(f"the name {wrong!r} holds a lone surrogate, which is not text") from None
    offsets = pointers(np.fromiter(map(len, coded), dtype=np.int64, count=len(coded)))
    return {"bytes": np.frombuffer(b"".join(coded), dtype=np.uint8), "offsets": offsets}


def read_vocabulary(parts: ModelParts) -> Vocabulary:
    """The strings as a vocabulary; ModelFormatError unless they are UTF-8 and all different."""
    data = parts.bytes("bytes", None)
    offsets = parts.pointers("offsets", None, len(data))
    try:
        return Vocabulary(np.ascontiguousarray(data), np.ascontiguousarray(offsets))
    except ValueError as error:
        raise ModelFormatError(f"has a wrong name: {error}") from None


def decode_names(parts: ModelParts) -> list[str]:
    """The strings, with the same checks."""
    return read_vocabulary(parts).names()


def read_names(parts: ModelParts) -> list[str]:
    """The strings, of which some may be equal; ModelFormatError unless they are UTF-8."""
    data = parts.bytes("bytes", None)
    offsets = parts.pointers("offsets", None, len(data)).tolist()
    raw = data.tobytes()
    try:
        return [raw[a:b].decode() for a, b in zip(offsets, offsets[1:], strict=False)]
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"has names that are not UTF-8 ({error.reason})") from None
