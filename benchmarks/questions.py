"""The questions that ``python -m benchmarks`` answers: each module listed here has a click command `command`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import click

QUESTIONS = {
    "bounds": "benchmarks.bounds",
    "cfg": "benchmarks.cfg",
    "cli": "benchmarks.cli",
    "crf": "benchmarks.crf",
    "dense": "benchmarks.dense",
    "dep": "benchmarks.dep",
    "structures": "benchmarks.structures",
    "graph": "benchmarks.graph",
    "front-page": "benchmarks.front_page",
    "grammar": "benchmarks.grammar",
    "load": "benchmarks.load",
    "kernel": "benchmarks.kernel",
    "maxent": "benchmarks.maxent",
    "maxent-is": "benchmarks.maxent_is",
    "passes": "benchmarks.passes",
    "predict": "benchmarks.predict",
    "rates": "benchmarks.rates",
    "scale": "benchmarks.scale",
    "score": "benchmarks.score",
    "maxent-auto": "benchmarks.maxent_auto",
    "maxent-sparse": "benchmarks.maxent_sparse",
    "originals": "benchmarks.originals",
    "segments": "benchmarks.segments",
    "snakes": "benchmarks.snakes",
    "solvers": "benchmarks.solvers",
    "sparse": "benchmarks.sparse",
}


def command(name: str) -> click.Command:
    """Return the command of one question; its module is imported only now."""
    found: click.Command = importlib.import_module(QUESTIONS[name]).command
    return found


def common_options(default_l2: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options that every question has."""
    options = (
        click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA]."),
        click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines."),
        click.option("--l2", default=default_l2, show_default=True, help="Strengths of the penalty, with commas."),
        click.option("--threads", default=1, show_default=True, help="Threads for systems that can use them."),
        click.option("--repeat", default=1, show_default=True, help="Runs of each system; the median is shown."),
        click.option("--within", default=1e-3, show_default=True, help="Target: objective <= (1 + this) * optimum."),
        click.option("--systems", default="", help="Only these systems, with commas."),
        click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs."),
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def choose(systems: str, known: list[str], option: str = "--systems") -> list[str]:
    """Return the requested systems in the order of `known`."""
    asked = [name.strip() for name in systems.split(",") if name.strip()]
    unknown = sorted(set(asked) - set(known))
    if unknown:
        raise click.BadParameter(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}", param_hint=option)
    return [name for name in known if not asked or name in asked]
