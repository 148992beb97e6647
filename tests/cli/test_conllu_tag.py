"""Taggers of CoNLL-U with named columns: what they learn, where they write it, how they are scored."""

import json

import pytest

import partwise
from helpers.conllu_words import rich_sentences, text_of
from partwise import SequenceTagger
from partwise.cli.tasks.tag import TagTask
from partwise.cli.tasks.tagged_files import conllu_data
from partwise.features import Template
from partwise.io import make_sentence, read_conllu
from partwise.metrics import feats_scores
from partwise.tables.conllu import ConlluColumns

QUICK = ("-q", "--tol", "0.1")


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rich")
    for name, n, seed in (("train", 150, 3), ("dev", 40, 4)):
        (folder / f"{name}.conllu").write_text(text_of(rich_sentences(n, seed)))
    return folder


@pytest.fixture(scope="module")
def train(cli, bank):
    """Return a function that trains a tagger with the given options, once for equal options."""
    made = {}

    def get(*options):
        if options not in made:
            made[options] = bank / f"{len(made)}.pw"
            cli("train", "tag", bank / "train.conllu", "-o", made[options], *QUICK, *options)
        return made[options]

    return get


@pytest.mark.parametrize(
    ("target", "inputs", "column"),
    [
        ("UPOS", "form", "upos"),
        ("XPOS", "form,upos", "xpos"),
        ("FEATS", "form,xpos", "feats"),
        ("feats.Case", "form,xpos", "feats"),
        ("LEMMA-rule", "form,upos,feats", "lemma"),
    ],
)
def test_predictions_go_to_the_column_of_the_target(cli, cli_json, bank, train, tmp_path, target, inputs, column):
    model, out = train("--target", target, "--inputs", inputs), tmp_path / "out.conllu"
    said = cli_json("evaluate", model, bank / "dev.conllu")
    cli("predict", model, bank / "dev.conllu", "-o", out)
    gold, found = read_conllu(bank / "dev.conllu"), read_conllu(out)
    pairs = [(a, b) for x, y in zip(gold, found, strict=True) for a, b in zip(x.fields(), y.fields(), strict=True)]
    at = ["id", "form", "lemma", "upos", "xpos", "feats"].index(column)
    assert all(a[:at] + a[at + 1 :] == b[:at] + b[at + 1 :] for a, b in pairs)
    share = sum(a[at] == b[at] for a, b in pairs) / len(pairs)
    assert share > 0.9
    assert share == pytest.approx(said["accuracy"])
    # predictions depend on the input columns only, not on old values of the target column
    blank = tmp_path / "blank.conllu"
    blank.write_text(text_of([s.with_columns({at: ["_"] * len(s)}) if "." not in target else s for s in gold]))
    cli("predict", model, blank, "-o", tmp_path / "again.conllu")
    assert (tmp_path / "again.conllu").read_text() == out.read_text()
    settings = partwise.load(model).input_settings_
    assert (settings["target"], settings["inputs"]) == (target if "." in target else target.lower(), inputs)


def test_misc_keys_are_learnt_and_others_stay(cli, cli_json, bank, tmp_path):
    for name in ("train", "dev"):
        gold = read_conllu(bank / f"{name}.conllu")
        rows = [[("Old=1|" if k else "") + f"Kind={t[0]}" for k, t in enumerate(s.column("upos"))] for s in gold]
        text = text_of([s.with_misc(row) for s, row in zip(gold, rows, strict=True)])
        (tmp_path / f"{name}.conllu").write_text(text)
    model, out = tmp_path / "m.pw", tmp_path / "out.conllu"
    cli("train", "tag", tmp_path / "train.conllu", "-o", model, "--target", "MISC.Kind", *QUICK)
    cli("predict", model, tmp_path / "dev.conllu", "-o", out)
    cells = [cell for sentence in read_conllu(out) for cell in sentence.column("misc")]
    assert {cell.split("|")[0] for cell in cells if "|" in cell} == {"Old=1"}
    assert all(cell.count("Kind=") == 1 for cell in cells)
    assert cli_json("evaluate", model, tmp_path / "dev.conllu")["accuracy"] > 0.9


