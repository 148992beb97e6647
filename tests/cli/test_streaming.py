"""`partwise predict` by blocks: the output of a single block, bounded memory, and answers while input arrives."""

import gzip
import os
import re
import subprocess
import sys

import pytest

from partwise.cli import predict
from partwise.cli.models import load_model
from partwise.cli.tasks import Request, Task
from partwise.datasets import make_treebank
from partwise.io import write_items

BANK = make_treebank(60, seed=8)
TEST = make_treebank(23, seed=9)


def odd(text):
    """Vary blank lines and line ends, and add a byte order mark."""
    parts = text.removesuffix("\n\n").split("\n\n")
    parts = [part.replace("\n", "\r\n") if k % 5 == 3 else part for k, part in enumerate(parts)]
    return (
        "\ufeff"
        + "".join(part + ("\n\n", "\n\n\n", "\r\n\r\n")[k % 3] for k, part in enumerate(parts[:-1]))
        + parts[-1]
    )


def items(bank):
    return [[[f"w={word}", f"suffix={word[-2:]}"] for word in words] for words in bank.words]


@pytest.fixture(scope="module")
def cases(tmp_path_factory, cli, files, classifier):
    """Return (model, input) by name."""
    folder = tmp_path_factory.mktemp("streams")
    found = {"rows": (classifier, files / "digits" / "test.svm")}
    for name, flags in {"columns": (), "maxent": ("--model", "maxent"), "hinge": ("--loss", "hinge")}.items():
        (folder / "train.txt").write_text(BANK.columns())
        (folder / "test.txt").write_bytes(odd(TEST.columns()).encode())
        cli("train", "tag", folder / "train.txt", "-o", folder / f"{name}.pw", "-q", *flags)
        found[name] = folder / f"{name}.pw", folder / "test.txt"
    write_items(folder / "train.items", items(BANK), BANK.tags)
    write_items(folder / "test.items", items(TEST), TEST.tags)
    cli("train", "tag", folder / "train.items", "-o", folder / "items.pw", "-q")
    found["items"] = folder / "items.pw", folder / "test.items"
    (folder / "train.conllu").write_text(BANK.conllu())
    (folder / "test.conllu").write_bytes(odd(TEST.conllu()).encode())
    cli("train", "tag", folder / "train.conllu", "-o", folder / "conllu.pw", "-q")
    cli("train", "dep", folder / "train.conllu", "-o", folder / "trees.pw", "-q")
    found["conllu"] = folder / "conllu.pw", folder / "test.conllu"
    found["trees"] = folder / "trees.pw", folder / "test.conllu"
    packed = folder / "packed.gz"
    packed.write_bytes(gzip.compress((folder / "test.txt").read_bytes()))
    found["packed"] = folder / "columns.pw", packed
    (folder / "rules").write_text(
        "scheme iob2\ntoken 2 1 B-NP\ntoken 23 2 O I-NP B-VP\ntoken 9 3 O B-VP\nword the B-NP\n"
    )
    (folder / "arcs").write_text("head 2 1 2 3\nforbid 23 1 0\nforbid 9 2 0 1\n")
    return found


@pytest.fixture
def block_sizes(monkeypatch):
    """Return a function that sets the block size, and that returns the list of block lengths of later runs."""
    numbers = []

    def choose(size):
        monkeypatch.setattr(predict, "BLOCK", size)
        numbers.clear()
        return numbers

    def spy(cls):
        whole = cls.predict

        def counting(self, model, data, request):
            assert data.first == sum(numbers)
            numbers.append(data.n_examples)
            return whole(self, model, data, request)

        monkeypatch.setattr(cls, "predict", counting)

    from partwise.cli.tasks.dep import DepTask
    from partwise.cli.tasks.maxent import MaxentTask
    from partwise.cli.tasks.tag import TagTask

    for cls in (TagTask, DepTask, MaxentTask):
        spy(cls)
    return choose


