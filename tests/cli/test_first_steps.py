"""Messages for typical mistakes of new users: misspelt names, another kind of input, labels in another column."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import partwise
from partwise import MaxentClassifier, SegmentTagger, SequenceTagger
from partwise.cli.tasks.tagged_files import read_tagged
from partwise.solvers import get_solver


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("trian", "tag", "x"), "there is no command 'trian': did you mean 'train'? (see "),
        (("train", "tga", "x"), "there is no command 'tga': did you mean 'tag'?"),
        (("data", "fecth"), "there is no command 'fecth': did you mean 'fetch'?"),
        (("qqq",), "there is no command 'qqq': there are bound, convert,"),
    ],
)
def test_misspelt_commands(cli, args, hint):
    assert hint in cli(*args, status=2).stderr


def test_misspelt_solvers():
    with pytest.raises(ValueError, match=r"unknown solver 'lbfg'; did you mean 'lbfgs'\? There are "):
        get_solver("lbfg")
    with pytest.raises(ValueError, match=r"did you mean 'eg-prox'\?"):
        SequenceTagger(solver="eg_prox").fit([["a"], ["b"]], [["A"], ["B"]])


def test_what_the_penalties_are_is_in_the_help(cli):
    text = " ".join(cli("train", "maxent", "--help").output.split())
    assert '"l2": |w|^2 / (2 C); "l1": |w|_1 / C, which makes weights zero; "elasticnet": l1_ratio times' in text


def columns(path, order, n=60):
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(n):
        for _ in range(5):
            token = [f"w{rng.integers(10_000)}", "NV"[rng.integers(2)], ("B-X", "O")[rng.integers(2)]]
            lines.append(" ".join(token[k] for k in order))
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_labels_in_the_first_column_are_noticed(tmp_path):
    with pytest.warns(UserWarning, match=r"first\.txt: labels are read from the last column, .* --columns 2,...,1"):
        read_tagged(str(columns(tmp_path / "first.txt", (2, 1, 0))), {}, labelled=True)
    with pytest.warns(UserWarning, match="labels are read from the last column"):
        read_tagged(str(columns(tmp_path / "tags.txt", (1, 0))), {}, labelled=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_tagged(str(columns(tmp_path / "last.txt", (0, 1, 2))), {}, labelled=True)
        read_tagged(str(columns(tmp_path / "tags.txt", (0, 1))), {}, labelled=True)
        read_tagged(str(tmp_path / "first.txt"), {"columns": "3,2,1"}, labelled=True)


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_a_model_of_crfsuite_refuses_columns(cli, tmp_path, separator):
    X, y = [[["w=a", "p=N"], ["w=b", "p=V"]]] * 3, [["B-X", "O"]] * 3
    SequenceTagger().fit(X, y).save(tmp_path / "m.crfsuite", format="crfsuite")
    path = columns(tmp_path / "in.txt", (0, 1, 2))
    path.write_text(path.read_text().replace(" ", separator))
    what = "no token has an attribute" if separator == " " else "the model knows none of the "
    for command in ("predict", "evaluate"):
        answer = cli(command, tmp_path / "m.crfsuite", path, status=2)
        assert what in answer.stderr
        assert "is the input in columns?" in answer.stderr
        assert answer.stdout == ""
    (tmp_path / "items").write_text("O\tw=b\tnew=1\n\n")
    assert cli("predict", tmp_path / "m.crfsuite", tmp_path / "items").stdout.startswith("O")


def test_a_cell_that_is_not_a_number_is_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [np.nan, 3.0, 4.0], "name": [1.0, "a", 2.0]})
    with pytest.raises(ValueError, match=r"could not convert .*'a'\nX: row 1, column 'name': 'a'"):
        MaxentClassifier().fit(frame, [0, 1, 0])
    with pytest.raises(ValueError, match=r"NaN[^$]*X: row 0, column 'age': nan"):
        MaxentClassifier().fit(frame[["age"]], [0, 1, 0])


CHUNKS = [["B-X", "I-X", "O"], ["O", "B-X", "O"], ["B-X", "I-X", "I-X"]] * 4
WORDS = [[[f"{label}{k}"] for k, label in enumerate(row)] for row in CHUNKS]


@pytest.mark.parametrize("cls", [SequenceTagger])
def test_a_label_that_switches_legality_off_is_named(cls):
    wrong = [*CHUNKS[:5], ["O", "O", "I-X"], *CHUNKS[6:]]
    message = r"y: sequence 6, position 2: the label 'I-X' is not allowed there in iob2 \(1 of 12 sequences"
    with pytest.warns(UserWarning, match=message):
        tagger = cls(tol=0.1).fit([[], *WORDS], [[], *wrong])
    assert tagger.scheme_ is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cls(tol=0.1).fit(WORDS, CHUNKS).scheme_ == "iob2"
        assert cls(tol=0.1, legal=True).fit(WORDS, wrong).scheme_ == "iob2"
        assert cls(tol=0.1, legal=False).fit(WORDS, wrong).scheme_ is None
        touching = [["I-X", "I-X", "O"], ["I-X", "B-X", "O"]]
        cls(tol=0.1).fit(WORDS[:2], touching)  # chunks in IOB1


def test_partitions_name_illegal_labels(tmp_path):
    wrong = [*CHUNKS[:5], ["O", "O", "I-X"], *CHUNKS[6:]]
    with pytest.warns(UserWarning, match="sequence 5, position 2: the label 'I-X'"):
        partwise.out_of_core.partitions.write(tmp_path / "p", SequenceTagger(), [(WORDS, wrong)])


def test_segments_need_no_rule():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SegmentTagger(tol=0.1).fit(WORDS, CHUNKS)


def test_progress_in_a_pipe():
    """A run of less than ten seconds prints its first and its last line of progress into a pipe."""
    program = (
        "from partwise import SequenceTagger; from partwise.callbacks import ProgressLine\n"
        "X = [[['a'], ['b']], [['b'], ['c']]] * 20\n"
        "tagger = SequenceTagger(solver='eg', max_passes=7, tol=1e-12, callbacks=ProgressLine())\n"
        "tagger.fit(X, [['x', 'y'], ['y', 'x']] * 20)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("eg  pass")]
    assert len(lines) == 2
    passes = [float(line.split()[2]) for line in lines]
    assert passes[0] < 3 < passes[1]
