"""Files of columns: one token per line, a blank line after each sentence.

Only spaces and tabs separate columns and only a line feed, with or without a carriage return before it, ends a line:
other white space (no-break spaces, U+2028, a carriage return elsewhere) belongs to the strings. One byte order mark at
the beginning is dropped; `write_columns` writes one where the first string begins with that character itself.
"""

from collections.abc import Iterable, Sequence

from partwise._core import Sentences
from partwise.io.blocks import from_line
from partwise.io.files import Path, atomic_write, read_bytes


def read_columns(path: Path, separator: str | None = None) -> Sentences:
    """Read sentences from a file of columns, gzipped or plain ("-": standard input).

    separator: a tab or a space, each of which separates two fields that are not empty; None: any run of spaces and
    tabs. Lines of spaces and tabs alone are blank lines in any case. FormatError if lines have different numbers of
    columns, a field is empty, or the text is not UTF-8.
    """
    return parse_columns(read_bytes(path), path, separator)


def parse_columns(
    data: bytes, path: Path = "<input>", separator: str | None = None, *, line: int = 1, n_columns: int = 0
) -> Sentences:
    """Do what `read_columns` does with bytes in memory, which begin at this line of a file (`path` is for messages).

    n_columns: that lines must have; 0: as many as the first line. A byte order mark is dropped in line 1 only.
    """
    with from_line(data, path, line) as text:
        return Sentences.parse(text, separator or "", n_columns)


def write_columns(
    path: Path, sentences: Sentences | Iterable[Iterable[str | Sequence[str]]], separator: str = "\t"
) -> None:
    """Write sentences, or lists that `Sentences.from_lists` takes, as a file of columns separated by a tab or a space.

    path: "-" is standard output, ".gz" is compressed. ValueError if a string cannot be written so that it is read back:
    empty, with a line's end or the separator in it, or with a carriage return at the end of a line; or if a line would
    be blank or a sentence has no tokens.
    """
    if separator not in ("\t", " "):
        raise ValueError("separator must be a tab or a space")
    table = sentences if isinstance(sentences, Sentences) else Sentences.from_lists(sentences)
    columns = [table.column(j) for j in range(table.n_columns)]
    for j, column in enumerate(columns):
        for text in {text for sentence in column for text in sentence}:
            cut = j == len(columns) - 1 and text.endswith("\r")
            if not text or "\n" in text or separator in text or cut:
                raise ValueError(f"column {j}: {text!r} cannot be written with separator {separator!r}")
    parts = []
    for i, rows in enumerate(zip(*columns, strict=True)):
        if not rows[0]:
            raise ValueError(f"sentence {i} has no tokens: a file of columns cannot hold it")
        lines = list(map(separator.join, zip(*rows, strict=True)))
        if not all(line.strip(" \t") for line in lines):
            raise ValueError(f"sentence {i} has a token of white space alone, which would be read as a blank line")
        parts.append("\n".join(lines))
    text = "\n\n".join(parts) + "\n\n" if parts else ""
    with atomic_write(path) as file:
        file.write(("\ufeff" + text if text.startswith("\ufeff") else text).encode("utf-8"))
