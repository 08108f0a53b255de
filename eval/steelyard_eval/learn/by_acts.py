"""What acts say that candidates gain over today's ranking, in place of a metric of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from steelyard.base.arrays import Floats, Ints
from steelyard.config.search_config import SearchConfig
from steelyard_eval.decide.grid import Block, Grid, Singles
from steelyard_eval.learn.first_ten import first_rows, rows_of, rows_of_form, rows_shown, unlabelled
from steelyard_eval.learn.gains import ClickGains
from steelyard_eval.tune.layout import Measured, serving


@dataclass(frozen=True)
class ByActs:
    """A scale for `tune.layout.laid_over`.

    Attributes
    ----------
    learned : what the acts say.
    base : float64[Q], what today's lists are worth.
    """

    learned: ClickGains
    base: Floats

    @classmethod
    def over(cls, learned: ClickGains, recordings: Sequence[Measured], today: SearchConfig) -> ByActs:
        """The scale on which `today` is 0 on every query."""
        table = serving(recordings, today).table
        return cls(learned, learned.values(rows_shown(table, today, rows_of(learned.pairs, table))))

    def grid(self, known: Measured, settings: Sequence[SearchConfig], columns: int) -> Grid:
        """So many candidates around each of some settings; ConfigError where weights cannot be searched."""
        row_of, found = rows_of(self.learned.pairs, known.table), []
        for depths, alike in groupby(settings, key=lambda config: config.depths):
            masked = known.table.at_depth(depths)
            for config in alike:
                form = unlabelled(masked, config)
                block = Block.of(config, form, columns // len(settings))
                found.append(self._measured(block, rows_of_form(form, block.weights, row_of)))
        return Grid.joined(found)

    def alone(self, known: Measured, config: SearchConfig) -> Grid:
        """One configuration as it is."""
        top = rows_shown(known.table, config, rows_of(self.learned.pairs, known.table))
        return self._measured(Block.alone(config), top[None])

    def gains(self, recordings: Sequence[Measured], blocks: Sequence[Block]) -> Singles:
        """float32[C, Q]: what candidates gain that were laid out on other queries."""
        served = [(serving(recordings, block.config).table, block) for block in blocks]
        found = []
        for _, alike in groupby(served, key=lambda one: id(one[0])):
            tables, own = zip(*alike, strict=True)
            found += [
                self._gain(top) for top in first_rows(tables[0], own, rows_of(self.learned.pairs, tables[0]))
            ]
        return np.concatenate(found)

    def _measured(self, block: Block, top: Ints) -> Grid:
        gain = self._gain(top)
        return Grid((block,), gain, gain)

    def _gain(self, top: Ints) -> Singles:
        return (self.learned.values(top) - self.base).astype(np.float32)
