"""Constituency parsing on the command line gives the results of the estimator."""

import json

import pytest

import partwise
from partwise import ConstituencyParser
from partwise.cli import predict
from partwise.cli.tasks.rules import read_span_rules
from partwise.datasets import make_treebank, treebank_sample
from partwise.io import FormatError, format_tree, parse_trees, read_trees, write_trees
from partwise.io.blocks import after_trees
from partwise.metrics import parseval
from partwise.models.constituents.treebank import RelativeFrequencyParser, TreeTransform, is_parsed, words_of

FLAGS = ("--C", "0.3", "--tol", "0.05")


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    for name, n, seed in (("train", 100, 3), ("dev", 40, 4)):
        (folder / f"{name}.mrg").write_text(make_treebank(n, seed).bracketed())
    return folder


@pytest.fixture(scope="module")
def parser(trees, cli):
    path = trees / "parser.pw"
    cli("train", "cfg", trees / "train.mrg", "-o", path, "-q", *FLAGS)
    return path


@pytest.fixture(scope="module")
def dev(trees):
    return read_trees(trees / "dev.mrg")


def test_train_gives_the_estimators_results(cli, cli_json, trees, dev, tmp_path):
    args = ("train", "cfg", trees / "train.mrg", "-o", tmp_path / "m.pw", "--dev", trees / "dev.mrg", *FLAGS)
    said = cli_json(*args)
    train = read_trees(trees / "train.mrg")
    model = ConstituencyParser(C=0.3, tol=0.05, random_state=0).fit(train)
    scores = parseval(dev, model.predict(dev))
    assert said["primal"] == pytest.approx(model.result_.primal, rel=1e-9)
    assert 0 <= said["gap"] <= 0.05 * said["primal"]
    assert (said["f1"], said["precision"], said["recall"]) == (scores.f1, scores.precision, scores.recall)
    assert (said["exact_match"], said["tag_accuracy"]) == (scores.exact, scores.tag_accuracy)
    assert said["n_without_parse"] == scores.n_failed
    assert said["n_features"] == len(model.coef_)
    assert said["n_rules"] == len(model.grammar_.rules)
    assert said["n_labels"] == len(model.labels_) + len(model.tags_)
    pcfg = RelativeFrequencyParser.of(train, TreeTransform(horizontal=1), rare=model.rare)
    expected = parseval(dev, pcfg.predict([words_of(tree) for tree in dev])).f1
    assert said["baseline"] == {"name": "relative frequencies of the same grammar", "score": expected}
    text = cli(*args).stdout
    assert (
        f"f1 {scores.f1:.2%} on {trees / 'dev.mrg'}; relative frequencies of the same grammar: {expected:.2%}" in text
    )
    assert f"{len(model.grammar_.rules)} rules" in text


def test_evaluate(cli, cli_json, trees, parser, dev):
    scores = parseval(dev, partwise.load(parser).predict(dev))
    assert str(scores) in cli("evaluate", parser, trees / "dev.mrg").stdout
    said = cli_json("evaluate", parser, trees / "dev.mrg")
    assert said["up_to_40_words"] == {"n_examples": 40, "f1": scores.short.f1}
    assert sum(row["gold"] for row in said["labels"]) == scores.n_gold
    assert sum(row["found"] for row in said["labels"]) == scores.n_predicted
    assert said["labels"][0]["label"] == "NP"


def test_labels_that_training_did_not_have(cli, parser, tmp_path):
    (tmp_path / "odd.mrg").write_text("(S (NP (PRP she)) (ODD (VBD ran)) (. .))")
    assert "labels that the model does not know: ODD" in cli("evaluate", parser, tmp_path / "odd.mrg").stdout


def test_predict_from_trees_and_from_text(cli, trees, parser, dev, tmp_path):
    best = partwise.load(parser).predict(dev)
    lines = "".join(format_tree(tree) + "\n" for tree in best)
    assert cli("predict", parser, trees / "dev.mrg").stdout == lines
    text = "\n".join(" ".join(words_of(tree)) for tree in dev)
    assert cli("predict", parser, "-", stdin=text).stdout == lines
    assert cli("predict", parser, "-", "--format", "text", stdin="\ufeff\n\n" + text + "\n\n").stdout == lines
    cli("predict", parser, trees / "dev.mrg", "-o", tmp_path / "out.mrg.gz")
    assert read_trees(tmp_path / "out.mrg.gz") == best


