"""What may stand as a contender on the command line: one grammar, declared where an argument or option is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from steelyard.base.errors import ConfigError, SteelyardError
from steelyard.config.search_config import SearchConfig
from steelyard.embedders.kinds import installed
from steelyard.embedders.lsa import MODEL as LSA
from steelyard_eval.cli.commands import completion
from steelyard_eval.common.configurations import parted, separate

if TYPE_CHECKING:  # search needs no data set
    from steelyard_eval.datasets import Dataset

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


def embedder_of(dataset: Dataset, asked: str, named: Sequence[str | None]) -> str:
    """The embedder that was asked for; for auto that of the vectors that the named weights files were tuned with.

    Where they cannot be had here it stays auto, and the job says what is wrong. ConfigError for files of several
    models, which cannot be searched at once.
    """
    if asked != "auto":
        return asked
    files = [path for path in (parted(word)[1] for word in named if word) if path.endswith(".json")]
    try:
        read = {path: SearchConfig.load(path).models for path in files}
    except SteelyardError:  # the job says it
        return asked
    models = {model for own in read.values() for model in own}
    if len(models) > 1 and len(files) > 1:
        told = "; ".join(f"{path} reads vectors of {', '.join(sorted(own))}" for path, own in read.items() if own)
        again = "run the recommend that wrote one of them again, with the --embedder of the other"
        raise ConfigError(f"{told}: only those of one model can be searched; {again}")
    if len(models) != 1 or models & dataset.query_vectors.keys():
        return asked
    (model,) = models
    return model if model in [*installed(), LSA] else asked
