"""Tasks: what can be trained from the command line, one module each, listed in `TASKS`.

A task is a reader (files to examples), a scorer (predictions to scores) and a drawer (models and predictions to tables
and pictures for people), with an estimator that it makes from flags. Commands know tasks by these interfaces alone: a
new task is a module with a class, and a line in the table.
"""

from __future__ import annotations

import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

import click

from partwise.cli.errors import Commands, UserError
from partwise.cli.flags import JSON, THREADS, UNPACK, Flags, Parameters
from partwise.cli.summary import Fields
from partwise.io.errors import FormatError
from partwise.model_files import KINDS

if TYPE_CHECKING:
    from partwise.estimators.base import StructuredEstimator
    from partwise.metrics import Calibration

#: A fitted estimator of one task; the task's methods name its class.
Fitted: TypeAlias = Any
#: An estimator of any task.
Estimator: TypeAlias = "StructuredEstimator[Any]"
#: The strongest features under each heading (a label, ...), as (name, weight).
Strongest = dict[str, list[tuple[str, float]]]


class Entry(NamedTuple):
    """A task's module and class, its help, and the kind of its model files (`partwise.model_files.KINDS`)."""

    module: str
    cls: str
    summary: str
    kind: str


#: The order is that of the help.
TASKS = {
    name: Entry(f"partwise.cli.tasks.{name}", cls, summary, kind)
    for name, cls, kind, summary in (
        ("tag", "TagTask", "tagger", "Label every token of a sentence (CRF, max-margin, maxent)."),
        ("segment", "SegmentTask", "segment", "Find labelled segments of sentences: names, phrases (semi-Markov)."),
        ("maxent", "MaxentTask", "maxent", "Classify rows of features."),
        ("dep", "DepTask", "dep", "Find the head of every word (projective and other trees)."),
        ("cfg", "CfgTask", "cfg", "Find the phrases of a sentence (constituent trees)."),
    )
}


class NoExamples(FormatError):
    """A file has no sentence or row to learn from or to label."""


@dataclass
class Data:
    """Examples that were read from a file.

    X, y : as the estimator takes them; y is None for a file without labels
    n_examples, n_tokens : the number of examples and of tokens (a classifier's rows are their own tokens)
    source : what the task needs to write predictions next to the input
    first : the number of examples of the file before these
    """

    X: Any
    y: Any
    n_examples: int
    n_tokens: int
    source: Any = None
    first: int = 0


@dataclass(frozen=True)
class Evaluation:
    """Scores of predictions.

    scores : by name, as fractions of 1: "accuracy", "f1", "uas", "las", ...
    table : the scores as text
    by_label : one dict per label, for the JSON output and the report
    confusion : (labels, matrix) with one row per gold label, or None
    details : further fields of the JSON output ("unknown_rate", ...)
    """

    scores: dict[str, float]
    table: str
    by_label: list[Fields] = field(default_factory=list)
    confusion: tuple[list[str], list[list[int]]] | None = None
    details: Fields = field(default_factory=dict)


class Rules(Protocol):
    """Constraints on answers, from a file of rules."""

    def check(self, n_examples: int) -> None:
        """Raise FormatError if a rule is for an example beyond the end of a file of this many."""


@dataclass(frozen=True)
class Request:
    """What `predict` is asked for in addition to the best labels; `rules` are what the task's `rules` returned."""

    marginals: bool = False
    k_best: int | None = None
    rules: Any = None
    as_json: bool = False


class Reader(ABC):
    """Reads the files of a task; `settings` are flags, or what a model file keeps of them (see `remember`)."""

    #: What an example is called in messages.
    unit: ClassVar[str] = "sentences"
    #: What a position in an example is called.
    part: ClassVar[str] = "token"
    #: File formats, the default first; "auto" looks at the file.
    formats: ClassVar[tuple[str, ...]] = ("auto",)

    @abstractmethod
    def read(self, path: str, settings: Flags, labelled: bool) -> Data:
        """Read a file; labelled: refuse a file without labels instead of ignoring them."""

    def blocks(self, path: str, settings: Flags, size: int, labelled: bool = False) -> Iterator[Data]:
        """Yield a file in parts of about `size` bytes, for `predict` or, labelled, for `partition`.

        Raises NoExamples if the file has no examples.
        """
        yield self.read(path, settings, labelled)

    def words_only(self, model: Fitted) -> bool:
        """Return whether a model reads nothing but words, so that it can label plain text (`blocks` with `text`)."""
        return False

    def why_not_text(self, model: Fitted, name: str) -> str | None:
        """Return why a model of CoNLL-U cannot label plain text, or None."""
        return None

    def of_conllu(self, model: Fitted, given: Sequence[Any], gold: Sequence[Any], path: str) -> Data:
        """Return labelled data for one of several models: it reads columns of `given`, and `gold` has the labels."""
        raise UserError(f"this model does not read columns of CoNLL-U, which {path} has")

    def rules(self, model: Fitted, path: str) -> Rules:
        """Read a file of constraints."""
        raise UserError("--constraints is not available for this task")

    def remember(self, settings: Flags, data: Any) -> Fields:
        """Return what a model file keeps of how its training data were read: JSON values by name."""
        return {}

    def recall(self, model: Fitted) -> Fields:
        """Return what `remember` gave, or what is needed to read data for a model that was trained in Python."""
        return dict(getattr(model, "input_settings_", {}))

    def align(self, data: Data, training: Data) -> Data:
        """Return other data in the shape that an estimator fitted to the training data takes."""
        return data

    def take(self, data: Data, indices: Sequence[int]) -> Data:
        """Return some of the examples, for `path` without development data and for `--folds`."""
        raise NotImplementedError(f"{type(self).__name__} cannot hold out data")


