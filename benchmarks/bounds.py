"""Is the margin bound below 1 on real data? a9a and w8a (two labels, rows of length 1), four penalties.

The bound is that of the zero-one loss with delta = 0.05.
"""

from __future__ import annotations

import click

from benchmarks.report import Record, machine, print_table, save

_DATA = ("a9a", "w8a")
_STRENGTHS = (0.001, 0.01, 0.1, 1.0)
_QUICK = 2000  # rows


@click.command("bounds", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
def command(data: str | None, json_file: str | None, quick: bool) -> None:
    from sklearn.preprocessing import normalize

    from partwise import MaxentClassifier, datasets
    from partwise.bounds import margin_bound

    records: list[Record] = []
    for name in _DATA:
        rows, labels, _, _ = getattr(datasets, name)(data)
        X, y = normalize(rows[: _QUICK if quick else None]), labels[: _QUICK if quick else None]
        for C in _STRENGTHS:
            fitted = MaxentClassifier(C=C).fit(X, y)
            bound = margin_bound(fitted.labelled(X, y), fitted.weights_, loss="zero-one")
            records.append({"question": "bounds", "dataset": name, "C": C, **vars(bound), "part": quick, **machine()})
    columns = {"n_examples": "d", "C": "g", "value": ".4f", "gamma": ".4f", "empirical": ".4f"}
    columns |= {"older_empirical": ".4f", "training_loss": ".4f"}
    table = [[str(r["dataset"]), *(format(r[name], form) for name, form in columns.items())] for r in records]
    print_table("Margin bounds, zero-one loss", ["dataset", *columns], table)
    save(json_file, records)
