"""Files of columns: what is read, what is refused and where, and what is the same after writing and reading."""

import gzip
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.odd_strings import ODD_STRINGS
from partwise.io import FormatError, Sentences, parse_columns, read_columns, write_columns

TEXT = b"He PRP B-NP\nran\tVBD  B-VP\n\n\nWe PRP B-NP\n"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_sentences(tmp_path, pack, ending):
    path = tmp_path / "text"
    path.write_bytes(pack(TEXT.replace(b"\n", ending)))
    found = read_columns(path)
    assert (len(found), found.n_columns, found.n_tokens, found.lengths.tolist()) == (2, 3, 3, [2, 1])
    assert [found.column(j) for j in range(3)] == [
        [["He", "ran"], ["We"]],
        [["PRP", "VBD"], ["PRP"]],
        [["B-NP", "B-VP"], ["B-NP"]],
    ]
    assert found.column(-1) == found.column(2)
    assert found[1] == [("We", "PRP", "B-NP")]
    assert list(found.without(-1)) == [[("He", "PRP"), ("ran", "VBD")], [("We", "PRP")]]
    assert list(found.take(np.array([1, 0, 1])).without(1).without(1)) == [["We"], ["He", "ran"], ["We"]]
    assert list(pickle.loads(pickle.dumps(found))) == list(found)


def test_nothing():
    for data in (b"", b"\n\n", b"\xef\xbb\xbf", b" \t \n"):
        found = parse_columns(data)
        assert (len(found), found.n_columns, found.n_tokens) == (0, 0, 0)
        assert list(found) == []


def test_last_line_may_be_cut():
    assert list(parse_columns(b"a\n\nb\nc")) == [["a"], ["b", "c"]]


@pytest.mark.parametrize("separator", [None, "\t", " "])
def test_lines_of_white_space_are_blank(separator):
    assert list(parse_columns(b"a\n\t\nb\n \t\r\nc\n", separator=separator)) == [["a"], ["b"], ["c"]]


def test_a_separator_keeps_spaces():
    assert list(parse_columns(b"New York\tB-LOC\n", separator="\t")) == [[("New York", "B-LOC")]]


def test_one_byte_order_mark_is_dropped():
    assert list(parse_columns(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n")) == [["a", "\ufeffb"]]
    assert list(parse_columns(b"\xef\xbb\xbf\xef\xbb\xbfa\n")) == [["\ufeffa"]]


@pytest.mark.parametrize(
    ("data", "separator", "line", "column", "message"),
    [
        (b"a X\n\nb\n", None, 3, 2, "1 column where the lines before have 2"),
        (b"a X\nb Y  Z W\n", None, 2, 6, "4 columns where the lines before have 2"),
        (b"a X\r\nb\r\n", None, 2, 2, "1 column"),
        ("\u00e9\u00e9 X\n\u00e9\u00e9 X Y".encode(), None, 2, 6, "3 columns"),
        (b"a\tX\nb\t\n", "\t", 2, 3, "empty field"),
        (b"a\t\tX\n", "\t", 1, 3, "empty field"),
        (b"\tX\n", "\t", 1, 1, "empty field"),
        (b"a  b\n", " ", 1, 3, "empty field"),
        (b"ab\n\xc3\xa9\xff c\n", None, 2, 2, "not UTF-8 (byte 0xFF)"),
        (b"a\xc0\x80", None, 1, 2, "not UTF-8 (byte 0xC0)"),  # NUL in two bytes, which UTF-8 forbids
        (b"a\xed\xa0\x80", None, 1, 2, "a lone surrogate"),
        (b"a\n\xf4\x90\x80\x80", None, 2, 1, "not UTF-8"),  # above U+10FFFF
        (b"a\xe2\x82", None, 1, 2, "not UTF-8"),  # an incomplete character
        (b"\x80", None, 1, 1, "not UTF-8"),
    ],
)
def test_malformed(tmp_path, data, separator, line, column, message):
    path = tmp_path / "text"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=re.escape(message)) as error:
        read_columns(path, separator)
    found = error.value
    assert (found.path, found.line, found.column) == (str(path), line, column)
    assert str(found) == f"{path}:{line}:{column}: {found.message}"
    copy = pickle.loads(pickle.dumps(found))
    assert (str(copy), copy.line) == (str(found), line)


def test_unknown_separators():
    with pytest.raises(ValueError, match="tab or a space"):
        parse_columns(b"a,b\n", separator=",")


def test_lists():
    assert list(Sentences.from_lists([["a", "b"], [], ["c"]])) == [["a", "b"], [], ["c"]]
    assert list(Sentences.from_lists([[("a", "X"), ["b", ""]]])) == [[("a", "X"), ("b", "")]]
    assert len(Sentences.from_lists([])) == 0


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([["a", 1]], "sentence 0, token 1: expected a string"),
        ([["a"], ["b", ("c", "d")]], "sentence 1, token 1 has 2 columns, expected 1"),
        ([[()]], "at least one"),
        ([["a"], ["\ud800"]], "sentence 1, token 0: .*lone surrogate"),
        (["abc"], "sentence 0 must be a list"),
    ],
)
def test_bad_lists(sentences, message):
    with pytest.raises(ValueError, match=message):
        Sentences.from_lists(sentences)


