"""Every command of the command line, ended by a signal or because the reader of its output goes away."""

from __future__ import annotations

import atexit
import importlib.util
import io
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import click
from click.testing import CliRunner

import partwise
from partwise.cli import main
from partwise.cli.errors import run_safely
from partwise.datasets.builtin import write_built_in
from partwise.out_of_core import partitions
from partwise.solvers.engine import checkpoint

from .rows import TESTS, Ended, Row, apart, contents

DATA = Path(os.environ.get("PARTWISE_DATA") or TESTS.parents[1] / "shared" / "data")
TASKS = {
    "tag": "train.txt --features pos",
    "segment": "train.txt",
    "maxent": "rows.svm",
    "dep": "train.conllu",
    "cfg": "train.mrg",
}
#: Ways to call a command. The command writes the files whose names begin with "out".
CALLS: dict[str, str] = {
    **{f"train {task}": f"train {task} {data} -o out.pw --tol 1e-5" for task, data in TASKS.items()},
    **{f"partition {task}": f"partition {task} {data} -o out.parts" for task, data in TASKS.items()},
    **{f"path {task}": f"path {task} {data} -o out.pw --tol 0.1" for task, data in TASKS.items()},
    "train, report": "train tag train.txt -o out.pw --report out.html --history-file out.csv --tol 1e-6",
    "train, checkpoint": "train tag train.txt -o out.pw --checkpoint out.state --checkpoint-every 0 --solver lbfgs",
    "train, threads": "train tag train.txt -o out.pw --threads 2 --solver eg --tol 1e-5",
    "train, to standard output": "train tag train.txt -o -",
    "train, partition": "train tag parts -o out.pw --tol 1e-4 --memory 400M",
    "train, partition, dual": "train tag parts -o out.pw --loss hinge --solver block-dual",
    "train, local cluster": "train tag parts -o out.pw --scheduler local --solver lbfgs --max-passes 8",
    "predict": "predict tag.pw train.txt -o out.txt",
    "predict, gz": "predict tag.pw train.txt -o out.gz",
    "predict, table": "predict words.pw words.parquet -o out.parquet",
    "predict, threads": "predict dep.pw train.conllu -o out.conllu --threads 2",
    "predict, several models": "predict upos.pw dep.pw train.conllu -o out.conllu",
    "predict, to standard output": "predict tag.pw train.txt --json",
    "evaluate": "evaluate tag.pw train.txt --report out.html",
    "evaluate, several models": "evaluate upos.pw dep.pw train.conllu",
    "bound": "bound tag.pw train.txt --held-out dev.txt",
    "inspect": "inspect tag.pw",
    "inspect, weights": "inspect tag.pw --dump out.txt",
    "inspect, to standard output": "inspect tag.pw --dump -",
    "convert": "convert names.pw out.crfsuite",
    "convert, back": "convert names.crfsuite out.pw",
    "data list": "data list",
    "data check": "data check treebank --data .",
    "data fetch": "data fetch treebank --data out.data",
    "demo": "demo --strings 30 --sentences 60 --report out.html",
    "solvers": "solvers",
}
#: Packages that a call needs; the call is left out where the package is not installed.
NEEDS = {"predict, table": "pyarrow", "train, local cluster": "distributed"}
COMMANDS = {
    name: call.split() for name, call in CALLS.items() if name not in NEEDS or importlib.util.find_spec(NEEDS[name])
}
#: How commands are ended. The first way is tried on all commands, then the second, and so on.
ENDS = ("SIGTERM", "SIGHUP", "SIGINT", "closed pipe", "/dev/full", "SIGTERM", "SIGHUP", "SIGTERM")


def registered() -> Iterator[str]:
    """Return the names of all commands as click knows them; a subcommand follows the name of its group."""
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from (f"{name} {sub}" for sub in command.list_commands(click.Context(command, parent=context)))
        else:
            yield name


