"""Everything that writes a file: a function that writes one of two contents, and one that reads the file."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import partwise
from helpers.checkpoint_cases import problem_for, run
from helpers.model_cases import as_names, fitted_tagger, sequences
from helpers.partition_cases import CASES
from partwise import SequenceTagger, io
from partwise.cli.output import json_line
from partwise.compat import pycrfsuite
from partwise.datasets.treebank import make_treebank
from partwise.model_files.foreign import crfsuite
from partwise.out_of_core import partitions
from partwise.report import write_report
from partwise.solvers import BlockDual
from partwise.solvers.engine import checkpoint
from partwise.tables import predict_file

LABELS = ["B", "I", "O"]
#: Whether PyArrow is installed, which writes Parquet and Arrow files.
ARROW = importlib.util.find_spec("pyarrow") is not None


@dataclass(frozen=True)
class Writer:
    """A file, a function that writes one of two contents to it, and a reader that refuses an incomplete file."""

    path: Path
    write: Callable[[int], Any]
    read: Callable[[Path], Any]
    #: Whether two writes of the same content may give different bytes.
    varies: bool = False


@cache
def two_models() -> tuple[Any, Any]:
    arrays, y = sequences(0, 25, LABELS)
    return fitted_tagger("names").estimator, SequenceTagger(tol=0.1).fit(as_names(arrays)[:10], y[:10])


@cache
def two_checkpoints() -> tuple[checkpoint.Saved, checkpoint.Saved]:
    import tempfile

    found = []
    with tempfile.TemporaryDirectory() as name:
        for passes in (3, 4):
            path = Path(name) / f"{passes}.ckpt"
            run(problem_for("bcfw"), "bcfw", path, max_passes=passes)
            found.append(checkpoint.read(path))
    return found[0], found[1]


@cache
def two_lists() -> tuple[list[Any], list[Any]]:
    rows = [[[f"w{k}", "A"] for k in range(9)] for _ in range(400)]
    return rows, rows[:300]


def _model(path: Path, which: int) -> None:
    two_models()[which].save(path)


def _crfsuite(path: Path, which: int) -> None:
    crfsuite.write(crfsuite.of_tagger(two_models()[which]), path)


def _dump(path: Path, which: int) -> None:
    source = path.with_suffix(f".{which}.crfsuite")
    if not source.exists():
        _crfsuite(source, which)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(source))
    tagger.dump(str(path))


def _text(path: Path, which: int) -> None:
    with io.atomic_write(path, "w") as file:
        file.writelines(f"line {k} {k * 7919 % 1000}\n" for k in range(3000 - which))


def _parquet(path: Path, which: int) -> None:
    source = path.parent / f"source{which}.parquet"
    if not source.exists():
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"words": [["a", "b"], ["c"]] * (200 + which)}), source)
    predict_file(words_model(), source, path)


def _read_parquet(path: Path) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(path)


def _read_arrow(path: Path) -> Any:
    import pyarrow as pa

    return pa.ipc.open_file(path).read_all()


@cache
def words_model() -> Any:
    return SequenceTagger(template="pos", tol=0.1).fit([["a", "b"], ["c"]] * 5, [["A", "B"], ["C"]] * 5)


def _trees(path: Path, which: int) -> None:
    io.write_trees(path, io.parse_trees(make_treebank(60, which).bracketed()))


def _conllu(path: Path, which: int) -> None:
    io.write_conllu(path, io.parse_conllu(make_treebank(60, which).conllu().encode()))


def _ends(path: Path, end: bytes) -> None:
    assert path.read_bytes().endswith(end)


def writers(folder: Path) -> dict[str, Writer]:
    """Return the writers of all kinds of files, for files in `folder`."""
    case = CASES["names"]

    def at(name: str, write: Any, read: Any, varies: bool = False) -> Writer:
        path = folder / name
        return Writer(path, partial(write, path), read, varies)

    def partition(path: Path, which: int) -> None:
        partitions.write(path, case.make(), case.blocks(), batch_size=20_000)

    def duals(path: Path, which: int) -> None:
        case.make(solver=BlockDual(inner="bcfw"), loss="hinge", tol=1e-30, max_passes=12).fit(
            partitions.open(path, "1G")
        ).save(path.parent / "trained.pw")

    found = {
        "model": at("m.pw", _model, partwise.load),
        "CRFsuite's model": at("m.crfsuite", _crfsuite, partwise.load),
        "dump of a model": at("m.txt", _dump, lambda path: _ends(path, b"\n")),
        "checkpoint": at("c.ckpt", lambda path, k: checkpoint.write(path, two_checkpoints()[k]), checkpoint.read),
        "text": at("p.txt", _text, lambda path: _ends(path, b"\n")),
        "gzip": at("p.gz", _text, lambda path: gzip.decompress(path.read_bytes())),
        "Parquet": at("p.parquet", _parquet, _read_parquet),
        "Arrow": at("p.arrow", _parquet, _read_arrow),
        "report": at("r.html", lambda path, k: write_report(path, two_models()[k].result_), _html, varies=True),
        "JSON lines": at("p.json", _json, lambda path: [json.loads(line) for line in path.read_text().splitlines()]),
        "columns": at("c.txt", lambda path, k: io.write_columns(path, two_lists()[k]), io.read_columns),
        "svmlight": at("c.svm", _svmlight, io.read_svmlight),
        "items": at("c.items", _items, io.read_items),
        "trees": at("c.mrg", _trees, io.read_trees),
        "CoNLL-U": at("c.conllu", _conllu, io.read_conllu),
        "partition": at("parts", partition, partitions.open),
        "dual blocks": at("blocks", duals, partitions.open),
    }
    return {kind: each for kind, each in found.items() if ARROW or kind not in ("Parquet", "Arrow")}


def _html(path: Path) -> None:
    assert path.read_bytes().rstrip().endswith(b"</html>")


def _json(path: Path, which: int) -> None:
    with io.atomic_write(path, "w") as file:
        file.writelines(json_line({"k": k, "labels": ["A"] * 10}) for k in range(1000 + which))


def _svmlight(path: Path, which: int) -> None:
    io.write_svmlight(path, [[1.0 + k, 0.0, 2.5] for k in range(3000 + which)], [k % 3 for k in range(3000 + which)])


def _items(path: Path, which: int) -> None:
    rows = two_lists()[which]
    io.write_items(path, [[[word] for word, _ in row] for row in rows], [[label for _, label in row] for row in rows])
