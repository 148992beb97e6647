"""Features of arcs for dependency parsing: tables of templates, and sentences in the form that the core reads.

A table has one template per line: the columns of the head, those of the modifier, and the column of words in between::

    form upos | form upos           the two words and their parts of speech
    upos upos+1 | upos-1 upos       parts of speech with those of the head's right and the modifier's left neighbour
    upos | upos | upos              and each part of speech that occurs between them
    form |                          the head alone
    feats.Case | upos feats.Number  single features out of lists such as Case=Nom|Number=Sing; _ for a word without

Every template makes two features of an arc: the values alone, and the values with the arc's direction and distance
(1, 2, 3, 4, 5-6, 7-10, 11 and more words). A template for the modifier alone makes the second only: all heads share the
first.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from partwise._core import ArcIndex, ArcMap, ArcTokens
from partwise.io.conllu import BLANK, KEY, split_feats
from partwise.support.arrays import Ints

Atom = tuple[str, int]

#: Columns of words; `prefix` is the first five letters of the form.
COLUMNS = ("form", "lemma", "upos", "xpos", "feats", "prefix")
PREFIX = 5

#: First-order features after McDonald et al. 2005, with lemmas and morphology.
ARC_TEMPLATES = """
# one word
form |
lemma |
xpos |
upos |
form xpos |
feats |
upos-1 upos upos+1 |
| form
| lemma
| xpos
| upos
| form xpos
| feats
| upos-1 upos upos+1

# both words
form xpos | form xpos
form xpos | form
form | form xpos
form | form
form xpos | xpos
xpos | form xpos
form | upos
upos | form
xpos | xpos
upos | upos

# the same from further off
lemma | lemma
lemma upos | lemma upos
lemma upos | upos
upos | lemma upos
prefix | prefix
prefix xpos | prefix xpos
prefix | upos
upos | prefix
feats | feats
upos feats | upos feats
lemma | upos feats
upos feats | lemma
lemma upos | upos feats
upos feats | lemma upos
form | upos feats
upos feats | form

# their neighbours
form | xpos-1 xpos
form | xpos xpos+1
xpos-1 xpos | form
xpos xpos+1 | form
xpos xpos+1 | xpos-1 xpos
xpos-1 xpos | xpos-1 xpos
xpos xpos+1 | xpos xpos+1
xpos-1 xpos | xpos xpos+1
upos upos+1 | upos-1 upos
upos-1 upos | upos-1 upos
upos upos+1 | upos upos+1
upos-1 upos | upos upos+1
upos upos+1 | upos
upos-1 upos | upos
upos | upos-1 upos
upos | upos upos+1