def test_brackets_in_text_are_escaped(cli, parser):
    # a text that begins with a bracket would be taken for a tree without --format text
    answer = cli("predict", parser, "-", "--format", "text", stdin="( she f(x) ran )\n")
    (tree,) = parse_trees(answer.stdout)
    assert words_of(tree) == ["-LRB-", "she", "f-LRB-x-RRB-", "ran", "-RRB-"]
    assert "a label is missing" not in answer.stderr


def test_k_best_marginals_json(cli, trees, parser, dev):
    model = partwise.load(parser)
    rows = [json.loads(line) for line in cli("predict", parser, trees / "dev.mrg", "--json").stdout.splitlines()]
    assert [next(parse_trees(row["tree"])) for row in rows] == model.predict(dev)
    assert [row["parsed"] for row in rows] == [is_parsed(tree) for tree in model.predict(dev)]
    found = json.loads(cli("predict", parser, trees / "dev.mrg", "--json", "--marginals").stdout.splitlines()[0])
    spans = {(row["label"], row["first"] - 1, row["last"]): row["probability"] for row in found["marginals"]}
    assert spans == pytest.approx(model.predict_marginals(dev[:1])[0])
    ranked = model.predict_k_best(dev, 2, probabilities=True)
    rows = [
        json.loads(line)
        for line in cli("predict", parser, trees / "dev.mrg", "--k-best", 2, "--json").stdout.splitlines()
    ]
    assert [[(next(parse_trees(a["tree"])), a["probability"]) for a in row["best"]] for row in rows] == ranked
    blocks = cli("predict", parser, trees / "dev.mrg", "--k-best", 2).stdout.split("\n\n")
    (rank, value, tree), *_ = (line.split("\t") for line in blocks[3].splitlines())
    assert (rank, value) == ("0", f"{ranked[3][0][1]:.6f}")
    assert next(parse_trees(tree)) == ranked[3][0][0]
    assert len(blocks) == len(dev) + 1
    answer = cli("predict", parser, trees / "dev.mrg", "--marginals", status=2)
    assert "a file of trees has no place for probabilities; use --json" in answer.stderr
    answer = cli("predict", parser, trees / "dev.mrg", "--marginals", "--k-best", 2, "--json", status=2)
    assert "--k-best cannot be combined with --marginals" in answer.stderr


def test_sentences_without_a_parse(cli, cli_json, trees, parser, tmp_path):
    text = "she ran .\n. . .\nshe ran .\nthe the\n"
    answer = cli("predict", parser, "-", stdin=text)
    assert answer.stderr == "warning: no parse for sentence 2 and 1 more: flat trees instead\n"
    flat = answer.stdout.splitlines()[1]
    assert flat.count("(") == 4
    rows = [json.loads(line) for line in cli("predict", parser, "-", "--json", stdin=text).stdout.splitlines()]
    assert [row["parsed"] for row in rows] == [True, False, True, False]
    for flags in (("--k-best", 2), ("--k-best", 2, "--json")):
        answer = cli("predict", parser, "-", *flags, stdin=text)
        assert answer.stderr == "warning: no parse for sentence 2 and 1 more: flat trees instead\n"
        assert ('{"best": [], "parsed": false}' if "--json" in flags else f"0\tno parse\t{flat}\n") in answer.stdout
    gold = tmp_path / "gold.mrg"
    gold.write_text("(S (NP (PRP she)) (VP (VBD ran)) (. .))\n(S (VP (. .) (. .) (. .)))")
    assert cli_json("evaluate", parser, gold)["n_without_parse"] == 1
    model = tmp_path / "m.pw"
    cli("train", "cfg", trees / "train.mrg", "-o", model, "--no-parse", "raise", "-q", "--tol", "0.2")
    assert "no parse" in cli("predict", model, "-", stdin=text, status=2).stderr
    said = cli("train", "cfg", trees / "train.mrg", "-o", model, "--dev", gold, "--tol", "0.2").stdout
    assert "1 sentence; its brackets count as missed" in said


