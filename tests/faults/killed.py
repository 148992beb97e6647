"""Processes that are killed during training, while they write a checkpoint, or while they save a model."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import partwise
from helpers.small_problems import Small, kind_for, loss_for, penalty_for
from partwise import solve
from partwise.cli import main
from partwise.io import files
from partwise.solvers import Checkpoint
from partwise.solvers.engine.loop import Run

from .commands import lay_out
from .rows import Row, apart
from .writers import writers

#: Kinds of runs: solvers on small problems with numbers of threads, and commands that read files and write a model.
SOLVERS = {"lbfgs": 1, "eg": 1, "bcfw": 1, "dcd": 2, "eg-prox": 2, "sdca": 1, "owlqn": 2, "newton": 1}
#: Kinds of runs that are killed at POINTS points each.
MAIN, POINTS = ("lbfgs", "eg", "bcfw", "dcd"), 50
TRAIN = ["train", "tag", "-o", "out.pw", "-q", "--tol", "1e-30", "--checkpoint", "state", "--checkpoint-every", "0"]
COMMANDS = {
    "train with lbfgs on 2 threads": [*TRAIN, "train.txt", "--solver", "lbfgs", "--max-passes", "40", "--threads", "2"],
    "train with eg on 2 threads": [*TRAIN, "train.txt", "--solver", "eg", "--max-passes", "30", "--threads", "2"],
    "train with bcfw": [*TRAIN, "train.txt", "--solver", "bcfw", "--loss", "hinge", "--max-passes", "30"],
    "train on a partition with block-dual": [
        *TRAIN,
        "parts",
        "--solver",
        "block-dual",
        "--loss",
        "hinge",
        "--max-passes",
        "30",
    ],
}
MORE = (*(name for name in SOLVERS if name not in MAIN), *COMMANDS)
#: The steps of writing a file at which a run is killed.
STEPS = ("half written", "before it is on the disk", "before it has its name", "with its new name")


def kill_here() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


@contextmanager
def killed_at(number: int, step: str) -> Iterator[list[int]]:
    """Kill this process at `step` of its write number `number`. Yield [number of writes so far]."""
    layers, fsync, replace, seen = files._layers, os.fsync, os.replace, [0]

    @contextmanager
    def counted(raw: Any, *more: Any) -> Iterator[Any]:
        with layers(raw, *more) as file:
            yield file
        seen[0] += 1
        if seen[0] == number and step == STEPS[0]:
            raw.flush()
            os.ftruncate(raw.fileno(), os.fstat(raw.fileno()).st_size // 2)
            kill_here()

    def synced(descriptor: int) -> None:
        if seen[0] == number and step == STEPS[1]:
            kill_here()
        fsync(descriptor)

    def replaced(*paths: str) -> None:
        if seen[0] == number and step == STEPS[2]:
            kill_here()
        replace(*paths)
        if seen[0] == number and step == STEPS[3]:
            kill_here()

    files._layers, os.fsync, os.replace = counted, synced, replaced  # type: ignore[assignment]
    try:
        yield seen
    finally:
        files._layers, os.fsync, os.replace = layers, fsync, replace


@cache
def small_problem(solver: str) -> Any:
    small = Small(kind_for(solver), loss_for(solver), l2=0.05, n=60)
    return small.problem.with_penalty(penalty_for(solver, 0.05))


def train(way: str, folder: Path, kept: bool = True) -> list[Any]:
    """Train from the beginning or from the checkpoint. Return weights, passes, gap, primal, own steps."""
    steps, made = [0], Run._step

    def step(run: Run, state: Any) -> bool:
        steps[0] += 1
        return made(run, state)

    Run._step = step  # type: ignore[method-assign]  # never undone: this process was forked for one run
    if way in SOLVERS:
        where = Checkpoint(folder / "run.ckpt", every_seconds=0.0) if kept else None
        options = {"tol": 1e-30, "max_passes": 40, "random_state": 0, "n_jobs": SOLVERS[way]}
        found = solve(small_problem(way), way, **options, checkpoint=where)
    else:
        os.chdir(folder)
        arguments = COMMANDS[way]
        at = arguments.index("--checkpoint")
        main(arguments if kept else arguments[:at] + arguments[at + 4 :], standalone_mode=False)
        model = partwise.load(folder / "out.pw")
        found = model.result_
    return [found.weights.tolist(), found.passes, found.gap, found.primal, steps[0]]


def checkpoint_of(way: str, folder: Path) -> Path:
    """Return the path of the checkpoint of a run."""
    return folder / ("run.ckpt" if way in SOLVERS else "state/run.ckpt")


def prepare(way: str, folder: Path) -> None:
    """Prepare a run. Make its problem here and not in the child, so that kills hit training and not the preparation."""
    folder.mkdir(exist_ok=True)
    if way in SOLVERS:
        small_problem(way)
    else:
        lay_out(folder)


@cache
def uninterrupted(way: str) -> tuple[list[Any], float, int]:
    """Return the result of a run without checkpoints, and the seconds and writes of a run with checkpoints."""

    def counting(folder: Path) -> int:
        with killed_at(0, "") as seen:
            train(way, folder)
        return seen[0]

    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        for each in (one, other):
            prepare(way, Path(each))
        expected = apart(partial(train, way, Path(one), kept=False), 300)
        begin = time.monotonic()
        n_writes = apart(partial(counting, Path(other)), 300)
        seconds = time.monotonic() - begin
    if not isinstance(expected.answer, list) or not isinstance(n_writes.answer, int):
        raise RuntimeError(f"{way}: {expected.how} {expected.answer}, {n_writes}")
    return expected.answer, seconds, n_writes.answer


def kill_training(ways: tuple[str, ...], number: int, folder: Path) -> tuple[str, str]:
    """Kill a run one to three times, then let it end. A run that ended before its kill is undone."""
    rng, way = random.Random(number), ways[number % len(ways)]
    expected, seconds, n_writes = uninterrupted(way)
    kills: list[str] = []
    for attempt in range(20):
        here = folder / str(attempt)
        prepare(way, here)
        for _ in range(rng.randint(1, 3)):
            before = folder / "before"
            shutil.copytree(here, before)
            where = killed_once(rng, way, here, seconds, n_writes)
            kills += where
            if not where:
                shutil.rmtree(here)
                before.rename(here)
                break
            shutil.rmtree(before)
        if kills:
            break
    else:
        return "had ended", way
    resumes = checkpoint_of(way, here).exists()
    ended = apart(partial(train, way, here), 300)
    if ended.how != "answer" or not isinstance(ended.answer, list):
        return "not resumed", f"{way}, {kills}: {ended}"
    *found, steps = ended.answer
    *sought, n_steps = expected
    if resumes and steps >= n_steps:
        return "not resumed", f"{way}, {kills}: {steps} steps in spite of a checkpoint, uninterrupted {n_steps}"
    left = [each for each in here.rglob("*") if each.name.startswith((".", "duals-"))]
    if way.endswith("block-dual"):  # a killed run leaves its dual variables in such a folder of its partition
        left = [each for each in left if not any(part.startswith("duals-") for part in each.relative_to(here).parts)]
    if left:
        return "temporary file left", f"{way}, {kills}: {left}"
    same = np.array_equal(found[0], sought[0]) and found[1:] == sought[1:]
    return ("bit-identical" if same else "other weights"), f"{way}, {kills}, then {steps} of {n_steps} steps"


def killed_once(rng: random.Random, way: str, folder: Path, seconds: float, n_writes: int) -> list[str]:
    """Kill a run once. Return where it was killed; an empty list if it had ended before."""
    where = rng.choice(["any time", "any time", "at first", "write"])
    wait = rng.random() * seconds * (0.1 if where == "at first" else 1.0)
    step, number = rng.choice(STEPS), rng.randint(1, n_writes) if where == "write" else 0

    def go() -> None:
        (folder / "begun").touch()
        with killed_at(number, step):
            train(way, folder)

    def kill(child: int) -> None:
        if where == "write":
            return
        while not (folder / "begun").exists():
            time.sleep(0.0005)
        time.sleep(wait)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)

    (folder / "begun").unlink(missing_ok=True)
    if apart(go, 300, kill).how != "signal 9":
        return []
    return [f"{step}, write {number}" if number else f"{where}, {wait:.2f} s"]


def kill_save(number: int, folder: Path) -> tuple[str, str]:
    """Kill a process while it replaces a file; the next save must remove what is left."""
    kinds = {kind: each for kind, each in writers(folder).items() if kind not in ("partition", "dual blocks")}
    kind = list(kinds)[number % len(kinds)]
    rng, writer, path = random.Random(number), kinds[kind], kinds[kind].path
    writer.write(1)
    new = path.read_bytes()
    writer.write(0)
    old = path.read_bytes()
    step, timed = rng.choice(STEPS), rng.random() < 0.5

    def save() -> None:
        (folder / "begun").touch()
        with killed_at(0 if timed else 1, step):
            while True:
                writer.write(1)

    def kill(child: int) -> None:
        while not (folder / "begun").exists():
            time.sleep(0.0005)
        if timed:
            time.sleep(rng.random() * 0.05)
            os.kill(child, signal.SIGKILL)

    ended = apart(save, 60, kill)
    if ended.how != "signal 9":
        return "not killed", f"{kind}: {ended}"
    found = path.read_bytes()
    which = "old" if found == old else "new" if found == new or writer.varies else None
    if which is None:
        return "torn", f"{kind}, {step}: {len(found)} bytes"
    writer.read(path)
    writer.write(1)
    left = [each.name for each in folder.iterdir() if each.name.endswith(".tmp")]
    if left:
        return "temporary file left", f"{kind}: {left}"
    return f"{which} file, whole", f"{kind}, {'' if timed else step}"


ROWS = [
    Row(
        "kill-training",
        f"kill -9 in training at {POINTS} points, resume ({'; '.join(MAIN)})",
        "weights bit-identical, fewer steps after the last kill where there is a checkpoint",
        POINTS * len(MAIN),
        4,
        partial(kill_training, MAIN),
        ("bit-identical",),
        600,
    ),
    Row(
        "kill-training-more",
        f"the same at 6 points ({'; '.join(MORE)})",
        "weights bit-identical, fewer steps after the last kill where there is a checkpoint",
        6 * len(MORE),
        4,
        partial(kill_training, MORE),
        ("bit-identical",),
        600,
    ),
    Row(
        "kill-save",
        "kill -9 in save (models, checkpoints, predictions, reports, data)",
        "old or new file whole; the next save leaves no temporary file",
        300,
        6,
        kill_save,
        ("old file, whole", "new file, whole"),
    ),
]
