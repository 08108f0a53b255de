"""Where contenders are measured: a workspace, in which what they need is recorded, or a recording."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.memory.query import Query
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.configurations import NamedConfig, Setting
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.datasets import Dataset
from steelyard_eval.recording.provenance import agree
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import intents_of, only, open_recording, reaches, recorded_lists, replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Message


@dataclass(frozen=True)
class Source:
    """A workspace, in which what is needed is recorded; or a table and its folder, and nothing is searched.

    With neither there are only contenders that have their lists already.
    """

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

    @classmethod
    def needed_by(
        cls, contenders: Iterable[object], dataset: Dataset, space: Workspace | Callable[[], Workspace]
    ) -> "Source":
        """A workspace, which is opened where one of the contenders searches and does not have its lists."""
        if not any(isinstance(contender, NamedConfig) for contender in contenders):
            return cls(dataset)
        return cls(dataset, space() if callable(space) else space)

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

    @property
    def words(self) -> str:
        """bm25; fts where a recording has no bm25."""
        return "bm25" if self.table is None or "bm25" in self.table.columns else "fts"

    def setting(self, limit: int | None) -> Setting:
        """What configurations with lists of this length are built for."""
        return Setting(limit, self.model, self.lists)

    def supplied(self, named: NamedConfig, limit: int | None) -> tuple[Contender, list[Message]]:
        """A contender that was named, as far as it can be had here; see `usable`."""
        return self.usable(Contender(named.label, named.config(self.setting(limit)), named.kind))

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
