"""The recording of system-spec-kit's code, and what it means to agree with it."""

import gzip
import json
from functools import cached_property

from verdicts import EXACT, Rule, counted, letters, same

from steelyard.base.fields import parse_time
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.memory.entry import Entry
from steelyard.stores.sqlite import Vault

ARCHIVED = "archived"


def close(expected, here, tolerance=EXACT):
    """Numbers by name."""
    if expected.keys() != here.keys():
        return same(sorted(map(str, expected)), sorted(map(str, here)))
    errors = {name: abs(expected[name] - here[name]) for name in expected}
    worst = max(errors, key=errors.get, default=None)
    if worst is None or errors[worst] <= tolerance:
        return "", errors.get(worst, 0.0)
    return f"differs: {worst} is {expected[worst]}, here {here[worst]}", errors[worst]


def ranked(expected, here, tolerance=EXACT):
    """Two lists of (id, score), best first: equal scores in each place; ids where no others share their score."""
    if len(expected) != len(here):
        return same([id_ for id_, _ in expected], [id_ for id_, _ in here])
    error = max((abs(one - other) for (_, one), (_, other) in zip(expected, here, strict=True)), default=0.0)
    if error > tolerance:
        return f"differs: scores {expected[:5]} expected, {here[:5]} here", error
    ours = dict(here)
    last = expected[-1][1] if expected else 0.0
    for id_, score in expected:
        if id_ not in ours and abs(score - last) > tolerance:
            return f"differs: {id_} is missing", error
        if id_ in ours and abs(ours[id_] - score) > tolerance:
            return f"differs: {id_} has {score}, here {ours[id_]}", error
    return "", error


def numbered(id_):
    """Our id of a memory, so that ties by id are by number."""
    return f"{int(id_):04}"


RULE = Rule("rule", 16, counted(16, letters))


class Fixture:
    """The two generations, and the memories of the second one in a vault."""

    def __init__(self, folder):
        with gzip.open(folder / "speckit.json.gz") as stream:
            recorded = json.load(stream)
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
        """All memories with their vectors."""
        store = Vault(":memory:")
        store.upsert(self.entries)
        embed_missing(store, RULE, space_of(RULE, "text", "{title}\n{text}"))
        return store


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
