"""Small inputs that demand much memory or time, given to the readers, the estimators and the commands."""

from __future__ import annotations

import gzip
import random
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import partwise
from partwise import ConstituencyParser, MaxentClassifier
from partwise.cli import main
from partwise.cli.errors import UserError, message_of
from partwise.features import Template
from partwise.io import read_columns, read_conllu, read_items, read_svmlight, read_trees
from partwise.support.memory import TooLarge

from .inputs import fitted, through_a_file
from .rows import Row, apart, peak

#: The bytes of a file, and a function that uses the file in its folder.
Trial = tuple[bytes, Callable[[Path], Any]]

QUICK = ("--tol", "0.5", "--max-passes", "2")
WORD = "{}\tw{}\t_\tN\t_\t_\t{}\t{}\t_\t_\n"


def command(*arguments: str) -> Callable[[Path], Any]:
    """Return a function that runs a command. FILE stands for the file, FOLDER for its folder."""

    def go(path: Path) -> None:
        given = [word.replace("FILE", str(path)).replace("FOLDER", str(path.parent)) for word in arguments]
        main(given, standalone_mode=False, prog_name="partwise")

    return go


def train(task: str, *options: str) -> Callable[[Path], Any]:
    return command("train", task, "FILE", "-o", "FOLDER/out.pw", *QUICK, *options)


def with_model(kind: str, verb: str, *options: str) -> Callable[[Path], Any]:
    """Return a function that runs `predict` or `evaluate` with a small model."""

    def go(path: Path) -> None:
        fitted(kind).save(path.parent / "small.pw")
        arguments = [verb, "FOLDER/small.pw", "FILE", *options]
        command(*arguments, *(("-o", "FOLDER/answers") if verb == "predict" else ()))(path)

    return go


def svmlight(rng: random.Random, n: int) -> Trial:
    text = (
        f"1 1:1\n2 {n}:1\n"
        if rng.random() < 0.5
        else "1 " + " ".join(f"{k * n + 1}:1" for k in range(50)) + "\n2 1:1\n"
    )
    fit = lambda path: MaxentClassifier(tol=0.5, max_passes=2).fit(*read_svmlight(path))  # noqa: E731
    ways = [fit, train("maxent"), command("partition", "maxent", "FILE", "-o", "FOLDER/parts")]
    return text.encode(), rng.choice(ways)


