"""spaCy Docs as input of models, and models as components of spaCy pipelines."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from helpers.conllu_words import rich_sentences
from partwise import DependencyParser, ModelFormatError, SegmentTagger, SequenceTagger
from partwise.datasets import make_treebank
from partwise.integrations import model_from_bytes, model_to_bytes
from partwise.tables.conllu import ConlluColumns

spacy, srsly = pytest.importorskip("spacy"), pytest.importorskip("srsly")
from spacy.tokens import Doc, Span  # noqa: E402
from spacy.training import Example  # noqa: E402

from partwise.integrations import spacy as ours  # noqa: E402

ROOT = Path(__file__).parents[2]
BANK = make_treebank(120)
WORDS, TAGS = BANK.words, BANK.tags


def rows(words, tags):
    """Return a sentence in the parser's columns."""
    return [(word, "_", "_", tag, "_") for word, tag in zip(words, tags, strict=True)]


@pytest.fixture(scope="module")
def tagger():
    return SequenceTagger(template="pos", tol=1e-2).fit([[(w,) for w in s] for s in WORDS], TAGS)


@pytest.fixture(scope="module")
def chunker():
    X = [list(zip(w, t, strict=True)) for w, t in zip(WORDS, TAGS, strict=True)]
    return SequenceTagger(template="chunk", tol=1e-2).fit(X, BANK.chunks)


@pytest.fixture(scope="module")
def parser():
    X = [rows(w, t) for w, t in zip(WORDS, TAGS, strict=True)]
    y = [list(zip(h, r, strict=True)) for h, r in zip(BANK.heads, BANK.labels, strict=True)]
    return DependencyParser(tol=0.05).fit(X, y)


@pytest.fixture
def nlp():
    return spacy.blank("en")


def doc_of(nlp, *sentences, **more):
    """Make a Doc of these sentences, with sentence boundaries."""
    words = [word for sentence in sentences for word in sentence]
    starts = [k == 0 for sentence in sentences for k in range(len(sentence))]
    return Doc(nlp.vocab, words=words, sent_starts=starts, **more)


# Docs as input


def test_sentences_of_docs_and_spans(nlp):
    two = doc_of(nlp, ["a", "b", "\n"], ["c"])
    one = Doc(nlp.vocab, words=["a", "\n\n", "b"])
    texts = [[token.text for token in words] for words in ours.sentences([two, one, one[1:]])]
    assert texts == [["a", "b"], ["c"], ["a", "b"], ["b"]]
    assert ours.sentences(Doc(nlp.vocab, words=["\n"])) == ours.sentences(Doc(nlp.vocab)) == []
    assert len(ours.sentences(two)) == 2


def test_columns_have_the_tokens_values(nlp):
    doc = Doc(nlp.vocab, words=["Dogs", "bark"], tags=["NNS", "VB"], pos=["NOUN", "VERB"], lemmas=["dog", "bark"],
              morphs=["Number=Plur", ""], ents=["B-ANIMAL", "O"])  # fmt: skip
    names = ("form", "lemma", "upos", "xpos", "feats", "lower", "shape", "ent")
    assert ours.token_columns(doc, names) == [
        [
            ("Dogs", "dog", "NOUN", "NNS", "Number=Plur", "dogs", "Xxxx", "B-ANIMAL"),
            ("bark", "bark", "VERB", "VB", "_", "bark", "xxxx", "O"),
        ]
    ]
    assert ours.token_columns(doc, ("text", "pos", "tag", "morph")) == ours.token_columns(doc, ("form", *names[2:5]))
    assert ours.token_labels([doc], "ent") == [["B-ANIMAL", "O"]]
    Doc_token = type(doc[0])
    Doc_token.set_extension("kind", default="", force=True)
    doc[0]._.kind = "noisy"
    assert ours.token_columns(doc, ["_.kind"]) == [[("noisy",), ("_",)]]
    with pytest.raises(ValueError, match="tokens have no extension attribute 'none'"):
        ours.token_columns(doc, ["_.none"])
    with pytest.raises(ValueError, match="unknown column 'nothing'; there are form, lemma"):
        ours.token_columns(doc, ["nothing"])


def test_trees_of_docs(nlp):
    doc = Doc(nlp.vocab, words=["a", "\n", "dog", "ran", "Why", "?"], heads=[2, 0, 3, 3, 4, 4],
              deps=["det", "dep", "nsubj", "ROOT", "ROOT", "punct"])  # fmt: skip
    assert ours.trees(doc) == [[(2, "det"), (3, "nsubj"), (0, "root")], [(0, "root"), (1, "punct")]]
    hanging = Doc(nlp.vocab, words=["dog", "\n", "ran"], heads=[1, 2, 2], deps=["nsubj", "dep", "ROOT"])
    assert ours.trees(hanging) == [[(2, "nsubj"), (0, "root")]]
    with pytest.raises(ValueError, match="sentence 0: the head of 'a' is outside of it"):
        ours.trees(doc[:2])


