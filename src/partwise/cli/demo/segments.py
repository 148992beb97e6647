"""A run on the chunks of a small grammar's sentences: labelled segments."""

from __future__ import annotations

from partwise.cli.demo.runs import Options, Row, telling, timed


def tag_segments(options: Options) -> Row:
    """Phrases as segments."""
    from partwise.estimators import SegmentTagger
    from partwise.metrics import chunk_f1
    from partwise.report import draw_tags

    train, test = options.treebank()
    tagger = SegmentTagger(template="pos", **options.common())
    model, seconds = timed(lambda: tagger.fit(train.words, train.chunks))
    found = model.predict(test.words)
    whole = sum(a == b for a, b in zip(found, test.chunks, strict=True)) / len(found)
    examples = [draw_tags(test.words[i], found[i], gold=test.chunks[i]) for i in telling(found, test.chunks)[:3]]
    right = chunk_f1(test.chunks, found)
    return Row("segment tagger", "treebank, chunks (F1)", right, whole, seconds, model.result_, model, examples)
