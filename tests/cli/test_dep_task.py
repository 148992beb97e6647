"""Dependency parsing on the command line gives the results of the estimator."""

import json

import numpy as np
import pytest

import partwise
from partwise import DependencyParser
from partwise.cli.tasks.dep import DepTask
from partwise.cli.tasks.rules import read_arc_rules
from partwise.datasets import make_treebank
from partwise.io import FormatError, read_conllu
from partwise.metrics import attachment_scores


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    for name, n, seed in (("train", 120, 3), ("dev", 40, 4)):
        (folder / f"{name}.conllu").write_text(make_treebank(n, seed).conllu())
    return folder


@pytest.fixture(scope="module")
def parser(trees, cli):
    path = trees / "parser.pw"
    cli("train", "dep", trees / "train.conllu", "-o", path, "--C", "1", "-q")
    return path


def test_train_gives_the_estimators_results(cli_json, trees, tmp_path):
    said = cli_json("train", "dep", trees / "train.conllu", "-o", tmp_path / "m.pw", "--dev", trees / "dev.conllu")
    model = DependencyParser(random_state=0).fit(read_conllu(trees / "train.conllu"))
    dev = read_conllu(trees / "dev.conllu")
    scores = attachment_scores(dev, model.predict(dev))
    assert said["primal"] == pytest.approx(model.result_.primal, rel=1e-9)
    assert said["C"] == 0.1
    assert (said["uas"], said["las"], said["clas"]) == pytest.approx((scores.uas, scores.las, scores.clas))
    assert said["n_features"] == len(model.coef_)
    assert said["n_skipped"] == 0
    assert said["labels_certificate"]["primal"] == pytest.approx(model.label_result_.primal, rel=1e-9)
    assert said["baseline"]["score"] < said["uas"]


def test_models_are_chosen_by_las_where_there_are_names(cli, cli_json, trees, tmp_path):
    train, dev = trees / "train.conllu", tmp_path / "dev.conllu"
    # a relation that the model never predicts
    dev.write_text((trees / "dev.conllu").read_text().replace("\tobj\t", "\tdep\t"))
    args = ("train", "dep", train, "-o", tmp_path / "m.pw", "--dev", dev, "--early-stopping", 2, "--C", "1")
    said = cli_json(*args)
    assert said["early_stopping"]["best_score"] == pytest.approx(said["las"])
    assert said["las"] < said["uas"]
    assert said["baseline"]["name"].endswith("named by its part of speech")
    assert 0 < said["baseline"]["score"] < said["las"]
    text = cli(*args).stdout
    assert f"las {said['las']:.2%} on {dev}" in text
    assert f"uas {said['uas']:.2%}" in text
    said = cli_json(*args, "--unlabelled")
    assert said["early_stopping"]["best_score"] == pytest.approx(said["uas"])
    assert 0 < said["baseline"]["score"] < said["uas"]
    assert "las" not in said


def test_summary_counts_crossing_trees(cli, tmp_path):
    path = tmp_path / "crossing.conllu"
    path.write_text(make_treebank(60, 5, nonprojective=0.4).conllu())
    crossing = DependencyParser(tol=0.5).fit(read_conllu(path)).n_non_projective_
    assert crossing > 5
    for option, word in (("skip", "left out"), ("lift", "lifted")):
        text = cli("train", "dep", path, "-o", tmp_path / "m.pw", "--non-projective", option).stdout
        assert f"{crossing} gold trees ({crossing / 60:.1%}) have arcs that cross: {word}" in text
        assert "--structure spanning" in text
        assert text.count("certified") == 2
        assert "every word on the one after it" in text


def test_few_crossing_trees_are_no_reason_for_another_structure(cli, tmp_path):
    path = tmp_path / "few.conllu"
    path.write_text(make_treebank(60, 5).conllu() + make_treebank(3, 5, nonprojective=1.0).conllu())
    text = cli("train", "dep", path, "-o", tmp_path / "m.pw", "--tol", "0.1").stdout
    assert "have arcs that cross: left out\n" in text
    assert "spanning" not in text
    assert "that cross" not in cli("train", "dep", path, "-o", tmp_path / "m.pw", "--structure", "spanning").stdout


