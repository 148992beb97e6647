"""Model files: damaged bytes, and wrong content under a right digest."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
from modelmutants import CASES, fitted, forged

import partwise
from partwise import ModelFormatError

from .rows import Row, peak


@cache
def saved(name: str) -> tuple[bytes, object]:
    """A model file, and input for the model."""
    case, path = fitted(name), Path(f"/tmp/faults-model-{os.getpid()}.pw")
    try:
        case.estimator.save(path)
        return path.read_bytes(), case.X
    finally:
        path.unlink(missing_ok=True)


def damaged(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """Cut, with flipped bits, overwritten, or spliced with a part of itself or of another file."""
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


def damaged_model(number: int, folder: Path) -> tuple[str, str]:
    rng = np.random.default_rng([1, number])
    data, _ = saved(CASES[number % len(CASES)])
    other, _ = saved(CASES[(number + 1) % len(CASES)])
    wrong = damaged(rng, data, other)
    if wrong == data:
        return "unchanged", ""
    path = folder / "model.pw"
    path.write_bytes(wrong)
    try:
        partwise.load(path)
    except ModelFormatError:
        return "refused", ""
    return "loaded", CASES[number % len(CASES)]


def forged_model(number: int, folder: Path) -> tuple[str, str]:
    """The digest is right; memory is that of loading, beyond what the process had."""
    rng = np.random.default_rng([2, number])
    data, X = saved(CASES[number % len(CASES)])
    wrong, path = forged(rng, data), folder / "model.pw"
    path.write_bytes(wrong)
    before = peak(reset=True)
    try:
        model = partwise.load(path)
    except ModelFormatError:
        model = None
    used = peak() - before
    if used > 2 * len(wrong) + (64 << 20):
        return "too much memory", f"{used:,} bytes for a file of {len(wrong):,}"
    if model is None:
        return "refused", ""
    with np.errstate(all="ignore"):  # weights of 1e308 are finite
        try:
            predicted = model.predict(X)
        except ValueError as error:  # a length or memory limit that was changed
            return "loaded, and refuses the input", str(error)
    return ("valid model", "") if len(predicted) == len(X) else ("wrong answers", CASES[number % len(CASES)])


ROWS = [
    Row(
        "damaged-models",
        "model damaged (cut, flipped, overwritten, spliced)",
        "all refused with `ModelFormatError`",
        10_000,
        60,
        damaged_model,
        ("refused", "unchanged"),
    ),
    Row(
        "forged-models",
        "model damaged, digest recomputed (not under sanitizers)",
        "refused or a valid model; memory <= 2x file + 64 MB",
        10_000,
        40,
        forged_model,
        ("refused", "valid model", "loaded, and refuses the input"),
    ),
]
