"""``partwise train maxent``: labels for rows of features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar

import click
import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.output import json_line
from partwise.cli.tasks import Data, Evaluation, NoExamples, Request, Rules, Task
from partwise.cli.tasks.labelcounts import check_rare_labels, max_labels_flag
from partwise.cli.tasks.labels import class_weight_flag, class_weight_of, evaluate_labels
from partwise.io import parse_items, parse_svmlight, read_items, read_svmlight
from partwise.io.blocks import after_lines, text_blocks
from partwise.io.svmlight import MAX_FEATURES, SPREAD, in_proportion
from partwise.metrics import calibration


class MaxentTask(Task):
    """DATA is in svmlight's (LIBLINEAR's) format: one row per line, a label and index:value pairs.

    With --format items it is in CRFsuite's: a label and attributes, each with a value after a colon if it is not 1,
    between tabs.
    """

    name: ClassVar[str] = "maxent"
    unit: ClassVar[str] = "rows"
    parameters: ClassVar[tuple[str, ...]] = ("fit_intercept", "penalize_intercept", "min_count")
    partitioned: ClassVar[tuple[str, ...]] = ("fit_intercept", "min_count")
    formats: ClassVar[tuple[str, ...]] = ("svmlight", "items")
    label_costs: ClassVar[bool] = True

    def cost_label(self, text: str) -> Any:
        """Labels of svmlight files are numbers; others are those of items."""
        try:
            value = float(text)
        except ValueError:
            return text
        return int(value) if value.is_integer() else value

    @property
    def estimator(self) -> type[Any]:
        from partwise.estimators import MaxentClassifier

        return MaxentClassifier

    def flags(self) -> list[click.Parameter]:
        return [
            click.Option(["--format"], type=click.Choice(self.formats), default="svmlight", show_default=True),
            click.Option(
                ["--zero-based"],
                is_flag=True,
                help="Indices are counted from 0, as scikit-learn writes them, not from 1.",
            ),
            click.Option(
                ["--max-columns"],
                type=click.IntRange(1),
                metavar="N",
                help="Accept this many columns although few of them occur; each has weights.",
            ),
            max_labels_flag(),
            class_weight_flag("Weight of the rows of a label, as LIBLINEAR's -w; balanced: all labels weigh the same."),
        ]

    def read(self, path: str, settings: Mapping[str, Any], labelled: bool) -> Data:
        if settings.get("format") == "items":
            return _items(*read_items(path), path)
        X, y = read_svmlight(path, zero_based=bool(settings.get("zero_based")), max_features=None)  # `make` looks
        if not X.shape[0]:
            raise NoExamples("there are no rows", path)
        return Data(X, y, X.shape[0], X.shape[0])

    def blocks(self, path: str, settings: Mapping[str, Any], size: int, labelled: bool = False) -> Iterator[Data]:
        if settings.get("format") == "items":
            yield from _item_blocks(path, size)
            return
        first, seen = 0, _Seen()
        for block in text_blocks(path, after_lines, size):
            X, y = parse_svmlight(block.data, path, zero_based=bool(settings.get("zero_based")), line=block.line)
            if X.shape[0]:
                if labelled:
                    seen.add(X, y)
                yield Data(X, y if labelled else None, X.shape[0], X.shape[0], first=first)
                first += X.shape[0]
        if not first:
            raise NoExamples("there are no rows", path)
        if labelled:
            seen.check(settings)

    def rules(self, model: Any, path: str) -> Rules:
        raise UserError("--constraints: a classifier's labels stand alone, there is nothing to constrain")

    def remember(self, settings: Mapping[str, Any], data: Data) -> dict[str, Any]:
        if settings["format"] == "items":
            return {"format": "items"}
        return {"zero_based": 1} if settings["zero_based"] else {}

    def recall(self, model: Any) -> dict[str, Any]:
        return {"format": "items"} if _reads_items(model) else super().recall(model)

    def align(self, data: Data, training: Data) -> Data:
        if isinstance(data.X, list):
            return data
        return replace(data, X=_with_columns(data.X, training.X.shape[1]))

    # training

    def make(self, settings: Mapping[str, Any], data: Data, training: dict[str, Any]) -> Any:
        if isinstance(data.X, list):
            if not any(data.X):
                raise UserError("no row of the data has an attribute")
            check_rare_labels(settings, data)
            weights = class_weight_of(settings["class_weights"], str)
            return self.estimator(class_weight=weights, **training)
        n_labels, n_columns, most = len(np.unique(data.y)), data.X.shape[1], settings.get("max_columns")
        if n_columns > most if most else not in_proportion(data.X, MAX_FEATURES, max(1, n_labels // 2)):
            raise _out_of_proportion(n_columns, data.X.nnz, n_labels)
        check_rare_labels(settings, data)
        return self.estimator(class_weight=class_weight_of(settings["class_weights"], _number, "numbers"), **training)

    # scores

    def evaluate(self, model: Any, data: Data, guess: Any = None) -> Evaluation:
        guess = model.predict(_known_columns(model, data.X)) if guess is None else guess
        found = evaluate_labels(data.y.tolist(), guess.tolist())
        unknown, total = self.unknown(model, data)
        details: dict[str, Any] = {"unknown_rate": unknown / total if total else 0.0}
        unseen = sorted(set(data.y.tolist()) - set(model.classes_.tolist()))
        if unseen:
            details["unseen_labels"] = unseen
        return replace(found, details=details)

    def unknown(self, model: Any, data: Data) -> tuple[int, int]:
        if isinstance(data.X, list):
            counts: tuple[int, int] = model.unknown_counts_
            return counts
        return int(np.count_nonzero(data.X.indices >= model.n_features_in_)), data.X.nnz

    def calibration(self, model: Any, data: Data) -> Any:
        if not hasattr(model, "predict_proba"):
            return None
        return calibration([data.y.tolist()], [model.predict_proba(_known_columns(model, data.X))], model.classes_)

    def main_score(self, evaluation: Evaluation) -> tuple[str, float]:
        return "accuracy", evaluation.scores["accuracy"]

    def baseline(self, train: Data, data: Data, score: str) -> tuple[str, float]:
        common = Counter(train.y.tolist()).most_common(1)[0][0]
        return "the most frequent label", float(np.mean(data.y == common))

    def take(self, data: Data, indices: Sequence[int]) -> Data:
        rows = np.asarray(indices)
        X = [data.X[i] for i in indices] if isinstance(data.X, list) else data.X[rows]
        return Data(X, data.y[rows], len(rows), len(rows))

    def strongest(self, model: Any, n: int, data: Data | None = None) -> dict[str, list[tuple[str, float]]]:
        names = [str(label) for label in model.classes_.tolist()]
        rows = dict(
            zip(names if len(model.coef_) > 1 else [f"{names[1]} (against {names[0]})"], model.coef_, strict=True)
        )
        found, name = {}, self._namer(model, "column ")
        for label, weights in rows.items():
            there = np.flatnonzero(weights)
            best = there[np.argsort(-np.abs(weights[there]), kind="stable")[:n]]
            found[label] = [(name(k), float(weights[k])) for k in best.tolist()]
        return found

    def _namer(self, model: Any, what: str) -> Callable[[int], str]:
        """What a column is called: its name if it has one, else its number in the file after `what`."""
        names, first = model.attributes_, 0 if self.recall(model).get("zero_based") else 1
        return (lambda k: f"{what}{k + first}") if names is None else names.__getitem__

    def weights(self, model: Any) -> Iterable[tuple[str, ...]]:
        labels = model.classes_.tolist() if len(model.coef_) > 1 else model.classes_.tolist()[1:]
        kind, name = "column" if model.attributes_ is None else "attribute", self._namer(model, "")
        for label, row, intercept in zip(labels, model.coef_, model.intercept_.tolist(), strict=True):
            for k in np.flatnonzero(row).tolist():
                yield kind, name(k), str(label), repr(float(row[k]))
            if model.fit_intercept:
                yield "intercept", "", str(label), repr(intercept)

    def size(self, model: Any) -> int:
        return int(model.coef_.size + (model.intercept_.size if model.fit_intercept else 0))

    def n_nonzero(self, model: Any) -> int:
        return int(np.count_nonzero(model.coef_) + np.count_nonzero(model.intercept_))

    # predictions

    def predict(self, model: Any, data: Data, request: Request) -> Iterable[str]:
        X = _known_columns(model, data.X)
        if request.k_best and request.marginals:
            raise UserError("--k-best cannot be combined with --marginals")
        likely = hasattr(model, "predict_proba")
        if request.marginals and not likely:
            raise UserError(f"--marginals: the loss {model.loss!r} gives no probabilities (log and softmax-margin do)")
        labels = model.classes_.tolist()
        if not (request.marginals or request.k_best):
            for label in model.predict(X).tolist():
                yield json_line({"label": label}) if request.as_json else f"{label}\n"
            return
        from partwise.models.classes.model import MOST_SCORES

        what = "probability" if likely else "score"
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


class _Seen:
    """What `make` looks at, over blocks: are there many columns of which few occur?"""

    def __init__(self) -> None:
        self.columns: Any = np.empty(0, dtype=np.int64)
        self.labels: set[Any] = set()
        self.n_columns = self.n_values = 0

    def add(self, X: Any, y: Any) -> None:
        """Look at a block."""
        self.columns = np.union1d(self.columns, X.indices)
        self.labels.update(np.unique(y).tolist())
        self.n_columns, self.n_values = max(self.n_columns, X.shape[1]), self.n_values + X.nnz

    def check(self, settings: Mapping[str, Any]) -> None:
        """UserError if so."""
        n_labels, most = len(self.labels), settings.get("max_columns")
        small = self.n_columns * max(1, n_labels // 2) <= MAX_FEATURES
        few = self.n_columns <= most if most else small or self.n_columns <= SPREAD * len(self.columns)
        if not few:
            raise _out_of_proportion(self.n_columns, self.n_values, n_labels)


def _score_rows(model: Any, X: Any) -> Any:
    """Probabilities of labels, or scores where there are none, one row per example."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    scores = model.decision_function(X)
    return np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores


def _items(X: list[Any], y: list[Any], path: str, first: int = 0) -> Data:
    """Rows of a file of items: its sequences do not matter."""
    rows = list(chain.from_iterable(X))
    if not rows:
        raise NoExamples("there are no rows", path)
    return Data(rows, np.array(list(chain.from_iterable(y)), dtype=object), len(rows), len(rows), first=first)


def _item_blocks(path: str, size: int) -> Iterator[Data]:
    first = 0
    for block in text_blocks(path, after_lines, size):
        X, y = parse_items(block.data, path, line=block.line)
        if X:
            yield _items(X, y, path, first)
            first += sum(map(len, X))
    if not first:
        raise NoExamples("there are no rows", path)


def _reads_items(model: Any) -> bool:
    found: bool = model.takes_items_
    return found


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _known_columns(model: Any, X: Any) -> Any:
    """Rows with as many columns as the model has; items as they are."""
    if isinstance(X, list):
        return X
    return _with_columns(X, int(model.n_features_in_))


def _with_columns(X: Any, n: int) -> Any:
    """Rows with n columns: the others are left out, missing ones are empty."""
    from scipy import sparse

    rows = sparse.csr_array(X)
    if rows.shape[1] > n:
        return rows[:, :n]
    return sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], n))
