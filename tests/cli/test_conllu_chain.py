"""Several CoNLL-U models in one command and in one object."""

import re

import numpy as np
import pytest

import partwise
from helpers.conllu_words import rich_sentences, text_of
from partwise import SequenceTagger
from partwise.features import Template
from partwise.io import read_conllu
from partwise.metrics import attachment_scores
from partwise.model_files import ModelFormatError
from partwise.tables.conllu import ConlluColumns, ConlluPipeline, jackknife

QUICK = ("-q", "--tol", "0.1")


@pytest.fixture(scope="module")
def bank(tmp_path_factory, cli):
    """Make files and models that build on each other: tags, features predicted from tags, a parser that uses both."""
    folder = tmp_path_factory.mktemp("rich")
    for name, n, seed in (("train", 100, 3), ("dev", 30, 4)):
        sentences = rich_sentences(n, seed)
        (folder / f"{name}.conllu").write_text(text_of(sentences))
        (folder / f"{name}.txt").write_text("".join(" ".join(s.forms) + "\n" for s in sentences))
    train = folder / "train.conllu"
    cli("train", "tag", train, "-o", folder / "tags.pw", *QUICK)
    cli("train", "tag", train, "-o", folder / "feats.pw", "--inputs", "form,upos", "--target", "FEATS", *QUICK)
    cli("train", "dep", train, "-o", folder / "parser.pw", "--inputs", "form,upos,feats", *QUICK)
    cli("train", "dep", train, "-o", folder / "xpos.pw", "--inputs", "form,xpos", *QUICK)
    cli("train", "dep", train, "-o", folder / "words.pw", "--inputs", "form", *QUICK)
    return folder


@pytest.mark.parametrize("size", [1 << 20, 200])
@pytest.mark.parametrize("source", ["dev.txt", "dev.conllu"])
def test_each_model_fills_what_the_next_reads(cli, bank, tmp_path, monkeypatch, size, source):
    monkeypatch.setattr("partwise.cli.predict.BLOCK", size)
    out = tmp_path / "out.conllu"
    models = [bank / f"{name}.pw" for name in ("tags", "feats", "parser")]
    answer = cli("predict", *models, bank / source, "-o", out)
    assert ("read as plain text" in answer.stderr) is source.endswith("txt")
    dev, found = read_conllu(bank / "dev.conllu"), read_conllu(out)
    assert [s.forms for s in found] == [s.forms for s in dev]
    tagger, feats, parser = map(partwise.load, models)
    tags = tagger.predict([s.forms for s in dev])
    assert [s.column("upos") for s in found] == tags
    rows = [list(zip(s.forms, each, strict=True)) for s, each in zip(dev, tags, strict=True)]
    lists = feats.predict(rows)
    assert [s.column("feats") for s in found] == lists
    words = [
        [{"form": form, "upos": tag, "feats": cell} for (form, tag), cell in zip(row, each, strict=True)]
        for row, each in zip(rows, lists, strict=True)
    ]
    assert [list(zip(s.heads, s.deprels, strict=True)) for s in found] == parser.predict(words)
    kept = [s.column("lemma") for s in found]
    assert kept == [s.column("lemma") for s in dev] if source.endswith("conllu") else [["_"] * len(s) for s in dev]


def test_scores_are_those_on_predicted_columns(cli, cli_json, bank, tmp_path):
    models, out = [bank / f"{name}.pw" for name in ("tags", "feats", "parser")], tmp_path / "out.conllu"
    said = cli_json("evaluate", *models, bank / "dev.conllu")
    cli("predict", *models, bank / "dev.txt", "-o", out)
    gold, found = read_conllu(bank / "dev.conllu"), read_conllu(out)
    scores = attachment_scores(gold, found)
    assert [row["fills"] for row in said["models"]] == ["upos", "feats", "head, deprel"]
    assert (said["models"][2]["uas"], said["models"][2]["las"]) == pytest.approx((scores.uas, scores.las))
    for row, column in zip(said["models"], ("upos", "feats"), strict=False):
        pairs = [
            (a, b)
            for x, y in zip(gold, found, strict=True)
            for a, b in zip(x.column(column), y.column(column), strict=True)
        ]
        assert row["accuracy"] == pytest.approx(np.mean([a == b for a, b in pairs]))
    text = cli("evaluate", *models, bank / "dev.conllu").stdout
    assert f"parser.pw: head, deprel; las {scores.las:.2%}" in text
    assert (
        "not available for several models"
        in cli("evaluate", *models, bank / "dev.conllu", "--calibration", status=2).stderr
    )


