"""Where candidates are measured, a workspace or a recording, and what is named to be measured there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.memory.query import Query
from steelyard.memory.text import content
from steelyard.table.signal_table import SignalTable
from steelyard_eval.candidates.settings import idle_options, of_retrievers, shapes
from steelyard_eval.common.configurations import NamedConfig, Setting
from steelyard_eval.compare.contenders import Contender, Given, read, read_config, usable
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.datasets import Dataset
from steelyard_eval.recording.provenance import agree
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import intents_of, only, open_recording, reaches, recorded_lists, replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Message


@dataclass(frozen=True)
class Source:
    """A workspace, in which what is needed is recorded; or a table and its folder, and nothing is searched."""

    dataset: Dataset
    space: Workspace | None = None
    table: SignalTable | None = None
    folder: Path | None = None

    @classmethod
    def live(cls, space: Workspace) -> "Source":
        """A workspace."""
        return cls(space.dataset, space)

    @classmethod
    def of_recording(cls, dataset: Dataset, folder: str | Path) -> "Source":
        """A folder that `record` wrote."""
        return cls(dataset, table=open_recording(Path(folder), dataset), folder=Path(folder))

    @property
    def model(self) -> str:
        """The model of the vectors."""
        return self.space.model if self.space else self._recorded("model")

    @property
    def recipe(self) -> str:
        """The text that was embedded."""
        if self.space is None:
            return self._recorded("recipe")
        return (self.space.embedder.recipe or "of each system") if self.space.embedder else ""

    def _recorded(self, fact: str) -> str:
        return "" if self.table is None else str(self.table.fingerprint[fact])

    @property
    def options(self) -> Mapping[str, object]:
        """By what options a command measures here."""
        return self.space.options if self.space else {"--recording": self.folder}

    @property
    def lists(self) -> tuple[str, ...] | None:
        """The names of the lists of a recording, if they are of other engines."""
        return recorded_lists(self.table)

    @property
    def intents(self) -> str | None:
        """Where the intents of the queries are from; see `intents_of`."""
        return intents_of(self.dataset, self.table)

    @cached_property
    def idle(self) -> frozenset[str]:
        """The options of analysis that are not tried on these entries."""
        return idle_options([content(entry) for entry in self.dataset.entries])

    @property
    def words(self) -> str:
        """bm25; fts where a recording has no bm25."""
        return "bm25" if self.table is None or "bm25" in self.table.columns else "fts"

    def usable(self, row: Contender) -> tuple[Contender, list[Message]]:
        """The contender without the signals that the data set cannot supply.

        Over a recording everything that it reads has to be recorded in the way that it searches, as deep.
        """
        if self.space:
            return usable(self.space, row)
        if self.table is not None:
            agree(row.config, self.table.fingerprint)
            if not reaches(self.table, row.config):
                raise ConfigError(f"{row.label} searches deeper than the recording; record again")
            replay(only(self.table, self.table.queries[:1]), row.config)
        return row, []

    def reached(self, configs: Sequence[SearchConfig]) -> list[SearchConfig]:
        """Those that search no deeper than the recording."""
        return [config for config in configs if self.table is None or reaches(self.table, config)]

    def record_supplied(self, queries: Sequence[Query], config: SearchConfig) -> SignalTable:
        """The lists of what a configuration reads, as far as the data set can supply it."""
        row = Contender("supplied", config, "strategy")
        return self.record(queries, [self.usable(row)[0].config if self.space else config])

    def record(self, queries: Sequence[Query], configs: Sequence[SearchConfig]) -> SignalTable:
        """The lists of these queries, searched now or recorded."""
        if self.space:
            return record(self.space, queries, configs)
        return only(self.table, [query.id for query in queries])  # type: ignore[arg-type]  # one of both is there


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
    return contender if isinstance(contender, ListContender) else _supplied(contender, limit, source)[0]


def configured(given: Given, limit: int, source: Source) -> Contender:
    """One that has weights; ConfigError for one that has lists alone."""
    return _supplied(read_config(given, source.lists or ()), limit, source)[0]


def read_only(given: Given, limit: int, source: Source, weights_only: bool) -> Only:
    """One strategy that is tuned alone; ConfigError for one that has lists alone, or nothing to tune."""
    named = read_config(given, source.lists or ())
    row, notices = _supplied(named, limit, source)
    strategy = row.config.effective
    parameters = source.space and not weights_only and of_retrievers(row.config, 1, source.idle)
    if len(shapes(strategy)) == 1 and len(strategy.weights) < 2 and not parameters:
        raise ConfigError(
            f"{strategy} has nothing to tune; name a strategy with weights, such as rrf(fts, vector)"
        )
    config = replace(row.config, strategy=strategy, by_intent={})
    return Only(replace(row, config=config), named.word, weights_only, tuple(notices))


def _supplied(named: NamedConfig, limit: int, source: Source) -> tuple[Contender, list[Message]]:
    config = named.config(Setting(limit, source.model, source.lists))
    return source.usable(Contender(named.label, config, named.kind))
