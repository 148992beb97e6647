"""The interfaces of other libraries, with this one behind them.

    import partwise.compat
    partwise.compat.install()   # before the program's own imports
    import sklearn_crfsuite     # is partwise.compat.sklearn_crfsuite now, pycrfsuite likewise

or ``from partwise.compat import sklearn_crfsuite``. What they train is in CRFsuite's model files, which CRFsuite reads.
After `install`, pickles and joblib files of sklearn-crfsuite's estimators are read as the stand-in's.
"""

import importlib
import pkgutil
import sys
from types import ModuleType

#: The libraries that have a stand-in here.
NAMES = ("pycrfsuite", "sklearn_crfsuite")


def install() -> None:
    """Put the stand-ins where ``import pycrfsuite`` and ``import sklearn_crfsuite`` look first.

    RuntimeError if an original has been imported already: modules that imported it would keep using it.
    """
    modules: dict[str, ModuleType] = {}
    for name in NAMES:
        module = importlib.import_module(f"{__name__}.{name}")
        parts = [f"{name}.{found.name}" for found in pkgutil.iter_modules(module.__path__)]
        modules |= {name: module} | {part: importlib.import_module(f"{__name__}.{part}") for part in parts}
        if sys.modules.get(name, module) is not module:
            raise RuntimeError(f"{name} has been imported already: call partwise.compat.install() before that")
    sys.modules.update(modules)  # parts too: pickles name them, and a second copy would have classes of its own
