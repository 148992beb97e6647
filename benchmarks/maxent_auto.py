"""Which solver should be the default for maxent: `cd` by columns, `sdca`, `lbfgs` or `newton`?

Contexts of CoNLL-2000 (parts of speech, chunks) with 0/1 features and a weight for each pair of attribute and label
that occurs five times; log loss without intercept. The table shows CPU seconds on one thread until the certified
relative gap is at most 1e-1, 1e-2 and 1e-3, including the time to make the feature map (that of "cd" has columns, which
take longer to make). Systems stop after --cap seconds. The last column is the relative gap at the end.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import click

from benchmarks.contexts import DATASETS, Contexts
from benchmarks.report import print_table

TARGETS = (1e-1, 1e-2, 1e-3)
_QUICK = 150  # sentences


def run(contexts: Contexts, solver: str, l2: float, cap: float) -> list[Any]:
    """Return the chosen solver, CPU seconds to each target (None: not reached) and the last relative gap."""
    from partwise import ConvergenceWarning, Problem, solve
    from partwise._core import padded_width
    from partwise.features import Attributes, RowLayout
    from partwise.models.classes.features import classifier_map
    from partwise.structures import Multiclass

    n_attributes, n_labels = contexts.sizes.tolist()
    rows = Attributes(contexts.row_ptr, contexts.attributes, n_attributes, None)
    pairs = contexts.pair_ptr, contexts.pair_labels
    layout = RowLayout.from_pairs(n_attributes, n_labels, padded_width(n_labels), *pairs)
    structure = Multiclass(len(contexts.labels), n_labels)
    gold = structure.encode(contexts.labels)
    reached: dict[float, float] = {}
    begin = time.process_time()

    def watch(progress: Any) -> bool:
        seconds = time.process_time() - begin
        found = progress.certificate
        for target in TARGETS:
            if found is not None and found.gap <= target * abs(found.primal):
                reached.setdefault(target, seconds)
        return seconds > cap

    columns = {"cd": True, "auto": None}.get(solver, False)  # as estimators choose the map
    features = classifier_map(structure, rows, columns, layout)
    problem = Problem(features, structure, gold, "log", l2, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(problem, solver, tol=0.9 * TARGETS[-1], callback=watch)
    return [result.solver, *(reached.get(target) for target in TARGETS), result.relative_gap]


@click.command("maxent-auto", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--datasets", default="conll-pos,conll-chunks", show_default=True, help="With commas.")
@click.option("--l2", "strengths", default="0.01,0.1,1,10", show_default=True, help="With commas.")
@click.option("--systems", default="cd,sdca,lbfgs,newton,auto", show_default=True, help="With commas.")
@click.option("--cap", default=20.0, show_default=True, help="CPU seconds per run.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
def command(data: str | None, datasets: str, strengths: str, systems: str, cap: float, quick: bool) -> None:
    table = []
    for dataset in datasets.split(","):
        contexts = DATASETS[dataset][0](data, _QUICK if quick else None)
        for l2 in map(float, strengths.split(",")):
            for system in systems.split(","):
                name, *seconds, gap = run(contexts, system, l2, cap)
                shown = ["-" if each is None else f"{each:.2f}" for each in seconds]
                table.append([dataset, f"{l2:g}", system, name, *shown, f"{gap:.1e}"])
    headings = ["dataset", "l2", "system", "solver", *(f"CPU s to {target:g}" for target in TARGETS), "gap"]
    print_table("Maxent by pairs that meet", headings, table, "-: not reached")
