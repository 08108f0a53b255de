"""One code path: what live search answers is what replay answers, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from tests.unit.shared import beside

from steelyard import Entry, Filters, Query, RecordedEmbedder, Searcher, Vault, find_system, fuse, parse_strategy
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.finish import parse_stages, to_rerank
from steelyard.live.search import rank_table
from steelyard.memory.entry import Relation
from steelyard.retrievers import EMBEDDING, SCORERS
from steelyard.stores.base import plain_id
from steelyard.stores.federation import Federation, Tier
from steelyard.testing import same_bits
from steelyard.testing.fusions import recomputed

RECIPE = "{title}\n{text}"
WORDS = ["auth", "token", "cache", "retry", "the", "graph"]
SCOPES = [{}, {"project": "p0"}, {"project": "p1", "type": "t0"}, {"project": "nowhere"}]
MAX_DEPTH = 40
NOW = 1_795_305_600.0

DATA = beside(__file__, "strategies.json")


def world(seed, remembers=False):
    """A vault of up to 25 entries with vectors that often tie, its embedder, and five queries."""
    (vault,), *rest = worlds(seed, 1, remembers)
    return vault, *rest


def worlds(seed, count, remembers):
    """Several such vaults over the same ids, each with about half of them; memories and windows on request."""
    rng = np.random.default_rng(seed)
    make = remembered if remembers else entry
    every = [[make(rng, at) for at in range(rng.integers(1, 26))] for _ in range(count)]
    if count > 1:
        every = [[replace(e, id=f"e{at}") for at, e in enumerate(own) if rng.random() < 0.6] for own in every]
    queries = [query(rng, at) for at in range(5)]
    texts = [q.text for q in queries]
    for e in (e for own in every for e in own):
        texts += WORDS_OF["vector"](e), e.l0, e.l1, WORDS_OF["l2"](e)
    embedder = RecordedEmbedder("grid", RECIPE, {text: direction(rng) for text in texts if text})
    vaults = [Vault(":memory:") for _ in every]
    for vault, own in zip(vaults, every, strict=True):
        vault.upsert(own)
        for layer in ("text", "l0", "l1", "l2"):
            embed_missing(vault, embedder, space_of(embedder, layer, RECIPE))
    return vaults, embedder, queries


def entry(rng, at):
    own = {"text": " ".join(rng.choice(WORDS, size=rng.integers(0, 6))), "relations": relations(rng, at)}
    own |= {name: rng.choice(values).item() for name, values in DATA["choices"].items()}
    own |= {name: f"{name} {at}" for name, share in DATA["shares"].items() if rng.random() < share}
    tags = tuple(rng.choice(["a", "b"], size=rng.integers(3), replace=False).tolist())
    created = NOW - 86_400.0 * float(rng.integers(0, 800))
    importance = float(rng.integers(1, 11)) if rng.random() < 0.7 else None
    fields = {"title": f"note {at}", "tags": tags, "created_at": created, "importance": importance}
    return Entry(f"{rng.choice(list('zmaé'))}{at}", **own, **fields)


def relations(rng, at):
    """Up to two relations to entries before it, whose first letter may be wrong: then they lead nowhere."""
    kinds = rng.choice(["caused", "supports", "cites"], size=rng.integers(3))
    return tuple(Relation(str(kind), f"{rng.choice(list('zmaé'))}{rng.integers(at + 1)}", 0.5) for kind in kinds)


def remembered(rng, at):
    """An entry that may be a memory, and may have a validity window around the clock."""
    opens, closes = NOW - 86_400.0 * rng.integers(-5, 100), NOW + 86_400.0 * rng.integers(-5, 100)
    return replace(
        entry(rng, at),
        kind="memory" if rng.random() < 0.2 else "",
        valid_from=opens if rng.random() < 0.3 else None,
        valid_until=closes if rng.random() < 0.4 else None,
    )


def query(rng, at):
    words = rng.choice(WORDS, size=rng.integers(0, 3))
    return Query(
        text=" ".join([*words, f"unique{at}"]),
        id=f"q{at}",
        filters=Filters.of(SCOPES[rng.choice(4, p=[0.4, 0.3, 0.2, 0.1])]),
        asked_at=NOW,
        intent=str(rng.choice(["", "fix", "learn"])),
        tags=("a",) if rng.random() < 0.5 else (),
        domain="auth" if rng.random() < 0.5 else "",
    )


def direction(rng):
    """A point of a small grid, so that cosines tie, also across a cut; sometimes nothing at all."""
    return rng.integers(-1, 3, size=3).astype(np.float32)


def configure(system, strategy, depth, limit, filters):
    config = find_system(system).config(limit, model="grid")
    own = {"vector": {"filters": filters}, "graph": {"parameters": {"seeds": min(5, depth)}}}
    retrievers = {
        name: replace(r, depth=r.depth and depth, **own.get(name, {})) for name, r in config.retrievers.items()
    }
    stages = parse_stages([f"cut({limit})"])
    return replace(config, strategy=parse_strategy(strategy), retrievers=retrievers, finish=stages)


WORDS_OF = {
    "vector": lambda e: f"{e.title}\n{e.text}" if e.text else e.title,
    "l0": lambda e: e.l0,
    "l1": lambda e: e.l1,
    "l2": lambda e: "\n".join(part for part in (e.text, e.details) if part),
}
"""What is embedded of an entry for each signal."""


def check_columns(table, store, embedder, queries):
    """Every number of meaning is the cosine with the words of its own layer, wherever the store keeps them."""
    entries = {e.id: e for e in store.get(table.entries)}
    layers = {space.layer for space, _ in store.spaces()}
    for name, words in WORDS_OF.items():
        if name in table.columns and name.replace("vector", "text") in layers:
            for row in np.flatnonzero(~np.isnan(table.columns[name])):
                text = words(entries[table.entries[table.entry[row]]])
                a, b = embedder.embed([text, queries[table.query[row]].text]).astype(float)
                assert table.columns[name][row] == pytest.approx(a @ b, abs=1e-6), (name, text)


def compare(vault, embedder, queries, config, recorded=None):
    """Search each query live, replay a deeper recording, and hold one against the other.

    `recorded` is the configuration of the recording, when it holds more than `config` asks for.
    """
    recorded = recorded or config
    recorder = Searcher(vault, recorded, embedder)
    signals = {*recorded.retrievers, *SCORERS} - {"lexical"}  # that one needs a system that knows exclusions
    recording = recorder.record(queries, signals, MAX_DEPTH, "corpus")
    own = recorded.retrievers.get("vector", recorded.retrievers["fts"])
    if own.similarity == "cosine" and not own.parameters.get("lift"):
        check_columns(recording, vault, embedder, queries)
    masked, ranking, _ = rank_table(recording, config, config.effective)
    needs = config.effective.needs(masked, tuple(config.retrievers))
    meaning = {name for name in needs if EMBEDDING & {name, *starts(config, name)}}
    embedded = np.any([needs[name] for name in meaning] or np.zeros((1, len(queries))), axis=0)
    for q, (begin, end) in enumerate(zip(ranking.offsets[:-1], ranking.offsets[1:], strict=True)):
        live = Searcher(vault, config, embedder).search(queries[q])
        replayed = recording.entry[ranking.row[begin:end]]
        assert [h.entry.id for h in live.hits] == [plain_id(recording.entries[e]) for e in replayed]
        assert same_bits(np.array([h.score for h in live.hits], dtype=float), ranking.score[begin:end])
        assert live.embedding_calls == int(embedded[q])
        for hit in live.hits:
            assert recomputed(live.explain(hit.entry.id)) == hit.score


def starts(config, name):
    """The retrievers that one starts from."""
    return config.retrievers[name].after if name in config.retrievers else ()


@pytest.mark.parametrize("strategy", DATA["live and replayed"])
@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**32 - 1),
    depth=st.sampled_from([1, 2, 5, 12]),
    limit=st.sampled_from([1, 4, 30]),
    filters=st.sampled_from(["before_cut", "after_cut"]),
)
def test_live_search_and_replay_are_the_same(strategy, seed, depth, limit, filters):
    vault, embedder, queries = world(seed)
    with vault:
        compare(vault, embedder, queries, configure("plain", strategy, depth, limit, filters))


PRESETS = ("echovault", "echovault:shipped", "echovault:newest", "soleri", "soleri:shipped", "soleri:newest")


@pytest.mark.parametrize("name", [*PRESETS, "spec_kit", "spec_kit:shipped", "spec_kit:js"])
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), limit=st.sampled_from([1, 3, 8]))
def test_systems_are_the_same_live_and_replayed(name, seed, limit):
    """Soleri with memories and windows; Spec Kit with intents that it knows, for other words are refused."""
    vault, embedder, queries = world(seed, remembers=name.startswith("soleri"))
    with vault:
        assume(vault.spaces() or name.startswith("echovault"))  # without vectors they have other weights
        if name.startswith("spec_kit"):
            known = {"fix": "fix_bug", "learn": "understand"}
            queries = [replace(query, intent=known.get(query.intent, "")) for query in queries]
        compare(vault, embedder, queries, find_system(name).config(limit, model="grid"))


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1), tiers=st.sampled_from([2, 3]), limit=st.sampled_from([1, 3, 8]))
def test_several_vaults_are_the_same_live_and_replayed(seed, tiers, limit):
    vaults, embedder, queries = worlds(seed, tiers, remembers=True)
    store = Federation([Tier(name, v) for name, v in zip(("team", "agent", "x"), vaults, strict=False)])
    assume(store.spaces())
    compare(store, embedder, queries, find_system("soleri").config(limit, model="grid"))
    compare(store, embedder, queries, find_system("echovault").config(limit, model="grid"))
    for vault in vaults:
        vault.close()


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1), strategy=st.sampled_from(["importance", "weighted_sum(1*tfidf)", "fts"]))
def test_a_recording_may_hold_retrievers_that_the_search_has_not(seed, strategy):
    vault, embedder, queries = world(seed)
    with vault:
        wide = configure("plain", strategy, 5, 10, "before_cut")
        narrow = replace(wide, retrievers={"fts": wide.retrievers["fts"]})
        compare(vault, embedder, queries, narrow, wide)


class Words:
    """A re-ranker that counts the letters of a text that the query has."""

    name = "letters"

    def score(self, query, documents):
        return np.array([float(sum(letter in query for letter in d.text)) / 10 for d in documents])


@pytest.mark.parametrize("top", [1, 3, 50])
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_reranked_list_is_the_same_live_and_replayed(top, seed):
    """The column holds the first places alone, and the whole when all were asked for."""
    vault, embedder, queries = world(seed)
    with vault:
        config = configure("plain", "rrf(fts, bm25, k=60)", 12, 8, "before_cut")
        config = replace(config, finish=parse_stages([f"rerank({top}, penalty=length)", "cut(8)"]))
        searcher = Searcher(vault, config, embedder, reranker=Words())
        table = searcher.record(queries, {"fts", "bm25"}, 12, "corpus")
        first = searcher.rerank(queries, table, to_rerank(table, fuse(table, config.strategy), config.finish))
        whole = searcher.rerank(queries, table, np.ones(len(table), dtype=bool))
        for q, asked in enumerate(queries):
            hits = searcher.search(asked).hits
            for recorded in (first, whole):
                masked, ranking, _ = rank_table(recorded, config, config.strategy)
                rows = ranking.row[ranking.offsets[q] : ranking.offsets[q + 1]]
                scores = ranking.score[ranking.offsets[q] : ranking.offsets[q + 1]]
                assert [h.entry.id for h in hits] == [masked.entries[masked.entry[row]] for row in rows]
                assert same_bits(np.array([h.score for h in hits], dtype=float), scores)
