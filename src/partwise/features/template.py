"""Feature templates: from the columns of a sentence to the attributes of its tokens.

A template is text. Lines of CRF++ are read as CRF++ reads them:

    # a comment
    U00:%x[-2,0]                  an attribute: the cell two tokens to the left, first column
    U01:%x[-1,0]/%x[0,1]          several cells
    B                             weights for pairs of neighbouring labels
    B01:%x[0,0]                   the same, one set for each value of the macros

The attribute is the line with its macros written out ("U00:the"). Past the sentence's ends a cell is _B-1, _B-2, ... to
the left and _B+1, _B+2, ... to the right. Without a B line there are no weights of label pairs.

Our own lines start with "A ". The rest is the attribute ("A w[0]=%x[0,0]" gives "w[0]=the"), and if a macro has no
value, such as past the sentence's ends, the line gives no attribute:

    %x[row,col]  %x[row,col,TEXT]       the cell; TEXT is what it is past the sentence's ends
    %prefix[row,col,n]  %suffix[...]    its first or last n characters, if it has that many
    %lower  %shape  %shortshape         [row,col]: lower case, "XxXxx-d", the same with runs as one
    %hasdigit  %hasupper  %hashyphen  %alldigits  %allupper  %capital
                                        [row,col]: no text; the line counts only if the cell has this property
    %cluster[row,col,n]                 the first n bits of its cluster
    %gazetteer[row,col,NAME]            B or I if it is in a phrase of a list
    %feat[row,col,KEY]                  the value of one feature of a list such as Case=Nom|Number=Sing
    %first  %last                       the line counts only at a sentence's first or last token
    %%                                  a per cent sign

These macros may stand in U and B lines too. Where columns have names (`names`, as those of CoNLL-U have), a name may
stand for the number: %x[0,upos], %feat[-1,feats,Case].

A function of a cell maps a string to another one, or to None for no value; it is called once for each distinct string
of a column, in Python, so that Unicode decides what letters and digits are.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

from partwise._core import CodedColumn, Extractor, Sentences
from partwise.io.conllu import KEY, split_feats
from partwise.io.errors import FormatError
from partwise.io.files import Path, read_text

# keys of features may have brackets of their own: Number[psor]
_MACRO = re.compile(r"%([a-z]+)(?:\[((?<=%feat\[)[^\[\]]*\[[^\[\]]*\]|[^\]]*)\])?")
_ROW = re.compile(r"-?[0-9]{1,4}")
_NUMBER = re.compile(r"[0-9]{1,4}")

Function = Callable[[str], str | None]
#: A value that a template uses: column, macro, argument.
Source = tuple[int, str, Any]
#: A piece of a line: text, a cell ("cell", number of the source, row, its value past the ends), ("first",), ("last",).
Piece = str | tuple[Any, ...]


def shape(word: str) -> str:
    """Return the word with X for capitals, x for other letters and d for digits: "McDonald-2" is "XxXxxxxx-d"."""
    return "".join(
        "X" if c.isupper() or c.istitle() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word
    )


def short_shape(word: str) -> str:
    """Return the shape with runs of one kind as one: "XxXx-d"."""
    return re.sub(r"(X|x|d)\1+", r"\1", shape(word))


def _flag(test: Callable[[str], bool]) -> Function:
    return lambda word: "" if test(word) else None


#: Functions without an argument.
PLAIN: dict[str, Function] = {
    "lower": str.lower,
    "shape": shape,
    "shortshape": short_shape,
    "hasdigit": _flag(lambda word: any(map(str.isdigit, word))),
    "hasupper": _flag(lambda word: any(map(str.isupper, word))),
    "hashyphen": _flag(lambda word: "-" in word),
    "alldigits": _flag(lambda word: word.isdigit()),
    "allupper": _flag(lambda word: word.isupper()),
    "capital": _flag(lambda word: word[:1].isupper()),
}
#: Functions of a length: the first or last n characters, None if there are fewer.
COUNTED: dict[str, Callable[[int], Function]] = {
    "prefix": lambda n: lambda word: word[:n] if len(word) >= n else None,
    "suffix": lambda n: lambda word: word[-n:] if len(word) >= n else None,
}

#: The number of fields of each macro in brackets; "x" may have one more.
_FEWEST = dict.fromkeys(("x", *PLAIN), 2) | dict.fromkeys((*COUNTED, "cluster", "gazetteer", "feat"), 3)

#: Most words of a phrase: longer ones would slow down the search at every word of a sentence.
MOST_WORDS = 100
#: Marks the end of a phrase; it cannot be a word, as words have no spaces.
_END = " "


class Gazetteer:
    """Phrases to be found in sentences, whatever their case: "B" at a match's first token, "I" at the others.

    The longest match from the left counts, and matches do not overlap.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        phrases = list(phrases)
        if wrong := [phrase for phrase in phrases if not isinstance(phrase, str)]:
            raise ValueError(f"a gazetteer must hold phrases, got {wrong[0]!r:.60}")
        self.phrases = tuple(dict.fromkeys(" ".join(phrase.lower().split()) for phrase in phrases))
        self._next: dict[str, Any] = {}
        for phrase in self.phrases:
            words = phrase.split()
            if not words:
                raise ValueError("a gazetteer has an empty phrase")
            if (n := len(words)) > MOST_WORDS:
                raise ValueError(f"a gazetteer has a phrase of {n} words, more than {MOST_WORDS}: {words[0]} ...")
            node = self._next
            for word in words:
                node = node.setdefault(word, {})
            node[_END] = None

    def mark(self, tokens: Sequence[str]) -> list[str | None]:
        """Return B, I or None for each token of a sentence."""
        words = [token.lower() for token in tokens]
        marks: list[str | None] = [None] * len(words)
        t = 0
        while t < len(words):
            length = self._longest_match(words, t)
            marks[t : t + length] = ["B", *["I"] * (length - 1)] if length else []
            t += max(length, 1)
        return marks

    def _longest_match(self, words: list[str], t: int) -> int:
        """Return the number of words of the longest phrase that begins at word t, or 0."""
        node, end, longest = self._next.get(words[t]), t + 1, 0
        while node is not None:
            if _END in node:
                longest = end - t
            node = node.get(words[end]) if end < len(words) else None
            end += 1
        return longest

    def column(self, sentences: Sentences, j: int) -> CodedColumn:
        return CodedColumn.from_list([mark for tokens in sentences.column(j) for mark in self.mark(tokens)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gazetteer) and self.phrases == other.phrases

    def __hash__(self) -> int:
        return hash(self.phrases)


@dataclass(frozen=True)
class Template:
    """A feature template: its lines (`text`), in which columns have numbers.

    clusters: word -> bit string, for ``%cluster``. gazetteers: name -> phrases, for ``%gazetteer``. names: names that
    the lines may use for columns 0, 1, ...; they are not kept.
    """

    #: The syntax of its lines, for model files.
    dialect: ClassVar[str] = "crfpp"
    #: Prefixes of attributes of pairs of labels; and those of them that are of no label alone.
    edge_prefixes: ClassVar[tuple[str, ...]] = ("B",)
    edge_only_prefixes: ClassVar[tuple[str, ...]] = ("B",)

    text: str
    clusters: Mapping[str, str] = field(default_factory=dict, repr=False)
    gazetteers: Mapping[str, Gazetteer] = field(default_factory=dict, repr=False)
    path: str = field(default="<template>", repr=False, compare=False)
    names: Sequence[str] = field(default=(), repr=False, compare=False)

    _lines: list[tuple[bool, list[Piece]]] = field(init=False, repr=False, compare=False)
    _sources: list[Source] = field(init=False, repr=False, compare=False)
    #: Whether a B line asks for weights of label pairs alone.
    transitions: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        read = _Parser(self)
        parsed = {"_lines": read.lines, "_sources": list(read.places), "transitions": read.transitions}
        for name, value in {"text": read.text, "names": (), **parsed}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_text(cls, text: str, **resources: Any) -> "Template":
        """Return a template from its lines."""
        return cls(text, **resources)

    @classmethod
    def from_file(cls, path: Path, **resources: Any) -> "Template":
        """Return a template from a file, such as one made for CRF++; FormatError if the file is invalid."""
        found = cls(read_text(path), path=str(path), **resources)
        if not (found._lines or found.transitions):
            raise FormatError("there are no templates", path)
        if found.uses("cluster") and not found.clusters:
            raise FormatError("%cluster looks at clusters, and none are given", path)
        return found

    @staticmethod
    def preset(name: str, **options: Any) -> "Template":
        """Return the templates "chunk", "pos" and "ner"; see `partwise.features.presets`."""
        from partwise.features.presets import preset

        return preset(name, **options)

    @property
    def n_columns(self) -> int:
        """The number of columns of input that it needs."""
        return 1 + max((column for column, _, _ in self._sources), default=-1)

    @property
    def columns(self) -> list[int]:
        """The columns that it uses, counted from 0."""
        return sorted({column for column, _, _ in self._sources})

    def uses(self, macro: str, argument: Any = None) -> bool:
        """Return whether it has a macro of this name (and argument)."""
        return any(name == macro and argument in (None, what) for _, name, what in self._sources)

    @property
    def edges(self) -> bool:
        """Whether label pairs have weights for attributes, those that start with one of `edge_prefixes`."""
        return any(edge for edge, _ in self._lines)

    def extractor(self, sentences: Sentences) -> Extractor:
        """Return the extractor of these sentences' attributes. ValueError if they have too few columns."""
        if sentences.n_tokens and sentences.n_columns < self.n_columns:
            raise ValueError(
                f"the template looks at column {self.n_columns - 1}, counted from 0, "
                f"but X has {sentences.n_columns} columns"
            )
        if not sentences.n_tokens:
            return Extractor([], [], sentences.lengths)
        return Extractor(self._lines, self._columns(sentences), sentences.lengths)

    def _columns(self, sentences: Sentences) -> list[CodedColumn]:
        looked_at = {j for j, macro, _ in self._sources if macro != "gazetteer"}
        plain = {j: CodedColumn.of(sentences, j) for j in sorted(looked_at)}

        def column(j: int, macro: str, argument: Any) -> CodedColumn:
            if macro == "gazetteer":
                return self.gazetteers[argument].column(sentences, j)
            if macro == "x":
                return plain[j]
            return plain[j].mapped(list(map(self._function(macro, argument), plain[j].names())))

        return [column(*source) for source in self._sources]

    def _function(self, macro: str, argument: Any) -> Function:
        if macro == "cluster":  # all bits, if there are fewer
            return lambda word: path[:argument] if (path := self.clusters.get(word)) is not None else None
        if macro == "feat":  # ValueError for a cell that is not a list of features
            return lambda cell: split_feats(cell).get(argument)
        return PLAIN[macro] if argument is None else COUNTED[macro](argument)

    def attributes(self, X: Sentences | Iterable[Iterable[Any]]) -> list[list[list[str]]]:
        """Return the attributes of every token as text, for reading and for other programs."""
        sentences = X if isinstance(X, Sentences) else Sentences.from_lists(X)
        extractor, tokens = self.extractor(sentences), count()
        return [[extractor.attributes(next(tokens)) for _ in range(n)] for n in sentences.lengths.tolist()]


class _Parser:
    """Reads a template's lines; FormatError with line and column."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.lines: list[tuple[bool, list[Piece]]] = []
        self.places: dict[Source, int] = {}
        self.transitions = False
        self._number = 0
        self._texts = lines = template.text.split("\n")
        self._named: list[tuple[int, int, int, int]] = []  # line, begin and end of a column's name, its number
        openings: list[tuple[int, Piece]] = []  # of A lines
        for self._number, raw in enumerate(lines, 1):
            line = raw.removesuffix("\r")
            if not line or line[0] == "#":
                continue
            kind = line[0]
            if kind in "UB":
                pieces = self._pieces(line, 0, kind)
                if kind == "B" and not self.transitions and all(isinstance(piece, str) for piece in pieces):
                    self.transitions = True
                    continue
            elif line.startswith("A ") and len(line) > 2:
                pieces = self._pieces(line, 2, kind)
                openings.append((self._number, pieces[0]))
            else:
                raise self._error("a line starts with U, B or 'A ', or with # if it is a comment", 0)
            self.lines.append((kind == "B", pieces))
        if any(edge for edge, _ in self.lines):
            for self._number, first in openings:
                if not isinstance(first, str) or first[0] == "B":
                    raise self._error("if there are B lines, only their attributes may start with B", 2)

    def _error(self, message: str, offset: int) -> FormatError:
        return FormatError(message, self.template.path, self._number, offset + 1)

    def _pieces(self, line: str, at: int, kind: str) -> list[Piece]:
        pieces: list[Piece] = []
        text = ""
        while at < len(line):
            if line[at] != "%" or line.startswith("%%", at):
                text += line[at]
                at += 2 if line[at] == "%" else 1
                continue
            match = _MACRO.match(line, at)
            if match is None:
                raise self._error("% is followed by a macro's name, or by another %", at)
            pieces += [text, self._macro(match, kind)]
            text, at = "", match.end()
        return [piece for piece in (*pieces, text) if piece]

    def _macro(self, match: re.Match[str], kind: str) -> tuple[Any, ...]:
        name, inside, at = match[1], match[2], match.start()
        if name in ("first", "last") and inside is None:
            return (name,)
        if name not in _FEWEST:
            raise self._error(f"there is no macro %{name}", at)
        fields = [] if inside is None else inside.split(",", 2)
        if len(fields) != _FEWEST[name] and (name, len(fields)) != ("x", 3):
            wanted = "row,col" + (",..." if _FEWEST[name] == 3 else "")
            raise self._error(f"%{name} is followed by [{wanted}]", at)
        if fields[1] in self.template.names:
            column = list(self.template.names).index(fields[1])
            begin = match.start(2) + len(fields[0]) + 1
            self._named.append((self._number - 1, begin, begin + len(fields[1]), column))
            fields[1] = str(column)
        if not _ROW.fullmatch(fields[0]) or not _NUMBER.fullmatch(fields[1]):
            if self.template.names and not _NUMBER.fullmatch(fields[1]):
                known = ", ".join(self.template.names)
                raise self._error(f"%{name}: there is no column {fields[1]!r}: there are {known}", at)
            raise self._error(f"%{name} takes a row and a column, counted from 0: {fields[0]!r}, {fields[1]!r}", at)
        outside: Any = True if kind in "UB" else None
        argument: Any = fields[2] if len(fields) == 3 else None
        if name == "x":
            outside, argument = outside if argument is None else argument, None
        elif name == "gazetteer":
            if argument not in self.template.gazetteers:
                raise self._error(f"there is no gazetteer {argument!r}", at)
        elif name == "feat":
            if not KEY.fullmatch(argument):
                raise self._error(f"%feat takes the name of a feature: {argument!r}", at)
        elif len(fields) == 3:
            if not _NUMBER.fullmatch(fields[2]) or not int(fields[2]):
                raise self._error(f"%{name} takes a number above 0: {fields[2]!r}", at)
            argument = int(fields[2])
        place = self.places.setdefault((int(fields[1]), name, argument), len(self.places))
        return "cell", place, int(fields[0]), outside

    @property
    def text(self) -> str:
        """The lines with numbers in place of the names of columns."""
        lines = list(self._texts)
        for line, begin, end, column in reversed(self._named):
            lines[line] = f"{lines[line][:begin]}{column}{lines[line][end:]}"
        return "\n".join(lines)
