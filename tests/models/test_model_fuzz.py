"""Random wrong content with a valid digest is refused, or loads as a model that predicts without harm."""

from __future__ import annotations

import io
import json
import os
import warnings
from functools import reduce

import numpy as np
import pytest

import partwise
from helpers.model_cases import PARSERS, TAGGERS, fitted_classifier, fitted_parser, fitted_tagger
from helpers.model_kinds import MODELS
from helpers.model_mutants import CASES, ODD_VALUES, fitted, forged, parsed
from partwise import ModelFormatError
from partwise.cli.summary import certificate_lines, result_fields
from partwise.cli.tasks import task_of
from partwise.model_files import container

ROUNDS = 50
#: JSON values, each of which replaces every other value in turn.
WRONG = ["7", '"x"', "[]", "{}", "null", "1e400", "-1", "true", str(2**70), "NaN", "[[]]"]


def places_in(value, path=()):
    """Yield the paths to all values; of a long list only to the first item, as the others are alike."""
    items = list(value.items()) if isinstance(value, dict) else []
    if isinstance(value, list):
        items = list(enumerate(value))[: 1 if len(value) > 3 else 3]
    for key, inner in items:
        yield (*path, key)
        yield from places_in(inner, (*path, key))


@pytest.mark.parametrize("name", [*CASES, "template"])
def test_every_setting_of_a_wrong_kind(name, tmp_path):
    case, path = fitted(name), tmp_path / "model.pw"
    case.estimator.input_settings_ = {"task": "x", "n_columns": 1}
    case.estimator.save(path)
    metadata, settings, arrays = parsed(path.read_bytes())
    mark, refused, taken = "<here>", 0, 0
    for place in places_in(settings):
        changed = json.loads(metadata["settings"])
        owner = reduce(lambda inner, key: inner[key], place[:-1], changed)
        owner[place[-1]] = mark
        text = json.dumps(changed)
        for wrong in WRONG:
            file = io.BytesIO()
            container.write(file, {**metadata, "settings": text.replace(f'"{mark}"', wrong)}, arrays)
            path.write_bytes(file.getvalue())
            try:
                model = partwise.load(path)
            except ModelFormatError:
                refused += 1
                continue
            taken += 1
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                # a smaller limit would refuse the sentences or graphs
                if place[-1] not in ("max_length", "memory_limit"):
                    assert len(model.predict(case.X)) == len(case.X)
                model.save(os.devnull)
                if name != "graphs":  # the command line has no task for graphs
                    task = task_of(model)
                    assert task.size(model) >= 0
                    assert isinstance(task.strongest(model, 2), dict)
                certificate_lines(result_fields(model.result_))
    assert refused > taken > 0


@pytest.mark.parametrize("name", CASES)
def test_random_changes(name, tmp_path):
    rng = np.random.default_rng(CASES.index(name))
    case = fitted(name)
    path = tmp_path / "model.pw"
    case.estimator.save(path)
    data = path.read_bytes()
    refused = 0
    for _ in range(ROUNDS):
        path.write_bytes(forged(rng, data))
        try:
            model = partwise.load(path)
        except ModelFormatError:
            refused += 1
            continue
        with np.errstate(all="ignore"):  # weights of 1e308 overflow in sums
            predicted = model.predict(case.X)
        assert len(predicted) == len(case.X)
    assert 0.2 * ROUNDS < refused < ROUNDS


@pytest.mark.parametrize("name", ["classifier", "crf", *list(PARSERS)[:1]])
def test_every_setting_replaced_by_something_odd(name, tmp_path):
    if name in PARSERS:
        case = fitted_parser(name)
    else:
        case = fitted_classifier(["a", "b", "c"]) if name == "classifier" else fitted_tagger(next(iter(TAGGERS)))
    path = tmp_path / "model.pw"
    case.estimator.save(path)
    metadata, settings, arrays = parsed(path.read_bytes())
    places = [(key,) for key in settings]
    places += [(key, inner) for key, value in settings.items() if isinstance(value, dict) for inner in value]
    refused = set()
    for place in places:
        for odd in (*ODD_VALUES, 10**400):
            changed = json.loads(metadata["settings"])
            owner = changed if len(place) == 1 else changed[place[0]]
            owner[place[-1]] = odd
            file = io.BytesIO()
            container.write(file, {**metadata, "settings": json.dumps(changed)}, arrays)
            path.write_bytes(file.getvalue())
            try:
                partwise.load(path)
            except ModelFormatError:
                refused.add(place)
    assert {("result",), ("history",), ("parameters",), ("result", "gap")} <= refused


@pytest.mark.parametrize(
    ("array", "row", "value", "words"),
    [
        ("lexical", 4, (1, 4), "not in order, or twice"),  # the word 1 then has no symbol
        ("lexical", 8, (5, 4), "words without a lexical entry"),
        ("lexical_counts", 0, 0.0, "not positive"),
        ("root_counts", 0, -1.0, "not positive"),
        ("rules", 1, (2, 0, 1), "not in order, or twice"),
    ],
)
def test_inconsistent_grammars(array, row, value, words, tmp_path):
    path = tmp_path / "model.pw"
    MODELS["constituents, markovized"]().estimator.save(path)
    metadata, _, arrays = parsed(path.read_bytes())
    (name,) = (name for name in arrays if name.rpartition("/")[2].rpartition(".")[2] == array)
    arrays[name][row] = value
    with path.open("wb") as file:
        container.write(file, metadata, arrays)
    with pytest.raises(ModelFormatError, match=words):
        partwise.load(path)
