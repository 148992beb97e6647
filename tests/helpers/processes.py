"""Programs that run in a Python process of their own."""

import subprocess
import sys
import textwrap


def run_python(code: str, seconds: float = 60.0) -> str:
    """Return what a Python program prints; a program that fails or takes longer is an error."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