def test_models_can_be_trained_on_docs(nlp):
    docs = [Doc(nlp.vocab, words=list(w), tags=list(t)) for w, t in zip(WORDS[:40], TAGS[:40], strict=True)]
    model = SequenceTagger(template="pos", tol=1e-2).fit(ours.token_columns(docs), ours.token_labels(docs))
    assert model.score(ours.token_columns(docs), TAGS[:40]) > 0.95


# Models as components


def test_the_tagger_sets_tags(nlp, tagger, tmp_path):
    tagger.save(tmp_path / "tags.pw")
    component = nlp.add_pipe("partwise_tagger", config={"model": str(tmp_path / "tags.pw")})
    doc = nlp(doc_of(nlp, WORDS[0], WORDS[1]))
    expected = [tag for labels in tagger.predict([[(w,) for w in s] for s in WORDS[:2]]) for tag in labels]
    assert component.target == "tag"
    assert [token.tag_ for token in doc] == expected


def test_which_attribute_the_tagger_sets(nlp, tagger):
    universal = SequenceTagger(template="pos", tol=0.1).fit([["Dogs", "bark"]], [["NOUN", "VERB"]])
    fine = SequenceTagger(template="pos", tol=0.1).fit([["Dogs", "bark"]], [["NNS", "VBP"]])
    assert ours.PartwiseTagger(nlp, "x", universal).target == "pos"
    assert ours.PartwiseTagger(nlp, "x", universal, attribute="tag").target == "tag"
    doc = ours.PartwiseTagger(nlp, "x", fine)(Doc(nlp.vocab, words=["Dogs", "\n", "bark"]))
    assert [token.tag_ for token in doc] == ["NNS", "", "VBP"]
    assert [token.pos_ for token in doc] == ["", "", ""]
    with pytest.raises(ValueError, match="x: 'NNS' is no universal part of speech; use attribute='tag'"):
        ours.PartwiseTagger(nlp, "x", fine, attribute="pos")
    with pytest.raises(ValueError, match="attribute must be 'auto', 'tag' or 'pos', got 'lemma'"):
        ours.PartwiseTagger(nlp, "x", fine, attribute="lemma")


@pytest.fixture(scope="module")
def rich():
    return rich_sentences(80, 3)


def learnt(sentences, target, inputs="form"):
    return ConlluColumns(inputs, target).fit(SequenceTagger(template="pos", tol=1e-2), sentences)


@pytest.mark.parametrize(
    ("target", "attribute", "column"),
    [("upos", "pos", "upos"), ("xpos", "tag", "xpos"), ("lemma-rule", "lemma", "lemma"), ("feats", "morph", "feats")],
)
def test_taggers_of_conllu_set_what_their_target_is(nlp, rich, target, attribute, column):
    model = learnt(rich, target)
    component = ours.PartwiseTagger(nlp, "x", model)
    doc = component(doc_of(nlp, *(sentence.forms for sentence in rich[:10])))
    assert component.target == attribute
    expected = [value for s in ConlluColumns.of(model).annotate(model, rich[:10]) for value in s.column(column)]
    assert ours.token_columns([doc], [column])[0] != [("_",)] * len(doc)
    assert [value for s in ours.token_columns([doc], [column]) for (value,) in s] == expected
    others = {"pos", "tag", "lemma"} - {attribute}
    assert {getattr(token, f"{name}_") for token in doc for name in others} == {""}
    assert component.score([Example(doc, doc)])[f"{attribute}_acc"] == 1.0


def test_targets_that_tokens_do_not_have_are_refused(nlp, rich):
    key = learnt(rich, "feats.Case")
    with pytest.raises(
        ValueError, match=r"x: the model fills feats.Case, tokens take UPOS, XPOS, FEATS and LEMMA-rule"
    ):
        ours.PartwiseTagger(nlp, "x", key)
    with pytest.raises(ValueError, match=r"x: the model fills lemma-rule, which is no token.tag_"):
        ours.PartwiseTagger(nlp, "x", learnt(rich, "lemma-rule"), attribute="tag")


