"""Work that is done when it is first needed: properties computed once per object, names imported on first use."""

import functools
import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 - stands for Python's own
        """A property that is computed once per object, without a lock.

        Python 3.11 has one lock per class in `functools.cached_property`: runs in two threads wait for each other, and
        a process forked while another thread holds it waits for ever. Here two threads may compute it, but get one
        object.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))


def exports(
    package: str, homes: Mapping[str, Collection[str]], submodules: Collection[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of a package that imports its public names on first use.

    package: its `__name__`. homes: the public names, by the module of the package that defines them ("lbfgs",
    "dual.eg"). submodules: modules and packages inside it that are imported on first use as attributes.
    """
    home_of = {name: home for home, names in homes.items() for name in names}
    public = sorted(home_of)

    def get(name: str) -> object:
        if name not in home_of and name not in submodules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = importlib.import_module(f"{package}.{home_of.get(name, name)}")
        if name in home_of:
            value = getattr(value, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public, *submodules})

    return get, names, public
