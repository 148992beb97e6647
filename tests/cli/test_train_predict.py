"""Training, prediction and evaluation of files on the command line give the results of the estimators."""

import gzip
import json

import numpy as np
import pytest

import partwise
from partwise import SequenceTagger
from partwise.io import read_columns
from partwise.metrics import chunk_scores


def read(path):
    table = read_columns(path)
    return table.without(2), table.column(2)


def test_train_gives_the_estimators_results(cli_json, files, tmp_path):
    train, dev = files / "treebank" / "train.txt", files / "treebank" / "dev.txt"
    said = cli_json("train", "tag", train, "-o", tmp_path / "m.pw", "--dev", dev, "--C", "0.5", "--features", "chunk")
    tagger = SequenceTagger(template="chunk", C=0.5, random_state=0).fit(*read(train))
    X, y = read(dev)
    scores = chunk_scores(y, tagger.predict(X))
    assert said["primal"] == pytest.approx(tagger.result_.primal, rel=1e-9)
    assert said["dual"] == pytest.approx(tagger.result_.dual, rel=1e-9)
    assert 0 <= said["gap"] <= 1e-3 * said["primal"]
    assert said["l2"] == 2.0
    assert said["f1"] == pytest.approx(scores.f1)
    assert said["accuracy"] == pytest.approx(scores.accuracy)
    assert said["n_features"] == len(tagger.state_features_) + len(tagger.transition_features_)
    assert {"passes", "seconds", "peak_memory", "status", "solver", "unknown_rate"} <= set(said)
    assert said["peak_memory"] > 1e7
    assert said["baseline"]["score"] < said["f1"]
    loaded = partwise.load(tmp_path / "m.pw")
    assert loaded.predict(X) == tagger.predict(X)


