"""What age buries: relevant entries that nothing but their age keeps out of the first ten.

The configuration is replayed as if every entry were new. Filters and validity stay, and so does what a retriever
reads of dates while it searches.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from steelyard.base.fields import format_time
from steelyard.config import SearchConfig
from steelyard.memory.entry import Entry
from steelyard.signals import PRIORS
from steelyard.table.signal_table import SignalTable
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.recording.replay import replay
from steelyard_eval.result.structs import Cell, Message, Table

DATES = frozenset({"created_at", "updated_at", "last_accessed_at", "last_review"})
PLACES = 10
MAX_LISTED = 20
COLUMNS = ["buried_by", "query", "entry", "grade", "dated", "place", "as_new"]


def as_new(table: SignalTable) -> SignalTable:
    """The table as if all that happened to its entries had happened at the time of the last query."""
    facts, clock = table.entry_facts, table.query_facts.numbers.get("clock", np.zeros(0)).max(initial=0.0)
    dates = {name: np.full_like(values, clock) for name, values in facts.numbers.items() if name in DATES}
    return replace(table, entry_facts=replace(facts, numbers={**facts.numbers, **dates}))


def dated(entry: Entry | None) -> str:
    """The day of an entry's last update, else of its creation; empty where neither is known."""
    return format_time(entry.updated_at or entry.created_at)[:10] if entry else ""


@dataclass(frozen=True)
class AgeEffect:
    """What age does to a contender's first places: rows of `COLUMNS`, and how many relevant entries it lifts."""

    label: str
    buried: list[list[Cell]]
    lifted: int

    @classmethod
    def of(
        cls, label: str, ranked: Ranked, table: SignalTable, config: SearchConfig, dataset: Dataset
    ) -> "AgeEffect":
        """By a replay beside the lists as they are, `ranked`; nothing of a strategy that reads no facts."""
        if not config.effective.signals & PRIORS.keys():
            return cls(label, [], 0)
        now, then = (_relevant_places(own, dataset) for own in (ranked, replay(as_new(table), config).ranked))
        entries = {entry.id: entry for entry in dataset.entries}
        lost = [pair for pair, place in then.items() if place <= PLACES < now.get(pair, PLACES + 1)]
        lifted = sum(place <= PLACES < then.get(pair, PLACES + 1) for pair, place in now.items())
        rows: list[list[Cell]] = [
            [label, *pair, dataset.qrels[pair[0]][pair[1]], dated(entries.get(pair[1])), now.get(pair), then[pair]]
            for pair in lost
        ]
        return cls(label, sorted(rows, key=lambda row: (-int(str(row[3])), row[4:5], row[1:3])), lifted)


def _relevant_places(ranked: Ranked, dataset: Dataset) -> dict[tuple[str, str], int]:
    at = np.flatnonzero(ranked.relevant(dataset.qrels))
    query = ranked.query[at]
    places = (at - ranked.offsets[query] + 1).tolist()
    pairs = zip(query.tolist(), ranked.entry[at].tolist(), places, strict=True)
    return {(ranked.queries[q], ranked.entries[e]): place for q, e, place in pairs}


def buried(effects: Iterable[AgeEffect]) -> tuple[list[Message], list[Table]]:
    """A sentence on all contenders whose age buries something, and a table of what; neither without any."""
    some = [one for one in effects if one.buried]
    if not some:
        return [], []
    counts = [f"{one.label} loses {len(one.buried)}, gains {one.lifted}" for one in some]
    oldest = min(str(row[4]) for one in some for row in one.buried)
    rows = [row for one in some for row in one.buried[:MAX_LISTED]]
    return [Message("buried", {"counts": counts, "oldest": oldest})], [Table("buried", COLUMNS, rows)]
