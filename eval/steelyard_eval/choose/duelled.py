"""What the pairs judged by `steelyard judge` without contenders (by duel) say about the usual contenders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.memory.query import Query
from steelyard_eval.candidates.layout import Layout
from steelyard_eval.candidates.source import Source
from steelyard_eval.choose.few_labels import Few
from steelyard_eval.choose.pair_selection import DuelStanding
from steelyard_eval.choose.pairs import DuelPairs, contest, gains_of, graded


def duel_standing(few: Few, layout: Layout, source: Source, queries: Sequence[Query]) -> DuelStanding:
    """Where the contenders of `few` stand by the labels of a data set, over the queries that were laid out."""
    configs = {label: layout.grid.config(row) for label, row in zip(few.labels, few.rows.tolist(), strict=True)}
    pairs = DuelPairs.of({label: layout.replayed(config).ranked.lists() for label, config in configs.items()})
    known = [source.dataset.qrels.get(query.id, {}) for query in queries]
    grades = [known[q].get(entry, -1) for q, entry in zip(pairs.query.tolist(), pairs.entries, strict=True)]
    made = contest(pairs.labels, pairs.worth, pairs.query, source.model, source.dataset.sha256)
    return made.standing(gains_of(graded(np.array(grades), pairs.query, queries, source.dataset)))
