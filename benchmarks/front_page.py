"""How long do partwise and its rivals take until they are near the optimum? The picture of README.

The picture is drawn from records that `crf` and `maxent` write with ``--json``: for each problem the fastest run of
each library, in CPU seconds to within the target of the optimum (`report.finish`). A run that was stopped before it
reached the target has a hatched bar that ends where it was stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click

from benchmarks.report import Record

#: The colour of each library's bars, by the first part of its systems' names.
LIBRARIES = {
    "partwise": "#1f6fb2",
    "crfsuite": "#b0b0b0",
    "sklearn": "#b0b0b0",
    "liblinear": "#b0b0b0",
}
TITLES = {"crfsuite": "CRFsuite", "sklearn": "scikit-learn", "liblinear": "LIBLINEAR"}
PROBLEMS = {
    "conll2000": "CRF, CoNLL-2000 chunks",
    "mnist": "multinomial, MNIST",
    "20news": "multinomial, 20 newsgroups",
    "a9a": "logistic, a9a",
    "w8a": "logistic, w8a",
}


@click.command("front-page", help=__doc__)
@click.argument("records", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", default="docs/rivals.png", show_default=True, help="Write the picture to this file.")
def command(records: tuple[Path, ...], output: str) -> None:
    lines = [json.loads(line) for path in records for line in path.read_text().splitlines()]
    draw(output, fastest(lines))


def fastest(records: Iterable[Record]) -> dict[str, list[tuple[str, float, bool]]]:
    """Return by problem (library, CPU seconds, whether the target was reached) of each library's fastest run."""
    found: dict[str, dict[str, tuple[float, bool]]] = {}
    for record in records:
        seconds, reached = record.get("cpu_seconds_to_target"), True
        if seconds is None:
            seconds, reached = record.get("more_than_cpu_seconds"), False
        if seconds is None:
            continue
        problem = f"{PROBLEMS[record.get('dataset', 'conll2000')]}, l2 = {record['l2']:g}"
        library = record["system"].split("-")[0]
        runs = found.setdefault(problem, {})
        # Runs that reached the target are faster than runs that did not.
        runs[library] = min(
            runs.get(library, (seconds, reached)), (seconds, reached), key=lambda run: (not run[1], run[0])
        )
    order = list(LIBRARIES)
    return {
        problem: [(library, *runs[library]) for library in sorted(runs, key=order.index)]
        for problem, runs in found.items()
        if len(runs) > 1
    }


def draw(path: str, problems: dict[str, list[tuple[str, float, bool]]]) -> None:
    """Draw one group of bars per problem, on a logarithmic axis of seconds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    n_bars = sum(map(len, problems.values()))
    figure, axes = pyplot.subplots(figsize=(8, 0.34 * n_bars + 0.35 * len(problems) + 0.7), layout="constrained")
    smallest = min(seconds for runs in problems.values() for _, seconds, _ in runs)
    height, centres = 0.0, []
    for runs in problems.values():
        top = height
        ours = runs[0][1]
        for library, seconds, reached in runs:
            axes.barh(
                height, seconds, color=LIBRARIES[library], height=0.8, hatch=None if reached else "///", edgecolor="w"
            )
            text = f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
            label = (
                f" partwise: {text}, certified"
                if library == "partwise"
                else f" {TITLES[library]}: {'' if reached else 'more than '}{text}"
            )
            ratio = "" if library == "partwise" else f" ({seconds / ours:.1f} x)"
            axes.text(seconds, height, label + ratio, va="center", fontsize=8)
            height += 0.9
        centres.append((top + height - 0.9) / 2)
        height += 0.6
    axes.set_yticks(centres, list(problems), fontsize=9)
    axes.invert_yaxis()
    axes.set_xscale("log")
    longest = max(seconds for runs in problems.values() for _, seconds, _ in runs)
    axes.set_xlim(smallest / 3, longest * 8)
    axes.set_xlabel("CPU seconds on one core to within 0.1 % of the optimum", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, dpi=140)
    pyplot.close(figure)
