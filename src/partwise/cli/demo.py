"""``partwise demo``: read strings of handwritten digits, one digit at a time and as chains."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from partwise.datasets import digit_strings
from partwise.result import Result

Strings = Sequence[NDArray[np.int64]]


@dataclass(frozen=True)
class Row:
    """One line of the demo's table."""

    name: str
    digits_right: float
    strings_right: float
    seconds: float
    result: Result


@click.command("demo")
@click.option("--strings", default=400, show_default=True, help="Training strings.", type=click.IntRange(min=10))
@click.option("--seed", default=0, show_default=True, help="Seed of the data and of the solvers.")
@click.option("--tol", default=1e-3, show_default=True, help="Stop at a duality gap of this share of the objective.")
@click.option("--jobs", default=1, show_default=True, help="Threads.")
def command(strings: int, seed: int, tol: float, jobs: int) -> None:
    """Train a CRF and a max-margin chain on strings of handwritten digits and show their certificates.

    The digits are scikit-learn's, blurred with noise; the strings follow a pattern that a chain can learn and a
    digit-by-digit classifier cannot. Test strings use other pictures than training strings.
    """
    rows = run(strings, seed, tol, jobs)
    title = f"Strings of handwritten digits: {strings} for training, {max(strings // 2, 1)} for testing"
    table = Table(title=title, box=box.SIMPLE, show_edge=False, pad_edge=False, collapse_padding=True)  # 80 columns
    for heading in ("model", "digits\nright", "strings\nright", "primal", "dual", "gap /\nprimal", "passes", "seconds"):
        table.add_column(heading, justify="left" if heading == "model" else "right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.name,
            f"{row.digits_right:.1%}",
            f"{row.strings_right:.1%}",
            f"{row.result.primal:.2f}",
            f"{row.result.dual:.2f}",
            f"{row.result.relative_gap:.0e}",
            f"{row.result.passes:.0f}",
            f"{row.seconds:.2f}",
        )
    console = Console()
    console.print(table)
    console.print(
        "A certificate bounds how far training is from its optimum: the best objective lies between dual and primal."
    )


def run(strings: int, seed: int, tol: float, jobs: int) -> list[Row]:
    """Train the three models; the first one reads each digit by itself."""
    from partwise.estimators import MaxentClassifier, SequenceTagger

    data = digit_strings(strings, seed)
    common: dict[str, Any] = {"C": 0.1, "tol": tol, "n_jobs": jobs, "random_state": seed}
    single = MaxentClassifier(loss="log", **common)
    begin = time.perf_counter()
    single.fit(np.concatenate(data.X_train), np.concatenate(data.y_train))
    seconds = time.perf_counter() - begin
    rows = [_row("digit by digit (log)", [single.predict(x) for x in data.X_test], data.y_test, seconds, single)]
    for name, loss in (("CRF chain (log)", "log"), ("max-margin (hinge)", "hinge")):
        tagger = SequenceTagger(loss=loss, **common)
        begin = time.perf_counter()
        tagger.fit(data.X_train, data.y_train)
        seconds = time.perf_counter() - begin
        rows.append(_row(name, tagger.predict(data.X_test), data.y_test, seconds, tagger))
    return rows


def _row(name: str, predicted: Sequence[Any], gold: Strings, seconds: float, model: Any) -> Row:
    right = [np.asarray(a) == b for a, b in zip(predicted, gold, strict=True)]
    return Row(
        name,
        float(np.concatenate(right).mean()),
        float(np.mean([all(string) for string in right])),
        seconds,
        model.result_,
    )
