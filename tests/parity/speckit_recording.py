"""The recording of system-spec-kit's code, and what it means to agree with it."""

from functools import cached_property

from verdicts import EXACT, Rule, compare, counted, letters, recording

from steelyard.base.fields import parse_time
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.memory.entry import Entry
from steelyard.stores.sqlite import Vault

ARCHIVED = "archived"


def ranked(expected, here, tolerance=EXACT):
    """Two lists of (id, score): equal scores in each place; ids where no others share their score."""
    return compare(expected, here, tolerance, 1.0, tie=tolerance, open_end=True)


def numbered(id_):
    """Our id of a memory, so that ties by id are by number."""
    return f"{int(id_):04}"


RULE = Rule("rule", 16, counted(16, letters))


class Fixture:
    """The two generations, and the memories of the second one in a vault."""

    def __init__(self, folder):
        recorded = recording(folder, "speckit")
        self.shipped, self.js = recorded["seed_version"], recorded["js_version"]
        self.now = self.shipped["meta"]["now_ms"] / 1000

    @cached_property
    def entries(self):
        return [memory(record) for record in self.shipped["memories"]]

    @cached_property
    def active(self):
        """What is not archived, as (id, indexed text)."""
        return [entry for entry in self.entries if entry.visibility != ARCHIVED]

    @cached_property
    def vault(self):
        store = Vault(":memory:")
        store.upsert(self.entries)
        embed_missing(store, RULE, space_of(RULE, "text", "{title}\n{text}"))
        return store


fixture = Fixture


def memory(record):
    return Entry(
        id=numbered(record["id"]),
        title=record["title"],
        text=record["content_text"],
        tags=tuple(record["trigger_phrases"]),
        uri=record["file_path"],
        project=record["spec_folder"],
        importance=record["importance_weight"] * 10,
        importance_tier=record["importance_tier"],
        document_type=record["document_type"],
        visibility=ARCHIVED if record["is_archived"] else "",
        created_at=parse_time(record["created_at"]),
        updated_at=parse_time(record["updated_at"]),
        half_life_days=1e12,  # oracles/README.md: "decay half-life set to 1e12 days"
    )
