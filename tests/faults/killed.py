"""Processes that are killed or asked to end."""

from __future__ import annotations

import os
import random
import signal
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from modelcases import fitted_tagger, sequences
from smallproblems import Small, loss_for

import partwise
from partwise import SequenceTagger, solve
from partwise.cli import main
from partwise.cli.errors import run_safely
from partwise.solvers import Checkpoint

from .rows import Row, apart

SOLVERS = ("lbfgs", "eg", "bcfw", "dcd")
TRAINING = {"tol": 1e-12, "max_passes": 60, "random_state": 0}


@cache
def uninterrupted(solver: str) -> tuple[Any, np.ndarray, float]:
    problem = Small("chain-tied", loss_for(solver), l2=0.05, n=40).problem
    begin = time.perf_counter()
    weights = solve(problem, solver, **TRAINING).weights
    return problem, weights, time.perf_counter() - begin


def kill_training(number: int, folder: Path) -> tuple[str, str]:
    """Killed at a random moment, perhaps several times; the last run goes on to the end."""
    rng, solver, path = random.Random(number), SOLVERS[number % len(SOLVERS)], folder / "run.ckpt"
    problem, expected, seconds = uninterrupted(solver)

    def train() -> list[float]:
        found = solve(problem, solver, **TRAINING, checkpoint=Checkpoint(path, every_passes=1))
        return found.weights.tolist()

    kills = 0
    for _ in range(rng.randint(1, 3)):
        wait = rng.random() * 3 * (seconds + 0.05)

        def kill(child: int, wait: float = wait) -> None:
            time.sleep(wait)
            os.kill(child, signal.SIGKILL)

        kills += apart(train, 120, kill).how == "signal 9"
    ended = apart(train, 120)
    if ended.how != "answer" or not isinstance(ended.answer, list):
        return "not resumed", f"{solver}: {ended}"
    same = np.array_equal(np.array(ended.answer), expected)
    return ("bit-identical" if same else "other weights"), f"{solver}, {kills} kills"


@cache
def two_models() -> tuple[Any, Any]:
    X, y = sequences(0, 25, ["B", "I", "O"])
    return fitted_tagger("arrays, hinge").estimator, SequenceTagger(tol=0.1).fit(X[:10], y[:10])


def kill_save(number: int, folder: Path) -> tuple[str, str]:
    old, new = two_models()
    path, other = folder / "model.pw", folder / "other.pw"
    old.save(path)
    new.save(other)
    whole = {"old": path.read_bytes(), "new": other.read_bytes()}
    rng = random.Random(number)

    def save() -> None:
        while True:
            new.save(path)

    def kill(child: int) -> None:
        deadline = time.monotonic() + 10
        while number % 2 and path.read_bytes() == whole["old"] and time.monotonic() < deadline:
            time.sleep(0.001)  # half of the trials: while one new file is replaced by another
        time.sleep(rng.random() * 0.02)
        os.kill(child, signal.SIGKILL)

    apart(save, 30, kill)
    found = path.read_bytes()
    for name, data in whole.items():
        if found == data:
            partwise.load(path)
            return f"{name} file, whole", ""
    return "torn", f"{len(found)} bytes"


def words(folder: Path) -> Path:
    path = folder / "train.txt"
    rng = random.Random(5)
    lines = ["\n".join(f"w{rng.randrange(300)} {rng.choice('ABC')}" for _ in range(12)) + "\n\n" for _ in range(400)]
    path.write_text("".join(lines))
    return path


COMMANDS = {
    "train": ["train", "tag", "train.txt", "-o", "out", "--report", "out.html", "--features", "pos", "--tol", "1e-6"],
    "partition": ["partition", "tag", "train.txt", "-o", "out", "--features", "pos"],
    "path": ["path", "tag", "train.txt", "-o", "out", "--features", "pos"],
    "predict": ["predict", "model.pw", "train.txt", "-o", "out"],
    "predict-gz": ["predict", "model.pw", "train.txt", "-o", "out.gz"],
    "evaluate": ["evaluate", "model.pw", "train.txt"],
    "inspect": ["inspect", "model.pw", "--dump", "out"],
    "data": ["data", "fetch", "treebank", "--data", "out"],
}


@cache
def words_model() -> Any:
    rows = [["a", "b", "c"], ["w1", "w2"], ["w3", "a"]] * 5
    return SequenceTagger(template="pos", tol=0.1).fit(rows, [["A", "B", "C"], ["A", "B"], ["C", "A"]] * 5)


def end_command(number: int, folder: Path) -> tuple[str, str]:
    names = list(COMMANDS)
    rng, name = random.Random(number), names[number % len(names)]
    which = (signal.SIGTERM, signal.SIGHUP)[number // len(names) % 2]
    data = words(folder)
    words_model().save(folder / "model.pw")
    given = {data.name, "model.pw"}

    def command() -> None:
        os.chdir(folder)
        run_safely(lambda: main(COMMANDS[name], standalone_mode=False))

    def end(child: int) -> None:
        time.sleep(rng.random() ** 2 * 1.5)
        try:
            os.kill(child, which)
        except ProcessLookupError:
            return

    ended = apart(command, 120, end)
    if ended.how == "hang":
        return "hang", name
    left = sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.name not in given)
    hidden = [each for each in left if Path(each).name.startswith(".") or each.endswith(".tmp")]
    if hidden:
        return "temporary file left", f"{name}: {hidden}"
    if ended.how not in ("status 0", f"status {128 + which}", f"signal {int(which)}", "answer"):
        return "another status", f"{name}: {ended}"
    if ended.how == f"signal {int(which)}":
        return "ended before it began", name
    if name == "train" and (folder / "out").exists():
        partwise.load(folder / "out")
    return ("had ended" if ended.how in ("status 0", "answer") else "ended, nothing left"), name


ROWS = [
    Row(
        "kill-training",
        "kill -9 in training, resume (lbfgs, eg, bcfw, dcd)",
        "weights bit-identical",
        200,
        4,
        kill_training,
        ("bit-identical",),
        600,
    ),
    Row(
        "kill-save",
        "kill -9 in save",
        "old or new file whole",
        300,
        5,
        kill_save,
        ("old file, whole", "new file, whole"),
    ),
    Row(
        "signals",
        "SIGTERM, SIGHUP in every command",
        "no half file, no hidden temporary left",
        200,
        8,
        end_command,
        ("ended, nothing left", "had ended", "ended before it began"),
        200,
    ),
]
