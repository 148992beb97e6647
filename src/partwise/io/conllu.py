"""CoNLL-U and CoNLL-X: dependency trees, ten columns per word, a blank line after each sentence.

A sentence keeps its lines as they stand in the file (comments, multi-word tokens, empty nodes, blank fields, line
ends), so that what is read and written again is the same to the byte. Files may be gzipped.

Models name the columns that they read and fill (`Column`): `form`, `lemma`, `upos`, `xpos`, `feats`, `deprel`, `misc`,
in upper or lower case. FEATS and MISC are lists of pairs, and the value of one key of them is a column, too:
`feats.Case`, `misc.SpaceAfter`; `_` where a word does not have the key.
"""

from __future__ import annotations

import difflib
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from partwise.io.blocks import Block, before_sentences, is_content, text_blocks
from partwise.io.errors import FormatError
from partwise.io.files import Path, atomic_write, read_bytes

ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(10)
#: CoNLL-X names columns 4, 5, 9 and 10 CPOSTAG, POSTAG, PHEAD and PDEPREL.
COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
BLANK = "_"
#: Columns that models may read; the others belong to a tree.
READABLE = ("form", "lemma", "upos", "xpos", "feats", "deprel", "misc")
#: The name of a feature, such as Case or Number[psor].
KEY = re.compile(r"[^\s=|.,\[\]+-]+(?:\[[^\s=|.,\[\]]+\])?")

#: The id of a multi-word token (1-2) or of an empty node (3.1).
_PAIR = re.compile("([0-9]{1,18})([-.])([0-9]{1,18})")

DIALECTS = ("conllu", "conllx")
#: The most errors that a lenient reader keeps.
KEPT_ERRORS = 20
#: Bytes that are read at a time.
_BLOCK = 1 << 20


