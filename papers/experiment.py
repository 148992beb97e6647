"""What an experiment is: cells to run, and what their records show."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from papers.outcome import Chart, Claim, Table

#: What a cell gives back: plain values, as JSON has them.
Record = dict[str, Any]
#: Records by the names of their cells.
Records = Mapping[str, Record]


@dataclass(frozen=True)
class Cell:
    """One run.

    name: says what it is, and differs from those of the other cells of its experiment.
    function: called as function(data, **options); `data` is the folder of data sets or None.
    options: plain values; a record is kept for as long as they stay the same.
    seconds: what it takes, roughly, on one processor of our time.
    after: cells before it in the list whose records it needs: `earlier`, by their names, is one more argument then.
    """

    name: str
    function: Callable[..., Record]
    options: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 10.0
    after: tuple[Cell, ...] = ()

    def key(self, version: str) -> str:
        """What the record depends on, in a few letters."""
        what = [self.name, self.function.__module__, self.function.__qualname__, dict(self.options), version]
        what += [cell.key(version) for cell in self.after]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


#: Seeds of the orders of visits in which a cell is run where chance decides.
ORDERS = range(5)


def in_orders(cell: Cell, quick: bool, **changes: Any) -> list[Cell]:
    """The cell in `ORDERS`, with its own name in the first. changes: of the options of the other orders.

    The quick form has the first order alone. The cell's function takes `random_state`.
    """
    others = ORDERS[1:] if not quick else ()
    return [
        cell,
        *(
            replace(cell, name=_in_order(cell.name, k), options={**cell.options, **changes, "random_state": k})
            for k in others
        ),
    ]


def orders_of(records: Records, name: str) -> list[Record]:
    """The records of a cell in all orders that it was run in."""
    names = [name, *(_in_order(name, k) for k in ORDERS[1:])]
    return [records[each] for each in names if each in records]


def _in_order(name: str, order: int) -> str:
    return f"{name}, order {order}"


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    name, title: in the command line and on the page. paper: a key of `catalogue.PAPERS`. source: tables, figures and
    sections of the paper. data: names of `partwise.datasets.DATA_SETS` that it reads. setup: what is run, and how it
    differs from the paper's, in a few sentences.
    """

    name: str
    title: str
    paper: str
    source: str
    setup: str
    cells: Callable[[bool], Sequence[Cell]]
    show: Callable[[Records], Sequence[Table | Chart | Claim]]
    data: tuple[str, ...] = ()
