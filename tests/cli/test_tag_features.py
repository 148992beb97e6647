"""Features that `train tag` chooses or is given: by labels and columns, by name, by template with word lists."""

import numpy as np
import pytest

import partwise
from partwise.cli.tasks.tag_features import explained, suitable_preset
from partwise.cli.tasks.tagged_files import read_tagged
from partwise.features.presets import tag_columns
from partwise.io import CodedSequences

#: The default tolerance solves small problems to rounding, which these tests do not need.
QUICK = ("--solver", "eg", "--tol", "0.01")
ENDS = {"PER": ("son", "sky", "ez"), "LOC": ("burg", "ville", "stan"), "ORG": ("Corp", "Bank", "Soft")}
FILLERS = [("the", "DT"), ("old", "JJ"), ("house", "NN"), ("of", "IN"), ("sees", "VBZ"), ("a", "DT"), ("and", "CC")]


def names_file(path, n, seed, order=(0, 1, 2)):
    """Write sentences with names of three types in columns word, part of speech, label.

    Most words of names occur once, but their endings show the type; some other nouns have the names' part of speech.
    """
    rng = np.random.default_rng(seed)

    def stem():
        return "".join(str(rng.choice(list("bcdfgklmnprt"))) + str(rng.choice(list("aeiou"))) for _ in range(3))

    lines = []
    for _ in range(n):
        for _ in range(rng.integers(3, 8)):
            if rng.random() < 0.2:
                kind = str(rng.choice(list(ENDS)))
                for k in range(rng.integers(1, 3)):
                    word = stem().capitalize() + str(rng.choice(ENDS[kind]))
                    lines.append((word, "NNP", f"{'I' if k else 'B'}-{kind}"))
            elif rng.random() < 0.2:
                lines.append((stem().capitalize() + "day", "NNP", "O"))
            else:
                lines.append((*FILLERS[rng.integers(len(FILLERS))], "O"))
        lines.append(None)
    path.write_text("".join("\n" if row is None else " ".join(row[k] for k in order) + "\n" for row in lines))
    return path


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    return names_file(folder / "train.txt", 200, 0), names_file(folder / "test.txt", 100, 1)


def chosen(path, **settings):
    data = read_tagged(str(path), settings, labelled=True)
    return suitable_preset(data, tag_columns(data.X))


def test_names_with_parts_of_speech_are_no_phrases(cli, cli_json, names, tmp_path):
    train, test = names
    said = cli_json("train", "tag", train, "-o", tmp_path / "m.pw", *QUICK)
    assert (said["features"], said["feature_columns"]) == ("ner", [1, 2])
    other = cli_json("train", "tag", train, "-o", tmp_path / "chunk.pw", "--features", "chunk", *QUICK)
    assert (other["features"], other["feature_columns"]) == ("chunk", [1, 2])
    f1 = [cli_json("evaluate", tmp_path / name, test)["f1"] for name in ("m.pw", "chunk.pw")]
    assert f1[0] > f1[1] + 0.1
    # the model has weights for parts of speech
    dump = cli("inspect", tmp_path / "m.pw", "--dump", "-").stdout
    assert "state\ttag1[0]=NNP\tB-PER\t" in dump
    assert "state\tsuffix=burg\tB-LOC\t" in dump


def test_summary_inspect_and_report_name_the_features(cli, cli_json, names, tmp_path):
    train, _ = names
    model, report = tmp_path / "m.pw", tmp_path / "r.html"
    text = cli("train", "tag", train, "-o", model, *QUICK, "--report", report).stdout
    assert "; features ner of columns 1, 2; loss" in text
    assert "(features ner of columns 1, 2)" in cli("inspect", model).stdout
    said = cli_json("inspect", model)
    assert (said["features"], said["feature_columns"]) == ("ner", [1, 2])
    assert "feature columns" in report.read_text()
    said = cli_json("path", "tag", train, "-o", model, *QUICK, "--points", 2, "--C-max", 1)
    assert partwise.load(model).input_settings_["features"] == "ner"
    assert said["score"] > 0.5


def test_columns_are_those_of_the_file(cli_json, tmp_path):
    train = names_file(tmp_path / "t.txt", 100, 0, order=(1, 0, 2))
    said = cli_json("train", "tag", train, "-o", tmp_path / "m.pw", "--columns", "2,1,3", *QUICK)
    assert (said["features"], said["feature_columns"]) == ("ner", [2, 1])
    said = cli_json("train", "tag", train, "-o", tmp_path / "m.pw", "--columns", "2,3", *QUICK)
    assert (said["features"], said["feature_columns"]) == ("ner", [2])


