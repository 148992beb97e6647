"""CoNLL-U columns by name, single features, and rules that turn forms into lemmas."""

import random

import pytest

from partwise.io import FormatError, make_sentence, parse_conllu
from partwise.io.conllu import Column, column_values, join_feats, parse_columns_list, split_feats
from partwise.tables.lemma_rules import apply_lemma_rule, lemma_rule

FILE = """# a comment
1\tHouses\thouse\tNOUN\tNNS\tCase=Nom|Number=Plur|Number[psor]=Sing\t2\tnsubj\t_\tSpaceAfter=No|odd|A=b=c
2\tfall\tfall\tVERB\tVB\t_\t0\troot\t_\t_

"""


def sentence(text=FILE):
    return parse_conllu(text.encode(), "x.conllu")[0]


def test_values_by_name():
    names = "form,UPOS,feats.Case,Feats.Number[psor],misc.SpaceAfter,misc.A,misc"
    columns = parse_columns_list(names)
    assert [column.name for column in columns] == [
        "form", "upos", "feats.Case", "feats.Number[psor]", "misc.SpaceAfter", "misc.A", "misc",
    ]  # fmt: skip
    assert [column.base for column in columns[2:5]] == ["feats", "feats", "misc"]
    (rows,) = column_values([sentence()], columns)
    assert rows == [
        ("Houses", "NOUN", "Nom", "Sing", "No", "b=c", "SpaceAfter=No|odd|A=b=c"),
        ("fall", "VERB", "_", "_", "_", "_", "_"),
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("form,uposs", "there is no column 'uposs' to look at: did you mean 'upos'"),
        ("head", "there is no column 'head' to look at: there are form, lemma"),
        ("form,form", "column 'form' is there twice"),
        ("upos.x", "upos is no list of keys and values"),
        ("feats.", "'' is not a key"),
        ("feats.a=b", "'a=b' is not a key"),
        ("", "there is no column ''"),
    ],
)
def test_invalid_names(names, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        parse_columns_list(names)


def test_a_key_is_put_and_taken_away():
    given = sentence()
    found = Column.named("feats.Gender").put(given, ["Fem", "_"])
    assert found.column("feats") == ["Case=Nom|Gender=Fem|Number=Plur|Number[psor]=Sing", "_"]
    found = Column.named("feats.Number").put(found, ["_", "Sing"])
    assert found.column("feats") == ["Case=Nom|Gender=Fem|Number[psor]=Sing", "Number=Sing"]
    found = Column.named("misc.SpaceAfter").put(found, ["_", "No"])
    assert found.column("misc") == ["odd|A=b=c", "SpaceAfter=No"]
    assert found.lines[0] == given.lines[0]
    assert Column.named("misc.A").put(found, ["_", "_"]).column("misc") == ["odd", "SpaceAfter=No"]
    with pytest.raises(ValueError, match=r"1 values of misc\.A for a sentence of 2 words"):
        Column.named("misc.A").put(found, ["x"])


def test_malformed_features_are_refused_with_their_line():
    assert split_feats("_") == split_feats("") == {}
    assert split_feats("A=1|B=2=3") == {"A": "1", "B": "2=3"}
    assert join_feats({"b": "1", "A": "2", "Ab": "3"}) == "A=2|Ab=3|b=1"
    for bad in ("Nom", "Case=", "=Nom", "Case=Nom|", "Case=Nom||A=b", "Case=Nom|Case=Acc"):
        with pytest.raises(ValueError, match="FEATS"):
            split_feats(bad)
        broken = sentence(FILE.replace("VB\t_", f"VB\t{bad}"))
        with pytest.raises(FormatError, match=r"^x\.conllu:3: FEATS"):
            column_values([broken], parse_columns_list("form,feats.Case"))
        assert column_values([broken], parse_columns_list("feats"))  # the whole column may be any text


@pytest.mark.parametrize(
    ("form", "lemma", "rule"),
    [
        ("cities", "city", "lower/-0+/-3+y"),
        ("Cities", "city", "lower/-0+/-3+y"),
        ("the", "the", "lower/-0+/-0+"),
        (".", ".", "lower/-0+/-0+"),
        ("Smiths", "Smith", "keep/-0+/-1+"),
        ("LONDON", "London", "title/-0+/-0+"),
        ("nato", "NATO", "upper/-0+/-0+"),
        ("gesagt", "sagen", "lower/-2+/-1+en"),
        ("aB", "aBC", "keep/-0+/-0+C"),
        ("is", "be", "=be"),
    ],
)
def test_rules_of_lemmas(form, lemma, rule):
    assert lemma_rule(form, lemma) == rule
    assert apply_lemma_rule(rule, form) == lemma


def test_rules_make_unseen_lemmas():
    rule = lemma_rule("cities", "city")
    assert apply_lemma_rule(rule, "Parties") == "party"
    assert apply_lemma_rule(rule, "as") == "as"  # too short for the rule
    assert apply_lemma_rule("lower/-0+/-2+", "AS") == "AS"  # the rule would remove all letters
    for bad in ("", "lower", "lower/-0+/-1", "small/-0+/-0+", "lower/-x+/-0+"):
        with pytest.raises(ValueError, match="is no rule of a lemma"):
            apply_lemma_rule(bad, "x")


def test_every_rule_gives_its_lemma():
    letters = "abcABC/%+-=İıßſǅ\u0301é中 "
    rng = random.Random(3)
    for _ in range(3000):
        form, lemma = ("".join(rng.choices(letters, k=rng.randint(1, 7))) for _ in range(2))
        rule = lemma_rule(form, lemma)
        assert apply_lemma_rule(rule, form) == lemma, rule
        kept = make_sentence([form.replace("\t", " ")])
        assert kept.with_columns({2: [apply_lemma_rule(rule, form)]}).column("lemma") == [lemma]
