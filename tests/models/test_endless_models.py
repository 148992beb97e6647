"""Endless or huge input in place of a model: at most as much is read as the header allows."""

from __future__ import annotations

import io
import json
import os
import struct
import sys

import pytest

import partwise
from partwise import ModelFormatError
from partwise.compat import pycrfsuite
from partwise.model_files import container
from partwise.solvers.engine import checkpoint
from partwise.support.memory import TooLarge


class Endless(io.RawIOBase):
    """A stream of a head and an endlessly repeated pattern, which fails the test when much more than `most` is read."""

    def __init__(self, head: bytes, more: bytes, most: int) -> None:
        self.head, self.more, self.most = head, more, most
        self.given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        wanted = len(buffer)
        end = self.given + wanted
        missing = max(end - len(self.head), 0)
        text = (self.head + self.more * (missing // len(self.more) + 1))[self.given : end] if end < 1 << 16 else None
        buffer[:] = text if text is not None and len(text) == wanted else (self.more * wanted)[:wanted]
        self.given = end
        assert self.given <= self.most, f"read {self.given:,} bytes"
        return wanted


def ours(data_bytes: int) -> bytes:
    entries = {
        "__metadata__": {"sha256": "0" * 64, "format": "partwise model", "format_version": "1"},
        "a": {"dtype": "U8", "shape": [data_bytes], "data_offsets": [0, data_bytes]},
    }
    text = json.dumps(entries, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text


HEADS = {
    "random": (b"\x17\x03\xfe" * 100, b"\x99\x00", 1 << 17, "not a model file"),
    "zeros": (b"\0" * 300, b"\0", 1 << 17, "not a model file"),
    "ours": (ours(100_000), b"\0", 1 << 19, "does not end after the"),
    "ours, endless header": (struct.pack("<Q", 1 << 62) + ours(3)[8:], b" ", 1 << 17, "header claims"),
    "CRFsuite": (
        b"lCRF" + struct.pack("<I", 100_000) + b"FOMC" + struct.pack("<I", 100),
        b"\0",
        1 << 19,
        "does not end",
    ),
    "Wapiti": (b"#mdl#2#7\n#rdr#1/1/0\n", b"\n", 1 << 22, "does not end.*give the file"),
    "Wapiti, no header": (b"#mdl#", b"#", 1 << 22, "does not end"),
    "CRF++": (b"version: 100\ncost-factor: 1\nmaxid: 7\nxsize: 1\n\n", b"x", 1 << 22, "does not end"),
    "CRF++, binary": (b"d\0\0\0\0\0\0\0", b"\0", 1 << 17, "binary model of CRF"),
}


@pytest.mark.parametrize("name", HEADS)
def test_endless_input_is_read_up_to_what_its_header_allows(name, monkeypatch):
    head, more, most, words = HEADS[name]
    endless = Endless(head, more, most)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(endless)))
    with pytest.raises(ModelFormatError, match=words):
        partwise.load("-")


@pytest.mark.parametrize(
    "head",
    [ours(1 << 60), b"#mdl#2#999999999999999\n", b"version: 100\ncost-factor: 1\nmaxid: 999999999999999\nxsize: 1\n\n"],
    ids=["ours", "Wapiti", "CRF++"],
)
def test_pipes_that_promise_more_than_there_is_memory(head, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Endless(head, b"\n", 1 << 17))))
    with pytest.raises(TooLarge, match="reading this model file would take"):
        partwise.load("-")


@pytest.mark.parametrize("head", [ours(3), b"lCRF\xff\0\0\0FOMC", b"#mdl#2#7\n"], ids=["ours", "CRFsuite", "Wapiti"])
def test_huge_files_are_not_read(head, tmp_path):
    """Sparse files of a terabyte are refused without being read."""
    path = tmp_path / "model"
    path.write_bytes(head)
    os.truncate(path, 1 << 40)
    with pytest.raises((ModelFormatError, TooLarge)):
        partwise.load(path)
    if head.startswith(b"lCRF"):
        with pytest.raises(ModelFormatError, match="its header allows"):
            pycrfsuite.Tagger().open(path)


@pytest.mark.skipif(not os.path.exists("/dev/urandom"), reason="there are no such devices here")
def test_devices():
    for name in ("/dev/urandom", "/dev/zero"):
        with pytest.raises(ModelFormatError, match="not a model file"):
            partwise.load(name)
        with pytest.raises(ModelFormatError):
            pycrfsuite.Tagger().open(name)
        with pytest.raises(checkpoint.CheckpointError):
            container.read(name, checkpoint.KIND)
