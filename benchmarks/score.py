"""What does scoring a Parquet file cost beside prediction in memory? Generated short sequences, a tagger of words.

Both label the same rows in a process of their own: in memory `predict` of lists of words, in pieces as large as those
of the file; from file to file `partwise.scoring.predict_file`, reading and writing included. Memory is flat if its peak
at the full size is that at a tenth of it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

from benchmarks.measure import clock, peak_mb, run_apart
from benchmarks.report import machine, print_table, save

WORDS, LABELS = 20_000, 12


def sentences(n: int, seed: int) -> list[list[str]]:
    """Rows of 1 to 9 words with the frequencies of a language, about."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 10, n)
    numbers = np.minimum(rng.zipf(1.3, int(lengths.sum())), WORDS)
    names = [f"w{k}" if k % 3 else f"Word{k}ing" for k in range(WORDS + 1)]
    flat = [names[k] for k in numbers.tolist()]
    ends = np.append(0, np.cumsum(lengths)).tolist()
    return [flat[a:b] for a, b in zip(ends, ends[1:], strict=False)]


def write_files(folder: str, rows: int) -> dict[str, Any]:
    """A tagger and a Parquet file of this many rows, written in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from partwise import SequenceTagger

    some = sentences(5000, 0)
    gold = [[f"L{(hash_of(word) + k) % LABELS}" for k, word in enumerate(row)] for row in some]
    SequenceTagger(template="pos", tol=0.1, random_state=0).fit(some, gold).save(os.path.join(folder, "model.pw"))
    schema = pa.schema([("words", pa.list_(pa.string()))])
    with pq.ParquetWriter(os.path.join(folder, f"{rows}.parquet"), schema) as writer:
        for first in range(0, rows, 100_000):
            piece = sentences(min(100_000, rows - first), 1 + first)
            writer.write_table(pa.table({"words": piece}, schema=schema))
    return {}


def hash_of(word: str) -> int:
    """The same in every process."""
    return sum(word.encode())


def in_memory(folder: str, rows: int) -> dict[str, Any]:
    """Prediction alone: the lists are there already."""
    import pyarrow.parquet as pq

    import partwise

    model = partwise.load(os.path.join(folder, "model.pw"))
    seconds, tokens = 0.0, 0
    for batch in pq.ParquetFile(os.path.join(folder, f"{rows}.parquet")).iter_batches(10_000):
        lists = batch.column(0).to_pylist()
        with clock() as time:
            found = model.predict(lists)
        seconds, tokens = seconds + time.cpu, tokens + sum(map(len, found))
    return {"cpu": seconds, "tokens": tokens, "mb": peak_mb()}


def by_file(folder: str, rows: int) -> dict[str, Any]:
    """From file to file."""
    import partwise
    from partwise import scoring

    out = Path(folder) / "out.parquet"
    model = partwise.load(os.path.join(folder, "model.pw"))  # as in memory, where loading and imports do not count
    scoring.Scorer(model)
    with clock() as time:
        scoring.predict_file(model, Path(folder) / f"{rows}.parquet", out)
    return {"cpu": time.cpu, "mb": peak_mb(), "bytes": out.stat().st_size}


@click.command("score")
@click.option("--rows", default=1_000_000, show_default=True, type=click.IntRange(min=10), help="Rows of the file.")
@click.option("--repeat", default=3, show_default=True, type=click.IntRange(min=1), help="Runs of each, in turn.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
def command(rows: int, repeat: int, json_file: str | None) -> None:
    """What does scoring a Parquet file cost beside prediction in memory?"""
    with tempfile.TemporaryDirectory() as folder:
        for size in (rows, rows // 10):
            run_apart("benchmarks.score:write_files", 1, folder=folder, rows=size)
        memory, files = [], []
        for _ in range(repeat):
            memory.append(run_apart("benchmarks.score:in_memory", 1, folder=folder, rows=rows))
            files.append(run_apart("benchmarks.score:by_file", 1, folder=folder, rows=rows))
        small = run_apart("benchmarks.score:by_file", 1, folder=folder, rows=rows // 10)
    record = {
        "question": "score",
        "rows": rows,
        "tokens": memory[0]["tokens"],
        "memory_cpu": median(each["cpu"] for each in memory),
        "file_cpu": median(each["cpu"] for each in files),
        "file_mb": max(each["mb"] for each in files),
        "tenth_mb": small["mb"],
    }
    ratio = record["file_cpu"] / record["memory_cpu"]
    cells = [
        f"{rows:,}",
        f"{record['tokens']:,}",
        f"{record['memory_cpu']:.2f}",
        f"{record['file_cpu']:.2f}",
        f"{ratio:.2f}",
        f"{rows / record['file_cpu']:,.0f}",
        f"{record['tenth_mb']:.0f}",
        f"{record['file_mb']:.0f}",
    ]
    headings = ["rows", "tokens", "in memory cpu s", "file to file cpu s", "ratio", "rows/s"]
    print_table("Scoring a Parquet file", [*headings, "peak MB, a tenth", "peak MB"], [cells])
    save(json_file, [{**record, "ratio": ratio, **machine()}])