def without_columns(path, columns, out):
    """Copy a CoNLL-U file with these columns (numbers from 1) blank."""
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    for row in rows:
        for k in columns if len(row) > 1 else ():
            row[k - 1] = "_"
    out.write_text("".join("\t".join(row) + "\n" for row in rows))
    return out


def test_blank_columns_and_unknown_features_are_told(cli, cli_json, trees, parser, tmp_path, monkeypatch):
    dev = trees / "dev.conllu"
    model = partwise.load(parser)
    model.predict(read_conllu(dev))
    assert model.blank_columns_ == []
    rate = cli_json("evaluate", parser, dev)["unknown_rate"]
    assert 0 < rate == model.unknown_rate_ < 0.5
    assert cli("predict", parser, dev).stderr == f"unknown features: {rate:.2%} of those in the data\n"
    assert f"unknown features: {rate:.2%}" in cli("evaluate", parser, dev).stdout

    bare = without_columns(dev, (3, 4, 5), tmp_path / "bare.conllu")
    warning = f"warning: {bare}: columns upos, xpos are blank (_), unlike in training: expect poor answers\n"
    answer = cli("evaluate", parser, bare)
    assert warning in answer.stderr
    said = json.loads(cli("evaluate", parser, bare, "--json").stdout)
    assert said["blank_columns"] == ["upos", "xpos"]
    assert said["unknown_rate"] > 2 * rate
    for size in (1 << 20, 300):
        monkeypatch.setattr("partwise.cli.predict.BLOCK", size)
        for more in ((), ("--k-best", 2)):
            err = cli("predict", parser, bare, *more).stderr
            assert warning in err
            assert f"unknown features: {said['unknown_rate']:.2%} of those in the data\n" in err
        # a column counts as blank only if it is blank in all blocks
        both = tmp_path / "both.conllu"
        both.write_text(bare.read_text() + dev.read_text())
        assert "blank" not in cli("predict", parser, both).stderr
    args = ("train", "dep", trees / "train.conllu", "-o", tmp_path / "m.pw", "--dev", bare, "-q", "--tol", "0.1")
    assert warning in cli(*args).stderr


def test_columns_that_training_did_not_have_may_be_blank(cli, trees, tmp_path):
    train = without_columns(trees / "train.conllu", (3, 5, 6), tmp_path / "train.conllu")
    cli("train", "dep", train, "-o", tmp_path / "m.pw", "-q", "--tol", "0.1")
    dev = without_columns(trees / "dev.conllu", (3, 5, 6), tmp_path / "dev.conllu")
    assert "blank" not in cli("predict", tmp_path / "m.pw", dev).stderr
    dev = without_columns(trees / "dev.conllu", (3, 4, 5, 6), tmp_path / "dev.conllu")
    assert "column upos is blank (_), unlike in training" in cli("predict", tmp_path / "m.pw", dev).stderr


def test_evaluate_and_predict(cli, cli_json, trees, parser, tmp_path):
    dev = trees / "dev.conllu"
    model, gold = partwise.load(parser), read_conllu(dev)
    text = cli("evaluate", parser, dev).stdout
    assert str(attachment_scores(gold, model.predict(gold))) in text
    said = cli_json("evaluate", parser, dev)
    assert sum(row["gold"] for row in said["labels"]) == said["n_tokens"] == sum(map(len, gold))
    cli("predict", parser, dev, "-o", tmp_path / "out.conllu")
    found = read_conllu(tmp_path / "out.conllu")
    assert [s.heads for s in found] == [[h for h, _ in tree] for tree in model.predict(gold)]
    assert [s.deprels for s in found] == [[r for _, r in tree] for tree in model.predict(gold)]
    assert [s.forms for s in found] == [s.forms for s in gold]