# the words between them
xpos | xpos | xpos
upos | upos | upos
"""

#: For the name of an arc between two given words.
LABEL_TEMPLATES = """
form |
xpos |
lemma |
feats |
upos-1 upos upos+1 |
| form
| xpos
| lemma
| feats
| upos-1 upos upos+1
| prefix
form | form
lemma | lemma
form | xpos
xpos | form
xpos | xpos
upos | upos
lemma | upos feats
upos feats | lemma
feats | feats
upos feats | upos feats
upos upos+1 | upos-1 upos
upos-1 upos | upos upos+1
upos | upos-1 upos upos+1
upos-1 upos upos+1 | upos
upos | upos | upos
"""

_ATOM = re.compile(rf"([A-Za-z_]+(?:\.{KEY.pattern})?)([+-]\d+)?")
#: The prefix of names of single features.
_FEATURE = "feats."


@dataclass(frozen=True)
class ArcTemplate:
    """One line of a table."""

    head: tuple[Atom, ...]
    modifier: tuple[Atom, ...]
    between: str | None = None

    @classmethod
    def from_line(cls, line: str) -> "ArcTemplate":
        """Read ``head | modifier`` or ``head | modifier | between``."""
        parts = [part.split() for part in line.split("|")]
        if len(parts) not in (2, 3) or not any(parts[:2]):
            raise ValueError(f"template {line.strip()!r}: expected 'head | modifier' or 'head | modifier | between'")
        head, modifier, *rest = parts
        if rest and (len(rest[0]) != 1 or not _is_column(rest[0][0]) or not (head and modifier)):
            raise ValueError(f"template {line.strip()!r}: needs both words and one column in between")
        return cls(_side(head, line), _side(modifier, line), rest[0][0] if rest else None)

    def without(self, constant: frozenset[str]) -> "ArcTemplate | None":
        """Return the template without constant columns; None if a side loses all of its columns."""
        head = tuple(atom for atom in self.head if atom[0] not in constant)
        modifier = tuple(atom for atom in self.modifier if atom[0] not in constant)
        same = bool(head) == bool(self.head) and bool(modifier) == bool(self.modifier)
        return ArcTemplate(head, modifier, self.between) if same and self.between not in constant else None

    def __str__(self) -> str:
        sides = [" ".join(f"{name}{at:+d}" if at else name for name, at in side) for side in (self.head, self.modifier)]
        return " | ".join([*sides, self.between] if self.between else sides).strip()

    @property
    def columns(self) -> set[str]:
        """The names of the columns and single features of the template."""
        return {name for name, _ in (*self.head, *self.modifier)} | ({self.between} if self.between else set())

    def compiled(self, keys: Sequence[str] = ()) -> tuple[list[tuple[int, int]], list[tuple[int, int]], int]:
        """Return the form that the core takes; keys: the single features that are the last columns of words."""
        number = {name: k for k, name in enumerate((*COLUMNS, *(_FEATURE + key for key in keys)))}
        head, modifier = ([(number[name], offset) for name, offset in side] for side in (self.head, self.modifier))
        return head, modifier, -1 if self.between is None else number[self.between]


def _is_column(name: str) -> bool:
    return name in COLUMNS or name.startswith(_FEATURE)


def feature_keys(templates: Iterable[ArcTemplate]) -> tuple[str, ...]:
    """Return the single features of templates, in order of their names."""
    names = {name for template in templates for name in template.columns}
    return tuple(sorted(name.removeprefix(_FEATURE) for name in names if name.startswith(_FEATURE)))


def _side(words: Sequence[str], line: str) -> tuple[Atom, ...]:
    atoms = []
    for word in words:
        match = _ATOM.fullmatch(word)
        if match is None or not _is_column(match[1]):
            known = f"{', '.join(COLUMNS)}, feats.KEY"
            raise ValueError(f"template {line.strip()!r}: {word!r} is none of {known} (with +1, -1, ...)")
        offset = int(match[2] or 0)
        if abs(offset) > 16:
            raise ValueError(f"template {line.strip()!r}: {word!r} is more than 16 words away")
        atoms.append((match[1], offset))
    return tuple(atoms)


def parse_templates(table: str) -> list[ArcTemplate]:
    """Return the templates of a table; blank lines and lines that begin with # are skipped."""
    if not isinstance(table, str):
        raise ValueError(f"a table of templates must be a string, got {table!r}")
    lines = [line for line in table.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise ValueError("the table holds no template")
    return list(dict.fromkeys(map(ArcTemplate.from_line, lines)))


class ArcTable:
    """A table of templates, ready for the core.

    Equal templates are kept once. keys: the single features of the templates; the core takes words with exactly these,
    in this order, behind the other columns (`arc_tokens`).
    """

    def __init__(self, templates: Iterable[ArcTemplate]) -> None:
        self.templates = list(dict.fromkeys(templates))
        if not self.templates:
            raise ValueError("all columns of the words are constant: no template is left")
        self.keys = feature_keys(self.templates)
        self.compiled = [template.compiled(self.keys) for template in self.templates]

    @classmethod
    def fitted(cls, table: str, tokens: ArcTokens, inputs: Sequence[str] = COLUMNS) -> "ArcTable":
        """Return the templates without columns that have one value everywhere (a treebank without lemmas).

        inputs: the columns that templates may use.
        """
        templates = parse_templates(table)
        names = (*COLUMNS, *(_FEATURE + key for key in feature_keys(templates)))
        allowed = {*inputs, *(("prefix",) if "form" in inputs else ())}
        constant = frozenset(
            name for k, name in enumerate(names) if name.partition(".")[0] not in allowed or not tokens.varies(k)
        )
        reduced = [template.without(constant) for template in templates]
        return cls([template for template in reduced if template is not None])

    @classmethod
    def from_text(cls, table: str) -> "ArcTable":
        return cls(parse_templates(table))

    @property
    def text(self) -> str:
        return "\n".join(map(str, self.templates))

    def index(self, tokens: ArcTokens, heads: Ints | None, min_count: int = 1) -> ArcIndex:
        """Return the features seen `min_count` times on arcs from these heads (None: on all arcs)."""
        return ArcIndex.seen(self.compiled, tokens, heads, min_count)

    def map(self, tokens: ArcTokens, index: ArcIndex, memory_limit: float = 0.0, n_jobs: int = 1) -> ArcMap:
        return ArcMap(self.compiled, tokens, index, memory_limit, n_jobs)

    def attributes(self, tokens: ArcTokens, index: ArcIndex, heads: Ints) -> tuple[Ints, Ints]:
        """Return (row_ptr, attributes) of the arcs from these heads."""
        return index.attributes(self.compiled, tokens, heads)

    @property
    def columns(self) -> list[str]:
        """The columns of words that templates use, in the order of `COLUMNS`."""
        atoms = {name.partition(".")[0] for template in self.templates for name in template.columns}
        return [name for name in COLUMNS if name in atoms]


def arc_tokens(lengths: Ints, columns: Sequence[Sequence[str]], keys: Sequence[str] = ()) -> ArcTokens:
    """Return words for the core from form, lemma, upos, xpos and feats of all words, sentences end to end.

    keys: single features that become columns of their own; ValueError if feats is not a list of features.
    """
    split = {cell: split_feats(cell) for cell in (dict.fromkeys(columns[4]) if keys else ())}
    features = ([split[cell].get(key, BLANK) for cell in columns[4]] for key in keys)
    given = [*columns, [form[:PREFIX] for form in columns[0]], *features]
    return ArcTokens(np.ascontiguousarray(lengths, dtype=np.int64), [_bytes(column) for column in given])


def _bytes(values: Sequence[str]) -> bytes:
    # Zero bytes end values, so a value must not hold one (words from files never do).
    text = "\0".join(values)
    if text.count("\0") != max(len(values) - 1, 0):
        text = "\0".join(value.replace("\0", "\ufffd") for value in values)
    return text.encode("utf-8", "surrogatepass") + b"\0" if values else b""
