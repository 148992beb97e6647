"""How fast, and how accurate, is arc-factored dependency parsing? UD English-EWT and CoNLL-2007 Spanish, gold tags.

Every loss gets the same features in the same run: log by `eg`, hinge by `bcfw`, squared hinge by `dcd`, each to the
target gap or its limit of CPU time. Trees are unlabelled and projective. Looking up the features of a training set is
timed separately ("features s", once per run); "s per pass" is the solver's time, certificates included, over its
passes. Parsing starts from lists of words on one thread, features included. Spanish: 2306 sentences to train, 1000 to
parse.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import click
import numpy as np

from benchmarks.measure import SystemFailed, clock, peak_mb, run_apart
from benchmarks.questions import choose
from benchmarks.report import Record, machine, print_table, save

_QUICK = 300  # sentences

#: System: (data, loss, solver, l2). On Spanish l2 is the best one in Table 3 of Collins et al. 2008.
SYSTEMS: dict[str, tuple[str, str, str, float]] = {
    "ewt-log-eg": ("ewt", "log", "eg", 10.0),
    "ewt-hinge-bcfw": ("ewt", "hinge", "bcfw", 10.0),
    "ewt-squared-hinge-dcd": ("ewt", "squared-hinge", "dcd", 10.0),
    "spanish-log-eg": ("spanish", "log", "eg", 13.841),
}
#: Columns of the table: (field of the record, heading, format).
COLUMNS = (
    ("system", "system", ""),
    ("l2", "l2", "g"),
    ("features", "features", ",d"),
    ("feature_seconds", "features s", ".3g"),
    ("pass_seconds", "s per pass", ".3g"),
    ("solver_cpu_seconds", "solver CPU s", ".3g"),
    ("passes", "passes", ".3g"),
    ("seconds_to_gap", "CPU s to gap", ".3g"),
    ("gap", "relative gap", ".1e"),
    ("uas", "UAS", ".2%"),
    ("sentences_per_second", "sentences/s", ".0f"),
    ("tokens_per_second", "tokens/s", ".0f"),
    ("peak_mb", "peak MB", ".0f"),
)


@click.command("dep", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--l2", type=float, help="Strength of the penalty [default: 10; Spanish: 13.841].")
@click.option("--gap", default=1e-2, show_default=True, help="Relative gap to train to.")
@click.option("--limit", default=150.0, show_default=True, help="CPU seconds of training per system and thread.")
@click.option("--threads", default=1, show_default=True, help="Threads of training; parsing has one.")
@click.option("--systems", default="", help="Only these systems, with commas.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
def command(
    data: str | None,
    json_file: str | None,
    l2: float | None,
    gap: float,
    limit: float,
    threads: int,
    systems: str,
    quick: bool,
) -> None:
    """Train and parse with each system in a separate process."""
    records: list[Record] = []
    for name in choose(systems, list(SYSTEMS)):
        bank, loss, solver, usual = SYSTEMS[name]
        strength = usual if l2 is None else l2
        options: dict[str, Any] = {"data": data, "bank": bank, "loss": loss, "solver": solver, "gap": gap}
        options["l2"] = strength
        options |= {"seconds": limit, "n_jobs": threads, "limit": _QUICK if quick else None}
        head = {"question": "dep", "system": name, "threads": threads, "l2": strength, **machine()}
        try:
            records.append(head | run_apart("benchmarks.dep:train_and_parse", threads, **options))
        except SystemFailed as error:
            records.append(head | {"error": str(error)})
    good = [record for record in records if "error" not in record]
    rows = [["-" if r[f] is None else format(r[f], form) for f, _, form in COLUMNS] for r in good]
    note = f"to a relative gap of {gap:g} or {limit:g} CPU s per thread; seconds are CPU seconds of all threads"
    failed = [f"{record['system']} failed: {record['error']}" for record in records if "error" in record]
    print_table("Dependency parsing", [heading for _, heading, _ in COLUMNS], rows, "\n".join([note, *failed]))
    save(json_file, records)


def load(data: str | None, bank: str, limit: int | None) -> tuple[list[Any], list[Any]]:
    """Load the sentences to train on and to parse."""
    from partwise.datasets import data_file
    from partwise.io import read_conllu

    if bank == "ewt":
        train, dev = (read_conllu(data_file("ud-english-ewt", f"{part}.conllu", data)) for part in ("train", "dev"))
        return train[:limit], dev[:limit]
    # These two files contain the sentences that Collins et al. 2008 divided into training and validation.
    files = [data_file("conll2007-spanish", f"esp.{part}", data) for part in ("train", "test")]
    every = [sentence for file in files for sentence in read_conllu(file, dialect="conllx")]
    return every[:2306][:limit], every[2306:3306][:limit]


def train_and_parse(
    data: str | None,
    bank: str,
    loss: str,
    solver: str,
    l2: float,
    gap: float,
    seconds: float,
    n_jobs: int,
    limit: int | None,
) -> Record:
    """Run one system: look up features, train, and parse on one thread from lists of words."""
    from partwise import Problem, solve
    from partwise._core import decode
    from partwise.features.arcs import ARC_TEMPLATES, ArcTable
    from partwise.models.dependencies.inputs import crossing_trees, read_words
    from partwise.structures import ProjectiveTree

    train, dev = load(data, bank, limit)
    before = peak_mb()
    with clock() as finding:
        words = read_words(train, range(len(train)), 1000)
        heads = np.concatenate([sentence.heads for sentence in train])
        crossing = crossing_trees(ProjectiveTree(words.lengths), words, heads)
        kept = ~np.isin(np.arange(len(train)), crossing)
        heads = heads[np.repeat(kept, words.lengths)]
        words = words.take(kept)
        structure, tokens = ProjectiveTree(words.lengths), words.tokens()
        table = ArcTable.fitted(ARC_TEMPLATES, tokens)
        index = table.index(tokens, heads)
        features = table.map(tokens, index, 4e9, n_jobs)

    trace: list[tuple[float, float, float]] = []  # (CPU seconds of the solver, passes, relative gap)
    begin = time.process_time()

    def note(progress: Any) -> bool:
        spent = time.process_time() - begin
        if progress.fresh:
            certificate = progress.certificate
            trace.append((spent, progress.passes, certificate.gap / abs(certificate.primal)))
        return spent >= seconds * n_jobs

    with warnings.catch_warnings(), clock() as training:
        warnings.simplefilter("ignore")
        problem = Problem(features, structure, structure.encode(heads), loss, l2, n_jobs=n_jobs)
        result = solve(problem, solver, tol=gap, callback=note, random_state=0)
    peak = peak_mb()

    plain = [[(w[1], w[2], w[3], w[4], w[5]) for w in sentence.fields()] for sentence in dev]
    with clock() as parsing:
        new = read_words(plain, range(len(plain)), 1000)
        trees = ProjectiveTree(new.lengths)
        found = trees.decode(*decode(trees, table.map(new.tokens(), index), result.weights, 1)[:3])
    gold = np.concatenate([sentence.heads for sentence in dev])
    reached = [spent for spent, _, relative in trace if relative <= gap]
    return {
        "features": index.num_weights,
        "features_per_arc": features.features_per_arc(),
        "n_train": len(words.lengths),
        "n_skipped": len(crossing),
        "feature_seconds": finding.cpu,
        "feature_mb": features.cached_bytes / 1e6,
        "solver_seconds": training.wall,
        "solver_cpu_seconds": training.cpu,
        "passes": float(result.passes),
        "pass_seconds": training.cpu / float(result.passes),
        "seconds_to_gap": reached[0] if reached else None,
        "primal": result.primal,
        "dual": result.dual,
        "gap": result.gap / result.primal,
        "status": result.status,
        "trace": [list(each) for each in trace],
        "uas": float((found == gold).mean()),
        "parse_cpu_seconds": parsing.cpu,
        "sentences_per_second": len(dev) / parsing.cpu,
        "tokens_per_second": len(gold) / parsing.cpu,
        "data_mb": before,
        "peak_mb": peak,
    }
