"""Maximal marginal relevance: by hand, beside a script of its own, and in live search and replay."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.base.errors import ConfigError
from steelyard.embedders.embed import RecordedEmbedder, embed_missing, space_of
from steelyard.finish import Mmr, explain_rescore, finish, parse_stages, stages_without
from steelyard.live.search import Searcher, rank_table
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.stores.base import Found
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard.table.join import join
from steelyard.testing.fusions import recomputed
from steelyard_eval.recording.disk import load, save


def tabled(scores, vectors):
    """The table of one query over entries e0, e1, ... with these scores and vectors."""
    lists = {"fts": [Found(f"e{at}", float(score), at + 1) for at, score in enumerate(scores)]}
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

    chosen, values = [], []
    while first:
        worth = [
            weight * relevance[i] - (1 - weight) * max((alike(i, j) for j in chosen), default=0.0) for i in first
        ]
        best = int(np.argmax(worth))
        values.append(worth[best])
        chosen.append(first.pop(best))
    return chosen + behind, values


def test_a_copy_of_the_first_goes_behind_another_entry():
    # e1 repeats e0: 0.5 * 0.8 - 0.5 * 1 = -0.1; e2 is at a right angle: 0.5 * 0 - 0 = 0
    table = tabled([10.0, 8.0, 0.0], [[1, 0], [1, 0], [0, 1]])
    assert order(table, Mmr(3)) == (["e0", "e2", "e1"], [0.5, 0.0, pytest.approx(-0.1)])


def test_relevance_alone_changes_no_order_and_places_behind_keep_theirs():
    table = tabled([10.0, 8.0, 0.0], [[1, 0], [1, 0], [0, 1]])
    assert order(table, Mmr(3, 1.0))[0] == ["e0", "e1", "e2"]
    assert order(table, Mmr(2, 0.1)) == (["e0", "e1", "e2"], [0.1, pytest.approx(-0.9), 0.0])


def test_random_lists_are_ordered_as_the_textbook_does():
    rng = np.random.default_rng(5)
    for _ in range(100):
        size = int(rng.integers(1, 12))
        scores = np.sort(rng.uniform(0, 1, size))[::-1]
        vectors = rng.normal(size=(size, 3)) * (rng.random((size, 1)) > 0.1)
        top, weight = int(rng.integers(1, 14)), float(rng.uniform(0, 1))
        # names sort as the scores do while there are fewer than eleven
        ids = [f"e{at}" for at in range(size)]
        table = tabled(scores, vectors[np.argsort(ids)])
        found, values = order(table, Mmr(top, weight))
        chosen, expected = greedy(scores, vectors.astype(np.float32).astype(float), top, weight)
        assert found == [f"e{at}" for at in chosen]
        assert values[:top] == pytest.approx(expected, abs=1e-12)


def test_every_value_is_explained():
    table = tabled([10.0, 8.0, 5.0, 0.0], [[1, 0], [1, 0.2], [0, 1], [0.5, 0.5]])
    scores = table.column("fts")
    ranking = finish(table, scores, [Mmr(3, 0.7)])
    for row, score in zip(ranking.row[:3], ranking.score[:3], strict=True):
        assert recomputed(explain_rescore(table, scores, [Mmr(3, 0.7)], row)) == score
    assert explain_rescore(table, scores, [Mmr(3, 0.7)], ranking.row[3]) is None


def test_a_list_has_twenty_stages_at_most():
    """docs/strategies.md"""
    assert len(parse_stages(["mmr(1000)"] * 20)) == 20
    with pytest.raises(ConfigError, match="21 finish stages,"):
        parse_stages(["mmr(1000)"] * 21)


@pytest.mark.parametrize(
    "text", ["mmr(0)", "mmr(1001)", "mmr(5, lambda_mult=1.1)", "mmr(5, lambda_mult=high)", "mmr(fts)"]
)
def test_what_cannot_be_meant_is_refused(text):
    with pytest.raises(ConfigError, match="number from"):
        parse_stages([text])


@pytest.fixture
def memory():
    """A vault whose vectors lie in a plane, its embedder, and a configuration with the stage."""
    rng = np.random.default_rng(3)
    texts = [f"token number {at}" for at in range(12)]
    embedder = RecordedEmbedder(
        "plane", "{text}", {t: rng.normal(size=2).astype(np.float32) for t in [*texts, "token"]}
    )
    config = find_system("plain").config(5, model="plane").with_strategy(find_system("bm25").config(5).strategy)
    with Vault(":memory:") as vault:
        vault.upsert([Entry(f"e{at:02}", text=text) for at, text in enumerate(texts)])
        embed_missing(vault, embedder, space_of(embedder, "text", "{title}\n{text}"))
        yield vault, embedder, replace(config, finish=(Mmr(10, 0.3), *config.finish))


def test_live_search_and_replay_are_the_same_bits_also_from_disk(memory, tmp_path):
    vault, embedder, config = memory
    live = Searcher(vault, config, embedder).search("token")
    recorder = Searcher(vault, config, embedder)
    table = recorder.with_vectors(
        recorder.record([Query("token", id="q", asked_at=0.0)], ["bm25", "vector"], 100, "c")
    )
    save(table, tmp_path / "kept")
    for recorded in (table, load(tmp_path / "kept")):
        _, ranking, _ = rank_table(recorded, config, config.effective)
        assert [h.entry.id for h in live.hits] == [recorded.entries[e] for e in recorded.entry[ranking.row]]
        assert [h.score for h in live.hits] == ranking.score.tolist()
    assert live.embedding_calls == 0  # entries are compared with one another, not with the query
    assert recomputed(live.explain(live.hits[1].entry.id)) == live.hits[1].score


def test_a_recording_without_vectors_says_what_to_do(memory):
    vault, embedder, config = memory
    table = Searcher(vault, config, embedder).record([Query("token", id="q")], ["bm25"], 100, "c")
    with pytest.raises(ConfigError, match="recording has none;"):
        rank_table(table, config, config.effective)


def test_without_vectors_the_stage_is_left_out_and_that_is_said(memory):
    vault, _, config = memory
    found = Searcher(vault, config).search("token")
    assert len(found.hits) == 5
    assert any("mmr(10, lambda_mult=0.3)" in note for note in found.notes)
    assert stages_without(config.finish, {"vector"}) == config.finish[1:]
