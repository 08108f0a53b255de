"""Floors: the theoretical scale, what is dropped, and what is said of an empty list."""

import logging
import math
from dataclasses import replace

import numpy as np
import pytest

from steelyard.base.errors import ConfigError
from steelyard.config import policy_of
from steelyard.embedders.embed import RecordedEmbedder, embed_missing, space_of
from steelyard.feedback import Explore
from steelyard.finish import finish, parse_stages
from steelyard.fusion import fuse, parse_strategy
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.stores.base import Found
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard.table.join import join

TEXTS = {"a": "lock lock lock lock", "b": "lock key", "c": "key door door", "d": "roof"}
VECTORS = {"a": [1, 0], "b": [0.6, 0.8], "c": [0, 1], "d": [-1, 0]}
FUSED = "weighted_sum(0.5*bm25, 0.5*vector, normalize=theoretical)"


def searcher(strategy, *finish_stages, vectors=True, texts=TEXTS):
    vault = Vault(":memory:")
    vault.upsert([Entry(id_, text=text) for id_, text in texts.items()])
    known = {TEXTS[id_]: np.array(row, dtype=np.float32) for id_, row in VECTORS.items()}
    known |= {"lock": np.array([1, 0], dtype=np.float32), "zebra": np.array([0.6, -0.8], dtype=np.float32)}
    embedder = RecordedEmbedder("tiny", "{text}", known) if vectors else None
    if embedder is not None:
        embed_missing(vault, embedder, space_of(embedder, "text", ""), iter)
    config = find_system("plain").config(10, "tiny" if vectors else "", {})
    stages = parse_stages([*finish_stages, "cut(10)"])
    return Searcher(vault, replace(config, strategy=parse_strategy(strategy), finish=stages), embedder)


def bound(holding, size, k1=1.2):
    """idf * (k1 + 1) by the formula of Robertson and Zaragoza, which the module names."""
    return math.log(1 + (size - holding + 0.5) / (holding + 0.5)) * (k1 + 1)


def test_bm25_lies_between_0_and_its_bound_and_cosines_between_minus_1_and_1():
    found = searcher(FUSED).search(Query("lock", asked_at=0.0))
    by_id = {hit.entry.id: hit.score for hit in found.hits}
    # "lock" is in a and b of 4 entries. In a it occurs 4 times, of 4 words; the mean length is 10 / 4.
    tf = 4 * 2.2 / (4 + 1.2 * (0.25 + 0.75 * 4 / 2.5))
    assert by_id["a"] == pytest.approx(0.5 * tf / 2.2 + 0.5 * (1 + 1) / 2, abs=1e-6)
    assert by_id["d"] == pytest.approx(0.5 * 0 + 0.5 * (-1 + 1) / 2, abs=1e-6)
    assert found.table.asked.numbers["high bm25"].tolist() == [pytest.approx(bound(2, 4))]


def test_words_that_no_entry_has_count_in_the_bound():
    found = searcher(FUSED).search(Query("lock", matched="lock zebra", asked_at=0.0))
    assert found.table.asked.numbers["high bm25"].tolist() == [pytest.approx(bound(2, 4) + bound(0, 4))]


def test_the_scale_does_not_move_with_what_else_is_found():
    whole = {
        hit.entry.id: hit.score
        for hit in searcher("weighted_sum(1*vector, normalize=theoretical)").search("lock").hits
    }
    fewer = dict(list(TEXTS.items())[1:])
    part = {
        hit.entry.id: hit.score
        for hit in searcher("weighted_sum(1*vector, normalize=theoretical)", texts=fewer).search("lock").hits
    }
    assert part == {id_: whole[id_] for id_ in fewer}


def test_a_floor_drops_by_its_own_scale_whatever_ranks():
    every = searcher("rrf(bm25, vector)").search("lock")
    left = searcher("rrf(bm25, vector)", "floor(0.6)").search("lock")
    assert [hit.entry.id for hit in every.hits] == ["a", "b", "c", "d"]
    # a: above 0.5 + 0.5 * 0.77; b: 0.5 * 0.43 + 0.5 * 0.8 = 0.61; c has no word of the query: 0.5 * 0.5
    assert [(hit.entry.id, hit.score) for hit in left.hits] == [
        (hit.entry.id, hit.score) for hit in every.hits[:2]
    ]


def test_a_list_below_the_floor_is_empty_and_says_so():
    found = searcher("rrf(bm25, vector)", "floor(0.9)").search("zebra")
    assert found.hits == ()
    # the nearest is a, at a cosine of 0.6: 0.5 * 0 + 0.5 * 0.8
    assert found.emptied == f"the floor is 0.9 and the best of 4 candidates reaches 0.4 on {FUSED}"


def test_without_vectors_the_floor_is_left_out_and_that_is_said():
    found = searcher("rrf(bm25, vector)", "floor(0.9)", vectors=False).search("lock")
    assert [hit.entry.id for hit in found.hits] == ["a", "b"]
    assert any("floor(0.9) was left" in note for note in found.notes)