def test_models_of_conllu_know_their_columns(nlp, rich, tmp_path):
    columns = ConlluColumns("form,upos,feats.Case", "xpos")
    with pytest.warns(UserWarning, match="does not look at column 2"):
        model = columns.fit(SequenceTagger(template="chunk", tol=1e-2), rich)
    model.save(tmp_path / "m.pw")
    nlp.add_pipe("partwise_tagger", config={"model": str(tmp_path / "m.pw")})
    words = rich[0]
    doc = nlp(Doc(nlp.vocab, words=words.forms, pos=words.column("upos"), morphs=words.column("feats")))
    assert [token.tag_ for token in doc] == columns.annotate(model, [words])[0].column("xpos")
    odd = ConlluColumns("form,deprel", "xpos").fit(SequenceTagger(template="chunk", tol=1e-2), rich)
    with pytest.raises(ValueError, match="x: unknown column 'deprel'"):
        ours.PartwiseTagger(nlp, "x", odd)


def test_columns_reach_the_model(nlp, chunker):
    component = ours.PartwiseNER(nlp, "chunks", chunker, columns=["form", "tag"])
    doc = component(Doc(nlp.vocab, words=list(WORDS[3]), tags=list(TAGS[3])))
    labels = chunker.predict([list(zip(WORDS[3], TAGS[3], strict=True))])[0]
    assert ours.token_labels(doc, "ent") == [labels]
    with pytest.raises(ValueError, match="chunks: the model reads 2 columns; name them"):
        ours.PartwiseNER(nlp, "chunks", chunker)
    with pytest.raises(ValueError, match="chunks: the model reads 2 columns, got form"):
        ours.PartwiseNER(nlp, "chunks", chunker, columns=["form"])
    with pytest.raises(ValueError, match="unknown column 'word'"):
        ours.PartwiseNER(nlp, "chunks", chunker, columns=["word", "tag"])


X_NAMES = [["Ann", "Lee", "met", "Bo"], ["Bo", "met", "Ann", "Lee"], ["they", "met"], ["Bo", "Bo", "left"]]
Y_NAMES = [["B-PER", "I-PER", "O", "B-PER"], ["B-PER", "O", "B-PER", "I-PER"], ["O", "O"], ["B-PER", "B-PER", "O"]]


@pytest.mark.parametrize("cls", [SequenceTagger, SegmentTagger])
def test_entities(nlp, cls):
    model = cls(template="ner", C=100.0, tol=1e-4).fit(X_NAMES, Y_NAMES)
    component = ours.PartwiseNER(nlp, "names", model)
    doc = doc_of(nlp, ["Ann", "\n", "Lee", "met", "Bo"], ["they", "met"], ["Bo", "Bo", "left"])
    doc.set_ents([Span(doc, 3, 4, "OLD")])
    component(doc)
    found = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    assert found == [(0, 3, "PER"), (4, 5, "PER"), (7, 8, "PER"), (8, 9, "PER")]
    scores = component.score([Example(doc, doc)])
    assert scores["ents_f"] == 1.0


def test_models_that_do_not_fit_are_refused(nlp, tagger, parser):
    with pytest.raises(ValueError, match="x takes a DependencyParser, not SequenceTagger"):
        ours.PartwiseParser(nlp, "x", tagger)
    with pytest.raises(ValueError, match="x takes a SequenceTagger or SegmentTagger, not DependencyParser"):
        ours.PartwiseTagger(nlp, "x", parser)
    with pytest.raises(ValueError, match="x takes a SequenceTagger or SegmentTagger, not SequenceTagger"):
        ours.PartwiseTagger(nlp, "x", SequenceTagger())  # the tagger is not fitted
    with pytest.raises(ValueError, match="the model's labels are no chunk labels"):
        ours.PartwiseNER(nlp, "x", tagger)
    attributes = SequenceTagger(tol=0.1).fit([[["a"], ["b"]]], [["A", "B"]])
    with pytest.raises(ValueError, match=r"x: the model reads attributes, .* give `features`"):
        ours.PartwiseTagger(nlp, "x", attributes)
    with pytest.raises(ValueError, match="x: no model was given"):
        ours.PartwiseTagger(nlp, "x")(Doc(nlp.vocab, words=["a"]))
    with pytest.raises(ValueError, match=r"x: there is no file 'none\.pw'"):
        ours.PartwiseTagger(nlp, "x", "none.pw")(Doc(nlp.vocab, words=["a"]))


def test_changed_files_are_refused(nlp, tagger, tmp_path):
    component = ours.PartwiseTagger(nlp, "x", tagger)
    component.to_disk(tmp_path / "x")
    for text in ("[]", "{}", "7"):
        (tmp_path / "x" / "settings.json").write_text(text)
        with pytest.raises(ValueError, match="x: the settings lack columns"):
            component.from_disk(tmp_path / "x")
    for wrong in ({}, {"model": 3, "settings": {}}, [1]):
        with pytest.raises(ValueError, match="x: there is no model file in these bytes"):
            component.from_bytes(srsly.msgpack_dumps(wrong))


