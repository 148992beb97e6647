"""CoNLL-U files with lemmas and features, made from the built-in sentences by rules."""

from __future__ import annotations

from partwise.datasets import make_treebank
from partwise.io import ConlluSentence, parse_conllu
from partwise.io.conllu import FEATS, LEMMA


def lemma_of(form: str, xpos: str) -> str:
    return form[:-2] if xpos == "VBD" and form.endswith("ed") else form if xpos == "NNP" else form.lower()


def feats_of(form: str, upos: str, xpos: str) -> str:
    if upos in ("NOUN", "PROPN"):
        return f"Case={'Acc' if len(form) % 2 else 'Nom'}|Number=Sing"
    return "_" if upos != "VERB" else "Mood=Ind|Tense=Past" if xpos == "VBD" else "VerbForm=Inf"


def rich_sentences(n: int, seed: int, path: str = "bank.conllu") -> list[ConlluSentence]:
    """Return sentences whose lemmas and features follow from forms and tags."""
    found = []
    for sentence in parse_conllu(make_treebank(n, seed).conllu().encode(), path):
        rows = sentence.fields()
        columns = {
            LEMMA: [lemma_of(row[1], row[4]) for row in rows],
            FEATS: [feats_of(row[1], row[3], row[4]) for row in rows],
        }
        found.append(sentence.with_columns(columns))
    return found


def text_of(sentences: list[ConlluSentence]) -> str:
    return "".join("".join(sentence.lines) for sentence in sentences)
