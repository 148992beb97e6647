"""CoNLL-U and CoNLL-X files are written as they were read, and malformed files are refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import conllu
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.io import (
    ConlluReader,
    FormatError,
    make_sentence,
    read_conllu,
    read_conllx,
    write_conllu,
)
from partwise.io.conllu import find_cycle

TEXT = (
    "# sent_id = 1\n# text = don't stop \u2014 now\n"
    "1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tdo\tdo\tAUX\tVBP\tMood=Imp\t3\taux\t3:aux\t_\n"
    "2\tn't\tnot\tPART\tRB\t\t3\tadvmod\t_\tSpaceAfter=No \n"
    "3\tstop\tstop\tVERB\tVB\t_\t0\troot\t_\t_\n"
    "3.1\t\u2014\t_\t_\t_\t_\t_\t_\t3:punct\t_\n"
    "4\tnow\tnow\tADV\tRB\t_\t3\tadvmod\t_\t_\n"
    "\n"
    "1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_\n"
    "\n"
)


def put(folder: Path, text: str | bytes, name: str = "a.conllu") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT,
        "\n\n" + TEXT.replace("\n\n", "\n\n\n \n") + "\n\n",
        TEXT.rstrip("\n"),
        "",
        "\n\n",
    ],
    ids=["plain", "crlf", "bom", "blanks", "no-end", "empty", "blank"],
)
def test_same_bytes(tmp_path, text):
    path = put(tmp_path, text)
    reader = ConlluReader(path)
    bank = list(reader)
    out = tmp_path / "b.conllu"
    write_conllu(out, bank)
    assert out.read_bytes() + "".join(reader.tail).encode() == text.encode()
    if bank:
        assert [len(sentence) for sentence in bank] == [4, 1]
        assert bank[0].heads == [3, 3, 0, 3]
        assert bank[0].forms == ["do", "n't", "stop", "now"]
        assert bank[0].line_of(4) == 1 + text.split("4\tnow")[0].count("\n")


def test_gzip_in_and_out(tmp_path):
    path = put(tmp_path, gzip.compress(TEXT.encode()), "a.conllu.gz")
    write_conllu(tmp_path / "b.gz", read_conllu(path))
    assert gzip.decompress((tmp_path / "b.gz").read_bytes()).decode() == TEXT
    with pytest.raises(FormatError, match="damaged gzip"):
        read_conllu(put(tmp_path, path.read_bytes()[:-9], "cut.gz"))


def test_new_tree_changes_its_columns_only(tmp_path):
    sentence = read_conllu(put(tmp_path, TEXT))[0]
    other = sentence.with_tree([2, 0, 2, 3], ["a", "b", "c", "d"])
    before, after = "".join(sentence.lines).split("\n"), "".join(other.lines).split("\n")
    assert before[:3] == after[:3]
    assert before[6] == after[6]  # the line of the empty node
    assert after[3] == "1\tdo\tdo\tAUX\tVBP\tMood=Imp\t2\ta\t_\t_"
    assert after[4] == "2\tn't\tnot\tPART\tRB\t\t0\tb\t_\tSpaceAfter=No "
    assert sentence.heads == [3, 3, 0, 3]
    assert other.heads == [2, 0, 2, 3]
    with pytest.raises(ValueError, match="1 values of head for a sentence of 4"):
        sentence.with_tree([0])


def test_conllu_package_reads_what_we_write(tmp_path):
    bank = read_conllu(put(tmp_path, TEXT))
    write_conllu(tmp_path / "b", [s.with_tree(s.heads, s.deprels) for s in bank])
    theirs = conllu.parse((tmp_path / "b").read_text())
    for sentence, other in zip(bank, theirs, strict=True):
        words = [token for token in other if isinstance(token["id"], int)]
        assert [token["head"] for token in words] == sentence.heads
        assert [token["form"] for token in words] == sentence.forms
        assert [token["deprel"] for token in words] == sentence.deprels


LINE = "{}\tw\t_\t_\t_\t_\t{}\tx\t_\t_\n"
BAD = {
    "columns": ("1\tw\t_\n", 1, "3 columns where 10"),
    "spaces": ("1 w _ _ _ _ 0 x _ _\n", 1, "spaces instead of tabs"),
    "duplicate": (LINE.format(1, 0) + LINE.format(1, 0), 2, "duplicate id 1 where 2"),
    "gap": (LINE.format(1, 0) + LINE.format(3, 1), 2, "id 3 where 2"),
    "no id": (LINE.format("x", 0), 1, "'x' is not an id"),
    "superscript": (LINE.format("\u00b2", 0), 1, "is not an id"),
    "head range": (LINE.format(1, 0) + LINE.format(2, 3), 2, "out of range: there are 2 words"),
    "head text": (LINE.format(1, "x"), 1, "is not a number"),
    "negative": (LINE.format(1, "-1"), 1, "is not a number"),
    "endless id": (LINE.format("1" * 5000, 0), 1, "is not an id"),
    "endless span": (LINE.format("1-" + "1" * 5000, 0), 1, "is not an id"),
    "endless head": (LINE.format(1, "1" * 5000), 1, "is not a number"),
    "half a tree": (LINE.format(1, 0) + LINE.format(2, "_"), 2, "is not a number"),
    "self": (LINE.format(1, 0) + LINE.format(2, 2), 2, "cycle through word 2"),
    "cycle": (LINE.format(1, 2) + LINE.format(2, 3) + LINE.format(3, 2) + LINE.format(4, 0), 2, "cycle through word 2"),
    "span": ("1-3" + LINE.format("", "_") + LINE.format(1, 0), 2, "ends at word 3 of 1"),
    "span begin": ("2-3" + LINE.format("", "_") + LINE.format(1, 0), 1, "does not begin at the next word"),
    "empty node": ("2.1" + LINE.format("", "_") + LINE.format(1, 0), 1, "empty node 2.1 where 0.1"),
    "no words": ("# text =\n", 1, "without words"),
}


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("1\tw\t_\n", 6),  # behind the last column
        (LINE.format(1, 0).replace("\n", "\tmore\n"), 21),
        (LINE.format(1, "x"), 13),
        (LINE.format(1, 5), 13),
        (LINE.format(1, 1).replace("w", "word"), 16),
    ],
)
def test_errors_have_a_column(tmp_path, text, column):
    with pytest.raises(FormatError) as caught:
        read_conllu(put(tmp_path, text + "\n"))
    assert (caught.value.line, caught.value.column) == (1, column)
    line = text.splitlines()[0]
    assert line[column - 1 :].split("\t")[0] in ("", "more", "x", "5", "1")


@pytest.mark.parametrize("name", list(BAD))
def test_strict_says_where_lenient_counts(tmp_path, name):
    text, line, message = BAD[name]
    path = put(tmp_path, TEXT + text + "\n" + TEXT)
    place = f"{path}:{TEXT.count(chr(10)) + line}"
    with pytest.raises(FormatError, match=message) as caught:
        read_conllu(path)
    assert str(caught.value).startswith(place + ":")
    assert (caught.value.column is None) == (name == "no words")
    bank = read_conllu(path, strict=False)
    assert (len(bank), bank.skipped, len(bank.errors)) == (4, 1, 1)
    assert message.split()[0] in str(bank.errors[0])


def test_not_utf8(tmp_path):
    path = put(tmp_path, TEXT.encode() + b"1\tc\xe9\t_\t_\t_\t_\t0\tx\t_\t_\n\n" + TEXT.encode())
    with pytest.raises(FormatError, match=rf"{path.name}:12:4: not UTF-8"):
        read_conllu(path)
    bank = read_conllu(path, strict=False)
    assert (len(bank), bank.skipped) == (4, 1)


def test_conllx_has_words_only(tmp_path):
    with pytest.raises(FormatError, match="'1-2' is not an id"):
        read_conllx(put(tmp_path, TEXT))
    text = "1\ta\t_\tn\tn\t_\t0\tROOT\t0\tROOT\n\n"
    other = read_conllx(put(tmp_path, text))[0].with_tree([0])
    assert other.lines[0] == "1\ta\t_\tn\tn\t_\t0\tROOT\t_\t_\n"
    with pytest.raises(ValueError, match="dialect"):
        ConlluReader("x", dialect="conll")


def test_a_failed_write_leaves_nothing(tmp_path):
    def broken():
        yield from read_conllu(put(tmp_path, TEXT))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_conllu(tmp_path / "out", broken())
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_written_is_refused():
    sentence = make_sentence([("a", "a", "X"), ("b",)], [0, 1], ["x", "y"])
    for heads, deprels, message in [
        ([0, 3], None, "head 3 of word 2 is out of range"),
        ([0, -1], None, "head -1 of word 2 is out of range"),
        ([2, 1], None, "cycle through word 1"),
        ([0, 1], ["x", "y\tz"], "tab or a line end"),
        ([0, 1], ["x", "y\n"], "tab or a line end"),
    ]:
        with pytest.raises(ValueError, match=message):
            sentence.with_tree(heads, deprels)
    for values in (["a\t", "b"], ["a", "b\r"]):
        with pytest.raises(ValueError, match="tab or a line end"):
            sentence.with_misc(values)
    for words, heads, deprels, comments, message in [
        ([("a\nb",)], [0], ["x"], (), "tab or a line end"),
        ([("a",)], [0], ["x\t"], (), "tab or a line end"),
        ([("a",), ("b",)], [0], None, (), "1 heads for a sentence of 2"),
        ([("a",), ("b",)], [0, 1], ["x"], (), "1 deprels for a sentence of 2"),
        ([("a",)], [0], ["x"], ["a\nb"], "a comment has a line end"),
    ]:
        with pytest.raises(ValueError, match=message):
            make_sentence(words, heads, deprels, comments)


def test_words_without_entries_keep_a_blank_last_column():
    sentence = make_sentence(["a", "b"]).with_entries([[], ["Probability=0.5"]])
    assert sentence.column("misc") == ["_", "Probability=0.5"]


def test_byte_order_mark_is_not_part_of_a_column(tmp_path):
    text = LINE.format(1, 0) + "\n"
    assert read_conllu(put(tmp_path, "\ufeff" + text))[0].column("id") == ["1"]
    assert read_conllu(put(tmp_path, "\ufeff# x\n" + text))[0].comments == ["# x"]


def test_a_reader_restarts_its_counts(tmp_path):
    reader = ConlluReader(put(tmp_path, LINE.format(1, 7) + "\n" + TEXT), strict=False)
    for _ in range(2):
        assert len(list(reader)) == 2
        assert (reader.skipped, len(reader.errors)) == (1, 1)


def test_without_a_tree():
    sentence = make_sentence([("a", "a", "X"), ("b",)])
    assert sentence.heads == []
    assert sentence.column("upos") == ["X", "_"]
    assert make_sentence(["the", "dog"], [2, 0]).forms == ["the", "dog"]
    assert sentence.with_tree([0, 1]).heads == [0, 1]


@given(st.integers(1, 7).flatmap(lambda n: st.lists(st.integers(0, n), min_size=n, max_size=n)))
def test_cycles_against_following_heads(heads):
    n = len(heads)

    def reaches_root(word: int) -> bool:
        for _ in range(n + 1):
            word = heads[word - 1] if word else 0
        return word == 0

    word = find_cycle(heads)
    assert (word == 0) == all(map(reaches_root, range(1, n + 1)))
    if word:  # report words on a cycle, not words that only lead to one
        other = heads[word - 1]
        for _ in range(n):
            if other == word:
                break
            other = heads[other - 1]
        assert other == word


FIELD = st.text(st.sampled_from("a_1.-0\u00e9 #"), max_size=3)
LINES = st.one_of(
    st.tuples(st.sampled_from("123"), FIELD, FIELD, FIELD, FIELD, FIELD, st.sampled_from("0123_"), FIELD, FIELD, FIELD),
    st.lists(FIELD, max_size=11),
).map("\t".join)


@given(st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\n\n"])), max_size=8))
def test_any_text_is_refused_or_kept(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("any")
    data = "".join(line + end for line, end in lines).encode()
    path = folder / "a"
    path.write_bytes(data)
    lenient = read_conllu(path, strict=False)
    if lenient.skipped:
        with pytest.raises(FormatError) as caught:
            read_conllu(path)
        assert str(caught.value) == str(lenient.errors[0])
        assert 1 <= caught.value.line <= data.count(b"\n") + 1
        return
    reader = ConlluReader(path)
    bank = list(reader)
    write_conllu(folder / "b", bank)
    assert (folder / "b").read_bytes() + "".join(reader.tail).encode() == data
    for sentence in bank:
        assert find_cycle(sentence.heads) == 0
        assert all(len(fields) == 10 for fields in sentence.fields())


@pytest.mark.parametrize("folder", ["ud-english-ewt", "ud-basque-bdt", "conll2007-spanish"])
def test_real_files_byte_for_byte(data_dir, tmp_path, folder):
    files = sorted((data_dir / folder).glob("*.gz"))
    if not files:
        pytest.skip(f"no {folder}")
    for path in files:
        bank = read_conllu(path, dialect="conllx" if "spanish" in folder else "conllu")
        write_conllu(tmp_path / "out", bank)
        with gzip.open(path) as file:
            assert (tmp_path / "out").read_bytes() == file.read()
