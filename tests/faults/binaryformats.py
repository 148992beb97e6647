"""Damaged binary files: models of other tools, partitions, dual blocks, tables of numbers."""

from __future__ import annotations

import io
import json
import random
import shutil
import struct
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import partwise
from helpers.checkpoint_cases import problem_for
from helpers.model_mutants import mutate_array, mutate_settings
from partwise import ModelFormatError, SequenceTagger
from partwise.datasets import read_idx
from partwise.features.patterns import Patterns
from partwise.io import FormatError, read_text
from partwise.model_files import container
from partwise.model_files.errors import PartitionError
from partwise.out_of_core import partitions
from partwise.out_of_core.block_files import Block, read_block, write_block
from partwise.solvers import get_solver

PATTERNS = ["u:w=%x[ 0,0]", "u:low=%X[-1,0]", 'u:up=%t[0,0,"^\\u"]', 'u:suf=%M[0,0,".?.?$"]', "b", "*:p=%x[-1,1]"]
SENTENCES = [[("the", "D"), ("Cat", "N")], [("x", "?")]]
ITEMS = [[["w=a", "bias"], ["w=b"], ["never seen"]], [["bias"]]]


# Models of other tools.


def crfsuite_model() -> bytes:
    X = [[["w=a", "bias"], ["w=b", "é", "bias"]], [["w=b", "bias"], ["w=c", "bias"]]]
    path = Path(tempfile.mkdtemp()) / "m.crfsuite"
    try:
        SequenceTagger(tol=0.1).fit(X, [["A", "B"], ["B", "A"]]).save(path, format="crfsuite")
        return path.read_bytes()
    finally:
        shutil.rmtree(path.parent)


def wapiti_model() -> bytes:
    labels = ["O", "B", "Z\u00e9"]
    names = ["u:w=the", "u:w=Cat", "u:low=the", "u:low=_x-1", "u:up=true", "u:suf=he", "b", "*:p=D", "*:p=_x-1"]
    sizes = [3 * (name[0] in "u*") + 9 * (name[0] in "b*") for name in names]
    weights = [(k, (k % 7 - 3) / 8) for k in range(sum(sizes)) if k % 5]

    def strings(values: list[str]) -> str:
        return "".join(f"{len(value.encode())}:{value},\n" for value in values)

    body = f"#rdr#{len(PATTERNS)}/1/0\n{strings(PATTERNS)}#qrk#3\n{strings(labels)}#qrk#{len(names)}\n{strings(names)}"
    return (f"#mdl#2#{len(weights)}\n{body}" + "".join(f"{k}={w.hex()}\n" for k, w in weights)).encode()


def crfpp_model() -> bytes:
    names, at, lines = ["U00:the", "U00:Cat", "U01:D/_B+1", "B"], 0, []
    for name in names:
        lines.append(f"{at} {name}")
        at += 4 if name == "B" else 2
    head = ["version: 100", "cost-factor: 1", f"maxid: {at}", "xsize: 2", "", "O", "B-\u00e9", ""]
    templates = ["U00:%x[0,0]", "U01:%x[0,1]/%x[1,1]", "B", ""]
    return "\n".join([*head, *templates, *lines, "", *(f"{k / 8 - 0.5:.16f}" for k in range(at)), ""]).encode()


def _answers(tagger: Any, X: list[Any]) -> None:
    with np.errstate(all="ignore"):  # weights of 1e308 are finite, but sums of them overflow
        try:
            labels, marginals = tagger.predict(X), tagger.predict_marginals(X)
        # Scores that overflow, or templates that name columns which the sentences do not have
        except ValueError as error:
            if not any(words in str(error) for words in ("beyond double precision", "column", "finite")):
                raise AssertionError(str(error)) from None
            return
    for one, probabilities, x in zip(labels, marginals, X, strict=True):
        known = all(label in set(tagger.classes_) for label in one)
        sums = [sum(each.values()) for each in probabilities]
        if len(one) != len(x) or not known or not np.allclose(sums, 1.0):
            raise AssertionError(f"labels {one}, probabilities {probabilities}")


def _use_items(tagger: Any, path: Path, number: int) -> None:
    _answers(tagger, ITEMS)


