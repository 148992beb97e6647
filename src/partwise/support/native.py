"""Which build of the compiled core to load.

A source build has one module, ``_core``, compiled for the machine that built it: `check_processor` refuses others
before an instruction that they lack ends the process. A wheel for x86-64 holds the same sources compiled
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
    """Return the forced level, or the highest that is available and runs here; ImportError if there is none."""
    runnable = [level for level in available if level <= machine]
    if forced:
        if forced not in map(str, runnable):
            raise ImportError(
                f"{LEVEL_VARIABLE}={forced}: this processor is x86-64-v{machine} and this installation has builds for "
                f"levels {sorted(available)}"
            )
        return int(forced)
    if not runnable:
        raise ImportError(
            f"this processor is x86-64-v{machine}, older than the builds in this installation "
            f"(levels {sorted(available)}); install from source: pip install --no-binary partwise partwise"
        )
    return max(runnable)


def check_processor(probe: str = "partwise._cpu") -> None:
    """Raise ImportError if this processor lacks anything that the core was compiled with.

    probe: the module that knows; portable builds and those in place (CONTRIBUTING.md) have none.
    """
    try:
        missing = importlib.import_module(probe).missing()
    except ModuleNotFoundError:
        return
    if missing:
        raise ImportError(
            "this installation of partwise was compiled for another processor; this one lacks "
            f"{', '.join(missing)}. Install it again on this machine (pip install --force-reinstall --no-cache-dir "
            "--no-binary partwise partwise), or build it with PARTWISE_WHEEL=ON in the environment: such a build runs "
            "on any x86-64 processor since 2009, at its speed"
        )


def load_best(name: str) -> None:
    """Load the best build for this processor as module `name`, in the place of the module being imported."""
    machine: int = importlib.import_module("partwise._cpu").level()
    available = builds(Path(__file__).parent.parent)
    path = available[choose(available, machine, os.environ.get(LEVEL_VARIABLE))]
    # The loader derives the init function from `name`, not from the file: every build calls itself _core.
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise ImportError(f"cannot load {path.name}", name=name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
