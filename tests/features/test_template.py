"""Templates: the documented meaning of CRF++'s syntax, the presets compared with Python code, and extraction."""

import pickle
import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.odd_strings import ODD_STRINGS
from oracles.chunking import by_templates
from partwise._core import Vocabulary
from partwise.datasets import pos_features
from partwise.features import Template
from partwise.features.presets import read_clusters, read_gazetteers
from partwise.features.template import Gazetteer, shape, short_shape
from partwise.io import FormatError, Sentences, parse_columns

# Examples from CRF++'s documentation: in its sentence "He reckons the current account", "%x[-2,1]" at "the" is PRP, and
# "ABC%x[0,0]123" is ABCthe123.
# PRP, "ABC%x[0,0]123" is ABCthe123.
CRFPP_TEMPLATE = """\
# Unigram
U00:%x[-2,0]
U01:%x[0,0]
U02:%x[1,1]
U03:%x[-1,0]/%x[0,0]
U04:%x[-2,1]/%x[-1,1]/%x[0,1]
U05:ABC%x[0,0]123
U06:%x[3,0]
U

# Bigram
B
B01:%x[-1,1]/%x[0,1]
"""
CRFPP_DATA = b"He PRP B-NP\nreckons VBZ B-VP\nthe DT B-NP\n\nGo VB B-VP\n"
CRFPP_ATTRIBUTES = [
    [
        ["U00:_B-2", "U01:He", "U02:VBZ", "U03:_B-1/He", "U04:_B-2/_B-1/PRP", "U05:ABCHe123", "U06:_B+1", "U"],
        [
            *("U00:_B-1", "U01:reckons", "U02:DT", "U03:He/reckons", "U04:_B-1/PRP/VBZ", "U05:ABCreckons123"),
            *("U06:_B+2", "U", "B01:PRP/VBZ"),
        ],
        [
            *("U00:He", "U01:the", "U02:_B+1", "U03:reckons/the", "U04:PRP/VBZ/DT", "U05:ABCthe123", "U06:_B+3", "U"),
            "B01:VBZ/DT",
        ],
    ],
    [["U00:_B-2", "U01:Go", "U02:_B+1", "U03:_B-1/Go", "U04:_B-2/_B-1/VB", "U05:ABCGo123", "U06:_B+3", "U"]],
]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_crfpp_semantics(tmp_path, ending):
    path = tmp_path / "template"
    path.write_text(CRFPP_TEMPLATE.replace("\n", ending), newline="")
    template = Template.from_file(path)
    assert template.attributes(parse_columns(CRFPP_DATA)) == CRFPP_ATTRIBUTES
    assert (template.transitions, template.edges, template.n_columns) == (True, True, 2)


def test_b_lines_are_templates_of_label_pairs():
    for text, transitions, edges in (
        ("U:%x[0,0]\n", False, False),
        ("B", True, False),
        ("B07", True, False),
        ("B:%x[0,0]", False, True),
        ("B\nB2\n", True, True),
    ):
        template = Template(text)
        assert (template.transitions, template.edges) == (transitions, edges)
    assert Template("B\nB2\n").attributes([["a", "b"]]) == [[[], ["B2"]]]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("U00:%x[0,0]\n\n X", 3, 1, "starts with U, B"),
        ("Q", 1, 1, "starts with U, B"),
        ("A", 1, 1, "starts with U, B"),
        ("Abc", 1, 1, "starts with U, B"),
        ("U:%y[0,0]", 1, 3, "no macro %y"),
        ("U:%", 1, 3, "macro's name"),
        ("U:100% %x[0,0]", 1, 6, "macro's name"),
        ("U:%x", 1, 3, "[row,col]"),
        ("U:%x[0]", 1, 3, "[row,col]"),
        ("U:%x[0,0", 1, 3, "[row,col]"),
        ("U:ab%x[a,0]", 1, 5, "row and a column"),
        ("U:%x[0,-1]", 1, 3, "row and a column"),
        ("U:%x[ 0,0]", 1, 3, "row and a column"),
        ("U:%x[\u0663,0]", 1, 3, "row and a column"),
        ("A %prefix[0,0]", 1, 3, "[row,col,...]"),
        ("A %prefix[0,0,0]", 1, 3, "number above 0"),
        ("A %prefix[0,0,x]", 1, 3, "number above 0"),
        ("A %shape[0,0,1]", 1, 3, "[row,col]"),
        ("A %gazetteer[0,0,names]", 1, 3, "no gazetteer 'names'"),
        ("B:%x[0,0]\nA Bx", 2, 3, "start with B"),
        ("A %x[0,0]\nB:%x[0,0]", 1, 3, "start with B"),
    ],
)
def test_malformed(tmp_path, text, line, column, message):
    path = tmp_path / "template"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=re.escape(message)) as error:
        Template.from_file(path)
    assert (error.value.path, error.value.line, error.value.column) == (str(path), line, column)


