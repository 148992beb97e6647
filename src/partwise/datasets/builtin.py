"""Data sets that are made on the spot: strings of digits, and files for tutorials and trying the command line."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from partwise.datasets.files import Dataset
from partwise.datasets.treebank import make_treebank
from partwise.support.arrays import Floats

#: Share of wrong tags in the files of columns: real ones come from taggers too.
WRONG_TAGS = 0.04
#: Share of the sentences or strings that goes to each file.
_PARTS = {"train": 0.7, "dev": 0.1, "test": 0.2}
#: Endings of the treebank's files.
_TREEBANK_KINDS = ("txt", "conllu", "mrg")
#: Digits of a string.
_MIN_LENGTH, _MAX_LENGTH = 4, 12


def digit_strings(
    n: int = 300, seed: int = 0, *, n_test: int | None = None, noise: float = 0.3
) -> Dataset[list[Floats], list[NDArray[np.int64]]]:
    """Make strings from scikit-learn's bundled 8 x 8 pictures of digits.

    The digits of a string are drawn from one fixed Markov chain, the same for all seeds. Half of the pictures serve the
    training strings and the other half the test strings. X has a (length, 64) array per string, y its digits.

    Parameters
    ----------
    n : number of training strings, of 4 to 12 digits each
    seed : of the split, the digits, the pictures and the noise
    n_test : number of test strings; None: half of n
    noise : standard deviation of the noise of pixels (between 0 and 1), which makes single digits hard to read
    """
    n_test = max(n // 2, 1) if n_test is None else n_test
    if n < 1 or n_test < 1:
        raise ValueError(f"n={n}, n_test={n_test}: at least one string of each is needed")
    if not noise >= 0.0:
        raise ValueError(f"noise={noise} is negative")
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    found: Dataset[list[Floats], list[NDArray[np.int64]]] = Dataset([], [], [], [])
    for count, half, (X, y) in zip((n, n_test), halves, (found[:2], found[2:]), strict=True):
        pools = [half[labels[half] == digit] for digit in range(10)]
        for _ in range(count):
            digits = _draw(rng)
            pixels = images[[rng.choice(pools[digit]) for digit in digits]] / 16.0
            X.append(pixels + noise * rng.standard_normal(pixels.shape))
            y.append(digits)
    return found


def transition_matrix() -> Floats:
    """Return the strings' chain: after digit a mostly comes a + 1, 3a + 2 or 7a + 5 (mod 10), sometimes any digit."""
    matrix = np.full((10, 10), 0.02)
    digits = np.arange(10)
    for share, successor in ((0.4, digits + 1), (0.25, 3 * digits + 2), (0.15, 7 * digits + 5)):
        np.add.at(matrix, (digits, successor % 10), share)
    return matrix


def _draw(rng: np.random.Generator) -> NDArray[np.int64]:
    matrix = transition_matrix()
    digits = np.empty(rng.integers(_MIN_LENGTH, _MAX_LENGTH + 1), dtype=np.int64)
    digits[0] = rng.integers(10)
    for t in range(1, len(digits)):
        digits[t] = rng.choice(10, p=matrix[digits[t - 1]])
    return digits


def _treebank(n: int, seed: int) -> dict[str, str]:
    bank = make_treebank(n, seed)
    ends = [round(share * n) for share in accumulate(_PARTS.values())]
    files: dict[str, str] = {}
    for part, begin, end in zip(_PARTS, [0, *ends], ends, strict=False):
        some = bank[begin:end]
        texts = some.columns(WRONG_TAGS), some.conllu(), some.bracketed()
        files |= {f"{part}.{kind}": text for kind, text in zip(_TREEBANK_KINDS, texts, strict=True)}
    return files


def _digits(n: int, seed: int) -> dict[str, str]:
    X, y, X_test, y_test = digit_strings(n, seed, n_test=max(n // 3, 1))
    dev = max(n // 8, 1)
    files: dict[str, str] = {}
    for part, rows, labels in (("train", X[dev:], y[dev:]), ("dev", X[:dev], y[:dev]), ("test", X_test, y_test)):
        pairs = zip(np.concatenate(rows), np.concatenate(labels), strict=True)
        lines = [f"{label} {' '.join(f'{j}:{v:.4f}' for j, v in enumerate(row, 1))}\n" for row, label in pairs]
        files[f"{part}.svm"] = "".join(lines)
    return files


#: Of each data set a description, the names of its files, and the function that makes their texts.
BUILT_IN: dict[str, tuple[str, list[str], Callable[[int, int], dict[str, str]]]] = {
    "treebank": (
        "sentences of a small grammar: word, tag, chunk (.txt), dependencies (.conllu), trees (.mrg)",
        [f"{part}.{kind}" for part in _PARTS for kind in _TREEBANK_KINDS],
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
    files = BUILT_IN[name][2](n, seed)
    for file, text in files.items():
        with atomic_write(target / file, "w") as out:
            out.write(text)
    return [target / file for file in files]