class Scorer(ABC):
    """Scores predictions of a task's models."""

    @abstractmethod
    def evaluate(self, model: Fitted, data: Data, guess: Any = None) -> Evaluation:
        """Return scores of the model's predictions; `guess`: these, if they are known already."""

    @abstractmethod
    def main_score(self, evaluation: Evaluation) -> tuple[str, float]:
        """Return the name and value of the score that a model is chosen by."""

    @abstractmethod
    def baseline(self, train: Data, data: Data, score: str) -> tuple[str, float]:
        """Return the description and the main score, `score`, of a model without learning."""

    def metric(self, data: Data) -> str | Callable[[Any, Any], float] | None:
        """Return the main score as `EarlyStopping` takes it: None (the estimator's), "f1", or a function of labels."""
        return None

    def unstructured(self, settings: Flags, train: Any, data: Data, training: Parameters) -> tuple[str, float] | None:
        """Return description and main score of a model trained without structure, or None where that makes no sense."""
        return None

    def calibration(self, model: Fitted, data: Data) -> Calibration | None:
        """Return how well the model's probabilities agree with the data, or None if it has no probabilities."""
        return None

    def unknown(self, model: Fitted, data: Data) -> tuple[int, int]:
        """Return how many features of the data that were labelled last the model does not know, and of how many."""
        return 0, 0

    def blank(self, model: Fitted) -> set[str]:
        """Return the columns that training data filled and that are blank in the data labelled last."""
        return set()


class Drawer:
    """Shows models and predictions of a task in summaries and reports."""

    #: Texts of a report's sections (`partwise.report.write_report`).
    report_notes: ClassVar[Mapping[str, str]] = {}

    def results(self, model: Fitted) -> Any:
        """Return the certificate for the report, or several by what they are of."""
        return model.result_

    def cards(self, evaluation: Evaluation) -> dict[str, str]:
        """Return what the report shows beside the scores."""
        return {}

    def notes(self, model: Fitted, training: Data, evaluation: Evaluation) -> list[tuple[str, str]]:
        """Return further lines of the summary of `train`: (heading, text)."""
        return []

    def examples(self, model: Fitted, data: Data, n: int) -> list[Any]:
        """Return drawings of some predictions for the report (of `partwise.report`)."""
        return []

    def strongest(self, model: Fitted, n: int, data: Data | None = None) -> Strongest:
        """Return the n strongest features under each heading, the strongest first.

        A model that does not keep the names of its features has them for those of `data` only.
        """
        return {}

    def weights(self, model: Fitted) -> Iterable[tuple[str, ...]]:
        """Yield all weights that are not zero, for `inspect --dump`: a kind, names and the weight as texts."""
        raise UserError("--dump: a model of this task does not keep the names of its features")

    def features(self, model: Fitted) -> Fields:
        """Return what the model looks at, where there was a choice: its name and columns, for the JSON output."""
        return self.features_of(getattr(model, "input_settings_", {}))

    def features_of(self, remembered: Flags) -> Fields:
        """Return the same from what a model or a partition remembers (see `remember`)."""
        return {}

    def labels(self, model: Fitted) -> list[Any]:
        """Return the labels that the model gives, where they are a list."""
        return model.classes_.tolist() if hasattr(model, "classes_") else []

    def size(self, model: Fitted) -> int:
        """Return the number of features, which are the weights of the model."""
        return int(model.result_.weights.size)

    def n_nonzero(self, model: Fitted) -> int:
        """Return how many weights are not zero."""
        return int(model.result_.n_nonzero)


