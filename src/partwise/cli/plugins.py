"""Python code of users, run before a command: it registers solvers, kinds of models or tasks."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from partwise.cli.errors import UserError


def load(name: str) -> None:
    """Import a file (``*.py``) or a module by its name; raise UserError, with the line, if it is missing or fails."""
    path = Path(name)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise UserError(f"--plugin {name}: there is no such file")
    try:
        if is_file:
            _load_file(path)
        else:
            importlib.import_module(name)
    except (Exception, SystemExit) as error:  # whatever the user's code does
        raise UserError(f"--plugin {name}: {_where(error, path)}{type(error).__name__}: {error}") from error


def _load_file(path: Path) -> ModuleType:
    # Under another name, since a file may be called like an existing module.
    module_name = f"partwise_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def _where(error: BaseException, path: Path) -> str:
    """Return the last line of the file in the error's traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    return f"line {lines[-1]}: " if lines else ""
