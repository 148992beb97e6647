"""Run experiments: each cell once, its record stored in a file, so that an interrupted run can resume.

OUT/cells/EXPERIMENT/CELL.json   the record, with the key of what it depends on (quick form: OUT/quick-cells)
OUT/EXPERIMENT/NAME.csv, .png    tables and charts
OUT/index.html                   the page, with all requested experiments
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from papers.experiment import Cell, Experiment, Record, Records
from papers.outcome import Chart, Shown, Table
from papers.page import write_page
from partwise import __version__
from partwise.datasets import DATA_SETS, data_file
from partwise.io.files import atomic_write

Say = Callable[[str], None]


#: Environment variables of libraries' threads: a cell must use one thread, as times are CPU seconds of one.
_THREADED = ("OMP", "OPENBLAS", "MKL")


def run(
    experiments: Sequence[Experiment],
    out: Path,
    data: str | None = None,
    quick: bool = False,
    again: bool = False,
    say: Say = print,
    jobs: int = 1,
    records_only: bool = False,
) -> dict[str, Shown]:
    """Run the cells that have no record yet, and write the tables, charts and claims of all.

    Parameters
    ----------
    experiments : the experiments to run
    out : folder for everything that is written
    data : folder of data sets; None: see `partwise.datasets`
    quick : a small part of the data and fewer passes
    again : also run cells that have a record
    say : takes lines of progress
    jobs : cells at a time; if more than 1, each runs in a separate process with one thread
    records_only : make the records and write nothing else

    Returns
    -------
    dict
        What each experiment showed, by name; empty with `records_only`.
    """
    for experiment in experiments:
        _check_data(experiment, data)
    plans = {experiment.name: (experiment, _cells(experiment, quick)) for experiment in experiments}
    store = out / ("quick-cells" if quick else "cells")
    records: dict[str, dict[str, Record]] = {name: {} for name in plans}
    waiting: list[tuple[Experiment, Cell]] = []
    for experiment, cells in plans.values():
        for cell in cells:
            kept = None if again else _kept(store, experiment, cell)
            if kept is None:
                waiting.append((experiment, cell))
            else:
                records[experiment.name][cell.name] = kept
    clock = _Clock([cell.seconds for _, cell in waiting], jobs)
    say(clock.plan(sum(len(cells) for _, cells in plans.values())))
    shown: dict[str, Shown] = {}

    def show_complete() -> None:
        for experiment, cells in plans.values():
            if not records_only and experiment.name not in shown and len(records[experiment.name]) == len(cells):
                shown[experiment.name] = write(experiment, records[experiment.name], out)
                for claim in shown[experiment.name].claims:
                    say(f"  {claim.line()}")

    show_complete()
    running: dict[Future[tuple[Record, float]], tuple[Experiment, Cell]] = {}
    with _pool(jobs) as pool:
        while waiting or running:
            ready = (each for each in waiting if all(c.name in records[each[0].name] for c in each[1].after))
            for experiment, cell in list(ready)[: jobs - len(running)]:
                waiting.remove((experiment, cell))
                say(f"{clock.begin()} {experiment.name}: {cell.name} ({clock.expect(cell.seconds)})")
                earlier = {c.name: records[experiment.name][c.name] for c in cell.after}
                running[pool.submit(_make, store, experiment.name, cell, data, earlier)] = experiment, cell
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                experiment, cell = running.pop(future)
                records[experiment.name][cell.name], took = future.result()
                clock.done(cell.seconds, took)
            show_complete()
    if not records_only:
        write_page(out, experiments, shown, quick)
    return shown


def _make(
    store: Path, experiment: str, cell: Cell, data: str | None, earlier: Mapping[str, Record]
) -> tuple[Record, float]:
    """Run a cell and store its record; return the record and the seconds that it took."""
    begin = time.perf_counter()
    given = {"earlier": earlier} if cell.after else {}
    record: Record = json.loads(json.dumps(cell.function(data, **cell.options, **given), default=_plain))
    _keep(store, experiment, cell, record)
    return record, time.perf_counter() - begin


class _ThisProcess(Executor):
    """An executor that does the work in this process when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _pool(jobs: int) -> Executor:
    if jobs == 1:
        return _ThisProcess()
    # Libraries read these variables on import, and spawned processes import them again.
    os.environ.update({f"{library}_NUM_THREADS": "1" for library in _THREADED})
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