def test_lines_beyond_crfpps_syntax():
    text = (
        "A w=%x[1,0]\nA p=%x[-1,0,none]\nA pre=%prefix[0,0,2]\nA suf=%suffix[0,0,3]\nA %lower[0,0]\nA s=%shape[0,0]\n"
        "A ss=%shortshape[0,0]\nA digit%hasdigit[0,0]\nA up%allupper[0,0]\n"
        "A 100%%%first\nA end%last\nU:%prefix[-1,0,1]\n"
    )
    assert Template(text).attributes([["McX-22", "\u00e9T"]])[0] == [
        [
            *("w=\u00e9T", "p=none", "pre=Mc", "suf=-22", "mcx-22", "s=XxX-dd", "ss=XxX-d", "digit", "100%"),
            "U:_B-1",
        ],
        ["p=McX-22", "pre=\u00e9T", "\u00e9t", "s=xX", "ss=xX", "end", "U:M"],
    ]


def test_shapes():
    for word, long, short in (
        ("Hello", "Xxxxx", "Xx"),
        ("USA-1990", "XXX-dddd", "X-d"),
        ("", "", ""),
        ("\u01c5\u00df\u0663!!", "Xxd!!", "Xxd!!"),
    ):
        assert (shape(word), short_shape(word)) == (long, short)


def random_sentences(seed, n):
    rng = np.random.default_rng(seed)
    words = ["a", "The", "U.S.", "1990", "x-ray", "\u00c9cole", "", "_B-1", "|", *ODD_STRINGS[:40]]
    tags = ["DT", "NN", "VB", ","]
    return [[(str(rng.choice(words)), str(rng.choice(tags))) for _ in range(rng.integers(0, 7))] for _ in range(n)]


def test_presets_equal_plain_python_code():
    sentences = random_sentences(0, 200)
    words = [[word for word, _ in sentence] for sentence in sentences]
    tags = [[tag for _, tag in sentence] for sentence in sentences]
    chunk = [by_templates(w, p) for w, p in zip(words, tags, strict=True)]
    assert Template.preset("chunk").attributes(sentences) == chunk
    assert Template.preset("pos").attributes(words) == [pos_features(w) for w in words]


NER = {
    "clusters": {"the": "0101100", "U.S.": "11"},
    "gazetteers": {"place": ["New York", "new york city", "Rome"]},
}


def test_ner_preset():
    found = Template.preset("ner", **NER).attributes([["In", "NEW", "York", "x", "the"]])[0]
    assert {"bias", "w[0]=In", "lower[0]|lower[1]=in|new", "shape[0]=Xx", "capital[0]", "__BOS__", "place[1]=B"} <= set(
        found[0]
    )
    assert {"place[0]=B", "place[1]=I", "allupper[0]", "capital[-1]", "prefix=NE", "suffix=EW"} <= set(found[1])
    assert {"place[-1]=B", "place[0]=I"} <= set(found[2])
    assert {"cluster4[0]=0101", "cluster6[0]=010110", "cluster20[0]=0101100", "__EOS__"} <= set(found[4])
    assert not any(name.startswith(("cluster", "place")) for name in found[3] if "[0]" in name)
    plain = Template.preset("ner").attributes([["In"]])[0][0]
    assert set(plain) <= set(Template.preset("ner", **NER).attributes([["In"]])[0][0])


