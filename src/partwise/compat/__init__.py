"""The interfaces of other libraries, with this one behind them.

    import partwise.compat
    partwise.compat.install()   # before the program's own imports
    import sklearn_crfsuite     # is partwise.compat.sklearn_crfsuite now, pycrfsuite likewise

or ``from partwise.compat import sklearn_crfsuite``. What they train is in CRFsuite's model files, which CRFsuite reads.
"""

from __future__ import annotations

import importlib
import sys

#: The libraries that have a stand-in here.
NAMES = ("pycrfsuite", "sklearn_crfsuite")


def install() -> None:
    """Put the stand-ins where ``import pycrfsuite`` and ``import sklearn_crfsuite`` look first.

    RuntimeError if one of the originals has been imported: what holds it would go on with it.
    """
    for name in NAMES:
        module = importlib.import_module(f"{__name__}.{name}")
        if sys.modules.get(name, module) is not module:
            raise RuntimeError(f"{name} has been imported already: call partwise.compat.install() before that")
        sys.modules[name] = module