def test_predict_from_a_pipe_without_trees(cli, trees, parser):
    gold = read_conllu(trees / "dev.conllu")[:3]
    lines = [line for s in gold for line in s.lines]
    blank = "".join(
        "\t".join([*line.split("\t")[:6], "_", "_", "_", "_\n"]) if "\t" in line else line for line in lines
    )
    expected = partwise.load(parser).parse(gold)
    assert cli("predict", parser, "-", stdin=blank).stdout == "".join(line for s in expected for line in s.lines)


def test_marginals_k_best_json(cli, trees, parser):
    gold = read_conllu(trees / "dev.conllu")
    model = partwise.load(parser)
    text = cli("predict", parser, trees / "dev.conllu", "--marginals").stdout
    first = float(text.split("HeadProbability=")[1].split()[0])
    marginals = model.predict_marginals(gold[:1])[0]
    assert first == pytest.approx(marginals[0, model.predict(gold[:1])[0][0][0]], abs=1e-6)
    rows = cli("predict", parser, trees / "dev.conllu", "--marginals", "--json").stdout.splitlines()
    found = json.loads(rows[0])
    np.testing.assert_allclose(found["marginals"], marginals, atol=1e-9)
    assert found["heads"] == [head for head, _ in model.predict(gold[:1])[0]]
    best = json.loads(cli("predict", parser, trees / "dev.conllu", "--k-best", "2", "--json").stdout.splitlines()[0])
    assert [each["probability"] for each in best["best"]] == pytest.approx(
        [v for _, v in model.predict_k_best(gold[:1], 2, probabilities=True)[0]]
    )
    assert "# rank = 1, probability = " in cli("predict", parser, trees / "dev.conllu", "--k-best", "2").stdout


LINE = "{}\t{}\t_\t{}\t{}\t_\t_\t_\t_\t_"
WORDS = "\n".join(map(LINE.format, "123", ("the", "sailor", "slept"), ("DET", "NOUN", "VERB"), ("DT", "NN", "VBD")))


@pytest.mark.parametrize(
    "text",
    [WORDS, WORDS + "\n", WORDS + "\n\n", "\n\ufeff" + WORDS, "\ufeff# x\n" + WORDS, (WORDS + "\n\n# y\n" + WORDS)],
    ids=["no-end", "end", "blank", "blanks-mark", "mark", "two"],
)
@pytest.mark.parametrize("crlf", [False, True], ids=["lf", "crlf"])
def test_k_best_trees_can_be_read_back(cli, parser, tmp_path, text, crlf):
    path = tmp_path / "in.conllu"
    path.write_bytes((text.replace("\n", "\r\n") if crlf else text).encode())
    cli("predict", parser, path, "--k-best", "3", "-o", tmp_path / "out.conllu")
    found = read_conllu(tmp_path / "out.conllu")
    given = read_conllu(path)
    expected = partwise.load(parser).predict_k_best(given, 3)
    assert [s.heads for s in found] == [[head for head, _ in tree] for answers in expected for tree, _ in answers]
    assert [s.comments[0].split(",")[0] for s in found] == [f"# rank = {k}" for _ in given for k in range(3)]
    data = (tmp_path / "out.conllu").read_bytes()
    assert data.count(b"\xef\xbb\xbf") == path.read_bytes().count(b"\xef\xbb\xbf")
    assert data.endswith(b"\n") == text.endswith("\n")
    if crlf:
        assert data.count(b"\n") == data.count(b"\r\n")


