"""Tables of tokens (pandas, polars, Arrow) give the results of lists; errors name row and column."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold

from partwise import DependencyParser, MaxentClassifier, SegmentTagger, SequenceTagger
from partwise.io import read_columns, read_conllu

nw = pytest.importorskip("narwhals")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

from partwise.tables import (  # noqa: E402
    TableError,
    TokenTable,
    frames,
)

WORDS = [["the", "cat", "sat"], ["a", "dog", "ran"], ["the", "dog", "sat"], ["she", "ran"]]
TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["PRON", "VERB"]]
HEADS = [[2, 3, 0], [2, 3, 0], [2, 3, 0], [2, 0]]
RELATIONS = [["det", "nsubj", "root"]] * 3 + [["nsubj", "root"]]
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def flat(sentences):
    return [each for sentence in sentences for each in sentence]


def data():
    """Return all columns, by name."""
    return {
        "sentence": [f"s{i}" for i, words in enumerate(WORDS) for _ in words],
        "word": flat(WORDS),
        "length": [len(word) for word in flat(WORDS)],
        "tag": flat(TAGS),
        "head": flat(HEADS),
        "rel": flat(RELATIONS),
    }


def column(frame, name):
    return nw.from_native(frame, eager_only=True)[name].to_list()


def names(frame):
    return nw.from_native(frame, eager_only=True).columns


def by_tag(**options):
    return {"by": "sentence", "columns": "word", "label": "tag", **options}


@pytest.fixture(scope="module")
def tagger():
    return SequenceTagger(template="pos", tol=1e-3).fit(WORDS, TAGS)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_tagger_learns_and_answers_as_with_lists(maker, tagger):
    frame = MAKERS[maker](data())
    fitted = frames.fit(SequenceTagger(template="pos", tol=1e-3), frame, **by_tag())
    assert np.array_equal(fitted.coef_, tagger.coef_)
    found = frames.predict(fitted, frame, by="sentence", columns="word", probabilities=True)
    assert type(found) is type(frame)
    assert names(found) == [*names(frame), "prediction", "prediction_probability"]
    assert all(column(found, name) == column(frame, name) for name in names(frame))
    assert column(found, "prediction") == flat(tagger.predict(WORDS))
    marginals = flat(tagger.predict_marginals(WORDS))
    likely = [each[label] for each, label in zip(marginals, column(found, "prediction"), strict=True)]
    assert column(found, "prediction_probability") == pytest.approx(likely, abs=1e-15)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_parser_learns_and_answers_as_with_lists(maker):
    frame = MAKERS[maker](data())
    words = [[{"form": w, "upos": t} for w, t in zip(*each, strict=True)] for each in zip(WORDS, TAGS, strict=True)]
    trees = [list(zip(*each, strict=True)) for each in zip(HEADS, RELATIONS, strict=True)]
    parser = DependencyParser().fit(words, trees)
    columns = {"form": "word", "upos": "tag"}
    fitted = frames.fit(DependencyParser(), frame, by="sentence", columns=columns, head="head", relation="rel")
    assert np.array_equal(fitted.coef_, parser.coef_)
    found = frames.predict(fitted, frame, by="sentence", columns=columns, probabilities=True)
    assert column(found, "prediction") == [head for head, _ in flat(parser.predict(words))]
    assert column(found, "prediction_relation") == [name for _, name in flat(parser.predict(words))]
    marginals = parser.predict_marginals(words)
    heads = [[head for head, _ in tree] for tree in parser.predict(words)]
    likely = flat([row[np.arange(len(own)), own] for row, own in zip(marginals, heads, strict=True)])
    assert column(found, "prediction_probability") == pytest.approx(likely, abs=1e-15)
    unnamed = frames.fit(DependencyParser(), frame, by="sentence", columns="word", head="head")
    found = frames.predict(unnamed, frame, by="sentence", columns="word", into="h", known="head")
    assert names(found)[-1] == "h"
    assert column(found, "h") == flat(HEADS)


def test_pandas_keep_their_index_and_order():
    frame = pd.DataFrame(data(), index=[5, 5, *range(9)])
    tagger = frames.fit(SequenceTagger(template="pos"), frame, **by_tag())
    found = frames.predict(tagger, frame, by="sentence", columns="word", into="guess")
    assert found.index.tolist() == frame.index.tolist()
    assert found["guess"].tolist() == flat(tagger.predict(WORDS))
    assert "guess" not in frame.columns


@pytest.mark.parametrize("maker", MAKERS)
def test_interleaved_sentences_need_an_option(maker, tagger, rng):
    whole = data()
    # mix the sentences' rows, keeping each sentence in order
    order = np.argsort(rng.random(len(whole["word"])) + np.arange(len(whole["word"])) * 0.05)
    keys = np.array(whole["sentence"])[order]
    mixed = np.concatenate([np.flatnonzero(keys == key) for key in dict.fromkeys(keys)])
    place = np.empty(len(order), dtype=int)
    place[mixed] = np.concatenate([np.sort(order[keys == key]) for key in dict.fromkeys(keys)])
    frame = MAKERS[maker]({name: [values[k] for k in place] for name, values in whole.items()})
    with pytest.raises(TableError, match=r"row \d+, column 'sentence': 's\d' again, as in row \d"):
        frames.predict(tagger, frame, by="sentence", columns="word")
    found = frames.predict(tagger, frame, by="sentence", columns="word", interleaved=True)
    right = flat(tagger.predict(WORDS))
    assert column(found, "prediction") == [right[k] for k in place]
    table = TokenTable(frame, by="sentence", columns="word", head="head", interleaved=True)
    assert {tuple(words): tree for words, tree in zip(table.X, table.y, strict=True)} == {
        tuple(words): tree for words, tree in zip(WORDS, HEADS, strict=True)
    }


def test_a_key_may_be_several_columns(tagger):
    frame = pd.DataFrame(data()).assign(document=[0] * 6 + [1] * 5, number=[0] * 3 + [1] * 3 + [0] * 3 + [1] * 2)
    with pytest.raises(TableError, match="row 6, column 'number': 0 again, as in row 0"):
        TokenTable(frame, by="number", columns="word")
    table = TokenTable(frame, by=["document", "number"], columns="word")
    assert table.X == WORDS
    assert table.keys == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert repr(table) == "<TokenTable: 4 sentences, 11 tokens>"


@pytest.mark.parametrize("maker", MAKERS)
def test_columns_are_attributes_without_a_template(maker):
    frame = MAKERS[maker]({**data(), "flag": [None, True] * 5 + [None], "near": [["a", "b"]] * 11})
    columns = ["word", "length", "flag", "near"]
    fitted = frames.fit(SequenceTagger(), frame, **by_tag(columns=columns))
    assert {"word=the", "length", "flag", "near=a"} <= set(fitted.attributes_)
    table = TokenTable(frame, by="sentence", columns={"word": "word", "flag": "flag"})
    assert table.X[0] == [{"word": "the"}, {"word": "cat", "flag": True}, {"word": "sat"}]
    table = TokenTable(frame, by="sentence", columns={name: name for name in columns})
    found = frames.predict(fitted, frame, by="sentence", columns=columns)
    assert column(found, "prediction") == flat(fitted.predict(table.X))


def test_taggers_of_arrays_read_columns_of_numbers():
    X = [np.array([[len(w), float(w < "m")] for w in words]) for words in WORDS]
    frame = pl.DataFrame({**data(), "early": [float(w < "m") for w in flat(WORDS)]})
    tagger = SequenceTagger().fit(X, TAGS)
    found = frames.predict(tagger, frame, by="sentence", columns=["length", "early"])
    assert found["prediction"].to_list() == flat(tagger.predict(X))
    kernel = frames.fit(SequenceTagger(kernel="rbf", loss="hinge"), frame, **by_tag(columns=["length", "early"]))
    assert np.array_equal(kernel.coef_, SequenceTagger(kernel="rbf", loss="hinge").fit(X, TAGS).coef_)
    with pytest.raises(ValueError, match="the model has 2 features, got 1 columns"):
        frames.predict(tagger, frame, by="sentence", columns=["length"])
    with pytest.raises(TableError, match="row 0, column 'word': is 'the'"):
        frames.predict(tagger, frame, by="sentence", columns=["length", "word"])


def test_grid_search_and_segments():
    table = TokenTable(pl.DataFrame(data()), **by_tag())
    search = GridSearchCV(SequenceTagger(template="pos"), {"C": [0.1, 1.0]}, cv=KFold(2)).fit(table.X, table.y)
    found = table.with_columns(guess=search.predict(table.X))
    assert found["guess"].to_list() == flat(search.best_estimator_.predict(WORDS))
    chunks = pd.DataFrame({"s": [0, 0, 0, 1], "w": list("abac"), "y": ["B-X", "I-X", "O", "B-X"]})
    tagger = frames.fit(SegmentTagger(template="pos"), chunks, by="s", columns="w", label="y")
    found = frames.predict(tagger, chunks, by="s", columns="w", probabilities=True)
    assert found["prediction"].tolist() == chunks["y"].tolist()
    with pytest.raises(ValueError, match="IOB2"):
        frames.predict(tagger.set_params(scheme="iobes"), chunks, by="s", columns="w", probabilities=True)


@pytest.mark.parametrize("maker", MAKERS)
def test_labels_of_other_types(maker):
    for labels, kind in ((range(11), int), ([True, False] * 5 + [True], bool)):
        frame = MAKERS[maker]({**data(), "y": list(labels)})
        tagger = frames.fit(SequenceTagger(template="pos", tol=1e-2), frame, **by_tag(label="y"))
        found = column(frames.predict(tagger, frame, by="sentence", columns="word"), "prediction")
        assert {type(each) for each in found} == {kind}
    mixed = pd.DataFrame({**data(), "y": [1, "a"] * 5 + [1]})
    tagger = frames.fit(SequenceTagger(template="pos", tol=1e-2), mixed, **by_tag(label="y"))
    found = frames.predict(tagger, mixed, by="sentence", columns="word")
    assert set(found["prediction"]) <= {"1", "a"}


def test_known_labels_are_kept(tagger):
    frame = pd.DataFrame(data()).assign(given=[None, "VERB", *[None] * 9])
    found = frames.predict(tagger, frame, by="sentence", columns="word", known="given", probabilities=True)
    assert found["prediction"][1] == "VERB"
    assert found["prediction_probability"][1] == pytest.approx(1.0)
    frame.loc[4, "given"] = "ADV"
    with pytest.raises(TableError, match="row 4, column 'given': the model has no label 'ADV'"):
        frames.predict(tagger, frame, by="sentence", columns="word", known="given")


def test_partial_fit_names_labels_that_are_new():
    frame = pd.DataFrame(data())
    tagger = frames.partial_fit(SequenceTagger(template="pos"), frame, **by_tag())
    assert frames.partial_fit(tagger, frame, **by_tag()).result_.passes == 2
    frame.loc[7, "tag"] = "X"
    with pytest.raises(TableError, match="row 7, column 'tag': the model has no label 'X'"):
        frames.partial_fit(tagger, frame, **by_tag())
    assert "X" in frames.partial_fit(tagger, frame, **by_tag(), grow=True).classes_


def with_value(name, row, value):
    found = data()
    found[name] = [*found[name][:row], value, *found[name][row + 1 :]]
    return pd.DataFrame({key: pd.Series(values, dtype=object) for key, values in found.items()})


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (with_value("sentence", 3, None), by_tag(), "row 3, column 'sentence': is missing"),
        (with_value("sentence", 3, float("nan")), by_tag(), "row 3, column 'sentence': is missing"),
        (
            with_value("sentence", 3, ["s1"]),
            by_tag(),
            r"row 3, column 'sentence': is \['s1'\] \(list\), expected a key",
        ),
        (with_value("word", 4, None), by_tag(), "row 4, column 'word': is missing.*keep_default_na"),
        (with_value("word", 4, 7), by_tag(), r"row 4, column 'word': is 7 \(int\), expected text"),
        (with_value("tag", 5, float("nan")), by_tag(), "row 5, column 'tag': is missing"),
        (with_value("tag", 5, 1.5), by_tag(), r"row 5, column 'tag': is 1.5 \(float\), expected a label"),
        (with_value("tag", 5, ["A"]), by_tag(), "row 5, column 'tag': is .*expected a label"),
        (pd.DataFrame(data()), by_tag(label="pos"), "column 'pos': there is no such column; there are 'sentence', 'w"),
        (pd.DataFrame(data()), by_tag(by="key"), "column 'key': there is no such column"),
        (
            pd.DataFrame(data()).set_index("sentence"),
            by_tag(),
            "column 'sentence': .*it is in the index: call reset_in",
        ),
        (pd.DataFrame(data()), by_tag(columns=["word", "word"]), "column 'word': is named twice"),
        (pd.DataFrame(data()), by_tag(columns=["tag"]), "column 'tag': is what X is made of as well as"),
        (pl.DataFrame(data()).lazy(), by_tag(), r"the frame is lazy \(polars\): call its collect"),
        (pd.concat([pd.DataFrame(data())] * 2, axis=1), by_tag(), "column 'sentence': two columns of this name"),
    ],
)
def test_errors_name_row_and_column(frame, options, message):
    with pytest.raises(TableError, match=message):
        frames.fit(SequenceTagger(template="pos"), frame, **options)


@pytest.mark.parametrize(
    ("row", "value", "message"),
    [
        (1, 4, "row 1, column 'head': head 4 in a sentence of 3 words"),
        (2, -1, "row 2, column 'head': head -1 in"),
        (4, 2, "row 4, column 'head': word 2 is its own head"),
        (4, "2", r"row 4, column 'head': is '2' \(str\), expected a whole number"),
        (4, 1.5, r"row 4, column 'head': is 1.5 \(float\)"),
        (4, None, "row 4, column 'head': is missing"),
        (4, True, r"row 4, column 'head': is True \(bool\)"),
    ],
)
def test_heads_are_checked(row, value, message):
    with pytest.raises(TableError, match=message):
        frames.fit(DependencyParser(), with_value("head", row, value), by="sentence", columns="word", head="head")
    if row == 1:
        fitted = frames.fit(DependencyParser(), pd.DataFrame(data()), by="sentence", columns="word", head="head")
        with pytest.raises(TableError, match="row 1, column 'head': 4 is no head"):
            frames.predict(fitted, with_value("head", row, value), by="sentence", columns="word", known="head")


def test_refusals(tagger):
    frame = pd.DataFrame(data())
    ask = {"by": "sentence", "columns": "word"}
    with pytest.raises(
        TypeError, match="tables of tokens are for taggers and dependency parsers, got MaxentClassifier"
    ):
        frames.predict(MaxentClassifier(), frame, **ask)
    with pytest.raises(TypeError, match=r"expected a data frame.*got list"):
        frames.predict(tagger, [["the"]], **ask)
    with pytest.raises(ValueError, match="not fitted"):
        frames.predict(SequenceTagger(), frame, **ask)
    with pytest.raises(TableError, match="column 'tag': is there already"):
        frames.predict(tagger, frame, **ask, into="tag")
    with pytest.raises(ValueError, match="into: 2 different names"):
        frames.predict(tagger, frame, **ask, into=["a"], probabilities=True)
    with pytest.raises(ValueError, match="the template reads 2 columns, got 1: word"):
        frames.fit(SequenceTagger(template="chunk"), frame, **by_tag())
    with pytest.raises(ValueError, match="give label="):
        frames.fit(SequenceTagger(), frame, **ask)
    with pytest.raises(ValueError, match="give head="):
        frames.fit(DependencyParser(), frame, **ask)
    with pytest.raises(ValueError, match="'tag' is not one of a parser's fields"):
        frames.fit(DependencyParser(), frame, by="sentence", columns=["form", "tag"], head="head")
    with pytest.raises(ValueError, match="a parser needs 'form'"):
        frames.fit(DependencyParser(), frame, by="sentence", columns={"upos": "tag"}, head="head")
    with pytest.raises(ValueError, match="the loss 'hinge' gives none"):
        hinge = SequenceTagger(template="pos", loss="hinge", tol=0.1).fit(WORDS, TAGS)
        frames.predict(hinge, frame, **ask, probabilities=True)
    with pytest.raises(ValueError, match="prediction: 2 values for sentence 's0', which has 3 words"):
        TokenTable(frame, **ask).with_columns(prediction=[TAGS[0][:2], *TAGS[1:]])
    for options in ({"columns": []}, {"by": []}, {"columns": 3}, {"label": "tag", "head": "head"}, {"relation": "rel"}):
        with pytest.raises(ValueError, match=r"name|must be|give one|needs head"):
            TokenTable(frame, **{**ask, **options})


def test_heads_that_are_not_a_tree():
    ask = {"by": "sentence", "columns": "word"}
    with pytest.raises(TableError, match=r"row 3, column 'head': the heads of word 1 .* go round") as caught:
        frames.fit(DependencyParser(), with_value("head", 4, 1), **ask, head="head")
    assert caught.value.row == 3
    mixed = with_value("head", 4, 1).iloc[::-1]
    with pytest.raises(TableError, match="row 6, column 'head': the heads of word 2"):
        frames.fit(DependencyParser(), mixed.assign(head=[2, 0, 2, 0, 2, 0, 3, 2, 2, 0, 2]), **ask, head="head")
    fitted = frames.fit(DependencyParser(tol=0.1), pd.DataFrame(data()), **ask, head="head")
    given = {**data(), "given": [None, None, None, 2, 1, *[None] * 6]}
    with pytest.raises(TableError, match=r"row 3, column 'given': .*no tree is allowed"):
        frames.predict(fitted, pl.DataFrame(given), **ask, known="given")
    given["given"] = [*[None] * 4, 2, *[None] * 6]
    with pytest.raises(TableError, match=r"row 4, column 'given': .*no head left"):
        frames.predict(fitted, pl.DataFrame(given), **ask, known="given")


def test_names_of_columns_are_checked(tagger):
    frame, ask = pd.DataFrame(data()), {"by": "sentence", "columns": "word"}
    numbered = pd.DataFrame({0: data()["sentence"], 1: data()["word"], 2: data()["tag"]})
    for options in ({"by": 0, "columns": [1]}, {"by": [0], "columns": [1]}, {"by": "0", "columns": 1}):
        with pytest.raises(TableError, match="names of columns must be strings, got"):
            frames.predict(tagger, numbered, **options)
    for into in (5, [5], None):
        with pytest.raises(TableError, match="names of columns must be strings, got"):
            frames.predict(tagger, frame, **ask, into=into)
    for into in ("", [""], []):
        with pytest.raises(ValueError, match="into: the name of a column must not be empty"):
            frames.predict(tagger, frame, **ask, into=into)
    with pytest.raises(TableError, match="column 'sentence': is what tells sentences apart as well as"):
        frames.fit(SequenceTagger(template="pos"), frame, **by_tag(label="sentence"))
    with pytest.raises(ValueError, match="g: expected a list of values for sentence 's0', got 'abc'"):
        TokenTable(frame, **ask).with_columns(g=["abc", *TAGS[1:]])


@pytest.mark.parametrize("maker", MAKERS)
def test_frames_without_rows(maker, tagger):
    none = nw.from_native(MAKERS[maker](data()), eager_only=True).head(0).to_native()
    found = frames.predict(tagger, none, by="sentence", columns="word", probabilities=True)
    assert names(found)[-2:] == ["prediction", "prediction_probability"]
    assert column(found, "prediction") == []
    for learn in (frames.fit, frames.partial_fit):
        with pytest.raises(TableError, match="the frame has no rows to learn from"):
            learn(SequenceTagger(template="pos"), none, **by_tag())


def test_classifiers_take_frames_of_polars():
    frame = pl.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})
    rows = MaxentClassifier().fit(frame.to_numpy(), [0, 0, 1, 1])
    assert np.array_equal(MaxentClassifier().fit(frame, [0, 0, 1, 1]).predict(frame), rows.predict(frame.to_numpy()))


# Real data


def test_chunks_of_conll_2000_are_those_of_lists(data_dir):
    corpus = read_columns(data_dir / "conll2000" / "test.txt.gz")
    sentences = [corpus[i] for i in range(400)]
    X, y = [[t[:2] for t in s] for s in sentences], [[t[2] for t in s] for s in sentences]
    rows = [(i, *token) for i, sentence in enumerate(sentences) for token in sentence]
    schema = ["sentence", "word", "pos", "chunk"]
    ask = {"by": "sentence", "columns": ["word", "pos"]}
    plain = SequenceTagger(template="chunk", tol=1e-2).fit(X[:300], y[:300])
    for frame in (pd.DataFrame(rows, columns=schema), pl.DataFrame(rows, schema=schema, orient="row")):
        n = sum(map(len, X[:300]))
        tagger = frames.fit(SequenceTagger(template="chunk", tol=1e-2), frame[:n], **ask, label="chunk")
        assert np.array_equal(tagger.coef_, plain.coef_)
        found = frames.predict(tagger, frame, **ask)
        assert column(found, "prediction") == flat(plain.predict(X))
        table = TokenTable(frame, **ask, label="chunk")
        assert table.X == X
        assert table.y == y


def test_trees_of_ewt_are_those_of_lists(data_dir):
    sentences = read_conllu(data_dir / "ud-english-ewt" / "dev.conllu.gz")[:60]
    fields = ["form", "lemma", "upos", "xpos", "feats"]
    rows = {name: flat(s.column(name) for s in sentences) for name in [*fields, "deprel"]}
    rows["sentence"] = [i for i, s in enumerate(sentences) for _ in s.forms]
    rows["head"] = flat(s.heads for s in sentences)
    plain = DependencyParser(tol=0.1).fit(sentences)
    for frame in (pd.DataFrame(rows), pl.DataFrame(rows)):
        parser = DependencyParser(tol=0.1)
        frames.fit(parser, frame, by="sentence", columns=fields, head="head", relation="deprel")
        assert np.array_equal(parser.coef_, plain.coef_)
        found = frames.predict(parser, frame, by="sentence", columns=fields, into=["h", "r"])
        arcs = list(zip(column(found, "h"), column(found, "r"), strict=True))
        assert arcs == flat(plain.predict(sentences))


def test_the_page_runs(capsys):
    text = (Path(__file__).parents[2] / "docs" / "frames.md").read_text(encoding="utf-8")
    page: dict[str, object] = {"__name__": "page"}
    exec("\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)), page)
    assert page["parsed"]["new_head"].to_list() == [2, 3, 0, 2, 0]
    assert page["tagged"]["guess"].tolist() == page["train"]["chunk"].tolist()
