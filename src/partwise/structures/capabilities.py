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
    """Return the oracles that a structure has, and its optional capabilities.

    A structure written in Python has the oracles that it implements; the compiled ones have both.
    """
    own, base = type(structure), Structure
    compiled = is_compiled(structure)
    found = {
        oracle for method, oracle in _ORACLES.items() if compiled or getattr(own, method) is not getattr(base, method)
    }
    return capabilities(structure.capabilities()) | found


def is_compiled(structure: Structure) -> bool:
    """Return whether its oracles are compiled: their cost follows from sizes; oracles in Python may cost anything."""
    bases = type(structure).__mro__
    return any(base is not Structure and base.__module__ == Structure.__module__ for base in bases)
