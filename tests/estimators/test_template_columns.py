"""Named templates use the columns that the data have, and warn about columns that they do not use."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import partwise
from partwise import SegmentTagger, SequenceTagger
from partwise.cli.tasks.tag_features import choose_features
from partwise.cli.tasks.tagged_files import read_tagged
from partwise.features import Template
from partwise.io import parse_conllu
from partwise.tables import frames
from partwise.tables.conllu import ConlluColumns

X = [[(f"w{7 * i + k}", "NP" if k % 3 else "VB", f"l{i}-{k}") for k in range(5)] for i in range(40)]
Y = [["B-X" if tag == "NP" else "O" for _, tag, _ in x] for x in X]
TWO = [[token[:2] for token in x] for x in X]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


@pytest.mark.parametrize("cls", [SequenceTagger, SegmentTagger])
def test_tags_are_looked_at_as_on_the_command_line(cls, tmp_path):
    tagger = cls(template="ner").fit(TWO, Y)
    assert tagger.template_ == Template.preset("ner", tags=(1,))
    (tmp_path / "t.txt").write_text(
        "".join(
            "".join(f"{w} {t} {label}\n" for (w, t), label in zip(x, y, strict=True)) + "\n"
            for x, y in zip(TWO, Y, strict=True)
        )
    )
    data = read_tagged(str(tmp_path / "t.txt"), {}, labelled=True)
    assert choose_features({"features": "ner"}, data).template == tagger.template_
    explicit = cls(template=Template.preset("ner", tags=(1,))).fit(TWO, Y)
    assert np.array_equal(tagger.coef_, explicit.coef_)
    with pytest.raises(ValueError, match=r"looks at column 1, .* has 1 columns"):
        tagger.predict([["w1", "w2"]])
    tagger.save(tmp_path / "m.pw")
    loaded = partwise.load(tmp_path / "m.pw")
    assert (loaded.template, loaded.template_) == ("ner", tagger.template_)
    assert loaded.predict(TWO) == tagger.predict(TWO)
    assert cls(template="ner").fit([[w for w, _ in x] for x in TWO], Y).template_ == Template.preset("ner")


@pytest.mark.parametrize(
    ("name", "data", "unused"), [("ner", X, "2"), ("pos", TWO, "1"), ("pos", X, "s 1, 2"), ("chunk", X, "2")]
)
def test_columns_that_are_not_looked_at_are_named(name, data, unused):
    with pytest.warns(
        UserWarning, match=rf"template='{name}' does not look at column{' ?' + unused if unused[0] != 's' else unused} "
    ):
        SequenceTagger(template=name, tol=0.1).fit(data, Y)


def test_frames():
    pd = pytest.importorskip("pandas")
    rows = [
        (i, *token, label)
        for i, (x, y) in enumerate(zip(TWO, Y, strict=True))
        for token, label in zip(x, y, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["s", "Word", "POS", "tag"])
    tagger = frames.fit(SequenceTagger(template="ner"), frame, by="s", columns=["Word", "POS"], label="tag")
    assert tagger.template_.columns == [0, 1]
    with pytest.raises(ValueError, match="the template reads 2 columns, got 1: Word"):
        frames.predict(tagger, frame, by="s", columns=["Word"])


def test_columns_of_conllu():
    text = "".join(
        f"1\tw{i}\t_\tN\t_\tCase={'Nom' if i % 2 else 'Acc'}\t0\troot\t_\tSide={'a' if i % 2 else 'b'}\n\n"
        for i in range(6)
    )
    tagger = ConlluColumns("form,upos,feats", "misc.Side").fit(
        SequenceTagger(template="morph"), parse_conllu(text.encode())
    )
    assert tagger.template_ == Template.preset("morph", tags=(1,), features={2: ["Case"]})


def test_partitions(tmp_path):
    made = partwise.out_of_core.partitions.write(
        tmp_path / "p", SequenceTagger(template="ner"), [(TWO[:20], Y[:20]), (TWO[20:], Y[20:])]
    )
    tagger = SequenceTagger(template="ner").fit(made)
    assert tagger.template_.columns == [0, 1]
