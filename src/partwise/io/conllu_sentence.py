"""A sentence of a CoNLL-U or CoNLL-X file, kept as it stands in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(10)
#: CoNLL-X names columns 4, 5, 9 and 10 CPOSTAG, POSTAG, PHEAD and PDEPREL.
COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


class ConlluSentence:
    """One sentence of a CoNLL-U or CoNLL-X file.

    Attributes
    ----------
    lines : list of str
        All lines as they stand in the file, with their ends.
    heads : list of int
        Head of each word, 0 for the root; empty where the file has no heads (column `_`).
    path, line : str, int
        The file, and the line where the sentence's words begin.
    """

    __slots__ = ("_rows", "dialect", "heads", "line", "lines", "path")

    def __init__(
        self, lines: list[str], rows: list[int], heads: list[int], path: str, line: int, dialect: str = "conllu"
    ) -> None:
        self.lines = lines
        self._rows = rows
        self.heads = heads
        self.path = path
        self.line = line
        self.dialect = dialect

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self)} words: {' '.join(self.column(FORM))}>"

    def fields(self) -> list[list[str]]:
        """The ten columns of each word (multi-word tokens and empty nodes are not words)."""
        return [body_of(self.lines[row]).removeprefix("\ufeff").split("\t") for row in self._rows]

    def column(self, which: int | str) -> list[str]:
        """One column of all words, by its number (0 to 9) or its name (`COLUMNS`)."""
        at = COLUMNS.index(which) if isinstance(which, str) else which
        return [fields[at] for fields in self.fields()]

    @property
    def forms(self) -> list[str]:
        return self.column(FORM)

    @property
    def deprels(self) -> list[str]:
        return self.column(DEPREL)

    @property
    def comments(self) -> list[str]:
        """Comment lines, without their ends."""
        return [body_of(line).removeprefix("\ufeff") for line in self.lines if line.startswith(("#", "\ufeff#"))]

    def line_of(self, word: int) -> int:
        """The line of a word (1-based) in the file."""
        return self.line + self._rows[word - 1] - self._rows[0]

    def with_tree(self, heads: Sequence[int], deprels: Sequence[str] | None = None) -> ConlluSentence:
        """The sentence with another tree.

        HEAD (and DEPREL, if given) are replaced; columns 9 and 10 of CoNLL-X and column 9 of CoNLL-U belong to the old
        tree and become `_`. All else stays as it is. ValueError unless the heads make a tree.
        """
        numbers = [int(head) for head in heads]
        columns: dict[int, Sequence[str]] = {HEAD: list(map(str, numbers)), DEPS: ["_"] * len(self)}
        if deprels is not None:
            columns[DEPREL] = deprels
        if self.dialect == "conllx":
            columns[MISC] = ["_"] * len(self)
        changed = self.with_columns(columns)
        for word, head in enumerate(numbers, start=1):
            if not 0 <= head <= len(self):
                raise ValueError(f"head {head} of word {word} is out of range: there are {len(self)} words")
        word = find_cycle(numbers)
        if word:
            raise ValueError(f"the heads make a cycle through word {word}")
        changed.heads = numbers
        return changed

    def with_misc(self, values: Sequence[str]) -> ConlluSentence:
        """The sentence with another last column."""
        return self.with_columns({MISC: values})

    def lines_under(self, comment: str, first: bool = True, last: bool = True) -> list[str]:
        """All lines under one more comment, as one of several versions of the sentence.

        What is before the sentence (blank lines, a byte order mark) belongs to the first version; all but the last end
        with a blank line.
        """
        end = "\r\n" if any(line.endswith("\r\n") for line in self.lines) else "\n"
        start = next(k for k, line in enumerate(self.lines) if is_content(line))
        mark = "\ufeff" if self.lines[start].startswith("\ufeff") else ""
        body = [self.lines[start].removeprefix("\ufeff"), *self.lines[start + 1 :]]
        if not last:
            if not body[-1].endswith("\n"):
                body[-1] += end
            if is_content(body[-1]):
                body.append(end)
        top = f"# {comment}{end}"
        return [*self.lines[:start], mark + top, *body] if first else [top, *body]

    def with_columns(self, columns: Mapping[int, Sequence[str]]) -> ConlluSentence:
        """The sentence with other columns, by their numbers; `with_tree` is for heads."""
        for at, values in columns.items():
            if len(values) != len(self):
                raise ValueError(f"{len(values)} values of {COLUMNS[at]} for a sentence of {len(self)} words")
            check_fields(values)
        lines = list(self.lines)
        for k, row in enumerate(self._rows):
            body = body_of(lines[row])
            fields = body.split("\t")
            for at, values in columns.items():
                fields[at] = values[k]
            lines[row] = "\t".join(fields) + lines[row][len(body) :]
        return ConlluSentence(lines, self._rows, self.heads, self.path, self.line, self.dialect)


def check_fields(values: Sequence[str]) -> None:
    """Refuse what would be read as something else once it is written."""
    for value in values:
        if "\t" in value or "\n" in value or value.endswith("\r"):
            raise ValueError(f"{value!r} cannot be a column: it has a tab or a line end")


def body_of(line: str) -> str:
    """A line without its end."""
    return line.rstrip("\r\n")


def is_content(line: str) -> bool:
    """Whether a line has more than white space."""
    return bool(line.strip("\ufeff \t\r\n"))


def is_number(text: str) -> bool:
    """Whether a text is a number that a sentence may have in it."""
    # Python refuses numbers of some thousand digits with an error of its own.
    return text.isascii() and text.isdigit() and len(text) <= 18


def find_cycle(heads: Sequence[int]) -> int:
    """The first word (1-based) that lies on a cycle, or 0 if the heads make a tree. Heads must be in range."""
    state: list[Any] = [0] * (len(heads) + 1)  # the walk that came by; -1: leads to the root
    state[0] = -1
    for start in range(1, len(heads) + 1):
        word = start
        while state[word] == 0:
            state[word] = start
            word = heads[word - 1]
        if state[word] == start:
            least, other = word, heads[word - 1]
            while other != word:
                least, other = min(least, other), heads[other - 1]
            return least
        word = start
        while state[word] == start:
            state[word] = -1
            word = heads[word - 1]
    return 0
