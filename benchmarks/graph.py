"""How fast are exact sums over a graph's labellings? Junction trees of partwise and pgmpy on the same random graphs.

Both give log Z and the marginals of all vertices and edges. pgmpy's come from its `BeliefPropagation`, calibrated; its
log Z is the log of the sum of any clique's beliefs. partwise is called from Python, one graph at a time. Times are CPU
seconds per graph, medians over graphs, without the time to make the models.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

import click
import numpy as np

from benchmarks.measure import clock
from benchmarks.report import Record, machine, print_table, save

#: (vertices, labels, edges beyond those of a tree).
SIZES = ((6, 3, 2), (8, 3, 3), (12, 3, 3), (16, 2, 4))
FASTER, EQUAL = 100.0, 1e-8
_OURS, _THEIRS = 200, 3  # timed runs on each graph, after one that is not timed


@click.command("graph", help=__doc__)
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--graphs", default=5, show_default=True, help="Graphs of each size.")
@click.option("--seed", default=0, show_default=True, help="Of the graphs.")
@click.option("--quick", is_flag=True, help="The smallest size alone.")
def command(json_file: str | None, graphs: int, seed: int, quick: bool) -> None:
    records: list[Record] = []
    for n, n_labels, more in SIZES[:1] if quick else SIZES:
        rng = np.random.default_rng(seed)
        found = [compare(*random_graph(rng, n, n_labels, more), n_labels) for _ in range(graphs)]
        record = {"question": "graph", "vertices": n, "labels": n_labels, "extra_edges": more, "graphs": graphs}
        for name in ("ours_seconds", "pgmpy_seconds", "ratio"):
            record[name] = statistics.median(each[name] for each in found)
        record["width"] = max(each["width"] for each in found)
        record["difference"] = max(each["difference"] for each in found)
        records.append({**record, **machine()})
    rows = [
        [
            f"{record['vertices']} vertices, {record['labels']} labels",
            format(record["width"], "d"),
            *(format(record[name], ".3g") for name in ("ours_seconds", "pgmpy_seconds", "ratio", "difference")),
        ]
        for record in records
    ]
    headings = ["graphs", "width", "ours CPU s", "pgmpy CPU s", "ratio", "largest difference"]
    print_table("log Z and marginals of vertices and edges", headings, rows)
    for holds, text in (
        (all(record["difference"] <= EQUAL for record in records), f"equal to {EQUAL:g}"),
        (all(record["ratio"] >= FASTER for record in records), f"at least {FASTER:g} times as fast"),
    ):
        click.echo(f"{'yes' if holds else 'NO '}  {text}")
    save(json_file, records)


def random_graph(
    rng: np.random.Generator, n: int, n_labels: int, more: int
) -> tuple[list[tuple[int, int]], list[Any], list[Any]]:
    """Make a random tree with `more` further edges, and scores of vertices and edges."""
    edges = [(int(rng.integers(v)), v) for v in range(1, n)]
    while len(edges) < n - 1 + more:
        u, v = sorted(rng.choice(n, 2, replace=False).tolist())
        if (u, v) not in edges:
            edges.append((u, v))
    return edges, list(rng.normal(size=(n, n_labels))), list(rng.normal(size=(len(edges), n_labels, n_labels)))


def compare(edges: list[tuple[int, int]], rows: list[Any], tables: list[Any], n_labels: int) -> Record:
    """Compare time and answers of both libraries on one graph."""
    log_z, vertices, pairs, ours, width = our_answers(edges, rows, tables, n_labels)
    other, their_vertices, their_pairs, theirs = pgmpy_answers(edges, rows, tables, n_labels)
    differences = [abs(log_z - other), np.abs(vertices - their_vertices).max(), np.abs(pairs - their_pairs).max()]
    difference = float(max(differences))
    return {
        "ours_seconds": ours,
        "pgmpy_seconds": theirs,
        "ratio": theirs / ours,
        "difference": math.inf if math.isnan(difference) else difference,
        "width": width,
    }


def our_answers(edges: Any, rows: Any, tables: Any, n_labels: int) -> tuple[float, Any, Any, float, int]:
    """Return partwise's log Z, marginals of vertices and edges, CPU seconds, and the width of the junction tree."""
    from partwise.structures import graph, padded_width

    structure = graph([([n_labels] * len(rows), edges)])
    width = padded_width(n_labels)
    scores = np.zeros(structure.num_slots(0))
    cut = len(rows) * width
    scores[:cut].reshape(len(rows), width)[:, :n_labels] = rows
    scores[cut:].reshape(len(edges), n_labels, width)[:, :, :n_labels] = tables
    tree_width = structure.width(0)  # the junction tree is made here, before the clock starts, as pgmpy's is
    log_z, marginals, _ = structure.log_partition(0, scores)
    with clock() as used:
        for _ in range(_OURS):
            structure.log_partition(0, scores)
    vertices = marginals[:cut].reshape(len(rows), width)[:, :n_labels]
    pairs = marginals[cut:].reshape(len(edges), n_labels, width)[:, :, :n_labels]
    return log_z, vertices, pairs, used.cpu / _OURS, tree_width


def pgmpy_answers(edges: Any, rows: Any, tables: Any, n_labels: int) -> tuple[float, Any, Any, float]:
    """Return pgmpy's log Z, marginals of vertices and edges, and CPU seconds."""
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import BeliefPropagation
    from pgmpy.models import DiscreteMarkovNetwork

    names = [f"v{v}" for v in range(len(rows))]
    network = DiscreteMarkovNetwork([(names[u], names[v]) for u, v in edges])
    network.add_factors(
        *(DiscreteFactor([name], [n_labels], np.exp(row)) for name, row in zip(names, rows, strict=True)),
        *(
            DiscreteFactor([names[u], names[v]], [n_labels, n_labels], np.exp(table).ravel())
            for (u, v), table in zip(edges, tables, strict=True)
        ),
    )
    seconds = []
    for _ in range(_THEIRS + 1):
        propagation = BeliefPropagation(network)
        with clock() as used:
            propagation.calibrate()
            beliefs = propagation.get_clique_beliefs()
            log_z = math.log(next(iter(beliefs.values())).values.sum())
            vertices = np.array([_marginal(beliefs, [name]) for name in names])
            pairs = np.array([_marginal(beliefs, [names[u], names[v]]) for u, v in edges])
        seconds.append(used.cpu)
    return log_z, vertices, pairs, statistics.median(seconds[1:])


def _marginal(beliefs: dict[Any, Any], names: list[str]) -> Any:
    """Return the marginal of these variables from the smallest clique that has them, axes in the order of `names`."""
    having = [clique for clique in beliefs if set(names) <= set(clique)]
    belief = beliefs[min(having, key=len)]
    rest = [name for name in belief.variables if name not in names]
    found = belief.marginalize(rest, inplace=False) if rest else belief
    order = [found.variables.index(name) for name in names]
    values = np.transpose(found.values, order)
    return values / values.sum()
