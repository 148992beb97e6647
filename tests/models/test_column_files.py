"""Models of Wapiti and CRF++ against enumeration of all labellings, in files that the tests write."""

from __future__ import annotations

import io
import itertools
import os
import pickle
import re
import sys
import threading

import numpy as np
import pytest
from click.testing import CliRunner

import partwise
from partwise import ModelFormatError, SequenceTagger
from partwise.cli import main
from partwise.features import Template
from partwise.features.patterns import Expression, Patterns, text_of

WORDS = ["the", "Cat", "sat", "É", "ü1", "on", "42", "A-b", "x"]
TAGS = ["D", "N", "V", "P"]


def sentences(n=12, seed=0):
    rng = np.random.default_rng(seed)
    return [[(str(rng.choice(WORDS)), str(rng.choice(TAGS))) for _ in range(rng.integers(1, 6))] for _ in range(n)]


# Wapiti

PATTERNS = [
    "u:w=%x[ 0,0]", "u:low=%X[-1,0]", "u:far=%x[-6,1]/%x[+3,1]", 'u:up=%t[0,0,"^\\u"]', 'u:dig=%T[1,0,"\\d"]',
    'u:pre=%m[0,0,"^.?.?"]', 'u:suf=%M[-1,0,".?.?$"]', "u:first=%x[@1,0]", "u:last=%x[@-1,1]", "u", "b",
    "b:%x[0,1]", "*:both=%x[-1,1]", "*",
]  # fmt: skip


def wapiti_cell(x, at, column):
    if at < 0:
        return f"_x-{-at if at >= -4 else '#'}".encode()
    if at >= len(x):
        return f"_x+{at - len(x) + 1 if at - len(x) < 4 else '#'}".encode()
    return x[at][column].encode()


def wapiti_name(x, t, pattern):
    """Return a pattern's attribute, computed with Python's regular expressions."""

    def macro(match):
        kind, absolute, row, column, expression = match.groups()
        row = int(row)
        at = (row - 1 if row >= 0 else len(x) + row) if absolute else t + row
        cell = wapiti_cell(x, at, int(column))
        if kind in b"tTmM":
            found = re.search(expression.replace(b"\\u", b"[A-Z]"), cell)
            cell = b"" if found is None else found[0]
            if kind in b"tT":
                cell = b"false" if found is None else b"true"
        return cell.lower() if kind.isupper() else cell

    found = re.compile(rb'%([xtmXTM])\[(@?) ?([+-]?\d+),(\d+)(?:,"(.*?)")?\]')
    return found.sub(macro, pattern.encode())


def wapiti_file(path, patterns, labels, names, weights, kind=2, automatic=0):
    """Write a Wapiti model file; `weights` has arrays per label, per pair of labels, or both, for each name."""
    out = [f"#rdr#{len(patterns)}/1/{automatic}\n".encode()]
    out += [b"%d:%s,\n" % (len(p), p) for p in (pattern.encode() for pattern in patterns)]
    for strings in ([label.encode() for label in labels], names):
        out += [b"#qrk#%d\n" % len(strings), *(b"%d:%s,\n" % (len(s), s) for s in strings)]
    flat = np.concatenate([np.concatenate([part.ravel() for part in weights[name]]) for name in names])
    used = [(k, w) for k, w in enumerate(flat.tolist()) if w != 0]
    out += [f"{k}={w.hex()}\n".encode() for k, w in used]
    path.write_bytes(b"#mdl#%d#%d\n" % (kind, len(used)) + b"".join(out))


def wapiti_model(path, patterns=PATTERNS, labels=("O", "B", "Zé"), seed=0):
    """Write a model with random weights for attributes of some sentences, and return its scoring function."""
    rng = np.random.default_rng(seed)
    X, n = sentences(), len(labels)
    names = sorted({wapiti_name(x, t, p) for x in X for t in range(len(x)) for p in patterns})
    rng.shuffle(names)
    weights = {}
    for name in names:
        weights[name] = [rng.normal(size=n)] * (name[:1] in b"u*") + [rng.normal(size=(n, n))] * (name[:1] in b"b*")
        for part in weights[name]:
            part[rng.random(part.shape) < 0.2] = 0.0
    wapiti_file(path, patterns, labels, names, weights)

    def score(x):
        nodes, edges = np.zeros((len(x), n)), np.zeros((len(x), n, n))
        for t in range(len(x)):
            for pattern in patterns:
                name = wapiti_name(x, t, pattern)
                if name in weights and name[:1] in b"u*":
                    nodes[t] += weights[name][0]
                if name in weights and name[:1] in b"b*":
                    edges[t] += weights[name][-1]
        return nodes, edges

    return score


