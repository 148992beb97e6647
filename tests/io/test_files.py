"""Files are read whole, and written whole or not at all."""

import gzip
import io
import os
import subprocess
import sys
import time
import tracemalloc

import pytest

from partwise.features import Template
from partwise.features.presets import read_clusters
from partwise.io import (
    FormatError,
    atomic_write,
    read_bytes,
    read_columns,
    read_conllu,
    read_items,
    read_svmlight,
    read_text,
    read_trees,
    unpack_limit,
)
from partwise.io.files import UNPACKED, clear_left


class Stream:
    def __init__(self, data=b""):
        self.buffer = io.BytesIO(data)


def test_plain_and_packed(tmp_path):
    for name, data in (("a", b"text"), ("b.gz", b"text"), ("c", gzip.compress(b"text")), ("d", b""), ("e", b"\x1f")):
        (tmp_path / name).write_bytes(data)
        assert read_bytes(tmp_path / name) == (b"text" if len(data) > 1 else data)


def test_standard_streams(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stream(gzip.compress(b"in")))
    assert read_bytes("-") == b"in"
    out = Stream()
    monkeypatch.setattr(sys, "stdout", out)
    with atomic_write("-") as file:
        file.write(b"out")
    with atomic_write("-", "w") as file:
        file.write("\u00e9\n")
    assert out.buffer.getvalue() == b"out\xc3\xa9\n"


def test_every_damage_of_a_gzip_file_is_seen(tmp_path):
    path = tmp_path / "a.gz"
    text = b"He PRP B-NP\nran VBD B-VP\n" * 4
    good = bytearray(gzip.compress(text, mtime=0))
    for size in range(2, len(good)):
        path.write_bytes(good[:size])
        with pytest.raises(FormatError, match="damaged gzip") as error:
            read_bytes(path)
        assert error.value.path == str(path)
    refused = 0
    for place in range(10, len(good)):  # the first 10 bytes, the gzip header, do not affect the content
        bad = good.copy()
        bad[place] ^= 0x10
        path.write_bytes(bad)
        try:
            assert read_bytes(path) == text  # unused bits of the last byte may change
        except FormatError:
            refused += 1
    assert refused >= len(good) - 12
    path.write_bytes(good + b"rest")
    with pytest.raises(FormatError):
        read_bytes(path)


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """A gzip file of 21 kB that unpacks to 21 MB of sentences."""
    path = tmp_path_factory.mktemp("bombs") / "bomb.gz"
    path.write_bytes(gzip.compress(b"1\ta\t_\t_\t_\t_\t0\tx\t_\t_\n\n" * 1_000_000, 9))
    return path


READERS = {
    "bytes": read_bytes,
    "text": read_text,
    "columns": read_columns,
    "items": read_items,
    "svmlight": read_svmlight,
    "conllu": read_conllu,
    "trees": read_trees,
    "template": Template.from_file,
    "clusters": read_clusters,
}


@pytest.mark.parametrize("name", READERS)
def test_gzip_out_of_proportion_is_refused_before_it_fills_the_memory(name, bomb):
    with pytest.raises(FormatError, match=r"unpack to more than 1,572,864, out of proportion.*--max-unpacked.*io\."):
        READERS[name](bomb)