def test_models_over_attributes_take_a_function(nlp, tmp_path):
    @spacy.registry.misc("partwise.test_features.v1")
    def make():
        return lambda tokens: [[f"w={token.lower_}"] for token in tokens]

    model = SequenceTagger(C=100.0, tol=1e-3).fit([[["w=a"], ["w=b"]]], [["A", "B"]])
    model.save(tmp_path / "m.pw")
    config = {"model": str(tmp_path / "m.pw"), "features": {"@misc": "partwise.test_features.v1"}}
    nlp.add_pipe("partwise_tagger", config=config)
    assert [token.tag_ for token in nlp("A b b")] == ["A", "B", "B"]
    nlp.to_disk(tmp_path / "nlp")
    (tmp_path / "m.pw").unlink()
    assert [token.tag_ for token in spacy.load(tmp_path / "nlp")("A b b")] == ["A", "B", "B"]


def test_the_parser_sets_heads_and_relations(nlp, parser):
    component = ours.PartwiseParser(nlp, "trees", parser)
    k = next(i for i, s in enumerate(WORDS) if len(s) > 5)
    words, tags = [*WORDS[k], *WORDS[k + 1]], [*TAGS[k], *TAGS[k + 1]]
    starts = [i in (0, len(WORDS[k])) for i in range(len(words))]
    doc = component(Doc(nlp.vocab, words=words, tags=tags, sent_starts=starts))
    expected = parser.predict([rows(WORDS[i], TAGS[i]) for i in (k, k + 1)])
    assert [[head for head, _ in tree] for tree in ours.trees(doc)] == [[head for head, _ in tree] for tree in expected]
    relations = ["ROOT" if head == 0 else name for tree in expected for head, name in tree]
    assert [token.dep_ for token in doc] == relations
    assert [len(sentence) for sentence in doc.sents] == [len(WORDS[k]), len(WORDS[k + 1])]
    assert component.score([Example(doc, doc)])["dep_las"] == 1.0


def test_spaces_hang_on_words(nlp, parser):
    words = ["\n", "\n", *WORDS[0], " ", "\n"]
    tags = ["_SP", "_SP", *TAGS[0], "_SP", "_SP"]
    doc = ours.PartwiseParser(nlp, "trees", parser)(Doc(nlp.vocab, words=words, tags=tags))
    plain = parser.predict([rows(WORDS[0], TAGS[0])])[0]
    assert [head for head, _ in ours.trees(doc)[0]] == [head for head, _ in plain]
    n = len(WORDS[0])
    assert [token.head.i for token in doc if token.is_space] == [2, 2, n + 1, n + 1]
    assert [token.dep_ for token in doc if token.is_space] == ["dep"] * 4
    assert len(list(doc.sents)) == 1


def test_a_parser_without_tags_says_so(nlp, parser):
    component = ours.PartwiseParser(nlp, "trees", parser)
    with pytest.warns(UserWarning, match="trees: the Docs have no xpos, which the parser was trained with"):
        component(Doc(nlp.vocab, words=list(WORDS[0])))


# Pipelines


@pytest.fixture
def full(nlp, tagger, parser, tmp_path):
    tagger.save(tmp_path / "tags.pw")
    parser.save(tmp_path / "trees.pw")
    nlp.add_pipe("partwise_tagger", config={"model": str(tmp_path / "tags.pw"), "attribute": "tag"})
    nlp.add_pipe("partwise_parser", config={"model": str(tmp_path / "trees.pw")})
    return nlp


def answers(docs):
    return [[(token.tag_, token.pos_, token.head.i, token.dep_) for token in doc] for doc in docs]


def plain_docs(nlp, n=30):
    return [Doc(nlp.vocab, words=list(words)) for words in WORDS[:n]]


def test_batches_give_what_single_docs_do(full):
    single = answers(full(doc) for doc in plain_docs(full))
    for size in (1, 7, 100):
        assert answers(full.pipe(plain_docs(full), batch_size=size)) == single
    assert answers(full.pipe([*plain_docs(full, 1), Doc(full.vocab), Doc(full.vocab, words=["\n"])]))[1:] == [
        [],
        [("", "", 0, "ROOT")],
    ]
    assert answers([full(Doc(full.vocab, words=["\n", "\n"]))]) == [[("", "", 0, "ROOT"), ("", "", 0, "dep")]]


