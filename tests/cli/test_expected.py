"""Features known from CRFsuite, CRF++ and LIBLINEAR: folds, class weights, dumps, all pairs, shell completion."""

import gzip

import numpy as np
import pytest
from click.testing import CliRunner

import partwise
from partwise import MaxentClassifier, SequenceTagger
from partwise.cli import main
from partwise.cli.inspect import escape
from partwise.io import read_columns, read_svmlight


def test_folds_are_scored_by_models_that_have_not_seen_them(cli, cli_json, files, tmp_path):
    path = files / "digits" / "dev.svm"
    said = cli_json("train", "maxent", path, "-o", tmp_path / "m.pw", "--folds", "3", "--seed", "5", "--C", "0.1")
    X, y = read_svmlight(path)
    scores = []
    for part in np.array_split(np.random.default_rng(5).permutation(len(y)), 3):
        rest = np.setdiff1d(np.arange(len(y)), part)
        model = MaxentClassifier(C=0.1, random_state=5).fit(X[rest], y[rest])
        scores.append(model.score(X[part], y[part]))
    found = said["cross_validation"]
    assert found["scores"] == pytest.approx(scores)
    assert found["mean"] == pytest.approx(np.mean(scores))
    assert found["deviation"] == pytest.approx(np.std(scores, ddof=1))
    assert (found["folds"], found["score_name"], found["converged"]) == (3, "accuracy", True)
    assert found["mean"] < said["accuracy"]  # the accuracy on the training data is higher
    whole = MaxentClassifier(C=0.1, random_state=5).fit(X, y)
    np.testing.assert_allclose(partwise.load(tmp_path / "m.pw").coef_, whole.coef_)


@pytest.mark.parametrize(("task", "data", "name"), [("tag", "dev.txt", "f1"), ("dep", "dev.conllu", "las")])
def test_folds_of_sentences(cli, files, tmp_path, task, data, name):
    path = files / "treebank" / data
    answer = cli("train", task, path, "-o", tmp_path / "m.pw", "--folds", "2")
    (line,) = [line for line in answer.stdout.splitlines() if line.startswith("folds")]
    assert line.split()[1] == name
    assert "the mean of 2 folds" in line


def test_invalid_folds(cli, tmp_path):
    path = tmp_path / "two.txt"
    path.write_text("a X\nb Y\n\nb Y\na X\n\n")
    common = ("train", "tag", path, "-o", tmp_path / "m.pw")
    assert "2 sentences make no 3 folds" in cli(*common, "--folds", "3", status=2).stderr
    assert "cannot be combined" in cli(*common, "--folds", "2", "--dev", path, "--early-stopping", "1", status=2).stderr
    assert not (tmp_path / "m.pw").exists()


@pytest.mark.filterwarnings("always:class_weight names")
def test_a_fold_without_a_weighted_label_is_trained(cli, tmp_path):
    """Without the only fold that has label 3, training ignores the weight of label 3 and warns."""
    path, out = tmp_path / "few.svm", tmp_path / "m.pw"
    path.write_text("1 1:1\n2 2:1\n" * 4 + "3 1:1 2:1\n")
    answer = cli("train", "maxent", path, "-o", out, "--folds", "3", "--class-weight", "3=2")
    assert "warning: class_weight names labels that are not in y: 3" in answer.stderr
    assert "mean of 3 folds" in answer.output
    assert partwise.load(out).classes_.tolist() == [1, 2, 3]


def test_the_model_is_kept_if_a_fold_fails(cli, tmp_path):
    path, out = tmp_path / "few.svm", tmp_path / "m.pw"
    path.write_text("1 1:1\n1 2:1\n" * 4 + "3 1:1 2:1\n")
    answer = cli("train", "maxent", path, "-o", out, "--folds", "3", status=2)
    assert "--folds: without fold " in answer.stderr
    assert f"(the model is in {out})" in answer.stderr
    assert partwise.load(out).classes_.tolist() == [1, 3]


def test_class_weights(cli, files, tmp_path):
    path, out = files / "digits" / "train.svm", tmp_path / "m.pw"
    X, y = read_svmlight(path)
    for flags, weights in (
        (["--class-weight", "3=4", "--class-weight", "5=0.5"], {3: 4, 5: 0.5}),
        (["--class-weight", "balanced"], "balanced"),
    ):
        cli("train", "maxent", path, "-o", out, "-q", *flags)
        saved = partwise.load(out)
        expected = MaxentClassifier(class_weight=weights, random_state=0).fit(X, y)
        np.testing.assert_allclose(saved.coef_, expected.coef_, rtol=1e-9)
        assert saved.class_weight == weights


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a=2"], "expected LABEL=WEIGHT"),
        (["3"], "expected LABEL=WEIGHT"),
        (["1=2=3"], "expected LABEL=WEIGHT"),
        (["1=2", "1.0=3"], "label 1 has two weights"),
        (["1=2", "balanced"], "balanced cannot be combined"),
        (["77=2"], "label 77, which is not in y"),
        (["1=-2"], "finite number >= 0"),
        (["1=nan"], "finite number >= 0"),
    ],
)
def test_bad_class_weights(cli, files, tmp_path, given, message):
    flags = [part for text in given for part in ("--class-weight", text)]
    answer = cli("train", "maxent", files / "digits" / "dev.svm", "-o", tmp_path / "m.pw", *flags, status=2)
    assert message in answer.stderr


