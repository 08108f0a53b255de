"""What contenders show and what they keep silent about: answers, false answers, words.

Queries that nothing answers have no nDCG: what can be measured of them is whether anything is shown. Words are
those of the texts in a list, which an agent's context has to hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.finish import Floor
from steelyard_eval.compare.arena import ArenaRow
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.runs import Ranked
from steelyard_eval.measures.statistics import exact_interval

Record = dict[str, Any]


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
    lost = []
    for query, whole, shown in zip(row.ranked.queries, row.unfloored.lists(), row.ranked.lists(), strict=True):
        relevant = {id_ for id_, grade in dataset.qrels.get(query, {}).items() if grade >= 1}.intersection(whole)
        left = relevant.intersection(shown)
        lost += [1 - len(left) / len(relevant)] if relevant else []
    before, after = (_shown(lists, words)[2] for lists in (row.unfloored, row.ranked))
    return {"lost": float(np.mean(lost or [0.0])), "saved": 1 - after / before if before else 0.0}


def _shown(lists: Ranked, words: dict[str, int]) -> tuple[int, int, float]:
    """How many queries there are, how many show anything, and the mean number of words that a query shows."""
    asked = len(lists.queries)
    total = sum(words.get(lists.entries[entry], 0) for entry in lists.entry.tolist())
    return asked, int(np.count_nonzero(np.diff(lists.offsets))), total / max(asked, 1)
