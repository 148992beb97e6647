"""Plain text as input of taggers that use words only, and predictions written as CoNLL-U."""

import json

import pytest

import partwise
from partwise.io import read_conllu

TEXT = "the old baker saw her\n\n  a sailor\tslept .\r\nthe cat sat on the mat"
WORDS = [line.split() for line in TEXT.split("\n") if line.strip()]


@pytest.fixture(scope="module")
def taggers(cli, files, tmp_path_factory):
    """Train taggers of words only (on CoNLL-U and on columns) and a tagger of words and parts of speech."""
    folder = tmp_path_factory.mktemp("models")
    bank = files / "treebank"
    cli("train", "tag", bank / "train.conllu", "-o", folder / "conllu.pw", "-q", "--tol", "0.1")
    words = folder / "words.txt"
    rows = [line.split() for line in (bank / "train.txt").read_text().splitlines()]
    words.write_text("".join(f"{row[0]} {row[1]}\n" if row else "\n" for row in rows))
    cli("train", "tag", words, "-o", folder / "columns.pw", "-q", "--tol", "0.1")
    cli("train", "tag", bank / "train.txt", "-o", folder / "both.pw", "-q", "--tol", "0.1")
    return folder


@pytest.mark.parametrize("options", [(), ("--format", "text")])
@pytest.mark.parametrize("size", [1 << 20, 7])
def test_text_is_labelled(cli, taggers, tmp_path, monkeypatch, options, size):
    monkeypatch.setattr("partwise.cli.predict.BLOCK", size)
    path = tmp_path / "text.txt"
    path.write_text(TEXT.replace("\t", " ") if not options else TEXT)
    expected = partwise.load(taggers / "columns.pw").predict(WORDS)
    answer = cli("predict", taggers / "columns.pw", path, *options)
    assert ("read as plain text, one sentence per line" in answer.stderr) is not bool(options)
    out = answer.stdout
    rows = [[line.split("\t") for line in block.split("\n")] for block in out.removesuffix("\n\n").split("\n\n")]
    assert [[word for word, _ in sentence] for sentence in rows] == WORDS
    assert [[label for _, label in sentence] for sentence in rows] == expected
    found = tmp_path / "out.conllu"
    path.write_text(TEXT.replace("\t", " "))
    cli("predict", taggers / "conllu.pw", path, *options, "-o", found)
    assert [sentence.forms for sentence in read_conllu(found)] == WORDS
    expected = partwise.load(taggers / "conllu.pw").predict(WORDS)
    assert [sentence.column("upos") for sentence in read_conllu(found)] == expected


@pytest.mark.parametrize("name", ["conllu.pw", "columns.pw"])
def test_a_line_from_a_pipe(cli, taggers, name):
    out = [
        json.loads(line)
        for line in cli("predict", taggers / name, "-", "--json", stdin="the cat sat\n").stdout.splitlines()
    ]
    assert [len(line["labels"]) for line in out] == [3]


def test_columns_stay_columns(cli, taggers, tmp_path):
    """Input that fits the training data's format is read in that format, even if it could be plain text."""
    path = tmp_path / "in.txt"
    for content, n in (
        ("the\nold\n\ncat\n", [2, 1]),
        ("the DT\nold JJ\n\ncat NN\n", [2, 1]),
        ("the DT X\nold JJ X\n", [2]),  # one column more than in training
        ("the\tDT\tX\n", [1]),
        ("the DT\n", [1]),
        ("the\n", [1]),
    ):
        path.write_text(content)
        lines = cli("predict", taggers / "columns.pw", path, "--json").stdout.splitlines()
        assert [len(json.loads(line)["labels"]) for line in lines] == n, content
    path.write_text("the DT\nold JJ\n\ncat NN\n")
    lines = cli("predict", taggers / "columns.pw", path, "--json", "--format", "text").stdout.splitlines()
    assert [len(json.loads(line)["labels"]) for line in lines] == [2, 2, 2]


def test_a_missing_column_is_not_text(cli, taggers, tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("the DT\nold\n\ncat NN\n")
    assert f"{path}:2:" in cli("predict", taggers / "columns.pw", path, status=2).stderr


def test_columns_are_not_text_for_conllu_models(cli, files, taggers, tmp_path):
    path, out = tmp_path / "in.txt", tmp_path / "out.conllu"
    for content, n in (
        ((files / "treebank" / "test.txt").read_text().replace("\t", " "), 3),
        ("the DT\nold JJ\ncat NN\n\na DT\ndog NN\n", 2),
        ("the DT\nold JJ\ncat NN\nsat VB\n. .\n\n", 2),
    ):
        path.write_text(content)
        answer = cli("predict", taggers / "conllu.pw", path, "-o", out, status=2)
        message = f"every line has {n} columns (--format text says otherwise)"
        assert answer.stderr == f"error: {path}: is neither CoNLL-U nor plain text: {message}\n"
        assert not out.exists()
        again = cli("predict", taggers / "conllu.pw", path, "--json", "--format", "text").stdout.splitlines()
        assert {len(json.loads(line)["labels"]) for line in again} == {n}
    for content in ("a cat\n" * 9, "a cat\n\n" * 9, "a\n\nb\nc\n" * 9, "a cat\n\na cat\na cat\n"):
        path.write_text(content)
        assert "read as plain text" in cli("predict", taggers / "conllu.pw", path).stderr


def test_models_of_more_than_words_refuse_text(cli, files, taggers, classifier, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    for model in (taggers / "both.pw", classifier):
        assert (
            "--format text: this model looks at more"
            in cli("predict", model, path, "--format", "text", status=2).stderr
        )
    assert "columns" in cli("predict", taggers / "both.pw", path, status=2).stderr
    path.write_bytes(b"good line\nbad \xff line\n")
    assert f"{path}:2:5: not valid UTF-8" in cli("predict", taggers / "columns.pw", path, status=2).stderr
    path.write_text(" \n\n")
    answer = cli("predict", taggers / "columns.pw", path, "--format", "text")
    assert (answer.stdout, "no sentences" in answer.stderr) == ("", True)


def test_probabilities_in_conllu_have_keys(cli, files, taggers):
    model = partwise.load(taggers / "conllu.pw")
    path = files / "treebank" / "test.conllu"
    gold = read_conllu(path)
    out = cli("predict", taggers / "conllu.pw", path, "--marginals").stdout
    rows = [line.split("\t") for line in out.splitlines() if "\t" in line]
    expected = [row for array in model.predict_marginals([s.forms for s in gold], output="array") for row in array]
    for row, probabilities in zip(rows, expected, strict=True):
        pairs = [entry.split("=") for entry in row[9].split("|")]
        assert all(len(pair) == 2 for pair in pairs)
        found = {key: float(value) for key, value in pairs if key.startswith("Probability[")}
        names = [f"Probability[{label}]" for label in model.classes_.tolist()]
        assert found == pytest.approx(dict(zip(names, probabilities, strict=True)), abs=1e-6)


def test_every_task_heads_its_best_answers_alike(cli, files, taggers):
    path = files / "treebank" / "test.conllu"
    text = cli("predict", taggers / "conllu.pw", path, "--k-best", 2).stdout
    assert text.startswith("# rank = 0, probability = ")
    assert "\n# rank = 1, probability = " in text
