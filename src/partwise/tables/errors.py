"""Errors about tables that a model is to read."""

from __future__ import annotations


class TableError(ValueError):
    """A table that a model cannot read.

    Attributes
    ----------
    message : what is wrong
    column : the name of a column, or None
    row : counted from 0 over the whole table, by position; or None
    path : the file, or None
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

    def __reduce__(self) -> tuple[type[TableError], tuple[str, str | None, int | None, str | None]]:
        return type(self), (self.message, self.column, self.row, self.path)

    def placed(self, first: int = 0, path: str | None = None) -> TableError:
        """Return the same error for a table that has `first` rows before these."""
        row = None if self.row is None else self.row + first
        return TableError(self.message, self.column, row, path if self.path is None else self.path)
