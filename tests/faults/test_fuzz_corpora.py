"""Inputs that fuzzers found, in fuzz/corpus. ``make fuzz FUZZ_SECONDS=0`` runs those of the core."""

from __future__ import annotations

import os
import sys
import warnings

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="as the table of faults")
if sys.platform == "linux":
    from tests.faults import formats
    from tests.faults.rows import TESTS

    CORPUS = TESTS.parent / "fuzz" / "corpus"
    READERS = sorted(formats.FORMATS)
else:
    READERS = []


@pytest.mark.parametrize("name", READERS)
def test_readers_accept_or_refuse_every_corpus_file(name, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    warnings.simplefilter("ignore")
    found = sorted((CORPUS / "readers" / name).iterdir())
    assert found
    for number, file in enumerate(found):
        path = tmp_path / f"file{formats.FORMATS[name].suffix}"
        path.write_bytes(file.read_bytes())
        outcome, detail = formats.judged(name, path, number)
        assert outcome in formats.GOOD, (file.name, outcome, detail)


def test_every_driver_has_a_corpus():
    drivers = {path.stem for path in CORPUS.parent.glob("*.cpp")} - {"replay"}
    assert drivers
    assert all(any((CORPUS / name).iterdir()) for name in drivers)
    assert {path.name for path in CORPUS.iterdir()} == {*drivers, "readers"}
    assert {path.name for path in (CORPUS / "readers").iterdir()} == set(READERS)
