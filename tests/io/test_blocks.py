"""Blocks of a file contain its bytes, end between sentences, and arrive as soon as possible."""

import gzip
import os
import threading

import pytest

from partwise.io import (
    ConlluReader,
    FormatError,
    parse_columns,
    parse_conllu,
    parse_items,
    parse_svmlight,
    read_columns,
)
from partwise.io.blocks import after_blank_lines, after_empty_lines, after_lines, before_sentences, text_blocks

COLUMNS = "\ufeffa b\nc d\n\n\n \t\r\ne f\r\n\r\n\ufeffg h\n \ni j\nk l\nm n\n\no p".encode()
ITEMS = "\ufeffX\ta\tb:2\n \tc\n\n\r\nY\td\r\n\r\n\ufeffX\te\nY\tf\n\n\n".encode()
ROWS = "\ufeff1 1:1 3:2\n\n# nothing\n2 4:1\r\n1 2:3 # some\n2 1:1".encode()
WORD = "{}\t{}\t_\t_\t_\t_\t{}\tx\t_\t_{}"
CONLLU = (
    "\ufeff \n\r\n# one\n" + WORD.format(1, "a", 0, "\n") + WORD.format(2, "b", 1, "\n") + "\n\n \t\n"
    "# two\n" + WORD.format(1, "c", 0, "\r\n") + "\r\n\ufeff\n" + WORD.format(1, "d", 0, "\n") + "\n\n\n"
).encode()  # fmt: skip
SIZES = (1, 2, 7, 20, 1 << 20)


@pytest.fixture
def write(tmp_path):
    def to(data):
        path = tmp_path / "data"
        path.write_bytes(data)
        return path

    return to


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("data", "cut", "n"),
    [
        (COLUMNS, after_blank_lines, 5),
        (ITEMS, after_empty_lines, 3),
        (ROWS, after_lines, 6),
        (CONLLU, before_sentences, 3),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_blocks_are_the_file(data, cut, n, size, packed, write):
    path = write(gzip.compress(data) if packed else data)
    blocks = list(text_blocks(path, cut, size))
    assert b"".join(block.data for block in blocks) == data
    at = 0
    for block in blocks:
        assert block.line == 1 + data[:at].count(b"\n")
        at += len(block.data)
    assert len(blocks) == 1 if size > len(data) else len(blocks) > 1
    if size == 1:
        assert len(blocks) >= n


@pytest.mark.parametrize("size", SIZES)
def test_parsed_blocks_are_the_parsed_file(size, write):
    def blocks(data, cut):
        return text_blocks(write(data), cut, size)

    def lists(table):
        return [table[i] for i in range(len(table))]

    found = [s for b in blocks(COLUMNS, after_blank_lines) for s in lists(parse_columns(b.data, line=b.line))]
    assert found == lists(parse_columns(COLUMNS))
    assert found[2][0] == ("\ufeffg", "h")  # only at the start of a file would it be a byte order mark
    parts = [parse_items(b.data, line=b.line) for b in blocks(ITEMS, after_empty_lines)]
    assert tuple([s for part in parts for s in part[k]] for k in range(2)) == parse_items(ITEMS)
    parts = [parse_svmlight(b.data, n_features=4, line=b.line) for b in blocks(ROWS, after_lines)]
    X, y = parse_svmlight(ROWS)
    assert [row for some, _ in parts for row in some.toarray().tolist()] == X.toarray().tolist()
    assert [label for _, some in parts for label in some.tolist()] == y.tolist()
    sentences = [s for b in blocks(CONLLU, before_sentences) for s in parse_conllu(b.data, line=b.line)]
    assert [(s.lines, s.line) for s in sentences] == [(s.lines, s.line) for s in parse_conllu(CONLLU)]
    assert "".join(line for s in sentences for line in s.lines).encode() == CONLLU


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("data", "cut", "parse", "place"),
    [
        (COLUMNS + b"\n\nq r\ns", after_blank_lines, parse_columns, (":17:2", "1 column")),
        (COLUMNS + b"\n\nq r\ns t u", after_blank_lines, parse_columns, (":17:5", "3 columns")),
        (COLUMNS + b"\n\nq \xff", after_blank_lines, parse_columns, (":16:3", "UTF-8")),
        (COLUMNS + b"\n\n\xef\xbb\xbfq", after_blank_lines, parse_columns, (":16:3", "1 column")),
        (ITEMS + b"X\ta:b\n", after_empty_lines, parse_items, (":11:5", "not a number")),
        (ITEMS + b"X\ta\xff\n", after_empty_lines, parse_items, (":11:4", "UTF-8")),
        (ROWS + b"\n1 2:1 1:1\n", after_lines, parse_svmlight, (":7:7", "increase")),
        (ROWS + b"\n\xef\xbb\xbf1 2:1\n", after_lines, parse_svmlight, (":7:1", "label")),
        (CONLLU + b"1\ta\n\n", before_sentences, parse_conllu, (":17:4", "2 columns")),
        (CONLLU + b"\xff\n\n", before_sentences, parse_conllu, (":17:1", "UTF-8")),
    ],
    ids=[*(f"columns {k}" for k in range(4)), "items", "items, bytes", "rows", "rows, mark", "conllu", "conllu, bytes"],
)
def test_errors_have_their_place(data, cut, parse, place, size, write):
    path = write(data)
    errors = []
    for run in (lambda: parse(data, path), lambda: [one(b) for b in text_blocks(path, cut, size)]):
        seen = {"n_columns": 0}

        def one(block, seen=seen):
            options = {"n_columns": seen["n_columns"]} if parse is parse_columns else {}
            table = parse(block.data, path, line=block.line, **options)
            if options:
                seen["n_columns"] = table.n_columns

        with pytest.raises(FormatError) as error:
            run()
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    assert errors[0].startswith(f"{path}{place[0]}: ")
    assert place[1] in errors[0]


