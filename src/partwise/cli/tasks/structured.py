"""What tasks with structured answers (labels of tokens, trees) share: the flow of predictions, choices for reports."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

from partwise.cli.errors import UserError
from partwise.cli.flags import Parameters
from partwise.cli.output import json_line
from partwise.cli.summary import Fields
from partwise.cli.tasks import Data, Evaluation, Fitted, Request, Task

#: For each example several answers with their values, the best first.
Answers: TypeAlias = Sequence[Sequence[tuple[Any, float]]]


def check_request(model: Fitted, request: Request, probabilities: str = "predict_marginals") -> str:
    """Raise UserError for an impossible request; return what values of the K best are called: probability or score."""
    likely = hasattr(model, probabilities)
    if request.k_best and request.marginals:
        raise UserError("--k-best cannot be combined with --marginals")
    if request.marginals and not likely:
        raise UserError(f"--marginals: the loss {model.loss!r} gives no probabilities (log and softmax-margin do)")
    return "probability" if likely else "score"


class StructuredTask(Task):
    """A task whose estimators predict one structured answer per example."""

    #: Options of the estimator's `predict_marginals`.
    marginal_options: ClassVar[Parameters] = {}

    def take(self, data: Data, indices: Sequence[int]) -> Data:
        X, y = [data.X[i] for i in indices], [data.y[i] for i in indices]
        return replace(data, X=X, y=y, n_examples=len(X), n_tokens=sum(map(len, X)))

    def main_score(self, evaluation: Evaluation) -> tuple[str, float]:
        """Return the first of the scores."""
        return next(iter(evaluation.scores.items()))

    def constraints(self, model: Fitted, data: Data, request: Request) -> Parameters:
        """Return the constraints of predictions, after checks of the data."""
        return {}

    def check_answers(self, model: Fitted, data: Data, best: Sequence[Any]) -> None:
        """Check the best answers, or warn of them, before they are written."""

    @abstractmethod
    def answer_fields(self, data: Data, i: int, answer: Any) -> Fields:
        """Return an answer as fields of JSON output."""

    @abstractmethod
    def marginal_fields(self, model: Fitted, row: Any) -> object:
        """Return the probabilities of one example as a field of JSON output."""

    @abstractmethod
    def answer_lines(self, model: Fitted, data: Data, i: int, answer: Any, row: Any) -> Iterable[str]:
        """Return the lines of an answer, with probabilities from `row` if it is not None."""

    def ranked_lines(self, data: Data, i: int, answer: Any, comment: str, first: bool, last: bool) -> Iterable[str]:
        """Return the lines of one of several answers, under a comment."""
        raise NotImplementedError

    def predict(self, model: Fitted, data: Data, request: Request) -> Iterable[str]:
        what = check_request(model, request)
        options = self.constraints(model, data, request)
        if request.k_best:
            found = model.predict_k_best(data.X, request.k_best, probabilities=what == "probability", **options)
            self.check_answers(model, data, found)
            return self.k_best_lines(model, data, found, what, request.as_json)
        best = model.predict(data.X, **options)
        self.check_answers(model, data, best)
        rows = [None] * len(best)
        if request.marginals:
            rows = model.predict_marginals(data.X, **self.marginal_options, **options)
        return self.best_lines(model, data, best, rows, request)

    def best_lines(
        self, model: Fitted, data: Data, best: Sequence[Any], rows: Sequence[Any], request: Request
    ) -> Iterator[str]:
        for i, (answer, row) in enumerate(zip(best, rows, strict=True)):
            if request.as_json:
                more = {} if row is None else {"marginals": self.marginal_fields(model, row)}
                yield json_line({**self.answer_fields(data, i, answer), **more})
            else:
                yield from self.answer_lines(model, data, i, answer, row)

    def k_best_lines(self, model: Fitted, data: Data, found: Answers, what: str, as_json: bool) -> Iterator[str]:
        """Yield the lines of several answers for each example, the best first."""
        for i, answers in enumerate(found):
            if as_json:
                yield json_line({"best": [{**self.answer_fields(data, i, a), what: value} for a, value in answers]})
                continue
            for rank, (answer, value) in enumerate(answers):
                text = f"rank = {rank}, {what} = {value:.6f}"
                yield from self.ranked_lines(data, i, answer, text, rank == 0, rank == len(answers) - 1)


def choose_examples(wrong: Sequence[int], right: Sequence[int], n: int, even: bool = True) -> list[int]:
    """Return n examples, half of them with a mistake if possible; even: evenly chosen ones instead of the first."""
    few = min(len(wrong), max(n // 2, n - len(right)))
    chosen = [spread(wrong, few), spread(right, n - few)] if even else [wrong[:few], right[: n - few]]
    return sorted(i for part in chosen for i in part)


def spread(items: Sequence[int], n: int) -> Sequence[int]:
    """Return n of these, evenly chosen."""
    return [items[k * len(items) // n] for k in range(n)] if n < len(items) else items


def unseen_labels(labels: Iterable[Any], known: Iterable[Any]) -> Fields:
    """Return the details of an evaluation about labels of the data that the model does not know."""
    unseen = sorted(set(labels).difference(known))
    return {"unseen_labels": unseen} if unseen else {}
