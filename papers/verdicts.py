"""The rule, the same for all experiments, that decides whether numbers support a claim.

Verdicts are True, False and None, "cannot be told". A comparison of two methods cannot be told

- if chance may decide, for a method run in several random orders of visits: if there are fewer than `LEAST`
orders, or if the means differ by less than `ERRORS` standard errors of the difference;
- if neither method reached the goal within its budget, or only some of a method's runs did;
- if one method alone reached it, but so late that the budget cannot tell a claimed factor.

A claim about several cases, such as values of C, does not hold if one case speaks against it; otherwise it cannot be
told if one case cannot be told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

#: The fewest orders of visits, and the standard errors of a difference, that distinguish two methods.
LEAST, ERRORS = 5, 2.0
#: The factor that counts as "considerably" or "significantly" faster.
CLEARLY = 1.25

Verdict = bool | None


def every(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on a claim that must hold in every case."""
    found = list(verdicts)
    return False if False in found else None if None in found or not found else True


def some(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on a claim that one case is enough for."""
    found = list(verdicts)
    return True if True in found else None if None in found or not found else False


def larger(mine: Sequence[float], theirs: Sequence[float], by: float = 0.0) -> Verdict:
    """Return whether the mean of `mine` exceeds that of `theirs` by more than `by`; single values are exact."""
    if any(1 < len(values) < LEAST for values in (mine, theirs)):
        return None
    difference = float(np.mean(mine) - np.mean(theirs)) - by
    error = math.hypot(standard_error(mine), standard_error(theirs))
    return None if abs(difference) <= ERRORS * error else difference > 0


def sooner(
    mine: Sequence[float | None], theirs: Sequence[float | None], factor: float = 1.0, budget: float = math.inf
) -> Verdict:
    """Return whether `mine` is shorter by this factor; None or infinity: goal not reached within the budget."""
    reached = [[value for value in values if value is not None and value < math.inf] for values in (mine, theirs)]
    missed = [len(mine) - len(reached[0]), len(theirs) - len(reached[1])]
    if missed == [0, 0]:
        logs = [[math.log(max(value, 1e-300)) for value in values] for values in reached]
        return larger(logs[1], logs[0], by=math.log(factor))
    if missed[0] == 0 and not reached[1]:
        return True if factor * max(reached[0]) <= budget or factor == 1.0 else None
    return False if missed[1] == 0 and not reached[0] else None


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of the mean; 0 for a single value."""
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def mean_text(values: Sequence[float | None], form: str = ".3g") -> str:
    """Write the mean over orders and its standard error, or how many orders reached the goal."""
    reached = [value for value in values if value is not None]
    if not reached:
        return "not reached"
    mean, error = float(np.mean(reached)), standard_error(reached)
    text = _plain(mean, form)
    if len(reached) > 1:
        text += f" ± {_plain(error, '.2g') if error > 1e-9 * abs(mean) else 0}"
    return text + (f" (in {len(reached)} of {len(values)} orders)" if len(reached) < len(values) else "")


def _plain(value: float, form: str) -> str:
    """Format the number without an exponent, unless it is huge."""
    text = format(value, form)
    return format(value, ".0f") if "e+" in text and abs(value) < 1e6 else text
