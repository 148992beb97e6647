"""CoNLL-U, or plain text in its place, some sentences at a time."""

from __future__ import annotations

from collections.abc import Iterator

import click

from partwise.cli.errors import UserError
from partwise.cli.tasks import NoExamples
from partwise.cli.tasks.tagtext import TextGuess, text_sentences
from partwise.io import ConlluSentence, make_sentence, parse_conllu
from partwise.io.blocks import before_sentences, text_blocks
from partwise.io.conllu import DEPS


def sentence_blocks(
    path: str, size: int, *, dialect: str = "auto", text: bool | None = False, why_not_text: str | None = None
) -> Iterator[list[ConlluSentence]]:
    """The sentences of a file in lists of about `size` bytes each.

    Parameters
    ----------
    dialect : "conllu", "conllx", or "auto": what the first sentence looks like
    text : whether it is plain text, one sentence per line; None: look (see `tagtext`), and say so
    why_not_text : why text will not do (UserError), or None
    """
    guess = TextGuess("conllu", 2, before_sentences, text, path)
    known, seen = dialect, False
    for block in text_blocks(path, guess.cut, size):
        if guess.look(block.data):
            if why_not_text is not None:
                raise UserError(f"{path}: is plain text: {why_not_text}")
            if not seen and text is None:
                click.echo(f"{path}: read as plain text, one sentence per line", err=True)
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
    """Whether column 9 holds plain numbers, which are projective heads; CoNLL-U has pairs such as 4:nsubj there."""
    return all(value.isdigit() for value in sentence.column(DEPS))
