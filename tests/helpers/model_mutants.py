"""Model files with a valid digest and random wrong content."""

from __future__ import annotations

import io
import json
import warnings

import numpy as np

from helpers.model_cases import (
    PARSERS,
    TAGGERS,
    Fitted,
    fitted_classifier,
    fitted_labeler,
    fitted_parser,
    fitted_tagger,
)
from partwise import SequenceTagger
from partwise.features import Template
from partwise.model_files import container

CASES = ["classifier", *TAGGERS, *PARSERS, "graphs"]
ODD_NUMBERS = [0, 1, -1, 2, 3, 255, 65535, 2**31, -(2**31), 2**40, 2**62, 1e308, -1e308, 1e-308, float("nan")]
ODD_VALUES = [
    None,
    True,
    False,
    0,
    -1,
    7,
    2**70,
    1.5,
    "",
    "x",
    [],
    {},
    [1],
    {"kind": "x"},
    {"tuple": []},
    "kernel chain",
    "faulty_module.call",
    {"__class__": "faulty_module.call"},
]
ODD_KINDS = ["", "x", "faulty_module", "faulty_module.call", "tagger", "maxent", "conllu", "partwise.estimators.tagger"]


def parsed(data: bytes):
    metadata, arrays = container.parse(container.Source(io.BytesIO(data), len(data)))
    metadata = {name: value for name, value in metadata.items() if name != "sha256"}
    return metadata, json.loads(metadata["settings"]), {name: array.copy() for name, array in arrays.items()}


def mutate_array(rng, array):
    choice = int(rng.integers(6))
    if choice == 0:
        return array[: len(array) // 2]
    if choice == 1:
        return np.concatenate([array, array[:1]])
    if choice == 2:
        return array.reshape(-1)
    if choice == 3:
        return array.astype(rng.choice(["<f8", "<f4", "<i8", "<i4", "<u2", "|u1"]))
    out = array.copy().reshape(-1)
    for _ in range(int(rng.integers(1, 4))):
        if len(out):
            at = int(rng.integers(len(out)))
            value = ODD_NUMBERS[int(rng.integers(len(ODD_NUMBERS)))] if choice == 4 else int(rng.integers(0, 12))
            out[at : at + 1] = np.array([value], dtype=object if isinstance(value, int) else float).astype(float)
    return out.reshape(array.shape)


def mutate_settings(rng, settings):
    """Replace, remove or copy one random value in place."""
    places = []

    def walk(value):
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in items:
            places.append((value, key))
            walk(inner)

    walk({name: value for name, value in settings.items() if name != "history"})
    owner, key = places[int(rng.integers(len(places)))]
    if isinstance(owner, dict) and rng.random() < 0.2:
        del owner[key]
    else:
        owner[key] = ODD_VALUES[int(rng.integers(len(ODD_VALUES)))]


def fitted(name):
    if name == "template":
        template = Template.preset("ner", clusters={"a": "01"}, gazetteers={"G": ["a b"]})
        X, y = [["a", "b", "c"], ["c", "d"]] * 3, [["A", "B", "A"], ["B", "A"]] * 3
        return Fitted(SequenceTagger(template=template, tol=0.1).fit(X, y), X)
    if name in PARSERS:
        return fitted_parser(name)
    if name == "graphs":
        return fitted_labeler()
    return fitted_classifier(["a", "b", "c"]) if name == "classifier" else fitted_tagger(name)


def forged(rng, data: bytes) -> bytes:
    """Return a model file with one array or setting changed, and sometimes the kind of model."""
    metadata, settings, arrays = parsed(data)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rng.random() < 0.6:
            chosen = sorted(arrays)[int(rng.integers(len(arrays)))]
            arrays[chosen] = mutate_array(rng, arrays[chosen])
        else:
            mutate_settings(rng, settings)
        if rng.random() < 0.03:
            metadata["kind"] = ODD_KINDS[int(rng.integers(len(ODD_KINDS)))]
    metadata["settings"] = json.dumps(settings)
    file = io.BytesIO()
    container.write(file, metadata, arrays)
    return file.getvalue()
