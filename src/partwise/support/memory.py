"""The memory that is free, and checks that refuse work that would take more before any of it is taken."""

import re
from collections.abc import Iterator
from pathlib import Path

#: Vectors of weights that training holds at least: weights, a gradient, and two more of the solver.
VECTORS = 4
#: Fewer bytes than this are allowed without a check.
LITTLE = 100_000_000


class TooLarge(MemoryError):
    """The error that work would take more memory than is free."""


def size_text(n: float) -> str:
    """Return a number of bytes as text, in MB or GB."""
    return f"{n / 1e9:.2f} GB" if n >= 1e9 else f"{n / 1e6:.0f} MB"


def check_room(n_bytes: float, what: str) -> None:
    """Raise TooLarge, naming `what` and both numbers, for more bytes than there are."""
    if n_bytes >= LITTLE and n_bytes > (free := available()):
        raise TooLarge(f"{what} would take about {size_text(n_bytes)} of memory, {size_text(free)} are free")


def check_weights(n_weights: int, what: str) -> None:
    """Raise TooLarge if training so many weights takes more memory than is free."""
    check_room(8.0 * VECTORS * n_weights, f"training {n_weights:,} weights ({what})")


def available() -> float:
    """Return the bytes that the machine, its control group and the process's limits still allow; inf if unknown."""
    return min(_limits(), default=float("inf"))


def _limits() -> Iterator[float]:
    machine = _text("/proc/meminfo")
    found = {name: 1024.0 * int(n) for name, n in re.findall(r"^(MemAvailable|SwapFree):\s*(\d+) kB", machine, re.M)}
    if "MemAvailable" in found:
        yield sum(found.values())
    most, used = _text("/sys/fs/cgroup/memory.max").strip(), _text("/sys/fs/cgroup/memory.current").strip()
    if most.isdigit() and used.isdigit():
        cached = re.findall(r"^(?:in)?active_file (\d+)$", _text("/sys/fs/cgroup/memory.stat"), re.M)
        yield max(float(most) - float(used) + sum(map(float, cached)), 0.0)  # files that were read can be dropped
    try:
        import resource
    except ImportError:  # there are no such limits here
        return
    most_addresses = resource.getrlimit(resource.RLIMIT_AS)[0]
    size = re.search(r"^VmSize:\s*(\d+) kB", _text("/proc/self/status"), re.M)
    if most_addresses != resource.RLIM_INFINITY and size:
        yield max(float(most_addresses) - 1024.0 * int(size[1]), 0.0)


def _text(name: str) -> str:
    try:
        return Path(name).read_text()
    except (OSError, UnicodeDecodeError):
        return ""