def test_constraints_file(cli, parser, tmp_path):
    words = "the pilot saw the baker with a scarf ."
    best = cli("predict", parser, "-", stdin=words).stdout
    rules = tmp_path / "rules"
    rules.write_text("# attach\nforbid 1 4 8   # not the noun's\nrequire 1 6 8 PP\n")
    found = cli("predict", parser, "-", "--constraints", rules, stdin=words).stdout
    assert "(NP (DT the) (NN baker)) (PP (IN with)" in found
    rules.write_text("require 1 4 8 NP\n")
    other = cli("predict", parser, "-", "--constraints", rules, stdin=words).stdout
    assert "(NP (NP (DT the) (NN baker)) (PP (IN with)" in other
    assert best in (found, other)
    ranked = cli("predict", parser, "-", "--constraints", rules, "--k-best", 3, stdin=words).stdout
    assert all("(NP (NP (DT the)" in line for line in ranked.splitlines() if line)
    rules.write_text("require 2 1 2\nrequire 2 2 3\n")
    answer = cli("predict", parser, "-", "--constraints", rules, stdin="she ran .\nshe ran .\n", status=2)
    assert answer.stderr.endswith("rules: the rules leave sentence 2 without an answer\n")
    for rule, message in {
        "allow 1 1 1": "unknown rule 'allow'",
        "require 1 1": "takes the numbers",
        "require 1 x 1": "takes the numbers",
        "require 1 1 1 NP VP": "takes the numbers",
        "require 1 1 2 QQ": "the model has no label 'QQ'",
        "require 3 1 1": "there is no sentence 3: there are 2",
        "forbid 1 2 4": "there are no words 2 to 4 in sentence 1: it has 3",
        "forbid 1 3 2": "there are no words 3 to 2",
        "forbid 1 0 2": "there are no words 0 to 2",
    }.items():
        rules.write_text(f"\n{rule}\n")
        answer = cli("predict", parser, "-", "--constraints", rules, stdin="she ran .\nshe ran .\n", status=2)
        assert f"rules:2: {message}" in answer.stderr or message in answer.stderr


def test_a_tag_may_begin_with_a_number_sign(tmp_path):
    (tmp_path / "rules").write_text("require 1 1 1 # # comment\nforbid 1 2 2 #\n")
    found = read_span_rules(str(tmp_path / "rules"), ["#", "NP"])
    assert found.spans([3]) == {"required": [[("#", 0, 1)]], "forbidden": [[("#", 1, 2)]]}
    found = read_span_rules(str(tmp_path / "rules"), ["NP"])
    assert found.spans([3]) == {"required": [[(0, 1)]], "forbidden": [[(1, 2)]]}
    with pytest.raises(FormatError, match="no sentence 1"):
        found.check(0)


def test_the_same_bytes_for_all_blocks(cli, trees, parser, tmp_path, monkeypatch):
    text = (trees / "dev.mrg").read_text()
    odd = tmp_path / "odd.mrg"
    odd.write_bytes(("\ufeff \r\n" + text.replace(" (VP", "\r\n\r\n   (VP")).encode())
    plain = tmp_path / "plain.txt"
    plain.write_text("\n".join(" ".join(words_of(tree)) for tree in parse_trees(text)))
    rules = tmp_path / "rules"
    rules.write_text("forbid 30 1 2 NP\n")
    for path in (odd, plain):
        for flags in ((), ("--k-best", 2), ("--json", "--marginals"), ("--constraints", rules)):
            monkeypatch.setattr(predict, "BLOCK", 1 << 30)
            expected = cli("predict", parser, path, *flags).stdout
            monkeypatch.setattr(predict, "BLOCK", 500)
            assert cli("predict", parser, path, *flags).stdout == expected


