"""What may stand as a contender on the command line: one grammar, declared where an argument or option is."""

from __future__ import annotations

from collections.abc import Sequence

import click

from steelyard_eval.cli.commands import completion
from steelyard_eval.common.configurations import separate

contenders_argument = click.argument("contenders", nargs=-1, metavar="[CONTENDER]...", type=completion.CONTENDER)
more_option = click.option(
    *("--contender", "--systems", "--strategies", "--weights", "--run", "more"),
    multiple=True,
    metavar="[LABEL=]CONTENDER",
    type=completion.CONTENDER,
    help="One more contender, or several, separated by commas; repeatable. All of these names read the same.",
)
DEFAULT = "echovault"
"""What ranks a vault where nothing is named."""


def _one(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> str:
    """What is named by any of the option's spellings; empty without any."""
    if len(given) > 1:
        raise click.BadParameter(f"{' and '.join(given)} are two; name one", ctx, param)
    return given[0] if given else ""


by_option = click.option(
    *("--system", "--weights", "by"),
    multiple=True,
    callback=_one,
    metavar="CONFIGURATION",
    type=completion.CONFIGURATION,
    help="What ranks: a system (name or name:profile, with parameters of its retrievers where wanted, as in "
    "'spec_kit[graph.hops=1]'), a strategy, or a search-weights.json; echovault by default.",
)


def contenders_of(named: Sequence[str], more: Sequence[str]) -> list[str]:
    """The contenders of a command, in the order of arguments and options."""
    return [part for text in (*named, *more) for part in separate(text)]
