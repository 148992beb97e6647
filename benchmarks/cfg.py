"""How accurate, and how fast, is `ConstituencyParser`? Treebank sample, at most 40 words, the last 400 trees held out.

It is compared with relative frequencies of the same grammar (same binarisation, same rare words). F1 is that of
labelled brackets by EVALB's rules; sentences without a parse are failures. Training uses `--threads` threads, parsing
one, from lists of words to trees. Restored gold trees must equal the cleaned ones.
"""

from __future__ import annotations

from typing import Any

import click

from benchmarks.measure import clock, peak_mb, run_apart
from benchmarks.report import Record, machine, print_table, save

_QUICK = 200  # trees
HELD_OUT, LONGEST = 400, 40
COLUMNS = (
    ("system", "system", ""),
    ("rules", "rules", ",d"),
    ("weights", "weights", ",d"),
    ("train_seconds", "training s", ".3g"),
    ("train_cpu_seconds", "CPU s", ".3g"),
    ("passes", "passes", ".3g"),
    ("gap", "relative gap", ".1e"),
    ("f1", "F1", ".2%"),
    ("exact", "exact", ".1%"),
    ("n_failed", "no parse", "d"),
    ("sentences_per_second", "sentences/s", ".0f"),
    ("peak_mb", "peak MB", ".0f"),
)


@click.command("cfg", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("-C", "c", default=1.0, show_default=True, help="Inverse strength of the penalty.")
@click.option("--gap", default=1e-2, show_default=True, help="Relative gap to train to.")
@click.option("--limit", default=1800.0, show_default=True, help="Seconds of training.")
@click.option("--threads", default=2, show_default=True, help="Threads of training; parsing has one.")
@click.option("--horizontal", default=1, show_default=True, help="Markov order along children.")
@click.option("--vertical", default=1, show_default=True, help="Markov order along ancestors.")
@click.option("--rare", default=2, show_default=True, help="Words seen so often or less count as their class.")
@click.option("--loss", default="log", show_default=True, help="Loss.")
@click.option("--train", "n_train", type=int, help="Train on the first trees only.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
def command(json_file: str | None, quick: bool, n_train: int | None, threads: int, **options: Any) -> None:
    options |= {"limit_trees": _QUICK if quick else n_train, "n_jobs": threads}
    records: list[Record] = []
    for system in ("relative-frequencies", "partwise"):
        found = run_apart("benchmarks.cfg:run", threads, system=system, **options)
        records.append({"question": "cfg", "system": system, **options, **machine(), **found})
    rows = [["-" if r[f] is None else format(r[f], form) for f, _, form in COLUMNS] for r in records]
    gain = 100 * (records[1]["f1"] - records[0]["f1"])
    note = f"F1 {gain:+.2f} points over relative frequencies; {records[1]['n_train']} trees to train on"
    print_table("Constituency parsing", [heading for _, heading, _ in COLUMNS], rows, note)
    save(json_file, records)


def run(
    system: str,
    data: str | None,
    c: float,
    gap: float,
    limit: float,
    horizontal: int,
    vertical: int,
    rare: int,
    loss: str,
    limit_trees: int | None,
    n_jobs: int,
) -> Record:
    """Train and score one system."""
    from partwise import ConstituencyParser
    from partwise.datasets import treebank_sample
    from partwise.metrics import parseval
    from partwise.models.constituents.treebank import TreeTransform, words_of
    from partwise.models.constituents.treebank.relative_frequency import RelativeFrequencyParser

    transform = TreeTransform(horizontal, vertical)
    trees = [tree for tree in map(transform.cleaned, treebank_sample(data)) if len(words_of(tree)) <= LONGEST]
    wrong = sum(transform.restore(transform.binary(tree)) != tree for tree in trees)
    train, test = trees[:-HELD_OUT][:limit_trees], trees[-HELD_OUT:][:limit_trees]
    record: Record = {"n_train": len(train), "n_test": len(test), "not_restored": wrong}
    if system == "partwise":
        parser: Any = ConstituencyParser(
            loss, c, horizontal=horizontal, vertical=vertical, rare=rare, tol=gap, max_seconds=limit, n_jobs=n_jobs
        )
        with clock() as training:
            parser.fit(train)
        run = parser.result_
        record |= {"weights": len(parser.coef_), "rules": len(parser.grammar_.rules)}
        record |= {"passes": float(run.passes), "gap": run.gap / run.primal, "primal": run.primal, "dual": run.dual}
        record |= {"status": run.status}
        parser.set_params(n_jobs=1)
    else:
        with clock() as training:
            parser = RelativeFrequencyParser.of(train, transform, rare=rare)
        record |= {"weights": None, "rules": len(parser.grammar.rules), "passes": None, "gap": None}
    peak = peak_mb()
    sentences = [words_of(tree) for tree in test]
    with clock() as parsing:
        found = parser.predict(sentences)
    scores = parseval(test, found)
    return record | {
        "train_seconds": training.wall,
        "train_cpu_seconds": training.cpu,
        "f1": scores.f1,
        "precision": scores.precision,
        "recall": scores.recall,
        "exact": scores.exact,
        "tag_accuracy": scores.tag_accuracy,
        "n_failed": scores.n_failed,
        "parse_cpu_seconds": parsing.cpu,
        "sentences_per_second": len(test) / parsing.cpu,
        "peak_mb": peak,
    }