def test_odd_files_change_in_heads_and_relations_only(cli, parser, tmp_path):
    """Prediction changes heads and relations only, however unusual the file (line ends, comments, empty nodes)."""
    given = (
        "\ufeff# a\r\n1-2\tx\u00a0y\t_\t_\t_\t_\t_\t_\t_\t\r\n1\tx\u00a0 z\t\tDET\tDT\t_\t{}\t{}\t_\t \r\n# b\r\n"
        "2\t\u2028\t_\tNOUN\tNN\t_\t{}\t{}\t_\tA=b\r\n2.1\te\t_\t_\t_\t_\t_\t_\t0:root\t_\r\n"
        " \r\n\r\n1\tw\t_\tVERB\tVB\t_\t{}\t{}\t_\t_"
    )
    path, out = tmp_path / "in.conllu", tmp_path / "out.conllu"
    path.write_bytes(given.format(*"______").encode())
    cli("predict", parser, path, "-o", out)
    trees = partwise.load(parser).predict(read_conllu(path))
    assert [len(tree) for tree in trees] == [2, 1]
    assert out.read_bytes().decode() == given.format(*(part for tree in trees for arc in tree for part in arc))
    cli("predict", parser, path, "-o", out, "--marginals")
    assert [s.column("misc")[0].split("=")[0] for s in read_conllu(out)] == [" |HeadProbability", "HeadProbability"]


def test_constraints_file(cli, trees, parser, tmp_path):
    gold = read_conllu(trees / "dev.conllu")
    n = len(gold[1])
    (tmp_path / "rules").write_text(f"# heads\nhead 2 1 {n}   # the last word\n\nforbid 2 1 0\n")
    text = cli("predict", parser, trees / "dev.conllu", "--constraints", tmp_path / "rules", "--json").stdout
    assert json.loads(text.splitlines()[1])["heads"][0] == n
    options = ("--constraints", tmp_path / "rules", "--json", "--k-best", "3")
    best = json.loads(cli("predict", parser, trees / "dev.conllu", *options).stdout.splitlines()[1])["best"]
    assert [tree["heads"][0] for tree in best] == [n] * 3
    out = tmp_path / "out.conllu"
    for rules, place in {"head 2 1 2\nhead 2 2 1\n": "sentence 2", "head 2 1 1\n": "sentence 2, word 1"}.items():
        (tmp_path / "rules").write_text(rules)
        answer = cli("predict", parser, trees / "dev.conllu", "--constraints", tmp_path / "rules", "-o", out, status=2)
        assert answer.stderr.endswith(f"rules: the rules leave {place} without an answer\n")
        assert not out.exists()
    for rule, message in {
        "allow 1 1 1": "unknown rule",
        "head 1 1": "takes the numbers",
        "head 1 x 1": "takes the numbers",
        "head 1 1 " + "1" * 5000: "takes the numbers",
        "head 99 1 1": "no sentence 99",
        "head 1 1 99": "words only",
    }.items():
        (tmp_path / "rules").write_text(rule)
        with pytest.raises(FormatError, match=f"rules:1: .*{message}"):
            rules = read_arc_rules(str(tmp_path / "rules"))
            rules.allowed([3])
            rules.check(1)


def test_unsupported_options_are_refused_before_training(cli, trees, tmp_path, monkeypatch):
    monkeypatch.setattr(DependencyParser, "fit", lambda *_, **__: pytest.fail("trained"))
    train, model = trees / "train.conllu", tmp_path / "m.pw"
    assert "not available for trees" in cli("train", "dep", train, "-o", model, "--baseline", "maxent", status=2).stderr
    long = tmp_path / "long.conllu"
    long.write_text("".join(f"{k}\tw\t_\t_\t_\t_\t{k - 1}\tx\t_\t_\n" for k in range(1, 62)) + "\n")
    answer = cli("train", "dep", train, "-o", model, "--dev", long, "--max-length", "60", status=2)
    assert "long.conllu:1) has 61 words, more than max_length = 60: it would take about" in answer.stderr
    assert not model.exists()


