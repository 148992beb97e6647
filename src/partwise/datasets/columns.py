"""Files of columns: one token a line, a blank line after each sentence."""

from __future__ import annotations

import os

from partwise.datasets.folder import open_bytes


def read_columns(path: str | os.PathLike[str], *, separator: str | None = None) -> list[list[list[str]]]:
    """Read sentences from a file of columns, gzipped or plain, in UTF-8.

    Parameters
    ----------
    path : the file
    separator : what parts columns; None: any run of white space

    Returns
    -------
    One list a sentence, which holds one list of strings a column: ``words, tags = sentence``.

    Raises
    ------
    ValueError
        If lines have different numbers of columns, with the line's number.
    """
    sentences: list[list[list[str]]] = []
    rows: list[list[str]] = []
    width = 0
    with open_bytes(path) as file:
        for number, raw in enumerate(file, 1):
            line = raw.decode("utf-8").rstrip("\r\n")
            if not line.strip():
                if rows:
                    sentences.append([list(column) for column in zip(*rows, strict=True)])
                    rows = []
                continue
            row = line.split(separator)
            width = width or len(row)
            if len(row) != width:
                raise ValueError(f"{path}, line {number}: {len(row)} columns where the lines before have {width}")
            rows.append(row)
    if rows:
        sentences.append([list(column) for column in zip(*rows, strict=True)])
    return sentences
