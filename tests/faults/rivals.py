"""The same damage to model files of other systems, each load in a process of its own. A comparison, no requirement."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from .models import damaged
from .rows import Row, apart


@cache
def crfsuite() -> bytes:
    import pycrfsuite

    rng = np.random.default_rng(0)
    trainer = pycrfsuite.Trainer(verbose=False)
    for _ in range(30):
        trainer.append(
            [[f"w={k}", "bias"] for k in rng.integers(20, size=5)], [f"L{k}" for k in rng.integers(4, size=5)]
        )
    trainer.set_params({"max_iterations": 20})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        trainer.train(path)
        return Path(path).read_bytes()


def use_crfsuite(path: str) -> None:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    tagger.tag([[f"w={k}", "bias"] for k in range(5)])


@cache
def liblinear() -> bytes:
    from liblinear.liblinearutil import save_model, train

    rng = np.random.default_rng(0)
    model = train(rng.integers(3, size=50).tolist(), rng.normal(size=(50, 6)).tolist(), "-q")
    with tempfile.TemporaryDirectory() as folder:
        save_model(os.path.join(folder, "model"), model)
        return (Path(folder) / "model").read_bytes()


def use_liblinear(path: str) -> None:
    from liblinear.liblinearutil import load_model, predict

    model = load_model(path)
    if model is None:
        raise ValueError("no model")
    predict([0.0], [[1.0, 2.0, 0.0, 1.0, 0.5, 0.1]], model, "-q")


def damaged_rival(make: Callable[[], bytes], use: Callable[[str], Any], number: int, folder: Path) -> tuple[str, str]:
    data = make()
    wrong = damaged(np.random.default_rng([3, number]), data, data)
    if wrong == data:
        return "unchanged", ""
    path = folder / "model"
    path.write_bytes(wrong)
    ended = apart(lambda: use(str(path)), 10)
    if ended.how == "hang":
        return "hang", ""
    if ended.how.startswith("signal"):
        return "crash", ended.how
    refused = ended.how != "answer" or ended.answer is not None
    return ("error" if refused else "loaded as if whole"), str(ended)


ROWS = [
    Row(
        f"rival-{name}",
        f"model damaged: {title}",
        "",
        1000,
        0,
        partial(damaged_rival, make, use),
        None,
    )
    for name, module, title, make, use in (
        ("crfsuite", "pycrfsuite", "python-crfsuite", crfsuite, use_crfsuite),
        ("liblinear", "liblinear", "LIBLINEAR", liblinear, use_liblinear),
    )
    if importlib.util.find_spec(module) is not None
]
