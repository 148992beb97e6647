"""Built-in data as files, for the tutorials and for trying the command line without a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from partwise.datasets.digits import digit_strings
from partwise.datasets.treebank import make_treebank

#: Share of wrong tags in the files of columns: real ones come from taggers too.
WRONG_TAGS = 0.04
#: Share of the sentences or strings that goes to each file.
_PARTS = {"train": 0.7, "dev": 0.1, "test": 0.2}


def _treebank(n: int, seed: int) -> dict[str, str]:
    bank = make_treebank(n, seed)
    files: dict[str, str] = {}
    for part, where in _cuts(n).items():
        some = bank[where]
        files |= {
            f"{part}.txt": some.columns(WRONG_TAGS),
            f"{part}.conllu": some.conllu(),
            f"{part}.mrg": some.bracketed(),
        }
    return files


def _digits(n: int, seed: int) -> dict[str, str]:
    data = digit_strings(n, seed, n_test=max(n // 3, 1))
    dev = max(n // 8, 1)
    parts = {
        "train": (data.X_train[dev:], data.y_train[dev:]),
        "dev": (data.X_train[:dev], data.y_train[:dev]),
        "test": (data.X_test, data.y_test),
    }
    return {
        f"{part}.svm": "".join(
            f"{label} {' '.join(f'{j}:{value:.4f}' for j, value in enumerate(row, 1))}\n"
            for row, label in zip(np.concatenate(X), np.concatenate(y), strict=True)
        )
        for part, (X, y) in parts.items()
    }


#: What there is: a description, the names of its files, and the function that makes them.
BUILT_IN: dict[str, tuple[str, list[str], Callable[[int, int], dict[str, str]]]] = {
    "treebank": (
        "sentences of a small grammar: word, tag, chunk (.txt), dependencies (.conllu), trees (.mrg)",
        [f"{part}.{kind}" for part in _PARTS for kind in ("txt", "conllu", "mrg")],
        _treebank,
    ),
    "digits": (
        "handwritten digits of scikit-learn with noise, 64 pixels, one per row (.svm)",
        [f"{part}.svm" for part in _PARTS],
        _digits,
    ),
}


def write_built_in(name: str, folder: Path, n: int = 2000, seed: int = 0) -> list[Path]:
    """Write a built-in data set's files into ``folder/name``; the same arguments give the same bytes."""
    from partwise.io import atomic_write

    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for file, text in BUILT_IN[name][2](n, seed).items():
        paths.append(target / file)
        with atomic_write(paths[-1], "w") as out:
            out.write(text)
    return paths


def _cuts(n: int) -> dict[str, slice]:
    cuts, begin, share = {}, 0, 0.0
    for part, size in _PARTS.items():
        share += size
        end = round(share * n)
        cuts[part] = slice(begin, end)
        begin = end
    return cuts
