"""One page per name of the reference: api.md lists the names with their `auto` directives, the rest is made of it.

While the site is built, each directive of api.md becomes a page of its own in generated/, and api.md a table of them.
"""

from __future__ import annotations

import re
from pathlib import Path

from stub_docstrings import class_signature

_BLOCK = re.compile(r"^```\{eval-rst\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"^\.\. (currentmodule|auto(?!module|summary)\w+):: ([\w.]+)\n((?:   .*\n)*)", re.MULTILINE)
_FOLDER = "generated"


def pages(text: str) -> dict[str, str]:
    """The pages of api.md's names, by file name."""
    found = {}
    for block in _BLOCK.findall(text):
        module = ""
        for directive, name, options in _NAME.findall(block):
            if directive == "currentmodule":
                module = name
                continue
            full = _full(module, name)
            home, _, short = full.rpartition(".")
            title = f"{short}\n{'=' * len(short)}\n\n.. currentmodule:: {home}\n\n"
            found[f"{full}.rst"] = f"{title}.. {directive}:: {short}{class_signature(full)}\n{options}"
    return found


def table(text: str) -> str:
    """api.md with a table in place of each block's directives."""

    def shorter(block: re.Match[str]) -> str:
        module, names = "", []
        for directive, name, _ in _NAME.findall(block[1]):
            if directive == "currentmodule":
                module = name
            else:
                names.append(_full(module, name))
        rest = _NAME.sub("", block[1]).strip()
        rows = "".join(f"   ~{name}\n" for name in names)
        toctree = "".join(f"   {_FOLDER}/{name}\n" for name in names)
        # An automodule before it has set the module, to which names would be relative.
        summary = f".. currentmodule:: None\n\n.. autosummary::\n   :nosignatures:\n\n{rows}"
        shown = f"{summary}\n.. toctree::\n   :hidden:\n\n{toctree}"
        return f"```{{eval-rst}}\n{rest}\n\n{shown}```"

    return _BLOCK.sub(shorter, text)


def _full(module: str, name: str) -> str:
    return name if name.startswith("partwise.") else f"{module}.{name}"


def write(app) -> None:
    """Write the pages; those that are as they were stay, so that they are not read again."""
    folder = Path(app.srcdir) / _FOLDER
    folder.mkdir(exist_ok=True)
    wanted = pages((Path(app.srcdir) / "api.md").read_text(encoding="utf-8"))
    for old in folder.glob("*.rst"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def replace(app, docname: str, source: list[str]) -> None:
    """The table, when api.md is read."""
    if docname == "api":
        source[0] = table(source[0])
