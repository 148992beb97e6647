"""Properties that are computed once per object, without a lock.

Python 3.11 has a lock around `functools.cached_property`, one for all objects of a class: runs in two threads wait for
each other, and a process that is forked while another thread holds it waits for ever.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 - stands for Python's own
        """Threads that ask at the same time may compute it twice; all of them get the same object."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))


__all__ = ["cached_property"]
