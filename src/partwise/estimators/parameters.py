"""Parameters that estimators share, with their documentation."""

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.problem.losses import Loss
from partwise.solvers import Progress, Solver

Callback = Callable[[Progress], object]
SolverChoice = str | Solver[Any]
ClassWeight = str | Mapping[Any, float] | None
Cost = NDArray[Any] | Mapping[Any, Any] | Callable[..., float] | None
Seed = int | np.random.RandomState | np.random.Generator | None


@dataclass(eq=False, repr=False)
class TrainingParameters:
    """The parameters of training.

    Parameters
    ----------
    loss : {"log", "softmax-margin", "hinge", "squared-hinge", "smoothed-hinge"} or Loss
        The hinge losses give no probabilities.
    C : float
        Inverse of the penalty's strength.
    penalty : {"l2", "l1", "elasticnet"}
        "l2": ``|w|^2 / (2 C)``; "l1": ``|w|_1 / C``, which makes weights zero; "elasticnet": `l1_ratio` times the
        penalty of "l1" plus 1 - `l1_ratio` times that of "l2". The last two are for losses with a temperature above 0.
    l1_ratio : float between 0 and 1
        Used by "elasticnet" only.
    solver : str or Solver
        A name of `partwise.available_solvers()`, or a solver; "auto" chooses.
    solver_options : dict, optional
        The named solver's own parameters.
    tol : float
        Stop at a duality gap of `tol` times the objective.
    max_seconds, max_passes : float, optional
        Stop after this many seconds or passes, with a `ConvergenceWarning`.
    n_jobs : int, optional
        Threads; None is 1, -1 all processors.
    random_state : int, RandomState, Generator or None
        Seed of solvers that draw examples, fixed by default: the same data give the same weights. None: a random one.
    verbose : int
        How much is logged.
    warm_start : bool
        Start `fit` from the weights of the last one (or of a model file), feature by feature, and from its dual point
        if the data begin with those of the last one and loss and labels are the same. With a hinge loss only the dual
        point is used, and only by the same solver (`sgd`, `perceptron` and `mira` start from weights).
    callbacks : callable or list of callables, optional
        Called with a `Progress` after each epoch, see `partwise.callbacks`; returning a true value stops training.
        (`RegularizationPathCV` calls none.)
    """

    loss: str | Loss = "log"
    C: float = 1.0
    _: KW_ONLY
    penalty: str = "l2"
    l1_ratio: float = 0.5
    solver: SolverChoice = "auto"
    solver_options: Mapping[str, object] | None = None
    tol: float = 1e-3
    max_seconds: float | None = None
    max_passes: float | None = None
    n_jobs: int | None = None
    random_state: Seed = 0
    verbose: int = 0
    warm_start: bool = False
    callbacks: Callback | Sequence[Callback] | None = None


#: Parameters that several estimators have besides those of training.
SHARED = """
    features : {"observed", "all"}
        Weights for the pairs of an attribute and a label that occur in the training data, or for all pairs.
    transitions : {"auto", "observed", "all"}
        Weights for the pairs of neighbouring labels that occur, or for all; "auto": as `features`. A pair without a
        weight has score 0; it is not forbidden.
    min_count : int
        Leave out features (with ``features="all"``: attributes) that occur less often in the training data.
    class_weight : None, "balanced" or a mapping of labels to numbers >= 0
        The weight of a sequence is multiplied by the mean of the weights of its labels; those that are not named have
        1. "balanced": the number of positions over the number of labels times how often the label occurs.
    cost : None, array, mapping or callable
        How bad it is to answer a label where another is right, for losses with costs; None: 1. An array of shape
        (n_labels, n_labels) in the order of `classes_`, a row per right label; a mapping of pairs (right label, label)
        to numbers, or of right labels to mappings of labels to numbers (other pairs cost 1; `partwise.io.read_costs`
        reads a file of them); or a function of the two. Costs are finite, not negative, and 0 for the right label. The
        costs of the positions of a sequence, or of the nodes of a graph, add up.
"""


def document(cls: type[object], always: bool = False) -> None:
    """Add shared parameters and the properties whose names end in _ to an estimator's docstring that lists parameters.

    always: also to a docstring that lists none.
    """
    head, title, rest = inspect.cleandoc(cls.__doc__ or "").partition("\n\nParameters\n----------\n")
    if not title and not always:
        return
    own, _, attributes = rest.partition("\n\nAttributes\n----------\n")
    training, shared = _entries(inspect.getdoc(TrainingParameters) or ""), _entries(SHARED)
    written, learnt = _entries(own), _entries(attributes)
    known = {name for names in (*written, *learnt) for name in names}
    first = [text for names, text in training.items() if names[0] in ("loss", "C") and not known.issuperset(names)]
    annotated = inspect.get_annotations(cls)
    last = [text for names, text in shared.items() if names[0] in annotated and not known.issuperset(names)]
    last += [text for names, text in training.items() if names[0] not in ("loss", "C", *known)]
    for name in dict.fromkeys(name for base in cls.__mro__ for name in vars(base)):
        value = getattr(cls, name, None)
        if isinstance(value, property) and name[0] != "_" and name[-1] == "_" and name not in known:
            learnt[(name,)] = f"{name}\n" + textwrap.indent(inspect.getdoc(value) or "", "    ")
    if "result_" not in known:
        learnt[("result_",)] = "result_ : Result\n    Objective, dual value, gap, history of the last `fit`."
    sections = {"Parameters": [*first, *written.values(), *last], "Attributes": learnt.values()}
    text = "".join(f"\n\n{name}\n----------\n" + "\n".join(entries) for name, entries in sections.items())
    cls.__doc__ = f"{head}{text}\n"


def _entries(text: str) -> dict[tuple[str, ...], str]:
    """Return the entries of a list of parameters in numpydoc's form, by their names."""
    lines = inspect.cleandoc(text.partition("----------\n")[2] or text)
    blocks = re.split(r"\n(?=\S)", lines)
    return {tuple(block.partition("\n")[0].partition(" : ")[0].split(", ")): block for block in blocks if block}


def penalty_parameters(l1: float, l2: float) -> dict[str, str | float]:
    """Return the `penalty`, `l1_ratio` and `C` of an estimator for l1 |w|_1 + l2 / 2 |w|^2."""
    if not l1:
        return {"penalty": "l2", "C": 1.0 / l2}
    return {"penalty": "elasticnet" if l2 else "l1", "l1_ratio": l1 / (l1 + l2), "C": 1.0 / (l1 + l2)}
