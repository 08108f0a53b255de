"""What the user runs today, as every candidate is measured against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.systems import SYSTEMS, find_system
from steelyard.table import Floats
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.recommend.layout import Layout
from steelyard_eval.recommend.priors import key_of
from steelyard_eval.recording.workspace import Workspace


@dataclass(frozen=True)
class Current:
    """The current contender on the Q queries.

    `config` is None where lists alone are known (a run, an endpoint, a function). `values` holds the metrics of
    the leaderboard, `composite` what candidates are judged on; float64[Q] each.
    """

    label: str
    config: SearchConfig | None
    values: dict[Measure, Floats]
    composite: Floats

    @property
    def key(self) -> str | None:
        """Its name in tables of other collections."""
        return None if self.config is None else key_of(self.config)


def read_current(text: str, limit: int, space: Workspace) -> tuple[str, SearchConfig]:
    """The label and the configuration of a contender: a system, an expression, a weights file."""
    if text.endswith(".json"):
        row = Contender(Path(text).name, SearchConfig.load(text).with_limit(limit), "weights")
    elif text in SYSTEMS or f"{text}:documented" in SYSTEMS:
        row = Contender(text.removesuffix(":documented"), find_system(text).config(limit, space.model), "system")
    else:
        plain = find_system("plain").config(limit, space.model)
        row = Contender(text, plain.with_strategy(parse_strategy(text)), "strategy")
    row, _ = usable(space, row)
    return row.label, row.config


def of_config(label: str, config: SearchConfig, layout: Layout, measures: Sequence[Measure]) -> Current:
    """A configuration as the current one, by replay."""
    _, composite = layout.measured(config, measures[0])
    return Current(label, config, layout.values(config, measures), composite)
