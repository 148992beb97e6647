"""Damaged or forged partition files raise PartitionError, and reading ahead leaves no thread behind."""

from __future__ import annotations

import json
import shutil
import struct
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from helpers.partition_cases import CASES
from partwise import PartitionError, solve
from partwise.model_files import container
from partwise.out_of_core import partitions
from partwise.out_of_core.partitions.executor import Plan
from partwise.out_of_core.partitions.files import MANIFEST
from partwise.problem import BatchSums, Problem
from partwise.problem.executor import Work

CASE = CASES["names-weights"]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("partitions") / "dir"
    partitions.write(folder, CASE.make(), CASE.blocks(), batch_size=3000)
    return folder


@pytest.fixture
def folder(written, tmp_path) -> Path:
    shutil.copytree(written, tmp_path / "dir")
    return tmp_path / "dir"


def use(folder: Path) -> None:
    CASE.make().fit(partitions.open(folder))


def forge(path: Path, change) -> None:
    """Change a file's metadata and arrays, and write it with a valid digest."""
    size = struct.unpack("<Q", path.read_bytes()[:8])[0]
    metadata = json.loads(path.read_bytes()[8 : 8 + size])["__metadata__"]
    kind = container.Kind(metadata["format"], int(metadata["format_version"]), "file", PartitionError)
    _, arrays = container.read(path, kind)
    del metadata["sha256"]
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(metadata, arrays)
    with path.open("wb") as file:
        container.write(file, metadata, arrays)


def test_whole_files_are_taken(folder):
    use(folder)
    forge(folder / MANIFEST, lambda metadata, arrays: None)
    use(folder)


@pytest.mark.parametrize("name", [MANIFEST, "batch000001.pwb"])
def test_damaged_files(folder, name, rng):
    path = folder / name
    whole = path.read_bytes()
    cuts = [whole[:n] for n in (0, 5, 50, len(whole) // 2, len(whole) - 1)]
    flips = []
    for place in rng.integers(0, len(whole), size=60).tolist():
        flips.append(whole[:place] + bytes([whole[place] ^ 1 << int(rng.integers(8))]) + whole[place + 1 :])
    for data in [*cuts, *flips, whole + b"\0"]:
        path.write_bytes(data)
        with pytest.raises(PartitionError, match=name):
            use(folder)
    path.unlink()
    with pytest.raises(PartitionError, match=r"is missing|no file"):
        use(folder)
    with pytest.raises(PartitionError, match="no such folder"):
        use(folder / "nothing")


def test_a_file_of_another_batch(folder):
    first, second = folder / "batch000000.pwb", folder / "batch000001.pwb"
    forge(second, lambda metadata, arrays: arrays.update(labels=arrays["labels"][::-1]))
    with pytest.raises(PartitionError, match=r"batch000001\.pwb: is not the file"):
        use(folder)
    shutil.copy(first, second)
    with pytest.raises(PartitionError, match=r"batch000001\.pwb"):
        use(folder)


def versions(metadata, arrays):
    metadata["format_version"] = "2"


def other_format(metadata, arrays):
    metadata["format"] = "partwise model"


def other_kind(metadata, arrays):
    metadata["kind"] = "os.system"


def size_lies(column):
    def change(metadata, arrays):
        arrays["sizes"][1, column] += 1

    return change


def setting(name, value):
    def change(metadata, arrays):
        metadata["settings"] = json.dumps({**json.loads(metadata["settings"]), name: value})

    return change


def huge_weights(metadata, arrays):
    setting("weights", {name: [1 << 39] for name in json.loads(metadata["settings"])["weights"]})(metadata, arrays)


def no_batches(metadata, arrays):
    arrays.update(sizes=arrays["sizes"][:0], digests=arrays["digests"][:0])


@pytest.mark.parametrize(
    "change",
    [
        versions,
        other_format,
        other_kind,
        *map(size_lies, (0, 1, 2, 4, 5)),
        setting("n_weights", 7),
        setting("n_weights", -1),
        setting("features", None),
        setting("parameters", {"solvent": 1}),
        setting("parameters", {"features": "none"}),
        setting("model", {}),
        setting("weights", None),
        huge_weights,
        no_batches,
        lambda metadata, arrays: arrays.pop("model.reader.offsets"),
        lambda metadata, arrays: arrays.pop("digests"),
    ],
)
def test_a_manifest_that_lies(folder, change):
    forge(folder / MANIFEST, change)
    with pytest.raises(PartitionError):
        use(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.update(labels=arrays["labels"] + 100),
        lambda arrays: arrays.update(attributes=arrays["attributes"].astype(np.int64) + 100_000),
        lambda arrays: arrays.update(counts=arrays["counts"] + 1),
        lambda arrays: arrays.update(lengths=arrays["lengths"] * 0),
        lambda arrays: arrays.update(weight=arrays["weight"] * np.nan),
        lambda arrays: arrays.update(weight=-arrays["weight"]),
        lambda arrays: arrays.pop("labels"),
    ],
)
def test_a_batch_that_lies(folder, change):
    path = folder / "batch000001.pwb"
    forge(path, lambda metadata, arrays: change(arrays))

    def follow(metadata, arrays):
        arrays["sizes"][1, 5] = path.stat().st_size
        arrays["digests"][1] = list(bytes.fromhex(container.digest_of(path)))

    forge(folder / MANIFEST, follow)
    with pytest.raises(PartitionError, match=r"batch000001\.pwb"):
        use(folder)


# Reading ahead


def ahead() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("partwise-read-ahead")]


