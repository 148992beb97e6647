"""Plain text for taggers that look at words alone: one sentence per line, tokens separated by white space.

A file is taken for text by itself only where it would be none in the format of the training data (CoNLL-U has tabs in
every line of a token, and columns are the same number in every line), and standard error is told.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from itertools import pairwise

from partwise.io import FormatError
from partwise.io.blocks import Block, Cut, after_lines
from partwise.io.conllu import COLUMNS

#: So many lines that are equally wide, with blank lines between some of them, are not taken for sentences.
MANY = 5


class TextGuess:
    """Where an input may be cut, and whether it is text, which its first whole lines tell.

    Parameters
    ----------
    format : the training data's, "columns" or "conllu"
    width : the most columns that lines of words and labels have
    cut : where a file of that format may be cut
    text : True, False, or None to look at the lines
    path : the input's name, for messages
    """

    def __init__(self, format: str, width: int, cut: Cut, text: bool | None, path: str) -> None:
        self.format = format
        self.width = width
        self._cut = cut
        self.text = text
        self.path = path

    def cut(self, held: bytearray, first: int) -> int:
        """Where to cut: behind any line of text."""
        if self.text is None:
            self.look(bytes(held[: held.rfind(b"\n") + 1]))
        return after_lines(held, first) if self.text else self._cut(held, first)

    def look(self, data: bytes) -> bool:
        """Decide, if these lines are enough for that; whether it is text as far as they show.

        FormatError for columns where CoNLL-U is expected: lines of words and labels are no sentences.
        """
        if self.text is None:
            every = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
            lines = [line for line in every if line.strip()]
            self.text = self._of_conllu(lines) if self.format == "conllu" else self._of_columns(lines)
            if self.text and self.format == "conllu" and (n := _number_of_columns(every)):
                message = (
                    f"is neither CoNLL-U nor plain text: every line has {n} columns (--format text says otherwise)"
                )
                raise FormatError(message, self.path)
        return bool(self.text)

    def _of_conllu(self, lines: Sequence[bytes]) -> bool | None:
        words = [line for line in lines if not line.startswith(b"#")]
        if any(b"\t" in line for line in words):
            return False
        if words and _is_first_word(words[0].split()):  # with spaces for tabs, which is an error of its own
            return False
        return True if words else None

    def _of_columns(self, lines: Sequence[bytes]) -> bool | None:
        if any(b"\t" in line for line in lines):
            return False
        counts = {len(line.split()) for line in lines}
        if max(counts, default=0) <= self.width:  # lines that lack a column are a mistake in a file of columns
            return None
        # A single line of several words is not a sentence of one token and its labels.
        return True if len(counts) > 1 or len(lines) == 1 else None


def _number_of_columns(lines: Sequence[bytes]) -> int:
    """How many columns lines have that are many, as wide as each other, and parted by blank lines; 0 for others."""
    widths = [len(line.split()) for line in lines]
    counts = set(widths) - {0}
    if len(counts) != 1 or counts == {1} or len(widths) - widths.count(0) < MANY:
        return 0
    (count,) = counts
    together = any(one == other == count for one, other in pairwise(widths))
    parted = 0 in widths[widths.index(count) : -1]  # the last one is what follows the end of the last line
    return count if together and parted else 0


def _is_first_word(fields: Sequence[bytes]) -> bool:
    """Whether this may be the line of a CoNLL-U sentence's first word, or of a token of several words."""
    number = fields[0].partition(b"-")[0].partition(b".")[0]
    return len(fields) >= len(COLUMNS) and number in (b"0", b"1")


def text_sentences(block: Block, path: str) -> list[list[str]]:
    """The words of each line that has any. FormatError for what is no UTF-8."""
    found = []
    for number, line in enumerate(block.data.split(b"\n"), block.line):
        try:
            words = line.decode("utf-8").removeprefix("\ufeff" if number == 1 else "").split()
        except UnicodeDecodeError as error:
            raise FormatError("not valid UTF-8", path, number, error.start + 1) from None
        if words:
            found.append(words)
    return found
