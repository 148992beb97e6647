"""Input of ``partwise predict`` for trees (bracketed trees, or text), and files of rules about spans."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from partwise.cli.tasks.tagtext import text_sentences
from partwise.io import FormatError, parse_trees, read_text
from partwise.io.blocks import after_lines, after_trees, text_blocks
from partwise.io.conllu import is_number
from partwise.io.trees import BRACKETS


class TreesOrText:
    """Where an input may be cut, and whether it is text: trees begin with a bracket."""

    def __init__(self, text: bool | None) -> None:
        self.text = text

    def cut(self, held: bytearray, first: int) -> int:
        """Where to cut: behind any line of text, behind whole trees."""
        self.look(bytes(held))
        return after_lines(held, first) if self.text else after_trees(held, first)

    def look(self, data: bytes) -> None:
        """Decide by the first character that is not white space, if there is one."""
        begin = data.removeprefix(codecs.BOM_UTF8).lstrip()
        if self.text is None and begin:
            self.text = not begin.startswith(b"(")


def input_blocks(path: str, text: bool | None, size: int) -> Iterator[list[Any]]:
    """Trees, or lists of words of lines of text, some at a time; `text` None: whatever it looks like."""
    guess = TreesOrText(text)
    for block in text_blocks(path, guess.cut, size):
        guess.look(block.data)
        if guess.text:
            yield [[word.translate(BRACKETS) for word in words] for words in text_sentences(block, path)]
            continue
        try:
            lines = block.data.decode("utf-8").removeprefix("\ufeff" if block.line == 1 else "")
        except UnicodeDecodeError as error:
            at = block.line + block.data.count(b"\n", 0, error.start)
            column = error.start - block.data.rfind(b"\n", 0, error.start)
            raise FormatError("not valid UTF-8", path, at, column) from None
        yield list(parse_trees(lines, path, line=block.line))


@dataclass(frozen=True)
class SpanRules:
    """Rules about spans, by sentence: (line in the file of rules, rule, label or None, first word, last word)."""

    path: str
    by_sentence: dict[int, list[tuple[int, str, str | None, int, int]]]

    def check(self, n_examples: int) -> None:
        """FormatError if a rule is for a sentence beyond the end of a file of this many."""
        wrong = [
            (rules[0][0], sentence) for sentence, rules in self.by_sentence.items() if not 1 <= sentence <= n_examples
        ]
        if wrong:
            line, sentence = min(wrong)
            raise FormatError(f"there is no sentence {sentence}: there are {n_examples}", self.path, line)

    def spans(self, lengths: Sequence[int], before: int = 0) -> dict[str, list[Any]]:
        """`required` and `forbidden` as `ConstituencyParser` takes them; `before`: sentences of the file before these.

        FormatError if a rule is for words that do not exist.
        """
        found: dict[str, list[Any]] = {"required": [], "forbidden": []}
        for sentence, n in enumerate(lengths, before + 1):
            own: dict[str, list[Any]] = {"require": [], "forbid": []}
            for line, rule, label, begin, end in self.by_sentence.get(sentence, ()):
                if not 1 <= begin <= end <= n:
                    raise FormatError(
                        f"there are no words {begin} to {end} in sentence {sentence}: it has {n}", self.path, line
                    )
                own[rule].append((begin - 1, end) if label is None else (label, begin - 1, end))
            found["required"].append(own["require"] or None)
            found["forbidden"].append(own["forbid"] or None)
        return found


def read_span_rules(path: str, labels: Sequence[str]) -> SpanRules:
    """Rules about spans, one per line: ``require SENTENCE FIRST LAST [LABEL]`` and ``forbid ...``.

    Sentences and words are counted from 1, the last word belongs to the span, and ``#`` begins a comment where a line
    or a word begins.
    """
    rules: dict[int, list[tuple[int, str, str | None, int, int]]] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        words = line.split()
        # A tag may have the character, too.
        end = next(
            (k for k, word in enumerate(words) if word.startswith("#") and not (k == 4 and word in labels)), None
        )
        rule, *rest = words[:end] or [""]
        if not rule:
            continue
        if rule not in ("require", "forbid"):
            raise FormatError(f"unknown rule {rule!r}: there are require and forbid", path, number)
        if not 3 <= len(rest) <= 4 or not all(map(is_number, rest[:3])):
            raise FormatError(
                f"{rule} takes the numbers of a sentence, of a first and of a last word, and perhaps a label",
                path,
                number,
            )
        label = rest[3] if len(rest) > 3 else None
        if label is not None and label not in labels:
            raise FormatError(f"the model has no label {label!r}", path, number)
        sentence, first, last = map(int, rest[:3])
        rules.setdefault(sentence, []).append((number, rule, label, first, last))
    return SpanRules(path, rules)
