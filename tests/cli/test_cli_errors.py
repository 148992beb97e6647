"""Every error is one line on standard error with status 2, without a traceback or leftover files."""

import gzip
import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

import partwise

LONG = pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX only")


def refused(cli, *args, stdin=None):
    answer = cli(*args, status=2, stdin=stdin)
    lines = [line for line in answer.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1, answer.stderr
    assert lines[0].startswith("error: ")
    assert answer.stdout == ""
    return lines[0]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a X\nb\n", ":2:", "column"),
        ("", "", "no sentences"),
        ("\n\n\n", "", "no sentences"),
        ("a\nb\n", "", "one column"),
        ("a\tX\n\xff\tY\n", ":2:1", "UTF-8"),
        ("a X\na X\n", "", "one label only"),
    ],
)
def test_malformed_columns(cli, tmp_path, text, place, message):
    path = tmp_path / "bad.txt"
    path.write_bytes(text.encode("latin-1"))
    error = refused(cli, "train", "tag", path, "-o", tmp_path / "m.pw")
    assert message in error
    assert place in error
    assert [each.name for each in tmp_path.iterdir()] == ["bad.txt"]


def test_malformed_svmlight(cli, tmp_path):
    path = tmp_path / "bad.svm"
    path.write_text("1 1:0.5\n2 x:1\n")
    error = refused(cli, "train", "maxent", path, "-o", tmp_path / "m.pw")
    assert f"{path}:2:" in error
    assert [each.name for each in tmp_path.iterdir()] == ["bad.svm"]


def test_damaged_gzip(cli, tmp_path):
    path = tmp_path / "bad.gz"
    path.write_bytes(gzip.compress(b"a X\n" * 100)[:-12])
    assert "gzip" in refused(cli, "train", "tag", path, "-o", tmp_path / "m.pw")


