"""Names of code, programs and files that a damaged file may contain, and a watch that notices if one is used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MARK = "faulty_module"
#: Strings to put in a file where a name, a type or a function is expected.
NAMES: list[Any] = [
    MARK,
    f"{MARK}.call",
    f"../{MARK}",
    f"/tmp/{MARK}",
    f"__import__('{MARK}').call()",
    {"generator": {"bit_generator": f"{MARK}.call"}},
    {"__class__": f"{MARK}.call", "__reduce__": [f"{MARK}.call", []]},
]

_seen: list[str] = []
_watching = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    """Record every import, exec, compile, open, program, pickle or library that is asked for by one of these names."""
    if _watching and not event.startswith(("sys.", "object.")):
        text = f"{event} {arguments!r:.500}"
        if MARK in text:
            _seen.append(text)


@contextmanager
def watched() -> Iterator[list[str]]:
    """Yield the list of uses of these names by the interpreter while the context lasts."""
    global _watching
    if _hook not in _hooks:
        sys.addaudithook(_hook)
        _hooks.append(_hook)
    _seen.clear()
    _watching = True
    try:
        yield _seen
    finally:
        _watching = False


_hooks: list[Any] = []
