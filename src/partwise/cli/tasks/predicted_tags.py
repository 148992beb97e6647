"""``partwise train dep --predicted-tags K``: train a parser on tags such as it will see on raw text.

Taggers are trained on K - 1 of K folds of the training data and tag the K-th; a parser that learns from gold tags would
expect better tags than any tagger gives. Taggers that are trained on all of the data tag the development data, and are
saved beside the parser for ``partwise predict PARSER.upos.pw PARSER.pw raw.txt``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.flags import Flags, Parameters
from partwise.cli.tasks import Data
from partwise.io.conllu import ConlluSentence, parse_columns_list
from partwise.tables.conllu import LEMMA_RULE, ConlluColumns, jackknife

if TYPE_CHECKING:
    from partwise.estimators import SequenceTagger

#: The columns that a parser reads if --inputs does not name any: those that one tagger fills.
INPUTS = "form,upos"
#: Relative gap of the taggers.
TOL = 1e-2


@dataclass(frozen=True)
class PredictedTags:
    """How tags were predicted: the number of folds, and the share of right values by column."""

    folds: int
    accuracy: dict[str, float]


@dataclass
class ParserData(Data):
    """Sentences for parsers; `tags`: how their tags were predicted, None for tags of the file."""

    X: list[ConlluSentence]
    y: list[list[tuple[int, str]]]
    source: str
    tags: PredictedTags | None = None


def tag_columns(settings: Flags) -> list[str]:
    """Return the columns to predict: all inputs of the parser but the words."""
    names = [column.name for column in parse_columns_list(settings.get("inputs") or INPUTS)]
    tags = [name for name in names if name != "form"]
    if not tags:
        raise UserError("--predicted-tags: the parser looks at words alone; name columns of tags in --inputs")
    return tags


def tagger_paths(settings: Flags, output: str) -> list[str]:
    """Return the files of the taggers, one per column: PARSER.upos.pw beside PARSER.pw."""
    if output == "-":
        raise UserError("--predicted-tags saves taggers beside the parser: say with -o where that goes")
    path = PurePath(output)
    stem = path.stem if path.suffix == ".pw" else path.name
    return [str(path.with_name(f"{stem}.{name}.pw")) for name in tag_columns(settings)]


def with_predicted_tags(
    settings: Flags, training: ParserData, held: ParserData | None
) -> tuple[ParserData, ParserData | None, list[SequenceTagger]]:
    """Return both data with predicted tags in place of their own, and the taggers trained on all training data."""
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


def _tagger(column: str, settings: Flags) -> SequenceTagger:
    """Return a tagger for a column, not yet fitted; chains would be slow for hundreds of labels, such as FEATS has."""
    from partwise.estimators import SequenceTagger

    pos: Parameters = {"template": "pos"}
    chosen: Parameters = pos if column in ("upos", "xpos") else {"template": "morph", "model": "maxent"}
    return SequenceTagger(tol=TOL, n_jobs=settings.get("threads"), random_state=settings.get("seed", 0), **chosen)


def _changed(data: ParserData, X: Sequence[ConlluSentence], folds: int, settings: Flags) -> ParserData:
    accuracy = {}
    for name in tag_columns(settings):
        pairs = [
            (a, b)
            for one, other in zip(data.X, X, strict=True)
            for a, b in zip(one.column(name), other.column(name), strict=True)
        ]
        accuracy[name] = float(np.mean([a == b for a, b in pairs]))
    return replace(data, X=list(X), tags=PredictedTags(folds, accuracy))


def tags_note(tags: PredictedTags | None, columns: Sequence[str]) -> str | None:
    """Return a line of the summary: whether a parser that reads these columns was trained on gold tags."""
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