def test_memory_of_a_highly_compressed_file(bomb):
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="out of proportion"):
            read_bytes(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2 * UNPACKED
    finally:
        tracemalloc.stop()


def test_gzip_out_of_proportion_can_be_asked_for(bomb):
    size = 21_000_000
    for limit in (None, size):
        with unpack_limit(limit):
            assert len(read_bytes(bomb)) == size
    with unpack_limit(size - 1), pytest.raises(FormatError, match=f"more than {size - 1:,}"):
        read_bytes(bomb)
    with pytest.raises(FormatError):
        read_bytes(bomb)
    for wrong in (-1, 1.5, True, "1"):
        with pytest.raises(ValueError, match="number of bytes"), unpack_limit(wrong):
            pass


def test_gzip_in_proportion_may_be_large(tmp_path, rng):
    data = rng.bytes(UNPACKED + 1)
    (tmp_path / "a.gz").write_bytes(gzip.compress(data, 1))
    assert read_bytes(tmp_path / "a.gz") == data


def test_gzip_out_of_proportion_from_a_pipe(bomb, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stream(bomb.read_bytes()))
    with pytest.raises(FormatError, match="out of proportion"):
        read_bytes("-")


def test_many_gzip_members_take_linear_time(tmp_path):
    """Many gzip members are read in linear time; the rest of the file was once copied for each."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"", mtime=0) * 50_000 + gzip.compress(b"text"))
    begin = time.process_time()
    assert read_bytes(tmp_path / "a.gz") == b"text"
    assert time.process_time() - begin < 4


def test_text_says_where_it_is_wrong(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfab\r\n\xc3\xa9c")
    assert read_text(path) == "ab\r\n\u00e9c"
    for data, line, column in ((b"a\n\xc3\xa9\xff", 2, 2), (b"\xff", 1, 1), (b"a\xed\xa0\x80", 1, 2)):
        path.write_bytes(data)
        with pytest.raises(FormatError) as error:
            read_text(path)
        assert (error.value.line, error.value.column) == (line, column)


def test_missing_files_are_operating_system_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "none")
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "no" / "folder"):
        pass


@pytest.mark.parametrize("mode", ["wb", "w"])
@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_written(tmp_path, mode, name):
    path = tmp_path / name
    path.write_bytes(b"before")
    with atomic_write(path, mode) as file:
        file.write("x\u2028y\n" if mode == "w" else "x\u2028y\n".encode())
        assert path.read_bytes() == b"before"
    assert read_bytes(path) == "x\u2028y\n".encode()
    assert path.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    assert os.listdir(tmp_path) == [name]


def test_packed_bytes_depend_on_the_content_alone(tmp_path):
    for name in ("a.gz", "b.gz"):
        with atomic_write(tmp_path / name) as file:
            file.write(b"text")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(tmp_path, error):
    path = tmp_path / "a"
    with pytest.raises(error), atomic_write(path) as file:
        file.write(b"half")
        raise error
    assert os.listdir(tmp_path) == []
    path.write_bytes(b"before")
    with pytest.raises(error), atomic_write(path, "w") as file:
        file.write("half")
        raise error
    assert (os.listdir(tmp_path), path.read_bytes()) == (["a"], b"before")


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "no folder" / "out.txt"
    with pytest.raises(FileNotFoundError) as caught, atomic_write(path):
        pass
    assert caught.value.filename == str(path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_an_error():
    with pytest.raises(OSError, match="space"), atomic_write("/dev/full") as file:
        file.write(b"text")
    assert os.path.exists("/dev/full")


@pytest.mark.skipif(not hasattr(os, "umask"), reason="no permissions")
def test_permissions_and_links(tmp_path):
    before = os.umask(0o027)
    try:
        (tmp_path / "target").write_bytes(b"")
        (tmp_path / "link").symlink_to("target")
        with atomic_write(tmp_path / "link") as file:
            file.write(b"through")
    finally:
        os.umask(before)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"through"
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o640


def test_unknown_modes(tmp_path):
    with pytest.raises(ValueError, match="mode"), atomic_write(tmp_path / "a", "ab"):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
class TestLeftovers:
    """The next write removes temporary files of processes that were killed."""

    KILLED = (
        "import os, signal, sys\n"
        "from partwise.io import atomic_write\n"
        "with atomic_write(sys.argv[1]) as file:\n"
        "    file.write(b'half')\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )

    def test_the_next_write_removes_them(self, tmp_path):
        path = tmp_path / "out"
        for _ in range(2):
            subprocess.run([sys.executable, "-c", self.KILLED, str(path)])
            assert len(os.listdir(tmp_path)) == 1  # the second run removed the first one's file
        others = [".out.tmp", ".out.0123456789ab.txt", ".other.0123456789ab.tmp", ".out.x.0123456789ab.tmp"]
        for name in others:
            (tmp_path / name).touch()
        with atomic_write(path) as file:
            file.write(b"whole")
        assert sorted(os.listdir(tmp_path)) == sorted(["out", *others])

    def test_files_being_written_are_kept(self, tmp_path):
        path = tmp_path / "out"
        with atomic_write(path) as first:
            first.write(b"first")
            with atomic_write(path) as second:
                second.write(b"second")
            assert path.read_bytes() == b"second"
        assert (path.read_bytes(), os.listdir(tmp_path)) == (b"first", ["out"])

    def test_folders_of_partitions(self, tmp_path):
        left = tmp_path / ".parts.0123456789ab.tmp"
        left.mkdir()
        (left / "batch000000.pwb").touch()
        clear_left(str(tmp_path / "parts"))
        assert os.listdir(tmp_path) == []
