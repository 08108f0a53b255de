"""The leaderboard: every family at its best and every preset as it is, beside the current configuration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.config.search_config import SearchConfig
from steelyard_eval.choose.choice import Choice
from steelyard_eval.common.progress_bar import bar
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.recording.named import settings
from steelyard_eval.result.structs import Row


@dataclass(frozen=True)
class Place:
    """One row: a configuration with its metrics on every query, float64[Q] each.

    `tuned` is true where it was chosen among the candidates of its family on these very queries, so its values are
    optimistically biased. `embedded` counts the queries that live search would embed; None where that cannot be
    known.
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
            family=config.effective.shown_as, settings=settings(config).get("settings"), depths=config.depths,
            tuned=self.tuned,
        )  # fmt: skip


def leaderboard(choice: Choice) -> list[Place]:
    """The best candidate of every family, every preset, and what was decided on, as it is written; best first."""
    found, current, metric = choice.candidates, choice.current, choice.metric
    picked, mean = choice.decision.candidate, choice.scored.of_composite.mean
    embedded = None if current.config is None else int(found.replayed(current.config).embedded.sum())
    places = [Place(current.label, current.config, current.values, False, embedded)]

    def add(label: str, config: SearchConfig, tuned: bool) -> None:
        if all(place.config != config for place in places[1:]):
            run = found.replayed(config)
            values = run.metrics(found.recorded(config).judgments, choice.measures)
            places.append(Place(label, config, values, tuned, int(run.embedded.sum())))

    for at, start in bar("leaderboard")(list(enumerate(found.starts))):
        rows = np.flatnonzero(found.start_index == at)
        if start.preset and current.config != start.config:
            add(start.label, start.config, tuned=False)
        best = picked if picked is not None and picked in rows else int(rows[np.argmax(mean[rows])])
        of = choice.picked if choice.picked and best == picked else found.written(best, choice.measures)
        if of not in (start.config, current.config) or not start.preset:
            add(f"{start.label}, tuned", of, tuned=True)
    return sorted(places, key=lambda place: (-place.values[metric].mean(), place.label))
