"""``partwise data`` and ``partwise solvers`` list all data sets and solvers."""

import json

import pytest
from click.testing import CliRunner

from partwise import available_solvers
from partwise.cli import main
from partwise.datasets import DATA_SETS, make_treebank
from partwise.datasets.builtin import BUILT_IN
from partwise.io import read_columns


def run(*args, status=0):
    answer = CliRunner().invoke(main, list(args))
    assert answer.exit_code == status, answer.output
    return answer


def test_list_names_every_set(tmp_path):
    answer = json.loads(run("data", "list", "--json", "--data", str(tmp_path)).stdout)
    assert [row["name"] for row in answer["data"]] == [*BUILT_IN, *DATA_SETS]
    assert not any(row["here"] for row in answer["data"])
    sources = {row["name"]: row["source"] for row in answer["data"]}
    assert sources["treebank"] == "built-in"
    assert sources["brown"] == "local only"
    assert "conll2000" in run("data", "list", "--data", str(tmp_path)).stdout


def test_built_in_files_hold_the_treebank(tmp_path):
    answer = json.loads(run("data", "fetch", "treebank", "--data", str(tmp_path), "--sentences", "50", "--json").stdout)
    assert len(answer["files"]) == 9
    bank = make_treebank(50)
    words = [
        sentence
        for part in ("train", "dev", "test")
        for sentence in read_columns(tmp_path / "treebank" / f"{part}.txt").column(0)
    ]
    assert words == bank.words
    before = {path.name: path.read_bytes() for path in (tmp_path / "treebank").iterdir()}
    run("data", "fetch", "treebank", "--data", str(tmp_path), "--sentences", "50")
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "treebank").iterdir()}
    listed = json.loads(run("data", "list", "--json", "--data", str(tmp_path)).stdout)
    assert [row["name"] for row in listed["data"] if row["here"]] == ["treebank"]


def test_digits_are_svmlight(tmp_path):
    from sklearn.datasets import load_svmlight_file

    run("data", "fetch", "digits", "--data", str(tmp_path), "--sentences", "20")
    X, y = load_svmlight_file(str(tmp_path / "digits" / "test.svm"))
    assert X.shape[1] == 64
    assert set(y) <= set(range(10))


def test_check(tmp_path):
    run("data", "check", "--data", str(tmp_path))
    run("data", "check", "conll2000", "--data", str(tmp_path), status=1)
    (tmp_path / "conll2000").mkdir()
    (tmp_path / "conll2000" / "train.txt").write_text("Go VB B-VP\n")
    answer = run("data", "check", "--json", "--data", str(tmp_path), status=1)
    assert json.loads(answer.stdout)["data"]["conll2000"] == {"train.txt": "changed", "test.txt": "missing"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("fetch", "treebnk", "--data", "x"), "did you mean 'treebank'?"),
        (("fetch", "brown", "--data", "x"), "by hand"),
        (("fetch", "treebank"), "--data"),
        (("check", "conll200"), "did you mean 'conll2000'?"),
    ],
)
def test_errors(args, message, monkeypatch, tmp_path):
    monkeypatch.delenv("PARTWISE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    answer = run("data", *args, status=2)
    assert answer.stderr.startswith("error: ")
    assert message in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_solvers_are_listed_with_their_options():
    answer = json.loads(run("solvers", "--json").stdout)
    assert list(answer["solvers"]) == available_solvers()
    assert answer["solvers"]["eg"]["options"]["step_size"]["default"] == "adaptive"
    assert "eg" in answer["fits"]["Chain"]["log"]
    assert "lbfgs" not in answer["fits"]["Chain"]["hinge"]
    assert "step-size" in run("solvers", "eg").stdout
    table = run("solvers", "--loss", "hinge").stdout
    assert "bcfw" in table
    assert "lbfgs" not in table
    assert "did you mean 'lbfgs'?" in run("solvers", "lbfg", status=2).stderr


def test_check_of_a_missing_folder(cli, tmp_path):
    result = cli("data", "check", "--data", tmp_path / "nosuch", status=2)
    assert "nosuch: no such folder" in result.stderr
