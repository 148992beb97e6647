"""Files of columns: one token per line, a blank line after each sentence."""

from __future__ import annotations

import os

from partwise import io


def read_columns(path: str | os.PathLike[str], *, separator: str | None = None) -> list[list[list[str]]]:
    """Read sentences from a file of columns, gzipped or plain, in UTF-8, as lists (see `partwise.io.read_columns`).

    Parameters
    ----------
    path : the file
    separator : what separates columns, a tab or a space; None: any run of spaces and tabs

    Returns
    -------
    One list per sentence, which holds one list of strings per column: ``words, tags = sentence``.

    Raises
    ------
    FormatError
        If lines have different numbers of columns, with the line's number.
    """
    table = io.read_columns(path, separator)
    columns = [table.column(j) for j in range(table.n_columns)]
    return [list(sentence) for sentence in zip(*columns, strict=True)]
