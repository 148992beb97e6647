"""The files of a partition: a manifest, which holds the model without its weights, and a file per batch.

All are containers of `model_files.container`. The manifest, `partition.pwp`, is written last. It has

    kind, settings     whose examples these are: the estimator's kind and parameters, the model's own settings
    sizes              per batch: examples, rows, entries, whether entries have values, slots, bytes of the file
    digests            per batch: the digest of its file, so that no file can stand for another
    model.*            arrays of the model; those of weights are left out, their shapes are in the settings
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partwise.model_files import container
from partwise.model_files.errors import ModelFormatError, PartitionError
from partwise.model_files.parts import Array, ModelParts

MANIFEST = "partition.pwp"
_MANIFEST = container.Kind("partwise partition", 1, "partition", PartitionError)
_BATCH = container.Kind("partwise batch", 1, "batch of a partition", PartitionError)


class BatchSize(NamedTuple):
    """The sizes of a batch, which are known before its file is opened."""

    n_examples: int
    n_rows: int
    n_entries: int
    valued: int
    n_slots: int
    n_bytes: int


@dataclass(frozen=True)
class Manifest:
    """The content of a manifest; `digest` and `n_bytes` are those of the manifest's arrays."""

    kind: str
    settings: dict[str, Any]
    sizes: Sequence[BatchSize]
    digests: Sequence[str]
    model: ModelParts
    digest: str = ""
    n_bytes: int = 0


#: The pattern of `batch_name`.
BATCH_NAME = r"batch[0-9]{6,}\.pwb"


def batch_name(number: int) -> str:
    """Return the name of a batch's file."""
    return f"batch{number:06d}.pwb"


def write_batch(path: str, arrays: dict[str, Array]) -> str:
    """Write a batch's arrays and return the file's digest."""
    container.save(path, _BATCH, {}, arrays)
    return container.digest_of(path)


def read_batch(path: str, size: int, digest: str) -> ModelParts:
    """Return the arrays of a batch's file; PartitionError unless it has this size and digest."""
    _check_size(path, size)
    metadata, arrays = container.read(path, _BATCH)
    if metadata.get("sha256") != digest:
        raise PartitionError("is not the file that the partition was written with", path)
    return ModelParts("batch", {}, arrays)


def _check_size(path: str, size: int) -> None:
    """Raise PartitionError for a file that is missing or of another size, before anything is read."""
    try:
        found = os.stat(path).st_size
    except FileNotFoundError:
        raise PartitionError("is missing", path) from None
    if found != size:
        expected = f"the partition was written with {size}"
        raise PartitionError(f"has {found} bytes, {expected}: it is cut off or changed", path)


def write_manifest(folder: str, manifest: Manifest) -> None:
    """Write the manifest; the arrays of weights are left out."""
    model = manifest.model
    weights = {name: list(array.shape) for name, array in model.arrays.items() if name.endswith("weights")}
    arrays = {f"model.{name}": array for name, array in model.arrays.items() if name not in weights}
    arrays["sizes"] = np.array(manifest.sizes, dtype=np.int64).reshape(-1, len(BatchSize._fields))
    arrays["digests"] = np.frombuffer(bytes.fromhex("".join(manifest.digests)), dtype=np.uint8).reshape(-1, 32)
    settings = {**manifest.settings, "model": model.settings, "weights": weights}
    metadata = {"kind": manifest.kind, "settings": container.json_text(settings)}
    container.save(os.path.join(folder, MANIFEST), _MANIFEST, metadata, arrays)


def read_manifest(folder: str) -> Manifest:
    """Return the manifest of a folder; PartitionError if it is missing or damaged, or a batch's file is missing."""
    path = os.path.join(folder, MANIFEST)
    if not os.path.isfile(path):
        if not os.path.exists(folder):
            raise PartitionError("there is no such folder", folder)
        raise PartitionError(f"is not a partition: it has no file {MANIFEST}", folder)
    metadata, arrays = container.read(path, _MANIFEST)
    n_bytes = sum(array.nbytes for array in arrays.values())
    try:
        settings = container.parse_json(metadata.get("settings", ""))
        if not isinstance(settings, dict) or not isinstance(settings.get("model"), dict):
            raise ModelFormatError("has settings that cannot be read")
        parts = ModelParts("partition", {}, arrays)
        table = parts.ints("sizes", None, len(BatchSize._fields), low=0, high=1 << 50)
        digests = [digest.tobytes().hex() for digest in parts.bytes("digests", len(table), 32)]
        sizes = [BatchSize(*row) for row in table.tolist()]
        if not sizes or not all(size.n_examples and size.valued in (0, 1) for size in sizes):
            raise ModelFormatError("has no batches, or one without examples")
        own = {name.removeprefix("model."): array for name, array in arrays.items() if name.startswith("model.")}
        own |= _zeros(settings.get("weights"), n_bytes)
        model = ModelParts(metadata.get("kind", ""), settings["model"], own)
    except (ValueError, RecursionError) as error:
        raise PartitionError(getattr(error, "message", str(error)), path) from None
    for number, size in enumerate(sizes):
        _check_size(os.path.join(folder, batch_name(number)), size.n_bytes)
    return Manifest(model.kind, settings, sizes, digests, model, metadata.get("sha256", ""), n_bytes)


def _zeros(shapes: object, n_bytes: int) -> dict[str, Array]:
    """Return zero weights of these shapes, which must be in proportion to the file."""
    if not isinstance(shapes, dict):
        raise ModelFormatError("has no shapes of weights")
    for shape in shapes.values():
        if not isinstance(shape, list) or not all(type(each) is int and 0 <= each < 1 << 40 for each in shape):
            raise ModelFormatError("has shapes of weights that make no sense")
        if math.prod(shape) > max(1 << 24, 100 * n_bytes):
            raise ModelFormatError(f"has weights of shape {shape}, out of proportion to its size")
    return {name: np.zeros(shape) for name, shape in shapes.items()}
