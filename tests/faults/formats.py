"""Readers of files: mutated real files (PARTWISE_DATA), or small ones where there are none."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from partwise.cli.tasks.constraints import read_arc_rules, read_constraints
from partwise.cli.tasks.treefiles import read_span_rules
from partwise.features import Template
from partwise.features.presets import read_clusters
from partwise.io import FormatError, read_columns, read_conllu, read_items, read_svmlight, read_trees

from .rows import TESTS, Row

#: reader, text where there is no real file, real files (the first that is there)
FORMATS: dict[str, tuple[Callable[[Path], Any], str, tuple[str, ...]]] = {
    "columns": (read_columns, "the DT B-NP\ncat NN I-NP\n\nsat VBD B-VP\n", ("conll2000/test.txt.gz",)),
    "conllu": (
        read_conllu,
        "# text = a cat\n1\ta\ta\tDET\tDT\t_\t2\tdet\t_\t_\n2\tcat\tcat\tNOUN\tNN\tNumber=Sing\t0\troot\t_\t_\n\n",
        ("ud-english-ewt/dev.conllu.gz",),
    ),
    "items": (read_items, "B\tw=the\tp=D:2.5\nI\tw=cat\\:x\n\nO\tw=sat\n\n", ()),
    "svmlight": (read_svmlight, "1 1:0.5 7:1e-3\n-1 2:1 3:4 # x\n", ("libsvm/a9a.gz",)),
    "trees": (read_trees, "(S (NP (D the) (N cat)) (VP (V sat)))\n", ("treebank-sample/wsj_sample.mrg.gz",)),
    "template": (Template.from_file, "U00:%x[-1,0]/%x[0,0]\nU01:%suffix[0,0,2]/%shape[0,0]\nB\nB1:%x[0,0]\n", ()),
    "clusters": (read_clusters, "0110\tcat\n0111\tdog\n10\tthe\n", ()),
    "constraints": (
        partial(read_constraints, labels=["B-x", "I-x", "O"]),
        "forbid B-x O\nword the B-x I-x\ntoken 1 2 B-x O\nforbid ^ I-x\n",
        (),
    ),
    "arc-rules": (read_arc_rules, "head 1 2 0\nforbid 1 1 2 3\n", ()),
    "span-rules": (partial(read_span_rules, labels=["NP", "VP"]), "require 1 1 2 NP\nforbid 2 1 1\n", ()),
}
BITS = [b"\n", b"\t", b" ", b"", b"\0", b"\xff", b"\xed\xa0\x80", b"(", b")", b":", b"-1", b"9" * 30, b"1e400", b"nan",
        b"\r", b"\xef\xbb\xbf", b"#", b"%x[", b"]", b"_", b"1-2", b"1.1"]  # fmt: skip


@cache
def text_of(name: str) -> bytes:
    """The beginning of a real file, or the small one several times."""
    _, small, places = FORMATS[name]
    folder = Path(os.environ.get("PARTWISE_DATA") or TESTS.parents[1] / "shared" / "data")
    for place in places:
        path = folder / place
        if path.is_file():
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                data: bytes = file.read(6000)
            end = {"columns": b"\n\n", "conllu": b"\n\n", "trees": b"\n("}.get(name, b"\n")
            return data[: data.rfind(end)] + b"\n\n"[: len(end.strip(b"("))]
    return small.encode() * (1 if name == "clusters" else 5)


def mutated(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out) + 1)
        end = min(len(out), at + rng.choice([0, 1, 1, 3, 20, 200]))
        kind = rng.randrange(4)
        if kind == 0:
            out[at:end] = rng.choice(BITS)
        elif kind == 1:
            out[at:end] = bytes(rng.randrange(256) for _ in range(rng.randrange(4)))
        elif kind == 2:
            begin = rng.randrange(len(out) + 1)
            out[at:at] = out[begin : begin + rng.choice([1, 5, 50])]
        elif out:
            place = rng.randrange(len(out))
            out[place] ^= 1 << rng.randrange(8)
    return bytes(out)


def mutated_file(name: str, number: int, folder: Path) -> tuple[str, str]:
    path = folder / "file"
    path.write_bytes(text_of(name))
    if number % 100 == 0:
        FORMATS[name][0](path)  # as it is, it can be read
    data = mutated(random.Random(f"{name} {number}"), text_of(name))
    path.write_bytes(gzip.compress(data, 1, mtime=0) if number % 20 == 0 else data)
    try:
        FORMATS[name][0](path)
    except FormatError as error:
        if error.path != str(path):
            return "error without its file", str(error)
        return ("error with file:line", "") if error.line is not None else ("error about the whole file", str(error))
    return "read", ""


ROWS = [
    Row(
        f"format-{name}",
        f"mutated files: {name}",
        "error with file:line or a valid read; 0 crashes",
        20_000,
        15,
        partial(mutated_file, name),
        ("error with file:line", "read", "error about the whole file"),
    )
    for name in FORMATS
]
