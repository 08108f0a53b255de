"""mem0's search, statement by statement; docs/mem0.md lists which test holds which."""

from math import log

import numpy as np
import pytest
from statements import Spy, named, statements

import steelyard.systems.mem0 as module
from steelyard.base.errors import EmbedderError
from steelyard.embedders.embed import RecordedEmbedder, embed_missing, space_of
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.retrievers.keywords import Bm25Retriever
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system

NOW = 1_795_305_600.0
RECIPE = "{title}\n{text}"
VECTORS = {
    "heron": [1.0, 0.0],
    "the heron stands": [0.8, 0.6],
    "a heron heron heron": [0.05, 1.0],
    "a bird": [0.6, 0.8],
    "gone": [1.0, 0.0],
}


@pytest.fixture
def vault():
    with Vault(":memory:") as made:
        made.upsert(
            [
                Entry("near", text="the heron stands"),
                Entry("far", text="a heron heron heron"),
                Entry("silent", text="a bird"),
                Entry("expired", text="gone", valid_until=NOW - 1),
            ]
        )
        embedder = RecordedEmbedder("m", RECIPE, {t: np.array(v, dtype=np.float32) for t, v in VECTORS.items()})
        embed_missing(made, embedder, space_of(embedder, "text", RECIPE))
        yield made, embedder


def found(vault, **config):
    own, embedder = vault
    searcher = Searcher(own, find_system("mem0").config(model="m", **config), embedder)
    return searcher.search(Query("heron", asked_at=NOW))


def test_the_documented_numbers():
    config = find_system("mem0").config()
    assert (config.limit, str(config.strategy)) == (20, "gated(vector, bm25, least=0.1)")
    assert config.depths == {"vector": 80, "bm25": 80}
    assert find_system("mem0").config(3).depths == {"vector": 60, "bm25": 60}


def test_only_what_is_similar_enough_is_ranked_whatever_its_words(vault):
    result = found(vault)
    assert [hit.entry.id for hit in result.hits] == ["near", "silent"]  # far: cosine 0.05 of the query's vector


def test_an_expired_memory_is_not_shown(vault):
    assert "expired" not in {hit.entry.id for hit in found(vault).hits}


def test_the_score_is_the_mean_of_similarity_and_sigmoid(vault):
    # One term: midpoint 5, steepness 0.7. Two of three valid entries hold the word:
    # idf = ln(1 + 1.5 / 2.5); two words after the stop word, where 256 are average.
    idf = log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    raw = idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 256))
    scores = {hit.entry.id: hit.score for hit in found(vault).hits}
    assert scores["near"] == pytest.approx((0.8 + 1 / (1 + np.exp(-0.7 * (raw - 5)))) / 2, abs=1e-7)
    assert scores["silent"] == pytest.approx(0.3, abs=1e-7)


def test_keywords_take_256_words_as_the_average_length():
    with Vault(":memory:") as own:
        own.upsert([Entry("a", text="heron " * 4), Entry("b", text="bird")])
        (hit,) = Bm25Retriever(own, mean_length=256).retrieve(Query("heron"), None)
    assert hit.score == pytest.approx(log(1 + 1.5 / 1.5) * 4 * 2.2 / (4 + 1.2 * (0.25 + 0.75 * 4 / 256)))


def test_a_failing_embedder_ends_the_search(vault):
    with pytest.raises(EmbedderError, match="down"):
        found((vault[0], Spy("m", down=True)))


def test_a_result_has_the_names_of_the_real_program(vault):
    shown = [module.result(hit) for hit in found(vault).hits]
    assert [set(one) for one in shown] == [{"id", "memory", "created_at", "updated_at", "score"}] * 2
    assert shown[0]["memory"] == "the heron stands"


def test_the_page_names_every_test():
    assert named("mem0.md") >= statements(globals()) - {"test_the_page_names_every_test"}