def test_gazetteers_match_the_longest_phrase():
    names = Gazetteer(["a b c", "a b", "b", "A  B"])
    assert names.phrases == ("a b c", "a b", "b")
    assert names.mark(["x", "A", "b", "a", "b", "c", "b", "b"]) == [None, "B", "I", "B", "I", "I", "B", "B"]
    assert names.mark([]) == []
    assert names.mark(["a", "b", " ", "c"]) == ["B", "I", None, None]
    with pytest.raises(ValueError, match="empty phrase"):
        Gazetteer([" "])
    with pytest.raises(ValueError, match="must hold phrases, got 7"):
        Gazetteer(["a", 7])


def test_files_of_gazetteers_with_long_phrases(tmp_path):
    (tmp_path / "towns.txt").write_text("Oslo\n\n" + "a " * 101 + "\n")
    with pytest.raises(FormatError, match="a phrase of 101 words, more than 100") as error:
        read_gazetteers(tmp_path / "towns.txt")
    assert (error.value.path, error.value.line) == (str(tmp_path / "towns.txt"), 3)


def test_gazetteers_of_long_phrases_take_linear_time():
    """The time is linear in the sentence. When every possible phrase was cut out of it, 2000 tokens took 12 s."""
    with pytest.raises(ValueError, match="a phrase of 2001 words, more than 100"):
        Gazetteer(["a " * 2000 + "b"])
    names = Gazetteer("a " * k + "b" for k in range(100))
    begin = time.process_time()
    assert names.mark(["a"] * 20_000) == [None] * 20_000
    assert names.mark(["a"] * 200 + ["b"]) == [None] * 101 + ["B", *["I"] * 99]
    assert time.process_time() - begin < 4


def test_resources_from_files(tmp_path):
    (tmp_path / "place.txt").write_text("New York\r\n\nRome\n", newline="")
    (tmp_path / "clusters").write_text("0101100\tthe\t12\n11\tU.S.\n")
    template = Template.preset("ner", clusters=tmp_path / "clusters", gazetteers=[tmp_path / "place.txt"])
    assert template.clusters == NER["clusters"]
    assert {name: each.phrases for name, each in template.gazetteers.items()} == {"place": ("new york", "rome")}


@pytest.mark.parametrize(
    ("text", "line", "column"), [("01\n", 1, 1), ("01\ta\n02\tb\n", 2, 1), ("01\t\n", 1, 4), ("1\ta\t1\tb", 1, 1)]
)
def test_malformed_clusters(tmp_path, text, line, column):
    path = tmp_path / "clusters"
    path.write_text(text)
    with pytest.raises(FormatError) as error:
        read_clusters(path)
    assert (error.value.line, error.value.column) == (line, column)


def test_unknown_presets_and_names():
    with pytest.raises(ValueError, match="chunk, pos, ner"):
        Template.preset("parse")
    with pytest.raises(ValueError, match="gazetteer's name"):
        Template.preset("ner", gazetteers={"a,b": ["x"]})


def test_pickled_templates_are_equal():
    template = Template.preset("ner", **NER)
    copy = pickle.loads(pickle.dumps(template))
    assert copy == template
    assert copy.attributes([["Rome"]]) == template.attributes([["Rome"]])
    assert template != Template.preset("ner")


WIDE = "A " + "|".join(f"%x[{k},{j}]" for k in range(-6, 7) for j in range(2)) + "\n"
PARTLY = "A f=%first%x[0,0]\nA l=%x[4,0,END]%last\nB1:%x[2,0]\nU2:%x[-9,1]\nA p=%prefix[0,0,2]/%x[1,1]\n"
CASES = [CRFPP_TEMPLATE, Template.preset("chunk").text, Template.preset("pos").text, PARTLY, WIDE]


