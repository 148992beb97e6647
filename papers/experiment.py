"""An experiment: cells to run, and a function that shows what their records say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from papers.outcome import Chart, Claim, Table

#: The result of a cell: plain values, as in JSON.
Record = dict[str, Any]
#: Records by the names of their cells.
Records = Mapping[str, Record]


@dataclass(frozen=True)
class Cell:
    """One run.

    name: describes the run; it is unique among the cells of its experiment.
    function: called as function(data, **options); `data` is the folder of data sets or None.
    options: plain values; a record is valid for as long as they stay the same.
    seconds: the run's approximate time on one current processor.
    after: earlier cells whose records it needs; the function gets these, by name, as the argument `earlier`.
    """

    name: str
    function: Callable[..., Record]
    options: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 10.0
    after: tuple[Cell, ...] = ()

    def key(self, version: str) -> str:
        """Return a short hash of everything that the record depends on."""
        what = [self.name, self.function.__module__, self.function.__qualname__, dict(self.options), version]
        what += [cell.key(version) for cell in self.after]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


#: Seeds of the random orders of visits in which a cell is run if its result depends on the order.
ORDERS = range(5)


def in_orders(cell: Cell, quick: bool, **changes: Any) -> list[Cell]:
    """Return the cell in all `ORDERS`; the first keeps its name. changes: options of the other orders.

    The quick form has the first order only. The cell's function takes `random_state`.
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
    """Return the records of a cell in all orders in which it was run."""
    names = [name, *(_in_order(name, k) for k in ORDERS[1:])]
    return [records[each] for each in names if each in records]


def _in_order(name: str, order: int) -> str:
    return f"{name}, order {order}"


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    name, title: shown on the command line and the page. paper: a key of `catalogue.PAPERS`. source: tables, figures and
    sections of the paper. data: names of `partwise.datasets.DATA_SETS` that it reads. setup: what is run, and how it
    differs from the paper's experiment, in a few sentences.
    """

    name: str
    title: str
    paper: str
    source: str
    setup: str
    cells: Callable[[bool], Sequence[Cell]]
    show: Callable[[Records], Sequence[Table | Chart | Claim]]
    data: tuple[str, ...] = ()
