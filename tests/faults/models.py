"""Model files: damaged bytes, and wrong content under a right digest."""

from __future__ import annotations

import os
from functools import cache, partial
from pathlib import Path

import numpy as np
from modelmutants import CASES, fitted, forged

import partwise
from partwise import ModelFormatError

from .damage import damaged
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


def damaged_model(number: int, folder: Path) -> tuple[str, str]:
    rng = np.random.default_rng([1, number])
    data, _ = saved(CASES[number % len(CASES)])
    other, _ = saved(CASES[(number + 1) % len(CASES)])
    wrong = damaged(rng, data, other)
    path = folder / "model.pw"
    path.write_bytes(wrong)
    try:
        partwise.load(path)
    except ModelFormatError:
        return "refused", ""
    return "loaded", CASES[number % len(CASES)]


def forged_model(memory: bool, number: int, folder: Path) -> tuple[str, str]:
    """The digest is right; memory is that of loading, beyond what the process had."""
    rng = np.random.default_rng([2, number])
    data, X = saved(CASES[number % len(CASES)])
    wrong, path = forged(rng, data), folder / "model.pw"
    path.write_bytes(wrong)
    before = peak(reset=True) if memory else 0
    try:
        model = partwise.load(path)
    except ModelFormatError:
        model = None
    used = peak() - before if memory else 0
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


FORGED = ("refused", "valid model", "loaded, and refuses the input")
ROWS = [
    Row(
        "damaged-models",
        "model damaged (cut, flipped, overwritten, spliced)",
        "all refused with `ModelFormatError`",
        10_000,
        60,
        damaged_model,
        ("refused",),
    ),
    Row(
        "forged-models",
        "model damaged, digest recomputed",
        "refused or a valid model; memory <= 2x file + 64 MB",
        10_000,
        40,
        partial(forged_model, True),
        FORGED,
    ),
    # Memory cannot be measured here: sanitizers need their own.
    Row(
        "forged-models-asan",
        "model damaged, digest recomputed, under AddressSanitizer and UndefinedBehaviorSanitizer",
        "refused or a valid model; 0 reports",
        10_000,
        10,
        partial(forged_model, False),
        FORGED,
        core="asan",
    ),
]