def packed(rng: random.Random, n: int) -> Trial:
    """A gzip file that unpacks to a very long repetition."""
    lines = {
        "tag": (b"a A\n", read_columns),
        "dep": (WORD.format(1, 1, 0, "root").encode() + b"\n", read_conllu),
        "maxent": (b"A\tx\n", read_items),
        "cfg": (b"(S (A a) (B b))\n", read_trees),
    }
    task = rng.choice(list(lines))
    line, reader = lines[task]
    return gzip.compress(line * min(n, 40_000_000 // len(line)), 9), rng.choice([reader, train(task)])


def packed_model(rng: random.Random, n: int) -> Trial:
    return gzip.compress(bytes(min(n, 40_000_000)), 9), rng.choice([partwise.load, command("inspect", "FILE")])


def deep(rng: random.Random, n: int) -> Trial:
    n = min(n, 100_000)
    left, right = rng.choice([(b"(A ", b")"), (b"(A (B b) ", b")")])
    data = left * n + rng.choice([b"(C c)" + right * n, b""])

    def nested(path: Path) -> None:
        tree: Any = ("B", "b")
        for _ in range(n):
            tree = ("A", tree, ("C", "c"))
        ConstituencyParser(tol=0.5, max_passes=2).fit([tree], None)

    return data, rng.choice([read_trees, train("cfg"), nested, with_model("constituents", "evaluate")])


def numbers_of_words(rng: random.Random, n: int) -> Trial:
    text = rng.choice([WORD.format(n, 1, n, "x"), WORD.format(1, 1, n, "x"), WORD.format(f"1-{n}", 1, "_", "_")])
    return (text + "\n").encode(), rng.choice([read_conllu, train("dep"), with_model("dependencies", "predict")])


def long_sentence(rng: random.Random, n: int) -> Trial:
    n = min(n, 30_000)
    if rng.random() < 0.5:
        text = "".join(WORD.format(k + 1, k % 50, k, "x") for k in range(n)) + "\n"
        verbs = [train("dep"), with_model("dependencies", "predict"), with_model("dependencies", "evaluate")]
        return text.encode(), rng.choice(verbs)
    text = "(S " + " ".join(f"(A w{k % 50})" for k in range(n)) + ")\n"
    return text.encode(), rng.choice([train("cfg"), with_model("constituents", "evaluate")])


def labels(rng: random.Random, n: int) -> Trial:
    """A file in which each label occurs once."""
    n = min(n, 60_000)
    task = rng.choice(["tag", "segment", "maxent", "dep", "cfg"])
    line = {
        "tag": "w{} l{}\n\n",
        "segment": "w{} B-l{}\n\n",
        "maxent": "l{1}\tw{0}\n",
        "cfg": "(S (l{1} w{0}) (B b))\n",
    }
    if task == "dep":
        text = "".join(WORD.format(1, k % 9, 0, f"l{k}") + "\n" for k in range(n))
    else:
        text = "".join(line[task].format(k % 9, k) for k in range(n))
    return text.encode(), train(task, *(("--format", "items") if task == "maxent" else ()))


def template(rng: random.Random, n: int) -> Trial:
    macros = "/".join(["%x[0,0]"] * min(n, 2000))
    data = rng.choice([f"U:%x[{n},0]\nU1:%x[0,{n}]\n", f"U:{macros}\nB\n", f"U:%x[-{n},0]\n", f"B:{macros}\n"])

    def go(path: Path) -> None:
        (path.parent / "train.txt").write_text("a A\nb B\n\nb B\na A\n\n")
        command("train", "tag", "FOLDER/train.txt", "--template", "FILE", "-o", "FOLDER/out.pw", *QUICK)(path)

    return data.encode(), rng.choice([Template.from_file, go])


def names(rng: random.Random, n: int) -> Trial:
    long = "x:1" * min(n, 100_000)
    if rng.random() < 0.5:
        return f"A\t{long}\nB\ty\n".encode(), rng.choice([read_items, train("maxent", "--format", "items")])
    return f"{long} A\nb {long}\n\n".encode(), rng.choice([read_columns, train("tag")])


def header(rng: random.Random, n: int) -> Trial:
    """A CRFsuite model whose header states huge sizes."""
    counts = [rng.choice([3, n % (1 << 32)]) for _ in range(8)]
    data = b"lCRF" + struct.pack("<I4sI", rng.choice([48, n % (1 << 32)]), b"FOMC", 100) + struct.pack("<8I", *counts)
    return data + bytes(200), rng.choice([partwise.load, command("convert", "FILE", "FOLDER/out.pw")])


def container(rng: random.Random, n: int) -> Trial:
    """A model file whose header states another length, or other array shapes, than the bytes that follow."""
    array = f'{{"dtype":"F64","shape":[{n}],"data_offsets":[0,{8 * n}]}}'
    text = f'{{"__metadata__":{{"sha256":"{"0" * 64}"}},"weights":{array}}}'
    size = rng.choice([len(text), n])
    return struct.pack("<Q", size) + text.encode(), rng.choice([partwise.load, command("inspect", "FILE")])


def constraints(rng: random.Random, n: int) -> Trial:
    rules = [
        f"token {n} 1 l0\n",
        f"token 1 {n} l0\n",
        "word w l0 l1\n" * min(n, 20_000),
        f"scheme {'x' * min(n, 10**6)}\n",
    ]

    def go(path: Path) -> None:
        tagger = partwise.SequenceTagger(template="pos", tol=0.5, max_passes=2)
        through_a_file(tagger.fit([["a", "b"]] * 3, [["l0", "l1"]] * 3)).save(path.parent / "small.pw")
        (path.parent / "in.txt").write_text("a\nb\n\n")
        command("predict", "FOLDER/small.pw", "FOLDER/in.txt", "--constraints", "FILE", "-o", "FOLDER/answers")(path)

    return rng.choice(rules).encode(), go


def options(rng: random.Random, n: int) -> Trial:
    """Large numbers as values of command-line options."""
    text = "".join(WORD.format(1, k % 9, 0, "x") + WORD.format(2, k % 7, 1, f"y{k % 2}") + "\n" for k in range(30))
    bits = str(min(n, 60))
    return text.encode(), rng.choice(
        [train("dep", "--features", "hashed", "--hash-bits", bits), train("dep", "--max-length", str(n))]
    )


MADE = (
    svmlight, packed, packed_model, deep, numbers_of_words, long_sentence, labels, template, names, header, container,
    constraints, options,
)  # fmt: skip


def small_made_large(number: int, folder: Path) -> tuple[str, str]:
    rng, path = random.Random(number), folder / "file"
    make = MADE[number % len(MADE)]
    n = 10 ** rng.randint(3, 9)
    data, way = make(rng, n)
    path.write_bytes(data)

    def work() -> list[Any]:
        before, begin, told = peak(reset=True), time.process_time(), "done"
        try:
            way(path)
        except (UserError, ValueError, ArithmeticError, TooLarge, OSError) as error:
            told = f"refused: {type(error).__name__}: {message_of(error)}"[:200]
        return [told, peak() - before, time.process_time() - begin]

    ended = apart(work, 60)
    where = f"{make.__name__}, {n:,}, {data[:40]!r}, {len(data):,} bytes"
    if ended.how != "answer" or not isinstance(ended.answer, list):
        return "another end", f"{where}: {ended}"
    told, used, seconds = ended.answer
    detail = f"{where}: {told}, {used:,} bytes, {seconds:.2f} s"
    if used <= (64 << 20) + 100 * len(data):
        return "in proportion", detail
    return ("refused in < 1 s" if told != "done" and seconds < 1 else "out of proportion"), detail


ROWS = [
    Row(
        "small-made-large",
        "small inputs made to be large (indices, labels, names, depth, lengths, headers, gzip; readers and commands)",
        "memory <= 64 MB + 100x the input, or refused in < 1 s",
        500,
        8,
        small_made_large,
        ("in proportion", "refused in < 1 s"),
        120,
    ),
]
