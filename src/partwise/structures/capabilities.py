"""What a structure can be asked for."""

from .._core import Structure


def structure_capabilities(structure: Structure) -> frozenset[str]:
    """The oracles a structure has, besides its optional capabilities.

    A structure written in Python has the oracles that it implements; the compiled ones have both.
    """
    names = {"maximize": "max oracle", "log_partition": "expectation oracle"}
    found = {label for method, label in names.items() if _implements(type(structure), method)}
    return frozenset(found | set(structure.capabilities()))


def _implements(cls: type, method: str) -> bool:
    for base in cls.__mro__:
        if base is Structure:
            return False
        if base.__module__ == Structure.__module__ or method in vars(base):
            return True
    return False