# CRF++

TEMPLATE = ["U00:%x[-2,0]", "U01:%x[0,0]/%x[1,1]", "U02:%x[2,1]", "U03", "B", "B01:%x[0,1]", "B02"]


def crfpp_name(x, t, line):
    def macro(match):
        at, column = t + int(match[1]), int(match[2])
        return f"_B{at}" if at < 0 else f"_B+{at - len(x) + 1}" if at >= len(x) else x[at][column]

    return re.sub(r"%x\[(-?\d+),(\d+)\]", macro, line)


def crfpp_model(path, template=TEMPLATE, labels=("O", "B", "Zé"), seed=0, factor=1.0):
    rng = np.random.default_rng(seed)
    X, n = sentences(), len(labels)
    names = sorted({crfpp_name(x, t, p) for x in X for t in range(len(x)) for p in template if p[0] == "U" or t})
    starts, weights, at = {}, {}, 0
    for k in rng.permutation(len(names)):
        starts[names[k]] = at
        weights[names[k]] = rng.normal(size=n if names[k][0] == "U" else (n, n)).round(6)
        at += weights[names[k]].size
    flat = np.concatenate([weights[name].ravel() for name in sorted(names, key=starts.get)])
    head = ["version: 100", f"cost-factor: {factor:g}", f"maxid: {at}", "xsize: 2", ""]
    body = [*labels, "", *template, "", *(f"{starts[name]} {name}" for name in names), ""]
    path.write_text("\n".join([*head, *body, *(f"{w:.16f}" for w in flat)]) + "\n", encoding="utf-8")

    def score(x):
        nodes, edges = np.zeros((len(x), n)), np.zeros((len(x), n, n))
        for t in range(len(x)):
            for line in template:
                found = weights.get(crfpp_name(x, t, line))
                if found is not None:
                    (nodes if line[0] == "U" else edges)[t] += factor * found
        return nodes, edges

    return score


def check(tagger, score, labels):
    """Compare tags, scores, probabilities and marginals with enumeration, also for unknown words."""
    X = [*sentences(10, seed=1), [("new", "Q"), ("É", "N")], [("new", "D")]]
    best = tagger.predict(X)
    found = tagger.predict_marginals(X)
    for x, y, (ranked,), marginals in zip(X, best, tagger.predict_k_best(X, 1), found, strict=True):
        every = list(itertools.product(range(len(labels)), repeat=len(x)))
        nodes, edges = score(x)  # edges[t] scores the labels at t - 1 and t
        values = np.array(
            [sum(nodes[t, e[t]] + (edges[t, e[t - 1], e[t]] if t else 0.0) for t in range(len(x))) for e in every]
        )
        own = every.index(tuple(labels.index(label) for label in y))
        assert values[own] == pytest.approx(values.max(), abs=1e-9)
        assert ranked[1] == pytest.approx(values.max(), abs=1e-9)
        p = np.exp(values - values.max())
        p /= p.sum()
        assert tagger.log_probability([x], [y])[0] == pytest.approx(np.log(p.max()), abs=1e-9)
        for t, row in enumerate(marginals):
            for k, label in enumerate(labels):
                assert row[label] == pytest.approx(sum(p[[e[t] == k for e in every]]), abs=1e-9)


LABELS = ("O", "B", "Zé")


@pytest.mark.parametrize("patterns", [PATTERNS, ["u:%x[0,0]", "u:%x[-1,1]", "b"], ["u:%x[0,0]"]])
def test_wapiti_by_enumeration(tmp_path, patterns):
    score = wapiti_model(tmp_path / "model", patterns)
    tagger = partwise.load(tmp_path / "model")
    assert tagger._fitted().tied == (patterns != PATTERNS)
    assert tagger.result_.status == "no certificate"
    check(tagger, score, LABELS)
    tagger.save(tmp_path / "model.pw")
    for other in (partwise.load(tmp_path / "model.pw"), pickle.loads(pickle.dumps(tagger))):
        assert other.template_ == tagger.template_
        check(other, score, LABELS)


@pytest.mark.parametrize(
    ("template", "factor"),
    [(TEMPLATE, 1.0), (TEMPLATE, 2.5), (["U01:%x[0,0]", "U02:%x[-1,1]", "B"], 1.0), (["U01:%x[0,0]"], 1.0)],
)
def test_crfpp_by_enumeration(tmp_path, template, factor):
    score = crfpp_model(tmp_path / "model", template, factor=factor)
    tagger = partwise.load(tmp_path / "model")
    assert tagger._fitted().tied == (template != TEMPLATE)
    check(tagger, score, LABELS)
    tagger.save(tmp_path / "model.pw")
    check(partwise.load(tmp_path / "model.pw"), score, LABELS)