def streamed(found) -> Problem:
    batches = found.batches()
    executor = partitions.PartitionExecutor(batches, Plan(frozenset({0}), False), found.folder)
    return Problem.of(batches, "log", 0.7, executor=executor)


def test_errors_leave_no_thread(folder, monkeypatch):
    found = partitions.open(folder)
    problem = streamed(found)
    weights = np.zeros(problem.n_weights)
    expected = problem.value(weights)

    def stop(work, sums, block):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Work, "on", stop)
        with pytest.raises(KeyboardInterrupt):
            problem.value(weights)
        assert ahead() == []
    next(iter(problem.sums.each(BatchSums.value, weights)))  # a caller that stops after the first result
    assert ahead() == []
    assert problem.value(weights) == expected
    (folder / "batch000002.pwb").unlink()
    with pytest.raises(PartitionError, match=r"batch000002\.pwb: is missing"):
        solve(problem, "lbfgs")
    assert ahead() == []


def test_the_next_batch_is_read_while_one_is_worked_on(folder, monkeypatch):
    found = partitions.open(folder)
    problem = streamed(found)
    opened: list[int] = []
    read = partitions.Partitions.read

    def watched(self, number, *options):
        opened.append(number)
        assert threading.current_thread() in ahead()
        return read(self, number, *options)

    monkeypatch.setattr(partitions.Partitions, "read", watched)
    weights, n = np.zeros(problem.n_weights), found.n_batches
    seen = []
    for k, _ in enumerate(problem.sums.each(BatchSums.value, weights)):
        deadline = time.monotonic() + 5
        while len(opened) < min(k + 1, n - 1) and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.01)
        seen.append(len(opened))
    assert opened == list(range(1, n))  # the first batch stays in memory
    assert seen == [min(k + 1, n - 1) for k in range(n)]  # exactly one batch is read ahead


def test_batches_that_stay_are_opened_once(folder, monkeypatch):
    found = partitions.open(folder)
    opened: list[int] = []
    read = partitions.Partitions.read
    monkeypatch.setattr(
        partitions.Partitions,
        "read",
        lambda self, number, *rest: opened.append(number) or read(self, number, *rest),
    )
    CASE.make().fit(found)
    assert sorted(opened) == list(range(found.n_batches))
