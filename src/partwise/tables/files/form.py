"""What all models have in common that read tables and answer by columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from partwise.tables.files import arrays
from partwise.tables.files.errors import ScoringError


class Form(ABC):
    """How a fitted model reads tables.

    Parameters
    ----------
    model : a fitted estimator
    columns : names of the columns that it reads, in its order; None: those that fit, where that leaves no choice
    """

    #: What the columns may be, for messages.
    wanted: str
    #: What the columns of answers are called among the k best.
    names: tuple[str, ...]

    def __init__(self, model: Any, columns: Sequence[str] | None) -> None:
        self.model = model
        self.given = None if columns is None else list(columns)

    def choose(self, schema: Any) -> list[str]:
        """The columns of a table that are read; ScoringError if they are missing or of a type that cannot be read."""
        names = self.given
        if names is None:
            names = self._find(schema)
        for name in names:
            count = schema.names.count(name)
            if count != 1:
                there = ", ".join(map(repr, schema.names[:20])) or "no columns"
                raise ScoringError(
                    f"there is no such column; there are {there}" if not count else "two columns of this name", name
                )
        kinds = [schema.field(name).type for name in names]
        if pa.null() not in kinds:  # a column of nulls, or of an empty frame
            self._check(names, kinds)
        return names

    def _only(self, schema: Any, fits: Callable[[pa.DataType], bool], count: int) -> list[str] | None:
        """The columns of fitting types, if there are as many as needed."""
        found = [field.name for field in schema if fits(field.type)]
        return found if len(found) == count else None

    def _find(self, schema: Any) -> list[str]:
        """Columns where none were named."""
        found = self._guess(schema)
        if found is None:
            there = ", ".join(f"{field.name!r} ({field.type})" for field in list(schema)[:20]) or "none"
            raise ScoringError(f"name the columns that the model reads ({self.wanted}); there are {there}")
        return found

    @abstractmethod
    def _guess(self, schema: Any) -> list[str] | None:
        """The columns, where types or names leave no choice."""

    @abstractmethod
    def _check(self, names: list[str], kinds: list[Any]) -> None:
        """ScoringError for columns that cannot be read."""

    @abstractmethod
    def read(self, names: list[str], columns: list[Any]) -> Any:
        """X of `predict`, from arrays without null rows."""

    def fields(self, probabilities: bool, k_best: int | None) -> list[Any]:
        """(suffix of the name, type) of each column of answers. ScoringError for what the model cannot tell."""
        found = self.answer_fields()
        if probabilities:
            found.append(("_probability", self.likely_kind()))
        if k_best is not None:
            kinds = [kind for _, kind in self.answer_fields()]
            value = "probability" if self._gives_probabilities else "score"
            self._ranked = pa.struct(list(zip([*self.names, value], [*kinds, pa.float64()], strict=True)))
            found.append(("_k_best", pa.list_(self._ranked)))
        return found

    def answers(self, X: Any, probabilities: bool, k_best: int | None) -> list[Any]:
        """These columns."""
        found = self.best(X, probabilities)
        if k_best is not None:
            found.append(self._k_best(X, k_best))
        return found

    @property
    def _gives_probabilities(self) -> bool:
        return hasattr(self.model, "predict_marginals")

    def _k_best(self, X: Any, k: int) -> Any:
        ranked = self.model.predict_k_best(X, k, probabilities=self._gives_probabilities)
        columns = self.columns([answer for row in ranked for answer, _ in row])
        values = pa.array([value for row in ranked for _, value in row], type=pa.float64())
        fields = [self._ranked.field(j) for j in range(self._ranked.num_fields)]
        flat = pa.StructArray.from_arrays([*columns, values], fields=fields)
        return arrays.list_array(flat, np.array([len(row) for row in ranked], dtype=np.int64))

    @abstractmethod
    def answer_fields(self) -> list[Any]:
        """(suffix of the name, type) of the columns of `columns`; `names` has their names among the k best."""

    @abstractmethod
    def likely_kind(self) -> Any:
        """The type of the column of probabilities; ScoringError if there are none."""

    @abstractmethod
    def columns(self, answers: Any) -> list[Any]:
        """Answers, as `predict` gives them, as columns."""

    @abstractmethod
    def best(self, X: Any, probabilities: bool) -> list[Any]:
        """The columns of the best answers, and of their probabilities if these are asked for."""

    def _refuse(self, name: str, kind: Any) -> None:
        raise ScoringError(f"is of type {kind}, expected {self.wanted}", name)

    def _needs_probabilities(self, method: str) -> None:
        if not hasattr(self.model, method):
            raise ScoringError(f"the loss {self.model.loss!r} gives no probabilities (log and softmax-margin do)")