def _use_sentences(tagger: Any, path: Path, number: int) -> None:
    _answers(tagger, SENTENCES)


def _read_patterns(path: Path) -> Patterns:
    return Patterns(read_text(path), path=str(path))


def _use_patterns(patterns: Any, path: Path, number: int) -> None:
    try:
        rows = patterns.attributes(SENTENCES[0])
    except ValueError as error:
        if "column" not in str(error):
            raise AssertionError(str(error)) from None
        return
    if len(rows) != 2:
        raise AssertionError(f"{len(rows)} rows")


# Forged partitions: the digests of the container and of the manifest are right, its content is wrong.


@cache
def _partition() -> tuple[dict[str, bytes], Any, Any]:
    """Return the files of a partition, by name, and the sentences and labels in it."""
    folder = Path(tempfile.mkdtemp())
    X = [[["a", "bias"], ["b"]], [["b"], ["c", "a"], ["b"]], [["a"]]] * 3
    y = [["A", "B"], ["B", "A", "B"], ["A"]] * 3
    try:
        partitions.write(str(folder / "parts"), SequenceTagger(), [(X[:4], y[:4]), (X[4:], y[4:])], batch_size=1500)
        return {path.name: path.read_bytes() for path in (folder / "parts").iterdir()}, X, y
    finally:
        shutil.rmtree(folder)


def _parts(data: bytes, format: str) -> tuple[dict[str, str], dict[str, Any]]:
    kind = container.Kind(format, 1, "file", PartitionError)
    metadata, arrays = container.parse(container.Source(io.BytesIO(data), len(data)), kind)
    return {k: v for k, v in metadata.items() if k != "sha256"}, {k: v.copy() for k, v in arrays.items()}


