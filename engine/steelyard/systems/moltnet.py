"""MoltNet: fuses keywords and vectors by rank, adds recency and importance, and applies exclusions exactly."""

import math
from dataclasses import replace

from steelyard.finish import Cut, Drop
from steelyard.fusion import parse_strategy
from steelyard.grammar import number_text
from steelyard.memory.entry import Entry, Hit
from steelyard.retrievers.kinds import Reading
from steelyard.stores.base import TextSearch
from steelyard.systems.base import ResultForms, SearchSettings, System, shown_fields

HALF_LIFE = number_text(math.log(0.5) / math.log(0.99))
"""The number of hours at which 0.99^hours is 0.5, about 69."""

_RECENCY = f"recency(half_life={HALF_LIFE}h, since=access)"


def text(entry: Entry) -> str:
    """Return the text for full-text search: title, content and tags."""
    return " ".join((entry.title, entry.text, *entry.tags))


def result(hit: Hit) -> dict[str, object]:
    """Show the fields of a diary entry, with the combined score."""
    form = "id diary_id=vault title content=text tags entry_type=type importance combined_score=score created_at"
    return shown_fields(hit, f"{form} last_accessed_at")


DOCUMENTED = System(
    name="moltnet",
    reading=Reading(index=TextSearch(text, ("title", "text", "tags")), recipe="{title}\n{text}\ntag:{tag}"),
    searching=SearchSettings(
        strategy=parse_strategy(f"weighted_sum(1*rrf(vector, fts, k=60), 0*{_RECENCY}, 0*importance)"),
        retrievers=("fts", "vector"),
        depth=lambda limit: 2 * limit,
        # What the query excludes is dropped from the fused list, which is not filled up.
        finish=lambda limit: (Drop("lexical"), Cut(limit)),
    ),
    showing=ResultForms(result),
)

SHIPPED = replace(DOCUMENTED, profile="shipped")  # its code does what its document says
