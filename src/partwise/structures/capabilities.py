"""What a structure can be asked for."""

from partwise._core import Structure
from partwise.problem.capabilities import Capability, capabilities

_ORACLES = {
    "maximize": Capability.MAX_ORACLE,
    "maximize_many": Capability.MAX_ORACLE,
    "log_partition": Capability.EXPECTATION_ORACLE,
    "log_partition_many": Capability.EXPECTATION_ORACLE,
}


def structure_capabilities(structure: Structure) -> frozenset[Capability]:
    """The oracles a structure has, besides its optional capabilities.

    A structure written in Python has the oracles that it implements; the compiled ones have both.
    """
    found = {oracle for method, oracle in _ORACLES.items() if _implements(structure, method)}
    return capabilities(structure.capabilities()) | found


def is_compiled(structure: Structure) -> bool:
    """Whether its oracles are compiled code, whose cost follows from its sizes; those in Python may cost anything."""
    bases = type(structure).__mro__
    return any(base is not Structure and base.__module__ == Structure.__module__ for base in bases)


def _implements(structure: Structure, method: str) -> bool:
    return is_compiled(structure) or getattr(type(structure), method) is not getattr(Structure, method)
