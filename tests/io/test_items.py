"""Reading and writing CRFsuite's item format."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.odd_strings import ODD_STRINGS
from partwise import SequenceTagger
from partwise.io import FormatError, read_items, write_items

TEXT = "B-NP\tw=He\tw=He\tpos\\:x=1:2\nO\n\n\nI\\:X\ta\\\\b:0.5\ta\\\\b:-1e1\tc\r\n"


def written(tmp_path, text):
    path = tmp_path / "items"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_items(tmp_path):
    X, y = read_items(written(tmp_path, TEXT))
    assert y == [["B-NP", "O"], ["I:X"]]
    assert X == [[{"w=He": 2.0, "pos:x=1": 2.0}, []], [{"a\\b": -9.5, "c": 1.0}]]
    assert read_items(written(tmp_path, "x\ta:1\tb\ta:1.0\n")) == ([[["a", "b", "a"]]], [["x"]])
    assert read_items(written(tmp_path, "\n\n")) == ([], [])


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("B\ta\n\tb\n", 2, 1, "empty label"),
        ("B\ta\t\tb\n", 1, 5, "empty attribute"),
        ("B\ta\t\n", 1, 5, "empty attribute"),
        ("B\ta\t:1\n", 1, 5, "empty attribute"),
        ("B\tab:x\n", 1, 6, "'x' is not a number"),
        ("B\tab:\n", 1, 6, "'' is not a number"),
        ("B\tab:1:2\n", 1, 6, "'1:2' is not a number"),
        ("B\tab:nan\n", 1, 6, "not a number"),
        ("B\tab:1e999\n", 1, 6, "not a number"),
        ("B\tab:1_0\n", 1, 6, "not a number"),
        ("B\tab:\u0663\n", 1, 6, "not a number"),
        ("B\tab: 1\n", 1, 6, "not a number"),
        ("B\ta\\b\n", 1, 4, "backslash"),
        ("B\tab\\", 1, 5, "backslash"),
        ("A:1\tb\n", 1, 2, "a label has no value"),
        (b"B\ta\n\nB\t\xff\n", 3, 3, "not UTF-8"),
        (b"B\t\xed\xa0\x80\n", 1, 3, "surrogate"),
    ],
)
def test_malformed(tmp_path, text, line, column, message):
    path = written(tmp_path, text)
    with pytest.raises(FormatError, match=re.escape(message)) as error:
        read_items(path)
    assert (error.value.path, error.value.line, error.value.column) == (str(path), line, column)


@pytest.mark.parametrize("name", ["items", "items.gz"])
def test_odd_strings_come_back(tmp_path, name):
    path = tmp_path / name
    last = [text for text in ODD_STRINGS if not text.endswith("\r")]
    X = [[[text, "end"], [text]] for text in last] + [[[*ODD_STRINGS, "end"]]]
    y = [[text, "x"] for text in last] + [["y"]]
    write_items(path, X, y)
    assert read_items(path) == (X, y)


def test_values_come_back(tmp_path):
    X = [[{"a": 0.1, "b:c": -3.0, "\ufeff": 1e-300}, {"word": 2.0}], [["a"]]]
    y = [["\ufeff", "\\"], ["x"]]
    write_items(tmp_path / "items", X, y)
    assert read_items(tmp_path / "items") == (X, y)
    write_items(tmp_path / "items", [[{"word": "the", "flag": True}]], [["x"]])
    assert read_items(tmp_path / "items") == ([[["word=the", "flag"]]], [["x"]])


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[["a\tb"]]], [["x"]]),
        ([[["a\nb"]]], [["x"]]),
        ([[[""]]], [["x"]]),
        ([[["a\r"]]], [["x"]]),
        ([[["\ud800"]]], [["x"]]),
        ([[{"a": float("nan")}]], [["x"]]),
        ([[{"a": float("inf")}]], [["x"]]),
        ([[["a"]]], [[""]]),
        ([[["a"]]], [["x", "y"]]),
        ([[["a"]], []], [["x"], []]),
        ([[["a"]]], []),
    ],
)
def test_unwritable_items(tmp_path, X, y):
    with pytest.raises(ValueError):
        write_items(tmp_path / "items", X, y)
    assert list(tmp_path.iterdir()) == []


@given(st.text(st.sampled_from("ab\t\n\\:1.e-\r"), max_size=25))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any_items"
    path.write_bytes(text.encode())
    try:
        X, y = read_items(path)
    except FormatError as refusal:
        line = refusal.line
    else:
        line = 1
        assert [len(items) for items in X] == [len(labels) for labels in y]
        assert all(X)
    assert 1 <= line <= text.count("\n") + 1


def test_same_objective_as_crfsuite(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    rows = []
    for k in range(40):
        label = "AB"[k * 7 % 3 % 2]
        rows.append(f"{label}\tw={k % 5}\tk\\:{k % 3}:{0.5 + k % 2}\tw={k % 5}\n" + ("\n" if k % 4 == 3 else ""))
    X, y = read_items(written(tmp_path, "".join(rows)))
    assert len(X) == 10
    log = []
    trainer = pycrfsuite.Trainer("lbfgs", {"c1": 0, "c2": 0.5, "epsilon": 1e-9, "delta": 1e-14, "period": 100})
    trainer.message = log.append
    for items, labels in zip(X, y, strict=True):
        trainer.append(pycrfsuite.ItemSequence(items), labels)
    trainer.train(str(tmp_path / "model"))
    losses = [float(found[1]) for text in log if (found := re.search(r"Loss: ([\d.]+)", text))]
    ours = SequenceTagger(C=1.0, solver="lbfgs", tol=1e-14).fit(X, y)
    assert ours.result_.primal == pytest.approx(losses[-1], rel=1e-5)
