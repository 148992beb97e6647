"""A partition: the content of its folder, and references of its batches."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from partwise.model_files import KINDS, class_of
from partwise.model_files.errors import ContainerError, PartitionError
from partwise.model_files.values import decode
from partwise.models.base import Ability, AsideSizes, EncodedData, Learnt, Model, Training
from partwise.models.partition import Size
from partwise.out_of_core.partitions.executor import PartitionExecutor, dual_bytes, opened_bytes, parse_size, plan
from partwise.out_of_core.partitions.files import MANIFEST, BatchSize, Manifest, batch_name, read_batch, read_manifest
from partwise.problem import Executor, LabelledBatch, Problem
from partwise.problem.penalties import Penalty
from partwise.structures import padded_width
from partwise.support.lazy import cached_property

#: Partitions that are open in this process, by folder, digest and limit: references that are unpickled share them.
_OPEN: WeakValueDictionary[tuple[str, str, int | None], Partitions] = WeakValueDictionary()


class Partitions(EncodedData):
    """Training data in files, which `fit` takes in place of X and y; `partwise.out_of_core.partitions.open` makes it.

    memory: the bytes that a process that trains may take, about; None: any number. kind: that of the estimator's model
    files. n_rows: the number of positions of all examples. digest: differs between partitions. input_settings: how the
    command line read the data, as in model files.
    """

    def __init__(self, folder: str, manifest: Manifest, memory: int | None) -> None:
        self.folder, self.manifest, self.memory = folder, manifest, memory
        self.kind, self.digest, self.n_batches = manifest.kind, manifest.digest, len(manifest.sizes)
        self.n_examples = sum(size.n_examples for size in manifest.sizes)
        self.n_rows = sum(size.n_rows for size in manifest.sizes)
        settings = manifest.settings
        n_weights, features, found = (settings.get(name) for name in ("n_weights", "features", "input"))
        named = isinstance(features, dict) and isinstance(settings.get("parameters"), dict) and isinstance(found, dict)
        if type(n_weights) is not int or not 0 < n_weights < 1 << 40 or not named or manifest.kind not in KINDS:
            raise self._error("has settings that cannot be read")
        self.n_weights: int = n_weights
        self.input_settings: dict[str, Any] = found  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self.n_examples} examples in {self.n_batches} batches of {self.folder}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.folder, self.digest, self.memory)

    def estimator(self, **training: Any) -> Any:
        """Return the estimator that the partition was made for, with other parameters of training."""
        made = self._bare_estimator()
        known = {name: value for name, value in self.model.parameters().items() if getattr(made, name) is None}
        return made.set_params(**known, **training)

    def _bare_estimator(self) -> Any:
        """Return the same estimator without what the model knows, such as a template."""
        cls = class_of(self.kind)
        try:
            return cls(**{name: decode(value) for name, value in self.manifest.settings["parameters"].items()})
        except (ValueError, TypeError) as error:
            raise self._error(f"has parameters that make no {cls.__name__} ({error})") from None

    @cached_property
    def model(self) -> Model:
        """The model without weights."""
        try:
            made = self._bare_estimator()._make_model()
            made.needs(Ability.PARTITIONS, "partitions")
            model: Model = made.from_parts(self.manifest.model)
        except ContainerError as error:
            raise self._error(error.message) from None
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise self._error(f"holds what makes no model ({error})") from error
        self.manifest.model.arrays.clear()  # the model has its own
        vars(model).pop("_weights", None)
        return model

    def learn(self, model: Model, training: Training) -> tuple[Model, Learnt]:
        """Return the partition's model and its batches, for an estimator that made `model`.

        ValueError if the estimator has other features than the partition was written with, or the limit is too low.
        """
        self._check_features(model)
        files, found, seconds = self.batches(training.by_features), self.model, 0.0
        executor = self.executor(files)  # before anything is learnt: it refuses limits that are too low

        def aside_problem(penalty: Penalty) -> Problem:
            batches = [replace(file, by_features=False, aside=True) for file in files]
            return Problem.of(batches, "log", penalty, executor=self.executor(batches), n_jobs=training.n_jobs)

        if found.aside is not None:
            found, seconds = found.learn_aside(model, aside_problem, training)
        return found, Learnt(files, (self.digest,), found.l2_factor, seconds=seconds, executor=executor)

    def _check_features(self, model: Model) -> None:
        """Raise ValueError if a model of the estimator's would have other features than the partition's."""
        if model.label_cost is not None:
            raise ValueError("cost is not available with a partition")
        model.needs(Ability.PARTITIONS, "partitions")
        if type(model) is not type(self.model):
            raise ValueError(
                f"{self.folder} is a partition for {KINDS[self.kind][1]} with a {type(self.model).__name__}, "
                f"and the estimator has a {type(model).__name__}"
            )
        written = self.manifest.settings["features"]
        for name, given in model.feature_parameters().items():
            if name not in written or written[name] != given:
                raise ValueError(
                    f"{self.folder} was written with {name}={_short(written.get(name))}, the estimator has "
                    f"{_short(given)}: what decides about features is the same in both (see Partitions.estimator)"
                )

    def batches(self, by_features: bool | None = False) -> list[FileBatch]:
        return [FileBatch(self, number, by_features) for number in range(self.n_batches)]

    def executor(self, batches: list[FileBatch]) -> Executor:
        """Return what opens the batches within the limit; ValueError if the limit is too low."""
        sizes = [batch.opened_bytes for batch in batches]
        slots, rows = [batch.n_slots for batch in batches], [batch.size.n_rows for batch in batches]
        duals, largest = dual_bytes(sum(slots), sum(rows)), dual_bytes(max(slots), max(rows))
        found = plan(sizes, self.memory, self.manifest.n_bytes, batches[0].n_weights, duals, largest)
        return PartitionExecutor(batches, found, os.path.abspath(self.folder))

    def read(self, number: int, by_features: bool | None = False, aside: bool = False) -> LabelledBatch:
        """Return a batch, opened; aside: that of `Model.aside`."""
        size = self.manifest.sizes[number]
        path = os.path.join(self.folder, batch_name(number))
        parts = read_batch(path, size.n_bytes, self.manifest.digests[number])
        try:
            encoded = self.model.encoded(parts)
            if encoded.size != size[:3] or encoded.valued != size.valued:
                raise PartitionError("is of other sizes than the partition says", path)
            if aside:
                return self.model.labelled_aside(encoded)
            labelled = self.model.labelled(encoded, by_features)
        except PartitionError:
            raise
        except ContainerError as error:
            raise PartitionError(error.message, path) from None
        except (ValueError, TypeError, OverflowError) as error:
            raise PartitionError(f"holds what makes no batch ({error})", path) from error
        found = labelled.n_examples, labelled.n_slots, labelled.n_weights
        if found != (self.model.n_trained(encoded.size), size.n_slots, self.n_weights):
            raise PartitionError("is of other sizes than the partition says", path)
        return labelled

    def check(self) -> None:
        """Open every batch in turn; PartitionError that names the first file that is damaged."""
        for number in range(self.n_batches):
            self.read(number)

    def _error(self, message: str) -> PartitionError:
        return PartitionError(message, os.path.join(self.folder, MANIFEST))


@dataclass(frozen=True)
class FileBatch:
    """A reference of a batch in a file, which can be pickled."""

    partitions: Partitions
    number: int
    by_features: bool | None = False
    aside: bool = False

    @property
    def size(self) -> BatchSize:
        return self.partitions.manifest.sizes[self.number]

    @property
    def _aside(self) -> AsideSizes | None:
        return self.partitions.model.aside if self.aside else None

    @property
    def opened_bytes(self) -> int:
        """The bytes of the opened batch, about."""
        size = self.size
        if self.aside:
            # A label per row, with about 50 features each.
            return opened_bytes(0, size.n_rows, 50 * size.n_rows, valued=False)
        by_features = self.by_features and self.partitions.model.has_columns
        return opened_bytes(*size[:3], bool(size.valued), self.n_weights if by_features else 0)

    @property
    def n_examples(self) -> int:
        return self.size.n_rows if self.aside else self.partitions.model.n_trained(Size(*self.size[:3]))

    @property
    def n_slots(self) -> int:
        found = self._aside
        return self.size.n_slots if found is None else self.size.n_rows * padded_width(found.n_labels)

    @property
    def n_weights(self) -> int:
        found = self._aside
        return self.partitions.n_weights if found is None else found.n_weights

    def open(self) -> LabelledBatch:
        return self.partitions.read(self.number, self.by_features, self.aside)


def open_folder(folder: str | os.PathLike[str], memory: str | float | None = None) -> Partitions:
    """Open a partition that `write` or ``partwise partition`` wrote; PartitionError unless it is whole and undamaged.

    memory: the bytes that a process that trains on it may take in all, about ("500M"). By default all stay open.
    """
    limit = None if memory is None else parse_size(memory)
    name = os.path.abspath(os.fspath(folder))
    found = Partitions(os.fspath(folder), read_manifest(os.fspath(folder)), limit)
    return _OPEN.setdefault((name, found.digest, limit), found)


def _reopened(folder: str, digest: str, memory: int | None) -> Partitions:
    known = _OPEN.get((os.path.abspath(folder), digest, memory))
    found = open_folder(folder, memory) if known is None else known
    if found.digest != digest:
        raise PartitionError("is another partition than it was", folder)
    return found


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."
