"""Programs that run in a separate Python process."""

import subprocess
import sys
import textwrap


def run_python(code: str, seconds: float = 60.0) -> str:
    """Run a Python program in a new process and return its output; failures and timeouts are errors."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
