"""CoNLL-U and CoNLL-X: dependency trees, ten columns per word, a blank line after each sentence.

A sentence keeps its lines as they stand in the file (comments, multi-word tokens, empty nodes, blank fields, line
ends), so that what is read and written again is the same to the byte. Files are read one sentence at a time;
`.gz` files are read directly.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence

from partwise.io.blocks import Block, before_sentences, text_blocks
from partwise.io.conllu_sentence import (
    HEAD,
    ID,
    ConlluSentence,
    body_of,
    check_fields,
    find_cycle,
    is_content,
    is_number,
)
from partwise.io.errors import FormatError
from partwise.io.files import atomic_write, read_bytes

Path = str | os.PathLike[str]

DIALECTS = ("conllu", "conllx")
#: Errors that a lenient reader remembers.
KEPT_ERRORS = 20
#: Bytes that are read at a time.
_BLOCK = 1 << 20


class ConlluReader:
    """Iterates over the sentences of a file.

    Parameters
    ----------
    path : path or "-"
        A file, gzipped or not, or standard input.
    strict : bool
        Raise `FormatError` at the first sentence that is not well formed; otherwise leave such sentences out.
    dialect : {"conllu", "conllx"}
        In CoNLL-X there are no multi-word tokens and no empty nodes.

    Attributes
    ----------
    skipped : int
        Sentences left out so far.
    errors : list of FormatError
        Why; the first few.
    tail : list of str
        Blank lines of a file that has nothing else.
    """

    def __init__(self, path: Path, *, strict: bool = True, dialect: str = "conllu") -> None:
        if dialect not in DIALECTS:
            raise ValueError(f"dialect must be one of {', '.join(map(repr, DIALECTS))}; got {dialect!r}")
        self.path = os.fspath(path)
        self.strict = strict
        self.dialect = dialect
        self.skipped = 0
        self.errors: list[FormatError] = []
        self.tail: list[str] = []

    def __iter__(self) -> Iterator[ConlluSentence]:
        return self._sentences(whole=False)

    def read(self) -> list[ConlluSentence]:
        """All sentences. FormatError if a gzip file is out of proportion (see `unpack_limit`)."""
        return list(self._sentences(whole=True))

    def _sentences(self, whole: bool) -> Iterator[ConlluSentence]:
        self.skipped, self.errors, self.tail = 0, [], []
        for first, lines, error in self._line_groups(whole):
            if error is None:
                if not any(map(is_content, lines)):
                    self.tail = lines
                    continue
                try:
                    yield _parse(lines, self.path, first, self.dialect)
                    continue
                except FormatError as found:
                    error = found
            if self.strict:
                raise error
            self.skipped += 1
            if len(self.errors) < KEPT_ERRORS:
                self.errors.append(error)

    def _line_groups(self, whole: bool) -> Iterator[tuple[int, list[str], FormatError | None]]:
        # What is kept is read at once, so that a gzip file out of proportion is refused before all else.
        blocks = [Block(read_bytes(self.path))] if whole else text_blocks(self.path, before_sentences, _BLOCK)
        for block in blocks:
            yield from _blocks(io.BytesIO(block.data), self.path, block.line)


class ConlluSentences(list[ConlluSentence]):
    """Sentences read from a file; `skipped` and `errors` as for `ConlluReader`."""

    skipped: int = 0
    errors: Sequence[FormatError] = ()


def read_conllu(path: Path, *, strict: bool = True, dialect: str = "conllu") -> ConlluSentences:
    """All sentences of a CoNLL-U file (`ConlluReader` reads one at a time)."""
    reader = ConlluReader(path, strict=strict, dialect=dialect)
    bank = ConlluSentences(reader.read())
    bank.skipped, bank.errors = reader.skipped, reader.errors
    return bank


def parse_conllu(
    data: bytes, path: Path = "<input>", *, dialect: str = "conllu", line: int = 1
) -> list[ConlluSentence]:
    """The sentences of bytes in memory, read strictly; `path` and the number of their first line are for messages."""
    name = os.fspath(path)
    found = []
    for first, lines, error in _blocks(io.BytesIO(data), name, line):
        if error is not None:
            raise error
        if any(map(is_content, lines)):
            found.append(_parse(lines, name, first, dialect))
    return found


def read_conllx(path: Path, *, strict: bool = True) -> ConlluSentences:
    """All sentences of a CoNLL-X file."""
    return read_conllu(path, strict=strict, dialect="conllx")


def write_conllu(path: Path, sentences: Iterable[ConlluSentence]) -> None:
    """Write sentences (of either dialect) as they are; nothing is left of a file that could not be finished."""
    with atomic_write(path) as file:
        for sentence in sentences:
            file.write("".join(sentence.lines).encode())


write_conllx = write_conllu


def make_sentence(
    words: Sequence[str | Sequence[str]],
    heads: Sequence[int] | None = None,
    deprels: Sequence[str] | None = None,
    comments: Sequence[str] = (),
) -> ConlluSentence:
    """A CoNLL-U sentence from forms, or (form, lemma, upos, xpos, feats) or less; what is missing becomes `_`.

    ValueError if a column has a tab or a line end, a comment a line end, or there are not as many heads as words.
    """
    for name, values in (("heads", heads), ("deprels", deprels)):
        if values is not None and len(values) != len(words):
            raise ValueError(f"{len(values)} {name} for a sentence of {len(words)} words")
    if any("\n" in comment for comment in comments):
        raise ValueError("a comment has a line end")
    lines = [f"# {comment}\n" for comment in comments]
    for k, word in enumerate(words):
        columns = [word] if isinstance(word, str) else list(word)
        check_fields([*columns, *([] if deprels is None else [deprels[k]])])
        given = [*columns, *["_"] * (5 - len(columns))]
        tree = [str(heads[k]) if heads is not None else "_", deprels[k] if deprels is not None else "_"]
        lines.append("\t".join([str(k + 1), *given, *tree, "_", "_"]) + "\n")
    return _parse([*lines, "\n"], "<sentence>", 1, "conllu")


def _blocks(source: Iterable[bytes], path: str, first: int = 1) -> Iterator[tuple[int, list[str], FormatError | None]]:
    """(first line's number, lines, error) of each sentence with the blank lines that follow it.

    Blank lines before the first sentence are that sentence's.
    """
    lines: list[str] = []
    error: FormatError | None = None
    content, ended = False, False
    for number, raw in enumerate(source, first):
        fault = None
        try:
            line = raw.decode()
        except UnicodeDecodeError as bad:
            line = raw.decode(errors="replace")
            fault = FormatError("not UTF-8", path, number, len(raw[: bad.start].decode()) + 1)
        blank = not is_content(line)
        if not blank and ended:
            yield first, lines, error
            first, lines, error, content, ended = number, [], None, False, False
        error = error or fault
        lines.append(line)
        content = content or not blank
        ended = content and blank
    if lines:
        yield first, lines, error


def _parse(lines: list[str], path: str, first: int, dialect: str) -> ConlluSentence:
    """Check one sentence; raises FormatError."""
    rows: list[int] = []
    heads: list[str] = []
    span_end, empty = 0, 0
    for k, line in enumerate(lines):
        if line.startswith(("#", "\ufeff#")) or not is_content(line):
            continue
        number = first + k
        fields = body_of(line.removeprefix("\ufeff")).split("\t")
        if len(fields) != 10:
            hint = " (spaces instead of tabs?)" if len(fields) == 1 and " " in line else ""
            at = _column(fields, 10) if len(fields) > 10 else len("\t".join(fields)) + 1
            raise FormatError(f"{len(fields)} columns where 10 are expected{hint}", path, number, at)
        name = fields[ID]
        n = len(rows)
        if is_number(name):
            if int(name) != n + 1:
                what = "duplicate id" if 0 < int(name) <= n else "id"
                raise FormatError(f"{what} {name} where {n + 1} is expected", path, number, 1)
            rows.append(k)
            heads.append(fields[HEAD])
            empty = 0
        elif dialect == "conllu" and "-" in name:
            begin, end = _pair(name, "-", path, number)
            if begin != n + 1 or end < begin or begin <= span_end:
                raise FormatError(f"multi-word token {name} does not begin at the next word, {n + 1}", path, number, 1)
            span_end = end
        elif dialect == "conllu" and "." in name:
            word, place = _pair(name, ".", path, number)
            if (word, place) != (n, empty + 1):
                raise FormatError(f"empty node {name} where {n}.{empty + 1} is expected", path, number, 1)
            empty = place
        else:
            raise FormatError(f"{name!r} is not an id", path, number, 1)
    if not rows:
        raise FormatError("a sentence without words", path, first)
    if span_end > len(rows):
        raise FormatError(f"a multi-word token ends at word {span_end} of {len(rows)}", path, first + rows[-1], 1)
    numbers = _check_heads(heads, lines, rows, path, first)
    return ConlluSentence(lines, rows, numbers, path, first + rows[0], dialect)


def _pair(name: str, separator: str, path: str, number: int) -> tuple[int, int]:
    a, _, b = name.partition(separator)
    if not (is_number(a) and is_number(b)):
        raise FormatError(f"{name!r} is not an id", path, number, 1)
    return int(a), int(b)


def _column(fields: list[str], k: int) -> int:
    """Where field k begins, counted from 1."""
    return 1 + sum(len(field) + 1 for field in fields[:k])


def _check_heads(heads: list[str], lines: list[str], rows: list[int], path: str, first: int) -> list[int]:
    """Heads as numbers; none at all if the sentence has no tree."""

    def error(word: int, message: str) -> FormatError:
        row = rows[word - 1]
        return FormatError(message, path, first + row, _column(lines[row].removeprefix("\ufeff").split("\t"), HEAD))

    n = len(heads)
    if all(head == "_" for head in heads):
        return []
    found = []
    for word, head in enumerate(heads, start=1):
        if not is_number(head):
            raise error(word, f"head {head!r} of word {word} is not a number")
        if int(head) > n:
            raise error(word, f"head {head} of word {word} is out of range: there are {n} words")
        found.append(int(head))
    word = find_cycle(found)
    if word:
        raise error(word, f"the heads make a cycle through word {word}")
    return found