def write(experiment: Experiment, records: Records, out: Path) -> Shown:
    """Write tables as CSV files, and charts as CSV and PNG files."""
    from papers.pictures import draw

    shown = Shown.of(experiment.show(records))
    folder = out / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    items: list[Table | Chart] = [*shown.tables, *shown.charts]
    names = [item.name for item in items]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{experiment.name}: two tables or charts have the name {twice!r}")
    for item in items:
        with atomic_write(folder / f"{item.name}.csv", "w") as text:
            text.write(item.csv())
    for chart in shown.charts:
        with atomic_write(folder / f"{chart.name}.png", "wb") as picture:
            picture.write(draw(chart))
    return shown


@dataclass
class _Clock:
    """A run's progress, and an estimate of its time left: declared seconds times the ratio observed so far."""

    left: list[float]
    jobs: int
    total: int = field(init=False)
    begun: int = 0
    said: float = 0.0
    took: float = 0.0

    def __post_init__(self) -> None:
        self.total = len(self.left)

    def plan(self, cells: int) -> str:
        known = cells - self.total
        text = f"{cells} runs" + (f", {known} of them made before" if known else "")
        return f"{text}; {duration(sum(self.left))} to go" if self.left else text

    def begin(self) -> str:
        self.begun += 1
        return f"[{self.begun}/{self.total}]"

    def expect(self, seconds: float) -> str:
        return f"{duration(self._scaled(seconds))}, {duration(self._scaled(sum(self.left) / self.jobs))} in all"

    def done(self, said: float, took: float) -> None:
        self.left.remove(said)
        self.said += said
        self.took += took

    def _scaled(self, seconds: float) -> float:
        # Before any cell has run, 30 s declared and 30 s taken are assumed, so that the first ratios are moderate.
        return seconds * (30.0 + self.took) / (30.0 + self.said)


def duration(seconds: float) -> str:
    """Write a duration in words, rounded."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def _check_data(experiment: Experiment, data: str | None) -> None:
    """Raise FileNotFoundError before any work if a file is missing, with its name and how to get it."""
    for name in experiment.data:
        for file in DATA_SETS[name].files:
            try:
                data_file(name, file.name, data)
            except FileNotFoundError as error:
                how = f"`partwise data fetch {name}` downloads it" if DATA_SETS[name].downloadable else "put it there"
                raise FileNotFoundError(f"{experiment.name} needs {name}/{file.name}: {error}; {how}") from None


def _cells(experiment: Experiment, quick: bool) -> list[Cell]:
    cells = list(experiment.cells(quick))
    files = [_slug(cell.name) for cell in cells]
    if len(set(files)) < len(files):
        twice = next(name for name in files if files.count(name) > 1)
        raise ValueError(f"{experiment.name}: two cells have the name {twice!r}")
    return cells


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def _file(store: Path, experiment: str, cell: Cell) -> Path:
    return store / experiment / f"{_slug(cell.name)}.json"


def _kept(store: Path, experiment: Experiment, cell: Cell) -> Record | None:
    """Return the record of an earlier run if it has the same options and version, else None."""
    try:
        found = json.loads(_file(store, experiment.name, cell).read_text())
        return dict(found["record"]) if found["key"] == cell.key(__version__) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(store: Path, experiment: str, cell: Cell, record: Record) -> None:
    path = _file(store, experiment, cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, "w") as file:
        json.dump({"key": cell.key(__version__), "record": record}, file)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a record holds plain values, not {type(value).__name__}")
