"""What may be chosen: what a target expresses, and what costs at most so much."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError, nearest, quote
from steelyard.config import SearchConfig
from steelyard.memory.query import Query
from steelyard_eval.candidates.candidates import CandidateSet
from steelyard_eval.common.console import bar
from steelyard_eval.common.formatting import in_range
from steelyard_eval.compare.lists_and_latency import latencies
from steelyard_eval.export import TARGETS, Loss, say
from steelyard_eval.measures.spread import Gain, spread
from steelyard_eval.recording.replay import embedded, may_embed
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Fact, Message

TIMED = 10  # queries that each row is timed on: a leaderboard has many rows
SLACK = 1e-9  # of a share of queries, which is rounded


class Best(NamedTuple):
    """The best of some candidates: as it is written, what it gains out of fold, float64[n], and is expected to."""

    formula: str
    gains: Floats
    expected: Gain


@dataclass(frozen=True)
class Restriction:
    """A restriction of the candidates."""

    target: str = ""  # a key of `steelyard_eval.export.TARGETS`; empty for any
    latency: float | None = None  # milliseconds that half of the searches take at most, live on this machine
    embedding_calls: float | None = None  # of 100 queries, how many may be embedded

    def __post_init__(self) -> None:
        if self.target and self.target not in TARGETS:
            raise ConfigError(f"unknown target {quote(self.target)}{nearest(self.target, TARGETS)}")
        if self.latency is not None and not self.latency >= 0:
            raise ConfigError(f"latency {quote(self.latency)} is not 0 or more; give milliseconds")
        if self.embedding_calls is not None and not 0 <= self.embedding_calls <= 100:
            calls = quote(self.embedding_calls)
            raise ConfigError(f"embedding_calls {calls} is not 0 to 100; give calls per 100 queries")

    def __bool__(self) -> bool:
        return bool(self.target) or self.latency is not None or self.embedding_calls is not None

    @property
    def facts(self) -> dict[str, Fact]:
        """What it is, for a sentence."""
        calls, took = self.embedding_calls, self.latency
        return {
            "target": self.target or None,
            "took": took is not None and bool(self.target),
            "ms": None if took is None else f"{took:g}",
            "calls": calls is not None and (bool(self.target) or took is not None),
            "calls_of_100": f"{calls:g}" if calls else None,
            "no_calls": calls == 0,
        }

    @property
    def options(self) -> dict[str, str | None]:
        """As a command writes it."""
        named = {
            "--for": self.target or None,
            "--latency": self.latency,
            "--embedding-calls": self.embedding_calls,
        }
        return {name: value if isinstance(value, str | None) else f"{value:g}" for name, value in named.items()}

    def rejection_reason(self, config: SearchConfig) -> Message | None:
        """Why the target cannot express a configuration; None where it can, or where there is no target."""
        try:
            if self.target:
                say(config, TARGETS[self.target])
        except Loss as lost:
            return Message("plain_text", {"text": str(lost)})
        return None

    def not_allowed(
        self, candidates: CandidateSet, space: Workspace | None, queries: Sequence[Query], config: SearchConfig
    ) -> Message | None:
        """Why a configuration may not be chosen; None where it may."""
        if why := self.rejection_reason(config) or self.costs(candidates, config):
            return why
        if self.latency is None or space is None:
            return None
        took = _median_ms(space, config, queries)
        return Message("too_slow", {"ms": f"{took:.1f}"}) if took > self.latency else None

    def costs(self, candidates: CandidateSet, config: SearchConfig) -> Message | None:
        """What of 100 queries a configuration embeds, where that is too much; None where it is not."""
        if self.embedding_calls is None:
            return None
        table = candidates.recorded(config).table.at_depth(config.depths)
        if not self.embedding_calls and may_embed(table, config):
            return Message("reads_vectors")
        calls = 100 * float(embedded(table, config).mean())
        return Message("embeds", {"calls": f"{calls:.0f}"}) if calls > self.embedding_calls + SLACK else None

    def unlabelled(self, attempt: SearchConfig | None) -> None:
        """ConfigError where it cannot be kept without labels, where only one configuration is known."""
        remedy = "label queries, or leave the restriction out"
        if self.latency is not None or self.embedding_calls is not None:
            raise ConfigError(f"the cost of a search needs labelled queries, and there are none; {remedy}")
        if attempt is not None and (lost := self.rejection_reason(attempt)):
            raise ConfigError(
                f"without labels only {attempt.effective} is known, and {lost.facts['text']}; {remedy}"
            )

    def allowed(self, candidates: CandidateSet, space: Workspace | None, queries: Sequence[Query]) -> Bools:
        """bool[C]: the candidates that may be chosen; ConfigError where none is left."""
        if self.latency is not None and space is None:
            raise ConfigError("a recording cannot be timed; leave --latency out")
        kept = np.zeros(len(candidates.grid), dtype=bool)
        took: dict[object, float] = {}
        starts = [*candidates.grid.starts.tolist()]
        blocks = list(zip(candidates.grid.blocks, starts[:-1], starts[1:], strict=True))
        for block, begin, end in bar("what may be chosen", blocks):
            if self.costs(candidates, block.config):
                continue
            if self.latency is not None and space is not None:
                config, read = block.config, block.config.effective  # what is fetched does not depend on weights
                key = repr((config.name, read.shown_as, sorted(read.signals), config.retrievers))
                if key not in took:
                    took[key] = _median_ms(space, config, queries)
                if took[key] > self.latency:
                    continue
            few = {begin, begin + 1 % (end - begin), (begin + end) // 2, end - 1}
            if not all(self.rejection_reason(candidates.grid.config(row)) for row in few):  # else it is none
                every = map(candidates.grid.config, range(begin, end))
                kept[begin:end] = [not self.rejection_reason(config) for config in every]
        if not kept.any():
            raise ConfigError(
                "no candidate meets the limits"
                + (f"; there, {TARGETS[self.target].says}" if self.target else "; allow more")
            )
        return kept


NONE = Restriction()


def _median_ms(space: Workspace, config: SearchConfig, queries: Sequence[Query]) -> float:
    return float(np.median(latencies(space, config, queries, TIMED).searches))


def describe_cost(
    restriction: Restriction, without: Best, within: Best, units: Indices, metric: str, facts: Mapping[str, Fact]
) -> Message:
    """What a restriction costs: the best without it beside the best with it, by the same estimator.

    The difference of the two is as sure as the paired differences are.
    """
    apart, told = without.gains - within.gains, {**restriction.facts, **facts}
    if not apart.any() or without.formula == within.formula:
        return Message("restricted_free", told)
    change = Gain.of(without.expected.mean - within.expected.mean, float(spread(apart, units).error))
    if change.mean <= 0:
        return Message("restricted_no_cost", told)
    gains = {"within": within.expected.mean, "without": without.expected.mean}
    ends = {"cost": change.mean, "gained" if change.low < 0 else "low": abs(change.low), "high": change.high}
    in_range_of = {name: in_range(value) for name, value in (gains | ends).items()}
    return Message("restricted", {**told, **in_range_of, "metric": metric, "best": without.formula})
