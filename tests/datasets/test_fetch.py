"""Data sets by name: digests are checked however a file arrived, and failed downloads leave no files."""

import gzip
import hashlib
import http.server
import os
import threading

import pytest

from partwise import datasets
from partwise.datasets import DATA_SETS, DataFile, DataSet, DigestError, brown, check, fetch, wnut17
from partwise.datasets import registry as table

needs_data = pytest.mark.skipif(not os.environ.get("PARTWISE_DATA"), reason="PARTWISE_DATA is not set")
TEXT = b"some text\n" * 100


@pytest.fixture
def server(tmp_path):
    """Start a local server with one plain and one gzipped file."""
    root = tmp_path / "served"
    root.mkdir()
    (root / "plain.txt").write_bytes(TEXT)
    (root / "packed.txt.gz").write_bytes(gzip.compress(TEXT))

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(root))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture
def listed(monkeypatch):
    """Return a function that adds a data set to the table."""

    def add(*files):
        monkeypatch.setitem(table.DATA_SETS, "made", DataSet("made", "", "", "", files))

    return add


def digest(content):
    return hashlib.sha256(content).hexdigest()


def test_download_checks_the_unpacked_bytes(server, listed, tmp_path):
    listed(
        DataFile("plain.txt", digest(TEXT), f"{server}/plain.txt"),
        DataFile("packed.txt", digest(TEXT), f"{server}/packed.txt.gz"),
    )
    assert check("made", tmp_path) == {"plain.txt": "missing", "packed.txt": "missing"}
    paths = fetch("made", tmp_path)
    assert [path.name for path in paths] == ["plain.txt", "packed.txt.gz"]
    assert check("made", tmp_path) == {"plain.txt": "ok", "packed.txt": "ok"}
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["packed.txt.gz", "plain.txt"]


def test_what_is_there_is_not_downloaded_again(listed, tmp_path):
    listed(DataFile("plain.txt", digest(TEXT), "http://127.0.0.1:1/nobody-listens"))
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "plain.txt.gz").write_bytes(gzip.compress(TEXT))
    assert fetch("made", tmp_path) == [tmp_path / "made" / "plain.txt.gz"]


def test_another_file_is_refused(server, listed, tmp_path):
    folder = tmp_path / "data"
    listed(DataFile("plain.txt", digest(b"other"), f"{server}/plain.txt"))
    with pytest.raises(DigestError, match="not the expected file"):
        fetch("made", folder)
    assert not folder.exists()
    (folder / "made").mkdir(parents=True)
    (folder / "made" / "plain.txt").write_bytes(TEXT)
    assert check("made", folder) == {"plain.txt": "changed"}
    with pytest.raises(DigestError):
        fetch("made", folder)


def test_failed_downloads_leave_nothing(server, listed, tmp_path):
    folder = tmp_path / "data"
    listed(DataFile("plain.txt", digest(TEXT), f"{server}/absent.txt"))
    with pytest.raises(OSError, match="404"):
        fetch("made", folder)
    assert not folder.exists()
    (folder / "made").mkdir(parents=True)
    with pytest.raises(OSError, match="404"):
        fetch("made", folder)
    assert list(folder.rglob("*")) == [folder / "made"]


def test_no_address(listed, tmp_path):
    listed(DataFile("plain.txt", digest(TEXT)))
    with pytest.raises(FileNotFoundError, match="by hand"):
        fetch("made", tmp_path)


def test_damaged_gzip_is_a_change(listed, tmp_path):
    listed(DataFile("plain.txt", digest(TEXT)))
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "plain.txt.gz").write_bytes(gzip.compress(TEXT)[:-9])
    assert check("made", tmp_path) == {"plain.txt": "changed"}


def test_unknown_name():
    with pytest.raises(ValueError, match="conll2000"):
        fetch("conll-2000")


def test_table_is_sound():
    for item in DATA_SETS.values():
        assert item.summary
        assert item.terms
        for file in item.files:
            assert len(bytes.fromhex(file.sha256)) == 32
            assert not file.name.endswith(".gz")
        for loader in item.loader.split(", "):
            assert callable(getattr(datasets, loader))


@needs_data
@pytest.mark.parametrize("name", sorted(DATA_SETS))
def test_local_files_have_the_pinned_digests(name):
    assert set(check(name).values()) == {"ok"}


def test_small_files_of_words(tmp_path):
    (tmp_path / "wnut17").mkdir()
    for part in ("train", "test"):
        (tmp_path / "wnut17" / f"{part}.conll").write_text("New\tB-location\nYork\tI-location\n\nhi\tO\n")
    data = wnut17(tmp_path)
    assert data.X_train == [["New", "York"], ["hi"]]
    assert data.y_test == [["B-location", "I-location"], ["O"]]
    (tmp_path / "brown").mkdir()
    text = "".join(f"# d{k}\nA/at 1/2/cd\n" for k in range(10))
    (tmp_path / "brown" / "brown.txt").write_text(text)
    data = brown(tmp_path)
    assert (len(data.X_train), len(data.X_test)) == (9, 1)
    assert data.X_test == [["A", "1/2"]]
    assert data.y_test == [["at", "cd"]]
    (tmp_path / "brown" / "brown.txt").write_text("# d\nword\n")
    with pytest.raises(ValueError, match="line 2"):
        brown(tmp_path)


@needs_data
def test_real_sets_have_their_sizes():
    data = wnut17()
    assert (len(data.X_train), len(data.X_test)) == (3394, 1287)
    assert len(wnut17(test="dev").X_test) == 1009
    assert len(datasets.treebank_sample()) == 3914
    spanish = datasets.conll2007_spanish()
    assert (len(spanish.X_train), len(spanish.X_test)) == (2949, 563)
    X_train, y_train, X_test, y_test = datasets.a9a()
    assert (X_train.shape, X_test.shape) == ((32561, 123), (16281, 123))
    assert set(y_train) == set(y_test) == {-1, 1}


def test_treebanks(tmp_path):
    bank = datasets.make_treebank(6)
    (tmp_path / "ud-english-ewt").mkdir()
    for part, some in (("train", bank[:4]), ("test", bank[4:])):
        (tmp_path / "ud-english-ewt" / f"{part}.conllu").write_text(some.conllu())
    data = datasets.universal_dependencies(data=tmp_path)
    assert data.y_train == bank.heads[:4]
    assert [sentence.forms for sentence in data.X_test] == bank.words[4:]
    with pytest.raises(ValueError, match="'test' or 'dev'"):
        datasets.universal_dependencies(data=tmp_path, test="train")
    (tmp_path / "conll2007-spanish").mkdir()
    for part in ("train", "test"):
        (tmp_path / "conll2007-spanish" / f"esp.{part}").write_text(bank.conllu())
    assert datasets.conll2007_spanish(tmp_path).y_test == bank.heads
    (tmp_path / "treebank-sample").mkdir()
    (tmp_path / "treebank-sample" / "wsj_sample.mrg").write_text(bank.bracketed())
    assert datasets.treebank_sample(tmp_path) == bank.trees
