"""What contenders show and what they keep silent about: answers, false answers, words.

Queries that nothing answers have no nDCG: what can be measured of them is whether anything is shown. Words are
those of the texts in a list, which an agent's context has to hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.finish import Floor
from steelyard_eval.compare.arena import ArenaRow, Unfloored
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.runs import Ranked
from steelyard_eval.measures.statistics import exact_interval

Record = dict[str, Any]
CURVE = 21
"""Floors of the curve of what is lost against what is answered."""


def silences(dataset: Dataset, rows: Sequence[ArenaRow], unanswered: Sequence[ArenaRow]) -> list[Record]:
    """A row for each contender; none where nothing has a floor and every query has an answer.

    `rows` are the lists of the judged queries, `unanswered` those of the queries that nothing answers.
    """
    if not unanswered and not any(_floors(row) for row in rows):
        return []
    words = {entry.id: len(entry.text.split()) for entry in dataset.entries}
    others = {row.label: row.ranked for row in unanswered}
    return [_row(row, others.get(row.label), words) | _dropped(row, words, dataset) for row in rows]


def _floors(row: ArenaRow) -> list[str]:
    if not isinstance(row.contender, Contender):
        return []
    return [str(stage) for stage in row.contender.config.finish if isinstance(stage, Floor)]


def _row(row: ArenaRow, nothing: Ranked | None, words: dict[str, int]) -> Record:
    asked, answered, shown = _shown(row.ranked, words)
    found: Record = {"label": row.label, "floor": ", ".join(_floors(row)) or None, "queries": asked}
    found |= {"answered": answered, "silenced": asked - answered, "words": shown}
    if nothing is None:
        return found
    asked, answered, shown = _shown(nothing, words)
    low, high = exact_interval(answered, asked)
    false = {"none": asked, "false_answers": answered, "low": low, "high": high, "false_words": shown}
    return found | false


def _dropped(row: ArenaRow, words: dict[str, int], dataset: Dataset) -> Record:
    """What a floor saves and loses: a share of the words, and in the mean of the relevant entries of a list."""
    if row.unfloored is None:
        return {}
    whole = row.unfloored.ranked
    hits = [(whole.queries[q], whole.entries[e]) for q, e in zip(_query(whole), whole.entry.tolist(), strict=True)]
    relevant = np.array([dataset.qrels.get(query, {}).get(id_, 0) >= 1 for query, id_ in hits], dtype=bool)
    sizes = np.array([words.get(id_, 0) for _, id_ in hits], dtype=np.float64)
    floors = np.unique([row.unfloored.least, *np.quantile(row.unfloored.score, np.linspace(0, 1, CURVE))])
    curve = [_point(row.unfloored, relevant, sizes, float(floor)) for floor in floors if len(hits)]
    own = next((point for point in curve if point["floor"] == row.unfloored.least), {"lost": 0.0, "words": 1.0})
    return {"lost": own["lost"], "saved": 1 - own["words"], "curve": curve}


def _query(lists: Ranked) -> Indices:
    """int64[R]: the query of each place."""
    return np.repeat(np.arange(len(lists.queries)), np.diff(lists.offsets))


def _point(whole: Unfloored, relevant: Bools, sizes: Floats, floor: float) -> Record:
    """What one floor loses (risk), and the shares of questions (coverage) and of words that it leaves."""
    query, count, stays = _query(whole.ranked), len(whole.ranked.queries), whole.score >= floor
    held, left = (np.bincount(query[rows], minlength=count) for rows in (relevant, relevant & stays))
    lost = 1 - left[held > 0] / held[held > 0]
    total = sizes.sum()
    return {
        "floor": floor,
        "lost": float(lost.mean()) if len(lost) else 0.0,
        "answered": len(np.unique(query[stays])) / max(count, 1),
        "words": float(sizes[stays].sum() / total) if total else 0.0,
    }


def _shown(lists: Ranked, words: dict[str, int]) -> tuple[int, int, float]:
    """How many queries there are, how many show anything, and the mean number of words that a query shows."""
    asked = len(lists.queries)
    total = sum(words.get(lists.entries[entry], 0) for entry in lists.entry.tolist())
    return asked, int(np.count_nonzero(np.diff(lists.offsets))), total / max(asked, 1)
