"""Checks of parameters and of weights of examples."""

import math
import numbers
from typing import Any

import numpy as np

from partwise.support.arrays import Floats, Ints
from partwise.support.threads import count_threads


def check_positive(name: str, value: Any, zero: bool = False) -> None:
    """Raise ValueError unless the value is a finite number > 0 (with zero: >= 0)."""
    real = not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)
    if not real or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} must be a finite number {'>= 0' if zero else '> 0'}, got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise ValueError unless the value is one of these choices."""
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_count(name: str, value: Any) -> int:
    """Return an integer that is at least 1; raise ValueError for other values."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
    return int(value)


def check_range(name: str, value: Any, low: int, high: int) -> None:
    """Raise ValueError unless the value is an integer from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}, got {value!r}")


def count_jobs(n_jobs: Any) -> int:
    """Return the number of threads for scikit-learn's `n_jobs` (`threads.count_threads`)."""
    if n_jobs is not None and (not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or a nonzero integer, got {n_jobs!r}")
    return count_threads(None if n_jobs is None else int(n_jobs))


def seed_of(random_state: Any) -> int | None:
    """Return scikit-learn's random_state as a seed: None (another one each time), an int, or a generator's draw."""
    if random_state is None or isinstance(random_state, numbers.Integral):
        return random_state if random_state is None else int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    raise ValueError(f"random_state must be None, an int or a NumPy generator, got {random_state!r}")


def check_strength(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a strength from 1 / MOST_WEIGHT to MOST_WEIGHT, whose squares are finite."""
    check_positive(name, value)
    if not 1.0 / MOST_WEIGHT <= value <= MOST_WEIGHT:
        raise ValueError(f"{name} must lie between {1.0 / MOST_WEIGHT:g} and {MOST_WEIGHT:g}, got {value!r}")


def check_finite_weights(name: str, values: Any) -> Any:
    """Return the values; raise a ValueError that names the first one that is NaN or infinite."""
    array = np.asarray(values, dtype=np.float64)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        place = tuple(bad[0])
        raise ValueError(f"{name}: weight {', '.join(map(str, place))} is {array[place]}: weights must be finite")
    return values


#: The largest weight of an example.
MOST_WEIGHT = 1e100


def check_sums(values: Floats, examples: Ints | None = None) -> None:
    """Raise ValueError unless sums over each example's answers are finite, which huge weights or features prevent."""
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        number = int(wrong[0]) if examples is None else int(examples[wrong[0]])
        raise ValueError(f"X: the scores of example {number} are beyond double precision: no answer has a probability")


def check_sample_weight(sample_weight: Any, n_examples: int, what: str = "sequence") -> Floats | None:
    """Return one weight from 0 to MOST_WEIGHT per example, not all zero; None stays None."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers") from None
    if weight.ndim == 0:
        weight = np.full(n_examples, float(weight))
    if weight.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if len(weight) != n_examples:
        raise ValueError(f"sample_weight has {len(weight)} entries, expected one for each of {n_examples} {what}s")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise ValueError(f"sample_weight of {what} {bad[0]} is {weight[bad[0]]}: must be finite and not negative")
    large = np.flatnonzero(weight > MOST_WEIGHT)
    if len(large):
        raise ValueError(
            f"sample_weight of {what} {large[0]} is {weight[large[0]]}: at most {MOST_WEIGHT:g}, or the objective and "
            "its dual, where weights are squared, would be no numbers"
        )
    if not weight.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight
