"""Model files: damaged bytes, and wrong content under a right digest."""

from __future__ import annotations

import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from modelkinds import MODELS
from modelmutants import forged

import partwise
from partwise import ModelFormatError

from .damage import damaged
from .names import watched
from .rows import Row, peak

NAMES = list(MODELS)
#: What is asked of a model that was loaded, as far as it has it.
QUESTIONS: dict[str, tuple[Any, ...]] = {
    "predict": (),
    "annotate": (),
    "predict_marginals": (),
    "predict_k_best": (3,),
    "predict_proba": (),
    "entropy": (),
    "sample": (2,),
}


@cache
def saved(name: str) -> tuple[bytes, object]:
    """A model file, and input for the model."""
    case = MODELS[name]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pw"
        case.estimator.save(path)
        return path.read_bytes(), case.X


def damaged_model(number: int, folder: Path) -> tuple[str, str]:
    name, other = NAMES[number % len(NAMES)], NAMES[(number * 7 + 1) % len(NAMES)]
    path = folder / "model.pw"
    path.write_bytes(damaged(np.random.default_rng([1, number]), saved(name)[0], saved(other)[0]))
    try:
        partwise.load(path)
    except ModelFormatError:
        return "refused", ""
    return "loaded", name


def values_in(answer: Any) -> Any:
    """The numbers in dicts, arrays and lists of them."""
    if isinstance(answer, dict):
        return [value for value in answer.values() if isinstance(value, float)]
    if isinstance(answer, list | tuple):
        return np.concatenate([np.ravel(values_in(each)) for each in answer] or [np.zeros(0)])
    return np.ravel(answer) if isinstance(answer, np.ndarray) else np.zeros(0)


def asked(model: Any, X: Any) -> tuple[str, str]:
    """Whether a model answers all questions."""
    told = []
    for question, arguments in QUESTIONS.items():
        if not hasattr(model, question):
            continue
        try:
            with np.errstate(all="ignore"):  # weights of 1e308 are finite
                answers = getattr(model, question)(X, *arguments)
        except ValueError as error:
            told.append(f"{question}: {error}")
            continue
        if len(answers) != len(X):
            return "wrong answers", f"{question}: {len(answers)} for {len(X)}"
        if question in ("entropy", "predict_proba", "predict_marginals") and not np.isfinite(values_in(answers)).all():
            return "not finite", question
    return ("loaded, and refuses the input", "; ".join(told)) if told else ("valid model", "")


def forged_model(memory: bool, number: int, folder: Path) -> tuple[str, str]:
    """The digest is right; memory is that of loading, beyond what the process had."""
    name = NAMES[number % len(NAMES)]
    data, X = saved(name)
    wrong, path = forged(np.random.default_rng([2, number]), data), folder / "model.pw"
    path.write_bytes(wrong)
    before = peak(reset=True) if memory else 0
    try:
        with watched() as calls:
            model = partwise.load(path)
    except ModelFormatError:
        model = None
    if calls:
        return "call by name", f"{name}: {calls[0]}"
    used = peak() - before if memory else 0
    if used > 2 * len(wrong) + (64 << 20):
        return "too much memory", f"{name}: {used:,} bytes for a file of {len(wrong):,}"
    outcome, detail = ("refused", "") if model is None else asked(model, X)
    return outcome, detail and f"{name}: {detail}"


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
        "refused or a valid model; memory <= 2x file + 64 MB; 0 calls by name",
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
