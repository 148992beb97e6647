"""Work that is done when it is first needed: properties computed once per object, names imported on first use."""

import functools
import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 - stands for Python's own
        """A property that is computed once per object, without a lock.

        Python 3.11 has one lock per class in `functools.cached_property`: runs in two threads wait for each other, and
        a process that is forked while another thread holds the lock waits for ever. Here two threads may both compute
        the value, but get the same object.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))


def exports(package: str, *own: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package that imports its public names on first use.

    The names are those that the package imports under `if TYPE_CHECKING`, where type checkers and editors find them;
    at run time they are read from the bytecode of the module that calls this function. `__getattr__` gives `__all__`
    too: these names without modules of the package, and `own`, names that the package defines itself.
    """
    here, code = vars(sys.modules[package]), sys._getframe(1).f_code

    @functools.cache
    def homes() -> dict[str, str]:
        import dis  # which takes a tenth of the time of `import partwise`

        found, module = dict[str, str](), ""
        for instruction in dis.get_instructions(code):
            if instruction.opname == "IMPORT_NAME":
                module = instruction.argval
            elif instruction.opname == "IMPORT_FROM" and instruction.argval not in here:  # not imported already
                found[instruction.argval] = module
        return found

    def get(name: str) -> object:
        if name == "__all__":
            here[name] = sorted([*own, *(each for each, home in homes().items() if home != package)])
        elif name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        elif (home := homes()[name]) == package:
            here[name] = importlib.import_module(f"{package}.{name}")
        else:
            here[name] = getattr(importlib.import_module(home), name)
        return here[name]

    return get, lambda: sorted({*here, *homes()})
