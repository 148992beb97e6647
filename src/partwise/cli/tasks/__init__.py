"""What can be trained from the command line: one module per task, listed in `TASKS`.

A task says how its files are read, which estimator is made from the flags, how predictions are written and scored and
drawn. The commands (`train`, `predict`, `evaluate`, `inspect`, `path`) know tasks by this interface alone: a new task
is a module with a class, and a line in the table.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import click

from partwise.cli.errors import UserError
from partwise.io.errors import FormatError
from partwise.model_files import KINDS


class Entry(NamedTuple):
    """Where a task is, what it is, and the kind of its model files (`partwise.model_files.KINDS`)."""

    module: str
    cls: str
    summary: str
    kind: str


#: The order is that of the help.
TASKS = {
    "tag": Entry(
        "partwise.cli.tasks.tag", "TagTask", "Label every token of a sentence (CRF, max-margin, maxent).", "tagger"
    ),
    "segment": Entry(
        "partwise.cli.tasks.segment",
        "SegmentTask",
        "Find labelled segments of sentences: names, phrases (semi-Markov).",
        "segment",
    ),
    "maxent": Entry("partwise.cli.tasks.maxent", "MaxentTask", "Classify rows of features.", "maxent"),
    "dep": Entry(
        "partwise.cli.tasks.dep", "DepTask", "Find the head of every word (projective and other trees).", "dep"
    ),
    "cfg": Entry("partwise.cli.tasks.cfg", "CfgTask", "Find the phrases of a sentence (constituent trees).", "cfg"),
}


class NoExamples(FormatError):
    """A file without a sentence or row: nothing to learn from, and nothing to label either."""


@dataclass
class Data:
    """A file that was read.

    X, y
        As the estimator takes them; y is None where the file has no labels.
    n_examples, n_tokens
        How many there are (a classifier's rows are their own tokens).
    source
        What is needed to write predictions next to the input.
    first
        How many examples of the file come before these.
    chosen
        What the task has chosen by looking at them, so that it looks once.
    """

    X: Any
    y: Any
    n_examples: int
    n_tokens: int
    source: Any = None
    first: int = 0
    chosen: Any = None


@dataclass(frozen=True)
class Evaluation:
    """Scores of predictions.

    scores
        By name, as fractions of 1: "accuracy", "f1", "uas", "las", ...
    table
        The same and more for people to read.
    by_label
        One dict per label, for the JSON output and the report.
    confusion
        (labels, matrix) with a row a gold label, or None.
    details
        What else the JSON output has ("unknown_rate", ...).
    """

    scores: dict[str, float]
    table: str
    by_label: list[dict[str, Any]] = field(default_factory=list)
    confusion: tuple[list[str], list[list[int]]] | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What `predict` is asked for in addition to the best labels; `rules` are what the task's `rules` read."""

    marginals: bool = False
    k_best: int | None = None
    rules: Any = None
    as_json: bool = False


class Rules(Protocol):
    """What answers may be, from a file of rules."""

    def check(self, n_examples: int) -> None:
        """FormatError if a rule is for an example beyond the end of a file of this many."""


class Task(ABC):
    """One kind of model on the command line."""

    #: Name of the subcommand of `train`.
    name: ClassVar[str]
    #: What a unit is called in messages.
    unit: ClassVar[str] = "sentences"
    #: What a position in a unit is called.
    part: ClassVar[str] = "token"
    #: The parameters of the estimator that are flags, besides those of all tasks (`flags.TRAINING`).
    parameters: ClassVar[tuple[str, ...]] = ()
    #: Those of them that decide about features, which are flags of `partition`.
    partitioned: ClassVar[tuple[str, ...]] = ()
    #: Whether labels may have costs from a file.
    label_costs: ClassVar[bool] = False
    #: What a report says in addition of its parts (`partwise.report.write_report`).
    report_notes: ClassVar[Mapping[str, str]] = {}
    #: File formats, the default first; "auto" looks at the file.
    formats: ClassVar[tuple[str, ...]] = ("auto",)

    @property
    @abstractmethod
    def estimator(self) -> type[Any]:
        """The estimator's class."""

    def flags(self) -> list[click.Parameter]:
        """More flags of `train` and `path`; their values come to `read` and `make` in `settings`."""
        return []

    def cost_label(self, text: str) -> Any:
        """A label as a file of costs has it; ValueError for a text that is none."""
        return text

    @abstractmethod
    def read(self, path: str, settings: Mapping[str, Any], labelled: bool) -> Data:
        """Read a file; `settings` are flags, or what a model remembers of them (see `remember`).

        labelled : whether labels are needed (a file without them is then refused) or ignored.
        """

    def blocks(self, path: str, settings: Mapping[str, Any], size: int, labelled: bool = False) -> Iterator[Data]:
        """A file in parts of about `size` bytes, one after another, for `predict` or, labelled, for `partition`.

        NoExamples if there is nothing in any of them.
        """
        yield self.read(path, settings, labelled)

    def words_only(self, model: Any) -> bool:
        """Whether a model looks at nothing but words, so that it can label plain text (`blocks` with `text`)."""
        return False

    def of_conllu(self, model: Any, given: Sequence[Any], gold: Sequence[Any], path: str) -> Data:
        """Labelled data for a model that is one of several: it reads columns of `given`, labels are those of `gold`."""
        raise UserError(f"task {self.name!r} has no columns of CoNLL-U")

    def why_not_text(self, model: Any, name: str) -> str | None:
        """Why a model of CoNLL-U cannot label plain text, or None."""
        return None

    def unknown(self, model: Any, data: Data) -> tuple[int, int]:
        """How many features of the data that was labelled last the model does not know, and of how many."""
        return 0, 0

    def blank(self, model: Any) -> set[str]:
        """The columns that the model was trained with and that the data labelled last left blank."""
        return set()

    def rules(self, model: Any, path: str) -> Rules:
        """Read a file of constraints."""
        raise UserError(f"--constraints is not available for task {self.name!r}")

    def align(self, data: Data, training: Data) -> Data:
        """Other data as an estimator fitted to the training data takes them, where that is a matter of shape."""
        return data

    def remember(self, settings: Mapping[str, Any], data: Data) -> dict[str, Any]:
        """What a model file keeps of how its training data were read: JSON values by name."""
        return {}

    def recall(self, model: Any) -> dict[str, Any]:
        """What a model remembers (see `remember`); for one that was not trained on the command line, what it needs."""
        return dict(getattr(model, "input_settings_", {}))

    def beside(self, settings: Mapping[str, Any], output: str) -> list[str]:
        """Files with further models that are written beside the model; see `prepared`."""
        return []

    def prepared(
        self, settings: Mapping[str, Any], training: Data, held: Data | None
    ) -> tuple[Data, Data | None, list[Any]]:
        """Training and development data as the model is to see them; the further models, in the order of `beside`."""
        return training, held, []

    @abstractmethod
    def make(self, settings: Mapping[str, Any], data: Data, training: dict[str, Any]) -> Any:
        """The estimator, not yet fitted; `training` are the parameters that came from flags."""

    @abstractmethod
    def predict(self, model: Any, data: Data, request: Request) -> Iterable[str]:
        """The lines of the output, with their ends."""

    @abstractmethod
    def evaluate(self, model: Any, data: Data, guess: Any = None) -> Evaluation:
        """Scores of the model's predictions; `guess`: these, if they are known already."""

    def results(self, model: Any) -> Any:
        """The certificate for the report, or several by what they are of."""
        return model.result_

    def cards(self, evaluation: Evaluation) -> dict[str, str]:
        """What the report shows beside the scores."""
        return {}

    def notes(self, model: Any, training: Data, evaluation: Evaluation) -> list[tuple[str, str]]:
        """More lines of the summary of `train`: (heading, text)."""
        return []

    @abstractmethod
    def main_score(self, evaluation: Evaluation) -> tuple[str, float]:
        """The score that a model is chosen by: its name and value."""

    @abstractmethod
    def baseline(self, train: Data, data: Data, score: str) -> tuple[str, float]:
        """What a model without learning scores on `data`: its description, and the value of the main score, `score`."""

    def metric(self, data: Data) -> Any:
        """The main score as `EarlyStopping` takes it: None (the estimator's own), "f1", or a function of labels."""
        return None

    def unstructured(
        self, settings: Mapping[str, Any], train: Data, data: Data, training: dict[str, Any]
    ) -> tuple[str, float] | None:
        """Description and main score of a model trained without structure, or None where that makes no sense."""
        return None

    def calibration(self, model: Any, data: Data) -> Any:
        """A `partwise.metrics.Calibration` of the model's probabilities, or None where it has none."""
        return None

    def examples(self, model: Any, data: Data, n: int) -> list[Any]:
        """Drawings of some predictions for the report (of `partwise.report`)."""
        return []

    def strongest(self, model: Any, n: int, data: Data | None = None) -> dict[str, list[tuple[str, float]]]:
        """The n strongest features under each heading (a label, ...): (name, weight), the strongest first.

        A model that does not keep the names of its features has them for those of `data` only.
        """
        return {}

    def weights(self, model: Any) -> Iterable[tuple[str, ...]]:
        """All weights that are not zero, for `inspect --dump`: a kind, names, the weight; all rows as texts."""
        raise UserError(f"--dump: task {self.name!r} does not keep the names of its features")

    def features(self, model: Any) -> dict[str, Any]:
        """What the model looks at, where there was a choice: its name and columns, for the JSON output."""
        return self.features_of(getattr(model, "input_settings_", {}))

    def features_of(self, remembered: Mapping[str, Any]) -> dict[str, Any]:
        """The same, from what a model or a partition remembers (see `remember`)."""
        return {}

    def labels(self, model: Any) -> list[Any]:
        """The labels that the model gives, where they are a list."""
        found: list[Any] = model.classes_.tolist() if hasattr(model, "classes_") else []
        return found

    def size(self, model: Any) -> int:
        """Number of features: weights of the model."""
        return int(model.result_.weights.size)

    def n_nonzero(self, model: Any) -> int:
        """How many of them are not zero."""
        return int(model.result_.n_nonzero)

    def take(self, data: Data, indices: Sequence[int]) -> Data:
        """Some of the examples; for `path` without development data."""
        raise NotImplementedError(f"task {self.name!r} cannot hold out data")


def register_task(cls: type[Task], kind: str) -> type[Task]:
    """Make a user-defined task a subcommand of `train` and `path`, from a file given to `--plugin`; return the class.

    kind: of the estimator's model files (`partwise.model_files.register`), by which `predict`, `evaluate` and `inspect`
    find the task; each task has a kind of its own. The first line of the class's docstring is the help. A class that is
    registered again, as when the file is loaded twice, replaces the one before.

    Raises
    ------
    ValueError
        If there is another task of this name or of this kind, or no such kind of model files.
    TypeError
        If the class is not a task, or something that a task has is missing.
    """
    if not (isinstance(cls, type) and issubclass(cls, Task)):
        raise TypeError(f"only subclasses of partwise.cli.tasks.Task can be registered, got {cls!r}")
    missing = sorted({*cls.__abstractmethods__, *(() if hasattr(cls, "name") else ("name",))})
    if missing:
        raise TypeError(f"task {cls.__name__} has no {', '.join(missing)}")
    entry = Entry(cls.__module__, cls.__qualname__, (cls.__doc__ or "").partition("\n")[0], kind)
    known = TASKS.get(cls.name)
    if known is not None and known[:2] != entry[:2]:
        raise ValueError(f"there is another task {cls.name!r}: {known.module}.{known.cls}")
    if kind not in KINDS:
        raise ValueError(f"there are no model files of kind {kind!r}: register them (partwise.model_files.register)")
    for name, other in TASKS.items():
        if other.kind == kind and name != cls.name:
            raise ValueError(
                f"model files of kind {kind!r} belong to task {name!r}: derive an estimator and register a kind for it"
            )
    TASKS[cls.name] = entry
    return cls


def get_task(name: str) -> Task:
    """The task of this name."""
    entry = TASKS[name]
    task: Task = getattr(importlib.import_module(entry.module), entry.cls)()
    return task


def task_of(model: Any) -> Task:
    """The task that a loaded model belongs to, by its class or one that it is derived from."""
    homes = {KINDS[entry.kind]: name for name, entry in TASKS.items()}
    for cls in type(model).__mro__:
        if (cls.__module__, cls.__qualname__) in homes:
            return get_task(homes[cls.__module__, cls.__qualname__])
    raise ValueError(f"there is no command for models of type {type(model).__name__}")
