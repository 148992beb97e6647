"""Damaged or incomplete model files, and those of unknown versions, are refused, and nothing in them is executed."""

from __future__ import annotations

import os
import pickle
import struct

import numpy as np
import pytest
from safetensors.numpy import save_file

import partwise
from helpers.model_cases import fitted_classifier, fitted_tagger, remade
from partwise import ModelFormatError


@pytest.fixture(scope="module")
def tagger_bytes(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("models") / "tagger.pw"
    fitted_tagger("dicts, conditioned").estimator.save(path)
    return path.read_bytes()


@pytest.fixture
def load(tmp_path):
    def load_bytes(data: bytes):
        path = tmp_path / "model.pw"
        path.write_bytes(data)
        return partwise.load(path)

    return load_bytes


def with_header(text: bytes, data: bytes = b"") -> bytes:
    """Return a file with this header and a valid digest."""
    import hashlib

    prefix = b'{"__metadata__":{"sha256":"'
    assert text.startswith(prefix)
    blank = struct.pack("<Q", len(text)) + prefix + b"0" * 64 + text[len(prefix) + 64 :] + data
    digest = hashlib.sha256(blank).hexdigest().encode()
    return blank[: 8 + len(prefix)] + digest + blank[8 + len(prefix) + 64 :]


def test_unchanged_it_loads(tagger_bytes, load):
    assert load(remade(tagger_bytes, lambda *_: None)).classes_.tolist() == ["B", "I", "O"]


def test_a_flipped_bit_anywhere(tagger_bytes, tmp_path):
    path = tmp_path / "model.pw"
    path.write_bytes(tagger_bytes)
    with path.open("r+b", buffering=0) as file:
        for place, byte in enumerate(tagger_bytes):
            os.pwrite(file.fileno(), bytes([byte ^ 1 << place % 8]), place)
            with pytest.raises(ModelFormatError):
                partwise.load(path)
            os.pwrite(file.fileno(), bytes([byte]), place)
    partwise.load(path)


def test_cut_off_anywhere(tagger_bytes, tmp_path):
    path = tmp_path / "model.pw"
    path.write_bytes(tagger_bytes)
    lengths = [*range(200), *range(200, len(tagger_bytes), 7), len(tagger_bytes) - 1]
    for length in reversed(lengths):
        os.truncate(path, length)
        with pytest.raises(ModelFormatError):
            partwise.load(path)


@pytest.mark.parametrize("more", [b"\0", b" ", b"x" * 1000])
def test_something_after_the_end(tagger_bytes, load, more):
    with pytest.raises(ModelFormatError):
        load(tagger_bytes + more)


class Bomb:
    """An object that raises when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was executed",)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 7,
        b"\x00" * 8,
        b"\x00" * 5000,
        b"hello\n",
        b"\x1f\x8b\x08\x00" + b"\x00" * 200,
        pickle.dumps(Bomb()),
        struct.pack("<Q", 2**63) + b'{"__metadata__":{"sha256":"' + b"0" * 64 + b'"}}',
        struct.pack("<Q", 10**8 + 1) + b'{"__metadata__":{"sha256":"' + b"0" * 64 + b'"}}',
        struct.pack("<Q", 0) + b'{"__metadata__":{"sha256":"' + b"0" * 64 + b'"}}',
    ],
    ids=["empty", "7 bytes", "8 zeros", "zeros", "text", "gzip", "pickle", "2^63", "large header", "no header"],
)
def test_not_model_files(data, load):
    with pytest.raises(ModelFormatError):
        load(data)


def test_other_files_directories_and_missing_files(tmp_path):
    save_file({"weights": np.zeros(3)}, tmp_path / "other.pw", {"format": "pt"})
    with pytest.raises(ModelFormatError, match=r"other.pw: is not a model file"):
        partwise.load(tmp_path / "other.pw")
    with pytest.raises(ModelFormatError, match="directory"):
        partwise.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        partwise.load(tmp_path / "none.pw")


def test_the_error_knows_its_path(tmp_path):
    (tmp_path / "model.pw").write_bytes(b"")
    with pytest.raises(ModelFormatError) as caught:
        partwise.load(tmp_path / "model.pw")
    assert caught.value.path == str(tmp_path / "model.pw")
    assert str(caught.value).startswith(caught.value.path + ": ")
    assert isinstance(caught.value, ValueError)
    assert pickle.loads(pickle.dumps(caught.value)).path == caught.value.path


PREFIX = b'{"__metadata__":{"sha256":"' + b"0" * 64 + b'","format":"partwise model","format_version":"1"}'


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (PREFIX, b""),
        (PREFIX + b',"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}', b"\0" * 16),
        (PREFIX + b',"a":{"dtype":"F64","shape":[2],"data_offsets":[0,8]}}', b"\0" * 8),
        (PREFIX + b',"a":{"dtype":"F64","shape":[-1],"data_offsets":[0,8]}}', b"\0" * 8),
        (PREFIX + b',"a":{"dtype":"F64","shape":[true],"data_offsets":[0,8]}}', b"\0" * 8),
        (PREFIX + b',"a":{"dtype":"F64","shape":[1],"data_offsets":[8,16]}}', b"\0" * 8),
        (
            PREFIX + b',"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"b":{"dtype":"F64","shape":[1],'
            b'"data_offsets":[0,8]}}',
            b"\0" * 8,
        ),
        (PREFIX + b',"a":{"dtype":"F64","shape":[0,4611686018427387904],"data_offsets":[0,0]}}', b""),
        (PREFIX + b',"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}}', b""),
        (PREFIX + b',"a":{"dtype":"O","shape":[1],"data_offsets":[0,8]}}', b"\0" * 8),
        (PREFIX + b',"a":{"dtype":["F64"],"shape":[1],"data_offsets":[0,8]}}', b"\0" * 8),
        (PREFIX + b',"a":7}', b""),
        (PREFIX + b',"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b""),
        (PREFIX + b',"a":NaN}', b""),
        (PREFIX + b',"a":' + b"9" * 5000 + b"}", b""),
        (PREFIX[:-1] + b',"format":"partwise model"}}', b""),
        (PREFIX + b"}\xff", b""),
    ],
)
def test_forged_headers(text, data, load):
    with pytest.raises(ModelFormatError):
        load(with_header(text, data))


def set_metadata(name, value):
    return lambda metadata, settings, arrays: metadata.update({name: value})


def set_setting(path, value):
    def change(metadata, settings, arrays):
        *outer, last = path.split("/")
        for key in outer:
            settings = settings[key]
        settings[last] = value

    return change


def drop_setting(path):
    def change(metadata, settings, arrays):
        *outer, last = path.split("/")
        for key in outer:
            settings = settings[key]
        del settings[last]

    return change


def set_array(name, function):
    return lambda metadata, settings, arrays: arrays.update({name: function(arrays[name])})


def drop_array(name):
    return lambda metadata, settings, arrays: arrays.pop(name)


def first_is(value):
    def change(array):
        array.reshape(-1)[0] = value
        return array

    return change


def last_is(value):
    def change(array):
        array.reshape(-1)[-1] = value
        return array

    return change


CHANGES = {
    "newer version": set_metadata("format_version", "3"),
    "version zero": set_metadata("format_version", "0"),
    "no version": set_metadata("format_version", "one"),
    "another format": set_metadata("format", "else"),
    "unknown kind": set_metadata("kind", "os.system"),
    "kind of another model": set_metadata("kind", "maxent"),
    "settings that are no JSON": lambda metadata, settings, arrays: (metadata.update(settings="{"), settings.clear()),
    "unknown parameter": set_setting("parameters/self", 1),
    "impossible parameter": set_setting("parameters/C", -1.0),
    "unknown loss": set_setting("parameters/loss", "none"),
    "solver that is no name": set_setting("parameters/solver", 7),
    "solver of a tuple": set_setting("parameters/solver", {"tuple": [{"solver": ["none", {"dict": []}]}]}),
    "solver with options that are none": set_setting("parameters/solver", {"solver": ["none", 3]}),
    "unknown value": set_setting("parameters/C", {"class": "os.system"}),
    "too few labels": set_setting("labels", {"dtype": "str", "values": ["B"]}),
    "more labels": set_setting("labels", {"dtype": "str", "values": ["B", "I", "O", "X"]}),
    "repeated labels": set_setting("labels", {"dtype": "str", "values": ["B", "I", "I"]}),
    "labels of another type": set_setting("labels", {"dtype": "int64", "values": ["B", "I", "O"]}),
    "labels beyond their type": set_setting("labels", {"dtype": "int8", "values": [1, 2, 300]}),
    "missing labels": drop_setting("labels"),
    "missing model": drop_setting("model"),
    "another model": set_setting("model/kind", "local"),
    "ends is no flag": set_setting("model/ends", 2),
    "status": set_setting("result/status", "fine"),
    "history": set_setting("history/gap", [1.0, "x"]),
    "huge number of attributes": set_setting("model/nodes/n_attributes", 1 << 40),
    "negative number of attributes": set_setting("model/nodes/n_attributes", -1),
    "all pairs": set_setting("model/edges/all", True),
    "NaN weight": set_array("model.nodes.weights", first_is(np.nan)),
    "infinite weight": set_array("model.edges.weights", first_is(-np.inf)),
    "infinite end weight": set_array("model.end_weights", first_is(np.inf)),
    "fewer weights": set_array("model.nodes.weights", lambda array: array[:-1]),
    "weights of another type": set_array("model.nodes.weights", lambda array: array.view(np.int64)),
    "weights of another shape": set_array("model.nodes.weights", lambda array: array.reshape(1, -1)),
    "no weights": drop_array("model.nodes.weights"),
    "column out of range": set_array("model.nodes.columns", first_is(3)),
    "columns that fall": set_array("model.nodes.columns", lambda array: array[::-1].copy()),
    "edge column out of range": set_array("model.edges.columns", first_is(9)),
    "offsets that fall": set_array("model.nodes.offsets", first_is(5)),
    "offsets beyond the end": set_array("model.nodes.offsets", last_is(10**12)),
    "negative offset": set_array("model.nodes.offsets", first_is(-(1 << 62))),
    "edge offsets": set_array("model.edges.offsets", last_is(0)),
    "other edges": set_array("model.on_edges", first_is(0)),
    "no mask": set_array("model.on_edges", first_is(7)),
    "names that are not UTF-8": set_array("reader.bytes", first_is(0xFF)),
    "name offsets": set_array("reader.offsets", last_is(1 << 50)),
    "fewer names": set_array("reader.offsets", lambda array: array[[0, *range(2, len(array))]]),
    "the same name twice": set_array("reader.bytes", lambda array: np.full_like(array, ord("c"))),
    "another reader": set_setting("reader/kind", "pickle"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_forged_files(name, tagger_bytes, load):
    with pytest.raises(ModelFormatError) as caught:
        load(remade(tagger_bytes, CHANGES[name]))
    assert "model.pw: " in str(caught.value)


def test_the_message_names_the_version(tagger_bytes, load):
    with pytest.raises(ModelFormatError, match="format version 3; this release reads versions up to 2"):
        load(remade(tagger_bytes, CHANGES["newer version"]))


def test_forged_classifiers(tmp_path, load):
    fitted_classifier(["a", "b", "c"]).estimator.save(tmp_path / "model.pw")
    data = (tmp_path / "model.pw").read_bytes()
    assert load(remade(data, lambda *_: None)).coef_.shape == (3, 4)
    for change in (
        set_array("weights", first_is(np.nan)),
        set_array("weights", lambda array: array[:2]),
        set_array("intercept_weights", lambda array: array[:2]),
        set_array("intercept_weights", first_is(np.inf)),
        set_setting("parameters/penalty", "l3"),
    ):
        with pytest.raises(ModelFormatError):
            load(remade(data, change))


def test_forged_sparse_classifiers(tmp_path, load):
    model = fitted_classifier(["a", "b", "c"]).estimator
    model.prune(keep=3)
    model.save(tmp_path / "model.pw")
    data = (tmp_path / "model.pw").read_bytes()
    assert np.count_nonzero(load(data).coef_) == 3
    for change in (
        set_setting("n_features", 1 << 40),
        set_setting("n_features", 10**7),
        set_setting("n_features", 0),
        set_array("columns", first_is(4)),
        set_array("offsets", last_is(2)),
        set_array("weights", lambda array: array[:-1]),
    ):
        with pytest.raises(ModelFormatError):
            load(remade(data, change))


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("rbf", set_setting("model/nodes/kernel", {"kernel": ["rbf", {"dict": [["gamma", None], ["bias", 0.0]]}]})),
        ("rbf", set_setting("model/nodes/kernel", {"kernel": ["sum", {"dict": []}]})),
        ("rbf", set_setting("model/nodes/kernel", "rbf")),
        ("rbf", set_array("model.nodes.rows", first_is(np.nan))),
        ("rbf", set_array("model.nodes.rows", lambda array: array[:, :-1])),
        ("rbf", set_setting("model/memory_limit", -1)),
        ("polynomial on edges", set_array("model.edges.attributes", first_is(99))),
        ("polynomial on edges", set_array("model.edges.offsets", last_is(99_999))),
        ("maxent", set_setting("model/history", 3)),
        ("maxent", set_setting("model/history", 1)),
        ("names", set_array("model.transitions", first_is(2))),
        ("names", set_array("model.transition_weights", lambda array: array[:2])),
    ],
)
def test_forged_taggers(kind, change, tmp_path, load):
    fitted_tagger(kind).estimator.save(tmp_path / "model.pw")
    data = (tmp_path / "model.pw").read_bytes()
    load(remade(data, lambda *_: None))
    with pytest.raises(ModelFormatError):
        load(remade(data, change))


def test_a_pipe_is_read_too(tagger_bytes, tmp_path):
    import threading

    path = tmp_path / "pipe"
    os.mkfifo(path)
    thread = threading.Thread(target=path.write_bytes, args=(tagger_bytes,))
    thread.start()
    assert partwise.load(path).classes_.tolist() == ["B", "I", "O"]
    thread.join()
