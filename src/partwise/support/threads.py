"""How many threads: the one place where `n_jobs` becomes a number. The core gets the number that is found here."""

import os


def available_processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def count_threads(n_jobs: int | None) -> int:
    """Threads meant by `n_jobs`: None is 1, -1 all processors, -2 all but one; never more than there are processors."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0")
    if abs(n_jobs) >= 1 << 31:
        raise ValueError(f"n_jobs must be less than 2**31, got {n_jobs}")
    available = available_processors()
    return max(1, min(int(n_jobs), available) if n_jobs > 0 else available + 1 + int(n_jobs))