@cache
def given() -> dict[str, bytes]:
    """Return input files by name: data, models, a partition."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_built_in("treebank", folder, 150, seed=3)
        write_built_in("digits", folder, 16, seed=3)
        for source, target in [("train.txt", "train.txt"), ("dev.txt", "dev.txt"), ("train.mrg", "train.mrg")]:
            (folder / target).write_bytes((folder / "treebank" / source).read_bytes())
        (folder / "train.conllu").write_bytes((folder / "treebank" / "train.conllu").read_bytes())
        (folder / "rows.svm").write_bytes((folder / "digits" / "train.svm").read_bytes())
        if "predict, table" in COMMANDS:
            import pyarrow as pa
            import pyarrow.parquet as pq

            sentences = [["w1", "w2", "a"], ["a", "b"], ["b"]] * 3000
            pq.write_table(pa.table({"words": sentences}), folder / "words.parquet", row_group_size=500)
        for call in (
            "train tag train.txt -o tag.pw -q",
            "train dep train.conllu -o dep.pw -q",
            "train tag train.conllu -o upos.pw -q",
            "partition tag train.txt -o parts --batch-size 100K",
        ):
            there = [str(folder / each) if "." in each or each == "parts" else each for each in call.split()]
            answer = CliRunner().invoke(main, there)
            assert answer.exit_code == 0, answer.output
        rows, labels = [["a", "b", "c"], ["w1", "w2"]] * 5, [["A", "B", "C"], ["A", "B"]] * 5
        partwise.SequenceTagger(template="pos", tol=0.1).fit(rows, labels).save(folder / "words.pw")
        names = partwise.SequenceTagger(tol=0.1).fit([[[word] for word in row] for row in rows], labels)
        names.save(folder / "names.pw")
        answer = CliRunner().invoke(main, ["convert", str(folder / "names.pw"), str(folder / "names.crfsuite")])
        assert answer.exit_code == 0, answer.output
        return contents(folder)


def lay_out(folder: Path) -> None:
    """Write the input files to `folder`."""
    for name, data in given().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def run_here(name: str, folder: Path, told: Path, out: int, other_end: int | None) -> None:
    """Run a command in this forked process as the program ``partwise`` would, and end the process."""
    atexit._clear()
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    os.dup2(out, 1)
    os.close(out)
    if other_end is not None:
        os.close(other_end)
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w")), encoding="utf-8")
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w"), encoding="utf-8", write_through=True)
    os.chdir(folder)
    os.environ["PARTWISE_DATA"] = str(DATA.resolve())
    (told.parent / "begun").touch()
    if "--scheduler" in COMMANDS[name]:  # a forked process cannot start Dask's processes: run a new program
        found = os.pathsep.join([str(Path(partwise.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        program = [sys.executable, "-m", "partwise", *COMMANDS[name]]
        os.execve(sys.executable, program, os.environ | {"PYTHONPATH": found})
    try:
        run_safely(lambda: main(COMMANDS[name], standalone_mode=False))
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()


def run_command(name: str, folder: Path, how: str, when: float, at_write: bool) -> tuple[Ended, int]:
    """Run a command; end it after `when` seconds, or at its first write. Return how it ended, and its session."""
    inside, told, session = folder / "in", folder / "told", 0
    lay_out(inside)
    shown = "/dev/full" if how == "/dev/full" else folder / "shown"
    reading, writing = os.pipe() if how == "closed pipe" else (None, os.open(shown, os.O_WRONLY | os.O_CREAT, 0o666))
    before = set(os.listdir(inside))

    def end(child: int) -> None:
        nonlocal session
        session, deadline = child, time.monotonic() + 30
        os.close(writing)
        while not (folder / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        deadline = time.monotonic() + when
        while (
            how.startswith("SIG")
            and time.monotonic() < deadline
            and not (at_write and set(os.listdir(inside)) - before)
        ):
            time.sleep(0.0005)
        if reading is not None:
            os.read(reading, 1 << 10)  # wait until the command writes something or has closed the pipe
            os.close(reading)
        elif how.startswith("SIG"):
            os.kill(child, getattr(signal, how))

    return apart(partial(run_here, name, inside, told, writing, reading), 120, end), session


@cache
def uninterrupted(name: str) -> tuple[float, str, bool, dict[str, bytes]]:
    """Return the seconds, exit status, whether the command prints, and the files at the end, without a signal."""
    with tempfile.TemporaryDirectory() as made:
        folder, begin = Path(made), time.monotonic()
        ended, session = run_command(name, folder, "", 0.0, False)
        seconds = time.monotonic() - begin
        told = (folder / "told").read_text()
        refused = ended.how == "status 2" and "are not available" in told
        if (ended.how != "status 0" and not refused) or left_processes(session):
            raise RuntimeError(f"{name}: {ended} {left_processes(session)} {told[-500:]}")
        return seconds, ended.how, bool((folder / "shown").stat().st_size), contents(folder / "in")


def whole(path: Path, data: bytes) -> bool:
    """Check that a file was written to its end. The errors of its reader are results too."""
    if path.parent.name == "out.parts":
        partitions.open(path.parent)
    elif path.suffix == ".pw":
        partwise.load(path)
    elif path.name == "run.ckpt":
        checkpoint.read(path)
    elif path.suffix == ".html":
        return data.rstrip().endswith(b"</html>")
    elif path.suffix == ".csv":  # the history of the first part of a run
        return data.endswith(b"\n")
    elif path.suffix == ".json":  # the history of the first part of a run, or the file from which `reproduce` resumes
        json.loads(data)
    else:
        return False
    return True


def left_processes(session: int, seconds: float = 10.0) -> list[str]:
    """List the processes of a session that still exist after some seconds."""
    deadline = time.monotonic() + seconds
    while True:
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                name, _, rest = (entry / "stat").read_text().rpartition(")") if entry.name.isdigit() else ("", "", "")
                fields = rest.split()
                if fields and int(fields[3]) == session and fields[0] != "Z":
                    found.append(name)
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def judge(name: str, how: str, folder: Path, ended: Ended, session: int) -> tuple[str, str]:
    """Return the outcome of a trial: whether the command ended as it must, and left no wrong files or processes."""
    inside, told = folder / "in", (folder / "told").read_text()
    if ended.how == "hang":
        return "hang", name
    processes = left_processes(session)
    if processes:
        return "processes left", f"{name}: {processes}"
    _, normal, prints, expected = uninterrupted(name)
    found = contents(inside)
    every = [str(each.relative_to(inside)) for each in inside.rglob("*")]
    # the tables that `reproduce` writes are results, not temporary files
    made = [each for each in every if not each.endswith(".csv")]
    hidden = [each for each in made if Path(each).name.startswith((".", "duals-", "tmp")) or each.endswith(".tmp")]
    if hidden:
        return "temporary file left", f"{name}: {hidden}"
    if {path: found.get(path) for path in given()} != given():
        return "input changed", name
    for path, data in found.items():
        if expected.get(path) != data and not whole(inside / path, data):
            return "half file", f"{name}: {path}"
    if "Traceback" in told or "Exception ignored" in told:
        return "traceback", f"{name}: {told[-400:]}"
    if how == "/dev/full" and prints:
        told_so = ended.how == "status 2" and "no space left on device" in told
        return ("ended, nothing left" if told_so else "not told"), f"{name}: {ended} {told[-200:]}"
    if ended.how == normal:
        return ("had ended" if normal == "status 0" else "not available, refused"), name
    if how == "closed pipe":
        return ("ended, nothing left" if ended.how == "status 141" else "another status"), f"{name}: {ended}"
    number = int(getattr(signal, how))
    if ended.how == f"signal {number}":
        return "ended before it began", name
    return ("ended, nothing left" if ended.how == f"status {128 + number}" else "another status"), f"{name}: {ended}"


def end_command(number: int, folder: Path) -> tuple[str, str]:
    """End a command at a random moment or at its first write. If it had ended before, try an earlier moment."""
    names = list(COMMANDS)
    rng, name, turn = random.Random(number), names[number % len(names)], number // len(names)
    how, at_write = ENDS[turn % len(ENDS)], turn % 2 == 1
    seconds, *_ = uninterrupted(name)
    for attempt in range(6):
        here = folder / str(attempt)
        here.mkdir()
        wait = rng.random() * seconds * 0.8**attempt
        outcome, detail = judge(name, how, here, *run_command(name, here, how, wait, at_write))
        if outcome != "had ended" or not how.startswith("SIG"):
            break
    return outcome, f"{detail} ({how})"


ROWS = [
    Row(
        "signals",
        "SIGTERM, SIGHUP, SIGINT, a closed pipe, a full standard output in every command",
        "no half file, no hidden temporary, no process left",
        len(COMMANDS) * len(ENDS),
        9,
        end_command,
        ("ended, nothing left", "had ended", "ended before it began", "not available, refused"),
        300,
    ),
]
