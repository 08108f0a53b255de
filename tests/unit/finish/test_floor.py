"""Floors and maximal marginal relevance: by hand, beside a script, in live search and replay."""

import logging
import math
from dataclasses import replace

import numpy as np
import pytest
from shared import tabled, vault_with

from steelyard import Entry, Query, RecordedEmbedder, Searcher, find_system, fuse, parse_strategy
from steelyard.base.errors import ConfigError
from steelyard.config import policy_of
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.feedback import Explore
from steelyard.finish import Mmr, explain_rescore, finish, parse_stages, stages_without
from steelyard.live.search import rank_table
from steelyard.stores.base import ScoredId
from steelyard.table.join import join
from steelyard.testing.fusions import recomputed
from steelyard_eval.recording.disk import load, save

TEXTS = {"a": "lock lock lock lock", "b": "lock key", "c": "key door door", "d": "roof"}
VECTORS = {"a": [1, 0], "b": [0.6, 0.8], "c": [0, 1], "d": [-1, 0]}
NEAR = "weighted_sum(1*vector, normalize=theoretical)"
SCALED = "weighted_sum(1*bm25, normalize=theoretical)"
FUSED = "weighted_sum(0.5*bm25, 0.5*vector, normalize=theoretical)"


def searcher(strategy, *finish_stages, vectors=True, texts=TEXTS):
    vault = vault_with(*[Entry(id_, text=text) for id_, text in texts.items()])
    known = {TEXTS[id_]: np.array(row, dtype=np.float32) for id_, row in VECTORS.items()}
    known |= {"lock": np.array([1, 0], dtype=np.float32), "zebra": np.array([0.6, -0.8], dtype=np.float32)}
    embedder = RecordedEmbedder("tiny", "{text}", known) if vectors else None
    if embedder is not None:
        embed_missing(vault, embedder, space_of(embedder, "text", ""))
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
    assert found.table.query_facts.numbers["high bm25"].tolist() == [pytest.approx(bound(2, 4))]
    # words that no entry has count in the bound
    found = searcher(FUSED).search(Query("lock", matched="lock zebra", asked_at=0.0))
    assert found.table.query_facts.numbers["high bm25"].tolist() == [pytest.approx(bound(2, 4) + bound(0, 4))]


def test_the_scale_does_not_move_with_what_else_is_found():
    fewer = dict(list(TEXTS.items())[1:])
    whole, part = (
        {hit.entry.id: hit.score for hit in searcher(NEAR, texts=texts).search("lock").hits}
        for texts in (TEXTS, fewer)
    )
    assert part == {id_: whole[id_] for id_ in fewer}


def test_a_floor_drops_by_its_own_scale_whatever_ranks():
    every = searcher("rrf(bm25, vector)").search("lock")
    left = searcher("rrf(bm25, vector)", "floor(0.6)").search("lock")
    assert [hit.entry.id for hit in every.hits] == ["a", "b", "c", "d"]
    # a: above 0.5 + 0.5 * 0.77; b: 0.5 * 0.43 + 0.5 * 0.8 = 0.61; c has no word of the query: 0.5 * 0.5
    first, second = ([(hit.entry.id, hit.score) for hit in found.hits] for found in (every, left))
    assert second == first[:2]


def test_a_list_below_the_floor_is_empty_and_says_so():
    found = searcher("rrf(bm25, vector)", "floor(0.9)").search("zebra")
    assert found.hits == ()
    # the nearest is a, at a cosine of 0.6: 0.5 * 0 + 0.5 * 0.8
    assert found.emptied == f"the floor is 0.9 and the best of 4 candidates reaches 0.4 on {FUSED}"
    # without vectors the floor is left out, and that is said
    found = searcher("rrf(bm25, vector)", "floor(0.9)", vectors=False).search("lock")
    assert [hit.entry.id for hit in found.hits] == ["a", "b"]
    assert any("floor(0.9) was left" in note for note in found.notes)


@pytest.mark.parametrize("signal", ["fts", "graph", "created", "rrf(bm25, vector)"])
def test_a_signal_without_ends_has_no_theoretical_scale(signal):
    with pytest.raises(ConfigError, match="no scale for"):
        parse_strategy(f"weighted_sum(0.5*bm25, 0.5*{signal}, normalize=theoretical)")


def test_a_table_that_does_not_know_the_ends_is_refused():
    own = [Query("q", id="q")], [0.0], [{"bm25": [ScoredId("a", 2.0, 1)]}], {}, None
    with pytest.raises(ConfigError, match=r"bm25 has none here.*record"):
        fuse(join(*own), parse_strategy(SCALED))
    known = join(*own, ends=[{"bm25": (0.0, 8.0)}])
    assert fuse(known, parse_strategy(SCALED)).tolist() == [0.25]
    assert len(finish(known, np.array([1.0]), parse_stages([f"floor(0.2, on={SCALED})"])).row) == 1


@tabled
def test_live_search_asks_for_the_ends_that_the_strategy_or_a_stage_reads(strategy, stages, read):
    numbers = searcher(strategy, *stages).search("lock").table.query_facts.numbers
    assert {name.removeprefix("high ") for name in numbers if name.startswith("high ")} == set(read)


@tabled
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


@tabled
def test_a_threshold_warns_where_it_reads_fused_scores(stages, warns, caplog):
    with caplog.at_level(logging.WARNING):
        searcher("rrf(bm25, vector)", *stages)
    assert any("use floor" in record.message for record in caplog.records) is warns


