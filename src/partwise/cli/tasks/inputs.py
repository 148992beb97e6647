"""Input files some sentences at a time, plain text among them: one sentence per line, tokens between white space.

A file is taken for plain text, and standard error says so, only if it would be invalid in the format of the training
data: CoNLL-U has tabs in every line of a token, columns are as many in every line, trees begin with a bracket.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import click

from partwise.cli.errors import UserError
from partwise.cli.flags import Flags
from partwise.cli.tasks import NoExamples
from partwise.io.blocks import Block, Cut, after_lines, after_trees, before_sentences, text_blocks
from partwise.io.conllu import COLUMNS, DEPS, ConlluSentence, make_sentence, parse_conllu
from partwise.io.errors import FormatError
from partwise.io.trees import BRACKETS, Tree, parse_trees

#: So many lines that are equally wide, with blank lines between some of them, are not taken for sentences.
MANY = 5


@dataclass
class TextGuess:
    """Whether an input is text, which its first whole lines tell, and where it may be cut.

    format, cut_of_format : the training data's format ("columns", "conllu", "trees"), and where such a file may be cut
    width : the largest number of columns that lines of words and labels have
    text : whether the input is text; None: not known yet
    """

    format: str
    width: int
    cut_of_format: Cut
    text: bool | None
    path: str

    def cut(self, held: bytearray, first: int) -> int:
        """Return where to cut: behind any line of text."""
        if self.text is None:
            self.look(bytes(held[: held.rfind(b"\n") + 1]))
        return (after_lines if self.text else self.cut_of_format)(held, first)

    def look(self, data: bytes) -> bool:
        """Return whether these lines look like text; raise FormatError for columns where CoNLL-U is expected."""
        if self.text is None:
            every = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
            lines = [line for line in every if line.strip()]
            self.text = getattr(self, f"_of_{self.format}")(lines)
            if self.text and self.format == "conllu" and (n := _number_of_columns(every)):
                message = f"is neither CoNLL-U nor plain text: every line has {n} columns"
                raise FormatError(f"{message} (--format text says otherwise)", self.path)
        return bool(self.text)

    def _of_trees(self, lines: Sequence[bytes]) -> bool | None:
        return not lines[0].lstrip().startswith(b"(") if lines else None

    def _of_conllu(self, lines: Sequence[bytes]) -> bool | None:
        words = [line for line in lines if not line.startswith(b"#")]
        if not words:
            return None
        # A first word with spaces instead of tabs is a mistake, which the reader reports.
        return not (any(b"\t" in line for line in words) or _is_first_word(words[0].split()))

    def _of_columns(self, lines: Sequence[bytes]) -> bool | None:
        if any(b"\t" in line for line in lines):
            return False
        counts = {len(line.split()) for line in lines}
        if max(counts, default=0) <= self.width:  # in a file of columns, lines that lack a column are a mistake
            return None
        # A single line of several words is not a sentence of one token and its labels.
        return True if len(counts) > 1 or len(lines) == 1 else None


def _number_of_columns(lines: Sequence[bytes]) -> int:
    """Return how many columns many equally wide lines with blank lines between them have; 0 for other lines."""
    widths = [len(line.split()) for line in lines]
    counts = set(widths) - {0}
    if len(counts) != 1 or counts == {1} or len(widths) - widths.count(0) < MANY:
        return 0
    (count,) = counts
    together = any(one == other == count for one, other in pairwise(widths))
    apart = 0 in widths[widths.index(count) : -1]  # the last one is what follows the end of the last line
    return count if together and apart else 0


def _is_first_word(fields: Sequence[bytes]) -> bool:
    """Return whether this may be the line of a CoNLL-U sentence's first word, or of a token of several words."""
    number = fields[0].partition(b"-")[0].partition(b".")[0]
    return len(fields) >= len(COLUMNS) and number in (b"0", b"1")


def blocks_or_text(path: str, guess: TextGuess, size: int, settings: Flags) -> Iterator[tuple[Block, bool]]:
    """Yield the blocks of a file, each with whether it is text: settings["text"] says so (None: look at the lines).

    settings["why_not_text"] is why text cannot be used (then it is a UserError), or None.
    """
    told = settings.get("text", False) is not None
    for block in text_blocks(path, guess.cut, size):
        is_text = guess.look(block.data)
        if is_text and settings.get("why_not_text") is not None:
            raise UserError(f"{path}: is plain text: {settings['why_not_text']}")
        if is_text and not told:
            click.echo(f"{path}: read as plain text, one sentence per line", err=True)
            told = True
        yield block, is_text


def _decode(block: Block, path: str) -> str:
    try:
        return block.data.decode("utf-8").removeprefix("\ufeff" if block.line == 1 else "")
    except UnicodeDecodeError as error:
        number = block.line + block.data.count(b"\n", 0, error.start)
        column = error.start - block.data.rfind(b"\n", 0, error.start)
        raise FormatError("not valid UTF-8", path, number, column) from None


def text_sentences(block: Block, path: str) -> list[list[str]]:
    """Return the words of each line that has any; raise FormatError where a line is not UTF-8."""
    return [words for line in _decode(block, path).split("\n") if (words := line.split())]


def sentence_blocks(
    path: str, size: int, settings: Flags, dialect: str | None = None
) -> Iterator[list[ConlluSentence]]:
    """Yield sentences of CoNLL-U or text in lists of about `size` bytes; without `dialect`, detect CoNLL-U or -X."""
    guess = TextGuess("conllu", 2, before_sentences, settings.get("text", False), path)
    known, seen = dialect or "auto", False
    for block, is_text in blocks_or_text(path, guess, size, settings):
        if is_text:
            sentences = list(map(make_sentence, text_sentences(block, path)))
        else:
            sentences = parse_conllu(block.data, path, dialect="conllu" if known == "auto" else known, line=block.line)
        if not sentences:
            continue
        if known == "auto":
            known = "conllx" if looks_like_conllx(sentences[0]) else "conllu"
        for sentence in sentences:
            sentence.dialect = known
        yield sentences
        seen = True
    if not seen:
        raise NoExamples("there are no sentences", path)


def looks_like_conllx(sentence: ConlluSentence) -> bool:
    """Return whether column 9 holds plain numbers, which are projective heads; CoNLL-U has pairs such as 4:nsubj."""
    return all(value.isdigit() for value in sentence.column(DEPS))


def tree_blocks(path: str, text: bool | None, size: int) -> Iterator[list[Tree | list[str]]]:
    """Yield some trees, or lists of words of lines of text, at a time; `text` None: look at the first character."""
    guess = TextGuess("trees", 0, after_trees, text, path)
    for block in text_blocks(path, guess.cut, size):
        if guess.look(block.data):
            yield [[word.translate(BRACKETS) for word in words] for words in text_sentences(block, path)]
        else:
            yield list(parse_trees(_decode(block, path), path, line=block.line))