def test_scores_of_features(cli, cli_json, bank, train):
    model = train("--target", "FEATS", "--inputs", "form,xpos")
    said = cli_json("evaluate", model, bank / "dev.conllu")
    tagger, gold = partwise.load(model), read_conllu(bank / "dev.conllu")
    table = ConlluColumns.of(tagger).table(gold)
    found = feats_scores([s.column("feats") for s in gold], tagger.predict(table), tagger.classes_.tolist())
    assert said["accuracy"] == found.accuracy
    assert said["feature_f1"] == found.all_features.f1
    assert said["ufeats"] == found.ufeats
    assert said["unknown_combinations"] == 0
    assert {row["label"]: row["f1"] for row in said["labels"]} == {k: v.f1 for k, v in found.by_feature.items()}
    text = cli("evaluate", model, bank / "dev.conllu").stdout
    assert "of whole FEATS" in text
    assert "UFeats" in text


def test_combinations_that_training_did_not_have(cli_json, bank, train, tmp_path):
    path = tmp_path / "odd.conllu"
    path.write_text((bank / "dev.conllu").read_text().replace("Tense=Past", "Tense=Fut"))
    model = train("--target", "FEATS", "--inputs", "form,xpos")
    said = cli_json("evaluate", model, path)
    gold = [cell for s in read_conllu(path) for cell in s.column("feats")]
    assert said["unknown_combinations"] == pytest.approx(sum("Fut" in cell for cell in gold) / len(gold))
    assert said["unseen_labels"] == ["Mood=Ind|Tense=Fut"]


def test_lemmas_are_chosen_and_shown_as_lemmas(cli, cli_json, bank, tmp_path):
    args = ("train", "tag", bank / "train.conllu", "-o", tmp_path / "m.pw", "--target", "lemma-rule")
    said = cli_json(*args, "--inputs", "form,xpos", "--dev", bank / "dev.conllu", "--early-stopping", 2)
    assert said["early_stopping"]["best_score"] == pytest.approx(said["accuracy"])
    assert said["target"] == "lemma-rule"
    assert 0 < said["baseline"]["score"] < said["accuracy"]
    assert said["accuracy_changed"] > 0.9
    answer = cli("predict", tmp_path / "m.pw", bank / "dev.conllu", "--json").stdout.splitlines()
    lemmas = [json.loads(line)["labels"] for line in answer]
    gold = [s.column("lemma") for s in read_conllu(bank / "dev.conllu")]
    right = sum(a == b for x, y in zip(gold, lemmas, strict=True) for a, b in zip(x, y, strict=True))
    assert right / sum(map(len, gold)) == pytest.approx(said["accuracy"])
    answer = cli("predict", tmp_path / "m.pw", bank / "dev.conllu", "--k-best", 2, "--json").stdout
    assert json.loads(answer.split("\n")[0])["best"][0]["labels"] == lemmas[0]


def test_rules_are_learnt_that_occur_twice_and_scored_by_their_lemmas():
    sentences = [make_sentence([("went", "go"), ("Cities", "city"), ("parties", "party"), ("Odd", "even")])]
    columns = ConlluColumns("form", "LEMMA-rule")
    assert columns.labels(sentences)[0] == ["=go", "lower/-0+/-3+y", "lower/-0+/-3+y", "=even"]
    learnt = columns.training_labels(sentences)
    assert learnt[0] == ["lower/-0+/-0+", "lower/-0+/-3+y", "lower/-0+/-3+y", "keep/-0+/-0+"]
    data = conllu_data(sentences, sentences, columns.settings(), "x")
    score = TagTask().metric(data)
    assert score(data.y, [["lower/-1+/-2+go", "=city", "=part", "keep/-0+/-0+"]]) == 0.25
    assert score(data.y, [["lower/-4+go/-0+", "=city", "=party", "=even"]]) == 1.0


def test_templates_name_columns(cli, cli_json, bank, tmp_path):
    template, model = tmp_path / "t", tmp_path / "m.pw"
    template.write_text("A w=%x[0,form]\nA tag=%x[0,xpos]\nA c=%feat[-1,feats,Case]\nB\n")
    args = ("train", "tag", bank / "train.conllu", "-o", model, "--template", template, *QUICK)
    cli(*args, "--inputs", "form,xpos,feats")
    assert partwise.load(model).template_ == Template("A w=%x[0,0]\nA tag=%x[0,1]\nA c=%feat[-1,2,Case]\nB\n")
    assert cli_json("evaluate", model, bank / "dev.conllu")["accuracy"] > 0.9
    assert f"{template}:2:7: %x: there is no column 'xpos': there are form" in cli(*args, status=2).stderr