@dataclass(slots=True, eq=False, repr=False)
class ConlluSentence:
    """One sentence of a CoNLL-U or CoNLL-X file.

    lines: all lines as they stand in the file, with their ends. rows: the indices of the words' lines. heads: head of
    each word, 0 for the root; empty where the file has no heads (column `_`). path, line: the file, and the line where
    the sentence's words begin.
    """

    lines: list[str]
    rows: list[int]
    heads: list[int]
    path: str
    line: int
    dialect: str = "conllu"

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<{len(self)} words: {' '.join(self.column(FORM))}>"

    def fields(self) -> list[list[str]]:
        """Return the ten columns of each word (multi-word tokens and empty nodes are not words)."""
        return [body_of(self.lines[row]).removeprefix("\ufeff").split("\t") for row in self.rows]

    def column(self, which: int | str) -> list[str]:
        """Return one column of all words, by its number (0 to 9) or its name (`COLUMNS`)."""
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
        """Return the line of a word (counted from 1) in the file."""
        return self.line + self.rows[word - 1] - self.rows[0]

    def with_tree(self, heads: Sequence[int], deprels: Sequence[str] | None = None) -> ConlluSentence:
        """Return the sentence with other heads (and names of arcs, if given); ValueError unless the heads make a tree.

        Columns 9 and 10 of CoNLL-X and column 9 of CoNLL-U belong to the old tree and become `_`.
        """
        numbers = [int(head) for head in heads]
        columns: dict[int, Sequence[str]] = {HEAD: list(map(str, numbers))}
        columns |= {at: ["_"] * len(self) for at in ((DEPS, MISC) if self.dialect == "conllx" else (DEPS,))}
        if deprels is not None:
            columns[DEPREL] = deprels
        changed = self.with_columns(columns)
        for word, head in enumerate(numbers, start=1):
            if not 0 <= head <= len(self):
                raise ValueError(f"head {head} of word {word} is out of range: there are {len(self)} words")
        if word := find_cycle(numbers):
            raise ValueError(f"the heads make a cycle through word {word}")
        changed.heads = numbers
        return changed

    def with_misc(self, values: Sequence[str]) -> ConlluSentence:
        """Return the sentence with another last column."""
        return self.with_columns({MISC: values})

    def with_entries(self, entries: Iterable[Iterable[str]]) -> ConlluSentence:
        """Return the sentence with more entries of each word in its last column."""
        cells = [[] if was in ("_", "") else [was] for was in self.column(MISC)]
        return self.with_misc(["|".join([*was, *more]) or BLANK for was, more in zip(cells, entries, strict=True)])

    def lines_under(self, comment: str, first: bool = True, last: bool = True) -> list[str]:
        """Return all lines with one more comment above them, as one of several versions of the sentence.

        The first alone begins with the sentence's blank lines and byte order mark. All but the last end with a blank
        line.
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
        """Return the sentence with other columns, by their numbers; `with_tree` is for heads."""
        for at, values in columns.items():
            if len(values) != len(self):
                raise ValueError(f"{len(values)} values of {COLUMNS[at]} for a sentence of {len(self)} words")
            check_fields(values)
        lines = list(self.lines)
        for k, row in enumerate(self.rows):
            body = body_of(lines[row])
            fields = body.split("\t")
            for at, values in columns.items():
                fields[at] = values[k]
            lines[row] = "\t".join(fields) + lines[row][len(body) :]
        return ConlluSentence(lines, self.rows, self.heads, self.path, self.line, self.dialect)


def check_fields(values: Sequence[str]) -> None:
    """Raise ValueError for a value that would be read as something else once it is written."""
    for value in values:
        if "\t" in value or "\n" in value or value.endswith("\r"):
            raise ValueError(f"{value!r} cannot be a column: it has a tab or a line end")


def body_of(line: str) -> str:
    """Return a line without its end."""
    return line.rstrip("\r\n")


def is_number(text: str) -> bool:
    """Return whether a text is a number that a sentence may contain."""
    # Python refuses numbers of some thousand digits with an error of its own.
    return text.isascii() and text.isdigit() and len(text) <= 18


def find_cycle(heads: Sequence[int]) -> int:
    """Return the first word (from 1) that lies on a cycle, or 0 if the heads make a tree. Heads must be in range."""
    state = [0] * (len(heads) + 1)  # the word from which a walk came by; 0: no walk yet; -1: leads to the root
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


class ConlluReader:
    """Iterates over the sentences of a file, gzipped or not ("-": standard input), reading one at a time.

    strict: raise `FormatError` at the first sentence that is not well formed; otherwise leave such sentences out.
    dialect: "conllu" or "conllx", in which there are no multi-word tokens and no empty nodes.

    A reader has `skipped` and `errors`, the number of sentences left out so far and the first 20 errors that say why,
    and `tail`, the blank lines of a file that has nothing else.
    """

    def __init__(self, path: Path, *, strict: bool = True, dialect: str = "conllu") -> None:
        if dialect not in DIALECTS:
            raise ValueError(f"dialect must be one of {', '.join(map(repr, DIALECTS))}; got {dialect!r}")
        self.path, self.strict, self.dialect = os.fspath(path), strict, dialect
        self.skipped = 0
        self.errors: list[FormatError] = []
        self.tail: list[str] = []

    def __iter__(self) -> Iterator[ConlluSentence]:
        return self._sentences(text_blocks(self.path, before_sentences, _BLOCK))

    def read(self) -> list[ConlluSentence]:
        """Return all sentences; raise FormatError if a gzip file is out of proportion (see `unpack_limit`)."""
        # The whole file is read at once, so that a gzip file out of proportion is refused before all else.
        return list(self._sentences([Block(read_bytes(self.path))]))

    def _sentences(self, blocks: Iterable[Block]) -> Iterator[ConlluSentence]:
        self.skipped, self.errors, self.tail = 0, [], []
        for first, lines, error in (group for block in blocks for group in _groups(block, self.path)):
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


class ConlluSentences(list[ConlluSentence]):
    """A list of sentences read from a file, with `skipped` and `errors` as `ConlluReader` has them."""

    skipped: int = 0
    errors: Sequence[FormatError] = ()


def read_conllu(path: Path, *, strict: bool = True, dialect: str = "conllu") -> ConlluSentences:
    """Return all sentences of a CoNLL-U file (`ConlluReader` reads one at a time)."""
    reader = ConlluReader(path, strict=strict, dialect=dialect)
    bank = ConlluSentences(reader.read())
    bank.skipped, bank.errors = reader.skipped, reader.errors
    return bank


def parse_conllu(
    data: bytes, path: Path = "<input>", *, dialect: str = "conllu", line: int = 1
) -> list[ConlluSentence]:
    """Return the sentences of bytes in memory, read strictly; `path` and the first line's number are for messages."""
    return list(ConlluReader(path, dialect=dialect)._sentences([Block(data, line)]))


