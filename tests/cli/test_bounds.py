"""Small files that would take much memory are refused; the error names the flag that accepts them."""

import gzip

import pytest

from partwise import SequenceTagger
from partwise.cli.tasks.scores import MAX_CONFUSION, evaluate_labels, relation_scores
from partwise.metrics import confusion_matrix


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """A gzip file of 20 kB that unpacks to 20 MB of sentences."""
    path = tmp_path_factory.mktemp("bombs") / "bomb.txt.gz"
    path.write_bytes(gzip.compress(b"a DT B-NP\nb NN I-NP\n\n" * 960_000, 9))
    return path


def test_a_large_index(cli, tmp_path):
    rows, model = tmp_path / "rows.svm", tmp_path / "model.pw"
    rows.write_text("1 5000000:1\n2 1:1\n")
    answer = cli("train", "maxent", rows, "-o", model, status=2)
    assert "5,000,000 columns and 2 values" in answer.stderr
    assert "--max-columns 5000000 accepts them" in answer.stderr
    assert not model.exists()
    rows.write_text("1 9:1\n2 1:1\n")
    assert "--max-columns 9 accepts" in cli("train", "maxent", rows, "-o", model, "--max-columns", "8", status=2).stderr
    cli("train", "maxent", rows, "-o", model, "--max-columns", "9", "-q")
    # prediction ignores columns that the model does not have, whatever their numbers
    rows.write_text("1 2000000000:1\n2 1:1\n")
    assert cli("predict", model, rows).stdout.split() == ["1", "2"]
    assert "accuracy 100.00%" in cli("evaluate", model, rows).stdout


def test_many_labels_count(cli, tmp_path):
    rows = tmp_path / "rows.svm"
    rows.write_text("".join(f"{k} 1000000:1\n" for k in range(60)))
    answer = cli("train", "maxent", rows, "-o", tmp_path / "model.pw", status=2)
    assert "times 60 labels; --max-columns 1000000" in answer.stderr


@pytest.mark.parametrize("task", ["tag", "dep", "maxent", "cfg"])
def test_a_gzip_file_out_of_proportion(task, bomb, cli, tmp_path):
    answer = cli("train", task, bomb, "-o", tmp_path / "model.pw", status=2)
    assert "out of proportion: accept it with --max-unpacked BYTES" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_flag_of_gzip_files(bomb, chunker, cli, tmp_path):
    for command in (("evaluate", chunker), ("train", "tag", "-o", tmp_path / "model.pw")):
        assert "unpack to more than 16,777,217" in cli(*command, bomb, "--max-unpacked", 16_777_217, status=2).stderr
    small = tmp_path / "small.txt.gz"
    small.write_bytes(gzip.compress(b"a DT B-NP\nb NN I-NP\n\n"))
    cli("evaluate", chunker, small, "--max-unpacked", 0)


def test_inspection_of_a_kernel_on_edges(cli_json, tmp_path):
    tagger = SequenceTagger(kernel="linear", transition_features="all", loss="hinge", tol=0.1)
    tagger.fit([[["a"], ["b"]]] * 3, [["A", "B"]] * 3).save(tmp_path / "model.pw")
    assert cli_json("inspect", tmp_path / "model.pw")["top"] == {"one label after another": []}


def test_many_relations_make_no_table_of_all_pairs():
    """Confusions are counted for the most frequent relations only: all pairs of 30,000 would take 7 GB."""
    gold = [[(0, f"r{k}"), (1, "often")] for k in range(1000)]
    names, matrix = relation_scores(gold, gold)[1]
    assert names[0] == "often"
    assert len(names) == len(matrix) == MAX_CONFUSION
    assert matrix[0][0] == 1000
    assert sum(map(sum, matrix)) == 1000 + MAX_CONFUSION - 1


def test_one_long_label_does_not_make_all_lines_long():
    labels = [f"l{k}" for k in range(2000)] + ["x" * 50_000]
    assert len(evaluate_labels(labels, labels).table) < 500_000
    assert len(str(confusion_matrix([labels[-30:]], [labels[-30:]]))) < 300_000