def test_where_trees_are_cut():
    assert after_trees(bytearray(b"(A a)\n(B\n b)\n(C\n"), 0) == 13
    assert after_trees(bytearray(b"(A\n a"), 0) == 0
    assert after_trees(bytearray(b"\n(A\n a"), 0) == 1
    assert after_trees(bytearray(b"(A a) (B\nb)"), 0) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (A a)\n", "in.mrg:1:1: an opening bracket without a closing one"),
        ("(S (A a))\n(S (A a)))\n", "in.mrg:2:10: a closing bracket without an opening one"),
        ("(S (A a))\n(S (-NONE- a))\n", "in.mrg: tree 2: all of its words are empty elements"),
        ("(S (A a))\n(S ((A a)))\n", "in.mrg:2:5: a label is missing"),
        ("(S (A a))\n(S)\n", "in.mrg:2:1: a node without children"),
        ("(S (A a))\nb\n", "in.mrg:2:1: expected an opening bracket"),
        ("(S (A a))\n(S \xff)\n", "in.mrg:2:4: not"),
    ],
)
@pytest.mark.parametrize("size", [1 << 20, 4])
def test_malformed_trees(cli, parser, tmp_path, text, message, size, monkeypatch):
    monkeypatch.setattr(predict, "BLOCK", size)
    path = tmp_path / "in.mrg"
    path.write_bytes(text.encode("latin-1"))
    for command in (
        ("predict", parser, path),
        ("evaluate", parser, path),
        ("train", "cfg", path, "-o", tmp_path / "m"),
    ):
        assert message in cli(*command, status=2).stderr
    assert [each.name for each in tmp_path.iterdir()] == ["in.mrg"]


def test_empty_input(cli, parser, tmp_path):
    for text in ("", "\n\n"):
        answer = cli("predict", parser, "-", stdin=text)
        assert answer.stdout == ""
        assert answer.stderr.startswith("warning: -: there are no sentences")
        (tmp_path / "empty").write_text(text)
        assert "there are no trees" in cli("evaluate", parser, tmp_path / "empty", status=2).stderr
        assert "there are no trees" in cli("train", "cfg", tmp_path / "empty", "-o", tmp_path / "m", status=2).stderr


def test_unsupported_options_are_refused_before_training(cli, trees, parser, tmp_path, monkeypatch):
    monkeypatch.setattr(ConstituencyParser, "fit", lambda *_, **__: pytest.fail("trained"))
    train, model = trees / "train.mrg", tmp_path / "m.pw"
    assert "not available for trees" in cli("train", "cfg", train, "-o", model, "--baseline", "maxent", status=2).stderr
    long = tmp_path / "long.mrg"
    long.write_text("(S (A a))\n(S " + "(A a) " * 61 + ")")
    answer = cli("train", "cfg", train, "-o", model, "--dev", long, "--max-length", "60", status=2)
    assert "long.mrg: sentence 2 has 61 words, more than --max-length 60" in answer.stderr
    answer = cli("predict", parser, long, "--max-length", "60", status=2)
    assert "long.mrg: sentence 2 has 61 words, more than --max-length 60" in answer.stderr
    assert not model.exists()


def test_traces_and_functions(cli, cli_json, tmp_path):
    text = "(S (NP-SBJ (PRP she)) (VP (VBD saw) (NP (-NONE- *T*))))\n(S (NP (PRP I)) (VP (VBD ran)))\n"
    text += "(S (NP (PRP we)) (VP (VB run)))\n"
    path, model = tmp_path / "t.mrg", tmp_path / "m.pw"
    path.write_text(text)
    cli("train", "cfg", path, "-o", model, "-q", "--rare", "4")
    assert cli_json("inspect", model)["labels"] == ["NP", "S", "VP", "PRP", "VB", "VBD"]
    assert cli("predict", model, path).stdout.splitlines()[0] == "(S (NP (PRP she)) (VP (VBD saw)))"
    cli("train", "cfg", path, "-o", model, "-q", "--keep-functions", "--rare", "4")
    assert cli("predict", model, path).stdout.splitlines()[0] == "(S (NP-SBJ (PRP she)) (VP (VBD saw)))"
    cli("train", "cfg", path, "-o", model, "-q", "--keep-functions", "--keep-traces", "--rare", "4")
    assert cli("predict", model, path).stdout == text
    assert cli_json("evaluate", model, path)["f1"] == 1.0


