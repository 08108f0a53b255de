"""What can be moved in a strategy, and the list of one query, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from steelyard.config.search_config import SearchConfig
from steelyard.fusion import Expr, compile_plan
from steelyard.live.search import rank_table
from steelyard.memory.entry import Entry
from steelyard.table.signal_table import SignalTable
from steelyard_eval.explain.view import contributions
from steelyard_eval.recording.replay import opening

TOPS = (1.0, 2.0, 5.0)
"""The ends of sliders, times powers of ten."""
STEPS = 100
"""Steps from one end of a slider to the other."""


def weight_names(strategy: Expr) -> list[str]:
    """What each weight of a strategy multiplies, in the order of `strategy.weights`; distinct.

    >>> from steelyard.fusion import parse_strategy
    >>> weight_names(parse_strategy("tiered(fts, then=weighted_sum(0.3*fts, 0.7*vector))"))
    ['fts', 'vector']
    """
    names = strategy.weight_names
    return [_distinct(names, i) for i in range(len(names))]


def top_of(weights: Sequence[float]) -> float:
    """Where sliders end: the first of 1, 2, 5, 10, 20 ... above the largest weight.

    >>> top_of([0.3, 0.7]), top_of([1.0, 1.5]), top_of([4.0, 12.0])
    (1.0, 2.0, 20.0)
    """
    largest = max(weights, default=0.0)
    return next(top * 10.0**power for power in count() for top in TOPS if top * 10.0**power > largest)


def _distinct(names: Sequence[str], at: int) -> str:
    before = names[:at].count(names[at])
    return f"{names[at]} ({before + 1})" if before else names[at]


SHOWN = 10
TEXT = 160
"""Characters of the text of an entry."""


def top(
    table: SignalTable,
    config: SearchConfig,
    query: int,
    entries: Mapping[str, Entry],
    grades: Mapping[str, int],
    before: Sequence[str],
) -> list[dict[str, object]]:
    """The first places of one query, by the engine's own fusion and finish.

    Each has its id, title, grade (None: not judged), score, place in the list `before` (None: not in it), and its
    parts: what each signal adds to the score, as pairs of name and number.
    """
    masked, ranking = rank_table(table.slice(query, query + 1), config, config.effective)
    plan = compile_plan(masked, config.effective)
    rows = []
    for row, score in zip(ranking.row[:SHOWN].tolist(), ranking.score[:SHOWN].tolist(), strict=True):
        id_ = masked.entries[masked.entry[row]]
        tree = plan.explain(row)
        rows.append(
            {
                **described(id_, entries, grades),
                "score": score,
                "before": before.index(id_) + 1 if id_ in before else None,
                "parts": [] if tree is None else _parts(*contributions(tree)),
            }
        )
    return rows


def described(id_: str, entries: Mapping[str, Entry], grades: Mapping[str, int]) -> dict[str, object]:
    """An entry as it is listed; one that a foreign list names and the data set lacks has its id for a title."""
    entry = entries.get(id_)
    title = id_ if entry is None else opening(entry)
    text = "" if entry is None else entry.text[:TEXT]
    return {"id": id_, "title": title, "text": text, "grade": grades.get(id_)}


def _parts(terms: Sequence[Mapping[str, Any]], factor: Mapping[str, Any] | None) -> list[list[Any]]:
    times = 1.0 if factor is None else factor["value"]
    return [[term["signal"], term["contribution"] * times] for term in terms]
