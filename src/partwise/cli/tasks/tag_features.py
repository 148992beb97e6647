"""The features of ``partwise train tag``: a template, a preset by name, or the preset that suits columns and labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.flags import Flags
from partwise.cli.tasks.labels import are_chunks, most_frequent
from partwise.cli.tasks.tagged_files import Choice, TaggedData, file_columns
from partwise.features import Template
from partwise.features.presets import preset_for, read_clusters, read_gazetteers, tag_columns
from partwise.io.coded import CodedSequences

#: A part of speech tells more than this share of what the most frequent label leaves open: about 0.7 for phrases
#: (CoNLL-2000, whole or one type of phrase alone), far less for names.
PHRASES = 0.5
#: Files that features may need, by their flags: names in settings and readers.
RESOURCES = {"--clusters": ("clusters", read_clusters), "--gazetteer": ("gazetteers", read_gazetteers)}


def choose_features(settings: Flags, data: TaggedData) -> Choice:
    """Return the features that the flags name, or those that suit the data, which are looked at once."""
    if data.chosen is None:
        data.chosen = _chosen(settings, data)
    return data.chosen


def _chosen(settings: Flags, data: TaggedData) -> Choice:
    named, preset, columns = settings.get("template"), settings.get("features"), data.source.columns
    given = " and ".join(flag for flag, (name, _) in RESOURCES.items() if settings.get(name))
    if named and preset:
        raise UserError("--template and --features are two ways to say the same: give one of them")
    if data.source.format == "items":
        if named or preset or given:
            flags = "--template and --features" if named or preset else given
            raise UserError(f"items have their attributes already: {flags} are for columns")
        return Choice(None, "items")
    resources = {name: read(settings[name]) for name, read in RESOURCES.values() if settings.get(name)}
    if named:
        names = {"names": columns.names} if columns is not None else {}
        template = _from_file(named, **resources, **names)
        name = PurePath(named).name.encode("utf-8", "backslashreplace").decode()  # what a model file can hold
    else:
        tags = tag_columns(data.X)
        name = preset or suitable_preset(data, tags)
        if given and name != "ner":
            raise UserError(f"{given}: these are for the features 'ner' and for templates, not for {name!r}")
        template = preset_for(name, data.X, **resources)
    known = file_columns(settings, data)
    return Choice(template, name, tuple(known[k] for k in template.columns if k < len(known)))


def _from_file(path: str, **resources: Any) -> Template:
    """Return a template that uses all resources that it is given."""
    template = Template.from_file(path, **resources)
    if resources.get("clusters") and not template.uses("cluster"):
        raise UserError(f"--clusters: the template {path} has no %cluster")
    for name in resources.get("gazetteers", ()):
        if not template.uses("gazetteer", name):
            raise UserError(f"--gazetteer: the template {path} has no %gazetteer[...,{name}]")
    return template


def suitable_preset(data: TaggedData, tags: Sequence[int]) -> str:
    """Return the preset for these columns and labels; for CoNLL-U "pos" is for parts of speech by words alone.

    Labels of chunks are phrases if the second column (parts of speech) tells most of them, else names.
    """
    if not are_chunks(data.y.distinct()):
        if data.source.columns is None:
            return "chunk" if data.X.n_columns > 1 else "pos"
        return "pos" if data.X.n_columns == 1 and data.source.target in ("upos", "xpos") else "morph"
    phrases = 1 in tags and explained(data.y, CodedSequences.of(data.X, 1)) >= PHRASES
    return "chunk" if phrases else "ner"


def explained(labels: CodedSequences, tags: CodedSequences) -> float:
    """Return the share of tokens without the most frequent label that each tag's most frequent label gets right."""
    n, most = len(labels.codes), int(np.bincount(labels.codes).max())
    right = int(most_frequent(tags.codes, labels.codes)[2].sum())
    return (right - most) / (n - most) if most < n else 0.0
