"""Flags made from what declares them: an estimator's parameters with their docstring, a solver's dataclass fields."""

from __future__ import annotations

import difflib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from partwise.cli.errors import UserError

# scikit-learn's names of these say little on a command line.
RENAMED = {"n_jobs": "threads", "random_state": "seed"}
#: Parameters of every estimator that are flags of every task.
TRAINING = ("loss", "penalty", "l1_ratio", "solver", "tol", "max_seconds", "max_passes")


if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
    _Choice = click.Choice[str]
else:  # generic in newer versions of click only
    _ParamType = click.ParamType
    _Choice = click.Choice


class Name(_ParamType):
    """A name out of a few, with a suggestion for one that is not."""

    name = "name"

    def __init__(self, what: str, names: Callable[[], Sequence[str]]) -> None:
        self.what = what
        self.names = names

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        names = self.names()
        return f"[{'|'.join(names)}]" if len(names) < 8 else "NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name itself."""
        names = self.names()
        if value in names:
            return value
        close = difflib.get_close_matches(str(value), names, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
        return self.fail(f"unknown {self.what} {value!r}: {hint}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so."""
        return [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]


class File(_ParamType):
    """A file's name, which shells complete."""

    name = "file"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave it to the shell."""
        return [CompletionItem(incomplete, type="file")]


class OrNone(_ParamType):
    """A number, or "none"."""

    name = "number|none"

    def __init__(self, kind: type[Any]) -> None:
        self.kind = kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"{'INTEGER' if self.kind is int else self.kind.__name__.upper()}|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or None."""
        if isinstance(value, str) and value.lower() == "none":
            return None
        return click.types.convert_type(self.kind).convert(value, param, ctx)


class Strengths(_ParamType):
    """Numbers above 0, separated by commas, each once; the smallest first."""

    name = "numbers"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "C,C,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The numbers in order."""
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
    """One of a few whole numbers."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        return int(super().convert(str(value), param, ctx))


def loss_names() -> list[str]:
    """Names of losses."""
    from partwise.problem.losses import LOSSES

    return list(LOSSES)


def solver_names() -> list[str]:
    """Names of solvers, "auto" first."""
    from partwise import available_solvers

    return ["auto", *available_solvers()]


def parameter_docs(cls: type[Any]) -> dict[str, tuple[str, str]]:
    """(type, first sentence) of each parameter in a class's numpydoc docstring."""
    text = inspect.cleandoc(cls.__doc__ or "")
    found = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
    docs: dict[str, tuple[str, str]] = {}
    if found is None:
        return docs
    for block in re.split(r"\n(?=\S)", found[1]):
        head, _, body = block.partition("\n")
        names, _, kind = head.partition(" : ")
        sentence = re.split(r"(?<=\.)\s", " ".join(inspect.cleandoc(body).split()))[0].rstrip(".") + "."
        for name in names.split(", "):
            docs[name] = (kind, sentence.replace("`", ""))
    return docs


def estimator_options(cls: type[Any], names: Iterable[str]) -> list[click.Option]:
    """A flag for each of these parameters of an estimator: default, choices and help are the estimator's own."""
    from partwise.estimators import MaxentClassifier

    docs = {**parameter_docs(MaxentClassifier), **{k: v for k, v in parameter_docs(cls).items() if v[0]}}
    signature = inspect.signature(cls, eval_str=True).parameters
    return [_option(name, signature[name], docs[name]) for name in names]


def _option(name: str, parameter: inspect.Parameter, docs: tuple[str, str]) -> click.Option:
    kind, text = docs
    members = typing.get_args(parameter.annotation) or (parameter.annotation,)
    flag = "--" + RENAMED.get(name, name).replace("_", "-")
    default = parameter.default
    shown = default is not None and default != ""
    if name == "loss":
        kind_of: Any = Name("loss", loss_names)
        text = "What is minimised: log is a CRF (maximum entropy), hinge a max-margin model."
    elif name == "solver":
        kind_of = Name("solver", solver_names)
        text = "See `partwise solvers`; auto chooses."
    elif bool in members:
        return click.Option([f"{flag}/--no-{flag[2:]}", name], default=default, show_default=shown, help=text)
    elif kind.startswith("{"):
        choices = re.findall(r'"([^"]+)"|(\d+)', kind.partition("}")[0])
        kind_of = (NumberChoice if int in members else click.Choice)([text or number for text, number in choices])
        default = default if default is None else str(default)
    else:
        kind_of = next((member for member in (int, float, str) if member in members), str)
        if type(None) in members and default is not None:  # what is None cannot be said otherwise
            kind_of = OrNone(kind_of)
    return click.Option([flag, name], type=kind_of, default=default, show_default=shown, help=text)


def solver_options(solver: str, given: Sequence[str]) -> dict[str, Any]:
    """The values of ``--solver-option NAME=VALUE``, read as the solver's dataclass says.

    Raises
    ------
    UserError
        If the solver has no such option or the value is not of its type; the message says what there is.
    """
    if not given:
        return {}
    if solver == "auto":
        raise UserError("--solver-option needs a --solver: 'auto' may choose any")
    from partwise import get_solver
    from partwise.solvers.engine.registry import SOLVERS

    cls = SOLVERS[solver]
    hints = typing.get_type_hints(cls)
    known = {item.name.replace("_", "-"): item.name for item in fields(cls)}
    options: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        key = known.get(name.replace("_", "-"))
        if not equals or key is None:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close and equals else f"it has {', '.join(known) or 'none'}"
            what = f"has no option {name!r}" if equals else f"takes NAME=VALUE, not {text!r}"
            raise UserError(f"--solver-option: solver {solver!r} {what}: {hint}")
        options[key] = _value(f"--solver-option {name}", value, hints[key])
    try:
        get_solver(solver, **options)
    except (TypeError, ValueError) as error:
        raise UserError(f"--solver-option: {error}") from None
    return options


def _value(what: str, text: str, hint: Any) -> Any:
    """A text as one of the types of an annotation."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    members = typing.get_args(hint) if union else (hint,)
    if type(None) in members and text.lower() == "none":
        return None
    if bool in members and text.lower() in ("true", "false", "yes", "no"):
        return text.lower() in ("true", "yes")
    for kind in (int, float):
        if kind in members:
            try:
                return kind(text)
            except ValueError:
                continue
    words = [
        word for member in members if typing.get_origin(member) is typing.Literal for word in typing.get_args(member)
    ]
    if str in members or text in words:
        return text
    names = " or ".join(getattr(member, "__name__", str(member)) for member in members if member is not type(None))
    raise UserError(
        f"{what}: {text!r} is not {'one of ' + ', '.join(map(str, words)) if words else 'of type ' + names}"
    )