def test_the_same_in_python(bank, train):
    sentences = read_conllu(bank / "train.conllu")
    columns = ConlluColumns("form,upos", "XPOS")
    template = Template.preset("morph", tags=[1])
    tagger = columns.fit(SequenceTagger(template=template, tol=0.1), sentences)
    same = partwise.load(train("--target", "XPOS", "--inputs", "form,upos"))
    assert tagger.result_.primal == pytest.approx(same.result_.primal)
    dev = read_conllu(bank / "dev.conllu")
    found, other = columns.annotate(tagger, dev), ConlluColumns.of(same).annotate(same, dev)
    assert [s.lines for s in found] == [s.lines for s in other]
    with pytest.raises(ValueError, match="not trained on columns of CoNLL-U"):
        ConlluColumns.of(SequenceTagger())
    with pytest.raises(ValueError, match="first input column must be form"):
        ConlluColumns("upos", "XPOS")
    with pytest.raises(ValueError, match="there is no target None: take UPOS"):
        ConlluColumns("form", None)
    with pytest.raises(ValueError, match="columns must be names as in 'form,upos', got None"):
        ConlluColumns(None, "UPOS")
    with pytest.raises(ValueError, match="no word has Nope in MISC, an input"):
        ConlluColumns("form,misc.Nope").fit(SequenceTagger(template="pos"), read_conllu(bank / "train.conllu"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--inputs", "form,uposs"), "there is no column 'uposs' to look at: did you mean 'upos'"),
        (("--inputs", "form,upos"), "column upos is the target upos"),
        (("--target", "deprel"), "there is no target 'deprel': take UPOS"),
        (("--target", "lemma"), "target 'lemma': lemmas are learnt as rules"),
        (("--columns", "1,2"), "use --inputs and --target"),
        (("--target", "misc.Kind"), "train.conllu: no word has Kind in MISC, the target"),
        (("--inputs", "form,feats.Nope"), "train.conllu: no word has Nope in FEATS, an input"),
        (("--target", ""), "there is no target '': take UPOS"),
        (("--inputs", ""), "there is no column '' to look at"),
    ],
)
def test_wrong_names(cli, bank, tmp_path, options, message):
    answer = cli("train", "tag", bank / "train.conllu", "-o", tmp_path / "m.pw", *options, status=2)
    assert message in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_keys_that_other_data_lack(cli, bank, train):
    """A key among the inputs must occur in the training data, but need not occur in other data."""
    sentences = [s.with_columns({5: ["_"] * len(s)}) for s in read_conllu(bank / "dev.conllu")]
    (bank / "bare.conllu").write_text(text_of(sentences))
    cli("evaluate", train("--inputs", "form,feats.Case"), bank / "bare.conllu")
    cli(
        "train",
        "tag",
        bank / "train.conllu",
        "--dev",
        bank / "bare.conllu",
        "--inputs",
        "form,feats.Case",
        "-o",
        bank / "bare.pw",
        *QUICK,
    )


def test_bad_columns_are_named(cli, bank, train, tmp_path):
    bad, model = tmp_path / "bad.conllu", tmp_path / "m.pw"
    text = (bank / "train.conllu").read_text()
    lines = text.split("\n")
    k = next(k for k, line in enumerate(lines) if "Case=Nom" in line and k > 20)
    bad.write_text("\n".join([*lines[:k], lines[k].replace("Case=Nom", "Nom"), *lines[k + 1 :]]))
    for options in (("--target", "FEATS"), ("--inputs", "form,feats"), ("--inputs", "form,feats.Case")):
        answer = cli("train", "tag", bad, "-o", model, *options, status=2)
        assert f"bad.conllu:{k + 1}: FEATS 'Nom|Number=Sing' is no list of features" in answer.stderr
    answer = cli("evaluate", train("--target", "FEATS", "--inputs", "form,xpos"), bad, status=2)
    assert f"bad.conllu:{k + 1}:" in answer.stderr
    bad.write_text("".join(f"{k}\tw\t_\t_\t_\t_\t{k - 1}\tx\t_\t_\n" for k in (1, 2)) + "\n")
    for target, column in (("UPOS", "UPOS"), ("FEATS", "FEATS"), ("LEMMA-rule", "LEMMA")):
        answer = cli("train", "tag", bad, "-o", model, "--target", target, status=2)
        assert f"bad.conllu: column {column}, the target, is blank (_) in every word\n" in answer.stderr
    answer = cli("evaluate", train("--target", "UPOS", "--inputs", "form"), bad, status=2)
    assert "column UPOS, the target, is blank" in answer.stderr
    (tmp_path / "x.txt").write_text("a B\n")
    answer = cli("train", "tag", tmp_path / "x.txt", "-o", model, "--target", "XPOS", status=2)
    assert "--target is for CoNLL-U" in answer.stderr