def rows_of(text):
    return [line.split("\t") for line in text.splitlines()]


@pytest.mark.parametrize("flags", [(), ("--ends",), ("--model", "maxent")])
def test_dump_of_a_tagger_has_every_weight(cli, files, tmp_path, flags):
    cli("train", "tag", files / "treebank" / "dev.txt", "-o", tmp_path / "m.pw", "-q", *flags)
    model = partwise.load(tmp_path / "m.pw")
    cli("inspect", tmp_path / "m.pw", "--dump", tmp_path / "w.txt.gz")
    rows = rows_of(gzip.decompress((tmp_path / "w.txt.gz").read_bytes()).decode())
    states = {(a, b): float(w) for kind, a, b, w in (row for row in rows if row[0] == "state")}
    assert states == {(escape(a), b): w for (a, b), w in model.state_features_.items()}
    moves = {tuple(row[1:-1]): float(row[-1]) for row in rows if row[0] == "transition"}
    named = {tuple("^" if n is None else n for n in names): w for names, w in model.transition_features_.items()}
    assert moves == named
    ends = {(row[0], row[2]): float(row[3]) for row in rows if row[0] in ("begin", "end")}
    assert ends == model.boundary_features_
    assert bool(ends) == ("--ends" in flags)
    assert len(rows) == len(states) + len(moves) + len(ends)


def test_dump_of_a_classifier_is_enough_to_classify(cli, files, classifier):
    rows = rows_of(cli("inspect", classifier, "--dump", "-").stdout)
    X, _ = read_svmlight(files / "digits" / "test.svm", n_features=64)
    model = partwise.load(classifier)
    scores = np.zeros((X.shape[0], 10))
    for kind, name, label, weight in rows:
        values = X[:, [int(name) - 1]].toarray().ravel() if kind == "column" else 1.0
        scores[:, int(label)] += float(weight) * values
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-9)


def test_unsupported_dumps(cli, files, chunker, tmp_path):
    assert "cannot be combined with --json" in cli("inspect", chunker, "--dump", "-", "--json", status=2).stderr
    cli("train", "dep", files / "treebank" / "dev.conllu", "-o", tmp_path / "p.pw", "-q")
    out = tmp_path / "w.txt"
    assert "does not keep the names" in cli("inspect", tmp_path / "p.pw", "--dump", out, status=2).stderr
    assert not out.exists()


def test_names_with_tabs_stay_in_their_fields():
    assert escape("a\tb\\\n\r") == r"a\tb\\\n\r"


def test_all_pairs_of_attributes_and_labels(cli_json, files, tmp_path):
    path = files / "treebank" / "dev.txt"
    said = cli_json("train", "tag", path, "-o", tmp_path / "m.pw", "--states", "all", "--features", "chunk")
    table = read_columns(path)
    same = SequenceTagger(template="chunk", features="all", random_state=0).fit(table.without(2), table.column(2))
    n = len(same.classes_)
    assert said["n_features"] == len(same.attributes_) * n + n * n
    assert said["primal"] == pytest.approx(same.result_.primal)


@pytest.mark.parametrize(("said", "scheme"), [("auto", "iob2"), ("yes", "iob2"), ("no", None)])
def test_legal_labels(cli, files, tmp_path, said, scheme):
    path = files / "treebank" / "dev.txt"
    cli("train", "tag", path, "-o", tmp_path / "m.pw", "--features", "chunk", "--legal", said, "--tol", "0.1", "-q")
    assert partwise.load(tmp_path / "m.pw").scheme_ == scheme
    if said == "yes":  # parts of speech do not follow a chunk scheme
        answer = cli("train", "tag", path, "--columns", "1,2", "--legal", said, status=2)
        assert "legal=True: the labels are not O, B-x, I-x" in answer.stderr


def test_a_beam_without_a_limit(cli, files, tmp_path):
    path = files / "treebank" / "dev.txt"
    cli("train", "tag", path, "-o", tmp_path / "m.pw", "--model", "maxent", "--beam-width", "none", "-q")
    assert partwise.load(tmp_path / "m.pw").beam_width is None
    assert "'many'" in cli("train", "tag", path, "--beam-width", "many", status=2).stderr


def test_more_answers_than_memory_holds_are_refused(cli, files, chunker):
    answer = cli("predict", chunker, files / "treebank" / "test.txt", "--k-best", "100000000", status=2)
    assert "--k-best" in answer.stderr


