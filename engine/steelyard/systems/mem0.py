"""mem0: what is similar enough is ranked by the mean of its similarity and of its keywords' score in 0..1."""

from steelyard.base.fields import format_time
from steelyard.memory.entry import Hit
from steelyard.systems.base import generations


def result(hit: Hit) -> dict[str, object]:
    """Show a memory as the real program does; the keys of a scope and other metadata only where it has them."""
    entry = hit.entry
    dates = {name: format_time(getattr(entry, name)) or None for name in ("created_at", "updated_at")}
    shown = {"id": entry.id, "memory": entry.text, **dates, "score": hit.score}
    return shown | ({"metadata": dict(entry.extra)} if entry.extra else {})


PROFILES = (DOCUMENTED,) = generations("mem0", globals())
