"""Nothing at all, one token, and very much; small inputs that are made to be large."""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from modelcases import fitted_tagger
from scipy import sparse

from partwise import MaxentClassifier, SequenceTagger
from partwise.features import Template
from partwise.io import read_columns, read_conllu, read_items, read_svmlight, read_trees

from .rows import Row, apart, peak


def tagger(**options: Any) -> Any:
    return SequenceTagger(**{"tol": 0.1, "max_passes": 5, **options})


def fit_and_predict(X: Any, y: Any, **options: Any) -> None:
    model = tagger(**options).fit(X, y)
    assert len(model.predict(X)) == len(X)


def long_sequence(**options: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = [[f"w{k}"] for k in rng.integers(50, size=100_000)], [str(k) for k in rng.integers(3, size=100_000)]
    fit_and_predict([x], [y], **options)


def many_features() -> None:
    rng = np.random.default_rng(0)
    X = sparse.csr_array((np.ones(1000), rng.integers(1_000_000, size=1000), np.arange(0, 1001, 10)), (100, 1_000_000))
    MaxentClassifier(tol=0.1, max_passes=5).fit(X, np.arange(100) % 2).predict(X)


def many_labels(n: int) -> None:
    fit_and_predict([[["a"]] * 10] * (n // 10), [[str(10 * i + k) for k in range(10)] for i in range(n // 10)])


#: name -> (what is done, the errors that are as documented)
SIZES: dict[str, tuple[Callable[[], Any], tuple[type[Exception], ...]]] = {
    "no sequences": (lambda: fit_and_predict([], []), (ValueError,)),
    "no sequences, predict": (lambda: fitted_tagger("names").estimator.predict([]) == [] or 1 / 0, ()),
    "empty sequence": (lambda: fit_and_predict([[], [["a"]]], [[], ["A"]]), (ValueError,)),
    "empty sequence, predict": (lambda: fitted_tagger("names").estimator.predict([[]]) == [[]] or 1 / 0, ()),
    "one token": (lambda: fit_and_predict([[["a"]], [["b"]]], [["A"], ["B"]]), ()),
    "one token, one label": (lambda: fit_and_predict([[["a"]]], [["A"]]), (ValueError,)),
    "100,000 tokens": (long_sequence, ()),
    "100,000 tokens, hinge": (lambda: long_sequence(loss="hinge"), ()),
    "1,000,000 features": (many_features, ()),
    "1,000,000 labels": (lambda: many_labels(1_000_000), (ValueError, MemoryError)),
    "no rows": (lambda: MaxentClassifier().fit(np.empty((0, 3)), []), (ValueError,)),
    "no columns": (lambda: MaxentClassifier().fit(np.empty((3, 0)), [0, 1, 0]), (ValueError,)),
}


def size(number: int, folder: Path) -> tuple[str, str]:
    name = list(SIZES)[number]
    work, documented = SIZES[name]

    def go() -> list[Any]:
        begin = time.process_time()
        try:
            work()
        except documented as error:
            return [f"{type(error).__name__}: {error}"[:300], time.process_time() - begin]
        return [None, time.process_time() - begin]

    ended = apart(go, 250)
    if ended.how != "answer" or not isinstance(ended.answer, list):
        return "another end", f"{name}: {ended}"
    told, seconds = ended.answer
    if told is None:
        return "done", f"{name}: {seconds:.2f} s"
    return ("refused late" if seconds > 1 else "refused"), f"{name}: {seconds:.2f} s, {told}"


def made_large(rng: random.Random, path: Path) -> tuple[Callable[[Path], Any], bytes]:
    n = 10 ** rng.randint(3, 9)
    kind = rng.randrange(8)
    if kind == 0:
        return read_svmlight, f"1 1:1\n2 {n}:1\n".encode()
    if kind == 1:
        return read_columns, gzip.compress(b"a A\n" * min(n, 20_000_000), 9)
    if kind == 2:
        return read_trees, b"(A " * min(n, 300_000)
    if kind == 3:
        return read_conllu, f"{n}\ta\t_\t_\t_\t_\t{n}\t_\t_\t_\n\n".encode()
    if kind == 4:
        return Template.from_file, f"U:%x[{n},0]\nU1:%x[0,{n}]\n".encode()
    if kind == 5:
        return read_items, b"A\t" + b"x:1" * min(n, 100_000) + b"\n"
    if kind == 6:
        return read_svmlight, ("1 " + " ".join(f"{k * n + 1}:1" for k in range(50)) + "\n").encode()
    return read_columns, b"a" * min(n, 3_000_000) + b" B\n"


def small_made_large(number: int, folder: Path) -> tuple[str, str]:
    path = folder / "file"
    reader, data = made_large(random.Random(number), path)
    path.write_bytes(data)

    def work() -> list[Any]:
        before, begin, told = peak(reset=True), time.process_time(), "read"
        try:
            found = reader(path)
            if reader is read_svmlight:
                MaxentClassifier(tol=0.5, max_passes=2).fit(*found)
        except ValueError:
            told = "refused"
        return [told, peak() - before, time.process_time() - begin]

    ended = apart(work, 60)
    if ended.how != "answer" or not isinstance(ended.answer, list):
        return "another end", f"{data[:60]!r}: {ended}"
    told, used, seconds = ended.answer
    detail = f"{data[:40]!r}, {len(data):,} bytes: {told}, {used:,} bytes, {seconds:.2f} s"
    if used <= (64 << 20) + 100 * len(data):
        return "in proportion", detail
    return ("refused in < 1 s" if told == "refused" and seconds < 1 else "out of proportion"), detail


ROWS = [
    Row(
        "sizes",
        "empty set, empty sequence, one token, 1e5 tokens, 1e6 features, 1e6 labels (classifier, tagger)",
        "as documented; the impossible refused in < 1 s",
        len(SIZES),
        6,
        size,
        ("done", "refused"),
        300,
    ),
    Row(
        "small-made-large",
        "small inputs made to be large (indices, labels, names, gzip)",
        "memory <= 64 MB + 100x the input, or refused in < 1 s",
        500,
        8,
        small_made_large,
        ("in proportion", "refused in < 1 s"),
    ),
]
