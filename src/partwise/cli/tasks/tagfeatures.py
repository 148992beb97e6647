"""The features of ``partwise train tag``: a template, a preset by name, or the one that suits columns and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.tasks import Data
from partwise.cli.tasks.labels import are_chunks, most_frequent
from partwise.cli.tasks.tagfiles import file_columns
from partwise.features import Template
from partwise.features.presets import preset_for, read_clusters, read_gazetteers, tag_columns
from partwise.io import CodedSequences

#: A part of speech tells more than this share of what the most frequent label leaves open: about 0.7 for phrases
#: (CoNLL-2000, whole or one type of phrase alone), far less for names.
PHRASES = 0.5


@dataclass(frozen=True)
class Choice:
    """What a tagger looks at.

    template
        As `SequenceTagger` takes it; None for items, which have their attributes already.
    name
        A preset's name, the template's file, or "items".
    columns
        The columns of the file that are looked at, counted from 1.
    """

    template: Template | None
    name: str
    columns: tuple[int, ...] = ()

    def remembered(self) -> dict[str, Any]:
        """For the model file: JSON values."""
        return {"features": self.name, "feature_columns": ",".join(map(str, self.columns))}


def described(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same for JSON output, from what a model remembers."""
    if not isinstance(settings.get("features"), str):
        return {}
    columns = str(settings.get("feature_columns") or "")
    found: dict[str, Any] = {"features": settings["features"]}
    found["feature_columns"] = [int(k) for k in columns.split(",") if k.isdecimal()]
    for name in ("inputs", "target"):
        if settings.get(name):
            found[name] = str(settings[name])
    return found


def choose_features(settings: Mapping[str, Any], data: Data) -> Choice:
    """The features that the flags name, or those that suit the data, which are looked at once.

    Raises
    ------
    UserError
        If flags contradict each other, or a file is given that nothing looks at.
    """
    if data.chosen is None:
        data.chosen = _chosen(settings, data)
    choice: Choice = data.chosen
    return choice


def _chosen(settings: Mapping[str, Any], data: Data) -> Choice:
    named, preset = settings.get("template"), settings.get("features")
    lists = {flag: settings[name] for flag, name in LISTS.items() if settings.get(name)}
    if named and preset:
        raise UserError("--template and --features are two ways to say the same: give one of them")
    if data.source.format == "items":
        if named or preset or lists:
            given = "--template and --features" if named or preset else " and ".join(lists)
            raise UserError(f"items have their attributes already: {given} are for columns")
        return Choice(None, "items")
    if named:
        names = {"names": data.source.columns.names} if data.source.columns is not None else {}
        template = _from_file(named, **_resources(settings), **names)
        name = PurePath(named).name.encode("utf-8", "backslashreplace").decode()  # what a model file can hold
        return Choice(template, name, _columns(template, settings, data))
    tags = tag_columns(data.X)
    preset = preset or (suitable_preset(data, tags) if data.source.columns is None else conllu_preset(data, tags))
    if lists and preset != "ner":
        raise UserError(
            f"{' and '.join(lists)}: these are for the features 'ner' and for templates, not for {preset!r}"
        )
    made = preset_for(preset, data.X, **_resources(settings))
    return Choice(made, preset, _columns(made, settings, data))


LISTS = {"--clusters": "clusters", "--gazetteer": "gazetteers"}


def _resources(settings: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if settings.get("clusters"):
        found["clusters"] = read_clusters(settings["clusters"])
    if settings.get("gazetteers"):
        found["gazetteers"] = read_gazetteers(settings["gazetteers"])
    return found


def _from_file(path: str, **resources: Any) -> Template:
    """A template that looks at all that it is given."""
    template = Template.from_file(path, **resources)
    if resources.get("clusters") and not template.uses("cluster"):
        raise UserError(f"--clusters: the template {path} has no %cluster")
    for name in resources.get("gazetteers", ()):
        if not template.uses("gazetteer", name):
            raise UserError(f"--gazetteer: the template {path} has no %gazetteer[...,{name}]")
    return template


def _columns(template: Template, settings: Mapping[str, Any], data: Data) -> tuple[int, ...]:
    known = file_columns(settings, data)
    return tuple(known[k] for k in template.columns if k < len(known))


def conllu_preset(data: Data, tags: Sequence[int]) -> str:
    """The preset for columns of CoNLL-U: parts of speech of words alone are what "pos" is for."""
    if are_chunks(data.y.distinct()):
        return suitable_preset(data, tags)
    return "pos" if data.X.n_columns == 1 and data.source.target in ("upos", "xpos") else "morph"


def suitable_preset(data: Data, tags: Sequence[int]) -> str:
    """The preset for these columns and labels.

    Labels of chunks are phrases if the second column (parts of speech) tells most of them, else names.
    """
    if not are_chunks(data.y.distinct()):
        return "chunk" if data.X.n_columns > 1 else "pos"
    phrases = 1 in tags and explained(data.y, CodedSequences.of(data.X, 1)) >= PHRASES
    return "chunk" if phrases else "ner"


def explained(labels: CodedSequences, tags: CodedSequences) -> float:
    """What share of the tokens without the most frequent label each tag's most frequent label gets right, in excess."""
    n, most = len(labels.codes), int(np.bincount(labels.codes).max())
    right = int(most_frequent(tags.codes, labels.codes)[2].sum())
    return (right - most) / (n - most) if most < n else 0.0