def test_one_object_and_one_file(cli, cli_json, bank, tmp_path):
    named = [(name, partwise.load(bank / f"{name}.pw")) for name in ("tags", "feats", "parser")]
    pipeline, path = ConlluPipeline(named), tmp_path / "all.pw"
    assert pipeline.inputs == ["form"]
    words = [line.split() for line in (bank / "dev.txt").read_text().splitlines()]
    found = pipeline.annotate(words)
    pipeline.save(path)
    again = partwise.load(path)
    assert [step.name for step in again.steps] == ["tags", "feats", "parser"]
    assert [s.lines for s in again.annotate(words)] == [s.lines for s in found]
    for source in (bank / "dev.txt", bank / "dev.conllu"):
        one = cli("predict", path, source).stdout
        assert one == cli("predict", *(bank / f"{name}.pw" for name in ("tags", "feats", "parser")), source).stdout
    assert "all.pw (feats): feats" in cli("evaluate", path, bank / "dev.conllu").stdout
    shown = cli("inspect", path).stdout
    assert "feats: a SequenceTagger, form, upos -> feats" in shown
    assert shown.count("certified") == 3
    rows = cli_json("inspect", path)["models"]
    assert rows[2]["fills"] == ["head", "deprel"]
    assert rows[2]["primal"] == named[2][1].result_.primal
    assert "several models" in cli("inspect", path, "--dump", "-", status=2).stderr
    for command in (
        ("bound", path, bank / "dev.conllu"),
        ("train", "tag", bank / "dev.conllu", "--from", path, "-o", tmp_path / "more.pw"),
    ):
        assert "is a pipeline, which this command does not take; give one of" in cli(*command, status=2).stderr
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelFormatError, match="damaged"):
        partwise.load(path)
    assert pipeline.annotate([]) == []
    for bad, message in (
        ("", "the form is empty"),
        (("", "a"), "the form is empty"),
        (1, "expected a string or a tuple of strings, got 1"),
        (None, "expected a string or a tuple of strings, got None"),
        (("a", None), "expected a string or a tuple of strings"),
        ((), "expected (form, lemma, upos, xpos, feats) or less, got 0 columns"),
        (("a",) * 6, "expected (form, lemma, upos, xpos, feats) or less, got 6 columns"),
        ("a\tb", "cannot be a column"),
    ):
        with pytest.raises(ValueError, match=f"^sentence 1, word 2: .*{re.escape(message)}"):
            pipeline.annotate([["a"], ["b", "c", bad]])
    for bad in ("the cat", [["the", "cat"], "sat"], [[]], 3):
        with pytest.raises(ValueError, match="sentence"):
            pipeline.annotate(bad)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("parser", "tags"), "parser.pw reads column upos, which {bank}/tags.pw after it fills: change their order"),
        (("tags", "tags"), "{bank}/tags.pw and {bank}/tags.pw both fill column upos"),
        (("tags", "xpos"), "is plain text: {bank}/xpos.pw reads xpos, which neither text nor a model before it fills"),
        (("parser",), "is plain text: {bank}/parser.pw reads upos, feats, which neither text nor a model"),
        (("feats",), "is plain text: {bank}/feats.pw reads upos, which neither text nor a model"),
    ],
)
def test_models_that_do_not_fit(cli, bank, tmp_path, names, message):
    out = tmp_path / "out.conllu"
    answer = cli("predict", *(bank / f"{name}.pw" for name in names), bank / "dev.txt", "-o", out, status=2)
    assert message.format(bank=bank) in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert not out.exists()


def test_pipelines_are_converted_to_partwise_alone(cli, bank, tmp_path):
    path, again, theirs = tmp_path / "all.pw", tmp_path / "again.pw", tmp_path / "all.crfsuite"
    ConlluPipeline([partwise.load(bank / "tags.pw"), partwise.load(bank / "words.pw")]).save(path)
    cli("convert", path, again)
    assert again.read_bytes() == path.read_bytes()
    answer = cli("convert", path, theirs, status=2)
    assert answer.stderr == f"error: {path}: files of CRFsuite hold one tagger, not several models\n"
    assert not theirs.exists()
    with pytest.raises(ValueError, match="one tagger, not several models"):
        partwise.load(path).save(theirs, format="crfsuite")
    answer = cli("convert", path, path, status=2)
    assert answer.stderr == f"error: {path}: is an input, which would be overwritten\n"


def test_notes_on_what_crfsuite_does_not_keep(cli, bank, chunker, tmp_path):
    out = tmp_path / "m.crfsuite"
    template = f"{out}: the template is not kept: the input is items with attributes now\n"
    assert cli("convert", bank / "tags.pw", out).stderr == template
    both = cli("convert", chunker, out).stderr
    assert both == f"{out}: chunk labels are no longer kept to their scheme, which CRFsuite does not know\n" + template
    assert cli("convert", chunker, tmp_path / "m.pw").stderr == ""
    SequenceTagger(ends=True).fit([[["a"], ["b"]]], [["B-x", "I-x"]]).save(tmp_path / "ends.pw")
    answer = cli("convert", tmp_path / "ends.pw", out, status=2)
    assert "no place for the weights of ends=True" in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_models_of_other_kinds(cli, bank, chunker, classifier):
    for path, message in ((chunker, "was not trained on CoNLL-U"), (classifier, "MaxentClassifier reads and fills no")):
        answer = cli("predict", bank / "tags.pw", path, bank / "dev.txt", status=2)
        assert f"{path}: " in answer.stderr
        assert message in answer.stderr
    answer = cli("predict", bank / "tags.pw", bank / "parser.pw", bank / "dev.txt", "--k-best", 2, status=2)
    assert "not available for several models" in answer.stderr
    assert "MODEL" in cli("predict", bank / "dev.txt", status=2).stderr
    with pytest.raises(ValueError, match="there are no models"):
        ConlluPipeline([])
    tagger = partwise.load(bank / "tags.pw")
    with pytest.raises(ValueError, match="models must be a list of models, got SequenceTagger"):
        ConlluPipeline(tagger)
    with pytest.raises(ValueError, match=r"model 1 must be a model or a pair \(name, model\), got a tuple of 3"):
        ConlluPipeline([("a", tagger, 1)])


