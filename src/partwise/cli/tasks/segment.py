"""``partwise train segment``: labelled segments of sentences (names, phrases)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import click

from partwise.cli.errors import UserError
from partwise.cli.flags import FILE, Flags, Parameters, flag
from partwise.cli.output import json_line
from partwise.cli.tasks import Data, Request, Strongest, estimator_named
from partwise.cli.tasks.labels import are_chunks, check_pairs, class_weight_of
from partwise.cli.tasks.structured import choose_examples
from partwise.cli.tasks.tag import TagTask, drawable
from partwise.cli.tasks.tag_features import choose_features
from partwise.cli.tasks.tagged_files import TaggedData
from partwise.metrics import chunk_spans

if TYPE_CHECKING:
    from partwise.estimators import SegmentTagger


class SegmentTask(TagTask):
    """DATA is as for `train tag`, with labels of chunks: O, B-PER, I-PER, ... (IOB1, IOB2 or IOBES).

    Without --template or --features the features of words are chosen from the data, as for `train tag`. Predictions are
    in IOB2 unless --scheme says otherwise; with --json there are also the segments with their probabilities.
    """

    name: ClassVar[str] = "segment"
    estimator = estimator_named("SegmentTagger")
    parameters: ClassVar[tuple[str, ...]] = (
        "max_length", "borders", "min_count", "transitions", "segment_cost", "scheme",
    )  # fmt: skip
    partitioned: ClassVar[tuple[str, ...]] = tuple(name for name in parameters if name != "scheme")

    def flags(self) -> list[click.Parameter]:
        return [
            *super().flags(),
            flag(
                "--segment-features",
                "Make features of whole segments: of their text and shape, of one of these, or none.",
                ("auto", "none", "text", "shape"),
                "auto",
            ),
            flag(
                "--list lists",
                "Read a list of phrases, one per line; whether a segment is in the list is a feature.",
                FILE,
                multiple=True,
            ),
        ]

    def make(self, settings: Flags, data: TaggedData, training: Parameters) -> Any:
        if data.y is not None and not are_chunks(data.y.distinct()):
            wrong = next(label for label in data.y.distinct() if not are_chunks([label, "B-x"]))
            raise UserError(f"label {wrong!r} is not that of a chunk (O, B-TYPE, I-TYPE): use `partwise train tag`")
        check_pairs(settings, data)
        chosen = settings.get("segment_features") or "auto"
        template = choose_features(settings, data).template
        features = {"auto": "auto", "none": ()}.get(chosen, (chosen,))
        lists = settings.get("lists")
        if template is None and (lists or features not in ("auto", ())):
            raise UserError("items have no words: --list and --segment-features are for columns")
        return self.estimator(
            template=template,
            features=settings.get("states", "observed"),
            segment_features=features,
            lists=_phrases(lists) if lists else None,
            class_weight=class_weight_of(settings.get("class_weights") or ()),
            **training,
        )

    def unstructured(self, settings: Flags, train: TaggedData, data: Data, training: Parameters) -> tuple[str, float]:
        """Return the score of the same word features by a classifier of tokens."""
        kept = {name: value for name, value in training.items() if name not in self.parameters or name == "min_count"}
        return TagTask().unstructured(settings, train, data, kept)

    def best_lines(
        self, model: SegmentTagger, data: Data, best: Sequence[Any], rows: Sequence[Any], request: Request
    ) -> Iterator[str]:
        if not request.as_json or request.marginals or request.rules is not None:
            yield from super().best_lines(model, data, best, rows, request)
            return
        words = data.source.first_column()
        for i, (labels, spans) in enumerate(zip(best, model.predict_spans(data.X), strict=True)):
            found = [
                {"label": s.label, "begin": s.begin, "end": s.end, "text": " ".join(words[i][s.begin : s.end])}
                | ({} if s.probability is None else {"probability": s.probability})
                for s in spans
            ]
            yield json_line({"labels": labels, "spans": found})

    def strongest(self, model: SegmentTagger, n: int, data: Data | None = None) -> Strongest:
        found = model.top_features(n)
        groups = {str(label): [(str(name), weight) for name, weight in rows] for label, rows in found.labels.items()}
        pairs = [(" ".join(map(str, pair)), rows[0][1]) for pair, rows in found.transitions.items()]
        return {**groups, "one type after another": pairs[:n]}

    def weights(self, model: SegmentTagger) -> Iterable[tuple[str, ...]]:
        for (table, attribute, label), weight in model.state_features_.items():
            if weight:
                yield table, str(attribute), str(label), repr(weight)
        for (length, label), weight in model.length_features_.items():
            if weight:
                yield "length", str(length), str(label), repr(weight)
        for names, weight in model.transition_features_.items():
            yield "transition", *map(str, names), repr(weight)

    def size(self, model: SegmentTagger) -> int:
        return len(model.state_features_) + len(model.length_features_) + len(model.transition_features_)

    def examples(self, model: SegmentTagger, data: Data, n: int) -> list[str]:
        from partwise.report import draw_spans

        some = self.take(data, drawable(data))
        spans = model.predict_spans(some.X)
        gold = [chunk_spans(labels) for labels in some.y]
        wrong = [i for i, own in enumerate(gold) if [(s.label, s.begin, s.end) for s in spans[i]] != own]
        # sentences without any segment would show nothing
        right = [i for i, own in enumerate(gold) if own and i not in set(wrong)]
        words = some.source.first_column()
        return [draw_spans(words[i], spans[i], gold=gold[i]) for i in choose_examples(wrong, right, n)]


def _phrases(lists: Sequence[str]) -> dict[str, list[str]]:
    """Return lists by name, as a model file can hold them: phrases instead of files."""
    from partwise.features.presets import read_gazetteers

    return {name: list(each.phrases) for name, each in read_gazetteers(list(lists)).items()}
