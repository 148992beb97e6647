"""Docstrings and signatures of the compiled core, for the reference: its members have none, the stubs beside it do."""

from __future__ import annotations

import ast
import copy
import pydoc
import re
from pathlib import Path
from typing import Any, NamedTuple

_STUBS = Path(__file__).parents[1] / "src" / "partwise" / "_core"
_CORE = "partwise._core"
#: An attribute with a description behind it, and the property that it stands for.
_ATTRIBUTE = re.compile(r"^    (\w+): .*  #: (.*)$", re.MULTILINE)
_PROPERTY = r'''    @property
    def \1(self):
        """\2"""'''


class Documented(NamedTuple):
    """A class, method or property of a stub; the signature of a property is None."""

    signature: str | None
    docstring: str


def read_stubs() -> dict[str, Documented]:
    """Everything in the stubs, by "Class" and "Class.member"; members of private bases are those of the class."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(_STUBS.glob("*.pyi")))
    bodies = [ast.parse(_ATTRIBUTE.sub(_PROPERTY, text)).body for text in texts]
    classes = {node.name: node for body in bodies for node in body if isinstance(node, ast.ClassDef)}
    found = {}
    for cls in classes.values():
        members = _members(cls, classes)
        start = members.pop("__init__", None)
        found[cls.name] = Documented(_signature(start) if start else None, ast.get_docstring(cls) or "")
        for name, node in members.items():
            found[f"{cls.name}.{name}"] = Documented(_signature(node), ast.get_docstring(node) or "")
    return found


def _members(cls: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> dict[str, ast.FunctionDef]:
    shared = [classes[base.id] for base in cls.bases if isinstance(base, ast.Name) and base.id.startswith("_")]
    found = {name: node for base in shared for name, node in _members(base, classes).items()}
    return found | {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}


def _signature(node: ast.FunctionDef) -> str | None:
    if node.decorator_list:
        return None
    arguments = copy.deepcopy(node.args)
    for argument in (*arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    arguments.args = arguments.args[1:]
    return f"({ast.unparse(arguments)})"


_DOCUMENTED = read_stubs()


def _documented(name: str) -> Documented | None:
    """What the stubs say of a name of the reference, if it is one of the core's classes or one of their members."""
    owner, _, last = name.rpartition(".")
    is_class = last in _DOCUMENTED
    short = name if is_class else owner
    if short.rpartition(".")[2] not in _DOCUMENTED:
        return None
    cls: Any = pydoc.locate(short)
    if getattr(cls, "__module__", None) != _CORE:
        return None
    return _DOCUMENTED.get(cls.__name__ if is_class else f"{cls.__name__}.{last}")


def fill_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Handle Sphinx's event `autodoc-process-docstring`."""
    found = _documented(name)
    if found is not None:
        lines[:] = [*found.docstring.splitlines(), ""]


def fill_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, None] | None:
    """Handle Sphinx's event `autodoc-process-signature`, which can replace a signature, but not add one."""
    found = _documented(name)
    return None if found is None or signature is None else (found.signature, None)


def class_signature(name: str) -> str:
    """Return how a class of the core is made, for its directive; "" for anything else."""
    found = _documented(name) if name.rpartition(".")[2] in _DOCUMENTED else None
    return "" if found is None else found.signature or ""