def in_one_go(model, data, marginals, k_best, rules, as_json):
    """Return the output for all of the input as a single block."""
    fitted, task = load_model(str(model), 1, None)
    read = task.read(str(data), task.recall(fitted), labelled=False)
    told = task.rules(fitted, str(rules)) if rules else None
    return "".join(type(task).predict(task, fitted, read, Request(marginals, k_best, told, as_json)))


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("options", ["", "--marginals", "--k-best 3", "--constraints"])
@pytest.mark.parametrize("name", ["columns", "maxent", "hinge", "packed", "items", "conllu", "trees", "rows"])
def test_the_same_bytes_for_all_blocks(name, options, as_json, cases, cli, tmp_path, monkeypatch, block_sizes):
    model, data = cases[name]
    if (name, options) in {("hinge", "--marginals"), ("rows", "--constraints")}:
        cli("predict", model, data, *options.split(), *(["rules"] if name == "rows" else []), status=2)
        return
    if name in ("items", "conllu") and options == "--constraints":
        rules = tmp_path / "rules"
        rules.write_text("token 2 1 NOUN NN\n".replace("NOUN " if name == "items" else " NN", ""))
    else:
        rules = model.parent / ("arcs" if name == "trees" else "rules")
    flags = [*options.split(), *([rules] if options == "--constraints" else []), *(["--json"] if as_json else [])]
    k_best = 3 if "k-best" in options else None
    given = rules if options == "--constraints" else None
    numbers = block_sizes(1 << 30)
    expected = in_one_go(model, data, options == "--marginals", k_best, given, as_json)
    n = numbers[0]
    size = len(gzip.decompress(data.read_bytes()) if name == "packed" else data.read_bytes()) // n
    for block in (1, 2, 7, None):
        numbers = block_sizes(1 << 30 if block is None else 1 if block == 1 else size * block)
        assert cli("predict", model, data, *flags).stdout_bytes.decode() == expected, block
        assert sum(numbers) == n
        if block is None:
            assert len(numbers) == 1
        elif block == 1:
            assert max(numbers) == 1
        else:
            assert len(numbers) > n // (3 * block)
    block_sizes(size * 2)
    out = tmp_path / "out.gz"
    cli("predict", model, data, *flags, "-o", out)
    in_blocks = out.read_bytes()
    block_sizes(1 << 30)
    cli("predict", model, data, *flags, "-o", out)
    assert out.read_bytes() == in_blocks
    assert gzip.decompress(in_blocks).decode() == expected


@pytest.mark.parametrize("size", [1, 700, 1 << 20])
@pytest.mark.parametrize("name", ["columns", "packed", "items", "conllu", "trees", "rows"])
def test_a_damaged_line_late_in_the_file(name, size, cases, cli, tmp_path, block_sizes):
    model, data = cases[name]
    text = data.read_bytes() if name != "packed" else gzip.decompress(data.read_bytes())
    damage = {
        "columns": b"\n\nonly-one-column",
        "packed": b"\n\n\xff a b",
        "items": b"\nX\tb:c",
        "conllu": b"\n\n1\tthree\tcolumns",
        "trees": b"\n\n2\t" + b"_\t" * 8 + b"_",
        "rows": b"\n1 2:x",
    }[name]
    path = tmp_path / ("bad" + data.suffix)
    bad = text + damage
    path.write_bytes(gzip.compress(bad) if name == "packed" else bad)
    out = tmp_path / "out"
    block_sizes(size)
    answer = cli("predict", model, path, "-o", out, status=2)
    line = bad.count(b"\n") + 1
    assert re.fullmatch(rf"error: {re.escape(str(path))}:{line}:\d+: .*\n", answer.stderr)
    assert os.listdir(tmp_path) == [path.name]
    # answers for blocks before the damage are written
    block_sizes(size)
    shown = cli("predict", model, path, status=2)
    assert bool(shown.stdout) == (size < 1 << 20)


