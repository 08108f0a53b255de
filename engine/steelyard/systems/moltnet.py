"""MoltNet: fuses keywords and vectors by rank, adds recency and importance, and applies exclusions exactly."""

from steelyard.memory.entry import Entry, Hit
from steelyard.stores.base import TextSearch
from steelyard.systems.base import generations, shown_fields


def text(entry: Entry) -> str:
    """Return the text for full-text search: title, content and tags."""
    return " ".join((entry.title, entry.text, *entry.tags))


def result(hit: Hit) -> dict[str, object]:
    """Show the fields of a diary entry, with the combined score."""
    form = "id diary_id=vault title content=text tags entry_type=type importance combined_score=score created_at"
    return shown_fields(hit, f"{form} last_accessed_at")


INDEX = TextSearch(text, ("title", "text", "tags"))
PROFILES = DOCUMENTED, SHIPPED, NEWEST = generations("moltnet", globals())
