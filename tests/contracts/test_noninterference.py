"""What a caller may not see moves nothing that he sees: a scope is noninterference.

`tests/faults/noninterference.py` is the long run of the property at the end.
"""

from dataclasses import replace

import noninterference
import numpy as np
import pytest

from steelyard import Entry, Filters, Query, Searcher, Vault, find_system
from steelyard.base.errors import ConfigError
from steelyard.embedders.embed import space_of
from steelyard.memory.entry import Relation
from steelyard.memory.query import visible_to
from steelyard.stores.federation import Federation, Tier
from steelyard.systems import SYSTEMS

OURS = tuple(Entry(f"a{at}", text=f"token number{at} rotates", tenant="a") for at in range(5))
THEIRS = tuple(Entry(f"b{at}", text="token token rotates daily", tenant="b") for at in range(40))
CLAIM = Entry("b0", tenant="b", relations=(Relation("supersedes", "a0", None, "accepted"),))
TENANT_A = visible_to({"tenant": ("a",)})


class Same:
    """Every text has the same direction."""

    model, recipe = "same", None

    def embed(self, texts, kind="entry"):
        return np.ones((len(texts), 2), dtype=np.float32)

    def warm(self):
        return True


def embedded(store, entries):
    store.upsert(entries)
    space = space_of(Same(), "text", find_system("plain").reading.recipe)
    store.put_vectors(space, [e.id for e in entries], np.ones((len(entries), 2), dtype=np.float32))
    return store


def vault(*entries):
    return embedded(Vault(":memory:"), entries)


def seen(store, system, **how):
    searcher = Searcher(store, find_system(system).config(), Same(), clock=lambda: 0.0, visible=TENANT_A)
    result = searcher.search(Query("token rotates", **how))
    return [(hit.entry.id, hit.score, dict(hit.signals)) for hit in result.hits]


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_scores_do_not_depend_on_what_a_neighbour_stores(name):
    """FTS5 counts words over a whole vault, so the words of b could be probed through the scores of a."""
    alone, beside = (seen(vault(*entries), name) for entries in (OURS, (*OURS, *THEIRS)))
    assert alone == beside
    assert alone


def test_a_neighbour_supersedes_nothing():
    for name in ("fts", "moltnet"):
        filters = Filters.of({"superseded": False})
        assert "a0" in [id_ for id_, _, _ in seen(vault(*OURS, CLAIM), name, filters=filters)]


def test_a_hidden_copy_hides_no_copy_of_another_tier():
    """Of an entry that several tiers hold the first tier's copy stands, if the caller may see it."""
    first, second = vault(replace(OURS[0], tenant="b")), vault(*OURS)
    federation = Federation([Tier("agent", first), Tier("project", second)])
    assert "a0" in [id_ for id_, _, _ in seen(federation, "soleri")]


def test_vectors_of_a_neighbour_are_no_vectors_of_ours():
    """A strategy that needs vectors falls back to keywords where none is visible, whatever others hold."""
    store = Vault(":memory:")
    store.upsert(OURS)
    before = seen(store, "plain")
    assert seen(embedded(store, THEIRS), "plain") == before


@pytest.mark.parametrize("others", [THEIRS, ()])
def test_what_is_visible_names_nothing_else(others):
    """Whether a target is hidden or nowhere cannot be told; those that are visible, and addresses, stay."""
    links = ["a1", "b1", "https://example.org/b1", {"target": "b2", "note": "x"}, {"target": "a2"}]
    extra = {"links": links, "parent_id": "b4", "note": "b5"}
    relations = (Relation("supports", "a1"), Relation("supports", "b0"), Relation("supersedes", "b3"))
    first = replace(OURS[0], relations=relations, superseded_by="b6", extra=extra)
    store = vault(first, *OURS[1:], *others).seen_by(TENANT_A)
    for entry in (store.get(["a0"])[0], next(store.entries()), store.recent(Filters(), 9)[0]):
        assert [relation.target for relation in entry.relations] == ["a1"]
        assert entry.superseded_by == ""
        assert entry.extra["links"] == ["a1", "https://example.org/b1", {"target": "a2"}]
        assert not entry.extra["parent_id"]


@pytest.mark.parametrize("ours", [True, False])
def test_a_relation_to_another_tier_is_still_followed(ours):
    """A tier's copy does not hold the target, and the federation does."""
    here = vault(replace(OURS[0], relations=(Relation("supports", "a9"),)))
    there = vault(Entry("a9", text="x", tenant="a" if ours else "b"))
    federation = Federation([Tier("agent", here), Tier("project", there)]).seen_by(TENANT_A)
    assert len(federation.edges(["a0"])) == ours


def test_what_is_visible_is_seen_as_soon_as_it_is_stored():
    store = vault(*OURS)
    searcher = Searcher(store, find_system("fts").config(), clock=lambda: 0.0, visible=TENANT_A)
    assert not searcher.search("brandnew").hits
    store.upsert([Entry("a9", text="brandnew", tenant="a"), Entry("b9", text="brandnew", tenant="b")])
    assert [hit.entry.id for hit in searcher.search("brandnew").hits] == ["a9"]


def test_a_scope_by_supersession_is_refused():
    """It would depend on entries outside it."""
    with pytest.raises(ConfigError, match="select superseded"):
        vault(*OURS).seen_by(Filters.of({"superseded": False}))


@pytest.mark.parametrize("number", [*range(len(SYSTEMS)), 49, 99])
def test_nothing_visible_moves(number):
    assert noninterference.work(number)["changes"]


def test_too_little_to_fit_lsa_on_is_searched_by_keywords(tmp_path):
    """The whole vault has enough words; what is visible has not, and nothing may be borrowed."""
    path = str(tmp_path / "v.db")
    noninterference.written(path, [OURS[0], *THEIRS], "lsa")
    words, scopes = ("search", "VAULT", "token", "--json"), {"tenant": ("a",)}
    outcome = noninterference.asked(words, {"VAULT": path}, scopes, "echovault")
    assert outcome[0] == 0
    assert '"a0"' in outcome[1]
