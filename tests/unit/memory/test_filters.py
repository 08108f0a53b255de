"""Scopes in SQL and in Python: the same entries, for random filters over random entries.

The expected entries come from `holds`, which reads the JSON form by its own sentences and shares no code
with either.
"""

import json
import random

import pytest

from steelyard.base.errors import ConfigError
from steelyard.memory.entry import Entry, Relation
from steelyard.memory.query import Filters, valid_at, visible_to
from steelyard.stores.sqlite import Vault

TAGS = ("auth", "jwt", 'quo"te', "é")
DAYS = (None, 0.0, 10.0, 20.0, 30.0)


def random_entry(rng, number):
    return Entry(
        f"e{number}",
        type=rng.choice(["", "rule", "pattern"]),
        vault=rng.choice(["v1", "v2", ""]),
        tenant=rng.choice(["t1", "t2", ""]),
        tags=tuple(rng.sample(TAGS, rng.randrange(4))),
        importance=rng.choice([None, 1.0, 5.0]),
        created_at=rng.choice(DAYS),
        valid_from=rng.choice(DAYS),
        valid_until=rng.choice(DAYS),
    )


def random_asked(rng):
    asked = {}
    if rng.random() < 0.5:
        asked["type"] = rng.choice(["rule", ["rule", "pattern"], {"none": ["rule"]}, {"none": ["rule", ""]}])
    if rng.random() < 0.5:
        asked["tags"] = rng.choice(
            [
                ["auth"],
                ["auth", "jwt"],
                {"none": ["é"]},
                {"all": ['quo"te'], "none": ["jwt"]},
                {"any": ["é", "jwt"]},
            ]
        )
    if rng.random() < 0.5:
        asked["created_at"] = rng.choice(
            [{"from": 10}, {"before": 20}, {"after": 10, "until": 20}, {"from": "1970-01-01"}, {"none": [10]}]
        )
    return asked


def holds(entry, asked):
    kind, tags, made = asked.get("type"), asked.get("tags"), asked.get("created_at")
    if isinstance(kind, str) and entry.type != kind:
        return False
    if isinstance(kind, list) and entry.type not in kind:
        return False
    if isinstance(kind, dict) and entry.type in kind["none"]:
        return False
    if isinstance(tags, list) and any(tag not in entry.tags for tag in tags):
        return False
    if isinstance(tags, dict):
        if any(tag not in entry.tags for tag in tags.get("all", [])):
            return False
        if any(tag in entry.tags for tag in tags.get("none", [])):
            return False
        if "any" in tags and not any(tag in entry.tags for tag in tags["any"]):
            return False
    at = entry.created_at
    if made == {"none": [10]}:
        return at != 10
    return made is None or (
        at is not None
        and at >= (0 if isinstance(made.get("from"), str) else made.get("from", 0))
        and at < made.get("before", 1e9)
        and at > made.get("after", -1)
        and at <= made.get("until", 1e9)
    )


@pytest.mark.parametrize("seed", range(30))
def test_sql_and_python_admit_the_same_entries(seed):
    rng = random.Random(seed)  # noqa: S311 -- reproducible, not secret
    entries = [random_entry(rng, number) for number in range(60)]
    with Vault(":memory:") as vault:
        vault.upsert(entries)
        for _ in range(10):
            asked = random_asked(rng)
            filters = Filters.of(asked)
            expected = {e.id for e in entries if holds(e, asked)}

            assert {e.id for e in vault.entries(filters)} == expected, asked
            assert {e.id for e in entries if not filters.failed(e)} == expected, asked


def test_a_window_holds_its_first_moment_and_not_its_last():
    # Soleri: valid_until null or > now, valid_from null or <= now (systems/soleri.md, section 3)
    entries = [
        Entry("always"),
        Entry("from-now", valid_from=10.0),
        Entry("until-now", valid_until=10.0),
        Entry("later", valid_from=11.0),
        Entry("inside", valid_from=9.0, valid_until=11.0),
    ]
    with Vault(":memory:") as vault:
        vault.upsert(entries)

        assert {e.id for e in vault.entries(valid_at(10.0))} == {"always", "from-now", "inside"}


def test_a_caller_sees_the_union_of_the_scopes():
    entries = [Entry("mine", vault="v1"), Entry("team", tenant="t1"), Entry("both", vault="v1", tenant="t1")]
    with Vault(":memory:") as vault:
        vault.upsert([*entries, Entry("foreign", vault="v2", tenant="t2"), Entry("nobody")])
        seen = visible_to({"vault": ("v1",), "tenant": ("t1",)})

        assert {e.id for e in vault.seen_by(seen).entries()} == {"mine", "team", "both"}
        for nothing in (visible_to({"vault": ()}), visible_to({})):
            assert list(vault.seen_by(nothing).entries()) == []
            assert all(nothing.failed(entry) for entry in entries)


def test_what_a_caller_may_see_is_no_filter():
    """An entry of another tenant would say that one of the caller's is superseded."""
    claim = Entry("theirs", tenant="b", relations=(Relation("supersedes", "ours"),))
    seen, current = visible_to({"tenant": ("a",)}), Filters.of({"superseded": False})
    with Vault(":memory:") as vault:
        vault.upsert([Entry("ours", tenant="a"), claim])
        asks = [lambda: current & seen, lambda: seen & current, lambda: list(vault.entries(seen))]
        for ask in [*asks, lambda: vault.count(seen), lambda: vault.within(["ours"], seen)]:
            with pytest.raises(ConfigError, match="it to seen_by"):
                ask()
        assert [e.id for e in vault.seen_by(seen).entries(current)] == ["ours"]


def test_only_an_accepted_successor_supersedes():
    # MoltNet: relation supersedes with status accepted; EchoVault: superseded_by
    entries = [
        Entry("named", superseded_by="x"),
        Entry("old"),
        Entry("disputed"),
        Entry("cited"),
        Entry("new", relations=(Relation("supersedes", "old", None, "accepted"),)),
        Entry(
            "draft", relations=(Relation("supersedes", "disputed", None, "proposed"), Relation("cites", "cited"))
        ),
    ]
    with Vault(":memory:") as vault:
        vault.upsert(entries)

        assert {e.id for e in vault.entries(Filters.of({"superseded": True}))} == {"named", "old"}
        assert len(list(vault.entries(Filters.of({"superseded": False})))) == 4


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"tags": {"all": ["a", "b"], "none": ["c"]}, "superseded": False},
        {"created_at": {"from": "2026-01-01", "before": 1.8e9}, "uri": {"prefix": "x://"}},
        {"importance": [1, 2]},
        {"severity": ""},
    ],
)
def test_the_json_form_reads_back(asked):
    filters = Filters.of(asked)
    assert Filters.of(json.loads(json.dumps(filters.to_json()))) == filters
