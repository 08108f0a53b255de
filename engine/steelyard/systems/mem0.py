"""mem0: what is similar enough is ranked by the mean of its similarity and of its keywords' score in 0..1."""

from steelyard.base.fields import format_time
from steelyard.fusion import parse_strategy
from steelyard.memory.entry import Hit
from steelyard.retrievers.kinds import Reading
from steelyard.systems.base import OWN_INDEX, ResultForms, SearchSettings, System

AVERAGE = 256
"""The length that the keyword model of mem0's usual store takes as average, whatever the memories (fastembed)."""


def result(hit: Hit) -> dict[str, object]:
    """Show a memory as the real program does; the keys of a scope and other metadata only where it has them."""
    entry = hit.entry
    dates = {name: format_time(getattr(entry, name)) or None for name in ("created_at", "updated_at")}
    shown = {"id": entry.id, "memory": entry.text, **dates, "score": hit.score}
    return shown | ({"metadata": dict(entry.extra)} if entry.extra else {})


DOCUMENTED = System(
    name="mem0",
    reading=Reading(index=OWN_INDEX, recipe="{title}\n{text}", valid_only=True),
    searching=SearchSettings(
        strategy=parse_strategy("gated(vector, bm25, least=0.1)"),
        retrievers=("vector", "bm25"),
        depth=lambda limit: max(4 * limit, 60),
        limit=20,
        parameters={"bm25": {"mean_length": AVERAGE}},
        survives=(),
    ),
    showing=ResultForms(result),
)