def test_rules_about_missing_sentences(cases, cli, tmp_path, block_sizes):
    out, rules = tmp_path / "out", tmp_path / "rules"
    for name, lines in {
        "columns": {
            "token 24 1 O": "there is no sentence 24",
            "token 23 99 O": "there is no token 99 in sentence 23",
            "token 23 1 O\ntoken 23 2 O\nforbid O O": "the rules leave sentence 23",
        },
        "trees": {
            "head 24 1 1": "there is no sentence 24: there are 23",
            "head 0 1 1": "there is no sentence 0: there are 23",
            "head 23 99 1": "sentence 23 has",
            "head 23 1 1": "the rules leave sentence 23, word 1",
        },
    }.items():
        for rule, message in lines.items():
            rules.write_text(rule)
            said = []
            for size in (1, 1 << 30):
                block_sizes(size)
                answer = cli("predict", *cases[name], "--constraints", rules, "-o", out, status=2)
                said.append(answer.stderr)
                assert not out.exists()
            assert said[0] == said[1]
            assert message in said[0]


def test_sentences_too_long_are_told_by_their_number(cases, cli, block_sizes):
    model, data = cases["trees"]
    said = []
    for size in (1, 1 << 30):
        block_sizes(size)
        said.append(cli("predict", model, data, "--max-length", max(map(len, TEST.words)) - 1, status=2).stderr)
    assert said[0] == said[1]


def test_a_task_without_blocks_is_one_block(files, classifier):
    _, task = load_model(str(classifier), 1, None)
    (data,) = Task.blocks(task, str(files / "digits" / "test.svm"), {}, 1)
    assert data.n_examples > 1


@pytest.mark.parametrize("text", ["", "\n\n \n\t\r\n", "\ufeff"])
def test_empty_input(text, cases, cli, tmp_path, block_sizes):
    for name in ("columns", "conllu", "trees", "rows"):
        model, data = cases[name]
        path, out = tmp_path / f"nothing{data.suffix}", tmp_path / "out"
        path.write_text(text, newline="")
        block_sizes(1)
        answer = cli("predict", model, path, "-o", out, "--constraints", tmp_path / "no rules")
        assert answer.stderr == f"warning: {path}: there are no {'rows' if name == 'rows' else 'sentences'}\n"
        assert out.read_bytes() == b""


@pytest.mark.skipif(os.name == "nt", reason="pipes do not say there whether they have something")
def test_a_pipe_gets_answers_while_it_is_open(cases):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    command = [sys.executable, "-m", "partwise", "predict", str(cases["columns"][0]), "-"]
    with subprocess.Popen(command, **pipes) as process:
        for _ in range(3):
            process.stdin.write(b"the DT\n")
            process.stdin.write(b"cat NN\n\n")
            assert [process.stdout.readline()[:6] for _ in range(3)] == [b"the\tDT", b"cat\tNN", b"\n"]
        process.stdin.write(b"no end")
        process.stdin.close()
        assert process.stdout.read().startswith(b"no\tend\t")
    assert process.returncode == 0


PEAK = """
import sys
from partwise.cli import main
from partwise.cli.output import peak_memory
main(sys.argv[1:], standalone_mode=False)
print(peak_memory(), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "piped"), [("columns", False), ("columns", True), ("items", False), ("conllu", False), ("rows", True)]
)
def test_memory_does_not_grow_with_the_input(name, piped, cases, tmp_path):
    """Memory with 30 MB of input is about the same as with 5 MB."""
    model, data = cases[name]
    text = data.read_bytes().removeprefix(b"\xef\xbb\xbf").rstrip(b"\n") + (b"\n" if name == "rows" else b"\n\n")
    peaks = []
    for megabytes in (5, 30):
        path = tmp_path / ("large" + data.suffix)
        path.write_bytes(text * (megabytes * 1_000_000 // len(text)))
        with path.open("rb") as file:
            command = [sys.executable, "-c", PEAK, "predict", str(model), "-" if piped else str(path)]
            done = subprocess.run(
                command, stdin=file if piped else None, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True
            )
        peaks.append(int(done.stderr.split()[-1]))
    assert peaks[1] - peaks[0] < 10_000_000


def test_predictions_for_a_table_need_a_file(cli, chunker, tmp_path):
    table = tmp_path / "in.parquet"
    table.write_bytes(b"PAR1")
    ended = cli("predict", chunker, table, status=2)
    assert "give its name, for example -o out.parquet" in ended.stderr
