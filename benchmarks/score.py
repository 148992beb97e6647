"""What does labelling a Parquet file cost, compared with prediction in memory? Generated short sequences.

Each system runs in its own process. In memory: `predict` on lists of words that exist already, with as many per call as
`predict_file` labels at a time, or five times as many, whichever is faster. From file to file:
`partwise.tables.predict_file`, with reading and writing. Memory is called flat if its peak at the full size is that at
a tenth of it.
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
#: The number of rows that are generated at a time.
PIECE = 100_000
#: Compressions of the files: options of pyarrow's writer.
PACKED: dict[str, dict[str, Any]] = {
    "snappy": {},
    "zstd": {"compression": "zstd"},
    "not at all": {"compression": "none"},
    "snappy, no dictionary": {"use_dictionary": False},
}


def names() -> list[str]:
    """Return all words."""
    return [f"w{k}" if k % 3 else f"Word{k}ing" for k in range(WORDS + 1)]


def numbers(n: int, seed: int) -> tuple[Any, Any]:
    """Return word numbers of n rows of 1 to 9 words, with about a language's frequencies, and the rows' lengths."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 10, n)
    return np.minimum(rng.zipf(1.3, int(lengths.sum())), WORDS), lengths


def write_model(folder: str) -> dict[str, Any]:
    """Train and save a tagger."""
    from partwise import SequenceTagger

    flat, lengths = numbers(5000, 0)
    word = names()
    some = [[word[k] for k in row.tolist()] for row in np.split(flat, np.cumsum(lengths)[:-1])]
    gold = [[f"L{(sum(each.encode()) + k) % LABELS}" for k, each in enumerate(row)] for row in some]
    SequenceTagger(template="pos", tol=0.1, random_state=0).fit(some, gold).save(os.path.join(folder, "model.pw"))
    return {}


def write_file(folder: str, name: str, rows: int, packed: str, by_word: bool) -> dict[str, Any]:
    """Write a Parquet file of this many rows, one row per sentence or per word, in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = pa.array(names())
    kinds = {"sentence": pa.int64(), "word": pa.string()} if by_word else {"words": pa.list_(pa.string())}
    path, tokens, first = Path(folder) / name, 0, 0
    with pq.ParquetWriter(path, pa.schema(kinds), **PACKED[packed]) as writer:
        while first < rows:
            flat, lengths = numbers(min(PIECE, rows - first), 1 + first)
            strings = words.take(pa.array(flat))
            if by_word:
                key = np.repeat(np.arange(first, first + len(lengths)), lengths)
                table = pa.table({"sentence": key, "word": strings})[: rows - first]
            else:
                ends = pa.array(np.append(0, np.cumsum(lengths)), type=pa.int32())
                table = pa.table({"words": pa.ListArray.from_arrays(ends, strings)})
            writer.write_table(table)
            first += len(table)
            tokens += len(table) if by_word else int(lengths.sum())
    return {"tokens": tokens, "mb": path.stat().st_size / 1e6}


def in_memory(folder: str, name: str, piece: int, jobs: int) -> dict[str, Any]:
    """Time prediction alone, on lists that exist already."""
    import pyarrow.parquet as pq

    import partwise
    from partwise.tables.arrow_columns import word_lists

    model = partwise.load(os.path.join(folder, "model.pw"))
    model.n_jobs = jobs
    cpu, wall = 0.0, 0.0
    for batch in pq.ParquetFile(os.path.join(folder, name)).iter_batches(piece):
        lists = word_lists("words", batch.column(0))
        with clock() as time:
            model.predict(lists)
        cpu, wall = cpu + time.cpu, wall + time.wall
    return {"cpu": cpu, "wall": wall, "mb": peak_mb()}


def by_file(folder: str, name: str, jobs: int, by_word: bool) -> dict[str, Any]:
    """Time `predict_file`, with reading and writing."""
    import partwise
    from partwise import tables

    out = Path(folder) / "out.parquet"
    model = partwise.load(os.path.join(folder, "model.pw"))  # not timed, as in `in_memory`
    options: Any = {"by": ["sentence"], "columns": ["word"]} if by_word else {}
    tables.TablePredictor(model, **options)
    with clock() as time:
        tables.predict_file(model, Path(folder) / name, out, n_jobs=jobs, **options)
    return {"cpu": time.cpu, "wall": time.wall, "mb": peak_mb()}


class Runs:
    """Runs on files in a folder, with their records."""

    def __init__(self, folder: str, repeat: int) -> None:
        self.folder, self.repeat = folder, repeat
        self.records: list[dict[str, Any]] = []
        run_apart("benchmarks.score:write_model", 1, folder=folder)

    def file(self, rows: int, packed: str = "snappy", by_word: bool = False) -> dict[str, Any]:
        """Write a file."""
        name = f"{rows}.parquet"
        options = {"rows": rows, "packed": packed, "by_word": by_word}
        found = run_apart("benchmarks.score:write_file", 1, folder=self.folder, name=name, **options)
        return {**options, "name": name, "tokens": found["tokens"], "file_mb": found["mb"]}

    def score(self, file: dict[str, Any], jobs: int = 1) -> dict[str, Any]:
        """Label a file in a separate process."""
        options = {"name": file["name"], "by_word": file["by_word"], "jobs": jobs}
        found = run_apart("benchmarks.score:by_file", jobs, folder=self.folder, **options)
        return self._note("file", file, jobs, [found])

    def compare(self, file: dict[str, Any], jobs: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run in memory and from file to file, in turn; return the medians of both."""
        from partwise.tables.predictor import ROWS

        memory: dict[int, list[dict[str, Any]]] = {ROWS: [], 5 * ROWS: []}
        files = []
        for _ in range(self.repeat):
            for piece, found in memory.items():
                options = {"name": file["name"], "piece": piece, "jobs": jobs}
                found.append(run_apart("benchmarks.score:in_memory", jobs, folder=self.folder, **options))
            options = {"name": file["name"], "by_word": False, "jobs": jobs}
            files.append(run_apart("benchmarks.score:by_file", jobs, folder=self.folder, **options))
        fastest = min(memory.values(), key=lambda found: median(each["cpu" if jobs == 1 else "wall"] for each in found))
        return self._note("memory", file, jobs, fastest), self._note("file", file, jobs, files)

    def _note(self, way: str, file: dict[str, Any], jobs: int, found: list[dict[str, Any]]) -> dict[str, Any]:
        cpu, wall = (median(each[name] for each in found) for name in ("cpu", "wall"))
        rates = {"cpu": cpu, "wall": wall, "per_cpu": file["tokens"] / cpu, "per_wall": file["tokens"] / wall}
        record = {"question": "score", "way": way, "threads": jobs, **file, **rates}
        self.records.append(record | {"mb": max(each["mb"] for each in found)})
        return self.records[-1]


