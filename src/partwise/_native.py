"""Which build of the compiled core to load.

A source build has one module, ``_core``, and nothing here runs. A wheel for x86-64 holds the same sources compiled
three times (``_core_v2``, ``_core_v3``, ``_core_v4``) and a two-line ``_core.py`` that calls `load_best`: any code that
imports ``partwise._core`` first gets the best of them under that name, so the rest of the library never knows.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

#: Forces a lower level than the processor has, for measuring and for reproducing another machine's results.
LEVEL_VARIABLE = "PARTWISE_CPU_LEVEL"


def builds(folder: Path) -> dict[int, Path]:
    """Files of the builds in this folder that this interpreter can load, by x86-64 level."""
    return {
        level: path
        for level in (2, 3, 4)
        for suffix in reversed(importlib.machinery.EXTENSION_SUFFIXES)
        if (path := folder / f"_core_v{level}{suffix}").is_file()
    }


def choose(available: Mapping[int, Path], machine: int, forced: str | None = None) -> int:
    """The highest level that is available and that the machine runs.

    Raises
    ------
    ImportError
        If there is none, or if the forced level is not a level that can run here.
    """
    limit = machine
    if forced:
        if forced not in {str(level) for level in available} or int(forced) > machine:
            raise ImportError(
                f"{LEVEL_VARIABLE}={forced}: this processor is x86-64-v{machine} and this installation has builds for "
                f"levels {sorted(available)}"
            )
        limit = int(forced)
    runnable = [level for level in available if level <= limit]
    if not runnable:
        raise ImportError(
            f"this processor is x86-64-v{machine}, older than the builds in this installation "
            f"(levels {sorted(available)}); install from source: pip install --no-binary partwise partwise"
        )
    return max(runnable)


def load_best(name: str) -> None:
    """Load the best build for this processor as module `name`, in the place of the module being imported."""
    machine: int = importlib.import_module("partwise._cpu").level()
    available = builds(Path(__file__).parent)
    path = available[choose(available, machine, os.environ.get(LEVEL_VARIABLE))]
    # The loader derives the init function from `name`, not from the file: every build calls itself _core.
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise ImportError(f"cannot load {path.name}", name=name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