def _packed(metadata: dict[str, str], arrays: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    container.write(file, metadata, arrays)
    return file.getvalue()


def _changed(rng: random.Random, metadata: dict[str, str], arrays: dict[str, Any]) -> bytes:
    draws = np.random.default_rng(rng.randrange(1 << 40))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "settings" in metadata and rng.random() < 0.4:
            settings = json.loads(metadata["settings"])
            mutate_settings(draws, settings)
            metadata = metadata | {"settings": json.dumps(settings)}
        else:
            name = rng.choice(sorted(arrays))
            arrays = arrays | {name: np.ascontiguousarray(mutate_array(draws, arrays[name]))}
    return _packed(metadata, arrays)


def manifest() -> bytes:
    return _partition()[0]["partition.pwp"]


def forged_manifest(rng: random.Random) -> bytes:
    return _changed(rng, *_parts(manifest(), "partwise partition"))


def batch() -> bytes:
    return _partition()[0]["batch000001.pwb"]


def forged_batch(rng: random.Random) -> bytes:
    return _changed(rng, *_parts(batch(), "partwise batch"))


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Make errors name `path`, the forged file, where they name its copy in the partition's folder."""
    folder = path.parent / "parts"
    try:
        yield
    except PartitionError as error:
        if error.path is None or Path(error.path).parent != folder:
            raise
        raise PartitionError(error.message, path) from None
    except ValueError as error:  # parameters and features contradict each other: such an error names the folder
        if not str(error).startswith(f"{folder} was written with"):
            raise
        raise PartitionError(str(error), path) from None


def _folder(path: Path, changed: dict[str, bytes]) -> Path:
    folder = path.parent / "parts"
    folder.mkdir(exist_ok=True)
    for name, data in (_partition()[0] | changed).items():
        (folder / name).write_bytes(data)
    return folder


def _read_manifest(path: Path) -> Any:
    folder = _folder(path, {"partition.pwp": path.read_bytes()})
    with _naming(path):
        return partitions.open(str(folder))


def _read_batch(path: Path) -> Any:
    data = path.read_bytes()
    metadata, arrays = _parts(manifest(), "partwise partition")
    with suppress(ValueError, TypeError):  # where no digest can be read, keep the one in the manifest
        arrays["digests"][1] = np.frombuffer(bytes.fromhex(container.digest_of(path)), dtype=np.uint8)
    arrays["sizes"][1, -1] = len(data)
    folder = _folder(path, {"batch000001.pwb": data, "partition.pwp": _packed(metadata, arrays)})
    with _naming(path):
        return partitions.open(str(folder))


def _use_partition(found: Any, path: Path, number: int) -> None:
    """Read all batches. Train in every eighth trial only, as training takes ten times as long."""
    _, X, _ = _partition()
    with _naming(path):
        batches = [found.read(k) for k in range(found.n_batches)]
        if sum(batch.n_examples for batch in batches) != found.n_examples:
            raise AssertionError("examples are lost")
        tagger = found.estimator(solver="lbfgs", max_passes=2, tol=0.5)
        if number % 8 == 1:
            tagger.fit(found)
            if not np.isfinite(tagger.result_.primal) or len(tagger.predict(X)) != len(X):
                raise AssertionError(f"primal {tagger.result_.primal}")


# Dual blocks: the run that wrote them knows their digests.


@cache
def _block() -> tuple[bytes, bytes, Any, int, int]:
    """Return a file of dual blocks, its digest, its solver, and its numbers of examples and weights."""
    solver, problem = get_solver("eg"), problem_for("eg")
    state = solver.init_state(problem, np.random.default_rng(0), None)
    path = Path(tempfile.mkdtemp()) / "block"
    try:
        digest = write_block(str(path), solver, Block(state, np.zeros(problem.n_weights)))
        return path.read_bytes(), digest, solver, problem.n_examples, problem.n_weights
    finally:
        shutil.rmtree(path.parent)


def block() -> bytes:
    return _block()[0]


def _read_dual_block(path: Path) -> Any:
    return read_block(str(path), *_block()[1:])


def _use_block(found: Any, path: Path, number: int) -> None:
    if path.read_bytes() != block():
        raise AssertionError("a damaged file was read")


# Tables of numbers and pixels.


def idx() -> bytes:
    return b"\0\0\x08\x02" + struct.pack(">II", 3, 4) + bytes(range(12))


def _use_idx(values: Any, path: Path, number: int) -> None:
    if values.dtype != np.uint8:
        raise AssertionError(str(values.dtype))


#: Words of errors about files whose first bytes are damaged, so that they do not look like a model file.
UNKNOWN = ("is not a model file", "far too short for a model file")
MODEL = {"lines": True, "errors": ModelFormatError, "packed": False, "whole": UNKNOWN}
FORMATS: dict[str, dict[str, Any]] = {
    "crfsuite": {
        **MODEL,
        "read": partwise.load,
        "small": crfsuite_model,
        "use": _use_items,
        "lines": False,
        "binary": True,
        "title": "models of CRFsuite",
    },
    "wapiti": {
        **MODEL,
        "read": partwise.load,
        "small": wapiti_model,
        "use": _use_sentences,
        "title": "models of Wapiti",
    },
    "crfpp": {
        **MODEL,
        "read": partwise.load,
        "small": crfpp_model,
        "use": _use_sentences,
        "title": "text models of CRF++",
    },
    "patterns": {
        "read": _read_patterns,
        "small": "\n".join(PATTERNS) + "\n",
        "use": _use_patterns,
        "errors": FormatError,
        "whole": ("there are no patterns",),
        "title": "patterns of Wapiti",
    },
    "manifest": {
        "read": _read_manifest,
        "small": manifest,
        "forge": forged_manifest,
        "use": _use_partition,
        "lines": False,
        "errors": PartitionError,
        "packed": False,
        "title": "manifests of partitions, digest recomputed",
    },
    "batch": {
        "read": _read_batch,
        "small": batch,
        "forge": forged_batch,
        "use": _use_partition,
        "lines": False,
        "errors": PartitionError,
        "packed": False,
        "title": "batches of partitions, digests recomputed",
    },
    "dual-blocks": {
        "read": _read_dual_block,
        "small": block,
        "use": _use_block,
        "lines": False,
        "binary": True,
        "errors": PartitionError,
        "packed": False,
        "title": "files of dual blocks, all damage refused",
    },
    "idx": {
        "read": read_idx,
        "small": idx,
        "use": _use_idx,
        "lines": False,
        "binary": True,
        "errors": ValueError,
        "title": "images (idx)",
    },
}