def test_out_of_range():
    table = Sentences.from_lists([["a"]])
    with pytest.raises(ValueError, match="no column 1"):
        table.column(1)
    with pytest.raises(ValueError, match="no sentence 3"):
        table.take(np.array([3]))
    with pytest.raises(IndexError):
        table[1]


def writable(text, last):
    return bool(text) and not set(text) & {"\t", "\n"} and not (last and text.endswith("\r"))


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_odd_strings_come_back(tmp_path, name):
    path = tmp_path / name
    first = [text for text in ODD_STRINGS if writable(text, last=False)]
    last = [text for text in ODD_STRINGS if writable(text, last=True)]
    assert (len(first), len(last)) == (200, 198)  # a last column cannot end in a carriage return
    for words, tags in ((first, ["X"] * len(first)), (["X"] * len(last), last)):
        sentences = [[pair] for pair in zip(words, tags, strict=True)] + [list(zip(words, tags, strict=True))]
        write_columns(path, sentences)
        assert list(read_columns(path, "\t")) == sentences
    write_columns(path, [[word] for word in last])
    assert list(read_columns(path, "\t")) == [[word] for word in last]


def test_a_byte_order_mark_that_is_a_word(tmp_path):
    path = tmp_path / "text"
    for sentences in ([["\ufeff"]], [["\ufeffa", "b"]]):
        write_columns(path, sentences)
        assert list(read_columns(path)) == sentences


@pytest.mark.parametrize("text", ["", "a\tb", "a\nb", "\r\n", "a\r", "\ud800", " "])
def test_unwritable_columns(tmp_path, text):
    path = tmp_path / "text"
    with pytest.raises(ValueError):
        write_columns(path, [["x", text]])
    assert list(tmp_path.iterdir()) == []


def test_empty_sentences_cannot_be_written(tmp_path):
    with pytest.raises(ValueError, match="sentence 1 has no tokens"):
        write_columns(tmp_path / "text", [["a"], []])


@given(st.binary(max_size=60), st.sampled_from([None, "\t", " "]))
def test_any_bytes_are_read_or_refused(data, separator):
    try:
        found = parse_columns(data, separator=separator)
    except FormatError as refusal:
        lines = refusal.line
    else:
        lines = 1
        assert sum(map(len, found)) == found.n_tokens
        text = data.decode().removeprefix("\ufeff")
        if separator is None:
            plain = [line.removesuffix("\r") for line in text.split("\n")]
            fields = [re.split("[ \t]+", line.strip(" \t")) for line in plain if line.strip(" \t")]
            if "\r" not in text:
                flat = [token if isinstance(token, tuple) else (token,) for row in found for token in row]
                assert [list(token) for token in flat] == fields
    assert 1 <= lines <= data.count(b"\n") + 1


def test_reading_is_like_splitting():
    rng = np.random.default_rng(0)
    words = ["a", "bc", "\u00e9", "\u4e2d\u6587", "d:e", "\U0001f600"]
    sentences = [[tuple(rng.choice(words, 3)) for _ in range(rng.integers(1, 6))] for _ in range(50)]
    text = "".join("".join(" ".join(token) + "\n" for token in row) + "\n" for row in sentences)
    assert list(parse_columns(text.encode())) == [[tuple(map(str, token)) for token in row] for row in sentences]
