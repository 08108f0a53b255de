"""What is named to be measured: what is used today, and the one strategy that is tuned."""

from dataclasses import dataclass, replace
from functools import lru_cache

from steelyard.base.errors import ConfigError
from steelyard.memory.text import content
from steelyard_eval.candidates.settings import idle_options, of_retrievers, shapes
from steelyard_eval.compare.contenders import Contender, Given, read, read_config
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import Dataset
from steelyard_eval.result.structs import Message


@lru_cache(maxsize=2)  # every family of a command asks
def idle(dataset: Dataset) -> frozenset[str]:
    """The options of analysis that are not tried on the entries of a data set."""
    return idle_options([content(entry) for entry in dataset.entries])


@dataclass(frozen=True)
class Only:
    """The one strategy that is tuned.

    `word` is how a command names it, None where it exists in Python alone; with `weights_only` its settings stay
    as they are written. `notices` say what it runs without.
    """

    row: Contender
    word: str | None
    weights_only: bool
    notices: tuple[Message, ...] = ()


def read_current(given: Given, limit: int, source: Source) -> Contender | ListContender:
    """Any contender: a system, an expression, a weights file, a run, an endpoint, a table of lists, a function.

    Raises ConfigError for what is none, or needs what the data set or the recording does not have.
    """
    contender = read(given, lists=source.lists or ())
    return contender if isinstance(contender, ListContender) else source.supplied(contender, limit)[0]


def read_only(given: Given, limit: int, source: Source, weights_only: bool) -> Only:
    """One strategy that is tuned alone; ConfigError for one that has lists alone, or nothing to tune."""
    named = read_config(given, source.lists or ())
    row, notices = source.supplied(named, limit)
    strategy = row.config.effective
    parameters = source.space and not weights_only and of_retrievers(row.config, 1, idle(source.dataset))
    if len(shapes(strategy)) == 1 and len(strategy.weights) < 2 and not parameters:
        raise ConfigError(
            f"{strategy} has nothing to tune; name a strategy with weights, such as rrf(fts, vector)"
        )
    config = replace(row.config, strategy=strategy, by_intent={})
    return Only(replace(row, config=config), named.word, weights_only, tuple(notices))
