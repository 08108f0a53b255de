"""The leaderboard: every family at its best and every preset as it is, beside the current configuration."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.config import SearchConfig
from steelyard.retrievers import EMBEDDING
from steelyard.stores.base import KeywordIndex
from steelyard.stores.postings import TokenSettings
from steelyard.systems import find_system
from steelyard_eval.candidates.choice_limits import TIMED
from steelyard_eval.choose.choice import Choice, Decided
from steelyard_eval.common.console import bar
from steelyard_eval.compare.lists_and_latency import latencies
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.recording.next_steps import settings
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Cost, Latency, Row


@dataclass(frozen=True)
class Place:
    """One row: a configuration with its metrics on every query, float64[Q] each.

    `tuned` is true where it was chosen among the candidates of its family on these very queries, so its values are
    optimistically biased. `embedded` counts the queries that live search would embed, None if unknown.
    """

    label: str
    config: SearchConfig | None
    values: dict[Measure, Floats]
    tuned: bool
    embedded: int | None

    def row(self) -> Row:
        """What it is, as a row of the result."""
        kind, config = "tuned" if self.tuned else "preset", self.config
        if config is None:
            return Row(self.label, kind, self.label, family="lists")
        return Row(
            self.label, kind, str(config.effective), system=config.system, profile=config.profile,
            family=config.effective.shown_as, settings=settings(config), depths=config.depths,
            tuned=self.tuned,
        )  # fmt: skip


def leaderboard(decided: Decided) -> list[Place]:
    """The best candidate of every family, every preset, and what was decided on, as it is written; best first."""
    choice, picked = decided.choice, decided.ruling.candidate
    candidates, current, mean = choice.candidates, choice.current, choice.scored.of_composite.mean
    embedded = None if current.config is None else int(candidates.replayed(current.config).embedded.sum())
    places = [Place(current.label, current.config, current.values, False, embedded)]

    def add(label: str, config: SearchConfig, tuned: bool) -> None:
        if all(place.config != config for place in places[1:]):
            run = candidates.replayed(config)
            values = run.metrics(candidates.recorded(config).judgments, choice.measures)
            places.append(Place(label, config, values, tuned, int(run.embedded.sum())))

    for at, start in bar("leaderboard", list(enumerate(candidates.starts))):
        rows = np.flatnonzero(candidates.start_index == at)
        if start.preset and current.config != start.config:
            add(start.label, start.config, tuned=False)
        best = picked if picked is not None and picked in rows else int(rows[np.argmax(mean[rows])])
        of = decided.picked if decided.picked and best == picked else candidates.written(best, choice.measures)
        if of not in (start.config, current.config) or not start.preset:
            add(f"{start.label}, tuned", of, tuned=True)
    return sorted(places, key=lambda place: (-place.values[choice.metric].mean(), place.label))


FLOAT = 4  # bytes of a number of a vector
POSTING = 16  # bytes of an entry in a word's list, in the indexes that are held in memory


def costs_of(choice: Choice, places: Sequence[Place], timed: bool) -> list[Cost]:
    """Queries embedded and bytes of indexes of each row; `timed` searches a few queries live, too.

    Over a recording nothing can be timed.
    """
    space = choice.source.space
    embedded = [None if choice.source.lists is not None else place.embedded for place in places]
    if space is None:
        return [Cost(count) for count in embedded]
    read = TokenSettings().analysis.read
    words = sum(len(set(read(entry)[0])) for entry in space.dataset.entries)  # each counted once an entry
    times: dict[str, Latency] = {}
    known = [(place.label, place.config) for place in places if timed and place.config is not None]
    for label, config in bar("timing live search", known):
        if summary := latencies(space, config, choice.queries, TIMED).summary():
            times[label] = summary
    return [
        Cost(count, _keywords(space, place.config, words), _vectors(space, place.config), times.get(place.label))
        if place.config
        else Cost(count)
        for count, place in zip(embedded, places, strict=True)
    ]


def _keywords(space: Workspace, config: SearchConfig, words: int) -> int:
    """Of FTS5 what it stores; of each index in memory a posting for every word of every entry."""
    read = config.effective.signals
    index = find_system(config.name).reading.index
    held = read & {"bm25", "tfidf", "fts"}
    if not isinstance(index, KeywordIndex):
        return len(held) * POSTING * words
    stored = space.store.index_bytes(index) if "fts" in read else 0
    return stored + len(held - {"fts"}) * POSTING * words


def _vectors(space: Workspace, config: SearchConfig) -> int:
    layers = {"text" if name in ("vector", "cosine") else name for name in config.effective.signals & EMBEDDING}
    sizes = {vectors.layer: size for vectors, size in space.store.spaces()}
    return FLOAT * len(space.dataset.entries) * sum(sizes.get(layer, 0) for layer in layers)
