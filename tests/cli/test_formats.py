"""Every input format of taggers and classifiers, from file to prediction, and with odd text."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import partwise
from partwise.cli import main
from partwise.cli.tasks.tagged_files import detect
from partwise.datasets import make_treebank
from partwise.datasets.treebank import UNIVERSAL
from partwise.io import read_conllu, write_columns, write_items

BANK = make_treebank(60, seed=8)
ODD = ["\ufeffa", "b\u00a0c", "d\u2028e", "e\u0301", "\u05d0\u05d1", "a\u200db", "nul\x00", "\U0001f600", "#", "\u3000"]


def test_items(cli, cli_json, tmp_path):
    X = [[[f"w={word}", f"suffix={word[-2:]}"] for word in words] for words in BANK.words]
    path, model = tmp_path / "train.crfsuite", tmp_path / "m.pw"
    write_items(path, X, BANK.tags)
    said = cli_json("train", "tag", path, "-o", model)
    direct = partwise.SequenceTagger(random_state=0).fit(X, BANK.tags)
    assert said["primal"] == pytest.approx(direct.result_.primal, rel=1e-9)
    assert "f1" not in said
    found = [json.loads(line)["labels"] for line in cli("predict", model, path, "--json").stdout.splitlines()]
    assert found == direct.predict(X)
    lines = cli("predict", model, path).stdout.split("\n\n")
    assert lines[0].splitlines() == found[0]
    assert cli_json("evaluate", model, path)["accuracy"] == pytest.approx(said["accuracy"])
    answer = cli("train", "tag", path, "-o", model, "--features", "pos", status=2)
    assert "items have their attributes already" in answer.stderr


def test_conllu(cli, cli_json, tmp_path):
    path, model = tmp_path / "train.conllu", tmp_path / "m.pw"
    path.write_text(BANK.conllu(), encoding="utf-8")
    said = cli_json("train", "tag", path, "-o", model)
    assert said["n_labels"] == len(set(UNIVERSAL.values()))
    assert said["accuracy"] > said["baseline"]["score"]
    cli("predict", model, path, "-o", tmp_path / "out.conllu")
    tagged = read_conllu(tmp_path / "out.conllu")
    assert [sentence.column("upos") for sentence in tagged] == partwise.load(model).predict(BANK.words)
    assert [sentence.heads for sentence in tagged] == BANK.heads
    cli("predict", model, path, "-o", tmp_path / "out.conllu", "--marginals")
    first = read_conllu(tmp_path / "out.conllu")[0].column("misc")[0].split("|")
    assert sum(float(text.rpartition("=")[2]) for text in first) == pytest.approx(1, abs=1e-5)


def test_models_made_in_python(cli, cli_json, tmp_path):
    """The columns that a model reads from a file follow from its features if it was trained in Python."""
    model, path = tmp_path / "m.pw", tmp_path / "test.txt"
    path.write_text(BANK.columns(), encoding="utf-8")
    sentences = [list(zip(*rows, strict=True)) for rows in zip(BANK.words, BANK.tags, strict=True)]
    tagger = partwise.SequenceTagger(template="chunk").fit(sentences, BANK.chunks)
    tagger.save(model)
    said = cli_json("evaluate", model, path)
    assert said["accuracy"] == pytest.approx(tagger.score(sentences, BANK.chunks))
    X = [[[f"w={word}"] for word in words] for words in BANK.words]
    partwise.SequenceTagger().fit(X, BANK.tags).save(model)
    write_items(tmp_path / "items.txt", X, BANK.tags)
    assert cli_json("evaluate", model, tmp_path / "items.txt")["n_tokens"] == sum(map(len, X))
    arrays = [np.eye(3)[: len(words) % 3 + 1] for words in BANK.words[:6]]
    partwise.SequenceTagger().fit(arrays, [["a", "b", "c"][: len(rows)] for rows in arrays]).save(model)
    assert "from Python" in cli("predict", model, path, status=2).stderr


@pytest.mark.parametrize("settings", [{"format": "x"}, {"separator": "y"}, {"n_columns": -3}, {"n_columns": 10**9}])
def test_invalid_settings(cli, tmp_path, chunker, settings):
    model = partwise.load(chunker)
    model.input_settings_ = {**model.input_settings_, **settings}
    model.save(tmp_path / "m.pw")
    path = tmp_path / "test.txt"
    path.write_text(BANK.columns(), encoding="utf-8")
    assert "invalid input settings" in cli("evaluate", tmp_path / "m.pw", path, status=2).stderr


def test_names_tell_formats():
    assert detect("a.conllu.gz") == "conllu"
    assert detect("a.crfsuite") == "items"
    assert detect("train.txt.gz") == detect("-") == "columns"


def test_odd_text_is_unchanged(cli, tmp_path):
    """Words of all kinds pass through training and prediction unchanged."""
    sentences = [[(word, "A" if k % 2 else "B") for k, word in enumerate(ODD)]] * 3
    path, model, out = tmp_path / "train.txt", tmp_path / "m.pw", tmp_path / "out.txt"
    write_columns(path, sentences, "\t")
    cli("train", "tag", path, "-o", model, "--separator", "tab", "-q")
    cli("predict", model, path, "-o", out)
    rows = out.read_bytes().decode("utf-8").removeprefix("\ufeff").split("\n\n")[0].split("\n")
    assert [row.split("\t")[0].removeprefix("\ufeff") for row in rows] == [word.removeprefix("\ufeff") for word in ODD]
    assert [row.split("\t")[2] for row in rows] == [label for _, label in sentences[0]]


def test_a_lone_surrogate_is_an_error(cli, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"a A\n\xed\xa0\x80 B\n")
    answer = cli("train", "tag", path, "-o", tmp_path / "m.pw", status=2)
    assert f"{path}:2:1: " in answer.stderr
    assert "surrogate" in answer.stderr


@pytest.mark.parametrize("seed", range(6))
def test_random_bytes(cli, tmp_path, chunker, classifier, seed):
    """Random bytes as data, model, template or rules give an error message or an answer, never a traceback."""
    rng = np.random.default_rng(seed)
    path, good = tmp_path / "rubbish", tmp_path / "good.txt"
    good.write_text("a X B\nb Y I\n\na X B\nb Y O\n")
    size = int(rng.integers(0, 400))
    kinds = [bytes(rng.integers(0, 256, size).astype(np.uint8)), bytes(rng.choice(list(b"aB:%x[]01,\t\n -U"), size))]
    for content in kinds:
        path.write_bytes(content)
        for args in (
            ("train", "tag", path, "-o", tmp_path / "m.pw", "-q", "--tol", "0.1"),
            ("train", "tag", path, "-o", tmp_path / "m.pw", "-q", "--tol", "0.1", "--format", "items"),
            ("train", "tag", path, "-o", tmp_path / "m.pw", "-q", "--tol", "0.1", "--format", "conllu"),
            ("train", "maxent", path, "-o", tmp_path / "m.pw", "-q", "--tol", "0.1"),
            ("train", "tag", good, "-o", tmp_path / "m.pw", "-q", "--tol", "0.1", "--template", path),
            ("predict", chunker, path),
            ("predict", classifier, path),
            ("predict", chunker, good, "--constraints", path),
            ("evaluate", path, good),
            ("inspect", path),
        ):
            before = set(tmp_path.iterdir())
            answer = CliRunner().invoke(main, [str(arg) for arg in args])
            assert answer.exit_code in (0, 2), (args, answer.output, answer.exception)
            if answer.exit_code == 2:
                assert answer.stderr.startswith("error: "), answer.stderr
                assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("top", ["\ufeff", "", "# x\r\n"], ids=["mark", "bare", "comment"])
def test_tags_of_odd_conllu_files(cli, tmp_path, top):
    """Prediction changes the tags only, in a file with carriage returns and no last newline."""
    (tmp_path / "train.conllu").write_text(BANK.conllu(), encoding="utf-8")
    cli("train", "tag", tmp_path / "train.conllu", "-o", tmp_path / "m.pw", "-q", "--tol", "0.1")
    given = top + "1\tthe\t_\t{}\tDT\t\t_\t_\t_\t_\r\n2\tsailor\t_\t{}\tNN\t_\t_\t_\t_\ta"
    path, out = tmp_path / "in.conllu", tmp_path / "out.conllu"
    path.write_bytes(given.format("X", "X").encode())
    cli("predict", tmp_path / "m.pw", path, "-o", out)
    tags = read_conllu(out)[0].column("upos")
    assert "X" not in tags
    assert out.read_bytes().decode() == given.format(*tags)
    cli("predict", tmp_path / "m.pw", path, "-o", out, "--k-best", "3")
    best = read_conllu(out)
    assert [s.comments[0].split(",")[0] for s in best] == ["# rank = 0", "# rank = 1", "# rank = 2"]
    assert best[0].column("upos") == tags
    cli("predict", tmp_path / "m.pw", path, "-o", out, "--marginals")
    assert read_conllu(out)[0].column("misc")[1].startswith("a|")


def test_many_columns_cost_no_more_than_their_number(cli, tmp_path):
    """Choosing columns takes linear time: a line of 200,000 columns once took minutes."""
    path, n = tmp_path / "wide.txt", 200_000
    path.write_text("".join(" ".join(["a"] * n) + f" {label}\n" for label in "XYX") + "\n")
    cli("train", "tag", path, "-o", tmp_path / "m.pw", "--features", "pos", "-q")
    cli("train", "tag", path, "-o", tmp_path / "m.pw", "--columns", f"1,{n + 1}", "-q")


def test_items_of_a_classifier(cli, cli_json, tmp_path):
    X = [[[f"w={word}", f"suffix={word[-2:]}"] for word in words] for words in BANK.words]
    X[0][0] = {"w=" + BANK.words[0][0]: 1.0, "size": 2.5}
    path, model = tmp_path / "train.items", tmp_path / "m.pw"
    write_items(path, X, BANK.tags)
    rows, labels = [item for each in X for item in each], [tag for each in BANK.tags for tag in each]
    said = cli_json("train", "maxent", path, "--format", "items", "--min-count", 2, "-o", model)
    direct = partwise.MaxentClassifier(min_count=2).fit(rows, labels)
    assert said["primal"] == pytest.approx(direct.result_.primal, rel=1e-9)
    assert cli("predict", model, path).stdout.splitlines() == direct.predict(rows).tolist()
    assert cli_json("evaluate", model, path)["accuracy"] == pytest.approx(direct.score(rows, labels))
    dump = [line.split("\t") for line in cli("inspect", model, "--dump", "-").stdout.splitlines()]
    assert {row[1] for row in dump if row[0] == "attribute"} == set(direct.attributes_)
    assert direct.attributes_[0] in cli("inspect", model).stdout
    first = json.loads(cli("predict", model, path, "--json", "--k-best", 2).stdout.splitlines()[0])
    assert len(first["best"]) == 2
    tag = BANK.tags[0][0]
    heavy = cli_json("train", "maxent", path, "--format", "items", "-o", model, "--class-weight", f"{tag}=3")
    weights = [3.0 if label == tag else 1.0 for label in labels]
    again = partwise.MaxentClassifier().fit(rows, labels, sample_weight=weights)
    assert heavy["primal"] == pytest.approx(again.result_.primal, rel=1e-9)
    assert (
        "LABEL=WEIGHT with a number"
        in cli("train", "maxent", path, "--format", "items", "-o", model, "--class-weight", "DET", status=2).stderr
    )
    (tmp_path / "empty.items").write_text("\n\n")
    assert "there are no rows" in cli("predict", model, tmp_path / "empty.items").stderr
    (tmp_path / "bare.items").write_text("x\ny\nx\n")
    bare = cli("train", "maxent", tmp_path / "bare.items", "--format", "items", "-o", model, status=2)
    assert "no row of the data has an attribute" in bare.stderr
