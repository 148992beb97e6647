"""Partitions are written in two passes over blocks of data, as batches of about one size."""

import copy
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np

from partwise.io.files import clear_left, temporary_beside
from partwise.model_files import kind_of
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import encode
from partwise.models.base import Ability, Model
from partwise.models.partition import ChangedData, EncodedTables, Partitioner
from partwise.out_of_core.partitions import files
from partwise.out_of_core.partitions.executor import opened_bytes, parse_size
from partwise.out_of_core.partitions.folder import Partitions, open_folder
from partwise.support.checks import count_jobs

#: Bytes of an opened batch, unless others are asked for.
BATCH_SIZE = 32_000_000

Blocks = Iterable[tuple[Any, ...]] | Callable[[], Iterable[tuple[Any, ...]]]


def write(
    folder: str | os.PathLike[str],
    estimator: Any,
    blocks: Blocks,
    *,
    batch_size: str | float = BATCH_SIZE,
    input_settings: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> Partitions:
    """Write training data to a folder, to be trained on within a limit of memory.

    Writing takes memory for a block, a batch, and what the model knows: labels, names and features. NotAvailable if the
    estimator's model cannot be trained on partitions, FileExistsError if the folder exists and may not be replaced.

    Parameters
    ----------
    folder : a folder that does not exist or is empty, unless `overwrite`
    estimator : has the parameters about features that the partition is written for; it is not changed
    blocks : list, other iterable, or callable
        (X, y) or (X, y, sample_weight) of some examples each, as `fit` takes them. There are two passes over them:
        instead of a generator, give the function that makes one.
    batch_size : the bytes of an opened batch, about, as a number or a text such as "32M"
    input_settings : how the data were read, for model files
    overwrite : whether an existing partition is replaced, once the new one is complete
        Dual variables of runs on it are removed: their checkpoints cannot be resumed. Folders with other files stay.
    """
    model = estimator._make_model()
    model.needs(Ability.PARTITIONS, "partitions")
    limit, name = parse_size(batch_size, "batch_size"), os.fspath(folder)
    if not callable(blocks) and isinstance(blocks, Iterator):
        raise ValueError("blocks are gone through twice: give a list, or a function that makes the iterator")
    with _new_folder(name, overwrite) as temporary:
        _Writer(temporary, estimator, model, blocks, limit).write(input_settings or {})
    return open_folder(name)


@contextmanager
def _new_folder(name: str, overwrite: bool) -> Iterator[str]:
    """Make a temporary folder, which gets its name if the block succeeds and is removed otherwise."""
    target = os.path.realpath(name)
    old = overwrite and os.path.isfile(os.path.join(target, files.MANIFEST))
    if not old and os.path.exists(target) and (not os.path.isdir(target) or os.listdir(target)):
        what = "and not a partition" if overwrite else "and not an empty folder"
        raise FileExistsError(f"{name}: is there already, {what}")
    others = _others(target) if old else []
    if others:
        raise FileExistsError(f"{name}: has {others[0]}, which is no file of a partition: it is not replaced")
    clear_left(target)
    with temporary_beside(target, os.mkdir, name) as temporary:
        yield temporary
        aside = f"{temporary}.old"  # a name that `clear_left` does not remove, in case the process is killed here
        if old:
            os.replace(target, aside)
        try:
            os.replace(temporary, target)
        except BaseException:
            if old:
                os.replace(aside, target)
            raise
    if old and not _others(aside):  # another process may have added files meanwhile
        shutil.rmtree(aside, ignore_errors=True)


def _others(folder: str) -> list[str]:
    """Return the names in a folder that are neither a partition's files nor dual variables of runs on it."""
    with os.scandir(folder) as entries:
        return sorted(
            entry.name
            for entry in entries
            if entry.name != files.MANIFEST
            and not re.fullmatch(files.BATCH_NAME, entry.name)
            and not (entry.name.startswith("duals-") and entry.is_dir(follow_symlinks=False))
        )


class _Writer:
    def __init__(self, folder: str, estimator: Any, model: Model, blocks: Blocks, batch_size: int) -> None:
        self.folder, self.model, self.batch_size, self._blocks = folder, model, batch_size, blocks
        self.estimator = copy.copy(estimator)  # checks of data set attributes
        self.n_jobs = count_jobs(estimator.n_jobs)

    def blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield blocks as the model takes them, except those without an example of positive weight."""
        for X, y, *weight in self._blocks() if callable(self._blocks) else self._blocks:
            if (X.shape[0] if hasattr(X, "shape") else len(X)) == 0:
                continue
            if weight and weight[0] is not None and not np.any(weight[0]):
                continue
            yield *self.estimator._check_data(self.model, X, y), (weight[0] if weight else None)

    def write(self, input_settings: dict[str, Any]) -> None:
        """Make both passes, then write the manifest."""
        partitioner, n_blocks = self.model.partitioner(), 0
        for block in self.blocks():
            partitioner.scan(*block, self.n_jobs)
            n_blocks += 1
        if not n_blocks:
            raise ValueError("there are no examples with a weight above 0")
        partitioner.choose_vocabulary()
        sizes, digests = list[files.BatchSize](), list[str]()
        first: EncodedTables | None = None
        for held in self._batches(self._encoded(partitioner, n_blocks)):
            encoded = type(held[0]).joined(held)
            held.clear()
            path = os.path.join(self.folder, files.batch_name(len(sizes)))
            digests.append(files.write_batch(path, encoded.to_arrays()))
            n_slots, n_bytes = partitioner.n_slots(encoded), os.stat(path).st_size
            sizes.append(files.BatchSize(*encoded.size, int(encoded.valued), n_slots, n_bytes))
            first = encoded if first is None else first
        partitioner.choose_features()
        assert first is not None
        n_weights = self.model.labelled(first).n_weights
        settings = {
            "n_weights": n_weights,
            "features": self.model.feature_parameters(),
            "parameters": _parameters(self.estimator),
            "input": input_settings,
        }
        parts = ModelParts(kind_of(self.estimator))
        self.model.with_weights(np.zeros(n_weights)).to_parts(parts)
        files.write_manifest(self.folder, files.Manifest(kind_of(self.estimator), settings, sizes, digests, parts))

    def _encoded(self, partitioner: Partitioner, n_blocks: int) -> Iterator[EncodedTables]:
        """Yield the blocks' examples as numbers; raise ChangedData if there are not as many blocks as before."""
        n_seen = 0
        for block in self.blocks():
            n_seen += 1
            if (encoded := partitioner.encode(*block, self.n_jobs)) is not None:
                yield encoded
        if n_seen != n_blocks:
            raise ChangedData

    def _batches(self, tables: Iterable[EncodedTables]) -> Iterator[list[EncodedTables]]:
        """Yield the parts of each batch: as many examples as it has room for, and at least one, however large."""
        held: list[EncodedTables] = []
        room = float(self.batch_size)
        for encoded in tables:
            rows, entries = encoded.ends()
            costs = opened_bytes(np.arange(len(rows)), rows, entries, encoded.valued)  # of the first k examples
            start, n = 0, encoded.size.n_examples
            while start < n:
                stop = int(np.searchsorted(costs, costs[start] + room, side="right")) - 1
                if stop > start or not held:
                    stop = min(max(stop, start + 1), n)
                    held.append(encoded.cut(start, stop))
                    room -= float(costs[stop] - costs[start])
                    start = stop
                if start < n:  # the next example is for the next batch
                    yield held
                    held, room = [], float(self.batch_size)
        if held:
            yield held


def _parameters(estimator: Any) -> dict[str, Any]:
    """Return the estimator's parameters that are not about training; a template is written with the model."""
    from partwise.estimators.parameters import TrainingParameters
    from partwise.features.template import Template

    training = {each.name for each in fields(TrainingParameters)}
    found = {name: value for name, value in estimator.get_params(deep=False).items() if name not in training}
    return {
        name: None if isinstance(value, Template) else encode(value, f"the parameter {name}")
        for name, value in found.items()
    }
