"""A small fitted model of each kind that can be saved, and of each option that changes the file's content."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from helpers.conllu_words import rich_sentences
from helpers.model_cases import (
    PARSERS,
    TAGGERS,
    Fitted,
    as_dicts,
    as_names,
    fitted_classifier,
    fitted_labeler,
    fitted_parser,
    sequences,
)
from helpers.model_cases import fitted_tagger as of_tagger
from partwise import ConstituencyParser, DependencyParser, GraphLabeler, MaxentClassifier, SegmentTagger, SequenceTagger
from partwise.features import Template
from partwise.tables.conllu import ConlluColumns, ConlluPipeline

WORDS = [["a", "b", "c"], ["c", "d"], ["the", "d", "a", "b"]]
CHUNKS = [["B-x", "I-x", "O"], ["O", "B-y"], ["O", "O", "B-x", "B-y"]]


def classifier_of_dicts(**options: Any) -> Fitted:
    arrays, y = sequences(0, 25, ["B", "I", "O"])
    rows, labels = [row for x in as_dicts(arrays) for row in x], [label for each in y for label in each]
    return Fitted(MaxentClassifier(tol=1e-2, **options).fit(rows, labels), rows[:10])


def sparse_classifier(**options: Any) -> Fitted:
    arrays, y = sequences(0, 25, [3, 5, 8])
    X = sparse.csr_array(np.concatenate(arrays))
    model = MaxentClassifier(tol=1e-2, **options).fit(X, np.concatenate(y))
    return Fitted(model, np.concatenate(arrays)[:10])


def tagger_of_words(**options: Any) -> Fitted:
    return Fitted(SequenceTagger(tol=0.1, **options).fit(WORDS * 3, CHUNKS * 3), WORDS)


def template() -> Template:
    return Template.preset("ner", clusters={"a": "01"}, gazetteers={"G": ["a b"]})


def segments(**options: Any) -> Fitted:
    return Fitted(SegmentTagger(tol=0.1, **options).fit(WORDS * 3, CHUNKS * 3), WORDS)


def segments_of_names() -> Fitted:
    arrays, y = sequences(0, 12, ["B-x", "I-x", "O"])
    chunks = [["B-x", *["I-x"] * (len(each) - 1)] if k % 3 else ["O"] * len(each) for k, each in enumerate(y)]
    return Fitted(SegmentTagger(tol=0.1, borders="both").fit(as_names(arrays), chunks), as_names(arrays)[:5])


def constituents(**options: Any) -> Fitted:
    nouns = ("cat", "dog", "man")
    trees = [(("S" if k % 4 else "X"), ("NP", ("D", "the"), ("N", nouns[k % 3])), ("V", "sat")) for k in range(12)]
    words = [["the", noun, "sat"] for noun in (*nouns, "owl")]
    given = [["the", tree[1][2][1], "sat"] for tree in trees]
    return Fitted(ConstituencyParser(tol=0.1, **options).fit(given, trees), words)


def undirected() -> Fitted:
    arrays, y = sequences(0, 25, ["B", "I", "O"])
    graphs = [(x, [(v, v + 1) for v in range(len(x) - 1)], None) for x in arrays]
    return Fitted(GraphLabeler(directed=False, tol=1e-2).fit(graphs, y), graphs[:8])


def pipeline() -> Fitted:
    sentences = rich_sentences(30, 3)
    tagger = SequenceTagger(template="pos", tol=0.1)
    tags = ConlluColumns("form", "upos").fit(tagger, sentences)
    parser = DependencyParser(inputs="form,upos", tol=0.1).fit(sentences)
    return Fitted(ConlluPipeline([("tags", tags), ("parser", parser)]), [list(s.forms) for s in sentences[:5]])


#: Functions that fit the models, by name.
MODELS: dict[str, Callable[[], Fitted]] = {
    "classifier": partial(fitted_classifier, ["a", "b", "c"]),
    "classifier, hinge, cost": partial(fitted_classifier, [0, 1, 2], loss="hinge", cost=1.0 - np.eye(3)),
    "classifier, dicts": classifier_of_dicts,
    "classifier, dicts, l1": partial(classifier_of_dicts, penalty="l1", C=0.1),
    "classifier, sparse, free intercept": partial(sparse_classifier, penalize_intercept=False),
    "classifier, two labels, warm start": partial(fitted_classifier, [True, False], warm_start=True),
    **{name: partial(of_tagger, name) for name in TAGGERS},
    "tagger, labels are numbers": partial(of_tagger, "names", [1, 2, 3]),
    "template": lambda: tagger_of_words(template=template()),
    "template, second order": lambda: tagger_of_words(template=template(), order=2),
    "template, l1, legal, warm start": lambda: tagger_of_words(
        template=template(), legal=True, penalty="elasticnet", C=10.0, warm_start=True
    ),
    "template, maxent": lambda: tagger_of_words(template=template(), model="maxent"),
    "segments, template": lambda: segments(template="pos", borders="none", max_length=3),
    "segments, names": segments_of_names,
    "segments, template, lists": lambda: segments(template=template(), lists={"L": ["a b", "d"]}, loss="hinge"),
    **{name: partial(fitted_parser, name) for name in PARSERS},
    "graphs": fitted_labeler,
    "graphs, undirected": undirected,
    "constituents": constituents,
    "constituents, markovized": partial(constituents, horizontal=0, vertical=2, loss="hinge"),
    "pipeline": pipeline,
}