def read_conllx(path: Path, *, strict: bool = True) -> ConlluSentences:
    """Return all sentences of a CoNLL-X file."""
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
    """Return a CoNLL-U sentence of forms, or of (form, lemma, upos, xpos, feats) or fewer; missing columns become `_`.

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
        tree = ["_" if heads is None else str(heads[k]), "_" if deprels is None else deprels[k]]
        fields = [*columns, *["_"] * (5 - len(columns)), *tree]
        check_fields(fields)
        lines.append("\t".join([str(k + 1), *fields, "_", "_"]) + "\n")
    return _parse([*lines, "\n"], "<sentence>", 1, "conllu")


def _groups(block: Block, path: str) -> Iterator[tuple[int, list[str], FormatError | None]]:
    """Yield (first line's number, lines, error) of each sentence; blank lines belong to the sentence before, if any."""
    first, lines = block.line, list[str]()
    error: FormatError | None = None
    content, ended = False, False
    for number, raw in enumerate(io.BytesIO(block.data), block.line):
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
    """Return a sentence of these lines; raise FormatError if they are invalid."""
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
        elif dialect == "conllx" or not (pair := _PAIR.fullmatch(name)):
            raise FormatError(f"{name!r} is not an id", path, number, 1)
        elif pair[2] == "-":
            begin, end = int(pair[1]), int(pair[3])
            if begin != n + 1 or end < begin or begin <= span_end:
                raise FormatError(f"multi-word token {name} does not begin at the next word, {n + 1}", path, number, 1)
            span_end = end
        else:
            if (int(pair[1]), int(pair[3])) != (n, empty + 1):
                raise FormatError(f"empty node {name} where {n}.{empty + 1} is expected", path, number, 1)
            empty += 1
    if not rows:
        raise FormatError("a sentence without words", path, first)
    if span_end > len(rows):
        raise FormatError(f"a multi-word token ends at word {span_end} of {len(rows)}", path, first + rows[-1], 1)
    numbers = _check_heads(heads, lines, rows, path, first)
    return ConlluSentence(lines, rows, numbers, path, first + rows[0], dialect)


def _column(fields: list[str], k: int) -> int:
    """Return the column in which field k begins, counted from 1."""
    return 1 + sum(len(field) + 1 for field in fields[:k])


def _check_heads(heads: list[str], lines: list[str], rows: list[int], path: str, first: int) -> list[int]:
    """Return heads as numbers; an empty list if the sentence has no tree."""

    def error(word: int, message: str) -> FormatError:
        row = rows[word - 1]
        return FormatError(message, path, first + row, _column(lines[row].removeprefix("\ufeff").split("\t"), HEAD))

    if all(head == "_" for head in heads):
        return []
    for word, head in enumerate(heads, start=1):
        if not is_number(head):
            raise error(word, f"head {head!r} of word {word} is not a number")
        if int(head) > len(heads):
            raise error(word, f"head {head} of word {word} is out of range: there are {len(heads)} words")
    found = list(map(int, heads))
    if word := find_cycle(found):
        raise error(word, f"the heads make a cycle through word {word}")
    return found


@dataclass(frozen=True)
class Column:
    """A column by its number, or the values of one key in FEATS or MISC."""

    number: int
    key: str | None = None

    @classmethod
    def named(cls, text: str) -> Column:
        """Return the column of this name; raise ValueError if there is none that a model can read."""
        if not isinstance(text, str):
            raise ValueError(f"there is no column {text!r} to look at: columns have names")
        text = text.strip()
        name, dot, key = text.partition(".")
        name = name.lower()
        if name not in READABLE:
            close = difflib.get_close_matches(name, READABLE, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(READABLE)}, feats.KEY, misc.KEY"
            raise ValueError(f"there is no column {text!r} to look at: {hint}")
        number = COLUMNS.index(name)
        if dot and number not in (FEATS, MISC):
            raise ValueError(f"column {text!r}: {name} is no list of keys and values, as feats and misc are")
        if dot and not KEY.fullmatch(key):
            raise ValueError(f"column {text!r}: {key!r} is not a key")
        return cls(number, key if dot else None)

    @property
    def base(self) -> str:
        """The name of the whole column, without the key."""
        return COLUMNS[self.number]

    @property
    def name(self) -> str:
        return self.base if self.key is None else f"{self.base}.{self.key}"

    def put(self, sentence: ConlluSentence, values: Sequence[str]) -> ConlluSentence:
        """Return the sentence with these values, one per word; `_` removes a key."""
        if self.key is None:
            return sentence.with_columns({self.number: values})
        if len(values) != len(sentence):
            raise ValueError(f"{len(values)} values of {self.name} for a sentence of {len(sentence)} words")
        own, changed = f"{self.key}=", []
        for cell, value in zip(sentence.column(self.number), values, strict=True):
            entries = [entry for entry in cell.split("|") if cell not in (BLANK, "") and not entry.startswith(own)]
            if value != BLANK:
                entries.append(own + value)
                if self.number == FEATS:
                    entries.sort(key=_feature_order)
            changed.append("|".join(entries) or BLANK)
        return sentence.with_columns({self.number: changed})


def parse_columns_list(text: str | Iterable[str]) -> tuple[Column, ...]:
    """Return the columns of a list such as "form,upos,feats.Case"; ValueError for unknown ones and repetitions."""
    if not isinstance(text, Iterable):
        raise ValueError(f"columns must be names as in 'form,upos', got {text!r}")
    names = text.split(",") if isinstance(text, str) else list(text)
    found = tuple(Column.named(name) for name in names)
    for k, column in enumerate(found):
        if column in found[:k]:
            raise ValueError(f"column {column.name!r} is there twice")
    if not found:
        raise ValueError("there are no columns to look at")
    return found


def column_values(sentences: Iterable[ConlluSentence], columns: Sequence[Column]) -> list[list[tuple[str, ...]]]:
    """Return for each sentence the values of these columns, a tuple per word.

    FormatError, with the word's line, where a key of FEATS is asked for and FEATS is not a list of keys and values.
    """
    known: dict[str, Mapping[str, str]] = {}

    def value(cell: str, column: Column, sentence: ConlluSentence, word: int) -> str:
        if column.key is None:
            return cell
        if column.number == MISC:  # which has no fixed form
            pairs = dict(entry.split("=", 1) for entry in reversed(cell.split("|")) if "=" in entry)
            return pairs.get(column.key, BLANK)
        if cell not in known:
            known[cell] = feats_at(cell, sentence, word)
        return known[cell].get(column.key, BLANK)

    return [
        [
            tuple([value(fields[column.number], column, sentence, word) for column in columns])
            for word, fields in enumerate(sentence.fields(), 1)
        ]
        for sentence in sentences
    ]


def feats_at(cell: str, sentence: ConlluSentence, word: int) -> dict[str, str]:
    """Return the features of a word (counted from 1) of a sentence; raise FormatError with its line."""
    try:
        return split_feats(cell)
    except ValueError as error:
        raise FormatError(str(error), sentence.path, sentence.line_of(word)) from None


def split_feats(text: str) -> dict[str, str]:
    """Return features by name; ValueError unless the text is `_` or a list such as ``Case=Nom|Number=Sing``."""
    if text in (BLANK, ""):
        return {}
    found: dict[str, str] = {}
    for entry in text.split("|"):
        key, equals, value = entry.partition("=")
        if not (key and equals and value):
            raise ValueError(f"FEATS {text!r} is no list of features: {entry!r} is not KEY=VALUE")
        if key in found:
            raise ValueError(f"FEATS {text!r} has {key} twice")
        found[key] = value
    return found


def join_feats(features: Mapping[str, str]) -> str:
    """Return FEATS of features by name, in the format's order; `_` without features."""
    return "|".join(sorted((f"{key}={value}" for key, value in features.items()), key=_feature_order)) or BLANK


def _feature_order(entry: str) -> tuple[str, str]:
    key = entry.partition("=")[0]
    return key.lower(), key


def is_blank(sentences: Iterable[ConlluSentence], column: Column) -> bool:
    """Return whether LEMMA, UPOS or XPOS is blank in every word; in other columns a blank may be a value."""
    if column.number not in (LEMMA, UPOS, XPOS):
        return False
    return all(value == BLANK for sentence in sentences for value in sentence.column(column.number))


def has_value(sentences: Iterable[ConlluSentence], column: Column) -> bool:
    """Return whether any word has a value other than a blank in this column."""
    return any(value != BLANK for each in sentences for (value,) in column_values([each], [column])[0])
