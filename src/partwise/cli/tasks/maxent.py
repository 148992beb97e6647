"""``partwise train maxent``: labels for rows of features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import click
import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.flags import COUNT, Flags, Parameters, flag
from partwise.cli.output import json_line
from partwise.cli.summary import Fields
from partwise.cli.tasks import Data, Evaluation, NoExamples, Request, Rules, Strongest, Task, estimator_named
from partwise.cli.tasks.labels import MAX_LABELS, check_rare_labels, class_weight_of
from partwise.cli.tasks.scores import evaluate_labels
from partwise.cli.tasks.structured import check_request, unseen_labels
from partwise.io.blocks import after_lines, text_blocks
from partwise.io.items import parse_items, read_items
from partwise.io.svmlight import MAX_FEATURES, SPREAD, in_proportion, parse_svmlight, read_svmlight
from partwise.metrics import Calibration, calibration
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.estimators import MaxentClassifier


class MaxentTask(Task):
    """DATA is in svmlight's (LIBLINEAR's) format: one row per line, a label and index:value pairs.

    With --format items it is in CRFsuite's: a label and attributes, each with a value after a colon if it is not 1,
    between tabs.
    """

    name: ClassVar[str] = "maxent"
    estimator = estimator_named("MaxentClassifier")
    unit: ClassVar[str] = "rows"
    parameters: ClassVar[tuple[str, ...]] = ("fit_intercept", "penalize_intercept", "min_count")
    partitioned: ClassVar[tuple[str, ...]] = ("fit_intercept", "min_count")
    formats: ClassVar[tuple[str, ...]] = ("svmlight", "items")
    label_costs: ClassVar[bool] = True

    def cost_label(self, text: str) -> Hashable:
        """Return a number for a label of an svmlight file; other labels are those of items."""
        try:
            return _number(text)
        except ValueError:
            return text

    def flags(self) -> list[click.Parameter]:
        return [
            flag("--format", "Read DATA in this format.", self.formats, "svmlight"),
            flag("--zero-based", "Count indices from 0, as scikit-learn writes them, and not from 1.", bool),
            flag(
                "--max-columns=N",
                "Accept this many columns although few of them occur; each has weights.",
                COUNT,
            ),
            MAX_LABELS,
            flag(
                "--class-weight class_weights=LABEL=WEIGHT",
                "Weigh the rows of a label, as LIBLINEAR's -w; balanced: all labels weigh the same.",
                multiple=True,
            ),
        ]

    def read(self, path: str, settings: Flags, labelled: bool) -> Data:
        if settings.get("format") == "items":
            found = _items(*read_items(path))
        else:  # `make` looks at the number of columns
            found = _rows(*read_svmlight(path, zero_based=bool(settings.get("zero_based")), max_features=None))
        if not found.n_examples:
            raise NoExamples("there are no rows", path)
        return found

    def blocks(self, path: str, settings: Flags, size: int, labelled: bool = False) -> Iterator[Data]:
        items, zero_based = settings.get("format") == "items", bool(settings.get("zero_based"))
        first, seen = 0, _Seen()
        for block in text_blocks(path, after_lines, size):
            if items:
                found = _items(*parse_items(block.data, path, line=block.line))
            else:
                found = _rows(*parse_svmlight(block.data, path, zero_based=zero_based, line=block.line))
                if labelled:
                    seen.add(found.X, found.y)
            if found.n_examples:
                yield replace(found, y=found.y if labelled or items else None, first=first)
                first += found.n_examples
        if not first:
            raise NoExamples("there are no rows", path)
        if labelled and not items:
            seen.check(settings)

    def rules(self, model: MaxentClassifier, path: str) -> Rules:
        raise UserError("--constraints: a classifier's labels stand alone, there is nothing to constrain")

    def remember(self, settings: Flags, data: Data) -> Fields:
        if settings["format"] == "items":
            return {"format": "items"}
        return {"zero_based": 1} if settings["zero_based"] else {}

    def recall(self, model: MaxentClassifier) -> Fields:
        return {"format": "items"} if model.takes_items_ else super().recall(model)

    def align(self, data: Data, training: Data) -> Data:
        return data if isinstance(data.X, list) else replace(data, X=_with_columns(data.X, training.X.shape[1]))

    def take(self, data: Data, indices: Sequence[int]) -> Data:
        rows = np.asarray(indices)
        X = [data.X[i] for i in indices] if isinstance(data.X, list) else data.X[rows]
        return Data(X, data.y[rows], len(rows), len(rows))

    def make(self, settings: Flags, data: Data, training: Parameters) -> Any:
        items = isinstance(data.X, list)
        if items and not any(data.X):
            raise UserError("no row of the data has an attribute")
        if not items:
            n_labels, n_columns, most = len(np.unique(data.y)), data.X.shape[1], settings.get("max_columns")
            if n_columns > most if most else not in_proportion(data.X, MAX_FEATURES, max(1, n_labels // 2)):
                raise _out_of_proportion(n_columns, data.X.nnz, n_labels)
        check_rare_labels(settings, data)
        values = (str, "a number") if items else (_number, "numbers")
        return self.estimator(class_weight=class_weight_of(settings["class_weights"], *values), **training)

    def evaluate(self, model: MaxentClassifier, data: Data, guess: Any = None) -> Evaluation:
        guess = model.predict(_known_columns(model, data.X)) if guess is None else guess
        gold = data.y.tolist()
        unknown, total = self.unknown(model, data)
        details = {"unknown_rate": unknown / total if total else 0.0, **unseen_labels(gold, model.classes_.tolist())}
        return replace(evaluate_labels(gold, guess.tolist()), details=details)

    def unknown(self, model: MaxentClassifier, data: Data) -> tuple[int, int]:
        if isinstance(data.X, list):
            return model.unknown_counts_
        return int(np.count_nonzero(data.X.indices >= model.n_features_in_)), data.X.nnz

    def calibration(self, model: MaxentClassifier, data: Data) -> Calibration | None:
        if not hasattr(model, "predict_proba"):
            return None
        return calibration([data.y.tolist()], [model.predict_proba(_known_columns(model, data.X))], model.classes_)

    def main_score(self, evaluation: Evaluation) -> tuple[str, float]:
        return "accuracy", evaluation.scores["accuracy"]

    def baseline(self, train: Data, data: Data, score: str) -> tuple[str, float]:
        common = Counter(train.y.tolist()).most_common(1)[0][0]
        return "the most frequent label", float(np.mean(data.y == common))

    def strongest(self, model: MaxentClassifier, n: int, data: Data | None = None) -> Strongest:
        names = [str(label) for label in model.classes_.tolist()]
        headings = names if len(model.coef_) > 1 else [f"{names[1]} (against {names[0]})"]
        found, name = {}, self._namer(model, "column ")
        for label, weights in zip(headings, model.coef_, strict=True):
            there = np.flatnonzero(weights)
            best = there[np.argsort(-np.abs(weights[there]), kind="stable")[:n]]
            found[label] = [(name(k), float(weights[k])) for k in best.tolist()]
        return found

    def _namer(self, model: MaxentClassifier, what: str) -> Callable[[int], str]:
        """Return a function that names a column: by its name, or else by its number in the file after `what`."""
        names, first = model.attributes_, 0 if self.recall(model).get("zero_based") else 1
        return (lambda k: f"{what}{k + first}") if names is None else names.__getitem__

    def weights(self, model: MaxentClassifier) -> Iterable[tuple[str, ...]]:
        labels = model.classes_.tolist() if len(model.coef_) > 1 else model.classes_.tolist()[1:]
        kind, name = "column" if model.attributes_ is None else "attribute", self._namer(model, "")
        for label, row, intercept in zip(labels, model.coef_, model.intercept_.tolist(), strict=True):
            for k in np.flatnonzero(row).tolist():
                yield kind, name(k), str(label), repr(float(row[k]))
            if model.fit_intercept:
                yield "intercept", "", str(label), repr(intercept)

    def size(self, model: MaxentClassifier) -> int:
        return int(model.coef_.size + (model.intercept_.size if model.fit_intercept else 0))

    def n_nonzero(self, model: MaxentClassifier) -> int:
        return int(np.count_nonzero(model.coef_) + np.count_nonzero(model.intercept_))

    def predict(self, model: MaxentClassifier, data: Data, request: Request) -> Iterable[str]:
        X = _known_columns(model, data.X)
        what = check_request(model, request, "predict_proba")
        labels = model.classes_.tolist()
        if not (request.marginals or request.k_best):
            for label in model.predict(X).tolist():
                yield json_line({"label": label}) if request.as_json else f"{label}\n"
            return
        from partwise.models.classes.model import MOST_SCORES

        some = max(1, MOST_SCORES // len(labels))
        for row in chain.from_iterable(_score_rows(model, X[k : k + some]) for k in range(0, data.n_examples, some)):
            best = np.argsort(-row, kind="stable")[: request.k_best]
            if request.k_best and request.as_json:
                yield json_line({"best": [{"label": labels[k], what: float(row[k])} for k in best]})
            elif request.k_best:
                yield "\t".join(f"{labels[k]}/{row[k]:.6f}" for k in best) + "\n"
            elif request.as_json:
                values = {str(label): value for label, value in zip(labels, row.tolist(), strict=True)}
                yield json_line({"label": labels[best[0]], "marginals": values})
            else:
                text = "\t".join(f"{label}/{value:.6f}" for label, value in zip(labels, row, strict=True))
                yield f"{labels[best[0]]}\t{text}\n"


def _out_of_proportion(n_columns: int, n_values: int, n_labels: int) -> UserError:
    return UserError(
        f"the data have {n_columns:,} columns and {n_values:,} values, out of proportion: a model has "
        f"weights for every column, times {n_labels} labels; --max-columns {n_columns} accepts them"
    )


@dataclass
class _Seen:
    """Columns and labels of all blocks, for the check of proportions that `make` does for a whole file."""

    columns: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    labels: set[Hashable] = field(default_factory=set)
    n_columns: int = 0
    n_values: int = 0

    def add(self, X: Any, y: Ints | Floats) -> None:
        self.columns = np.union1d(self.columns, X.indices)
        self.labels.update(np.unique(y).tolist())
        self.n_columns, self.n_values = max(self.n_columns, X.shape[1]), self.n_values + X.nnz

    def check(self, settings: Flags) -> None:
        """Raise UserError for many columns of which few occur."""
        n_labels, most = len(self.labels), settings.get("max_columns")
        small = self.n_columns * max(1, n_labels // 2) <= MAX_FEATURES
        few = self.n_columns <= most if most else small or self.n_columns <= SPREAD * len(self.columns)
        if not few:
            raise _out_of_proportion(self.n_columns, self.n_values, n_labels)


def _score_rows(model: MaxentClassifier, X: Any) -> Floats:
    """Return probabilities of labels, or scores where there are none, one row per example."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    scores = model.decision_function(X)
    return np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores


def _rows(X: Any, y: Ints | Floats) -> Data:
    return Data(X, y, X.shape[0], X.shape[0])


def _items(X: Sequence[Sequence[object]], y: Sequence[Sequence[str]]) -> Data:
    """Return the rows of a file of items; sequences make no difference."""
    rows = list(chain.from_iterable(X))
    return Data(rows, np.array(list(chain.from_iterable(y)), dtype=object), len(rows), len(rows))


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _known_columns(model: MaxentClassifier, X: Any) -> Any:
    """Return rows with as many columns as the model has; items as they are."""
    return X if isinstance(X, list) else _with_columns(X, int(model.n_features_in_))


def _with_columns(X: Any, n: int) -> Any:
    """Return rows with n columns: others are left out, missing ones are empty."""
    from scipy import sparse

    rows = sparse.csr_array(X)
    if rows.shape[1] > n:
        return rows[:, :n]
    return sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], n))
