"""One configuration over its recording, with its weights free: measured at once, and exactly along each weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.table.signal_table import SignalTable
from steelyard_eval.candidates.curve import Curve, Objective, sweep
from steelyard_eval.candidates.form import Form
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.recording.replay import replay


@dataclass(frozen=True)
class Trial:
    """A configuration whose weights may be moved, over the recording of Q judged queries.

    `form` and `objective` are None for a configuration that is no linear form once its parameters are fixed, such
    as one that re-ranks: it is replayed for each weight, and has no curves.
    """

    config: SearchConfig
    table: SignalTable
    judgments: Judgments
    measure: Measure
    form: Form | None
    objective: Objective | None

    @classmethod
    def of(cls, config: SearchConfig, table: SignalTable, judgments: Judgments, measure: Measure) -> Trial:
        """Compile a configuration over its recording; ConfigError when the recording lacks what it needs."""
        effective = replace(config, strategy=config.effective, by_intent={})
        replay(table.slice(0, 1), effective)  # refuses what was not recorded
        try:
            form = Form.of(table, effective, effective.strategy, judgments)
            return cls(effective, table, judgments, measure, form, Objective.of(form, measure))
        except ConfigError:
            return cls(effective, table, judgments, measure, None, None)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights as the configuration has them."""
        return self.config.strategy.weights

    def values(self, weights: Sequence[float]) -> Floats:
        """float64[Q]: the measure of every query under these weights."""
        if self.form is None or self.objective is None:
            run = replay(self.table, self.written(weights))
            return run.metrics(self.judgments, [self.measure])[self.measure]
        return self.objective.values(self._columns(self.form, weights))

    def curve(self, at: int, weights: Sequence[float], top: float) -> Curve | None:
        """The mean along one weight from 0 to `top`, the others as they are; exact, None without a form."""
        if self.form is None or self.objective is None:
            return None
        start = self._columns(self.form, [0.0 if slot == at else weight for slot, weight in enumerate(weights)])
        return sweep(self.objective, start, (self.form.slot == at).astype(np.float64), 0.0, top)

    def written(self, weights: Sequence[float]) -> SearchConfig:
        """The configuration with these weights."""
        return self.config.with_strategy(self.config.strategy.with_weights(np.array(weights)))

    @staticmethod
    def _columns(form: Form, weights: Sequence[float]) -> Floats:
        spread: Floats = form.spread(np.array([weights], dtype=np.float64))[0]
        return spread
