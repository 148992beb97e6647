"""spaCy (extra "spacy"): Docs as input of taggers and parsers, and components that put a model into a pipeline.

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("partwise_tagger", config={"model": "tags.pw"})        # token.tag_ or token.pos_
    nlp.add_pipe("partwise_parser", config={"model": "trees.pw"})       # token.head, token.dep_
    nlp.add_pipe("partwise_ner", config={"model": "names.pw"})          # doc.ents

`nlp.to_disk` and `to_bytes` take the model along. `token_columns`, `token_labels` and `trees` make of Docs what `fit`
takes.
"""

from __future__ import annotations

try:
    from spacy.language import Language
except ImportError as error:
    raise ImportError("partwise.integrations.spacy needs spaCy: pip install 'partwise[spacy]'") from error

from partwise.integrations.spacy.components import Columns, Features, PartwiseNER, PartwiseParser, PartwiseTagger
from partwise.integrations.spacy.docs import COLUMNS, sentences, token_columns, token_labels, trees

__all__ = [
    "COLUMNS", "PartwiseNER", "PartwiseParser", "PartwiseTagger", "make_ner", "make_parser", "make_tagger", "sentences",
    "token_columns", "token_labels", "trees",
]  # fmt: skip


@Language.factory(
    "partwise_tagger",
    assigns=["token.tag", "token.pos", "token.lemma", "token.morph"],
    default_config={"model": None, "columns": None, "attribute": "auto", "features": None},
    default_score_weights={"tag_acc": 0.5, "pos_acc": 0.5},
)
def make_tagger(
    nlp: Language, name: str, model: object, columns: Columns, attribute: str, features: Features
) -> PartwiseTagger:
    """Return the component "partwise_tagger".

    Config: `model`, a model file; `columns`, names of the columns that it reads (`token_columns`; by default those that
    it was trained on, if that was CoNLL-U, else the form); `attribute`, "tag" or "pos" (by default what the target of a
    model of CoNLL-U says, else "pos" if all labels are universal parts of speech); `features`, a registered function
    from a sentence's tokens to their attributes, for models without a template.
    """
    return PartwiseTagger(nlp, name, model, columns, attribute, features)


@Language.factory(
    "partwise_ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_config={"model": None, "columns": None, "features": None},
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0},
)
def make_ner(nlp: Language, name: str, model: object, columns: Columns, features: Features) -> PartwiseNER:
    """Return the component "partwise_ner"; config as of "partwise_tagger"."""
    return PartwiseNER(nlp, name, model, columns, features)


@Language.factory(
    "partwise_parser",
    assigns=["token.head", "token.dep", "token.is_sent_start", "doc.sents"],
    default_config={"model": None},
    default_score_weights={"dep_uas": 0.5, "dep_las": 0.5},
)
def make_parser(nlp: Language, name: str, model: object) -> PartwiseParser:
    """Return the component "partwise_parser"."""
    return PartwiseParser(nlp, name, model)
