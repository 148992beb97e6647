"""Reading sentences by a feature template."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from partwise.features import Attributes, Vocabulary
from partwise.features.patterns import Patterns
from partwise.features.template import Gazetteer, Template
from partwise.io import Sentences
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts, encode_names
from partwise.models.features import Rows
from partwise.models.readers import Sequences, VocabularyReader
from partwise.support.arrays import Booleans


class TextSequences(Sequences):
    """Sequences that are rows of a table of strings."""

    @classmethod
    def of(cls, X: object, name: str = "X") -> TextSequences:
        """Return all of `X`: `Sentences`, or a list of sentences."""
        if isinstance(X, Sentences):
            return cls(X, range(len(X)))
        plain = Sequences.of(X, name)
        try:
            return cls(Sentences.from_lists(plain.items), plain.numbers)
        except ValueError as error:
            raise ValueError(f"{name}: with a template tokens are strings, or tuples of strings: {error}") from None

    @property
    def table(self) -> Sentences:
        return cast(Sentences, self.items)


#: Kinds of templates in model files.
DIALECTS: dict[str, type[Template]] = {kind.dialect: kind for kind in (Template, Patterns)}


def get_template(template: object) -> Template:
    """Return a template by name, or itself."""
    if isinstance(template, Template):
        return template
    if isinstance(template, str):
        return Template.preset(template)
    raise ValueError(f"template must be None, a preset's name or a Template, got {template!r}")


def warn_of_columns(name: str, template: Template, n_columns: int) -> None:
    """Warn of columns at which a template that was chosen by name does not look."""
    unused = sorted(set(range(n_columns)) - set(template.columns))
    if not unused:
        return
    which = f"column{'s' * (len(unused) > 1)} {', '.join(map(str, unused))}"
    why = "a column of tags has 2 to 60 values" if name == "ner" else "it has no lines for them"
    warnings.warn(
        f"X: template={name!r} does not look at {which} (counted from 0): {why}; leave out what it does not look at, "
        "or write a Template that does",
        UserWarning,
        stacklevel=3,
    )


def lists_digest(template: Template) -> str | None:
    """Return a short name of the lists that a template looks words up in, None if it has none."""
    clusters, gazetteers = template.clusters, template.gazetteers
    if not clusters and not gazetteers:
        return None
    content = sorted(clusters.items()), sorted((name, sorted(found.phrases)) for name, found in gazetteers.items())
    return hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def add_gazetteers(parts: ModelParts, what: str, gazetteers: Mapping[str, Gazetteer]) -> None:
    """Add lists of phrases to the parts of a model file; what: their setting, a plural."""
    parts.settings[what] = list(gazetteers)
    for k, each in enumerate(gazetteers.values()):
        parts.add(f"{what[:-1]}{k}", ModelParts("names", {}, encode_names(each.phrases)))


def read_gazetteers(parts: ModelParts, what: str) -> dict[str, Gazetteer]:
    """Return what `add_gazetteers` wrote."""
    names = parts.settings.get(what)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelFormatError(f"has no list of its {what}")
    phrases = [parts.part(f"{what[:-1]}{k}").names() for k in range(len(names))]
    try:
        return dict(zip(names, map(Gazetteer, phrases), strict=True))
    except ValueError as error:
        raise ModelFormatError(f"has a wrong list of phrases: {error}") from None


class TemplateReader(VocabularyReader):
    """Reads sentences of strings: attributes are what a template makes of them."""

    kind: ClassVar[str] = "template"
    template: Template

    def __init__(self, template: Template, vocabulary: Vocabulary | None = None) -> None:
        super().__init__(vocabulary)
        self.template, self.plain_transitions = template, template.transitions

    def sequences(self, X: object) -> TextSequences:
        return TextSequences.of(X)

    def read(self, sequences: Any, min_count: int = 1, n_jobs: int = 1) -> Rows:
        """Return the rows of all tokens; the first call learns the attributes that are seen `min_count` times."""
        extractor = self.template.extractor(sequences.table)
        if self.vocabulary is None:
            self.vocabulary, (row_ptr, ids, unknown) = extractor.learn(min_count, n_jobs)
        else:
            row_ptr, ids, unknown = extractor.look_up(self.vocabulary, n_jobs)
        size = len(self.vocabulary)
        return Rows(sequences.lengths(), size, Attributes(row_ptr, ids, size), (unknown, len(ids)))

    def edge_attributes(self) -> Booleans | None:
        return self._starting_with(self.template.edge_prefixes)

    def edge_only(self) -> Booleans | None:
        return self._starting_with(self.template.edge_only_prefixes)

    def _starting_with(self, prefixes: Sequence[str]) -> Booleans | None:
        return self.known.starts_with(prefixes).astype(np.bool_) if self.template.edges else None

    def to_parts(self) -> ModelParts:
        parts = ModelParts(self.kind, {"text": self.template.text})
        add_gazetteers(parts, "gazetteers", self.template.gazetteers)
        if self.template.dialect != Template.dialect:
            parts.settings["dialect"] = self.template.dialect
        parts.arrays |= {"bytes": self.known.bytes, "offsets": self.known.offsets}
        if self.template.clusters:
            parts.add("cluster_words", ModelParts("names", {}, encode_names(list(self.template.clusters))))
            parts.add("cluster_paths", ModelParts("names", {}, encode_names(list(self.template.clusters.values()))))
        return parts

    @classmethod
    def from_parts(cls, parts: ModelParts) -> TemplateReader:
        dialect = parts.text("dialect") if parts.has("dialect") else Template.dialect
        if dialect not in DIALECTS:
            raise ModelFormatError(f"has a template of an unknown kind ({dialect[:40]!r})")
        resources: dict[str, Any] = {"gazetteers": read_gazetteers(parts, "gazetteers")}
        if parts.has("cluster_words"):
            words, paths = (parts.part(name).names() for name in ("cluster_words", "cluster_paths"))
            if len(words) != len(paths) or len(set(words)) != len(words):
                raise ModelFormatError("has words without clusters")
            resources["clusters"] = dict(zip(words, paths, strict=True))
        try:
            template = DIALECTS[dialect](parts.text("text"), **resources)
        except ValueError as error:
            raise ModelFormatError(f"has a wrong template: {error}") from None
        return cls(template, parts.vocabulary())
