"""All readers treat missing files, damaged gzip files, bytes that are not UTF-8 and odd strings alike."""

import gzip

import pytest

import partwise
from helpers.odd_strings import ODD_STRINGS
from partwise import SequenceTagger
from partwise.features import Template
from partwise.features.presets import read_clusters
from partwise.io import FormatError, read_columns, read_items, read_svmlight, read_trees

GOOD = {
    read_columns: b"a X\nb Y\n",
    read_items: b"X\ta\nY\tb\n",
    read_svmlight: b"1 1:1\n2 2:1\n",
    read_trees: b"(A a)\n(B b)\n",
    Template.from_file: b"U:%x[0,0]\nB\n",
    read_clusters: b"01\ta\n10\tb\n",
}
readers = pytest.mark.parametrize("reader", list(GOOD), ids=lambda reader: reader.__qualname__)


@readers
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_good(tmp_path, reader, pack):
    path = tmp_path / "file"
    path.write_bytes(pack(GOOD[reader]))
    assert reader(path) is not None
    path.write_bytes(pack(b"\xef\xbb\xbf" + GOOD[reader].replace(b"\n", b"\r\n")))
    assert reader(path) is not None


@readers
def test_missing(tmp_path, reader):
    with pytest.raises(FileNotFoundError):
        reader(tmp_path / "none")
    with pytest.raises(OSError, match="directory"):
        reader(tmp_path)


@readers
def test_damaged_gzip(tmp_path, reader):
    path = tmp_path / "file.gz"
    packed = gzip.compress(GOOD[reader])
    for bad in (packed[:-5], packed[:12], packed[:-8] + bytes(8), packed + b"more"):
        path.write_bytes(bad)
        with pytest.raises(FormatError, match="damaged gzip") as error:
            reader(path)
        assert error.value.path == str(path)


@readers
@pytest.mark.parametrize("bad", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"])
def test_bytes_that_are_not_utf8(tmp_path, reader, bad):
    path = tmp_path / "file"
    path.write_bytes(GOOD[reader] + bad)
    with pytest.raises(FormatError, match=r"not UTF-8|surrogate") as error:
        reader(path)
    assert (error.value.line, error.value.column) == (3, 1)


@pytest.mark.parametrize("template", [None, Template("U %x[0,0]\nB\nB:%x[0,0]\n")], ids=["attributes", "template"])
def test_odd_strings_in_models(tmp_path, template):
    labels = [*ODD_STRINGS[:10:2], "x"]
    y = [[labels[k % len(labels)] for k in range(len(ODD_STRINGS))]]
    X = [ODD_STRINGS] if template else [[[text] for text in ODD_STRINGS]]
    tagger = SequenceTagger(template=template, C=100.0, tol=1e-2).fit(X, y)
    tagger.save(tmp_path / "model.pw")
    loaded = partwise.load(tmp_path / "model.pw")
    expected = {f"U {text}" for text in ODD_STRINGS} | {f"B:{text}" for text in ODD_STRINGS[1:]}
    assert set(loaded.attributes_) == (expected if template else set(ODD_STRINGS))
    assert loaded.classes_.tolist() == sorted(labels)
    assert loaded.predict(X) == tagger.predict(X) == y
    assert loaded.unknown_rate_ == 0