def test_a_batch_is_one_prediction(full, monkeypatch):
    calls = []
    model = full.get_pipe("partwise_tagger").estimator
    predict = model.predict
    monkeypatch.setattr(model, "predict", lambda X: calls.append(len(X)) or predict(X))
    list(full.pipe(plain_docs(full, 25), batch_size=10))
    assert calls == [10, 10, 5]


@pytest.mark.parametrize("way", ["disk", "bytes"])
def test_saved_pipelines_need_no_model_file(full, tmp_path, way):
    before = answers(full.pipe(plain_docs(full)))
    if way == "disk":
        full.to_disk(tmp_path / "nlp")
    data = full.to_bytes()
    for name in ("tags.pw", "trees.pw"):
        (tmp_path / name).unlink()
    if way == "disk":
        other = spacy.load(tmp_path / "nlp")
    else:
        other = spacy.blank("en").from_config(full.config).from_bytes(data)
    assert other.get_pipe("partwise_tagger").attribute == "tag"
    assert answers(other.pipe(plain_docs(other))) == before


def test_damaged_files_of_a_pipeline_are_refused(full, tmp_path):
    full.to_disk(tmp_path / "nlp")
    path = tmp_path / "nlp" / "partwise_tagger" / "model.pw"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelFormatError):
        spacy.load(tmp_path / "nlp")


def test_errors_go_to_the_pipelines_handler(full):
    seen = []
    full.set_error_handler(lambda name, component, docs, error: seen.append((name, len(docs), str(error))))
    full.get_pipe("partwise_parser").estimator.set_params(max_length=9)
    docs = plain_docs(full, 12)
    short = [doc for doc in docs if len(doc) <= 9]
    model = full.get_pipe("partwise_parser").estimator
    full.get_pipe("partwise_parser").use(model_from_bytes(model_to_bytes(model)))
    assert 0 < len(short) < 12
    assert len(list(full.pipe(docs))) == len(short)
    assert [(name, count) for name, count, _ in seen] == [("partwise_parser", 1)] * (12 - len(short))


def test_evaluate(full):
    docs = plain_docs(full, 20)
    gold = [
        Doc(full.vocab, words=list(w), tags=list(t), heads=[h - 1 if h else i for i, h in enumerate(heads)],
            deps=["ROOT" if not h else r for h, r in zip(heads, relations, strict=True)])
        for w, t, heads, relations in zip(WORDS, TAGS, BANK.heads, BANK.labels, strict=True)
    ][:20]  # fmt: skip
    scores = full.evaluate([Example(doc, right) for doc, right in zip(docs, gold, strict=True)])
    assert scores["tag_acc"] > 0.9
    assert scores["dep_uas"] > 0.8


def test_the_factories_are_entry_points():
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["spacy_factories"]
    assert set(entries) == {"partwise_tagger", "partwise_ner", "partwise_parser"}
    for name, place in entries.items():
        module, function = place.split(":")
        assert module == "partwise.integrations.spacy"
        assert callable(getattr(ours, function))
        assert spacy.Language.get_factory_meta(name).factory == name


def test_real_text(data_dir, nlp):
    """On the English web treebank, a pipeline of tokenizer, sentencizer, tagger and parser works on plain text."""
    from partwise.io import read_conllu

    sentences = list(read_conllu(data_dir / "ud-english-ewt" / "dev.conllu.gz"))
    train, test = sentences[:400], sentences[400:450]
    words, tags = ([sentence.column(name) for sentence in train] for name in ("form", "upos"))
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("partwise_tagger").use(SequenceTagger(template="pos", tol=0.1).fit(words, tags))
    # (form, upos) pairs, as the pipeline reads them from Docs
    plain = [list(zip(*own, strict=True)) for own in zip(words, tags, strict=True)]
    nlp.add_pipe("partwise_parser").use(DependencyParser(tol=0.3).fit(plain, [each.heads for each in train]))
    texts = [" ".join(sentence.column("form")) for sentence in test]
    docs = list(nlp.pipe("\n ".join(texts[k : k + 5]) for k in range(0, len(texts), 5)))
    right = total = 0
    for doc in docs:
        assert all(token.pos_ for token in doc if not token.is_space)
        for sentence in doc.sents:
            assert sum(token.head.i == token.i for token in sentence) == 1
    for text, sentence in zip(texts, test, strict=True):
        doc, upos = nlp(text), sentence.column("upos")
        if len(doc) == len(upos):
            right += sum(token.pos_ == tag for token, tag in zip(doc, upos, strict=True))
            total += len(doc)
    assert right > 0.8 * total > 0
