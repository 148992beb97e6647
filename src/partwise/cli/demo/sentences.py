"""Runs on the sentences of a small grammar: taggers and parsers."""

from __future__ import annotations

from typing import Any

from partwise.cli.demo.runs import Options, Row, compare, telling, timed
from partwise.cli.tasks.labels import evaluate_sequences
from partwise.cli.tasks.tag import TagTask
from partwise.datasets import Treebank


def _tagger(name: str, options: Options, **parameters: Any) -> Row:
    from partwise.estimators import SequenceTagger

    train, test = options.treebank()
    tagger = SequenceTagger(template="pos", **options.common(**parameters))
    model, seconds = timed(lambda: tagger.fit(train.words, train.tags))
    predicted = model.predict(test.words)
    scores = compare(predicted, test.tags)
    seen = evaluate_sequences(test.tags, predicted, chunks=False)
    return Row(
        name,
        "treebank, tags",
        *scores,
        seconds,
        model.result_,
        model,
        examples=_drawn(test, predicted),
        confusion=seen.confusion,
        top=TagTask().strongest(model, 8),
    )


def _drawn(test: Treebank, predicted: list[list[str]]) -> list[Any]:
    from partwise.report import draw_tags

    order = telling(predicted, test.tags)
    return [draw_tags(test.words[i], predicted[i], gold=test.tags[i]) for i in order[:3]]


def tag_crf(options: Options) -> Row:
    """Parts of speech by a conditional random field."""
    return _tagger("CRF tagger", options, loss="log")


def tag_maxent(options: Options) -> Row:
    """Parts of speech, one after another."""
    return _tagger("maxent tagger", options, loss="log", model="maxent")


def find_phrases(options: Options) -> Row:
    """Phrases as segments."""
    from partwise.estimators import SegmentTagger
    from partwise.metrics import chunk_spans
    from partwise.report import draw_spans

    train, test = options.treebank()
    tagger = SegmentTagger(template="pos", **options.common())
    model, seconds = timed(lambda: tagger.fit(train.words, train.chunks))
    predicted = model.predict(test.words)
    order = telling(predicted, test.chunks)[:3]
    spans = model.predict_spans([test.words[i] for i in order])
    examples = [
        draw_spans(test.words[i], own, gold=chunk_spans(test.chunks[i])) for i, own in zip(order, spans, strict=True)
    ]
    scores = compare(predicted, test.chunks)
    return Row("segment tagger", "treebank, chunks", *scores, seconds, model.result_, model, examples)


def parse_dependencies(options: Options) -> Row:
    """Dependency trees."""
    from partwise.estimators import DependencyParser
    from partwise.report import draw_arcs

    train, test = options.treebank()
    words = [
        [list(zip(*rows, strict=True)) for rows in zip(part.words, part.tags, strict=True)] for part in (train, test)
    ]
    trees = [list(zip(*rows, strict=True)) for rows in zip(train.heads, train.labels, strict=True)]
    parser = DependencyParser(**options.common())
    model, seconds = timed(lambda: parser.fit(words[0], trees))
    found = [list(zip(*tree, strict=True)) for tree in model.predict(words[1])]
    heads = [list(tree[0]) for tree in found]
    order = telling(heads, test.heads)
    examples = [
        draw_arcs(test.words[i], heads[i], labels=list(found[i][1]), gold_heads=test.heads[i]) for i in order[:3]
    ]
    scores = compare(heads, test.heads)
    return Row("dependency parser", "treebank, heads", *scores, seconds, model.result_, model, examples)


def parse_constituents(options: Options) -> Row:
    """Constituent trees."""
    from partwise.estimators import ConstituencyParser
    from partwise.metrics import parseval
    from partwise.report import draw_tree

    train, test = options.treebank()
    model, seconds = timed(lambda: ConstituencyParser(**options.common()).fit(train.words, train.trees))
    found = model.predict(test.words)
    scores = parseval(test.trees, found)
    order = telling(found, test.trees)
    short = [i for i in order if len(test.words[i]) <= 10] or order
    examples = [draw_tree(found[i], test.trees[i]) for i in short[:2]]
    rates = scores.f1, scores.exact
    return Row("constituency parser", "treebank, phrases (F1)", *rates, seconds, model.result_, model, examples)
