"""Predictions for tables: data frames of tokens, CoNLL-U (`conllu`), and Parquet and Arrow files.

Data frames with a token per row: pandas, polars, pyarrow (through narwhals; extra ``frames``).

    from partwise import tables

    tagger = tables.fit(SequenceTagger(template="chunk"), train, by="sentence", columns=["word", "pos"], label="chunk")
    test = tables.predict(tagger, test, by="sentence", columns=["word", "pos"], probabilities=True)

A `TokenTable` is such a frame as X and y of scikit-learn, for grid searches and all else that takes lists.

Files, and pandas and Dask frames, with an example per row (extra ``arrow``). A file is read, labelled and written some
rows at a time, so that memory does not grow with it.

    tables.predict_file("tagger.pw", "sentences.parquet", "tagged.parquet")
    frame = tables.TablePredictor("tagger.pw").frame(frame)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partwise.support.lazy import exports

if TYPE_CHECKING:
    from partwise.tables import conllu as conllu
    from partwise.tables.files import predict_file as predict_file
    from partwise.tables.frames import fit as fit
    from partwise.tables.frames import partial_fit as partial_fit
    from partwise.tables.frames import predict as predict
    from partwise.tables.predictor import TablePredictor as TablePredictor
    from partwise.tables.token_table import TokenTable as TokenTable
    from partwise.tables.workers import load_cached as load_cached
    from partwise.tables.workers import predict_dask as predict_dask

#: Endings of the names of Parquet and Arrow files.
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")


def is_table(path: str) -> bool:
    """Return whether a file's name is that of a Parquet or Arrow (Feather) file."""
    return path.lower().endswith((*PARQUET, *ARROW))


class TableError(ValueError):
    """A table that a model cannot read: what is wrong (`message`), and the `column`, `row` and `path`, if known.

    Rows are counted from 0 over the whole table, by position.
    """

    def __init__(
        self, message: str, column: str | None = None, row: int | None = None, path: str | None = None
    ) -> None:
        self.message, self.column, self.row, self.path = message, column, row, path
        super().__init__(str(self))

    def __str__(self) -> str:
        places = [] if self.row is None else [f"row {self.row}"]
        places += [] if self.column is None else [f"column {self.column!r}"]
        start = "" if self.path is None else f"{self.path}: "
        return start + (f"{', '.join(places)}: " if places else "") + self.message

    def placed(self, first: int = 0, path: str | None = None) -> TableError:
        """Return the same error for a table that has `first` rows before these."""
        row = None if self.row is None else self.row + first
        return TableError(self.message, self.column, row, path if self.path is None else self.path)


#: Public names that need other packages, by the module that defines them.
_NAMES = {
    "files": ["predict_file"],
    "frames": ["fit", "partial_fit", "predict"],
    "predictor": ["TablePredictor"],
    "token_table": ["TokenTable"],
    "workers": ["load_cached", "predict_dask"],
}
__getattr__, __dir__, _names = exports(__name__, _NAMES, ("conllu",))
__all__ = [*_names, "TableError", "is_table"]