def test_conllx_from_file_to_prediction(cli, tmp_path):
    """Columns 9 and 10 of CoNLL-X (a second tree) are blank in predictions, and a model remembers the format."""
    path, model, out = tmp_path / "train.conll", tmp_path / "m.pw", tmp_path / "out.conll"
    rows = [line.split("\t") for line in make_treebank(40, 3).conllu().split("\n") if not line.startswith("#")]
    path.write_text("\n".join("\t".join([*row[:8], *row[6:8]]) if len(row) == 10 else "" for row in rows))
    cli("train", "dep", path, "-o", model, "-q", "--tol", "0.1")
    cli("predict", model, path, "-o", out)
    for before, after in zip(path.read_text().split("\n"), out.read_text().split("\n"), strict=True):
        assert before.split("\t")[:6] == after.split("\t")[:6]
        assert after.split("\t")[8:] == (["_", "_"] if before else [])
    assert "no place for probabilities" in cli("predict", model, out, "--marginals", status=2).stderr
    assert json.loads(cli("predict", model, out, "--marginals", "--json").stdout.split("\n")[0])["marginals"]


def test_long_sentences_by_an_old_model(cli, cli_json, parser, chunker, tmp_path):
    """--max-length overrides the model's limit on sentences, as a larger machine may handle longer ones."""
    path, out = tmp_path / "long.conllu", tmp_path / "out.conllu"
    path.write_text("".join(f"{k}\tw\t_\tNOUN\tNN\t_\t{k - 1}\tx\t_\t_\n" for k in range(1, 503)) + "\n")
    for command in (("predict", parser, path, "-o", out), ("evaluate", parser, path)):
        answer = cli(*command, status=2)
        assert "has 502 words, more than max_length = 500: it would take about" in answer.stderr
    assert not out.exists()
    cli("predict", parser, path, "-o", out, "--max-length", "502")
    assert len(read_conllu(out)[0]) == 502
    assert cli_json("evaluate", parser, path, "--max-length", "502")["n_tokens"] == 502
    assert cli("predict", parser, path, "-o", out, "--max-length", "501", status=2).stderr.count("\n") == 1
    assert "sentences of any length" in cli("predict", chunker, path, "--max-length", "9", status=2).stderr


def test_calibration_of_heads(cli, cli_json, trees, parser):
    gold = read_conllu(trees / "dev.conllu")
    rows = partwise.load(parser).predict_marginals(gold)
    sure = np.concatenate([row.max(axis=1) for row in rows])
    right = np.concatenate([row.argmax(axis=1) == s.heads for row, s in zip(rows, gold, strict=True)])
    bins = np.minimum(np.ceil(10 * sure) - 1, 9)
    ece = sum(abs(right[bins == b].sum() - sure[bins == b].sum()) for b in range(10)) / len(sure)
    errors = [((row - np.eye(len(s) + 1)[s.heads]) ** 2).sum(axis=1) for row, s in zip(rows, gold, strict=True)]
    said = cli_json("evaluate", parser, trees / "dev.conllu", "--calibration")
    assert said["ece"] == pytest.approx(ece, abs=1e-9)
    assert said["brier"] == pytest.approx(np.concatenate(errors).mean(), abs=1e-9)
    assert "Brier score" in cli("evaluate", parser, trees / "dev.conllu", "--calibration").stdout


def test_scores_without_content_words(cli_json, parser, tmp_path):
    path = tmp_path / "in.conllu"
    path.write_text("1\tthe\t_\tDET\tDT\t_\t2\tdet\t_\t_\n2\t.\t_\tPUNCT\t.\t_\t0\tpunct\t_\t_\n\n")
    said = cli_json("evaluate", parser, path)
    assert {"uas", "las", "uas_without_punctuation", "las_without_punctuation"} <= set(said)
    assert "unseen_labels" not in said
    path.write_text(path.read_text().replace("det", "odd:one").replace("punct", "new"))
    assert cli_json("evaluate", parser, path)["unseen_labels"] == ["new", "odd:one"]
    path.write_text(make_treebank(5, 8).conllu())
    assert {"clas", "clas_without_punctuation"} <= set(cli_json("evaluate", parser, path))