def test_unknown_labels_are_named_in_a_line_that_can_be_read(cli, files, chunker, tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text("".join(f"w DT L{k:03}\n" for k in range(200)) + "\n")
    (line,) = [line for line in cli("evaluate", chunker, path).stdout.splitlines() if "does not know" in line]
    assert line.endswith("L018, L019, ... (200 in all)")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["partwise", "pre"], ["plain,predict"]),
        (["partwise", "train", ""], ["plain,tag", "plain,segment", "plain,maxent", "plain,dep", "plain,cfg"]),
        (["partwise", "train", "tag", "--solver", "dcd"], ["plain,dcd", "plain,dcd-light"]),
        (["partwise", "train", "tag", "--template", "te"], ["file,te"]),
        (["partwise", "predict", "mo"], ["file,mo"]),
        (["partwise", "predict", "m.pw", "in"], ["file,in"]),
    ],
)
def test_completion_in_a_shell(monkeypatch, words, expected):
    monkeypatch.setenv("_PARTWISE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    answer = CliRunner().invoke(main, [], prog_name="partwise")
    assert answer.exit_code == 0
    assert sorted(answer.stdout.split()) == sorted(expected)


def test_a_report_on_hundreds_of_labels_lists_the_frequent_ones(cli, files, tmp_path):
    path, report = tmp_path / "many.txt", tmp_path / "r.html"
    path.write_text("".join(f"w{k} T{k}\n" * (2 if k < 50 else 1) + "\n" for k in range(70)))
    cli("train", "tag", path, "-o", tmp_path / "m.pw", "--report", report, "-q", "--tol", "0.1")
    text = report.read_text()
    table = text[text.index("the 50 most frequent labels") :]
    table = table[: table.index("</section>")]
    assert ">T49<" in table
    assert ">T50<" not in table


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_empty_input(cli, files, chunker, classifier, tmp_path, text):
    """Empty input is accepted by `predict` with a warning, and refused by `train` and `evaluate`."""
    path, parser, out = tmp_path / "empty.conllu", tmp_path / "p.pw", tmp_path / "out.txt"
    path.write_text(text)
    cli("train", "dep", files / "treebank" / "dev.conllu", "-o", parser, "-q")
    for model in (chunker, classifier, parser):
        for flags in ((), ("--json",)):
            answer = cli("predict", model, "-", *flags, stdin=text)
            assert answer.stdout == ""
            assert answer.stderr.startswith("warning: -: there are no ")
        cli("predict", model, path, "-o", out)
        assert out.read_text() == ""
        assert "there are no " in cli("evaluate", model, path, status=2).stderr


def test_the_report_of_train_begins_with_scores(cli, files, tmp_path):
    """The report of train begins with scores, and has calibration and a curve if there are development data."""
    train, dev, report = files / "treebank" / "train.txt", files / "treebank" / "test.txt", tmp_path / "r.html"
    common = ("train", "tag", train, "-o", tmp_path / "m.pw", "-q", "--report", report)
    cli(*common, "--dev", dev, "--early-stopping", "3")
    page = report.read_text()
    assert "<title>Sequence tagger</title>" in page
    assert "<h1>Sequence tagger</h1>" in page
    assert "Trained on train.txt, scored on test.txt" in page
    assert str(files) not in page
    parts = ("scores", "summary", "confusion", "calibration", "weights")
    order = [page.index(f'<section id="{name}"') for name in parts]
    assert order == sorted(order)
    assert "F1 on development data by passes" in page
    assert "expected calibration error" in page
    cli(*common, "--dev", dev, "--solver", "lbfgs")
    assert "F1 on development data by passes" in report.read_text()
    cli(*common, "--dev", dev, "--loss", "hinge", "--tol", "0.1")
    assert 'id="calibration"' not in report.read_text()
    cli(*common, "--tol", "0.1")
    page = report.read_text()
    assert "on development data" not in page
    assert 'id="calibration"' not in page  # no calibration on the training data, which would say little


def test_the_report_of_path(cli, cli_json, files, tmp_path):
    train, dev, report = files / "treebank" / "train.txt", files / "treebank" / "test.txt", tmp_path / "r.html"
    common = ("path", "tag", train, "-o", tmp_path / "m.pw", "--grid", "0.01,0.1,1", "--tol", "0.1", "--report", report)
    told = cli_json(*common, "--dev", dev)
    page = report.read_text()
    assert told["report"] == str(report)
    assert "F1 by C" in page
    assert f"{told['score']:.2%}" in page
    assert 'id="calibration"' in page
    assert all(f'<th scope="row">{value}</th>' in page for value in ("0.01", "0.1", "1"))
    cli(*common)
    assert 'id="calibration"' not in report.read_text()  # the final model was trained on the held-out examples too