def test_train_without_options(cli, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = cli("train", "tag", files / "treebank" / "train.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["train.pw"]
    for word in ("certified", "primal", "f1", "most frequent label", "train.pw"):
        assert word in answer.stdout
    for flag in ("--C", "--l2"):
        cli("train", "tag", files / "treebank" / "train.txt", flag, "2", "-q")


def test_evaluate_prints_conllevals_table(cli, cli_json, files, chunker):
    test = files / "treebank" / "test.txt"
    X, y = read(test)
    scores = chunk_scores(y, partwise.load(chunker).predict(X))
    text = cli("evaluate", chunker, test).stdout
    assert str(scores) in text
    assert "unknown features" in text
    said = cli_json("evaluate", chunker, test)
    assert said["f1"] == pytest.approx(scores.f1)
    assert {row["label"]: row["f1"] for row in said["labels"]} == {
        name: pytest.approx(row.f1) for name, row in scores.by_type.items()
    }
    assert 0 <= said["unknown_rate"] < 1


def test_predict_adds_a_column(cli, files, chunker, tmp_path):
    test = files / "treebank" / "test.txt"
    X, _ = read(test)
    expected = partwise.load(chunker).predict(X)
    cli("predict", chunker, test, "-o", tmp_path / "out.txt")
    table = read_columns(tmp_path / "out.txt")
    assert table.n_columns == 4
    assert table.column(3) == expected
    assert table.column(0) == X.column(0)


def test_predict_reads_a_pipe_without_labels(cli, files, chunker):
    X, _ = read(files / "treebank" / "test.txt")
    text = "".join("".join(f"{a} {b}\n" for a, b in X[i]) + "\n" for i in range(3))
    answer = cli("predict", chunker, "-", stdin=text)
    rows = [line.split("\t") for line in answer.stdout.splitlines() if line]
    assert [row[2] for row in rows] == [x for labels in partwise.load(chunker).predict(X)[:3] for x in labels]


def test_marginals(cli, files, chunker):
    test = files / "treebank" / "test.txt"
    model = partwise.load(chunker)
    X, _ = read(test)
    expected = model.predict_marginals(X, output="array")
    rows = [line.split("\t") for line in cli("predict", chunker, test, "--marginals").stdout.splitlines() if line]
    names = model.classes_.tolist()
    assert [cell.rpartition("/")[0] for cell in rows[0][4:]] == names
    found = np.array([[float(cell.rpartition("/")[2]) for cell in row[4:]] for row in rows])
    np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-6)
    lines = [json.loads(line) for line in cli("predict", chunker, test, "--marginals", "--json").stdout.splitlines()]
    assert len(lines) == len(X)
    assert lines[0]["marginals"][0] == pytest.approx(dict(zip(names, expected[0][0].tolist(), strict=True)))


def test_k_best(cli, files, chunker):
    test = files / "treebank" / "test.txt"
    X, _ = read(test)
    expected = partwise.load(chunker).predict_k_best(X, 3, probabilities=True)
    lines = [json.loads(line) for line in cli("predict", chunker, test, "--k-best", 3, "--json").stdout.splitlines()]
    assert [[answer["labels"] for answer in line["best"]] for line in lines] == [
        [labels for labels, _ in answers] for answers in expected
    ]
    assert [[answer["probability"] for answer in line["best"]] for line in lines] == [
        pytest.approx([p for _, p in answers]) for answers in expected
    ]
    text = cli("predict", chunker, test, "--k-best", 2).stdout
    assert text.startswith(f"# rank = 0, probability = {expected[0][0][1]:.6f}\n")
    assert text.count("# rank = 1, probability = ") == len(X)


def test_constraints(cli, files, chunker, tmp_path):
    test = files / "treebank" / "test.txt"
    rules = tmp_path / "rules.txt"
    rules.write_text("forbid * B-NP\nforbid ^ B-NP\nword the B-VP\n")
    rows = [
        line.split("\t") for line in cli("predict", chunker, test, "--constraints", rules).stdout.splitlines() if line
    ]
    assert "B-NP" not in {row[3] for row in rows}
    assert {row[3] for row in rows if row[0] == "the"} == {"B-VP"}
    several = cli("predict", chunker, test, "--constraints", rules, "--k-best", 2).stdout
    assert "# rank = 1, " in several
    assert not [line for line in several.splitlines() if line.endswith("\tB-NP") and not line.startswith("#")]


def test_maxent_tagger_answers_as_a_crf_does(cli, cli_json, files, tmp_path):
    """--model maxent: marginals, k best answers, constraints, report and calibration as with a CRF."""
    train, test = files / "treebank" / "train.txt", files / "treebank" / "test.txt"
    model, rules, report = tmp_path / "m.pw", tmp_path / "rules.txt", tmp_path / "r.html"
    cli("train", "tag", train, "-o", model, "--model", "maxent", "--tol", "0.01", "-q", "--report", report)
    assert "<svg" in report.read_text()
    tagger = partwise.load(model)
    X, _ = read(test)
    found = [json.loads(line) for line in cli("predict", model, test, "--marginals", "--json").stdout.splitlines()]
    expected = tagger.predict_marginals(X)
    assert [line["labels"] for line in found] == tagger.predict(X)
    assert [line["marginals"][0] for line in found] == [pytest.approx(rows[0]) for rows in expected]

    rules.write_text("scheme iob2\nforbid * B-NP\nforbid ^ B-NP\nword the B-VP\n")
    options = ("--constraints", rules, "--k-best", 3, "--json")
    best = [json.loads(line)["best"] for line in cli("predict", model, test, *options).stdout.splitlines()]
    free = cli("predict", model, test, *options[2:]).stdout.splitlines()
    assert best != [json.loads(line)["best"] for line in free]
    for words, answers in zip(X.column(0), best, strict=True):
        values = [answer["probability"] for answer in answers]
        assert values == sorted(values, reverse=True)
        assert sum(values) <= 1 + 1e-9
        for answer in answers:
            assert "B-NP" not in answer["labels"]
            assert all(label == "B-VP" for word, label in zip(words, answer["labels"], strict=True) if word == "the")
    assert 0 < cli_json("evaluate", model, test, "--calibration")["brier"] < 2


@pytest.mark.parametrize("options", [(), ("--model", "maxent")])
@pytest.mark.parametrize("more", [(), ("--k-best", 2), ("--marginals",)])
def test_contradictory_rules_are_counted_from_1(cli, tmp_path, options, more):
    """Errors about contradictory rules count sentences and tokens from 1, as the rules do."""
    data, model, rules = tmp_path / "data.txt", tmp_path / "m.pw", tmp_path / "rules.txt"
    data.write_text("a A\nb B\nc A\n\nb A\na A\nc B\n\nd B\n")
    cli("train", "tag", data, "-o", model, "-q", *options)
    rules.write_text("token 2 3 A\ntoken 2 3 B\n")
    said = cli("predict", model, data, "--constraints", rules, *more, status=2).stderr
    assert said == f"error: {rules}: the rules leave sentence 2, token 3 without an answer\n"
    rules.write_text("token 2 1 A\ntoken 2 2 B\nforbid A B\n")
    said = cli("predict", model, data, "--constraints", rules, *more, status=2).stderr
    assert said == f"error: {rules}: the rules leave sentence 2 without an answer\n"


def test_compressed_output(cli, files, chunker, tmp_path):
    test = files / "treebank" / "test.txt"
    cli("predict", chunker, test, "-o", tmp_path / "out.txt.gz")
    plain = cli("predict", chunker, test).stdout
    assert gzip.decompress((tmp_path / "out.txt.gz").read_bytes()).decode() == plain
    packed = tmp_path / "in.gz"
    packed.write_bytes(gzip.compress(test.read_bytes()))
    assert cli("predict", chunker, packed).stdout == plain


def test_columns_are_chosen_by_number(cli_json, files, tmp_path):
    train, model = files / "treebank" / "train.txt", tmp_path / "m.pw"
    said = cli_json("train", "tag", train, "-o", model, "--columns", "1,2", "--features", "pos")
    assert "f1" not in said
    assert said["accuracy"] > said["baseline"]["score"]
    table = read_columns(files / "treebank" / "test.txt")
    found = cli_json("evaluate", model, files / "treebank" / "test.txt")
    X = table.without(2).without(1)
    expected = np.mean(
        [
            a == b
            for p, q in zip(partwise.load(model).predict(X), table.column(1), strict=True)
            for a, b in zip(p, q, strict=True)
        ]
    )
    assert found["accuracy"] == pytest.approx(expected)


def test_other_losses_solvers_and_models(cli, cli_json, files, tmp_path):
    train = files / "treebank" / "train.txt"
    said = cli_json(
        *("train", "tag", train, "-o", tmp_path / "m.pw", "--loss", "squared-hinge", "--solver", "dcd", "--tol", "0.05")
    )
    assert (said["solver"], said["loss"]) == ("dcd", "squared-hinge")
    assert said["relative_gap"] <= 0.05
    answer = cli("predict", tmp_path / "m.pw", train, "--marginals", status=2)
    assert "gives no probabilities" in answer.stderr
    said = cli_json("train", "tag", train, "-o", tmp_path / "m.pw", "--model", "maxent")
    assert said["status"] == "converged"
    said = cli_json(
        *("train", "tag", train, "-o", tmp_path / "m.pw", "--solver", "eg", "--solver-option", "initial-step=0.25"),
        *("--solver-option", "order=cyclic", "--tol", "0.01"),
    )
    assert said["solver"] == "eg"
    assert partwise.load(tmp_path / "m.pw").solver_options == {"initial_step": 0.25, "order": "cyclic"}


def test_baseline_without_structure(cli_json, files, tmp_path):
    train = files / "treebank" / "train.txt"
    said = cli_json("train", "tag", train, "-o", tmp_path / "m.pw", "--baseline", "maxent", "--tol", "0.01")
    assert said["baseline"]["name"].startswith("maxent")
    assert 0.5 < said["baseline"]["score"] <= 1


def test_early_stopping_and_history(cli, files, tmp_path):
    train, dev = files / "treebank" / "train.txt", files / "treebank" / "dev.txt"
    history = tmp_path / "h.csv"
    cli(
        *(
            "train",
            "tag",
            train,
            "-o",
            tmp_path / "m.pw",
            "--dev",
            dev,
            "--early-stopping",
            1,
            "--history-file",
            history,
        ),
        *("--solver", "eg", "--tol", "1e-8"),
    )
    assert history.read_text().startswith("passes,seconds,primal,dual,gap")
    assert partwise.load(tmp_path / "m.pw").result_.status == "stopped"


def test_early_stopping_says_which_weights_these_are(cli, cli_json, files, tmp_path):
    train, dev = files / "treebank" / "train.txt", files / "treebank" / "dev.txt"
    args = ("train", "tag", train, "-o", tmp_path / "m.pw", "--dev", dev, "--early-stopping", 2)
    args += ("--C", 1000, "--solver", "eg", "--tol", "1e-8")
    said = cli_json(*args)
    early = said["early_stopping"]
    assert len(early["scores"]) >= 3
    assert early["best_score"] == max(row["score"] for row in early["scores"]) == said["f1"]
    assert early["best_passes"] in [row["passes"] for row in early["scores"]]
    text = cli(*args).stdout
    assert f"{said['f1']:.2%} at pass {early['best_passes']:.4g}, the best of {len(early['scores'])} scores" in text


def test_early_stopping_of_a_run_without_a_step(cli_json, files, tmp_path):
    train = files / "treebank" / "train.txt"
    said = cli_json("train", "tag", train, "-o", tmp_path / "m.pw", "--dev", train, "--early-stopping", 1, "--tol", 1e9)
    assert "early_stopping" not in said or said["early_stopping"]["scores"]


def test_development_scores_take_a_tenth_of_the_time(monkeypatch):
    """Development scores take at most a tenth of the time spent so far, with or without a new certificate."""
    from types import SimpleNamespace

    from partwise.cli import train
    from partwise.solvers import Progress

    clock = [0.0]
    monkeypatch.setattr(train.time, "perf_counter", lambda: clock[0])

    def evaluate(model, data):
        clock[0] += 1.0
        return 0.5

    task = SimpleNamespace(evaluate=evaluate, main_score=lambda evaluation: ("f1", evaluation))
    watch = train.DevScore(task, None)
    watch.begin(SimpleNamespace(preview=lambda weights: None))
    scored = []
    for seconds in (1.0, 2.0, 9.0, 10.0, 11.0):
        told = Progress("eg", 1, seconds, seconds, None, False, lambda: np.zeros(1))
        watch(told)
        scored += [seconds] * len(told.scores)
    assert scored == [1.0, 10.0, 11.0]


@pytest.mark.filterwarnings("default::partwise.ConvergenceWarning")
def test_a_limit_warns_and_still_gives_a_model(cli, files, tmp_path):
    train = files / "treebank" / "train.txt"
    answer = cli("train", "tag", train, "-o", tmp_path / "m.pw", "--max-passes", 1, "--solver", "eg", "-q")
    assert answer.stderr.startswith("warning: ")
    assert answer.stdout == ""
    assert partwise.load(tmp_path / "m.pw").result_.status == "max_passes"


def test_classifier(cli, cli_json, files, classifier, tmp_path):
    from sklearn.datasets import load_svmlight_file

    test = files / "digits" / "test.svm"
    X, y = load_svmlight_file(str(test), n_features=64)
    model = partwise.load(classifier)
    said = cli_json("evaluate", classifier, test)
    assert said["accuracy"] == pytest.approx(float(np.mean(model.predict(X).astype(float) == y)))
    assert said["unknown_rate"] == 0
    labels = cli("predict", classifier, test).stdout.split()
    assert [float(label) for label in labels] == model.predict(X).astype(float).tolist()
    rows = cli("predict", classifier, test, "--marginals").stdout.splitlines()
    first = [float(cell.rpartition("/")[2]) for cell in rows[0].split("\t")[1:]]
    np.testing.assert_allclose(first, model.predict_proba(X[:1])[0], atol=1e-6)
    expected = model.predict_proba(X[:1])[0]
    names = model.classes_.tolist()
    best = json.loads(cli("predict", classifier, test, "--k-best", 2, "--json").stdout.splitlines()[0])["best"]
    assert [answer["label"] for answer in best] == [names[k] for k in np.argsort(-expected)[:2]]
    assert [answer["probability"] for answer in best] == pytest.approx(np.sort(expected)[::-1][:2].tolist())
    one = json.loads(cli("predict", classifier, test, "--marginals", "--json").stdout.splitlines()[0])
    assert one["label"] == best[0]["label"]
    assert one["marginals"] == pytest.approx(dict(zip(map(str, names), expected.tolist(), strict=True)))
    said = cli("predict", classifier, test, "--k-best", 2, "--marginals", status=2).stderr
    assert "cannot be combined" in said


def test_unknown_columns_are_counted(cli, cli_json, classifier, tmp_path):
    path = tmp_path / "more.svm"
    path.write_text("1 1:0.5 99:1\n2 2:1\n")
    assert cli_json("evaluate", classifier, path)["unknown_rate"] == pytest.approx(1 / 3)
    assert cli("predict", classifier, path).stderr == "unknown features: 33.33% of those in the data\n"
    path.write_text("1 1:0.5\n")
    assert cli("predict", classifier, path).stderr == ""


def test_unknown_attributes_are_counted_over_all_blocks(cli, cli_json, files, chunker, tmp_path, monkeypatch):
    path = tmp_path / "odd.txt"
    path.write_text((files / "treebank" / "test.txt").read_text() + "zyzzyva X O\n\nzyx Y O\n\n")
    rate = cli_json("evaluate", chunker, path)["unknown_rate"]
    assert rate > 0
    for size in (1 << 20, 300, 1):
        monkeypatch.setattr("partwise.cli.predict.BLOCK", size)
        assert cli("predict", chunker, path).stderr == f"unknown features: {rate:.2%} of those in the data\n"


def test_path_keeps_the_best(cli_json, cli, files, tmp_path):
    train, dev, model = files / "digits" / "train.svm", files / "digits" / "dev.svm", tmp_path / "m.pw"
    said = cli_json(
        *("path", "maxent", train, "-o", model, "--dev", dev, "--points", 3, "--C-min", 0.001, "--C-max", 10)
    )
    assert [point["C"] for point in said["points"]] == pytest.approx([0.001, 0.1, 10])
    assert all(point["relative_gap"] <= 1e-3 for point in said["points"])
    best = max(said["points"], key=lambda point: point["score"])
    assert said["score"] == best["score"]
    assert cli_json("evaluate", model, dev)["accuracy"] == pytest.approx(said["score"])
    assert pytest.approx(said["C"]) == partwise.load(model).C
    text = cli("path", "tag", files / "treebank" / "train.txt", "-o", model, "--points", 2, "--tol", 0.01).stdout
    assert "held out" in text
    assert " *" in text


def test_inspect(cli, cli_json, chunker, classifier):
    said = cli_json("inspect", chunker, "--top", 3)
    model = partwise.load(chunker)
    assert said["labels"] == model.classes_.tolist()
    assert said["primal"] == pytest.approx(model.result_.primal)
    _heading, rows = next(iter(said["top"].items()))
    assert len(rows) <= 3
    assert "certified" in cli("inspect", chunker).stdout
    assert cli_json("inspect", classifier)["task"] == "maxent"


def test_calibration(cli, cli_json, files, chunker, classifier, tmp_path):
    from partwise.metrics import calibration

    test = files / "treebank" / "test.txt"
    X, y = read(test)
    model = partwise.load(chunker)
    expected = calibration(y, model.predict_marginals(X))
    said = cli_json("evaluate", chunker, test, "--calibration")
    assert (said["ece"], said["brier"]) == pytest.approx((expected.ece, expected.brier))
    assert str(expected) in cli("evaluate", chunker, test, "--calibration").stdout
    assert 0 < cli_json("evaluate", classifier, files / "digits" / "test.svm", "--calibration")["brier"] < 2
    margin = tmp_path / "margin.pw"
    cli("train", "tag", test, "-o", margin, "--loss", "hinge", "--tol", "0.1", "-q")
    assert "no probabilities" in cli("evaluate", margin, test, "--calibration", status=2).stderr


@pytest.mark.parametrize("columns", [3, 99])
def test_development_data_with_other_columns(cli_json, files, tmp_path, columns):
    dev = tmp_path / "dev.svm"
    dev.write_text(f"1 1:0.5 {columns}:1\n2 2:1\n")
    said = cli_json(
        *("train", "maxent", files / "digits" / "train.svm", "-o", tmp_path / "m.pw", "--dev", dev),
        *("--early-stopping", 1, "--solver", "sdca", "--tol", "1e-6"),
    )
    assert said["unknown_rate"] == pytest.approx(1 / 3 if columns == 99 else 0)


def test_the_report_says_what_was_scored(cli, files, tmp_path):
    train, dev = files / "treebank" / "train.txt", files / "treebank" / "dev.txt"
    report = tmp_path / "r.html"
    for more, where in (((), "the training data"), (("--dev", dev), dev.name)):
        cli("train", "tag", train, "-o", tmp_path / "m.pw", "-q", "--tol", "0.1", "--report", report, *more)
        assert f"scored on {where}" in report.read_text()
    size = partwise.load(tmp_path / "m.pw").result_.weights
    assert f"{(size != 0).sum():,}</" in report.read_text()
    # the length of the weight vector is not shown: it includes padding
    assert f" of {len(size):,}" not in report.read_text()


def test_rows_that_scikit_learn_wrote(cli, cli_json, tmp_path):
    from sklearn.datasets import dump_svmlight_file

    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.5]])
    for zero_based in (False, True):
        rows, model = str(tmp_path / "rows.svm"), tmp_path / "m.pw"
        dump_svmlight_file(X, [1, 2, 1, 2], rows, zero_based=zero_based)
        cli("train", "maxent", rows, "-o", model, "-q", *["--zero-based"] * zero_based)
        assert partwise.load(model).n_features_in_ == 3
        assert cli_json("evaluate", model, rows)["accuracy"] == 1.0  # the model remembers --zero-based
        first = cli_json("inspect", model, "--top", 3)["top"]
        names = sorted(name for [pairs] in [first.values()] for name, _ in pairs)
        assert names == [f"column {k + (not zero_based)}" for k in range(3)]


def test_labels_that_a_classifier_does_not_know(cli, cli_json, files, classifier, tmp_path):
    rows = tmp_path / "rows.svm"
    rows.write_text((files / "digits" / "test.svm").read_text() + "17 1:1\n")
    assert cli_json("evaluate", classifier, rows)["unseen_labels"] == [17]
    assert "labels that the model does not know: 17" in cli("evaluate", classifier, rows).stdout
