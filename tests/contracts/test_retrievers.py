"""The retrievers that ship keep the promises of a retriever."""

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.shared import tabled, vault_with

from steelyard import Entry, Filters, Query, Vault, find_system
from steelyard.live.sources import RetrieverPool
from steelyard.retrievers.keywords import Bm25Retriever, FtsRetriever
from steelyard.retrievers.kinds import words_or
from steelyard.retrievers.vector import LayerRetriever, VectorRetriever, cosine, cosines
from steelyard.stores.base import KeywordIndex, Space, plain_id
from steelyard.stores.federation import Federation, Tier
from steelyard.systems.echovault import prefix_or
from steelyard.testing import RetrieverContract, same_bits
from steelyard.testing.retrievers import sample_entries

INDEX = KeywordIndex("sample", ("title", "text"))
SPACE = Space("counted", "text", "{title} {text}")
LETTERS = "acdeghinortuxy"


def embed(text):
    """Counts of letters: texts of the same letters tie exactly, a text without any says nothing."""
    return np.array([text.count(letter) for letter in LETTERS], dtype=np.float32)


def fill(vault, entries):
    vault.upsert(entries)
    vault.put_vectors(SPACE, [e.id for e in entries], np.array([embed(f"{e.title} {e.text}") for e in entries]))


@pytest.fixture(scope="module")
def store():
    with Vault(":memory:") as vault:
        fill(vault, sample_entries())
        yield vault


class TestBm25:
    def test_statistics_are_those_of_the_scope(self):
        """By hand: one of two entries of the scope says it, at mean length: ln(1 + 1.5/1.5) = ln 2."""
        with Vault(":memory:") as small:
            small.upsert([Entry("a", text="rare word", project="p"), Entry("b", text="other thing", project="p")])
            small.upsert(Entry(f"x{i}", text="rare rare rare long text of more words") for i in range(9))
            [found] = Bm25Retriever(small).retrieve(Query("rare", filters=Filters.of({"project": "p"})), 5)
        assert found.id == "a"
        assert found.score == pytest.approx(np.log(2), abs=1e-12)

    @tabled
    def test_k1_and_b_are_the_formulas(self, k1, b, text, other, tf):
        with vault_with(Entry("a", text=text), Entry("b", text=other)) as small:
            [found] = Bm25Retriever(small, k1, b).retrieve(Query("rare"), 5)
        assert found.score == pytest.approx(np.log(2) * tf, abs=1e-12)


class TestLayer:
    def test_vectors_that_arrive_later_are_found(self):
        with vault_with(Entry("a"), Entry("b")) as vault:
            vault.put_vectors(SPACE, ["a"], embed("node")[None])
            retriever = LayerRetriever(vault, [(SPACE, embed)])
            assert [f.id for f in retriever.retrieve(Query("node"), None)] == ["a"]
            vault.put_vectors(SPACE, ["b"], embed("node")[None])
            assert [f.id for f in retriever.retrieve(Query("node"), None)] == ["a", "b"]

    def test_many_ties_are_by_ascending_id(self):
        """Of long lists, which a faster sort would leave in any order."""
        ids = [f"e{at:04}" for at in range(2000)]
        with Vault(":memory:") as vault:
            fill(vault, [Entry(id_, text="node" if at % 3 else "note") for at, id_ in enumerate(ids)])
            found = [f.id for f in LayerRetriever(vault, [(SPACE, embed)]).retrieve(Query("node"), None)]
        near, far = ([id_ for at, id_ in enumerate(ids) if bool(at % 3) == same] for same in (True, False))
        assert found == near + far


class TestMemories(RetrieverContract):
    """Ordinary entries that say the same are never found among them."""

    @pytest.fixture(params=["soleri", "soleri:shipped"])
    def retriever(self, request):
        system = find_system(request.param)
        with vault_with(*(replace(entry, kind="memory") for entry in sample_entries())) as vault:
            vault.upsert(replace(entry, id=f"entry-{entry.id}") for entry in sample_entries())
            yield Memories(RetrieverPool(vault, system, system.config(), None))

    def test_something_is_returned(self, request, retriever):
        """As the real program takes a query, a blank means AND."""
        shipped = "shipped" in request.node.name
        assert len(retriever.retrieve(Query("auth token"), None)) > (2 if shipped else 5)


