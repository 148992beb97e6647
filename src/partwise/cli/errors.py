"""How the command line fails: one line on standard error, exit status 2 (130 after Ctrl-C), no traceback.

SIGTERM and SIGHUP end a command as Ctrl-C does, which removes the file being written; the status is 128 plus the
signal's number. The status is 141, without a message, if the reader of standard output goes away.

A user's errors are files that are missing, not readable, not writable or not in their format (OSError, FormatError,
ModelFormatError), values that an option, an estimator or a solver refuses (ValueError), a run that diverges
(ArithmeticError), and not enough memory. Any other error is a defect and shows its traceback, as do all errors if the
environment variable ``PARTWISE_TRACEBACK`` is set.
"""

from __future__ import annotations

import difflib
import errno
import io
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

import click

from partwise.support.memory import TooLarge

#: Seconds after a signal in which further signals are ignored.
AGAIN = 3.0
USER_ERROR, INTERRUPTED = 2, 130
#: The reader of the output has gone (`| head`): 128 plus the number of SIGPIPE, as in a shell.
CLOSED_PIPE = 141


class UserError(click.ClickException):
    """Something that the user can fix."""

    exit_code = USER_ERROR


def suggest(name: str, names: Iterable[str], heading: str = "there are") -> str:
    """Return the closest of the names as a question, or else all of them after a heading."""
    known = list(names)
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else f"{heading} {', '.join(known) or 'none'}"


class Commands(click.Group):
    """A group of commands, with a suggestion for one that it does not have."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        names = self.list_commands(ctx)
        if name not in names and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"there is no command {name!r}: {suggest(name, names)}")
        return super().resolve_command(ctx, args)


class SafeMain(click.Command):
    """A command whose errors end the process with one line and the right status."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command; errors that the user can fix are shown in one line."""
        alone = kwargs.pop("standalone_mode", True)
        kwargs["standalone_mode"] = False
        run = partial(super().main, *args, **kwargs)
        return run_safely(run) if alone else run()


class Ended(BaseException):
    """A signal asked the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def run_safely(run: Callable[[], Any]) -> NoReturn:
    """Call, and end the process with the right status."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # A file's name may have bytes that are not UTF-8; they are shown as escapes, as on standard error.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with plain_warnings(), _ending_signals():
            answer = run()
            if sys.stdout is not None:  # closed before the process began
                sys.stdout.flush()
        code = answer if isinstance(answer, int) else 0
    except click.exceptions.Exit as done:
        code = done.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        code = INTERRUPTED
    except Ended as ended:
        click.echo(f"ended by {ended}", err=True)
        code = 128 + ended.number
    except SystemExit as done:
        # Completions for a shell exit with 0; click itself exits with 1 when a pipe is closed.
        code = CLOSED_PIPE if done.code else 0
    except BrokenPipeError:
        # The reader of the output has gone: nothing more can be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = CLOSED_PIPE
    except Exception as error:
        message = message_of(error)
        if message is None or os.environ.get("PARTWISE_TRACEBACK"):
            raise
        # A command without its arguments shows its help.
        help_only = type(error).__name__ == "NoArgsIsHelpError"
        click.echo(str(error) if help_only else f"error: {message}", err=True)
        code = error.exit_code if isinstance(error, click.ClickException) else USER_ERROR
    sys.exit(code)


def message_of(error: Exception) -> str | None:
    """Return what to tell the user, or None for a defect."""
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx is not None else "partwise"
        return f"{error.format_message()} (see {command} --help)"
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and error.errno is not None and error.strerror is not None:
        reason = "no such file or directory" if error.errno == errno.ENOENT else error.strerror.lower()
        return f"{error.filename}: {reason}" if error.filename is not None else reason
    if isinstance(error, MemoryError):
        return str(error) if isinstance(error, TooLarge) else "out of memory"
    return str(error) if isinstance(error, (OSError, ValueError, ArithmeticError)) else None


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings as lines of text."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        click.echo(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def _ending_signals() -> Iterator[None]:
    """Raise `Ended` on SIGTERM and SIGHUP; a signal that the process ignores (nohup) stays ignored."""
    last = -math.inf  # a second signal soon after must not interrupt the removal of unfinished files

    def end(number: int, frame: Any) -> None:
        nonlocal last
        if time.monotonic() - last > AGAIN:
            last = time.monotonic()
            raise Ended(number)

    def swallowed(given: Any) -> None:
        """Send the signal again if it came where Python ignores errors (a finalizer, a weak reference's callback)."""
        nonlocal last
        if isinstance(given.exc_value, Ended):
            last = -math.inf
            threading.Timer(0.01, os.kill, (os.getpid(), given.exc_value.number)).start()
        else:
            shown(given)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    shown, sys.unraisablehook = sys.unraisablehook, swallowed
    numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]  # Windows has no SIGHUP
    before = {number: signal.signal(number, end) for number in numbers if signal.getsignal(number) == signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = shown
