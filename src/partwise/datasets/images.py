"""Pictures of digits and letters."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from partwise.datasets.folder import Dataset, data_file, open_bytes
from partwise.support.arrays import Floats


def read_idx(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """Read an array of bytes in the idx format of the MNIST files, gzipped or plain."""
    with open_bytes(path) as file:
        raw = file.read()
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path}: not an idx file of bytes")
    rank = raw[3]
    shape = np.frombuffer(raw, dtype=">u4", count=rank, offset=4) if len(raw) >= 4 + 4 * rank else np.zeros(0)
    values = np.frombuffer(raw, dtype=np.uint8, offset=min(4 + 4 * rank, len(raw)))
    if len(shape) != rank or values.size != math.prod(shape.tolist()):
        raise ValueError(f"{path}: {values.size} values do not fill the shape {tuple(shape.tolist())}")
    return values.reshape(shape.astype(np.int64))


def mnist(data: str | os.PathLike[str] | None = None) -> Dataset[Floats, NDArray[np.int64]]:
    """Read MNIST from its four idx files in ``mnist/``: 784 pixels between 0 and 1 per row, labels 0 to 9."""
    parts: list[tuple[Floats, NDArray[np.int64]]] = []
    for name in ("train", "t10k"):
        images = read_idx(data_file("mnist", f"{name}-images-idx3-ubyte", data))
        labels = read_idx(data_file("mnist", f"{name}-labels-idx1-ubyte", data))
        if len(images) != len(labels):
            raise ValueError(f"mnist: {len(images)} {name} images but {len(labels)} labels")
        parts.append((images.reshape(len(images), -1) / 255.0, labels.astype(np.int64)))
    return Dataset(*parts[0], *parts[1])


def ocr_letters(
    data: str | os.PathLike[str] | None = None, *, test_folds: Iterable[int] = (0,)
) -> Dataset[list[Floats], list[list[str]]]:
    """Read the handwritten words of ``ocr-letters/letters.tsv`` (or ``.gz``).

    The columns are word id, letter, position, fold, whether it is the word's last letter, and 128 pixels as a string
    of 0 and 1. X holds one (length, 128) array per word, y its letters. Words of `test_folds` (of 0 to 9) are for
    testing, all others for training.
    """
    path = data_file("ocr-letters", "letters.tsv", data)
    chosen = frozenset(test_folds)
    words: list[tuple[int, list[str], list[bytes]]] = []
    with open_bytes(path) as file:
        fresh = True
        for number, raw in enumerate(file, 1):
            fields = raw.split()
            if len(fields) != 6 or len(fields[5]) != 128:
                raise ValueError(f"{path}, line {number}: expected 6 columns, the last of 128 pixels")
            _, letter, _, fold, last, pixels = fields
            if fresh:
                words.append((int(fold), [], []))
            words[-1][1].append(letter.decode())
            words[-1][2].append(pixels)
            fresh = last == b"1"
    unknown = chosen - {fold for fold, _, _ in words}
    if unknown:
        raise ValueError(f"test_folds: no word is in fold {min(unknown)}")
    train = [(_pixels(rows), letters) for fold, letters, rows in words if fold not in chosen]
    test = [(_pixels(rows), letters) for fold, letters, rows in words if fold in chosen]
    return Dataset([x for x, _ in train], [y for _, y in train], [x for x, _ in test], [y for _, y in test])


def _pixels(rows: list[bytes]) -> Floats:
    bits = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
    return (bits - ord("0")).astype(np.float64)
