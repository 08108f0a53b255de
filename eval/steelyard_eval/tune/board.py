"""The leaderboard: every family at its best and every preset as it is, beside the current configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.config.search_config import SearchConfig
from steelyard_eval.common.documents.results import (
    ComparedRecord,
    ContenderRecord,
    LeaderboardRecord,
    ResultRecord,
)
from steelyard_eval.common.progress_bar import bar
from steelyard_eval.decide.provenance import mean_of
from steelyard_eval.decide.rule import Evidence
from steelyard_eval.decide.wording import settings
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.measures.paired import Interval, difference_interval, mean_interval, paired
from steelyard_eval.result.sentences import say
from steelyard_eval.result.sentences.headings import VERDICTS
from steelyard_eval.result.structs import Paired
from steelyard_eval.tune.current import Current
from steelyard_eval.tune.layout import Layout


@dataclass(frozen=True)
class Place:
    """One row: a configuration with its metrics on every query, float64[Q] each.

    `tuned` is true where it was chosen among the candidates of its family on these very queries, so its
    values are optimistically biased. `calls` counts the queries that live search would embed; None where that
    cannot be known.
    """

    label: str
    family: str
    config: SearchConfig | None
    values: dict[Measure, Floats]
    tuned: bool
    calls: int | None

    def about(self) -> ContenderRecord:
        """The configuration, for the document."""
        config = self.config
        about: ContenderRecord = {
            "label": self.label,
            "system": config.system if config else None,
            "profile": config.profile if config else None,
            "strategy": str(config.effective) if config else self.label,
            "family": self.family,
            "kind": "tuned" if self.tuned else "preset",
        }
        return {**about, **settings(config)} if config else about


@dataclass(frozen=True)
class Board:
    """The rows, best first, with the current configuration among them."""

    places: tuple[Place, ...]
    current: Place
    metric: Measure
    groups: list[int]

    def rows(self) -> list[LeaderboardRecord]:
        """A record a row: value with interval, and the difference to the current configuration with its own."""
        rows: list[LeaderboardRecord] = []
        for place in self.places:
            values = place.values[self.metric]
            change = difference_interval(values - self.current.values[self.metric], self.groups)
            row: LeaderboardRecord = {
                **place.about(),
                **mean_of(mean_interval(values, self.groups)),
                "gain": None if place is self.current else mean_of(change, -1.0),
                "tuned": place.tuned,
                "depths": place.config.depths if place.config else {},
                "embedding_calls": place.calls,
            }
            rows.append(row)
        return rows

    def results(self) -> list[ResultRecord]:
        """Tidy records, a row a configuration and metric."""
        return [
            result_of(place.about(), str(metric), mean_interval(values, self.groups), len(values))
            for place in self.places
            for metric, values in place.values.items()
        ]

    def comparisons(self, seed: int) -> list[ComparedRecord]:
        """Tests of the presets against the current configuration; what was tuned here cannot be tested here."""
        base = self.current.values[self.metric]
        others = {place.label: place.values[self.metric] for place in self.places if not place.tuned}
        others.pop(self.current.label)
        return tested(paired(others, base, self.groups, seed=seed), self.current.label, str(self.metric))


def leaderboard(
    layout: Layout,
    evidence: Evidence,
    current: Current,
    measures: Sequence[Measure],
    picked: int | None,
    written: SearchConfig | None,
) -> Board:
    """Replay the best candidate of every family, every preset, and what was decided on, as it is `written`."""
    mean = evidence.of_composite.mean
    places: dict[str, Place] = {}
    for owner, start in bar("leaderboard")(list(enumerate(layout.starts))):
        rows = np.flatnonzero(layout.owner == owner)
        if start.preset and current.config != start.config:
            _place(places, layout, start.label, start.config, measures, tuned=False)
        best = picked if picked is not None and picked in rows else int(rows[np.argmax(mean[rows])])
        config = written if written is not None and best == picked else layout.written(best, measures)
        if config not in (start.config, current.config) or not start.preset:
            _place(places, layout, f"{start.label}, tuned", config, measures, tuned=True)
    calls = None if current.config is None else int(layout.replayed(current.config).embedded.sum())
    family = current.config.effective.shown_as if current.config else "lists"
    now = Place(current.label, family, current.config, current.values, False, calls)
    first = measures[0]
    ranked = sorted([now, *places.values()], key=lambda place: (-place.values[first].mean(), place.label))
    return Board(tuple(ranked), now, first, evidence.groups.tolist())


def _place(
    places: dict[str, Place],
    layout: Layout,
    label: str,
    config: SearchConfig,
    measures: Sequence[Measure],
    tuned: bool,
) -> None:
    """Add a configuration, unless it is there under another label."""
    if any(place.config == config for place in places.values()):
        return
    run = layout.replayed(config)
    values = run.metrics(layout.recorded(config).judgments, measures)
    places[label] = Place(label, config.effective.shown_as, config, values, tuned, int(run.embedded.sum()))


def result_of(about: ContenderRecord, metric: str, interval: Interval, queries: int) -> ResultRecord:
    """The tidy record of one mean of a contender."""
    return {
        "label": about["label"],
        "system": about.get("system"),
        "profile": about.get("profile"),
        "strategy": about["strategy"],
        "metric": metric,
        **mean_of(interval),
        "queries": queries,
    }


def tested(found: Mapping[str, Paired], baseline: str, metric: str) -> list[ComparedRecord]:
    """A row for each challenger, by its label."""
    return [
        {
            "challenger": label,
            "baseline": baseline,
            "metric": metric,
            "delta": test.gain.mean,
            "low": test.gain.low,
            "high": test.gain.high,
            "p": test.p,
            "p_holm": test.p_holm,
            "wins": test.wins,
            "ties": test.ties,
            "losses": test.losses,
            "mde": test.detectable,
            "queries_needed": test.needed,
            "verdict": VERDICTS[test.verdict],
            "why": say(test.why) if test.why else "",
        }
        for label, test in found.items()
    ]
