"""The flags of commands: those that several commands share, and those made from estimators and solvers.

A parameter of an estimator gets its default, choices and help from the estimator's signature and docstring, an option
of a solver from its dataclass. The strength of the penalty is given either in scikit-learn's terms (--penalty,
--l1-ratio, --C) or by the strengths of the two penalties (--l1, --l2), not both.
"""

from __future__ import annotations

import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from partwise.cli.errors import UserError, suggest

if TYPE_CHECKING:
    from partwise.cli.tasks import Task

    _ParamType = click.ParamType[Any]
    _Choice = click.Choice[str]
else:  # generic in newer versions of click only
    _ParamType = click.ParamType
    _Choice = click.Choice

#: The values of a command's flags, by the names of their parameters.
Flags = Mapping[str, Any]
#: Parameters of an estimator by name.
Parameters = dict[str, Any]

# scikit-learn's names of these say little on a command line.
RENAMED = {"n_jobs": "threads", "random_state": "seed"}
#: Parameters of every estimator that are flags of every task.
TRAINING = ("loss", "penalty", "l1_ratio", "solver", "tol", "max_seconds", "max_passes")
#: More threads than any machine has.
MOST_THREADS = 1 << 16

#: Help of parameters whose first sentence in the estimator's docstring is about Python.
HELP = {
    "beam_width": "With --model maxent: keep this many histories in the search.",
    "binarise": "Join the children on this side first in binarisation.",
    "borders": "Give attributes weights of their own at these positions of segments.",
    "ends": "Give weights to the first and the last label of a sequence.",
    "hash_bits": "With --features hashed: use two to the power of this many weights.",
    "history": "With --model maxent: use this many tags before a position.",
    "inputs": "Read these columns of words, such as form,upos; by default form,lemma,upos,xpos,feats.",
    "l1_ratio": "With --penalty elasticnet: give l1 this share of the penalty.",
    "label_C": "Set the inverse of the penalty's strength for relations.",
    "loss": "Minimise this loss: log is a CRF (maximum entropy), hinge a max-margin model.",
    "max_passes": "Stop after this many passes (the best weights so far are kept).",
    "max_seconds": "Stop after this many seconds (the best weights so far are kept).",
    "memory_limit": "Keep features within this many bytes during training; others are recomputed in each pass.",
    "model": "Train a CRF, or a classifier of positions that sees the tags before them (maxent).",
    "non_projective": "With --structure projective: skip, lift or refuse gold trees with crossing arcs.",
    "order": "With --model crf: score a label with this many labels before it.",
    "penalize_intercept": "Penalise intercepts like other weights, as LIBLINEAR's -B 1 does.",
    "scheme": "Write predicted labels in this scheme.",
    "single_root": "Give the head 0 to exactly one word.",
    "solver": "Train by this solver (see `partwise solvers`); auto chooses one.",
    "structure": "Learn trees whose arcs do not cross (projective), or all trees (spanning).",
    "transitions": "Give weights to the pairs of neighbouring labels that occur, or to all; auto: as --states.",
}


