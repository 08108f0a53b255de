"""The door that a query's text passes through once, and its two texts: what is embedded, what is matched."""

import numpy as np
import pytest

from steelyard.base.errors import ConfigError
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.live import search as live_search
from steelyard.live.search import Searcher
from steelyard.memory import query as door
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system


class Spy:
    """Counts letters, and keeps the queries that it embeds."""

    model = "spy"
    recipe = None

    def __init__(self):
        self.queries = []

    def embed(self, texts, kind="entry"):
        self.queries += texts if kind == "query" else []
        return np.array([[text.count(letter) + 1 for letter in "abcdefgh"] for text in texts], dtype=np.float32)

    def warm(self):
        return True


@pytest.fixture
def searcher():
    system = find_system("soleri")
    with Vault(":memory:") as vault:
        vault.upsert([Entry("a", title="token"), Entry("b", title="secret"), Entry("m", text="x", kind="memory")])
        spy = Spy()
        embed_missing(vault, spy, space_of(spy, "text", system.reading.recipe))
        yield Searcher(vault, system.config(), spy, clock=lambda: 0.0)


def test_the_text_is_cleaned_once_a_search_whoever_reads_it(searcher, monkeypatch):
    """Soleri reads it four times: fts, memories, tfidf, and the check for an empty one."""
    seen = []

    def counted(text):
        seen.append(text)
        return door.clean_query(text)

    monkeypatch.setattr(live_search, "clean_query", counted)
    monkeypatch.setattr(Query, "keywords", property(lambda query: query.matched))
    searcher.search("token\x07")

    assert seen == ["token\x07"]


def test_what_is_embedded_is_the_text_as_asked_and_what_is_matched_may_be_another(searcher):
    hits = searcher.search(Query("credential\x07", matched="token")).hits
    signals = {hit.entry.id: hit.signals["tfidf"] for hit in hits}

    assert searcher._sources.embedders[0].queries == ["credential\x07"]
    assert signals["a"] == 1.0
    assert signals["b"] == 0.0


@pytest.mark.parametrize("query", [Query(" \x00"), Query("fine", matched=" ")])
def test_an_empty_text_is_refused(searcher, query):
    with pytest.raises(ConfigError, match="is empty"):
        searcher.search(query)
