"""What was found in a log, and what was set aside: counted by rule, with the first lines of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from steelyard.base.escape import visible
from steelyard_eval.learn.clients import DAY

EXAMPLES = 3
"""Lines that are named for each rule."""
RULES = 100
"""Rules that are told apart; what breaks yet another is counted as one."""


@dataclass
class Census:
    """Counts of lines and impressions.

    `rejected` counts what was not used, by rule; `disordered` the impressions that are more than a day out of
    order, which are used.
    """

    lines: int = 0
    impressions: int = 0
    acts: int = 0
    simulated: bool = False
    disordered: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[int]] = field(default_factory=dict)
    first_time: float | None = None
    last_time: float | None = None

    def set_aside(self, rule: str, line: int, count: int = 1) -> None:
        """Count something that is not used."""
        if rule not in self.rejected and len(self.rejected) >= RULES:
            rule = "breaks some other rule"
        self.rejected[rule] += count
        lines = self.first.setdefault(rule, [])
        if len(lines) < EXAMPLES:
            lines.append(line)

    def saw(self, time: float) -> None:
        """Note the time of an impression."""
        self.disordered += time < (self.last_time or 0.0) - DAY
        self.first_time = time if self.first_time is None else min(self.first_time, time)
        self.last_time = time if self.last_time is None else max(self.last_time, time)

    @property
    def ordered(self) -> list[tuple[int, str, list[int]]]:
        """What was set aside: how often, the rule, the first lines; most frequent first."""
        rows = sorted(self.rejected.items(), key=lambda item: (-item[1], item[0]))
        return [(count, visible(rule), self.first[rule]) for rule, count in rows]
