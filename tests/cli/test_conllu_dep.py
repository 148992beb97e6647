"""Parsers with named columns: inputs, single features, templates of relations, model choice by LAS."""

import numpy as np
import pytest

import partwise
from helpers.conllu_words import rich_sentences, text_of
from partwise import DependencyParser, SequenceTagger
from partwise.io import read_conllu
from partwise.metrics import attachment_scores
from partwise.tables.conllu import ConlluColumns, jackknife

QUICK = ("-q", "--tol", "0.1")


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rich")
    for name, n, seed in (("train", 100, 3), ("dev", 30, 4)):
        (folder / f"{name}.conllu").write_text(text_of(rich_sentences(n, seed)))
    return folder


def test_inputs_are_all_that_is_looked_at(cli, bank, tmp_path):
    model = tmp_path / "m.pw"
    cli("train", "dep", bank / "train.conllu", "-o", model, "--inputs", "form,UPOS", *QUICK)
    parser, dev = partwise.load(model), read_conllu(bank / "dev.conllu")
    assert parser.columns_ == ["form", "upos"]
    blank = [s.with_columns({at: ["_"] * len(s) for at in (2, 4, 5)}) for s in dev]
    assert parser.predict(blank) == parser.predict(dev)
    assert parser.blank_columns_ == []
    train = read_conllu(bank / "train.conllu")
    blank = [s.with_columns({at: ["_"] * len(s) for at in (2, 4, 5)}) for s in train]
    same = DependencyParser(tol=0.1).fit(blank)
    assert same.columns_ == ["form", "upos"]
    assert same.result_.primal == parser.result_.primal
    for names, message in (("form,uposs", "did you mean 'upos'"), ("form,misc", "not at 'misc'")):
        answer = cli("train", "dep", bank / "train.conllu", "-o", tmp_path / "n.pw", "--inputs", names, status=2)
        assert message in answer.stderr
        assert answer.stderr.count("\n") == 1


def test_templates_of_relations_and_single_features(cli, cli_json, bank, tmp_path):
    arcs, names, model = tmp_path / "arcs", tmp_path / "names", tmp_path / "m.pw"
    arcs.write_text("upos | upos\nupos feats.Case | upos feats.Number+1\n| feats.Tense\n")
    names.write_text("# relations\nupos | upos feats.Case\n")
    args = ("train", "dep", bank / "train.conllu", "-o", model, *QUICK)
    cli(*args, "--templates", arcs, "--label-templates", names)
    parser, sentences = partwise.load(model), read_conllu(bank / "train.conllu")
    same = DependencyParser(templates=arcs.read_text(), label_templates=names.read_text(), tol=0.1).fit(sentences)
    assert parser.predict(sentences) == same.predict(sentences)
    assert parser.label_result_.primal == same.label_result_.primal
    assert len(parser._model.labeller.features.table.templates) == 1
    assert parser.columns_ == ["upos", "feats"]
    assert any("feats.Case=" in text for text, _ in parser.explain(sentences[0], 1))
    # without the values "Case=Nom" there are fewer features, so the model distinguishes them
    other = [s.with_columns({5: [c.replace("Case=Nom", "Case=Acc") for c in s.column("feats")]}) for s in sentences]
    weights = DependencyParser(templates=arcs.read_text(), labels=False, tol=0.1).fit(other).coef_
    assert len(weights) < len(same.coef_)
    names.write_text("# relations\n\nupos | uposs\n")
    assert f"{names}:3: template 'upos | uposs'" in cli(*args, "--label-templates", names, status=2).stderr
    names.write_text("upos |\n")
    answer = cli(*args, "--label-templates", names, "--unlabelled", status=2)
    assert "--label-templates cannot be combined with --unlabelled" in answer.stderr


def test_malformed_features_are_named(cli, bank, tmp_path):
    arcs, bad = tmp_path / "arcs", tmp_path / "bad.conllu"
    arcs.write_text("upos feats.Case | upos\n")
    lines = (bank / "train.conllu").read_text().split("\n")
    k = next(k for k, line in enumerate(lines) if "Case=Nom" in line and k > 20)
    bad.write_text("\n".join([*lines[:k], lines[k].replace("Case=Nom", "Nom"), *lines[k + 1 :]]))
    answer = cli("train", "dep", bad, "-o", tmp_path / "m.pw", "--templates", arcs, status=2)
    assert f"bad.conllu:{k + 1}: FEATS 'Nom|Number=Sing' is no list of features" in answer.stderr
    words = [[("a", "_", "X", "_", "odd"), ("b", "_", "Y", "_", "A=b")]]
    with pytest.raises(ValueError, match="sentence 0, word 1: FEATS 'odd'"):
        DependencyParser(templates="feats.A | upos").fit(words, [[2, 0]])