def test_unlabelled_spanning_hashed(cli_json, trees, tmp_path):
    options = (
        "--unlabelled",
        "--structure",
        "spanning",
        "--features",
        "hashed",
        "--hash-bits",
        "16",
        "--loss",
        "hinge",
    )
    (tmp_path / "table").write_text("upos | upos\nform |\n| form\nupos | upos | upos\n")
    said = cli_json(
        "train", "dep", trees / "train.conllu", "-o", tmp_path / "m.pw", *options, "--solver", "bcfw", "--tol", "0.1",
        "--templates", tmp_path / "table",
    )  # fmt: skip
    assert said["n_features"] == 2**16
    assert said["n_labels"] == 0
    assert "las" not in said
    assert said["relative_gap"] <= 0.1


def test_bad_files(cli, trees, tmp_path):
    good = (trees / "train.conllu").read_text()
    bad = tmp_path / "bad.conllu"
    model = tmp_path / "m.pw"
    bad.write_text(good + "1\ta\t_\t_\t_\t_\t2\tx\t_\t_\n2\tb\t_\t_\t_\t_\t1\tx\t_\t_\n\n")
    answer = cli("train", "dep", bad, "-o", model, status=2)
    assert f"bad.conllu:{good.count(chr(10)) + 1}:13: the heads make a cycle" in answer.stderr
    assert not model.exists()
    answer = cli("train", "dep", bad, "-o", model, "--lenient", "-q")
    assert "1 sentences left out" in answer.stderr
    assert model.exists()
    bad.write_text("1\ta\t_\t_\t_\t_\t0\tx\t_\t_\n2\tb\t_\t_\t_\t_\t0\tx\t_\t_\n\n")
    assert "2 roots" in cli("train", "dep", bad, "-o", tmp_path / "n.pw", status=2).stderr
    bad.write_text("1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
    assert (
        "bad.conllu:1: a sentence without heads" in cli("train", "dep", bad, "-o", tmp_path / "n.pw", status=2).stderr
    )
    bad.write_text("")
    assert "no sentences" in cli("train", "dep", bad, "-o", tmp_path / "n.pw", status=2).stderr
    assert not (tmp_path / "n.pw").exists()


def test_formats_and_drawings(trees, parser, tmp_path):
    task = DepTask()
    path = tmp_path / "x.conll"
    path.write_text("1\ta\t_\tN\tN\t_\t0\tROOT\t0\tROOT\n\n")
    assert task.read(str(path), {}, labelled=True).source == "conllx"
    data = task.read(str(trees / "dev.conllu"), {}, labelled=True)
    assert data.source == "conllu"
    drawn = task.examples(partwise.load(parser), data, 3)
    assert len(drawn) == 3
    assert all(svg.lstrip().startswith("<svg") for svg in drawn)
    held = task.take(data, [0, 2])
    assert (held.n_examples, held.n_tokens) == (2, len(data.X[0]) + len(data.X[2]))


def test_report_names_features_and_confusions(cli, trees, parser, tmp_path):
    report = tmp_path / "r.html"
    cli("evaluate", parser, trees / "dev.conllu", "--report", report)
    page = report.read_text()
    model, dev = partwise.load(parser), read_conllu(trees / "dev.conllu")
    best, worst = model.top_features(dev, 10)
    assert best[0][1] > best[-1][1] > 0 > worst[-1][1] > worst[0][1]
    name, weight = best[0]
    assert f"{weight:.3g}"[:4] in page
    assert "for an arc (in 40 sentences)" in page
    # the page shows a feature of a predicted arc with its weight
    arcs = [(s, m, arc[0]) for s, tree in zip(dev, model.predict(dev), strict=True) for m, arc in enumerate(tree, 1)]
    assert any((name, weight) in model.explain(*arc) for arc in arcs)
    found = DepTask().evaluate(model, DepTask().read(str(trees / "dev.conllu"), {}, labelled=True))
    names, counts = found.confusion
    assert sum(map(sum, counts)) == sum(sentence.heads[m - 1] == head for sentence, m, head in arcs)
    assert {*names} <= {relation for sentence in dev for relation in sentence.deprels} | {*model.classes_}
    assert "Confusion" in page
    assert "Of words whose head is right." in page
    assert "Certificate of heads" in page
    assert "Certificate of relations" in page
    assert ">None<" not in page
    assert "4 GB" in page
