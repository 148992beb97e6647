"""What a trainer's messages say, line by line: the module of this name in python-crfsuite has the same class."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

_NUMBER = r"(\d+\.\d+)"
#: Lines of an iteration with one number: the beginning of the line, the key and the type of its number.
_FIELDS: list[tuple[str, str, Callable[[str], Any]]] = [
    ("Loss", "loss", float),
    ("Feature norm", "feature_norm", float),
    ("Error norm", "error_norm", float),
    ("Active features", "active_features", int),
    ("Line search trials", "linesearch_trials", int),
    ("Line search step", "linesearch_step", float),
    ("Seconds required for this iteration", "time", float),
]
_HEAD = re.compile(r"\*{5} (?:Iteration|Epoch) #(\d+) \*{5}\n")
_SECONDS = re.compile(rf"Seconds required: {_NUMBER}")
_AVERAGES = re.compile(rf"Macro-average precision, recall, F1: \({_NUMBER}, {_NUMBER}, {_NUMBER}\)")
_ACCURACY = re.compile(r"(Item|Instance) accuracy: (\d+) / (\d+)")
_LABEL = re.compile(r" {4}(.+): \((\d+), (\d+), (\d+)\) \((.+), (.+), (.+)\)")


class LabelScore(NamedTuple):
    """How a label did on held-out data: right, predicted, there; None where a share has no meaning."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


class TrainLogParser:
    """Takes messages one by one (`feed`) and says when something has happened.

    Events: "start", "featgen_progress", "featgen_end", "prepared" or "prepare_error", "iteration" (one each),
    "optimization_end", "end". `last_log` is the text that belongs to the last event, `last_iteration` and `iterations`
    what iterations reported, by name; `log` has all messages.
    """

    def __init__(self) -> None:
        self.state = "new"
        self.featgen_percent = -2
        self.featgen_num_features: int | None = None
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None
        self.iterations: list[dict[str, Any]] = []
        self.last_iteration: dict[str, Any] | None = None
        self.log: list[str] = []
        self.events: list[tuple[str, int, int]] = []

    @property
    def last_log(self) -> str:
        _, begin, end = self.events[-1]
        return "".join(self.log[begin:end])

    def feed(self, line: str) -> str | None:
        """Take a message; the event that it completes, if any."""
        self.log.append(line)
        event = self._event(line)
        if event is not None:
            begin = self.events[-1][2] if self.events else 0
            # The line that completes these two events is the first line of the next event.
            self.events.append((event, begin, len(self.log) - (event in ("prepared", "optimization_end"))))
        return event

    def _event(self, line: str) -> str | None:
        seconds, head = _SECONDS.match(line), _HEAD.match(line)
        match self.state:
            case "new" | "starting" as before:
                self.state = "features" if line.startswith("Feature generation") else "starting"
                return "start" if before == "new" else None
            case "features":
                if line in (".", "10") or (len(line) == 1 and line.isdigit()):
                    self.featgen_percent += 2
                    return "featgen_progress"
                if found := re.match(r"Number of features: (\d+)", line):
                    self.featgen_num_features = int(found[1])
                elif seconds:
                    self.featgen_seconds, self.state = float(seconds[1]), "preparing"
                    return "featgen_end"
            case "preparing" | "between" as before if head:
                self.last_iteration = {"num": int(head[1]), "scores": {}}
                self.iterations.append(self.last_iteration)
                self.state = "iteration"
                return "prepared" if before == "preparing" else None
            case "preparing" if "terminated with error" in line:
                self.state = "between"
                return "prepare_error"
            case "iteration" if line == "\n":
                self.state = "between"
                return "iteration"
            case "iteration":
                assert self.last_iteration is not None
                _add_report(self.last_iteration, line)
            case "between" if line.startswith("Storing the model"):
                self.state = "storing"
                return "optimization_end"
            case "between" if found := re.match(rf"Total seconds required for training: {_NUMBER}", line):
                self.training_seconds = float(found[1])
            case "storing":
                self.storing_seconds = float(seconds[1]) if seconds else self.storing_seconds
                return "end" if line == "\n" else None
        return None


def _add_report(report: dict[str, Any], line: str) -> None:
    for begin, key, kind in _FIELDS:
        if found := re.match(rf"{begin}: ([\d.]+)", line):
            report[key] = kind(found[1])
    if found := _AVERAGES.match(line):
        report |= zip(("avg_precision", "avg_recall", "avg_f1"), map(float, found.groups()), strict=True)
    if found := _ACCURACY.match(line):
        share, key = Fraction(int(found[2]), int(found[3])), f"{found[1].lower()}_accuracy"
        report |= {key: share, f"{key}_float": float(share)}
    if found := _LABEL.match(line):
        shares = [None if "*" in text else float(text) for text in found.groups()[4:]]
        report["scores"][found[1]] = LabelScore(*map(int, found.groups()[1:4]), *shares)