def test_sentences_that_are_longer_than_a_block(write):
    long = b"word tag\n" * 3000
    data = b"a b\n\n" + long + b"\n" + b"c d\n\n"
    blocks = [block.data for block in text_blocks(write(data), after_blank_lines, 100)]
    assert blocks in ([b"a b\n\n", long + b"\n", b"c d\n\n"], [b"a b\n\n", long + b"\nc d\n\n"])
    line = b"x" * 100_000
    assert [b.data for b in text_blocks(write(line + b"\n\n" + line), after_blank_lines, 100)] == [line + b"\n\n", line]


def test_damaged_gzip_files(write):
    packed = gzip.compress(COLUMNS * 50, mtime=0)
    for data in (packed[:-20], packed + b"no gzip", packed[:-6] + b"\0\0" + packed[-4:]):
        path = write(data)
        with pytest.raises(FormatError, match="damaged gzip file") as error:
            list(text_blocks(path, after_blank_lines, 50))
        assert error.value.path == str(path)
        with pytest.raises(FormatError, match="damaged gzip file"):
            read_columns(path)


@pytest.mark.skipif(os.name == "nt", reason="pipes do not say there whether they have something")
def test_a_pipe_is_answered_when_it_waits():
    read_end, write_end = os.pipe()
    got = []
    arrived = threading.Semaphore(0)

    def read():
        with os.fdopen(read_end, "rb") as file:
            for block in text_blocks(f"/dev/fd/{file.fileno()}", after_blank_lines, 1 << 20):
                got.append(block.data)
                arrived.release()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    with os.fdopen(write_end, "wb", buffering=0) as file:
        for k in range(3):
            file.write(b"a b\n")
            file.write(b"c %d\n\n" % k)
            assert arrived.acquire(timeout=20)
            assert b"".join(got).endswith(b"c %d\n\n" % k)
        file.write(b"the end\n")
    reader.join(20)
    assert got[-1] == b"the end\n"


def test_highly_compressed_gzip_files_in_blocks(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"a b\n\n" * 4_000_000, 9))  # 20 MB in 20 kB, without a long sentence
    assert sum(len(block.data) for block in text_blocks(path, after_blank_lines, 1 << 20)) == 20_000_000
    path.write_bytes(gzip.compress(b"a b\n\n" * 200_000 + b"a" * 20_000_000, 9))
    blocks = text_blocks(path, after_blank_lines, 1_000_000)
    assert next(blocks).data == b"a b\n\n" * 200_000
    with pytest.raises(FormatError, match="out of proportion") as error:
        next(blocks)
    assert error.value.line == 400_001


def test_sentences_of_a_highly_compressed_gzip_file(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress((WORD.format(1, "a", 0, "\n") + "\n").encode() * 1_000_000, 9))
    assert next(iter(ConlluReader(path))).forms == ["a"]
    with pytest.raises(FormatError, match="out of proportion"):
        ConlluReader(path).read()
