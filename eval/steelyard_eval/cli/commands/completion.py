"""What the shell completes: names of systems, fusions, signals, metrics and export targets.

The shell asks the command line itself; docs/commands.md says how to switch it on. What is completed is imported
when the shell asks for it: every command has such options, and most load none of this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem


class Completed(click.types.StringParamType):
    """Text in which the shell completes the last word, behind commas, brackets and weights.

    `names` gives the words; `word` matches the characters of one, at the end of what is typed.
    """

    def __init__(self, names: Callable[[], Iterable[str]], word: str = r"[\w:.@-]*$") -> None:
        self._names = names
        self._word = re.compile(word)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin with the word being typed, behind what stands before it."""
        match = self._word.search(incomplete)
        start = match.start() if match else len(incomplete)
        before, word = incomplete[:start], incomplete[start:].casefold()
        return [CompletionItem(before + name) for name in self._names() if name.casefold().startswith(word)]


def system_names() -> list[str]:
    """Every system, with its profile where that is not the documented one."""
    from steelyard.systems import SYSTEMS

    return sorted(name.removesuffix(":documented") for name in SYSTEMS)


def expression_names() -> list[str]:
    """Fusions, with their bracket, and signals."""
    from steelyard.fusion import FAMILIES
    from steelyard.retrievers import FETCHED
    from steelyard.signals import PRIORS

    return sorted([*(f"{name}(" for name in FAMILIES), *FETCHED, *PRIORS])


def metric_names() -> list[str]:
    """Measures, cut at 10 where they need a cutoff."""
    from steelyard_eval.measures.metrics import COMMON

    return list(COMMON)


def target_names() -> list[str]:
    """Export targets."""
    from steelyard_eval.export import TARGETS

    return list(TARGETS)


SYSTEM = Completed(system_names)
STRATEGY = Completed(expression_names, r"[A-Za-z_]\w*$|$")
CONTENDER = Completed(lambda: [*system_names(), *expression_names()], r"[A-Za-z_][\w:]*$|$")
"""Anything that ranks, lists of other engines among them."""
CONFIGURATION = Completed(lambda: [*system_names(), *expression_names()], r"[A-Za-z_][\w:]*$|$")
"""What has weights: a system, a strategy or a weights file."""
METRIC = Completed(metric_names)
TARGET = Completed(target_names)