def test_settings_reach_the_estimator(cli, cli_json, trees, tmp_path):
    flags = ("--horizontal", "2", "--vertical", "2", "--binarise", "left", "--rare", "1", "--cost", "rules")
    args = ("train", "cfg", trees / "dev.mrg", "-o", tmp_path / "m.pw", *flags, "--loss", "hinge", "--tol", "0.2", "-q")
    cli(*args)
    model = partwise.load(tmp_path / "m.pw")
    assert (model.horizontal, model.vertical, model.binarise, model.rare, model.cost) == (2, 2, "left", 1, "rules")
    answer = cli("predict", tmp_path / "m.pw", trees / "dev.mrg", "--marginals", "--json", status=2)
    assert "the loss 'hinge' gives no probabilities" in answer.stderr
    assert "score" in cli("predict", tmp_path / "m.pw", trees / "dev.mrg", "--k-best", 2, "--json").stdout
    cli(*args, "--horizontal", "inf")
    assert partwise.load(tmp_path / "m.pw").horizontal == float("inf")
    for flag, value in (("--horizontal", "x"), ("--horizontal", "-1"), ("--vertical", "0"), ("--rare", "-1")):
        answer = cli("train", "cfg", trees / "dev.mrg", "-o", tmp_path / "n.pw", flag, value, status=2)
        assert flag[2:] in answer.stderr


def test_path_and_folds(cli_json, trees, tmp_path):
    flags = ("--C-min", "0.1", "--C-max", "1", "--points", "2", "--tol", "0.1")
    said = cli_json("path", "cfg", trees / "dev.mrg", "-o", tmp_path / "m.pw", *flags)
    assert len(said["points"]) == 2
    assert partwise.load(tmp_path / "m.pw").predict([["she", "ran", "."]])
    said = cli_json("train", "cfg", trees / "dev.mrg", "-o", tmp_path / "m.pw", "--folds", "2", "--tol", "0.1")
    assert 0.3 < said["cross_validation"]["mean"] < 1
    args = ("--dev", trees / "train.mrg", "--early-stopping", "2", "--tol", "0.1")
    said = cli_json("train", "cfg", trees / "dev.mrg", "-o", tmp_path / "m.pw", *args)
    assert said["early_stopping"]["best_score"] == pytest.approx(said["f1"])


def test_inspect(cli, cli_json, parser):
    said = cli_json("inspect", parser, "--top", 3)
    assert "rules" in said["top"]
    assert said["n_rules"] == len(partwise.load(parser).grammar_.rules)
    rows = [line.split("\t") for line in cli("inspect", parser, "--dump", "-").stdout.splitlines()]
    assert {row[0] for row in rows} == {"rule", "start", "split", "end", "span", "word"}
    assert all(float(row[-1]) != 0 for row in rows)
    model = partwise.load(parser)
    # the dump has all of the model's weights but zeros and padding
    assert sum(float(row[-1]) ** 2 for row in rows) == pytest.approx(float(model.coef_ @ model.coef_))


def test_report(cli, trees, tmp_path):
    path = tmp_path / "r.html"
    args = ("train", "cfg", trees / "train.mrg", "-o", tmp_path / "m.pw", "--dev", trees / "dev.mrg", "--tol", "0.2")
    cli(*args, "--report", path, "-q")
    text = path.read_text()
    assert "relative frequencies of the same grammar" in text
    assert "predicted</text>" in text
    assert "gold</text>" in text
    assert "as in gold</text>" in text


def test_damaged_models(cli, parser, tmp_path):
    data = parser.read_bytes()
    path = tmp_path / "damaged.pw"
    for cut in (0, 1, 8, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        assert "damaged.pw" in cli("predict", path, "-", stdin="a\n", status=2).stderr
    for at in range(100, len(data), len(data) // 20):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert "damaged.pw" in cli("evaluate", path, "-", stdin="(A a)\n", status=2).stderr


@pytest.mark.slow
def test_treebank_sample(cli_json, data_dir, tmp_path):
    trees = treebank_sample(data_dir)
    write_trees(tmp_path / "train.mrg", trees[:150])
    write_trees(tmp_path / "dev.mrg", trees[-50:])
    args = ("train", "cfg", tmp_path / "train.mrg", "-o", tmp_path / "m.pw", "--dev", tmp_path / "dev.mrg")
    said = cli_json(*args, "--C", "0.1", "--tol", "0.05")
    assert said["gap"] <= 0.05 * said["primal"]
    assert said["f1"] > said["baseline"]["score"]