@pytest.mark.parametrize(
    "text",
    [
        "floor(0.4, on=rrf(bm25, vector))",
        "floor(0.4, on=weighted_sum(0.5*bm25, 0.5*vector, normalize=max))",
        "floor(0.4, on=weighted_sum(1*rrf(bm25, vector)))",
        "floor(0.4, on=comb_sum(bm25, vector))",
        "floor(bm25)",
        "floor()",
    ],
)
def test_what_cannot_carry_a_floor_is_refused(text):
    with pytest.raises(ConfigError, match=r"follow what|needs at least one|a number"):
        parse_stages([text])


@pytest.mark.parametrize("signal", ["fts", "graph", "created", "rrf(bm25, vector)"])
def test_a_signal_without_ends_has_no_theoretical_scale(signal):
    with pytest.raises(ConfigError, match="no scale for"):
        parse_strategy(f"weighted_sum(0.5*bm25, 0.5*{signal}, normalize=theoretical)")


def test_a_table_that_does_not_know_the_ends_is_refused():
    table = join([Query("q", id="q")], [0.0], [{"bm25": [Found("a", 2.0, 1)]}], {}, None)
    with pytest.raises(ConfigError, match=r"scale of bm25.*record"):
        fuse(table, parse_strategy("weighted_sum(1*bm25, normalize=theoretical)"))
    known = join(
        [Query("q", id="q")], [0.0], [{"bm25": [Found("a", 2.0, 1)]}], {}, None, ends=[{"bm25": (0.0, 8.0)}]
    )
    assert fuse(known, parse_strategy("weighted_sum(1*bm25, normalize=theoretical)")).tolist() == [0.25]
    stages = parse_stages(["floor(0.2, on=weighted_sum(1*bm25, normalize=theoretical))"])
    assert len(finish(known, np.array([1.0]), stages).row) == 1


SCALED = "weighted_sum(1*bm25, normalize=theoretical)"


@pytest.mark.parametrize(
    ("strategy", "stages", "read"),
    [
        ("weighted_sum(0.5*bm25, 0.5*vector)", (), set()),
        ("rrf(bm25, vector)", (), set()),
        (SCALED, (), {"bm25"}),
        ("weighted_sum(0.5*bm25, 0.5*vector, normalize=tmm)", (), {"bm25", "vector"}),
        (f"boost({SCALED}, 0.5*length)", (), {"bm25"}),
        ("rrf(bm25, vector)", ("floor(0.1)",), {"bm25", "vector"}),
        ("rrf(bm25, vector)", (f"rescore({SCALED})",), {"bm25"}),
    ],
)
def test_live_search_asks_for_the_ends_that_the_strategy_or_a_stage_reads(strategy, stages, read):
    numbers = searcher(strategy, *stages).search("lock").table.asked.numbers
    assert {name.removeprefix("high ") for name in numbers if name.startswith("high ")} == read


@pytest.mark.parametrize(
    ("strategy", "stages"),
    [
        (SCALED, ()),  # ends
        ("bm25", ("floor(0.1)",)),  # ends, and a retriever that bm25 alone does not need
        ("bm25", (f"rescore({SCALED})",)),
        ("weighted_sum(1*bm25, 0.1*recency)", ()),  # facts
        ("weighted_sum(1*vector)", ()),  # another retriever
    ],
)
def test_a_ranking_that_reads_something_else_is_interleaved_as_it_ranks_itself(strategy, stages):
    own, other = searcher("bm25"), searcher(strategy, *stages)
    explore = Explore(1.0, other.config, seed=1)
    found = Searcher(own.store, own.config, own._sources.embedders, explore=explore).search("lock")
    teams = dict(zip((hit.entry.id for hit in found.hits), found.placed_by, strict=True))
    assert {"a", "b"} <= teams.keys() and len(set(teams.values())) == 2
    for hit in found.hits:
        theirs = teams[hit.entry.id] == policy_of(other.config)
        alone = (other if theirs else own).search("lock")
        assert hit.score == next(one.score for one in alone.hits if one.entry.id == hit.entry.id)
        assert found.behind(hit)[0].strategy == alone.strategy
        assert found.explain(hit).value == found.explain(hit.entry.id).value == pytest.approx(hit.score)


@pytest.mark.parametrize("stages", [("drop(lexical)",), ("rerank(2)",)])  # each lacks what it reads
def test_a_ranking_that_cannot_search_is_not_interleaved(stages):
    own, other = searcher("bm25"), searcher("bm25", *stages).config
    found = Searcher(own.store, own.config, own._sources.embedders, explore=Explore(1.0, other)).search("lock")
    assert [hit.entry.id for hit in found.hits] == ["a", "b"]
    assert not found.placed_by


@pytest.mark.parametrize(
    ("stages", "warns"),
    [
        (("at_least(0.1)",), True),
        (("at_least(0.1)", f"rescore({SCALED})"), True),
        ((f"rescore({SCALED})", "at_least(0.1)"), False),
        (("rerank(2)", "at_least(0.1)"), False),
    ],
)
def test_a_threshold_warns_where_it_reads_fused_scores(stages, warns, caplog):
    with caplog.at_level(logging.WARNING):
        searcher("rrf(bm25, vector)", *stages)
    assert any("use floor" in record.message for record in caplog.records) is warns
