"""Attributes given as dicts: names and values."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

#: What is wrong with a dict whose reading ends in a RecursionError.
TOO_DEEP = "dicts are nested too deeply, or one contains itself"


def add_names(prefix: str, token: Iterable[Any], names: list[str], values: list[float]) -> None:
    """Append names of value 1."""
    # sets have no order of their own: sorted, so that vocabularies do not depend on string hashing
    for name in sorted(token) if isinstance(token, (set, frozenset)) else token:
        if not isinstance(name, str):
            raise TypeError(f"attributes must be strings, got {name!r}; give numbers as {{name: value}} or as arrays")
        names.append(prefix + name)
        values.append(1.0)


def add_dict(prefix: str, token: dict[Any, Any], names: list[str], values: list[float], separator: str = "=") -> None:
    """Append names and values; TypeError for what is neither. separator: joins a name and what it has as value."""
    for name, value in token.items():
        if not isinstance(name, str):
            raise TypeError(f"attribute names must be strings, got {name!r}")
        if isinstance(value, str):
            names.append(prefix + name + separator + value)
            values.append(1.0)
        elif isinstance(value, (numbers.Real, np.bool_)):
            if value:
                names.append(prefix + name)
                values.append(float(value))
        elif isinstance(value, dict):
            add_dict(prefix + name + separator, value, names, values, separator)
        elif isinstance(value, (list, tuple, set, frozenset)):
            add_names(prefix + name + separator, value, names, values)
        else:
            raise TypeError(f"attribute {name!r} must be a string, a number or a bool, got {value!r}")
