"""Strings of handwritten digits whose order follows a pattern, so that neighbours help to read a digit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partwise.datasets.folder import Dataset
from partwise.support.arrays import Floats

_MIN_LENGTH, _MAX_LENGTH = 4, 12


def digit_strings(
    n: int = 300, seed: int = 0, *, n_test: int | None = None, noise: float = 0.3
) -> Dataset[list[Floats], list[NDArray[np.int64]]]:
    """Make strings from scikit-learn's bundled 8 x 8 pictures of digits.

    The digits of a string are drawn from one fixed Markov chain, the same for all seeds. Half of the pictures serve the
    training strings and the other half the test strings.

    Parameters
    ----------
    n : number of training strings, of 4 to 12 digits each
    seed : of the split, the digits, the pictures and the noise
    n_test : number of test strings; None: half of n
    noise : standard deviation of Gaussian noise added to pixels (which lie between 0 and 1): what makes a single
        digit hard to read

    Returns
    -------
    X : one (length, 64) array per string
    y : its digits
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
    parts = []
    for count, half in zip((n, n_test), halves, strict=True):
        pools = [half[labels[half] == digit] for digit in range(10)]
        X, y = [], []
        for _ in range(count):
            digits = _draw(rng)
            chosen = np.array([rng.choice(pools[digit]) for digit in digits])
            pixels = images[chosen] / 16.0
            X.append(pixels + noise * rng.standard_normal(pixels.shape))
            y.append(digits)
        parts.append((X, y))
    return Dataset(*parts[0], *parts[1])


def transition_matrix() -> Floats:
    """The strings' chain: after digit a mostly comes a + 1, 3a + 2 or 7a + 5 (mod 10), sometimes any digit."""
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
