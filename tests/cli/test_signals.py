"""A signal that ends a command leaves no partial file."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_partition_that_is_being_written(tmp_path, number):
    data, folder = tmp_path / "train.txt", tmp_path / "parts"
    sentence = "\n".join(f"w{k} {'AB'[k % 2]}" for k in range(50)) + "\n\n"
    data.write_text(sentence * 4000)
    command = [sys.executable, "-m", "partwise", "partition", "tag", str(data), "-o", str(folder)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 30
        while not any(each.name.endswith(".tmp") for each in tmp_path.iterdir()):
            assert time.monotonic() < deadline
            assert running.poll() is None, running.stderr.read()
            time.sleep(0.01)
        running.send_signal(number)
        stderr = running.communicate(timeout=30)[1]
    finally:
        running.kill()
    assert (running.returncode, stderr) == (128 + number, f"ended by {signal.Signals(number).name}\n")
    assert list(tmp_path.iterdir()) == [data]


def test_an_ignored_signal_stays_ignored(tmp_path):
    """A signal that was ignored when the command started (as under nohup) stays ignored."""
    program = (
        "import signal, os; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from partwise.cli.errors import run_safely\n"
        "run_safely(lambda: os.kill(os.getpid(), signal.SIGHUP))"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_second_signal_during_clean_up(tmp_path):
    """Temporary files are removed although a second signal, as supervisors often send, arrives during the clean-up."""
    program = (
        "import os, signal, sys\n"
        "from partwise.cli.errors import run_safely\n"
        "from partwise.io import atomic_write, files\n"
        "remove = files._remove\n"
        "files._remove = lambda path: (os.kill(os.getpid(), signal.SIGHUP), remove(path))\n"
        "def run():\n"
        "    with atomic_write(sys.argv[1]) as file:\n"
        "        file.write(b'half')\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "run_safely(run)"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "out"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "ended by SIGTERM\n")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_in_a_finalizer():
    """A signal during a finalizer, where Python ignores exceptions, ends the command without a traceback."""
    program = (
        "import os, signal, time\n"
        "from partwise.cli.errors import run_safely\n"
        "class Loud:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(0.1)\n"
        "def run():\n"
        "    Loud()\n"
        "    time.sleep(20)\n"
        "run_safely(run)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=15)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "ended by SIGTERM\n")
