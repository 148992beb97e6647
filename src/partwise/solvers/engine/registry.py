"""Solvers by name, and which of them fit which problem."""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from partwise.problem import Problem
from partwise.problem.capabilities import Capability, listed
from partwise.solvers.engine.base import RATES, Solver

S = TypeVar("S", bound=type[Solver[Any]])

#: Registered solvers by name, in the order of lists.
SOLVERS: dict[str, type[Solver[Any]]] = {}
#: The places that they asked for.
PLACES: dict[str, int] = {}
#: What a loss of margins is, and slack rescaling is not.
OF_MARGINS = frozenset(
    {
        Capability.SMOOTH,
        Capability.SMOOTH_TERM,
        Capability.TEMPERATURE_0,
        Capability.IDENTITY_LINK,
        Capability.SQUARED_LINK,
        Capability.EXAMPLE_BLOCKS,
    }
)
#: Where a solver stands in lists that says nothing of it: at their end.
LAST = 100


def register(place: int = LAST) -> Callable[[S], S]:
    """Make a solver of this package known by its name: `@register()` above the class, in any module of it.

    place: solvers are listed by this number, each by its own; those without one come last, by name. `register_solver`
    says what is refused.
    """

    def add(cls: S) -> S:
        _check(cls)
        PLACES[cls.name] = place
        SOLVERS[cls.name] = cls
        for name in sorted(SOLVERS, key=lambda name: (PLACES[name], name)):
            SOLVERS[name] = SOLVERS.pop(name)
        return cls

    return add


def register_solver(cls: S) -> S:
    """Make a solver of your own known by its name to `solve`, estimators and the command line (`--plugin FILE`).

    ::

        @register_solver
        @dataclass(frozen=True)
        class GradientDescent(Solver[DescentState]):
            name: ClassVar[str] = "descent"
            ...

    "auto" does not choose it where another one fits. A class that is written again, as in a notebook's cell, replaces
    the one before.

    Raises
    ------
    ValueError
        If there is another solver of this name.
    TypeError
        If something that a solver has is missing or not what it should be; the message says what.
    """
    return register()(cls)


def _check(cls: Any) -> None:
    """TypeError or ValueError unless the class can be used by its name."""
    if not (isinstance(cls, type) and issubclass(cls, Solver)):
        raise TypeError(f"only subclasses of partwise.Solver can be registered, got {cls!r}")
    missing = [word for word in ("name", "requires", "rate", "advice", "default_max_passes") if not hasattr(cls, word)]
    missing += sorted(cls.__abstractmethods__)
    if missing:
        raise TypeError(f"solver {cls.__name__} has no {', '.join(missing)}")
    name = cls.name
    other = SOLVERS.get(name)
    if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"solver {name!r} is registered already: {other.__module__}.{other.__qualname__}")
    if not (isinstance(name, str) and re.fullmatch(r"[a-zA-Z][\w-]*", name)):
        raise TypeError(f"solver {cls.__name__}: its name must be letters, digits and hyphens, got {name!r}")
    if name == "auto":
        raise ValueError("solver 'auto': this name is that of the choice among all solvers")
    decorated = vars(cls).get("__dataclass_params__")
    if decorated is None or not decorated.frozen:
        raise TypeError(f"solver {name!r}: @dataclass(frozen=True) is missing, between the decorator and the class")
    if not isinstance(cls.requires, frozenset) or not all(isinstance(need, Capability) for need in cls.requires):
        raise TypeError(f"solver {name!r}: requires must be a frozenset of members of Capability, got {cls.requires!r}")
    for rate in (cls.rate, cls.rate_at_zero):
        if rate not in RATES:
            raise TypeError(f"solver {name!r}: a rate must be one of {', '.join(RATES)}, got {rate!r}")
    if not isinstance(cls.advice, str):
        raise TypeError(f"solver {name!r}: advice must be a text, got {cls.advice!r}")
    if not isinstance(cls.default_max_passes, (int, float)) or not cls.default_max_passes > 0:
        raise TypeError(f"solver {name!r}: default_max_passes must be a number above 0, got {cls.default_max_passes!r}")
    for item in fields(cls):
        if item.default is MISSING or not item.metadata.get("help"):
            raise TypeError(f"solver {name!r}: write its option {item.name} as `option(default, help)`")


def available_solvers() -> list[str]:
    """Names of all solvers."""
    return list(SOLVERS)


def has_certificates(name: str) -> bool:
    """Whether runs of the solver of this name end with a dual value; a name that is not known here has them."""
    return name not in SOLVERS or SOLVERS[name].certified


#: The largest whole number that an option may be.
MOST = 1 << 40


def get_solver(name: str, **options: Any) -> Solver[Any]:
    """The solver of this name with these hyper-parameters.

    Raises
    ------
    ValueError
        If there is no such solver, or a number is larger than any that makes sense.
    TypeError
        If it has no such hyper-parameter; the message lists those it has.
    """
    if name not in SOLVERS:
        close = difflib.get_close_matches(str(name), SOLVERS, 1)
        hint = f"did you mean {close[0]!r}? There" if close else "there"
        raise ValueError(f"unknown solver {name!r}; {hint} are {', '.join(SOLVERS)} (and 'auto')")
    known = [item.name for item in fields(SOLVERS[name])]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(f"solver {name!r} has no option {', '.join(unknown)}; it has {', '.join(known)}")
    _check_sizes(name, options)
    return SOLVERS[name](**options)


def _check_sizes(name: str, options: Mapping[str, Any]) -> None:
    """ValueError for whole numbers that the core, which counts in 64 bits, might not hold."""
    for option, value in options.items():
        if isinstance(value, int) and abs(value) > MOST:
            raise ValueError(f"solver {name!r}: {option} must be between -2**40 and 2**40")


def suitable_solvers(problem: Problem) -> list[str]:
    """Names of the solvers whose needs the problem meets."""
    have = problem.capabilities()
    return [name for name, cls in SOLVERS.items() if cls.requires <= have]


def check_fits(solver: Solver[Any], problem: Problem) -> None:
    """ValueError if the problem lacks what the solver needs; the message says which solvers fit."""
    _check_sizes(solver.name, solver.options())
    if problem.shift is not None and solver.in_blocks() is None:
        raise ValueError(f"solver {solver.name!r} does not take problems with a shift")
    missing = solver.missing(problem)
    if missing:
        fitting = suitable_solvers(problem)
        reasons = [reason for name in sorted(missing) if (reason := problem.sums.lacks(name))]
        details = "; ".join([describe(problem), *reasons])
        needs = f"needs {listed(missing)}, which this problem does not have"
        if Capability.SLACK_RESCALING in problem.capabilities() and missing & OF_MARGINS:
            needs = "does not do slack rescaling"
        raise ValueError(
            f"solver {solver.name!r} {needs} ({details}); "
            + (f"solvers that fit: {', '.join(fitting)}" if fitting else no_solver(problem))
        )


def no_solver(problem: Problem) -> str:
    """Why no solver fits."""
    have = problem.capabilities()
    lacks = "; ".join(f"{name} lacks {listed(cls.requires - have)}" for name, cls in SOLVERS.items())
    return f"no solver fits this problem yet ({lacks})"


def describe(problem: Problem) -> str:
    """A problem in a few words."""
    l1 = f"l1 = {problem.l1:g}, " if problem.l1 else ""
    return f"loss {problem.loss.name!r}, {l1}l2 = {problem.l2:g}, {problem.sums.facts.structure}"