class Memories:
    def __init__(self, sources):
        self.sources = sources

    def retrieve(self, query, depth):
        return self.sources.retrieve("memory", replace(query, asked_at=0.0), depth, {})


@pytest.fixture(scope="module")
def tiers():
    """The entries in three tiers by turns; the lower ones also hold copies of what stands above them."""
    vaults = {name: Vault(":memory:") for name in ("agent", "project", "team")}
    for at, vault in enumerate(vaults.values()):
        own = [e for i, e in enumerate(sample_entries()) if i % 3 == at]
        above = [e for i, e in enumerate(sample_entries()) if i % 3 < at]
        fill(vault, [*own, *(replace(e, text="auth token", project="p1") for e in above)])
    yield Federation([Tier(name, vault) for name, vault in vaults.items()])
    for vault in vaults.values():
        vault.close()


class Plain:
    """A retriever whose entries bear their own ids also where a federation is searched."""

    def __init__(self, retriever):
        self.retriever = retriever

    def retrieve(self, query, depth):
        return [replace(found, id=plain_id(found.id)) for found in self.retriever.retrieve(query, depth)]


MADE = {
    "words": lambda store: FtsRetriever(store, INDEX, words_or, [1.0, 1.0]),
    "prefixes": lambda store: FtsRetriever(store, INDEX, prefix_or, [3.0, 0.5]),
    "by distance": lambda store: VectorRetriever(store, [(SPACE, embed)], metric="l2"),
    "filtered first": lambda store: VectorRetriever(store, [(SPACE, embed)], filter_first=True),
    "bm25": Bm25Retriever,
    "layer": lambda store: LayerRetriever(store, [(SPACE, embed)]),
}


@pytest.fixture(params=["a vault", "a federation"])
def searched(request, store, tiers):
    return store if request.param == "a vault" else tiers


class TestBeforeTheCut(RetrieverContract):
    @pytest.fixture(params=MADE)
    def retriever(self, request, searched):
        return Plain(MADE[request.param](searched))


class TestVectorFilteredAfterTheCut(RetrieverContract):
    late = True

    @pytest.fixture
    def retriever(self, searched):
        return Plain(VectorRetriever(searched, [(SPACE, embed)], filter_first=False))


class TestCosineScorer:
    def test_a_value_does_not_depend_on_the_other_entries(self, store):
        scorer = cosines(store, [(SPACE, embed)])
        ids = [e.id for e in sample_entries()]
        together = scorer(Query("graph index"), ids)
        assert same_bits(together, np.concatenate([scorer(Query("graph index"), [id_]) for id_ in ids]))
        assert same_bits(scorer(Query("graph index"), ids[::-1]), together[::-1])

    def test_rows_are_summed_one_by_one(self):
        """A matrix product would give other last bits for one row than for many."""
        rng = np.random.default_rng(0)
        matrix, vector = rng.normal(size=(200, 384)).astype(np.float32), rng.normal(size=384).astype(np.float32)
        together = cosine(matrix, vector)
        assert same_bits(together, np.concatenate([cosine(row[None], vector) for row in matrix]))
        assert same_bits(together[:7], cosine(matrix[:7], vector))

    def test_it_is_what_the_layer_retriever_finds(self, store):
        found = {f.id: f.score for f in LayerRetriever(store, [(SPACE, embed)]).retrieve(Query("auth"), None)}
        ids = sorted(found)
        assert same_bits(cosines(store, [(SPACE, embed)])(Query("auth"), ids), [found[id_] for id_ in ids])

    def test_an_entry_without_a_vector_scores_0(self, store):
        for ids in (["none"], []):
            assert cosines(store, [(SPACE, embed)])(Query("auth"), ids).tolist() == [0.0] * len(ids)
