"""What a structure can be asked for."""

from .._core import Structure
from ..capabilities import Capability, capabilities

_ORACLES = {
    "maximize": Capability.MAX_ORACLE,
    "maximize_many": Capability.MAX_ORACLE,
    "log_partition": Capability.EXPECTATION_ORACLE,
}


def structure_capabilities(structure: Structure) -> frozenset[Capability]:
    """The oracles a structure has, besides its optional capabilities.

    A structure written in Python has the oracles that it implements; the compiled ones have both.
    """
    found = {oracle for method, oracle in _ORACLES.items() if _implements(type(structure), method)}
    return capabilities(structure.capabilities()) | found


def _implements(cls: type, method: str) -> bool:
    compiled = any(base is not Structure and base.__module__ == Structure.__module__ for base in cls.__mro__)
    return compiled or getattr(cls, method) is not getattr(Structure, method)