def test_phrases_are_told_by_parts_of_speech(cli_json, files, tmp_path):
    train = files / "treebank" / "train.txt"
    assert chosen(train) == "chunk"
    # with one type of phrase, most tokens are O, as with names
    alone = tmp_path / "vp.txt"
    rows = [line.split() for line in train.read_text().splitlines()]
    alone.write_text("\n".join(" ".join([*row[:2], row[2] if "VP" in row[2] else "O"]) if row else "" for row in rows))
    assert chosen(alone) == "chunk"
    assert chosen(train, columns="1,3") == "ner"
    assert chosen(train, columns="1,2") == "pos"
    said = cli_json("train", "tag", files / "treebank" / "train.conllu", "-o", tmp_path / "m.pw", *QUICK)
    assert (said["features"], said["feature_columns"]) == ("pos", [2])


def test_a_column_of_many_values_holds_no_tags(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("".join(f"w{k} l{k} x {'B-X' if k % 3 else 'O'}\n\n" for k in range(200)))
    data = read_tagged(str(path), {}, labelled=True)
    assert tag_columns(data.X) == ()  # neither column has tags: one has a value per token, the other a single value
    assert suitable_preset(data, ()) == "ner"


def share(labels, tags):
    return explained(*(CodedSequences.from_lists([list(names)]) for names in (labels, tags)))


def test_share_that_tags_tell():
    assert share("aabb", "xxyy") == 1.0
    assert share("aabb", "xxxx") == 0.0
    assert share("aaab", "xxyy") == 0.0
    assert share("aaaa", "xyzx") == 0.0
    assert share("aabcbc", "xxyyyy") == 0.5


def test_conll2000_is_chunked(data_dir):
    assert chosen(next((data_dir / "conll2000").glob("train.txt*"))) == "chunk"


@pytest.fixture
def lists(tmp_path):
    (tmp_path / "clusters.txt").write_text("0010\tthe\n0011\ta\n1100\thouse\t7\n")
    (tmp_path / "towns.txt").write_text("Babab\nDededburg\n")
    return tmp_path


def test_templates_take_clusters_and_gazetteers(cli, cli_json, names, lists):
    train, _ = names
    template = lists / "t"
    template.write_text("U0:%x[0,0]\nU1:%cluster[0,0,2]\nU2:%gazetteer[0,0,towns]\nB\n")
    args = ("train", "tag", train, "-o", lists / "m.pw", *QUICK, "--template", template)
    said = cli_json(*args, "--clusters", lists / "clusters.txt", "--gazetteer", lists / "towns.txt")
    assert (said["features"], said["feature_columns"]) == ("t", [1])
    text = cli("inspect", lists / "m.pw", "--dump", "-").stdout
    assert "\tU1:00\t" in text
    for missing in ("--clusters", "--gazetteer"):
        given = {"--clusters": lists / "clusters.txt", "--gazetteer": lists / "towns.txt"}
        del given[missing]
        said = cli(*args, *(item for pair in given.items() for item in pair), status=2).stderr
        assert f"{template}" in said
        assert {"--clusters": "%cluster", "--gazetteer": "gazetteer 'towns'"}[missing] in said


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--template", "plain", "--clusters", "clusters.txt"), "--clusters: the template plain has no %cluster"),
        (("--template", "plain", "--gazetteer", "towns.txt"), "has no %gazetteer[...,towns]"),
        (("--features", "chunk", "--clusters", "clusters.txt"), "--clusters: these are for the features 'ner'"),
        (("--features", "pos", "--gazetteer", "towns.txt"), "--gazetteer: these are for the features 'ner'"),
        (("--features", "ner", "--gazetteer", "towns.txt", "--gazetteer", "towns.txt.gz"), "the same name"),
        (("--features", "ner", "--clusters", "absent"), "absent: no such file"),
    ],
)
def test_unused_lists(cli, names, lists, monkeypatch, args, message):
    monkeypatch.chdir(lists)
    (lists / "plain").write_text("U0:%x[0,0]\nB\n")
    (lists / "towns.txt.gz").write_text("x\n")
    assert message in cli("train", "tag", names[0], "-o", "m.pw", *args, status=2).stderr


def test_lists_are_refused_with_items(cli, lists):
    items = lists / "data.items"
    items.write_text("A\tw=a\nB\tw=b\n\n")
    said = cli("train", "tag", items, "-o", lists / "m.pw", "--clusters", lists / "clusters.txt", status=2).stderr
    assert "items have their attributes already: --clusters" in said
