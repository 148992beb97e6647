"""Does partwise train structural SVMs at least as fast as the original, SVM-hmm? Each system runs to SVM-hmm's gap.

SVM-hmm's figures (CPU seconds, primal and dual objective) are from one of its runs on a similar machine; it is not run
here. Its objective is 1/2 |w|^2 + C / n times the sum of hinges, where the cost is the number of wrong labels, so l2 =
n / C, and objectives are shown in its units. As in SVM-hmm, every pair of attribute and label has a weight. Seconds are
those of training, without reading the data; a certificate is issued after every step, and its time counts.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from pathlib import Path

import click
import numpy as np
import scipy.sparse as sp

from benchmarks.chains import Chains, Task, conll2000
from benchmarks.measure import SystemFailed, clock, peak_mb, run_apart
from benchmarks.questions import choose
from benchmarks.report import Record, machine, print_table, save

SYSTEMS = ("one-slack", "auto", "bmrm", "bcfw")
_QUICK = 60  # sequences
_AGREE = 1e-8  # relative difference between a reported objective and the independent one


@dataclasses.dataclass(frozen=True)
class Original:
    """A run of SVM-hmm: its C, CPU seconds, primal and dual objective."""

    C: float
    seconds: float
    primal: float
    dual: float

    @property
    def relative_gap(self) -> float:
        return (self.primal - self.dual) / self.primal


ORIGINALS = {
    "ocr-letters-0": Original(100.0, 1.95, 268.2, 260.1),
    "ocr-letters-1-9": Original(1000.0, 23.9, 2666.5, 2577.4),
    "conll2000": Original(1000.0, 77.9, 1424.2, 1035.1),
}


def chains_of(dataset: str, data: str | None, limit: int | None) -> Chains:
    """Return the training sequences of one comparison."""
    from partwise import datasets

    if dataset == "conll2000":
        return dataclasses.replace(conll2000(data, limit), observed=False)
    folds = range(1, 10) if dataset == "ocr-letters-0" else [0]
    full = datasets.ocr_letters(data, test_folds=folds)
    words, letters = full.X_train[:limit], full.y_train[:limit]
    pixels = np.concatenate(words)
    design = sp.csr_array(np.column_stack([pixels, np.ones(len(pixels))]))
    gold = np.array([ord(letter) - ord("a") for word in letters for letter in word], dtype=np.int64)
    return Chains(design, gold, np.array([len(word) for word in words]), 26, observed=False)


@click.command("originals", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--datasets", default="", help="Only these data sets, with commas.")
@click.option("--systems", default="", help="Only these systems, with commas.")
@click.option("--cap", default=300.0, show_default=True, help="CPU seconds per run.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
def command(data: str | None, json_file: str | None, datasets: str, systems: str, cap: float, quick: bool) -> None:
    records: list[Record] = []
    with tempfile.TemporaryDirectory() as folder:
        for dataset in choose(datasets, list(ORIGINALS), "--datasets"):
            arrays = str(Path(folder) / f"{dataset}.npz")
            chains_of(dataset, data, _QUICK if quick else None).save(arrays)
            for system in choose(systems, list(SYSTEMS)):
                head = {"question": "originals", "dataset": dataset, "system": system, "part": quick, **machine()}
                try:
                    cell = run_apart(
                        "benchmarks.originals:run", 1, arrays=arrays, dataset=dataset, system=system, cap=cap
                    )
                except SystemFailed as error:
                    cell = {"error": str(error)}
                records.append({**head, **cell})
                save(json_file, records)
            show(dataset, [record for record in records if record["dataset"] == dataset], quick)
    troubles = [f"{r['dataset']}, {r['system']}: {r['error']}" for r in records if "error" in r]
    if troubles:
        raise click.ClickException("\n".join(troubles))


def run(arrays: str, dataset: str, system: str, cap: float) -> Record:
    """Train to SVM-hmm's relative gap."""
    import warnings

    from partwise import ConvergenceWarning, get_solver, solve

    chains, original = Chains.load(arrays), ORIGINALS[dataset]
    n = len(chains.lengths)
    task = Task(chains, "hinge", n / original.C, 1)
    solver = system if system == "auto" else get_solver(system)
    began = time.process_time()
    with warnings.catch_warnings(), clock() as spent:
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(
            task.problem,
            solver,
            tol=original.relative_gap,
            callback=lambda _: time.process_time() - began > cap,
        )
    unit = original.C / n  # factor from our objective to SVM-hmm's
    independent = task.primal(result.weights)
    if abs(independent - result.primal) > _AGREE * abs(independent):
        raise ValueError(f"{system}: the objective is {independent}, not {result.primal}")
    return {
        "C": original.C,
        "solver": result.solver,
        "status": result.status,
        "cpu_seconds": spent.cpu,
        "seconds": spent.wall,
        "passes": result.passes,
        "primal": unit * result.primal,
        "dual": unit * result.dual,
        "relative_gap": result.relative_gap,
        "target": original.relative_gap,
        "times_original": spent.cpu / original.seconds,
        "peak_mb": peak_mb(),
    }


def show(dataset: str, records: list[Record], quick: bool) -> None:
    """Print a table with SVM-hmm's figures first."""
    original = ORIGINALS[dataset]
    first = {
        "system": "SVM-hmm (as recorded)",
        "cpu_seconds": original.seconds,
        "primal": original.primal,
        "dual": original.dual,
        "relative_gap": original.relative_gap,
    }
    columns = (
        ("system", "system", ""),
        ("solver", "solver", ""),
        ("status", "ended", ""),
        ("cpu_seconds", "CPU s", ".3g"),
        ("times_original", "CPU s / SVM-hmm's", ".2g"),
        ("passes", "passes", ".4g"),
        ("primal", "primal", ".1f"),
        ("dual", "dual", ".1f"),
        ("relative_gap", "relative gap", ".3g"),
        ("peak_mb", "peak MB", ".0f"),
    )
    good = [record for record in records if "error" not in record]
    title = f"{dataset}{' (part: SVM-hmm had all of it)' if quick else ''}, C = {original.C:g}"
    rows = [
        ["" if record.get(name) is None else format(record[name], form) for name, _, form in columns]
        for record in [first, *good]
    ]
    print_table(title, [heading for _, heading, _ in columns], rows)