@pytest.mark.parametrize(
    "text", [*CASES, "U1:%x[0,0]\nU1:%x[0,0]\n", "A const\n", "B\n", "U:%x[-3,0]%x[3,0]%x[0,1]%x[-1,1]\n"]
)
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_extracted_attributes_equal_those_written_and_read(text, n_jobs):
    template = Template(text)
    train, test = (Sentences.from_lists(random_sentences(seed, 150)) for seed in (1, 2))
    written = [token for sentence in template.attributes(train) for token in sentence]
    vocabulary, (row_ptr, ids, unknown) = template.extractor(train).learn(1, n_jobs)
    flat = [name for token in written for name in token]
    expected, expected_ids = Vocabulary.learn(flat)
    assert vocabulary.names() == expected.names()
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(np.diff(row_ptr), list(map(len, written)))
    assert unknown == 0

    written = [token for sentence in template.attributes(test) for token in sentence]
    row_ptr, ids, unknown = template.extractor(test).look_up(vocabulary, n_jobs)
    np.testing.assert_array_equal(ids, vocabulary.ids([name for token in written for name in token]))
    np.testing.assert_array_equal(np.diff(row_ptr), list(map(len, written)))
    assert unknown == np.count_nonzero(ids < 0)


def test_rare_attributes_are_left_out():
    train = Sentences.from_lists(random_sentences(1, 150))
    template = Template.preset("chunk")
    everything, (_, all_ids, _) = template.extractor(train).learn()
    frequent, (_, ids, unknown) = template.extractor(train).learn(3)
    counts = np.bincount(all_ids)
    assert frequent.names() == everything.names()[: np.count_nonzero(counts >= 3)]
    np.testing.assert_array_equal(ids, np.where(counts[all_ids] >= 3, all_ids, -1))
    assert unknown == np.count_nonzero(ids < 0) > 0


def test_too_few_columns():
    with pytest.raises(ValueError, match="column 1, counted from 0, but X has 1 columns"):
        Template.preset("chunk").attributes([["a"]])
    assert Template.preset("chunk").attributes([]) == []
    assert Template.preset("chunk").attributes([[]]) == [[]]


@given(st.text(st.sampled_from("UAB %x[]0,-1\n#prefixq"), max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        template = Template(text)
    except FormatError as refusal:
        line, column = refusal.line, refusal.column
    else:
        template.attributes([[("a",) * 20, ("b",) * 20]] if template.n_columns <= 20 else [])
        line, column = 1, 1
    assert 1 <= line <= text.count("\n") + 1
    assert column >= 1


@pytest.mark.parametrize("text", ["", "\n# nothing but a comment\n"])
def test_a_file_without_templates(tmp_path, text):
    path = tmp_path / "template"
    path.write_text(text)
    with pytest.raises(FormatError, match="no templates"):
        Template.from_file(path)


def test_single_features_of_a_list():
    template = Template("A c=%feat[0,1,Case]\nA n=%feat[-1,1,Number[psor]]\nU1:%x[0,0]/%feat[0,1,Case]")
    X = [[("a", "Case=Nom|Number[psor]=Sing"), ("b", "_"), ("c", "Case=Acc")]]
    assert template.attributes(X) == [[["c=Nom", "U1:a/Nom"], ["n=Sing"], ["c=Acc", "U1:c/Acc"]]]
    with pytest.raises(ValueError, match="FEATS 'Nom' is no list of features"):
        template.attributes([[("a", "Nom")]])


def test_columns_by_name_become_numbers():
    text = "# %x[0,form]\nA w=%x[0,form]%%x\r\nU:%lower[-1,form]/%feat[1,feats,A[b]]/%x[0,1]\nB"
    template = Template(text, names=("form", "feats"))
    assert template.text == "# %x[0,form]\nA w=%x[0,0]%%x\r\nU:%lower[-1,0]/%feat[1,1,A[b]]/%x[0,1]\nB"
    assert template == Template(template.text)
    with pytest.raises(FormatError, match=r":1:3: %x: there is no column 'upos': there are form, feats"):
        Template("A %x[0,upos]", names=("form", "feats"))
    with pytest.raises(FormatError, match="takes a row and a column"):
        Template("A %x[0,form]")


def test_morphological_templates_read_all_their_columns():
    template = Template.preset("morph", tags=[1], features={2: ["Case", "Number"]})
    assert template.columns == [0, 1, 2]
    (found,) = template.attributes([[("Houses", "NOUN", "Case=Nom"), ("fall", "VERB", "_")]])
    assert {"suffix=ouses", "lower=houses", "tag1|suffix=NOUN|es", "Case[0]=Nom", "Case|suffix=Nom|s"} <= set(found[0])
    assert "Case[-1]=Nom" in found[1]
    assert not any(name.startswith("Number") for name in found[0])