class Task(Reader, Scorer, Drawer):
    """One kind of model on the command line: a reader, a scorer and a drawer, with an estimator.

    `read`, `make`, `predict`, `evaluate`, `main_score`, `baseline` and `estimator` are what a task has to write. The
    first line of its docstring is its help.
    """

    #: Name of the subcommand of `train`.
    name: ClassVar[str]
    #: The parameters of the estimator that are flags, besides those of all tasks (`flags.TRAINING`).
    parameters: ClassVar[tuple[str, ...]] = ()
    #: Those of `parameters` that decide about features, which are flags of `partition`.
    partitioned: ClassVar[tuple[str, ...]] = ()
    #: Whether labels may have costs from a file.
    label_costs: ClassVar[bool] = False

    @property
    @abstractmethod
    def estimator(self) -> type[Any]:
        """The estimator's class."""

    def flags(self) -> list[click.Parameter]:
        """Return further flags of `train` and `path`; `read` and `make` find their values in `settings`."""
        return []

    def cost_label(self, text: str) -> Hashable:
        """Return a label of a file of costs; raise ValueError for an invalid text."""
        return text

    def beside(self, settings: Flags, output: str) -> list[str]:
        """Return the files of further models that are written beside the model; see `prepared`."""
        return []

    def prepared(
        self, settings: Flags, training: Data, held: Data | None
    ) -> tuple[Data, Data | None, Sequence[Estimator]]:
        """Return training and development data as the model is to see them, and the models of `beside`."""
        return training, held, []

    @abstractmethod
    def make(self, settings: Flags, data: Any, training: Parameters) -> Any:
        """Return the estimator, not yet fitted; `training` are the parameters that came from flags."""

    @abstractmethod
    def predict(self, model: Fitted, data: Data, request: Request) -> Iterable[str]:
        """Return the lines of the output, with their ends."""


class TaskGroup(Commands):
    """A command with one subcommand per task, made when it is called; the docstring of `run` is the command's help."""

    def __init__(
        self, name: str, parameters: Callable[[Task], list[click.Parameter]], run: Callable[[Task, Flags], None]
    ) -> None:
        super().__init__(name, help=inspect.getdoc(run))
        self.parameters, self.run = parameters, run

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(TASKS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in TASKS:
            return None
        task, summary = get_task(cmd_name), TASKS[cmd_name].summary
        return click.Command(
            cmd_name,
            params=[*self.parameters(task), UNPACK, THREADS, JSON],
            callback=lambda **flags: self.run(task, flags),
            help=f"{summary}\n\n{inspect.cleandoc(task.__doc__ or '')}",
            short_help=summary,
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of tasks, from the table alone."""
        with formatter.section("Tasks"):
            formatter.write_dl([(name, entry.summary) for name, entry in TASKS.items()])


def register_task(cls: type[Task], kind: str) -> type[Task]:
    """Make a user-defined task a subcommand of `train` and `path`, from a file given to `--plugin`; return the class.

    kind: the kind of the estimator's model files (`partwise.model_files.register`), by which `predict`, `evaluate` and
    `inspect` find the task; each task has a kind of its own. The first line of the class's docstring is the help. A
    class that is registered again, as when the file is loaded twice, replaces the one before.

    Raises ValueError if there is another task of this name or kind, or no such kind of model files, and TypeError if
    the class is not a task, or lacks something that a task must have.
    """
    if not (isinstance(cls, type) and issubclass(cls, Task)):
        raise TypeError(f"only subclasses of partwise.cli.tasks.Task can be registered, got {cls!r}")
    missing = sorted(cls.__abstractmethods__ | {"name"}.difference(dir(cls)))
    if missing:
        raise TypeError(f"task {cls.__name__} has no {', '.join(missing)}")
    entry = Entry(cls.__module__, cls.__qualname__, (cls.__doc__ or "").partition("\n")[0], kind)
    known = TASKS.get(cls.name)
    if known is not None and known[:2] != entry[:2]:
        raise ValueError(f"there is another task {cls.name!r}: {known.module}.{known.cls}")
    if kind not in KINDS:
        raise ValueError(f"there are no model files of kind {kind!r}: register them (partwise.model_files.register)")
    owner = next((name for name, other in TASKS.items() if other.kind == kind), cls.name)
    if owner != cls.name:
        message = f"model files of kind {kind!r} belong to task {owner!r}"
        raise ValueError(f"{message}: derive an estimator and register a kind for it")
    TASKS[cls.name] = entry
    return cls


def estimator_named(name: str) -> Any:
    """Return the property of a task whose estimator is this class of `partwise.estimators`, imported when used."""
    return property(lambda task: getattr(importlib.import_module("partwise.estimators"), name))


def get_task(name: str) -> Task:
    """Return the task of this name."""
    task: Task = getattr(importlib.import_module(TASKS[name].module), TASKS[name].cls)()
    return task


def task_of(model: object) -> Task:
    """Return the task that a loaded model belongs to, by its class or one that it is derived from."""
    homes = {KINDS[entry.kind]: name for name, entry in TASKS.items()}
    for cls in type(model).__mro__:
        if (cls.__module__, cls.__qualname__) in homes:
            return get_task(homes[cls.__module__, cls.__qualname__])
    raise ValueError(f"there is no command for models of type {type(model).__name__}")