HEADINGS = [
    "rows",
    "a row is",
    "tokens",
    "threads",
    "cpu s",
    "wall s",
    "tokens per cpu s",
    "tokens per wall s",
    "peak MB",
]


def cells(record: dict[str, Any]) -> list[str]:
    """Return a record's row of the table."""
    row = [f"{record['rows']:,}", "a word" if record["by_word"] else "a sentence", f"{record['tokens']:,}"]
    row += [str(record["threads"]), f"{record['cpu']:.1f}", f"{record['wall']:.1f}"]
    return [*row, f"{record['per_cpu']:,.0f}", f"{record['per_wall']:,.0f}", f"{record['mb']:.0f}"]


@click.command("score")
@click.option("--rows", default=10_000_000, show_default=True, type=click.IntRange(min=100), help="Rows of the file.")
@click.option("--repeat", default=2, show_default=True, type=click.IntRange(min=1), help="Runs of each, in turn.")
@click.option("--threads", default=2, show_default=True, type=click.IntRange(min=1), help="Threads, beside one alone.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
def command(rows: int, repeat: int, threads: int, json_file: str | None) -> None:
    """What does labelling a Parquet file cost, compared with prediction in memory?"""
    tenth = rows // 10
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(folder, repeat)
        file = runs.file(tenth)
        pairs = [runs.compare(file, jobs) for jobs in dict.fromkeys((1, threads))]
        sizes = [pairs[0][1]]
        for size in (3 * tenth, rows):
            file = runs.file(size)
            sizes.append(runs.score(file))
        full = [sizes[-1]] + ([runs.score(file, threads)] if threads > 1 else [])
        words = runs.file(rows, by_word=True)
        by_words = runs.score(words)
        packed = []
        for name in PACKED:
            file = runs.file(tenth, name)
            packed.append(runs.score(file))
    print_table(f"In memory: `predict` of lists, {tenth:,} rows", HEADINGS, [cells(memory) for memory, _ in pairs])
    print_table("From file to file", HEADINGS, [cells(each) for each in [*sizes, *full[1:], pairs[-1][1], by_words]])
    headings = ["compressed by", "file MB", "cpu s", "tokens per cpu s"]
    lines = [[r["packed"], f"{r['file_mb']:.1f}", f"{r['cpu']:.1f}", f"{r['per_cpu']:,.0f}"] for r in packed]
    print_table(f"Compressed input, {tenth:,} rows", headings, lines)
    ratios = {"a tenth of the rows": pairs[0][0]["per_cpu"] / pairs[0][1]["per_cpu"]}
    for (memory, _), found in zip(pairs, full, strict=False):
        clock_of = "per_cpu" if found["threads"] == 1 else "per_wall"
        ratios[f"all rows, threads: {found['threads']}"] = memory[clock_of] / found[clock_of]
    growth = sizes[-1]["mb"] / sizes[0]["mb"]
    lines = [
        [f"time, file to file against in memory, {what}", f"{ratio:.2f}", "1.20"] for what, ratio in ratios.items()
    ]
    lines.append(["peak of memory, all rows against a tenth of them", f"{growth:.2f}", "1.10"])
    print_table("Ratios", ["", "measured", "at most"], lines)
    save(json_file, [{**each, **machine()} for each in runs.records])
