"""``partwise train dep --predicted-tags K``: a parser learns from tags such as it will see on raw text.

Taggers are trained on K - 1 of K folds of the training data and tag the K-th; gold tags would promise more than any
tagger holds. Taggers that are trained on all of the data tag the development data, and are saved beside the parser for
``partwise predict PARSER.upos.pw PARSER.pw raw.txt``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.tasks import Data
from partwise.conllu import ConlluColumns, jackknife
from partwise.conllu.columns import LEMMA_RULE
from partwise.io import ConlluSentence
from partwise.io.conllu import parse_columns_list

#: What is looked at where --inputs does not say it: what one tagger fills.
INPUTS = "form,upos"
#: Relative gap of the taggers.
TOL = 1e-2


@dataclass(frozen=True)
class PredictedTags:
    """How tags were predicted: the number of folds, the share of right values by column."""

    folds: int
    accuracy: dict[str, float]


def tag_columns(settings: Mapping[str, Any]) -> list[str]:
    """The columns to predict: all inputs of the parser but the words."""
    names = [column.name for column in parse_columns_list(settings.get("inputs") or INPUTS)]
    tags = [name for name in names if name != "form"]
    if not tags:
        raise UserError("--predicted-tags: the parser looks at words alone; name columns of tags in --inputs")
    return tags


def tagger_paths(settings: Mapping[str, Any], output: str) -> list[str]:
    """Where the taggers go, one per column: PARSER.upos.pw beside PARSER.pw."""
    if output == "-":
        raise UserError("--predicted-tags saves taggers beside the parser: say with -o where that goes")
    path = PurePath(output)
    stem = path.stem if path.suffix == ".pw" else path.name
    return [str(path.with_name(f"{stem}.{name}.pw")) for name in tag_columns(settings)]


def with_predicted_tags(
    settings: Mapping[str, Any], training: Data, held: Data | None
) -> tuple[Data, Data | None, list[Any]]:
    """Both data with predicted tags in place of their own, and the taggers that were trained on all training data."""
    folds = int(settings["predicted_tags"])
    if folds > training.n_examples:
        raise UserError(f"--predicted-tags: {training.n_examples} sentences make no {folds} folds")
    X, others, taggers = training.X, None if held is None else held.X, []
    for name in tag_columns(settings):
        columns = ConlluColumns("form", LEMMA_RULE if name == "lemma" else name)

        make = partial(_tagger, name, settings)
        X = jackknife(columns, make, X, folds, settings.get("seed", 0))
        tagger = columns.fit(make(), training.X)
        tagger.input_settings_ = {"task": "tag", **tagger.input_settings_}
        taggers.append(tagger)
        others = None if others is None else columns.annotate(tagger, others)
    found = _changed(training, X, folds, settings)
    return found, None if held is None or others is None else _changed(held, others, folds, settings), taggers


def _tagger(column: str, settings: Mapping[str, Any]) -> Any:
    """A tagger for a column, not yet fitted. Hundreds of labels, as lists of features are, take long in a chain."""
    from partwise.estimators import SequenceTagger

    chosen: dict[str, Any] = (
        {"template": "pos"} if column in ("upos", "xpos") else {"template": "morph", "model": "maxent"}
    )
    return SequenceTagger(tol=TOL, n_jobs=settings.get("threads"), random_state=settings.get("seed", 0), **chosen)


def _changed(data: Data, X: Sequence[ConlluSentence], folds: int, settings: Mapping[str, Any]) -> Data:
    accuracy = {}
    for name in tag_columns(settings):
        pairs = [
            (a, b)
            for one, other in zip(data.X, X, strict=True)
            for a, b in zip(one.column(name), other.column(name), strict=True)
        ]
        accuracy[name] = float(np.mean([a == b for a, b in pairs]))
    return replace(data, X=list(X), chosen=PredictedTags(folds, accuracy))


def tags_note(tags: PredictedTags | None, columns: Sequence[str]) -> str | None:
    """A line of the summary: whether a parser that looks at these columns was trained on gold tags."""
    if tags is not None:
        shares = ", ".join(f"{name} {share:.2%} right" for name, share in tags.accuracy.items())
        return f"predicted by taggers of {tags.folds - 1} of {tags.folds} folds: {shares}"
    names = [name for name in columns if name != "form"]
    if not names:
        return None
    return (
        f"{', '.join(names)} as in the training data (gold tags): expect less on predicted ones; --predicted-tags K "
        "trains on such"
    )
