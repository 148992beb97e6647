"""Docs as input of taggers and parsers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from spacy.tokens import Doc, Span, Token

#: The functions that return a token's text for a column, by CoNLL-U's and spaCy's names of columns.
COLUMNS: dict[str, Callable[[Token], str]] = {
    "form": lambda token: token.text,
    "lemma": lambda token: token.lemma_,
    "upos": lambda token: token.pos_,
    "xpos": lambda token: token.tag_,
    "feats": lambda token: str(token.morph),
    "lower": lambda token: token.lower_,
    "norm": lambda token: token.norm_,
    "shape": lambda token: token.shape_,
    "ent": lambda token: f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O",
}
COLUMNS |= {"text": COLUMNS["form"], "pos": COLUMNS["upos"], "tag": COLUMNS["xpos"], "morph": COLUMNS["feats"]}
#: The columns that a parser reads.
WORD = ("form", "lemma", "upos", "xpos", "feats")
#: The value of a column that a token does not have, as in CoNLL-U.
BLANK = "_"
Sentence = Sequence[Token]


def sentences(docs: Doc | Span | Iterable[Doc | Span]) -> list[list[Token]]:
    """Return the words of each sentence; tokens of spaces alone are left out, and so are sentences without words.

    A Doc without sentence boundaries, or a Span, is one sentence.
    """
    found = []
    for doc in [docs] if isinstance(docs, Doc | Span) else docs:
        parts = doc.sents if isinstance(doc, Doc) and doc.has_annotation("SENT_START") else [doc]
        found += [[token for token in part if not token.is_space] for part in parts]
    return [words for words in found if words]


def token_columns(
    docs: Doc | Span | Iterable[Doc | Span], columns: Sequence[str] = ("form",)
) -> list[list[tuple[str, ...]]]:
    """Return Docs as input of a model: for each sentence its words as tuples of these columns.

    Names of columns are "form", "lemma", "upos", "xpos", "feats" (CoNLL-U's names), "text", "pos", "tag", "morph"
    (spaCy's for the same), "lower", "norm", "shape", "ent", "feats.KEY"; or "_.name", an extension attribute of tokens.
    A value that a token does not have is "_". A parser takes ("form", "lemma", "upos", "xpos", "feats").
    """
    return columns_of(sentences(docs), columns)


def token_labels(docs: Doc | Span | Iterable[Doc | Span], column: str = "tag") -> list[list[str]]:
    """Return labels of the same words for training; "ent" gives IOB labels of entities."""
    return [[words[0] for words in sentence] for sentence in token_columns(docs, (column,))]


def trees(docs: Doc | Span | Iterable[Doc | Span]) -> list[list[tuple[int, str]]]:
    """Return the parses of the same sentences for training a parser: (head, relation) of each word.

    ValueError for a sentence that is no tree of its own words.
    """
    found = []
    for number, words in enumerate(sentences(docs)):
        place = {token.i: k for k, token in enumerate(words, 1)}
        tree = []
        for token in words:
            head = token.head
            while head.is_space and head.head.i != head.i:
                head = head.head
            if head.i != token.i and head.i not in place:
                raise ValueError(f"sentence {number}: the head of {token.text!r} is outside of it")
            tree.append((0, "root") if head.i == token.i else (place[head.i], token.dep_ or BLANK))
        found.append(tree)
    return found


def columns_of(words: Iterable[Sentence], names: Sequence[str]) -> list[list[tuple[str, ...]]]:
    """Return sentences as input of a model: their words as tuples of these columns."""
    readers = [reader_of(name) for name in names]
    return [[tuple(read(token) or BLANK for read in readers) for token in sentence] for sentence in words]


def reader_of(name: str) -> Callable[[Token], str]:
    """Return the function that gives a column's text; ValueError for an unknown name."""
    if name.startswith("_."):
        extension = name[2:]
        if not Token.has_extension(extension):
            raise ValueError(f"column {name!r}: tokens have no extension attribute {extension!r}")
        return lambda token: str(getattr(token._, extension) or "")
    if name.startswith("feats."):
        key = name.removeprefix("feats.")
        return lambda token: ",".join(token.morph.get(key))
    if name not in COLUMNS:
        raise ValueError(f"unknown column {name!r}; there are {', '.join(COLUMNS)}, feats.KEY and _.EXTENSION")
    return COLUMNS[name]