def test_filling_a_key_changes_only_this_key(bank):
    sentences = read_conllu(bank / "train.conllu")[:40]

    def tagger(inputs, target):
        return ConlluColumns(inputs, target).fit(SequenceTagger(template="morph", tol=0.1), sentences)

    def reads(key):
        template = f"U0:%x[0,0]\nU1:%x[0,{key}]\n"
        columns = ConlluColumns(f"form,{key}", "xpos")
        return columns.fit(SequenceTagger(template=Template(template, names=columns.names), tol=0.1), sentences)

    case, number, whole = reads("feats.Case"), reads("feats.Number"), reads("feats")
    fills_case, fills_all = tagger("form", "feats.Case"), tagger("form", "feats")
    for models, inputs in (
        ((fills_case, case), ["form"]),
        ((fills_case, number), ["form", "feats"]),
        ((fills_case, whole), ["form", "feats"]),
        ((fills_all, number), ["form"]),
        ((fills_all, whole), ["form"]),
    ):
        pipeline = ConlluPipeline(models)
        assert pipeline.inputs == inputs
        assert (pipeline.why_not_text() is None) is (inputs == ["form"])
    assert "reads feats.Number, which neither" in ConlluPipeline([fills_case, number]).why_not_text()


def test_a_model_in_place_of_input(cli, bank):
    for command in ("predict", "evaluate"):
        answer = cli(command, bank / "tags.pw", bank / "parser.pw", status=2)
        assert answer.stderr == f"error: {bank}/parser.pw: is a model; the input is missing\n"
    assert "nothing.pw: no such file" in cli("predict", bank / "tags.pw", bank / "nothing.pw", status=2).stderr


def test_columns_that_the_input_leaves_blank(cli, bank, tmp_path):
    path = tmp_path / "blank.conllu"
    path.write_text(text_of([s.with_columns({4: ["_"] * len(s)}) for s in read_conllu(bank / "dev.conllu")]))
    answer = cli("predict", bank / "tags.pw", bank / "xpos.pw", path, status=2)
    assert f"{path}:1: column XPOS is blank (_), but {bank}/xpos.pw reads it, and no model before it" in answer.stderr
    path.write_text(text_of([s.with_columns({3: ["_"] * len(s)}) for s in read_conllu(bank / "dev.conllu")]))
    assert f"{path}:1: column UPOS is blank" in cli("predict", bank / "feats.pw", path, status=2).stderr
    answer = cli("evaluate", bank / "feats.pw", path, status=2)
    assert f"{path}: column UPOS, an input, is blank (_) in every word" in answer.stderr
    cli("predict", bank / "tags.pw", bank / "feats.pw", path)
    pipeline = ConlluPipeline([partwise.load(bank / "feats.pw")])
    with pytest.raises(ValueError, match="column UPOS is blank"):
        pipeline.annotate([["the", "cat"]])
    assert pipeline.annotate([[("the", "_", "DET"), ("cat", "_", "NOUN")]])[0].column("feats")[0] == "_"


def test_text_for_a_parser_of_words(cli, bank):
    out = cli("predict", bank / "words.pw", bank / "dev.txt").stdout
    words = [line.split() for line in (bank / "dev.txt").read_text().splitlines()]
    heads = [[int(line.split("\t")[6]) for line in block.split("\n")] for block in out.strip("\n").split("\n\n")]
    assert heads == [[head for head, _ in tree] for tree in partwise.load(bank / "words.pw").predict(words)]
    assert cli("predict", bank / "words.pw", "-", "--format", "text", stdin="the cat sat\n").stdout.count("\n") == 4


def test_jackknife_by_hand(bank):
    sentences = read_conllu(bank / "train.conllu")[:30]
    columns = ConlluColumns("form", "UPOS")

    def make():
        return SequenceTagger(template="pos", tol=0.1)

    found = jackknife(columns, make, sentences, 3, seed=5)
    order = np.random.default_rng(5).permutation(30)
    for part in np.array_split(order, 3):
        rest = [s for i, s in enumerate(sentences) if i not in set(part.tolist())]
        tagger = make().fit([s.forms for s in rest], [s.column("upos") for s in rest])
        for i in part.tolist():
            assert found[i].column("upos") == tagger.predict([sentences[i].forms])[0]
            assert found[i].heads == sentences[i].heads
    assert [s.column("upos") for s in found] != [s.column("upos") for s in sentences]
    for folds in (1, 31, True):
        with pytest.raises(ValueError, match="folds must be a number from 2 to that of the sentences, 30"):
            jackknife(columns, make, sentences, folds)
