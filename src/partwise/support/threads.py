"""Numbers of threads: the only place that turns `n_jobs` into the number that the core gets."""

import os


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def count_threads(n_jobs: int | None) -> int:
    """Return the threads for `n_jobs`: None is 1, -1 all processors, -2 all but one; at most one per processor."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0")
    if abs(n_jobs) >= 1 << 31:
        raise ValueError(f"n_jobs must be less than 2**31, got {n_jobs}")
    available = available_processors()
    return max(1, min(int(n_jobs), available) if n_jobs > 0 else available + 1 + int(n_jobs))
