"""A run on the trees of a small grammar: constituents."""

from __future__ import annotations

from partwise.cli.demo.runs import Options, Row, telling, timed


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
    result = model.result_
    return Row(
        "constituency parser", "treebank, phrases (F1)", scores.f1, scores.exact, seconds, result, model, examples
    )