def test_missing_files(cli, chunker, tmp_path):
    gone, out = tmp_path / "gone.txt", tmp_path / "out"
    for args in (
        ("train", "tag", gone, "-o", out),
        ("train", "maxent", gone, "-o", out),
        ("path", "tag", gone, "-o", out),
        ("predict", gone, gone, "-o", out),
        ("predict", chunker, gone, "-o", out),
        ("evaluate", chunker, gone),
        ("inspect", gone),
    ):
        error = refused(cli, *args)
        assert f"{gone}: no such file" in error
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_models(cli, files, chunker, tmp_path):
    test = files / "treebank" / "test.txt"
    whole = chunker.read_bytes()
    for name, content in (
        ("empty", b""),
        ("text", test.read_bytes()),
        ("cut", whole[: len(whole) // 2]),
        ("changed", whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:]),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        for args in (("predict", path, test), ("evaluate", path, test), ("inspect", path)):
            assert f"{path}: " in refused(cli, *args)


def test_newer_format_version(cli, chunker, tmp_path):
    import hashlib

    whole = chunker.read_bytes().replace(b'"format_version":"1"', b'"format_version":"9"', 1)
    at = whole.index(b'"sha256":"') + len(b'"sha256":"')
    blank = whole[:at] + b"0" * 64 + whole[at + 64 :]
    path = tmp_path / "newer.pw"
    path.write_bytes(whole[:at] + hashlib.sha256(blank).hexdigest().encode() + whole[at + 64 :])
    assert "format version 9" in refused(cli, "inspect", path)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--loss", "hing"), "did you mean 'hinge'?"),
        (("--solver", "lbgs"), "did you mean 'lbfgs'?"),
        (("--solver", "lbfgs", "--loss", "hinge"), "lbfgs"),
        (("--C", "0"), "--C must be a number above 0"),
        (("--C", "x"), "not a valid float"),
        (("--l2", "nan"), "--l2 must be"),
        (("--C", "1", "--l2", "1"), "--C and --l2"),
        (("--l2", "0"), "--l2 must be a number above 0"),
        (("--l1", "-1"), "--l1 must be a number of at least 0"),
        (("--l1", "nan"), "--l1 must be a number of at least 0"),
        (("--l1", "inf"), "--l1 must be a number of at least 0"),
        (("--l1", "1", "--l2", "-1"), "--l2 must be a number of at least 0"),
        (("--l1", "0", "--l2", "0"), "--l2 must be a number above 0"),
        (("--l1", "1", "--C", "1"), "--C cannot be combined with --l1"),
        (("--l1", "1", "--penalty", "l1"), "--penalty l1 goes with --C"),
        (("--l2", "1", "--penalty", "elasticnet"), "--penalty elasticnet goes with --C"),
        (("--penalty", "elasticnet", "--l1-ratio", "2"), "l1_ratio must be at most 1"),
        (("--l1", "1", "--loss", "hinge"), "not available with --loss hinge"),
        (("--tol", "-1"), "tol must be"),
        (("--threads", "0"), "'--threads': must not be 0"),
        (("--threads", "2147483648"), "'--threads': must be at most 65536"),
        (("--threads", "-9223372036854775809"), "'--threads': must be at most 65536"),
        (("--solver", "eg", "--solver-option", "round-size=9223372036854775808"), "round_size must be between"),
        (("--solver", "bcfw", "--loss", "hinge", "--solver-option", f"keep={10**30}"), "keep must be between"),
        (("--seed", "-1"), "'--seed'"),
        (("--max-seconds", "-3"), "max_seconds must be"),
        (("--min-count", "0"), "min_count must be"),
        (("--columns", "1"), "--columns"),
        (("--columns", "1,x"), "--columns"),
        (("--columns", "1,9"), "column"),
        (("--template", "t", "--features", "pos"), "--template and --features"),
        (("--template", "absent"), "absent: no such file"),
        (("--solver-option", "x=1"), "--solver"),
        (("--solver", "eg", "--solver-option", "stepsize=1"), "did you mean 'step-size'?"),
        (("--solver", "eg", "--solver-option", "order=backwards"), "order"),
        (("--early-stopping", "3"), "needs --dev"),
        (("--report", "no/such/folder/r.html"), "cannot be written"),
        (("--history-file", "h.txt"), ".csv or .json"),
        (("--nonsense",), "--nonsense"),
        (("--json", "-o", "-"), "--json"),
    ],
)
def test_bad_values(cli, files, tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    train = files / "treebank" / "train.txt"
    more = () if "-o" in args else ("-o", "m.pw")
    assert message in refused(cli, "train", "tag", train, *more, *args)
    assert list(tmp_path.iterdir()) == []


def test_outputs_are_tried_before_training(cli, files, tmp_path, monkeypatch):
    monkeypatch.setattr("partwise.estimators.SequenceTagger.fit", lambda *_: pytest.fail("training began"))
    train = files / "treebank" / "train.txt"
    (tmp_path / "folder").mkdir()
    for out in ("no/m.pw", tmp_path / "folder", train):
        refused(cli, "train", "tag", train, "-o", out)
    refused(cli, "train", "tag", train, "-o", tmp_path / "same", "--report", tmp_path / "same")
    if os.geteuid() != 0:
        (tmp_path / "folder").chmod(0o500)
        refused(cli, "train", "tag", train, "-o", tmp_path / "folder" / "m.pw")


def test_input_that_does_not_fit_the_model(cli, chunker, classifier, tmp_path):
    path = tmp_path / "one.txt"
    path.write_text("word\n")
    assert f"{path}:1: expected at least 2 columns" in refused(cli, "predict", chunker, path)
    path.write_text("word TAG\n")
    assert "expected labels in column 3" in refused(cli, "evaluate", chunker, path)
    assert f"{path}:1:" in refused(cli, "predict", classifier, path)


def test_development_data_of_another_shape(cli, files, tmp_path):
    dev = tmp_path / "dev.txt"
    dev.write_text("word B-NP\n")
    for command in ("train", "path"):
        error = refused(cli, command, "tag", files / "treebank" / "train.txt", "-o", tmp_path / "m.pw", "--dev", dev)
        assert f"{dev}:1: expected labels in column 3" in error
    assert [path.name for path in tmp_path.iterdir()] == ["dev.txt"]


def test_contradictory_constraints(cli, files, chunker, tmp_path):
    rules = tmp_path / "rules.txt"
    rules.write_text("token 1 1 B-NP\ntoken 1 1 B-VP\n")
    refused(cli, "predict", chunker, files / "treebank" / "test.txt", "--constraints", rules, "-o", tmp_path / "out")
    rules.write_text("forbid B-NP X-Y\n")
    error = refused(cli, "predict", chunker, files / "treebank" / "test.txt", "--constraints", rules)
    assert f"{rules}:1:13: " in error
    assert [path.name for path in tmp_path.iterdir()] == ["rules.txt"]


def command(*args, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "partwise", *map(str, args)], check=False, capture_output=True, text=True, **kwargs
    )