def test_older_wapiti_files_and_files_without_patterns(tmp_path):
    score = wapiti_model(tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    older = re.sub(rb"#rdr#(\d+)/(\d+)/0", rb"#rdr#\1/\2", data.replace(b"#mdl#2#", b"#mdl#", 1))
    (tmp_path / "older").write_bytes(older)
    check(partwise.load(tmp_path / "older"), score, LABELS)
    rng = np.random.default_rng(0)
    weights = {
        b"ua": [rng.normal(size=2)],
        b"ba": [rng.normal(size=(2, 2))],
        b"*c": [rng.normal(size=2), rng.normal(size=(2, 2))],
    }
    wapiti_file(tmp_path / "raw", [], ["x", "y"], list(weights), weights)
    tagger = partwise.load(tmp_path / "raw")
    x = [["ua", "*c"], ["ba", "*c", "never"]]
    for y in itertools.product((0, 1), repeat=2):
        found = tagger.log_probability([x], [["xy"[k] for k in y]])[0] - tagger.log_probability([x], [["x", "x"]])[0]
        values = [
            weights[b"ua"][0][a] + weights[b"*c"][0][[a, b]].sum() + weights[b"ba"][0][a, b] + weights[b"*c"][1][a, b]
            for a, b in (y, (0, 0))
        ]
        assert found == pytest.approx(values[0] - values[1], abs=1e-9)


def matched(expression, text):
    """Match as Wapiti's C sources do, one character after another."""
    classes = {"a": str.isalpha, "d": str.isdigit, "l": str.islower, "u": str.isupper, "w": str.isalnum}

    def one(c, s):
        if not s:
            return False
        if c[0] == ".":
            return True
        if c[0] == "\\":
            test = classes.get(c[1].lower())
            return c[1] == s[0] if test is None else test(s[0]) == c[1].islower()
        return c[0] == s[0]

    length = 0

    def here(r, s):
        nonlocal length
        if not r:
            return True
        if r == "$":
            return not s
        c = r[: 1 + (r[0] == "\\")]
        rest = r[len(c) :]
        if rest[:1] == "*":
            while True:
                kept = length
                if here(rest[1:], s):
                    return True
                length = kept + 1
                if not one(c, s):
                    return False
                s = s[1:]
        if rest[:1] == "?":
            if one(c, s):
                length += 1
                if here(rest[1:], s[1:]):
                    return True
                length -= 1
            return here(rest[1:], s)
        length += 1
        return one(c, s) and here(rest, s[1:])

    for at in [0] if expression[:1] == "^" else range(len(text) + 1):
        length = 0
        if here(expression.removeprefix("^"), text[at:]):
            return at, length
    return None


def test_expressions_match_as_wapiti_does():
    rng = np.random.default_rng(0)
    atoms = ["a", "b", "A", "1", ".", "\\d", "\\u", "\\l", "\\a", "\\w", "\\D", "\\U", "\\.", "$", "-"]
    for _ in range(3000):
        text = "".join(rng.choice(list("abA1.-$"), size=rng.integers(0, 7)))
        expression = "^" * (rng.random() < 0.3)
        expression += "".join(rng.choice(atoms) + rng.choice(["", "", "*", "?"]) for _ in range(rng.integers(0, 5)))
        expression += "$" * (rng.random() < 0.3)
        expected, found = matched(expression, text), Expression(expression.encode()).search(text.encode())
        assert found == expected, (expression, text)


def test_matching_takes_bounded_time():
    assert Expression(b"^" + b"a*" * 60 + b"b").search(b"a" * 3000) is None
    assert Expression(b"a?" * 100 + b"b").search(b"a" * 300) is None
    for wrong in (b"*a", b"a**", b"^?", b"a\\", b"a" * 201):
        with pytest.raises(ValueError, match=r"\*|\\|characters"):
            Expression(wrong)


def test_failed_attempts_count_towards_the_length():
    # Wapiti counts the "a" that "a?" tried in vain, and matches "aby"
    assert Expression(b"a?ab").search(b"xabyz") == (1, 3)
    assert Patterns('u:%m[0,0,"a?ab"]\n').attributes([["xabyz"]]) == [[["u:aby"]]]


def test_bytes_of_a_cut_character_are_kept():
    assert text_of(b"a\xc3") == "a\uf7c3"
    assert text_of("aé".encode()) == "aé"
    assert Patterns('u:%m[0,0,"^.?.?"]\n').attributes([["aé", "é"]]) == [[["u:a\uf7c3"], ["u:é"]]]


@pytest.mark.parametrize(
    "line",
    ["x:%x[0,0]", "u:%y[0,0]", "u:%x[0]", "u:%x[0,0", "u:%t[0,0]", 'u:%t[0,0,"a]', 'u:%m[0,0,"*"]', "u:%", "u:%x[00,0]",
     "u:%x[0,-1]", "u:%x[99999,0]", 'u:%x[0,0,"a"]'],
)  # fmt: skip
def test_wrong_patterns(line):
    with pytest.raises(ValueError, match=r"^<template>:2: "):
        Patterns(f"u:%x[0,0]\n{line}\n")


def test_training_with_patterns(tmp_path):
    """`*` patterns get weights for labels and for pairs of labels, `b` patterns for pairs only."""
    X = sentences(30)
    y = [["ab"[len(word) % 2] for word, _ in x] for x in X]
    tagger = SequenceTagger(template=Patterns("u:%x[0,0]\nb:%x[0,1]\n*:%x[-1,1]\n"), features="all").fit(X, y)
    states = {name[:1] for name, _ in tagger.state_features_}
    edges = {names[0][:1] for names in tagger.transition_features_ if len(names) == 3}
    assert (states, edges) == ({"u", "*"}, {"b", "*"})
    tagger.save(tmp_path / "model.pw")
    assert partwise.load(tmp_path / "model.pw").predict(X) == tagger.predict(X)
    both = SequenceTagger(template=Patterns("u:%x[0,0]\nb\n")).fit(X, y)
    same = SequenceTagger(template=Template("U:%x[0,0]\nB\n")).fit(X, y)
    assert both.result_.primal == pytest.approx(same.result_.primal, rel=1e-3)


@pytest.mark.parametrize("tool", ["wapiti", "crfpp"])
def test_commands(tmp_path, tool, monkeypatch):
    {"wapiti": wapiti_model, "crfpp": crfpp_model}[tool](tmp_path / "model")
    lines = ["".join(f"{word} {tag}\n" for word, tag in x) + "\n" for x in sentences()]
    (tmp_path / "in.txt").write_text("".join(lines), encoding="utf-8")
    run = CliRunner().invoke
    model, data, out = (str(tmp_path / name) for name in ("model", "in.txt", "out.pw"))
    assert run(main, ["convert", model, out]).exit_code == 0
    first, second = (run(main, ["predict", path, data]) for path in (model, out))
    assert first.exit_code == 0, first.output
    assert first.stdout == second.stdout
    assert [line.split("\t")[2] for line in first.stdout.split("\n") if line] == [
        label for labels in partwise.load(model).predict(sentences()) for label in labels
    ]
    shown = run(main, ["inspect", model]).stdout
    assert {"wapiti": "by Wapiti", "crfpp": "by CRF++"}[tool] in shown
    assert "nan" not in shown
    refused = run(main, ["convert", model, str(tmp_path / "x.crfsuite")])
    assert refused.exit_code == 2
    assert "transition_features" in refused.output


@pytest.mark.parametrize("form", ["wapiti", "crfpp", "crfsuite", "partwise"])
@pytest.mark.parametrize("way", ["-", "pipe"])
def test_standard_input_and_pipes(tmp_path, form, way, monkeypatch):
    path = tmp_path / "model"
    X = sentences()
    if form in ("crfsuite", "partwise"):
        names = [[[word, tag] for word, tag in x] for x in X]
        SequenceTagger().fit(names, [[tag for _, tag in x] for x in X]).save(path, format=form)
        X = names
    else:
        {"wapiti": wapiti_model, "crfpp": crfpp_model}[form](path)
    expected = partwise.load(path).predict(X)
    if way == "-":
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(path.read_bytes())))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert partwise.load("-").predict(X) == expected
        return
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(path.read_bytes()))
    writer.start()
    assert partwise.load(tmp_path / "pipe").predict(X) == expected
    writer.join()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"d\0\0\0\0\0\0\0rest of it", "binary model of CRF"), (pickle.dumps({"a": 1}), "pickle"),
        (b"\xac\xed\0\x05sr\0", "Java"), (b"PK\x03\x04abc", "zip"), (b"\x1f\x8b\x08abc", "gzip"),
        (b"x\x9cabcdefgh", "joblib"),
        (b"FILEHEADER = {\n", "dump of a CRFsuite"), (b"solver_type L2R_LR\nnr_class", "LIBLINEAR"),
        (b"#mdl#1#0\n#rdr#0/0/0\n", "MEMM"), (b"#mdl#0#0\n#rdr#0/0/1\n", "maximum entropy"),
        (b"version: 57\ncost-factor: 1\n\n", "version '57'"), (b"", "empty"),
        (b"just some text, and more of it", "not a model"),
    ],
)  # fmt: skip
def test_files_of_other_tools(tmp_path, data, words):
    (tmp_path / "model").write_bytes(data)
    with pytest.raises(ModelFormatError, match=words) as caught:
        partwise.load(tmp_path / "model")
    assert str(caught.value).startswith(str(tmp_path / "model"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (rb"#mdl#2#\d+", b"#mdl#2#9", "more than 9 weights"), (rb"#mdl#2#\d+", b"#mdl#2#99999", "expected a weight"),
        (rb"#qrk#3", b"#qrk#4", "expected a string"), (rb"#qrk#3", b"#qrk#2", "expected a table of names"),
        (rb"1:O,", b"9:O,", "line 18: a string is cut off"), (rb"1:O,", b"1:B,", "twice"),
        (rb"\d+=0x", b"9999999=0x", "of no feature"), (rb"=0x1\.\w+p", b"=0x1.zp", "not a number"),
        (rb"=-?0x1\.\w+p[+-]\d+", b"=inf", "not finite"), (rb"\n1:u,", b"\n1:x,", "wrong pattern"),
        (rb"#rdr#14", b"#rdr#99999999", "expected a string"), (rb"#qrk#3", b"#qrk#99999999999", "expected a string"),
    ],
)  # fmt: skip
def test_damaged_wapiti_files(tmp_path, old, new, words):
    wapiti_model(tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    (tmp_path / "model").write_bytes(re.sub(old, new, data, count=1))
    with pytest.raises(ModelFormatError, match=rf"line \d+: .*{words}|{words}"):
        partwise.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("maxid: ", "maxid: 9", "weights, its header says"), ("maxid: ", "maxid: x", "line 3: maxid is not a number"),
        ("xsize: 2", "xsize: 1", "column 1 of 1"), ("cost-factor: 1", "cost-factor: nan", "no sense"),
        ("\nO\nB\n", "\nO\nO\n", "one of them twice"), ("\nU03\n", "\nX03\n", "starts with U or B"),
        ("%x[-2,0]", "%x[-9,0]", "row -9"), ("%x[-2,0]", "%lower[-2,0]", "macro that CRF"),
        ("%x[-2,0]", "%%", "macro that CRF"), ("\n0 ", "\n1 ", "others' or none"),
        ("\n0 ", "\n-1 ", "a number and a name"), ("\n0 ", "\n999999 ", "others' or none"),
        (" U03\n", " X03\n", "a number and a name"), ("\n\nU00", "\nU00", "line"), ("xsize: 2\n", "", "must say"),
        ("0000\n", "000x\n", "not a weight"), ("0000\n", "0000e999\n", "not finite"),
    ],
)  # fmt: skip
def test_damaged_crfpp_files(tmp_path, old, new, words):
    crfpp_model(tmp_path / "model")
    text = (tmp_path / "model").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "model").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ModelFormatError, match=rf"line \d+: .*{words}|{words}"):
        partwise.load(tmp_path / "model")


@pytest.mark.parametrize("tool", ["wapiti", "crfpp"])
def test_random_damage(tmp_path, tool):
    """A randomly damaged file is refused or loads as another valid model."""
    path = tmp_path / "model"
    {"wapiti": wapiti_model, "crfpp": crfpp_model}[tool](path)
    data, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    head = len(data) // 3
    for k in range(250):
        damaged = bytearray(data)
        if k % 5 == 0:
            del damaged[rng.integers(len(data)) :]
        elif k % 5 == 1:
            at = rng.integers(head)
            damaged[at : at + rng.integers(1, 40)] = b""
        else:
            for at in rng.integers(head if k % 2 else len(data), size=rng.integers(1, 4)):
                damaged[at] = rng.integers(256) if k % 3 else rng.choice(list(b"0123456789%[],:#=u*b\n"))
        path.write_bytes(damaged)
        try:
            tagger = partwise.load(path)
        except ModelFormatError:
            refused += 1
            continue
        if tagger.template_ is None or tagger.template_.n_columns <= 2:
            tagger.predict(sentences(3))
    assert refused > 100
