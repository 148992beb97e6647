"""The same damage to model files of other systems, for comparison only: nothing is required of them.

Each file is loaded and used in a process of its own, forked from a process that has only imported the package.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from .damage import damaged
from .rows import Row, apart

#: Seconds of CPU time after which loading counts as hanging.
LIMIT = 3.0
POINT = [1.0, 2.0, 0.0, 1.0, 0.5, 0.1]


@dataclass(frozen=True)
class Rival:
    title: str
    module: str  # imported before the fork
    files: tuple[str, ...]  # names of files; the trials use them in turn
    train: Callable[[str], Any]  # trains a model and writes it to a file
    use: Callable[[str], Any]


def points() -> tuple[list[list[float]], list[int]]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(50, 6)).tolist(), rng.integers(3, size=50).tolist()


def train_crfsuite(path: str) -> None:
    import pycrfsuite

    rng = np.random.default_rng(0)
    trainer = pycrfsuite.Trainer(verbose=False)
    for _ in range(30):
        words, tags = rng.integers(20, size=5), rng.integers(4, size=5)
        trainer.append([[f"w={k}", "bias"] for k in words], [f"L{k}" for k in tags])
    trainer.set_params({"max_iterations": 20})
    trainer.train(path)


def use_crfsuite(path: str) -> None:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    tagger.tag([[f"w={k}", "bias"] for k in range(5)])


def train_liblinear(path: str) -> None:
    from liblinear.liblinearutil import save_model, train

    X, y = points()
    save_model(path, train(y, X, "-q"))


def use_liblinear(path: str) -> None:
    from liblinear.liblinearutil import load_model, predict

    predict([0.0], [POINT], _there(load_model(path)), "-q")


def train_libsvm(path: str) -> None:
    from libsvm.svmutil import svm_save_model, svm_train

    X, y = points()
    svm_save_model(path, svm_train(y, X, "-q"))


def use_libsvm(path: str) -> None:
    from libsvm.svmutil import svm_load_model, svm_predict

    svm_predict([0.0], [POINT], _there(svm_load_model(path)), "-q")


def train_xgboost(path: str) -> None:
    import xgboost

    X, y = points()
    options = {"objective": "multi:softmax", "num_class": 3, "max_depth": 3, "nthread": 1}
    xgboost.train(options, xgboost.DMatrix(np.array(X), np.array(y)), 5).save_model(path)


def use_xgboost(path: str) -> None:
    import xgboost

    model = xgboost.Booster({"nthread": 1})
    model.load_model(path)
    model.predict(xgboost.DMatrix(np.array([POINT]), nthread=1))


def _there(model: Any) -> Any:
    if model is None:
        raise ValueError("no model")
    return model


RIVALS = {
    "crfsuite": Rival("python-crfsuite", "pycrfsuite", ("model",), train_crfsuite, use_crfsuite),
    "liblinear": Rival("LIBLINEAR", "liblinear.liblinearutil", ("model",), train_liblinear, use_liblinear),
    "libsvm": Rival("LIBSVM", "libsvm.svmutil", ("model",), train_libsvm, use_libsvm),
    "xgboost": Rival("XGBoost (UBJSON, JSON)", "xgboost", ("model.ubj", "model.json"), train_xgboost, use_xgboost),
}


@cache
def saved(name: str, file: str) -> bytes:
    """Return the bytes of a model file that another process made."""
    importlib.import_module(RIVALS[name].module)

    def train() -> str:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / file
            RIVALS[name].train(str(path))
            RIVALS[name].use(str(path))
            return base64.b64encode(path.read_bytes()).decode()

    ended = apart(train, 60)
    if not isinstance(ended.answer, str):
        raise RuntimeError(f"no model of {name}: {ended}")
    return base64.b64decode(ended.answer)


def damaged_rival(name: str, number: int, folder: Path) -> tuple[str, str]:
    rival = RIVALS[name]
    file = rival.files[number % len(rival.files)]
    data, path = saved(name, file), folder / file
    path.write_bytes(damaged(np.random.default_rng([3, number]), data, data))
    ended = apart(lambda: rival.use(str(path)), LIMIT)
    if ended.how == "hang":
        return "hang", ""
    if ended.how == "answer":
        return ("loaded as if whole" if ended.answer is None else "error"), str(ended.answer)
    return "crash", ended.how


def installed(module: str) -> bool:
    return importlib.util.find_spec(module.partition(".")[0]) is not None


ROWS = [
    Row(
        f"rival-{name}",
        f"model damaged in the same way: {rival.title}",
        "",
        1000,
        0,
        partial(damaged_rival, name),
        None,
        missing="" if installed(rival.module) else rival.title,
    )
    for name, rival in RIVALS.items()
]
