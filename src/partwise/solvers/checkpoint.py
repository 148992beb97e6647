"""Checkpoints: the state of a run in one safetensors file, replaced in one step.

Arrays are the file's tensors, everything else is JSON in its header. safetensors reads half of all damaged files
without a word, so a digest over all that is read (names, types, shapes, bytes, JSON) goes into the header too.
"""

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = "partwise checkpoint 1"

Array = NDArray[Any]


@dataclass(frozen=True)
class Checkpoint:
    """Where a run saves its state, and how often at most. A run that finds a file there goes on from it."""

    path: str | os.PathLike[str]
    every_seconds: float = 60.0


def write(path: str | os.PathLike[str], arrays: dict[str, Array], values: dict[str, Any]) -> None:
    """Write, flush to the disk, then rename: a reader sees the old file or the new one, never half of one."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps(values)
    data = save(arrays, {"format": FORMAT, "values": text, "digest": _digest(arrays, text)})
    target = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(target.parent)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, Any]]:
    """(arrays, values) of a checkpoint.

    Raises
    ------
    ValueError
        If the file is not a whole and undamaged checkpoint.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, UnicodeDecodeError) as error:
        raise ValueError(f"{os.fspath(path)} is not a checkpoint: {error}") from error
    if header.get("format") != FORMAT:
        raise ValueError(f"{os.fspath(path)} is not a checkpoint of this version (format {header.get('format')!r})")
    text = header.get("values", "")
    if header.get("digest") != _digest(arrays, text):
        raise ValueError(f"{os.fspath(path)} is damaged: its digest does not match its content")
    return arrays, json.loads(text)


def _digest(arrays: dict[str, Array], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(np.ascontiguousarray(array).data if array.size else b"")
    return digest.hexdigest()


def _sync_folder(folder: Path) -> None:
    # The rename itself is on the disk once the folder is; some file systems cannot open folders.
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
