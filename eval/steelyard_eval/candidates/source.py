"""Where candidates are measured: a workspace, which records what they need, or a recording made before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.live.identity import agree
from steelyard.memory.query import Query
from steelyard.table.signal_table import SignalTable
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.datasets import Dataset
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.select import intents_of, only, reaches, recorded_lists
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Said


@dataclass(frozen=True)
class LiveSource:
    """A workspace: whatever is needed is recorded."""

    space: Workspace

    @property
    def dataset(self) -> Dataset:
        """The data set of the workspace."""
        return self.space.dataset

    @property
    def model(self) -> str:
        """The model of its embedder."""
        return self.space.model

    @property
    def options(self) -> Mapping[str, object]:
        """The embedder that was asked for."""
        return self.space.options

    @property
    def recipe(self) -> str:
        """The text that its embedder was given."""
        return (self.space.embedder.recipe or "of each system") if self.space.embedder else ""

    @property
    def lists(self) -> None:
        """None: our own retrievers search."""

    @property
    def intents(self) -> str | None:
        """What the data set was loaded with."""
        return intents_of(self.dataset)

    @property
    def words(self) -> str:
        """bm25."""
        return "bm25"

    def usable(self, row: Contender) -> tuple[Contender, list[Said]]:
        """The contender without the signals that the data set cannot supply."""
        return usable(self.space, row)

    def reached(self, configs: Sequence[SearchConfig]) -> list[SearchConfig]:
        """All of them."""
        return list(configs)

    def record(self, queries: Sequence[Query], configs: Sequence[SearchConfig]) -> SignalTable:
        """Searched now."""
        return record(self.space, queries, configs)


@dataclass(frozen=True)
class RecordedSource:
    """A recording: only what it holds can be measured, and nothing is searched."""

    dataset: Dataset
    table: SignalTable
    folder: Path

    @property
    def model(self) -> str:
        """The model of the recorded vectors."""
        return str(self.table.fingerprint["model"])

    @property
    def recipe(self) -> str:
        """The text that was embedded when it was recorded."""
        return str(self.table.fingerprint["recipe"])

    @property
    def lists(self) -> tuple[str, ...] | None:
        """The names of its lists, if they are of other engines."""
        return recorded_lists(self.table)

    @property
    def intents(self) -> str | None:
        """Where the intents of the recorded queries are from; see `intents_of`."""
        return intents_of(self.dataset, self.table)

    @property
    def words(self) -> str:
        """bm25 where it was recorded."""
        return "bm25" if "bm25" in self.table.columns else "fts"

    @property
    def space(self) -> None:
        """None: nothing can be searched live."""

    @property
    def options(self) -> Mapping[str, object]:
        """The folder of the recording."""
        return {"--recording": self.folder}

    def usable(self, row: Contender) -> tuple[Contender, list[Said]]:
        """The contender, where everything that it reads was recorded in the way that it searches, as deep."""
        agree(row.config, self.table.fingerprint)
        if not reaches(self.table, row.config):
            raise ConfigError(f"{row.label} searches deeper than the recording; record again")
        replay(only(self.table, self.table.queries[:1]), row.config)
        return row, []

    def reached(self, configs: Sequence[SearchConfig]) -> list[SearchConfig]:
        """Those that search no deeper than the recording."""
        return [config for config in configs if reaches(self.table, config)]

    def record(self, queries: Sequence[Query], configs: Sequence[SearchConfig]) -> SignalTable:
        """The recorded lists."""
        return only(self.table, [query.id for query in queries])


Source = LiveSource | RecordedSource
"""What `recommend` measures on."""