def test_full_disk(files, chunker, tmp_path):
    """A full disk (simulated by a limit on file sizes) is reported as an error."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    out = tmp_path / "m.pw"
    done = command("train", "tag", files / "treebank" / "train.txt", "-o", out, "-q", preexec_fn=limit)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"error: {out}: ")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_full_device(files, chunker):
    done = command("predict", chunker, files / "treebank" / "test.txt", "-o", "/dev/full")
    assert done.returncode == 2
    assert done.stderr.startswith("error: /dev/full: ")
    assert "space" in done.stderr
    assert os.path.exists("/dev/full")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(tmp_path, files, number):
    """Ctrl-C and other signals that end a process leave no partial file; Ctrl-C exits with status 130."""
    out = tmp_path / "m.pw"
    args = ["train", "tag", str(files / "treebank" / "train.txt"), "-o", str(out), "--tol", "0", "--solver", "eg"]
    args += ["--max-passes", "1000000", "--history-file", str(tmp_path / "h.csv")]
    running = subprocess.Popen(
        [sys.executable, "-m", "partwise", *args], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 30
        while not (tmp_path / "h.csv").exists():  # the file appears when training begins
            assert time.monotonic() < deadline
            assert running.poll() is None, running.stderr.read()
            time.sleep(0.02)
        time.sleep(0.2)
        running.send_signal(number)
        stdout, stderr = running.communicate(timeout=30)
    finally:
        running.kill()
    assert running.returncode == 128 + number, stderr
    assert "Traceback" not in stderr
    assert stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_closed_pipe(files, chunker):
    """If the reader of the output closes the pipe, the command ends without an error message."""
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "partwise",
            "predict",
            str(chunker),
            str(files / "treebank" / "train.txt"),
            "--marginals",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    running.stdout.read(10)
    running.stdout.close()
    stderr = running.stderr.read()
    running.wait(timeout=30)
    running.stderr.close()
    assert stderr == ""
    assert running.returncode == 128 + signal.SIGPIPE


def test_closed_streams(files, chunker):
    """A standard stream that was closed before the process began is named in the error."""
    for redirect, name, args in (
        ("<&-", "input", ("predict", chunker, "-")),
        ("<&-", "input", ("inspect", "-")),
        (">&-", "output", ("predict", chunker, files / "treebank" / "test.txt")),
    ):
        shell = ["sh", "-c", f'exec "$@" {redirect}', "sh", sys.executable, "-m", "partwise", *map(str, args)]
        done = subprocess.run(shell, check=False, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (2, f"error: standard {name}: is closed\n")


def test_two_inputs_from_one_stream(cli, chunker, tmp_path):
    for args in (("predict", chunker, "-", "--constraints", "-"), ("predict", "-", "-"), ("evaluate", "-", "-")):
        assert "standard input" in refused(cli, *args, stdin="a X\n")
    assert "standard input" in refused(cli, "train", "tag", "-", "--dev", "-", "-o", tmp_path / "m.pw")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_report_that_cannot_be_written(cli, files, tmp_path):
    """If the report cannot be written, the model is kept, and the error says so."""
    out = tmp_path / "m.pw"
    error = refused(cli, "train", "tag", files / "treebank" / "train.txt", "-o", out, "-q", "--report", "/dev/full")
    assert error.startswith("error: /dev/full: no space")
    assert error.endswith(f"(the model is in {out})")
    cli("inspect", out)
    error = refused(cli, "evaluate", out, files / "treebank" / "test.txt", "--report", "/dev/full")
    assert error.startswith("error: /dev/full: ")
    grid = ("--grid", "0.1,1", "--tol", "0.1")
    error = refused(cli, "path", "tag", files / "treebank" / "train.txt", "-o", out, *grid, "--report", "/dev/full")
    assert error.endswith(f"(the model is in {out})")


def test_one_class(cli, tmp_path):
    path = tmp_path / "one.svm"
    path.write_text("1 1:1\n1 2:1\n")
    assert "one class only (1)" in refused(cli, "train", "maxent", path, "-o", tmp_path / "m.pw")


def test_version_without_an_installation(cli, monkeypatch):
    import importlib.metadata

    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    # registers the attribute with monkeypatch, which restores it at the end
    monkeypatch.setitem(vars(partwise), "__version__", "")
    del partwise.__version__
    assert cli("--version").stdout.startswith("partwise, version ")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_a_full_disk_for_the_history_leaves_the_model(cli, files, tmp_path):
    """A full disk for the history gives a single warning, and training goes on to save the model."""
    out, history = tmp_path / "m.pw", tmp_path / "h.csv"
    history.symlink_to("/dev/full")
    args = ("train", "tag", files / "treebank" / "train.txt", "-o", out, "-q", "--history-file", history)
    warning = cli(*args).stderr
    assert warning == f"warning: {history}: the history cannot be written (no space left on device); the run goes on\n"
    assert partwise.load(out).result_.status == "converged"


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes")
def test_names_that_are_not_utf8(cli, files, tmp_path):
    """A byte of a file name that is not UTF-8 is shown as an escape."""
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/a\xff")
    with open(f"{odd}.txt", "wb") as out:
        out.write((files / "treebank" / "dev.txt").read_bytes())
    with open(f"{odd}.template", "w") as out:
        out.write("U0:%x[0,0]\nB\n")
    data, model, quick = f"{odd}.txt", f"{odd}.pw", ("--solver", "eg", "--tol", "0.1")
    for args in (
        ("train", "tag", data, "-o", model, "--report", f"{odd}.html", *quick),
        ("train", "tag", data, "-o", model, "--json", "--template", f"{odd}.template", *quick),
        ("inspect", model),
        ("inspect", model, "--json"),
        ("path", "tag", data, "-o", model, "--points", "2", "--C-max", "1", *quick),
    ):
        done = cli(*args)
        assert "a\\udcff.pw" in done.stdout
        if "--json" in args:
            assert json.loads(done.stdout)["model"] == model
    cli("evaluate", model, data)
    cli("predict", model, data, "-o", f"{odd}.out")
    with open(f"{odd}.names", "w") as out:
        out.write("x\n")
    error = refused(cli, "train", "tag", data, "-o", model, "--features", "ner", "--gazetteer", f"{odd}.names")
    assert "cannot be a gazetteer's name" in error


@pytest.mark.filterwarnings("ignore:.*labels are read from the last column")
@pytest.mark.parametrize(
    ("task", "line"), [("tag", "w{0} l{1}\n\n"), ("segment", "w{0} B-l{1}\n\n"), ("cfg", "(S (l{1} w{0}) (B b))\n")]
)
def test_many_labels_in_a_small_file_are_refused_at_once(cli, tmp_path, task, line):
    path, out = tmp_path / "data.txt", tmp_path / "model.pw"
    path.write_text("".join(line.format(k % 9, k) for k in range(2000)))
    failed = cli("train", task, path, "-o", out, status=2)
    assert "tokens, out of proportion: a model has tables of labels; --max-labels 200" in failed.stderr
    assert "--max-labels 200" in cli("train", task, path, "-o", out, "--max-labels", 1999, status=2).stderr


def test_classifiers_of_few_rows_and_many_labels(tmp_path, cli):
    path, out = tmp_path / "data.txt", tmp_path / "m.pw"
    for text, flags in (
        ("".join(f"l{k}\tw{k % 200}\n" for k in range(3000)), ("--format", "items")),
        ("".join(f"{k} {1 + k % 200}:1\n" for k in range(3000)), ()),
    ):
        path.write_text(text)
        failed = cli("train", "maxent", path, "-o", out, *flags, status=2)
        assert "3,000 labels and 3,000 tokens, out of proportion" in failed.stderr
        few = "".join(text.splitlines(keepends=True)[:50] * 3)
        path.write_text(few)
        cli("train", "maxent", path, "-o", out, *flags)
