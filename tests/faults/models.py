"""Damaged model files, and model files whose content is wrong although their digest is right."""

from __future__ import annotations

import re
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import partwise
from helpers.model_kinds import MODELS
from helpers.model_mutants import forged
from partwise import ConstituencyParser, DependencyParser, ModelFormatError

from .damage import damaged
from .names import watched
from .rows import Row, peak

NAMES = list(MODELS)
#: Questions to a loaded model, where it has the method.
QUESTIONS: dict[str, tuple[Any, ...]] = {
    "predict": (),
    "annotate": (),
    "predict_marginals": (),
    "predict_k_best": (3,),
    "predict_proba": (),
    "entropy": (),
    "sample": (2,),
}
#: Words of errors that a valid model may raise: its weights give numbers that are too large, or an input exceeds a
#: limit that was changed.
REFUSALS = re.compile(r"double precision|\bnan\b|infinit|not finite|max_length|memory_limit", re.IGNORECASE)
ROUNDING = 1e-6


@cache
def saved(name: str) -> tuple[bytes, object]:
    """Return the bytes of a model file, and input for the model."""
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
    """Yield the numbers in arrays, lists and dicts, and in containers within these."""
    if isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(answer, list | tuple):
        return np.concatenate([np.ravel(values_in(each)) for each in answer] or [np.zeros(0)])
    return np.ravel(answer) if isinstance(answer, np.ndarray | float) else np.zeros(0)


def leaves(answer: Any) -> Any:
    """Yield the innermost items of nested lists and arrays."""
    if isinstance(answer, np.ndarray):
        answer = answer.tolist()
    if not isinstance(answer, list):
        yield answer
        return
    for each in answer:
        yield from leaves(each)


def labels_of(model: Any, answer: Any) -> Any:
    """Yield the labels of a prediction. A head outside the sentence counts as a label that no model has."""
    if not isinstance(model, DependencyParser):
        yield from leaves(answer)
        return
    for tree in answer:
        for arc in tree:
            head, *names = arc if isinstance(arc, tuple) else (arc,)
            yield from names if 0 <= head <= len(tree) else [f"head {head} of {len(tree)} words"]


def distributions(answer: Any) -> Any:
    """Yield sums that must be 1: one for the dict of each position, or for each row."""
    if isinstance(answer, np.ndarray):
        return answer.sum(axis=-1).ravel()
    if isinstance(answer, dict):
        return np.array([sum(answer.values())])
    return np.concatenate([distributions(each) for each in answer] or [np.zeros(0)])


def out_of_range(model: Any, question: str, answers: Any) -> str:
    """Say which impossible value the answers contain; "" if there is none."""
    if question == "predict_k_best":
        answers = [answer for found in answers for answer, _ in found]
    if question in ("predict", "predict_k_best", "sample") and hasattr(model, "classes_"):
        if question == "sample":
            answers = [answer for found in answers for answer in found]
        strange = set(labels_of(model, answers)) - set(model.classes_.tolist())
        return f"{question}: labels {sorted(map(str, strange))[:3]}" if strange else ""
    if question not in ("entropy", "predict_proba", "predict_marginals"):
        return ""
    values = values_in(answers)
    if not np.isfinite(values).all():
        return f"{question}: not finite"
    if question == "entropy":
        return "" if (values >= -ROUNDING).all() else f"entropy: {values.min()}"
    if not ((values >= -ROUNDING) & (values <= 1 + ROUNDING)).all():
        return f"{question}: from {values.min()} to {values.max()}"
    if isinstance(model, ConstituencyParser):  # constituents that exclude each other are not listed together
        return ""
    sums = distributions(answers)
    return "" if np.allclose(sums, 1, atol=ROUNDING) else f"{question}: sums from {sums.min()} to {sums.max()}"


def asked(model: Any, X: Any) -> tuple[str, str]:
    """Put all questions to a model. Say whether every answer is possible."""
    told = []
    for question, arguments in QUESTIONS.items():
        if not hasattr(model, question):
            continue
        try:
            with np.errstate(all="ignore"):  # weights of 1e308 are finite, but sums of them overflow
                answers = getattr(model, question)(X, *arguments)
        except ValueError as error:
            if not REFUSALS.search(str(error)):
                return "valid file, broken model", f"{question}: {error}"
            told.append(f"{question}: {error}")
            continue
        if len(answers) != len(X):
            return "wrong answers", f"{question}: {len(answers)} for {len(X)}"
        wrong = out_of_range(model, question, answers)
        if wrong:
            return "out of range", wrong
    return ("loaded, and refuses the input", "; ".join(told)) if told else ("valid model", "")


def forged_model(memory: bool, number: int, folder: Path) -> tuple[str, str]:
    """Load a forged model whose digest is right. `memory` limits the bytes that loading may add to the process."""
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
        "refused, or a valid model whose answers are in range; memory of loading <= 2x file + 64 MB; 0 calls by name",
        10_000,
        40,
        partial(forged_model, True),
        FORGED,
    ),
    # Memory cannot be measured here, because sanitizers need memory themselves.
    Row(
        "forged-models-asan",
        "model damaged, digest recomputed, under AddressSanitizer and UndefinedBehaviorSanitizer",
        "refused, or a valid model whose answers are in range; 0 reports",
        10_000,
        10,
        partial(forged_model, False),
        FORGED,
        core="asan",
    ),
]
