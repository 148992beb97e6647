"""Where builds of the core with sanitizers are, and the environment that a process needs to use one.

``python tests/sanitizers.py asan COMMAND ...`` runs a command with it. `make sanitize` and `make faults` build them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: core -> (folder of the build, the sanitizer's library, options by variable)
CORES: dict[str, tuple[str, str, dict[str, str]]] = {
    "asan": (
        "sanitize",
        "libasan.so",
        # The interpreter's own leaks are not ours to report.
        {
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        },
    ),
    "tsan": ("tsan", "libtsan.so", {"TSAN_OPTIONS": "halt_on_error=0:exitcode=0:second_deadlock_stack=1"}),
}


def site(core: str) -> Path:
    """The folder that the package was installed to with this sanitizer."""
    return ROOT / "build" / CORES[core][0] / "site"


def environment(core: str, logs: Path | None = None) -> dict[str, str]:
    """This process's environment for a process with such a core ("": the usual one), its reports in files at `logs`.

    The interpreter is not instrumented: the sanitizer's library must be loaded first, and libstdc++ with it, so that
    exceptions thrown in the core are seen.
    """
    if not core:
        return dict(os.environ)
    _, library, options = CORES[core]
    if logs is not None:
        options = {name: f"{value}:log_path={logs}" for name, value in options.items()}
    paths = [str(site(core)), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {
        "LD_PRELOAD": " ".join(library_path(name) for name in (library, "libstdc++.so")),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join(paths),
        **options,
    }


def library_path(library: str) -> str:
    """Where the compiler has it; the name alone if it has not, or if there is no compiler that says so."""
    command = [*shlex.split(os.environ.get("CXX", "c++")), f"-print-file-name={library}"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() or library
    except (OSError, subprocess.CalledProcessError):
        return library


if __name__ == "__main__":
    os.execvpe(sys.argv[2], sys.argv[2:], environment(sys.argv[1]))
