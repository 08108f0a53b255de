"""Adapts weights to feedback by a fixed rule: the weight of one signal changes, and the others are rescaled.

This is the rule of Soleri's document, adaptive weights. It moves one weight by the rate of accepted results;
nothing is optimised. A search follows its feedback log by `LogFollower`.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import suppress
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from weakref import WeakKeyDictionary

from steelyard.base.errors import ConfigError, quote
from steelyard.base.files import open_regular
from steelyard.config import SearchConfig
from steelyard.feedback import LONGEST_LINE
from steelyard.fusion import RECIPROCAL, Expr, Linear, Signal, Term
from steelyard.live.search import Searcher
from steelyard.systems import find_system

MAX_SUM_ERROR = 1e-9
"""How far from 1 written weights may sum to."""


@dataclass(frozen=True)
class AdaptiveRule:
    """Which weight of a sum follows feedback, and how far."""

    signal: str = "tfidf"
    """The signal whose weight moves."""
    span: float = 0.15
    """The largest change in either direction."""
    at_least: int = 30
    """With fewer entries of feedback, nothing changes."""
    least: float = 0.0
    """The lower bound of the weight."""
    held: tuple[str, ...] = ()
    """Signals whose weights do not change."""
    total: float = 1.0
    """What the weights sum to before; they sum to 1 after."""


@dataclass(frozen=True)
class Feedback:
    """The numbers of shown results that were accepted, dismissed or modified, or that failed.

    Raises ConfigError for a number below 0.
    """

    accepted: int
    dismissed: int
    modified: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        if min(astuple(self)) < 0:
            raise ConfigError(f"{self!r} has a count below 0; counts of feedback start at 0")

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in vars(self).items() if count)
        return f"{self.count} acts ({counts})"

    @property
    def count(self) -> int:
        """The number of entries that count: all except the failed ones."""
        return self.accepted + self.dismissed + self.modified

    @property
    def rate(self) -> float:
        """``(accepted + modified / 2) / count``, in 0..1; 0.5 where there are none."""
        return (self.accepted + 0.5 * self.modified) / self.count if self.count else 0.5


def adapt(config: SearchConfig, feedback: Feedback, rule: AdaptiveRule) -> SearchConfig:
    """Adapt the weights of a configuration to feedback; with too little feedback it is returned unchanged.

    In each strategy the signal's weight moves by ``(rate - 0.5) * 2 * span``, and the other weights that are
    not held are rescaled by one factor, so that the weights sum to 1 again. Source: Soleri's document,
    adaptive weights, and its code for the formula.

    Parameters
    ----------
    config : SearchConfig
        With the default weights, not with weights adapted earlier.
    feedback : Feedback
        All feedback so far.
    rule : AdaptiveRule
        The rule of the system.

    Raises
    ------
    ConfigError
        For a strategy that is not a weighted_sum with that signal, has no other weight that may move, or
        whose weights do not sum to 1.
    """
    shift = (feedback.rate - 0.5) * 2 * rule.span
    adapted = replace(
        config,
        strategy=_moved(config.strategy, shift, rule),
        keywords_only=config.keywords_only and _moved(config.keywords_only, shift, rule),
        by_intent={intent: _moved(expr, shift, rule) for intent, expr in config.by_intent.items()},
    )
    return adapted if feedback.count >= rule.at_least else config


def adapt_system(config: SearchConfig, feedback: Feedback) -> SearchConfig:
    """Adapt a configuration by the rule that its system documents; ConfigError where that documents none."""
    if (rule := find_system(config.name).adaptive) is None:
        raise ConfigError(f"{config.name} documents no rule that adapts weights to feedback; name soleri")
    return adapt(config, feedback, AdaptiveRule(**rule))


class LogFollower:
    """Follows the acts of a feedback log; what was read once is not read again while the log grows.

    An act on an entry that a search showed counts once. A line that is broken, or not ended yet, counts nothing;
    nor does a log that is not there or cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self._path, self._inode, self._end = Path(path), 0, 0
        self._acts, self._counts = set[tuple[str, str, str]](), Counter[str]()
        self._moved = WeakKeyDictionary[Searcher, tuple[Feedback, Searcher | None]]()

    def feedback(self) -> Feedback:
        """What the log says so far: accepted, dismissed, modified and failed; other actions do not count."""
        with suppress(OSError), open_regular(self._path) as stream:  # nobody's search fails for its log
            status = os.fstat(stream.fileno())
            if status.st_ino != self._inode or status.st_size < self._end:  # another file, or one that was cut
                self._inode, self._end, self._acts, self._counts = status.st_ino, 0, set(), Counter()
            stream.seek(self._end)
            while (line := stream.readline(LONGEST_LINE)) and (line[-1:] == b"\n" or len(line) == LONGEST_LINE):
                self._end += len(line)
                new = _acts(line) - self._acts if b'"action_name"' in line else set()
                self._acts |= new
                self._counts.update(name for *_, name in new)
        return Feedback(*(self._counts[one.name] for one in fields(Feedback)))

    def follow(self, searcher: Searcher) -> Searcher:
        """The searcher under the weights that its system's rule gives; itself with too little feedback."""
        feedback = self.feedback()
        at, moved = self._moved.get(searcher, (None, None))
        if at != feedback:
            config, said = adapt_system(searcher.config, feedback), f"weights moved by {feedback}"
            moved = None if config == searcher.config else searcher.with_config(config, said)
            self._moved[searcher] = feedback, moved
        return moved or searcher


def _acts(line: bytes) -> set[tuple[str, str, str]]:
    """The acts that a line of a log tells of, as search, entry and action; none of a broken line."""
    try:
        told = json.loads(line)
        search, acts = str(told["query_id"]), told["actions"]
        return {(search, str(act.get("object_id")), str(act["action_name"])) for act in acts}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return set()


def _moved(strategy: Expr, shift: float, rule: AdaptiveRule) -> Expr:
    """The strategy with the signal's weight moved by `shift`, within the bounds of the rule."""
    described = strategy.describe()
    terms = described.terms if isinstance(described, Linear) and described.scale != RECIPROCAL else ()
    weights = [term.weight for term in terms if _name(term) == rule.signal]
    held = sum(term.weight for term in terms if _name(term) in rule.held)
    rest = sum(term.weight for term in terms if _name(term) not in (rule.signal, *rule.held))
    if len(weights) != 1 or not rest or abs(weights[0] + held + rest - rule.total) > MAX_SUM_ERROR:
        others = f"another signal that is not {' or '.join(rule.held)}" if rule.held else "another signal"
        raise ConfigError(
            f"strategy {quote(str(strategy), 200)} cannot follow feedback; write a weighted_sum of "
            f"{rule.signal}, once, and {others}, with weights that sum to {rule.total:g}"
        )
    weight = min(max(weights[0] + shift, rule.least), 1 - held)
    scale = (1 - held - weight) / rest

    def follow(term: Term) -> float:
        if _name(term) == rule.signal:
            return weight
        return term.weight if _name(term) in rule.held else term.weight * scale

    return strategy.with_weights([follow(term) for term in terms])


def _name(term: Term) -> str:
    """The signal of a term; empty for a fusion inside."""
    return term.expr.name if isinstance(term.expr, Signal) else ""
