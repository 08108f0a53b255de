"""What contenders show and what they keep silent about: answers, false answers, words.

Queries that nothing answers have no nDCG: what can be measured of them is whether anything is shown. Words are
those of the texts in a list, which an agent's context has to hold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.finish import Floor
from steelyard_eval.common.documents.results import DroppedPart, FloorPoint, SilenceRecord
from steelyard_eval.compare.arena import ArenaRow, Unfloored
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.judgments import lost_shares
from steelyard_eval.measures.paired import exact_interval
from steelyard_eval.measures.runs import Ranked

CURVE = 21
"""Floors of the curve of what is lost against what is answered."""


def silences(dataset: Dataset, rows: Sequence[ArenaRow]) -> list[SilenceRecord]:
    """A row for each contender; none where nothing has a floor and every query has an answer."""
    if not any(row.silent or _floors(row) for row in rows):
        return []
    words = {entry.id: len(entry.text.split()) for entry in dataset.entries}
    return [{**_row(row, words), **_dropped(row, words, dataset)} for row in rows]


def _floors(row: ArenaRow) -> list[str]:
    if not isinstance(row.contender, Contender):
        return []
    return [str(stage) for stage in row.contender.config.finish if isinstance(stage, Floor)]


def _row(row: ArenaRow, words: dict[str, int]) -> SilenceRecord:
    asked, answered, shown = _shown(row.ranked, words)
    record: SilenceRecord = {
        "label": row.label,
        "floor": ", ".join(_floors(row)) or None,
        "queries": asked,
        "answered": answered,
        "silenced": asked - answered,
        "words": shown,
    }
    if row.silent is None:
        return record
    asked, answered, shown = _shown(row.silent, words)
    low, high = exact_interval(answered, asked)
    return {**record, "none": asked, "false_answers": answered, "low": low, "high": high, "false_words": shown}


def _dropped(row: ArenaRow, words: dict[str, int], dataset: Dataset) -> DroppedPart:
    """What a floor saves and loses: a share of the words, and in the mean of the relevant entries of a list."""
    if row.unfloored is None:
        return {}
    whole = row.unfloored.ranked
    sizes = np.array([words.get(whole.entries[entry], 0) for entry in whole.entry.tolist()], dtype=np.float64)
    if not len(sizes):
        return {"lost": 0.0, "saved": 0.0, "curve": []}
    floors = np.unique([row.unfloored.least, *np.quantile(row.unfloored.score, np.linspace(0, 1, CURVE))])
    curve = _curve(row.unfloored, whole.relevant(dataset.qrels), sizes, floors)
    current = next(point for point in curve if point["floor"] == row.unfloored.least)
    return {"lost": current["lost"], "saved": 1 - current["words"], "curve": curve}


def _curve(whole: Unfloored, relevant: Bools, sizes: Floats, floors: Floats) -> list[FloorPoint]:
    """What each floor loses (risk), and the shares of questions (coverage) and of words that it leaves."""
    query, count, total = whole.ranked.query, len(whole.ranked.queries), float(sizes.sum())
    lost = lost_shares(query[relevant], whole.score[relevant, None] < floors)
    stays = whole.score[:, None] >= floors
    return [
        {
            "floor": floor,
            "lost": float(lost[:, column].mean()) if len(lost) else 0.0,
            "answered": len(np.unique(query[stays[:, column]])) / count,
            "words": float(sizes[stays[:, column]].sum() / total) if total else 0.0,
        }
        for column, floor in enumerate(floors.tolist())
    ]


def _shown(lists: Ranked, words: dict[str, int]) -> tuple[int, int, float]:
    """How many queries there are, how many show anything, and the mean number of words that a query shows."""
    asked = len(lists.queries)
    total = sum(words.get(lists.entries[entry], 0) for entry in lists.entry.tolist())
    return asked, int(np.count_nonzero(np.diff(lists.offsets))), total / max(asked, 1)
