"""``partwise train segment``: labelled segments of sentences (names, phrases)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import click

from partwise.cli.errors import UserError
from partwise.cli.flags import File
from partwise.cli.output import json_line
from partwise.cli.tasks import Data, Request
from partwise.cli.tasks.labelcounts import check_pairs
from partwise.cli.tasks.labels import are_chunks, class_weight_of
from partwise.cli.tasks.tag import TagTask, drawable, spread
from partwise.cli.tasks.tagfeatures import choose_features
from partwise.metrics import chunk_spans


class SegmentTask(TagTask):
    """DATA is as for `train tag`, with labels of chunks: O, B-PER, I-PER, ... (IOB1, IOB2 or IOBES).

    Without --template or --features the features of words are chosen from the data, as for `train tag`. Predictions are
    in IOB2 unless --scheme says otherwise; with --json there are also the segments with their probabilities.
    """

    name: ClassVar[str] = "segment"
    parameters: ClassVar[tuple[str, ...]] = (
        "max_length",
        "borders",
        "min_count",
        "transitions",
        "segment_cost",
        "scheme",
    )
    partitioned: ClassVar[tuple[str, ...]] = tuple(name for name in parameters if name != "scheme")

    @property
    def estimator(self) -> type[Any]:
        from partwise.estimators import SegmentTagger

        return SegmentTagger

    def flags(self) -> list[click.Parameter]:
        return [
            *super().flags(),
            click.Option(
                ["--segment-features"],
                type=click.Choice(["auto", "none", "text", "shape"]),
                default="auto",
                show_default=True,
                help="Features of whole segments: their text and shape, one of these, or none.",
            ),
            click.Option(
                ["--list", "lists"],
                type=File(),
                metavar="FILE",
                multiple=True,
                help="A list of phrases, one per line: whether a segment is in it.",
            ),
        ]

    def make(self, settings: Mapping[str, Any], data: Data, training: dict[str, Any]) -> Any:
        if data.y is not None and not are_chunks(data.y.distinct()):
            wrong = next(label for label in data.y.distinct() if not are_chunks([label, "B-x"]))
            raise UserError(f"label {wrong!r} is not that of a chunk (O, B-TYPE, I-TYPE): use `partwise train tag`")
        check_pairs(settings, data)
        chosen = settings.get("segment_features") or "auto"
        template = choose_features(settings, data).template
        features = {"auto": "auto", "none": ()}.get(chosen, (chosen,))
        lists = list(settings.get("lists") or ()) or None
        if template is None and (lists or features not in ("auto", ())):
            raise UserError("items have no words: --list and --segment-features are for columns")
        states = settings.get("states", "observed")
        return self.estimator(
            template=template,
            features=states,
            segment_features=features,
            lists=_read(lists),
            class_weight=class_weight_of(settings.get("class_weights") or ()),
            **training,
        )

    def unstructured(
        self, settings: Mapping[str, Any], train: Data, data: Data, training: dict[str, Any]
    ) -> tuple[str, float]:
        """Score of the same word features by a classifier of tokens."""
        rest = {name: value for name, value in training.items() if name not in self.parameters}
        rest |= {"min_count": training.get("min_count", 1)}
        return TagTask().unstructured(settings, train, data, rest)

    def _lines(
        self, model: Any, best: list[list[Any]], marginals: list[Any] | None, data: Data, request: Request
    ) -> Iterable[str]:
        if not request.as_json or marginals is not None or request.rules is not None:
            yield from super()._lines(model, best, marginals, data, request)
            return
        words = data.source.first_column()
        for i, (labels, spans) in enumerate(zip(best, model.predict_spans(data.X), strict=True)):
            rows = [
                {"label": s.label, "begin": s.begin, "end": s.end, "text": " ".join(words[i][s.begin : s.end])}
                | ({} if s.probability is None else {"probability": s.probability})
                for s in spans
            ]
            yield json_line({"labels": labels, "spans": rows})

    def strongest(self, model: Any, n: int, data: Data | None = None) -> dict[str, list[tuple[str, float]]]:
        found = model.top_features(n)
        groups = {str(label): [(str(name), weight) for name, weight in rows] for label, rows in found.labels.items()}
        pairs = [(" ".join(map(str, pair)), rows[0][1]) for pair, rows in found.transitions.items()]
        return {**groups, "one type after another": pairs[:n]}

    def weights(self, model: Any) -> Iterable[tuple[str, ...]]:
        for (table, attribute, label), weight in model.state_features_.items():
            if weight:
                yield table, str(attribute), str(label), repr(weight)
        for (length, label), weight in model.length_features_.items():
            if weight:
                yield "length", str(length), str(label), repr(weight)
        for names, weight in model.transition_features_.items():
            yield "transition", *map(str, names), repr(weight)

    def size(self, model: Any) -> int:
        return len(model.state_features_) + len(model.length_features_) + len(model.transition_features_)

    def examples(self, model: Any, data: Data, n: int) -> list[Any]:
        from partwise.report import draw_spans

        some = self.take(data, drawable(data))
        spans = model.predict_spans(some.X)
        gold = [chunk_spans(labels) for labels in some.y]
        # Half of the examples have a mistake, if there are enough; none is without any segment, if that can be.
        wrong = [i for i, own in enumerate(gold) if [(s.label, s.begin, s.end) for s in spans[i]] != own]
        right = [i for i, own in enumerate(gold) if own and i not in set(wrong)]
        few = min(len(wrong), max(n // 2, n - len(right)))
        chosen = sorted([*spread(wrong, few), *spread(right, n - few)])
        words = some.source.first_column()
        return [draw_spans(words[i], spans[i], gold=gold[i]) for i in chosen]


def _read(lists: list[str] | None) -> Any:
    """Lists by name, as a model file can hold them: phrases, and not files."""
    if lists is None:
        return None
    from partwise.features.presets import read_gazetteers

    return {name: list(each.phrases) for name, each in read_gazetteers(lists).items()}