def test_the_path_chooses_by_las(cli_json, bank, tmp_path):
    model = tmp_path / "m.pw"
    args = ("path", "dep", bank / "train.conllu", "-o", model, "--dev", bank / "dev.conllu", "--tol", "0.1")
    said = cli_json(*args, "--grid", "0.001,0.1")
    assert said["score_name"] == "las"
    dev = read_conllu(bank / "dev.conllu")
    las = attachment_scores(dev, partwise.load(model).predict(dev)).las
    assert said["score"] == pytest.approx(las)
    assert said["score"] == np.max([point["score"] for point in said["points"]])


def test_predicted_tags(cli, cli_json, bank, tmp_path):
    """With --predicted-tags, the parser is trained on jackknifed tags, the saved tagger on all sentences."""
    model, train, dev = tmp_path / "m.pw", bank / "train.conllu", bank / "dev.conllu"
    args = ("train", "dep", train, "-o", model, "--predicted-tags", 4, "--seed", 3, "--tol", "0.1")
    said = cli_json(*args, "--dev", dev)
    assert said["beside"] == [str(tmp_path / "m.upos.pw")]
    assert said["predicted_tags"] == 4
    columns, sentences, gold = ConlluColumns(), read_conllu(train), read_conllu(dev)

    def make():
        return SequenceTagger(template="pos", tol=1e-2, random_state=3)

    tagged = jackknife(columns, make, sentences, 4, 3)
    same = DependencyParser(inputs="form,upos", tol=0.1, random_state=3).fit(tagged)
    assert said["primal"] == pytest.approx(same.result_.primal, rel=1e-12)
    tagger = columns.fit(make(), sentences)
    predicted = columns.annotate(tagger, gold)
    assert said["las"] == attachment_scores(gold, same.predict(predicted)).las
    right = [
        a == b for x, y in zip(gold, predicted, strict=True) for a, b in zip(x.column(3), y.column(3), strict=True)
    ]
    assert said["tag_accuracy"] == {"upos": pytest.approx(np.mean(right))}
    assert 0.5 < said["tag_accuracy"]["upos"] < 1
    # evaluating the two files as a chain gives the same scores
    chain = cli_json("evaluate", tmp_path / "m.upos.pw", model, dev)["models"]
    assert chain[1]["las"] == said["las"]
    assert chain[0]["accuracy"] == said["tag_accuracy"]["upos"]
    again = cli_json(*args, "--dev", dev)
    assert again["primal"] == said["primal"]
    assert partwise.load(model).input_settings_["predicted_tags"] == 4


def test_predicted_tags_of_several_columns(cli, cli_json, bank, tmp_path):
    model, train = tmp_path / "m.pw", bank / "train.conllu"
    answer = cli(
        "train", "dep", train, "-o", model, "--predicted-tags", 2, "--inputs", "form,lemma,feats", "--tol", "0.1"
    )
    assert "tags      predicted by taggers of 1 of 2 folds: lemma " in answer.stdout
    assert f"{tmp_path}/m.lemma.pw {tmp_path}/m.feats.pw: to be given before the model" in answer.stdout
    words = tmp_path / "words.txt"
    words.write_text("the painter moved the bell .\n")
    out = cli("predict", tmp_path / "m.lemma.pw", tmp_path / "m.feats.pw", model, words).stdout
    rows = [line.split("\t") for line in out.splitlines()[:-1]]
    assert [row[2] for row in rows] == ["the", "painter", "mov", "the", "bell", "."]
    assert all(row[6].isdigit() for row in rows)
    assert (
        cli_json("path", "dep", train, "-o", model, "--predicted-tags", 2, "--grid", "0.1", "--tol", "0.1")["score"]
        > 0.5
    )
    assert (tmp_path / "m.upos.pw").exists()


def test_the_summary_says_where_tags_are_from(cli, bank, tmp_path):
    args = ("train", "dep", bank / "train.conllu", "-o", tmp_path / "m.pw", "--tol", "0.1")
    assert "tags      upos as in the training data (gold tags)" in cli(*args, "--inputs", "form,upos").stdout
    assert "tags " not in cli(*args, "--inputs", "form").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--predicted-tags", 2, "--inputs", "form"), "the parser looks at words alone"),
        (("--predicted-tags", 101), "100 sentences make no 101 folds"),
        (("--predicted-tags", 1), "1 is not in the range"),
        (("--predicted-tags", 2, "--report", "{folder}/m.upos.pw"), "two outputs to the same file"),
    ],
)
def test_invalid_predicted_tags(cli, bank, tmp_path, options, message):
    given = [str(option).format(folder=tmp_path) for option in options]
    answer = cli("train", "dep", bank / "train.conllu", "-o", tmp_path / "m.pw", *given, status=2)
    assert message in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_blank_tags_cannot_be_predicted(cli, bank, tmp_path):
    path = tmp_path / "blank.conllu"
    path.write_text(text_of([s.with_columns({3: ["_"] * len(s)}) for s in read_conllu(bank / "train.conllu")]))
    answer = cli("train", "dep", path, "-o", tmp_path / "m.pw", "--predicted-tags", 2, status=2)
    assert f"{path}: column UPOS, the target, is blank (_) in every word" in answer.stderr