def tabled_scores(scores, vectors):
    """The table of one query over entries e0, e1, ... with these scores and vectors."""
    lists = {"fts": [ScoredId(f"e{at}", float(score), at + 1) for at, score in enumerate(scores)]}
    table = join([Query("q", id="q")], [0.0], [lists], {}, None)
    return replace(table, vectors=np.array(vectors, dtype=np.float32))


def order(table, stage):
    ranking = finish(table, table.column("fts"), [stage])
    return [table.entries[table.entry[row]] for row in ranking.row], ranking.score.tolist()


def greedy(scores, vectors, top, weight):
    """The textbook's loop; scores descend."""
    first, behind = list(range(len(scores)))[:top], list(range(len(scores)))[top:]
    low, high = min(scores[:top]), max(scores[:top])
    relevance = [(s - low) / (high - low) if high > low else 1.0 for s in scores]

    def alike(a, b):
        lengths = np.linalg.norm(vectors[a]) * np.linalg.norm(vectors[b])
        return float(np.dot(vectors[a], vectors[b]) / lengths) if lengths else 0.0

    def worth(i):
        return weight * relevance[i] - (1 - weight) * max((alike(i, j) for j in chosen), default=0.0)

    chosen, values = [], []
    while first:
        best = max(first, key=worth)
        values.append(worth(best))
        chosen.append(first.pop(first.index(best)))
    return chosen + behind, values


@tabled
def test_a_copy_of_the_first_goes_behind_another_entry(stage, ids, values):
    (stage,) = parse_stages([stage])
    assert order(tabled_scores([10.0, 8.0, 0.0], [[1, 0], [1, 0], [0, 1]]), stage) == (ids, pytest.approx(values))


def test_random_lists_are_ordered_as_the_textbook_does():
    rng = np.random.default_rng(5)
    for _ in range(100):
        size = int(rng.integers(1, 12))
        scores = np.sort(rng.uniform(0, 1, size))[::-1]
        vectors = rng.normal(size=(size, 3)) * (rng.random((size, 1)) > 0.1)
        top, weight = int(rng.integers(1, 14)), float(rng.uniform(0, 1))
        # names sort as the scores do while there are fewer than eleven
        ids = [f"e{at}" for at in range(size)]
        table = tabled_scores(scores, vectors[np.argsort(ids)])
        found, values = order(table, Mmr(top, weight))
        chosen, expected = greedy(scores, vectors.astype(np.float32).astype(float), top, weight)
        assert found == [f"e{at}" for at in chosen]
        assert values[:top] == pytest.approx(expected, abs=1e-12)


def test_every_value_is_explained():
    table = tabled_scores([10.0, 8.0, 5.0, 0.0], [[1, 0], [1, 0.2], [0, 1], [0.5, 0.5]])
    scores = table.column("fts")
    ranking = finish(table, scores, [Mmr(3, 0.7)])
    for row, score in zip(ranking.row[:3], ranking.score[:3], strict=True):
        assert recomputed(explain_rescore(table, scores, [Mmr(3, 0.7)], row)) == score
    assert explain_rescore(table, scores, [Mmr(3, 0.7)], ranking.row[3]) is None


def test_a_list_has_twenty_stages_at_most():
    """docs/strategies.md"""
    assert len(parse_stages(["mmr(1000)"] * 20)) == 20
    with pytest.raises(ConfigError, match="21 stages;"):
        parse_stages(["mmr(1000)"] * 21)


@pytest.fixture
def memory():
    """A vault whose vectors lie in a plane, its embedder, and a configuration with the stage."""
    rng = np.random.default_rng(3)
    texts = [f"token number {at}" for at in range(12)]
    known = {text: rng.normal(size=2).astype(np.float32) for text in [*texts, "token"]}
    embedder = RecordedEmbedder("plane", "{text}", known)
    config = find_system("plain").config(5, model="plane").with_strategy(find_system("bm25").config(5).strategy)
    with vault_with(*[Entry(f"e{at:02}", text=text) for at, text in enumerate(texts)]) as vault:
        embed_missing(vault, embedder, space_of(embedder, "text", "{title}\n{text}"))
        yield vault, embedder, replace(config, finish=(Mmr(10, 0.3), *config.finish))


def test_live_search_and_replay_are_the_same_bits_also_from_disk(memory, tmp_path):
    vault, embedder, config = memory
    searcher = Searcher(vault, config, embedder)
    live = searcher.search("token")
    query = Query("token", id="q", asked_at=0.0)
    table = searcher.with_vectors(searcher.record([query], ["bm25", "vector"], 100, "c"))
    save(table, tmp_path / "kept")
    for recorded in (table, load(tmp_path / "kept")):
        _, ranking, _ = rank_table(recorded, config, config.effective)
        assert [h.entry.id for h in live.hits] == [recorded.entries[e] for e in recorded.entry[ranking.row]]
        assert [h.score for h in live.hits] == ranking.score.tolist()
    assert live.embedding_calls == 0  # entries are compared with one another, not with the query
    assert recomputed(live.explain(live.hits[1].entry.id)) == live.hits[1].score


def test_without_vectors_a_recording_says_what_to_do_and_a_search_leaves_the_stage_out(memory):
    vault, embedder, config = memory
    table = Searcher(vault, config, embedder).record([Query("token", id="q")], ["bm25"], 100, "c")
    with pytest.raises(ConfigError, match="recording has none;"):
        rank_table(table, config, config.effective)
    found = Searcher(vault, config).search("token")
    assert len(found.hits) == 5
    assert any("mmr(10, lambda_mult=0.3)" in note for note in found.notes)
    assert stages_without(config.finish, {"vector"}) == config.finish[1:]
