"""Folders of core builds with sanitizers, and the environment variables to use one.

``python tests/sanitizers.py asan COMMAND ...`` runs a command with it. `make sanitize` and `make faults` build them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Folder of the build, sanitizer's library, and options by environment variable, by name of the build.
CORES: dict[str, tuple[str, str, dict[str, str]]] = {
    "asan": (
        "sanitize",
        "libasan.so",
        # leaks of the interpreter itself are not our concern
        {
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        },
    ),
    "tsan": ("tsan", "libtsan.so", {"TSAN_OPTIONS": "halt_on_error=0:exitcode=0:second_deadlock_stack=1"}),
}


def site(core: str) -> Path:
    """Return the folder into which the package with this sanitizer was installed."""
    return ROOT / "build" / CORES[core][0] / "site"


def environment(core: str, logs: Path | None = None) -> dict[str, str]:
    """Return the environment for a process with such a core ("": the usual core). Its reports go to files at `logs`.

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
    """Return the path that the compiler has for a library, or its bare name if it has none."""
    command = [*shlex.split(os.environ.get("CXX", "c++")), f"-print-file-name={library}"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() or library
    except (OSError, subprocess.CalledProcessError):
        return library


if __name__ == "__main__":
    os.execvpe(sys.argv[2], sys.argv[2:], environment(sys.argv[1]))
