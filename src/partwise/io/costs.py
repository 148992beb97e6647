"""Files of costs: a line per pair of labels, ``gold label cost``."""

import math
from collections.abc import Callable, Hashable

from partwise.io.errors import FormatError
from partwise.io.files import Path, read_text


class FileCosts(dict[tuple[Hashable, Hashable], float]):
    """Costs of pairs of labels, and the line of the file in which each pair is."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.lines: dict[tuple[Hashable, Hashable], int] = {}


def read_costs(path: Path, label: Callable[[str], Hashable] = str) -> FileCosts:
    """Return costs of pairs (gold label, label), as the `cost` of estimators takes them.

    A line has three fields, separated by white space (by tabs where there are any, so that labels may have spaces):
    the gold label, the predicted label, and the cost. Blank lines and lines that begin with ``#`` are skipped. `label`
    makes a label of a text, and raises ValueError for an invalid text. FormatError, with the line, for anything else: a
    cost that is not a finite number >= 0, a correct answer that costs something, a pair that occurs twice, no pairs.
    """
    found = FileCosts(path)
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.rstrip("\r").split("\t" if "\t" in line else None)
        if len(fields) != 3:
            raise FormatError(f"expected a label, a label and a cost, got {len(fields)} fields", path, number)
        try:
            pair, cost = (label(fields[0]), label(fields[1])), float(fields[2])
        except ValueError as error:
            raise FormatError(str(error), path, number) from None
        if not (math.isfinite(cost) and cost >= 0):
            raise FormatError(f"the cost {fields[2]} must be finite and not negative", path, number)
        if cost and pair[0] == pair[1]:
            raise FormatError(f"{fields[0]} is the right answer and must cost nothing, not {fields[2]}", path, number)
        if pair in found:
            raise FormatError(f"the pair {fields[0]} {fields[1]} has two costs", path, number)
        found[pair] = cost
        found.lines[pair] = number
    if not found:
        raise FormatError("there are no costs", path)
    return found
