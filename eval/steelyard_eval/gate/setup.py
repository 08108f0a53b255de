"""What is gated: a data set with its labels, the baseline that it is held against, and how it is searched."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from steelyard.base.arrays import Indices
from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, shown
from steelyard.config.search_config import SearchConfig
from steelyard.memory.query import Query
from steelyard_eval.compare.lists import ties
from steelyard_eval.datasets import LOGGED, Dataset, as_dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.datasets.manifest import Naming
from steelyard_eval.datasets.states import State, hashed, states
from steelyard_eval.gate.baseline import Baseline, load_baseline
from steelyard_eval.gate.hashes import data_hashes, platform_name
from steelyard_eval.gate.rule import BUDGET
from steelyard_eval.recording.steps import word
from steelyard_eval.recording.workspace import Workspace, judged
from steelyard_eval.result.sentences import dialect

BASELINE = Path("reports/baseline.json")
DIALECT = dialect(ties(["strategy"]))
"""How values are computed; a baseline keeps it."""
DATA = ("corpus", "queries", "labels")
PARTS = dict(zip(("entries", "queries", "labels"), DATA, strict=True))
UPDATE = ("--update", "--because", "...")
MOST = 5_000
"""Entries, queries or judgments that a baseline keeps one by one, to say later which changed."""


@dataclass(frozen=True)
class Gate:
    """A data set with its baseline, and how it is searched; made by `Gate.of`."""

    dataset: Dataset
    path: Path
    baseline: Baseline | None  # None where there is no file at `path`
    opened: Callable[[str], Workspace]  # opens the data set with an embedder, by its name
    embedder: str | None  # the baseline's own where it is None
    split: str | None
    limit: int | None
    budget: float = BUDGET  # the drop of nDCG@10 that is accepted unproven
    block_slices: bool = False  # whether a category or intent that is significantly worse fails the gate
    now: Callable[[], float] = time.time  # for the dates of updates

    @classmethod
    def of(
        cls,
        source: Dataset | str | Path,
        path: str | Path = BASELINE,
        embedder: str | None = None,
        opened: Callable[[str], Workspace] | None = None,
        *,
        split: str | None = None,
        limit: int | None = None,
        **options: Any,  # noqa: ANN401 -- the fields of the class
    ) -> Gate:
        """The gate of a data set or its folder, which is indexed when a contender needs it.

        Embedder, split and limit are the baseline's own by default. Raises DataError for a baseline that is cut
        short, or edited.
        """
        dataset, path = as_dataset(source), Path(path)
        old = load_baseline(path, shlex.join([*_command("gate", dataset, path), *UPDATE]))
        split, limit = (split or old.split, limit or old.limit) if old else (split, limit)
        opened = opened or cache(partial(Workspace.open, dataset))
        return cls(dataset, path, old, opened, embedder, split, limit, **options)

    @property
    def command(self) -> list[str]:
        """The words of the command that gates all that the baseline names."""
        return _command("gate", self.dataset, self.path)

    @property
    def rebaseline(self) -> list[str]:
        """The words of the command that writes a new baseline of the same contenders."""
        return [*self.command, *UPDATE]

    def replacing(self, contender: str) -> str:
        """The command that writes a new baseline of a contender alone."""
        drops = ["--accept-worse"] if self.baseline and len(self.baseline.contenders) > 1 else []
        return shlex.join([*self.command, contender, *drops, *UPDATE])

    def needed(self) -> Baseline:
        """The baseline; DataError, with the remedy, where there is none."""
        if self.baseline is not None:
            return self.baseline
        begin, place = shlex.join(_command("init", self.dataset, self.path)), shown(str(self.path), PATH_WIDTH)
        raise DataError(f"there is no baseline at {place}; write a first one of what you use today: {begin}")

    @cached_property
    def space(self) -> Workspace:
        """The data set as it is searched; a baseline may name no embedder that asks anybody."""
        if self.embedder or not self.baseline:
            return self.opened(self.embedder or "auto")
        return self.opened(Naming.of_baseline(self.path).embedder(self.baseline.embedder))

    @property
    def named_embedder(self) -> str:
        """The embedder that a new baseline names: what auto stands for, where the data set says it."""
        name = self.embedder or (self.baseline.embedder if self.baseline else "auto")
        return self.dataset.embedder or name if name == "auto" else name

    @cached_property
    def queries(self) -> tuple[Query, ...]:
        """The judged queries of the split."""
        queries = judged(self.dataset, self.dataset.split(self.split))
        if not queries:
            raise ConfigError(f"{self.dataset.called}: no query of the split has judgments; add them to qrels.txt")
        return queries

    @cached_property
    def unit(self) -> Indices:
        """int64[Q]: which queries vary together."""
        return unit_numbers(self.queries)

    @cached_property
    def unanswerable(self) -> tuple[Query, ...]:
        """The queries of the split that nothing answers."""
        return tuple(
            query for query in self.dataset.split(self.split) if not query.answerable and query.split != LOGGED
        )

    @cached_property
    def hashes(self) -> dict[str, str]:
        """The hashes of what both measurements have to share."""
        return data_hashes(self.dataset, self.queries, self.unanswerable)

    @property
    def differing(self) -> dict[str, tuple[str, str]]:
        """What was not measured on the same: name -> the baseline's hash and ours; empty without a baseline."""
        if self.baseline is None:
            return {}
        theirs = asdict(self.baseline.hashes) | {"dialect": self.baseline.dialect}
        ours = self.hashes | {"dialect": DIALECT}
        return {name: (theirs[name], own) for name, own in ours.items() if theirs[name] != own}

    def states(self) -> dict[str, State]:
        """What is hashed, item by item, where it is not too much to keep."""
        qrels = {query.id: self.dataset.qrels[query.id] for query in self.queries}
        part = replace(self.dataset, queries=(*self.queries, *self.unanswerable), qrels=qrels)
        return {PARTS[name]: state for name, state in states(part, MOST).items() if state}

    def configuration(self, config: SearchConfig | None) -> str:
        """The hash of a configuration and of the vectors it searches; empty for lists, whose making is unknown."""
        if config is None:
            return ""
        model, dataset = self.space.model, self.dataset
        held = {name: value for name, value in config.to_json().items() if name != "provenance"}
        return hashed(
            [held, model, dataset.recipe, dataset.vectors_sha256 if model in dataset.query_vectors else ""]
        )

    @cached_property
    def elsewhere(self) -> bool:
        """Whether this platform is not the baseline's, so that rounding may differ."""
        return self.needed().platform != platform_name()


def _command(job: str, dataset: Dataset, path: Path) -> list[str]:
    return ["steelyard", job, word(dataset.path), *(["--baseline", word(path)] if path != BASELINE else [])]


def is_of_other_labels(dataset: Dataset) -> bool:
    """Whether there is a baseline of this data set that can be read, and its labels are not those of today."""
    try:
        gate = Gate.of(dataset)
        return gate.baseline is not None and gate.baseline.dataset == dataset.name and "labels" in gate.differing
    except (ConfigError, DataError):
        return False