class Name(_ParamType):
    """One of several names; the error for another name suggests the closest."""

    name = "name"

    def __init__(self, what: str, names: Callable[[], Sequence[str]]) -> None:
        self.what = what
        self.names = names

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        names = self.names()
        return f"[{'|'.join(names)}]" if len(names) < 8 else "NAME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        names = self.names()
        if value in names:
            return str(value)
        return self.fail(f"unknown {self.what} {value!r}: {suggest(str(value), names)}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]


class OrWord(_ParamType):
    """A number, or a word that stands for a value: "none" for None, "inf" for infinity."""

    def __init__(self, kind: type[Any], word: str = "none", value: float | None = None) -> None:
        self.kind, self.word, self.value = kind, word, value
        self.name = f"{'integer' if kind is int else kind.__name__}|{word}"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"{'INTEGER' if self.kind is int else self.kind.__name__.upper()}|{self.word}"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if str(value).lower() == self.word:
            return self.value
        return click.types.convert_type(self.kind).convert(value, param, ctx)


class Strengths(_ParamType):
    """Different numbers above 0, separated by commas; they are sorted."""

    name = "numbers"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        found: list[float] = []
        for text in str(value).split(","):
            try:
                number = float(text)
            except ValueError:
                self.fail(f"{text.strip()!r} is not a number; write numbers separated by commas", param, ctx)
            if not 0 < number < float("inf"):
                self.fail(f"{number:g} is not a number above 0", param, ctx)
            if number in found:
                self.fail(f"{number:g} is there twice", param, ctx)
            found.append(number)
        return sorted(found)


class NumberChoice(_Choice):
    """One of several whole numbers."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return int(super().convert(str(value), param, ctx))


def loss_names() -> list[str]:
    """Return the names of all losses."""
    from partwise.problem.losses import LOSSES

    return list(LOSSES)


def solver_names() -> list[str]:
    """Return the names of all solvers, "auto" first."""
    from partwise import available_solvers

    return ["auto", *available_solvers()]


#: A number of things, at least one.
COUNT = click.IntRange(1)
#: The name of a file, which shells complete; the file is looked at when it is read or written.
FILE = click.Path(readable=False)


def argument(name: str, **more: Any) -> click.Argument:
    """Return an argument that is a file."""
    return click.Argument([name], type=FILE, **more)


def flag(names: str, help: str, kind: Any = None, default: object = None, **more: Any) -> click.Option:
    """Return an option, such as "-o --output", "--json as_json" (a parameter's name) or "--folds=K" (the value's name).

    kind: a type (bool: a flag without a value), or a collection of choices; default: a value, which help shows
    """
    names, _, metavar = names.partition("=")
    if metavar or kind is FILE:
        more["metavar"] = metavar or "FILE"
    if default is not None:
        more |= {"default": default, "show_default": True}
    if kind is bool:
        return click.Option(names.split(), is_flag=True, help=help, **more)
    values = click.Choice(list(kind)) if isinstance(kind, Collection) else kind
    return click.Option(names.split(), type=values, help=help, **more)


def was_given(name: str) -> bool:
    """Return whether the current command's flag for this parameter was given."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def flag_name(parameter: str) -> str:
    """Return the flag of a parameter: --l1-ratio for l1_ratio."""
    return "--" + RENAMED.get(parameter, parameter).replace("_", "-")


def _check_threads(ctx: click.Context, param: click.Parameter, value: int) -> int:
    if not 0 < abs(value) <= MOST_THREADS:
        raise click.BadParameter(f"must be at most {MOST_THREADS}." if value else "must not be 0.", ctx, param)
    return value


def _set_unpack_limit(ctx: click.Context, param: click.Parameter, value: int | None) -> None:
    if value is not None:
        from partwise.io import unpack_limit

        ctx.with_resource(unpack_limit(value))


JSON = flag("--json as_json", "Write machine-readable output to standard output.", bool)
THREADS = flag("--threads", "Use this many threads; -1: all processors.", int, 1, callback=_check_threads)
UNPACK = flag(
    "--max-unpacked=BYTES",
    "Accept gzip files that unpack to this many bytes [default: 25 times their size, or 1.5 MiB].",
    click.IntRange(0),
    expose_value=False,
    callback=_set_unpack_limit,
)
LENGTH = flag(
    "--max-length=N", "Parsers: refuse longer sentences [default: as in training].", click.IntRange(1, 1 << 15)
)


def make_command(name: str, run: Callable[[Flags], None], *parameters: click.Parameter) -> click.Command:
    """Return a command that gives `run` the values of its flags; the docstring of `run` is its help."""
    return click.Command(name, params=list(parameters), callback=lambda **flags: run(flags), help=inspect.getdoc(run))


def parameter_docs(cls: type) -> dict[str, tuple[str, str]]:
    """Return (type, first sentence) of each parameter in a class's numpydoc docstring."""
    text = inspect.cleandoc(cls.__doc__ or "")
    found = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
    docs: dict[str, tuple[str, str]] = {}
    for block in re.split(r"\n(?=\S)", found[1]) if found else ():
        head, _, body = block.partition("\n")
        names, _, kind = head.partition(" : ")
        sentence = re.split(r"(?<=\.)\s", " ".join(inspect.cleandoc(body).split()))[0].rstrip(".") + "."
        docs |= dict.fromkeys(names.split(", "), (kind, sentence.replace("`", "")))
    return docs


def estimator_options(cls: type, names: Iterable[str]) -> list[click.Option]:
    """Return a flag for each of these parameters of an estimator."""
    from partwise.estimators import MaxentClassifier

    docs = {**parameter_docs(MaxentClassifier), **{k: v for k, v in parameter_docs(cls).items() if v[0]}}
    signature = inspect.signature(cls, eval_str=True).parameters
    return [_option(name, signature[name], docs[name]) for name in names]


def _option(name: str, parameter: inspect.Parameter, docs: tuple[str, str]) -> click.Option:
    kind, text = docs[0], HELP.get(name, docs[1])
    members = typing.get_args(parameter.annotation) or (parameter.annotation,)
    names, default = flag_name(name), parameter.default
    shown = default is not None and default != ""
    if name == "loss":
        kind_of: object = Name("loss", loss_names)
    elif name == "solver":
        kind_of = Name("solver", solver_names)
    elif bool in members:
        return click.Option([f"{names}/--no-{names[2:]}", name], default=default, show_default=shown, help=text)
    elif kind.startswith("{"):
        choices = re.findall(r'"([^"]+)"|(\d+)', kind.partition("}")[0])
        kind_of = (NumberChoice if int in members else click.Choice)([text or number for text, number in choices])
        default = default if default is None else str(default)
    else:
        kind_of = next((member for member in (int, float, str) if member in members), str)
        if type(None) in members and default is not None:  # there is no other way to give None
            kind_of = OrWord(typing.cast(type, kind_of))
    return click.Option([names, name], type=kind_of, default=default, show_default=shown, help=text)


def solver_options(solver: str, given: Sequence[str]) -> Parameters:
    """Return the values of ``--solver-option NAME=VALUE``, of the types that the solver's dataclass declares."""
    if not given:
        return {}
    if solver == "auto":
        raise UserError("--solver-option needs a --solver: 'auto' may choose any")
    from partwise import get_solver
    from partwise.solvers.engine.registry import SOLVERS

    cls = SOLVERS[solver]
    hints = typing.get_type_hints(cls)
    known = {item.name.replace("_", "-"): item.name for item in fields(cls)}
    options: Parameters = {}
    for text in given:
        name, equals, value = text.partition("=")
        key = known.get(name.replace("_", "-"))
        if not equals or key is None:
            hint = suggest(name if equals else "", known, "it has")
            what = f"has no option {name!r}" if equals else f"takes NAME=VALUE, not {text!r}"
            raise UserError(f"--solver-option: solver {solver!r} {what}: {hint}")
        options[key] = _value(f"--solver-option {name}", value, hints[key])
    try:
        get_solver(solver, **options)
    except (TypeError, ValueError) as error:
        raise UserError(f"--solver-option: {error}") from None
    return options


def _value(what: str, text: str, hint: object) -> object:
    """Return a text as a value of one of the types of an annotation."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    members: tuple[Any, ...] = typing.get_args(hint) if union else (hint,)
    if type(None) in members and text.lower() == "none":
        return None
    if bool in members and text.lower() in ("true", "false", "yes", "no"):
        return text.lower() in ("true", "yes")
    for kind in (int, float):
        with suppress(ValueError):
            if kind in members:
                return kind(text)
    words = [word for each in members if typing.get_origin(each) is typing.Literal for word in typing.get_args(each)]
    if str in members or text in words:
        return text
    names = " or ".join(getattr(member, "__name__", str(member)) for member in members if member is not type(None))
    expected = f"one of {', '.join(map(str, words))}" if words else f"of type {names}"
    raise UserError(f"{what}: {text!r} is not {expected}")


def training_flags(task: Task) -> list[click.Parameter]:
    """Return the flags of `train` and `path` that say what is trained, and how."""
    cost = flag("--cost", "Read from this file what wrong labels cost: lines `gold label cost`; others cost 1.", FILE)
    return [
        *task.flags(),
        *estimator_options(task.estimator, (*TRAINING, *task.parameters)),
        flag("--temperature", "Train with this temperature instead of the loss's own.", float),
        flag("--cost-scale", "Multiply the costs in the loss by this number.", float),
        *([cost] if task.label_costs else []),
        flag(
            "--solver-option given_options=NAME=VALUE",
            "Set an option of the solver; `partwise solvers NAME` lists them.",
            multiple=True,
        ),
        flag("--seed", "Seed the solvers that draw examples at random.", click.IntRange(0), 0),
    ]


def default_strength(task: Task) -> float:
    """Return the C of the task's estimator if no flag sets it."""
    return float(inspect.signature(task.estimator).parameters["C"].default)


def checked_settings(task: Task, flags: Flags) -> Parameters:
    """Return an estimator's parameters from flags, after all checks that need no data."""
    settings = estimator_settings(task, flags)
    settings |= penalty_settings(settings, default_strength(task), flags)
    task.estimator(**settings).check_parameters()
    return settings


def estimator_settings(task: Task, flags: Flags) -> Parameters:
    """Return an estimator's parameters from flags, except for C."""
    chosen = {name: flags[name] for name in (*TRAINING, *task.parameters)}
    chosen |= loss_settings(task, flags)
    chosen["solver_options"] = solver_options(flags["solver"], flags["given_options"]) or None
    chosen |= {name: flags[renamed] for name, renamed in RENAMED.items()}
    _check_l1(chosen, flags)
    return chosen


def loss_settings(task: Task, flags: Flags) -> Parameters:
    """Return the estimator's loss and cost."""
    from partwise.io import read_costs
    from partwise.problem.losses import get_loss

    found: Parameters = {"loss": flags["loss"]}
    changes = {name: flags[name] for name in ("temperature", "cost_scale") if flags[name] is not None}
    for name, value in changes.items():
        _check_number(flag_name(name), value, zero=True)
    if changes:
        found["loss"] = get_loss(flags["loss"], **changes)
    if task.label_costs:
        path = flags["cost"]
        found["cost"] = None if path is None else read_costs(path, task.cost_label)
    return found


def penalty_settings(settings: Parameters, default_C: float, flags: Flags) -> Parameters:
    """Return the estimator's C, penalty and l1_ratio, as far as --C, --l2 and --l1 set them."""
    C, l2, l1 = flags["C"], flags["l2"], flags["l1"]
    if C is not None and l2 is not None:
        raise UserError("--C and --l2 say the same (l2 = 1 / C): give one of them")
    if C is not None and l1 is not None:
        raise UserError("--C cannot be combined with --l1: --l2 is the strength of the other penalty (l2 = 1 / C)")
    if settings["penalty"] != "l2" and (l1 is not None or l2 is not None):
        raise UserError(f"--penalty {settings['penalty']} goes with --C; --l1 and --l2 go without --penalty")
    _check_number("--C", C)
    _check_number("--l1", l1, zero=True)
    _check_number("--l2", l2, zero=bool(l1))
    if l1:
        from partwise.estimators.parameters import penalty_parameters

        return penalty_parameters(l1, 1.0 / default_C if l2 is None else l2)
    if l2 is not None:
        return {"C": 1.0 / l2}
    return {} if C is None else {"C": C}


def _check_l1(settings: Parameters, flags: Flags) -> None:
    """Raise UserError for --l1-ratio without its penalty, and for an l1 term that the loss cannot have."""
    from partwise.problem.losses import LOSSES, get_loss

    penalty = settings["penalty"]
    if penalty != "elasticnet" and was_given("l1_ratio"):
        raise UserError("--l1-ratio goes with --penalty elasticnet")
    given = [flag_name(name) for name in ("l1", "l1_min") if flags.get(name)]
    term = f"--penalty {penalty}" if penalty != "l2" else next(iter(given), None)
    loss = get_loss(settings["loss"])
    if term is not None and not loss.takes_l1:
        fitting = ", ".join(name for name, each in LOSSES.items() if each.takes_l1)
        raise UserError(f"{term} is not available with --loss {loss.name}; losses that fit: {fitting}")


def _check_number(name: str, value: float | None, zero: bool = False) -> None:
    if value is not None and not (math.isfinite(value) and (value > 0 or (zero and value == 0))):
        raise UserError(f"{name} must be a number {'of at least 0' if zero else 'above 0'}, got {value:g}")
