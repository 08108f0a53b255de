"""Recordings of system-spec-kit (relations, facts, a re-ranker's partial column), and searches whose parts die."""

import itertools
import json
import logging
from dataclasses import replace

import numpy as np
import pytest
from shared import tabled, vault_with, write_set

from steelyard import Query, RecordedEmbedder, Searcher, find_system, parse_strategy
from steelyard.base.errors import ConfigError, DataError, EmbedderError, RerankError, VaultError
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.finish import Merge, Ranking, Rerank
from steelyard.memory.entry import read_entry
from steelyard.retrievers.graph import GraphRetriever
from steelyard.retrievers.keywords import Bm25Retriever
from steelyard.stores.base import ScoredId
from steelyard.table.join import join
from steelyard.table.signal_table import RERANK
from steelyard_eval.datasets import load
from steelyard_eval.explain.explanation import explain
from steelyard_eval.recording import workspace as workspaces
from steelyard_eval.recording.disk import load as read, save
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace

NOW = 1_795_305_600.0
TOPICS = ("jwt token", "session cookie", "cache key", "token cache", "cookie jar", "key rotation", "jwt session")
RERANKING = {"ENABLE_CROSS_ENCODER": "true", "MAX_RERANK_CANDIDATES": "2"}


class Lengths:
    """A re-ranker that prefers what is named late in the alphabet, until it dies."""

    name = "lengths"

    def __init__(self):
        self.dead, self.asked = False, []

    def score(self, query, documents):
        if self.dead:
            raise RerankError("the re-ranker is gone")
        self.asked.append([document.id for document in documents])
        return np.array([ord(document.id[0]) / 100 for document in documents])


@pytest.fixture
def stub(monkeypatch):
    made = Lengths()
    monkeypatch.setattr(workspaces, "open_reranker", lambda config, environ: made)
    return made


def corpus():
    """Each of the topics caused the next one."""
    facts = {"created_at": "2026-01-01", "memory_type": "semantic"}
    ids = [f"{letter}{at}" for at, letter in enumerate("abcdefgh")]
    return [
        {"id": ids[at], "title": topic, "text": f"About the {topic}, number {at}.", "access_count": at, **facts}
        | {"relations": [{"type": "caused", "target": ids[at + 1], "strength": 0.5}]}
        for at, topic in enumerate(TOPICS)
    ]


@pytest.fixture
def folder(tmp_path):
    texts = ("jwt token", "cookie", "fix the cache key")
    queries = [{"id": f"q{at}", "text": text} for at, text in enumerate(texts)]
    qrels = "q0 0 a0 2\nq1 0 e4 1\nq2 0 c2 1\n"
    return write_set(tmp_path / "set", corpus(), queries, qrels, as_of="2026-06-01")


@pytest.fixture
def space(folder):
    return Workspace.open(load(folder))


def config(space, environ=RERANKING, limit=4):
    return find_system("spec_kit").config(limit, space.model, environ)


def ids(table, row):
    return [table.entries[table.entry[at]] for at in row]


class TestTheFirstPlaces:
    @pytest.mark.parametrize("column", ["graph", RERANK])
    def test_the_dependent_and_the_partial_column_are_those_of_live_search(self, space, stub, column):
        own = config(space)
        table = record(space, space.dataset.queries, [own])
        for at, query in enumerate(space.dataset.queries):
            live = space.searcher(own).search(query).table
            rows = slice(*table.offsets[at : at + 2])
            assert ids(live, range(len(live))) == ids(table, range(*table.offsets[at : at + 2]))
            np.testing.assert_array_equal(live.columns[column], table.columns[column][rows])
            filled = int((~np.isnan(live.columns[column])).sum())
            assert filled == 2 if column == RERANK else filled > 0

    @pytest.mark.parametrize(
        "change",
        [
            lambda own: replace(own, finish=(Rerank(3, "length"), *own.finish[1:])),
            lambda own: own.with_strategy(parse_strategy("rrf(0.01*vector, 0.01*bm25, 9*graph)")),
            lambda own: own.with_strategy(parse_strategy("graph")),
        ],
        ids=["three places", "other weights", "another strategy"],
    )
    def test_a_replay_that_leaves_them_is_refused_unless_all_were_scored(self, space, stub, change):
        own = config(space)
        other = change(own)
        queries = space.dataset.queries
        with pytest.raises(ConfigError, match="record with --rerank"):
            replay(record(space, queries, [own]), other)
        run = replay(record(space, queries, [own], "all"), other)
        assert np.array_equal(run.ranking.row, replay(record(space, queries, [other]), other).ranking.row)

    def test_what_it_made_of_the_list_is_explained(self, space, stub, monkeypatch):
        for name, value in RERANKING.items():
            monkeypatch.setenv(name, value)
        record_ = explain(space, "q2", "spec_kit", limit=4).record["configurations"][0]
        first, second, *others = record_["entries"]
        assert record_["intent"] == "fix_bug"  # its one primary keyword, 2, in a pattern, 1
        assert record_["finish"] == ["rerank(2, penalty=length)", "cut(4)"]
        for entry in (first, second):
            score, penalty = (part["value"] for part in entry["finished"]["parts"])
            assert score == ord(entry["id"][0]) / 100
            assert entry["score"] == entry["finished"]["value"] == score * penalty
            assert entry["fused"] == pytest.approx(
                sum(t["contribution"] for t in entry["contributions"]) * entry["factor"]["value"]
            )
        assert all("finished" not in entry for entry in others)
        assert first["factor"]["parts"].keys() == {"bonus times(0.1)", "promised", "document_type"}
        (whole,) = explain(space, "q2", "spec_kit", entry=first["id"], limit=4).record["entry"]["configurations"]
        assert whole["explanation"]["value"] == first["score"]


class TestAlteredRecordings:
    @pytest.fixture
    def recorded(self, space, tmp_path):
        save(record(space, space.dataset.queries, [config(space, {})]), tmp_path / "recorded")
        return tmp_path / "recorded"

    @tabled
    def test_of_another_search_along_relations_it_is_refused(self, space, recorded, name, value):
        own = config(space, {})
        graph = replace(own.retrievers["graph"], parameters={name: value})
        with pytest.raises(ConfigError, match=rf"retrievers\.graph\.{name}"):
            replay(read(recorded), replace(own, retrievers=own.retrievers | {"graph": graph}))

    @tabled
    def test_without_a_fact_or_of_another_version_it_is_refused(self, recorded, changed, lost, why):
        alter(recorded, lambda manifest: (manifest.update(changed), manifest["arrays"].pop(lost, None)))
        with pytest.raises(DataError, match=why):
            read(recorded)

    @tabled
    def test_with_facts_that_do_not_fit_it_is_broken(self, recorded, name, kind, values):
        np.save(recorded / f"{name}.npy", np.array(values, kind))
        alter(recorded, lambda manifest: manifest["arrays"].update({name: [len(values)]}))
        with pytest.raises(DataError, match=name.replace(".", r"\.")):
            read(recorded)


def alter(folder, change):
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


class Dies(RecordedEmbedder):
    """An embedder that works until it dies."""

    dead = False

    def embed(self, texts, kind="entry"):
        if self.dead:
            raise EmbedderError("the embedder is gone")
        return super().embed(texts, kind)


PARTS = ("vector", "bm25", "graph", "rerank")
LOST = [lost for count in range(1, 5) for lost in itertools.combinations(PARTS, count)]
ASKED = ("jwt token", "cookie", "cache key")


def entries():
    return [replace(read_entry(row)[0], created_at=NOW - 86_400.0, access_count=None) for row in corpus()]


@pytest.fixture
def searcher():
    recipe = "{title}\n{text}"
    texts = [f"{e.title}\n{e.text}" for e in entries()] + list(ASKED)
    embedder = Dies("letters", recipe, {text: letters(text) for text in texts})
    with vault_with(*entries()) as vault:
        embed_missing(vault, embedder, space_of(embedder, "text", recipe))
        own = find_system("spec_kit").config(4, environ=RERANKING)
        yield Searcher(vault, own, embedder, clock=lambda: NOW, reranker=Lengths())


def letters(text):
    return np.array([text.count(letter) for letter in "acehjkostwy"], dtype=np.float32)


def kill(searcher, parts, monkeypatch):
    def gone(*args, **options):
        raise VaultError("the index is gone")

    searcher._sources.embedders[0].dead = "vector" in parts
    searcher.reranker.dead = "rerank" in parts
    if "bm25" in parts:
        monkeypatch.setattr(Bm25Retriever, "retrieve", gone)
    if "graph" in parts:
        monkeypatch.setattr(GraphRetriever, "follow", gone)


def expected(parts):
    """The document: keywords by FTS5 without BM25, and what else is left without graph and vectors."""
    left = {"fts" if "bm25" in parts else "bm25"}
    return left | ({"vector", "graph"} - set(parts))


@pytest.mark.parametrize("lost", LOST, ids="+".join)
def test_in_the_middle_what_is_left_answers_is_told_once_and_counted(searcher, lost, monkeypatch, caplog):
    whole = searcher.search(ASKED[0])
    assert not whole.degraded and searcher.degraded == 0
    assert whole.strategy.signals & {"vector", "bm25", "fts", "graph"} == {"vector", "bm25", "graph"}
    kill(searcher, lost, monkeypatch)
    with caplog.at_level(logging.WARNING):
        results = [searcher.search(text) for text in ASKED[1:]]
    for result in results:
        assert result.hits and result.degraded
        assert result.strategy.signals & {"vector", "bm25", "fts", "graph"} == expected(lost)
        assert (RERANK in result.table.columns) == ("rerank" not in lost)
        assert len(result.notes) == len(lost)
    assert searcher.degraded == 2
    assert len(caplog.records) == len(lost)


@pytest.mark.parametrize("lost", LOST, ids="+".join)
def test_it_is_the_list_of_a_search_that_never_had_them(searcher, lost, monkeypatch):
    kill(searcher, lost, monkeypatch)
    found = searcher.search(ASKED[0])
    monkeypatch.undo()
    text = f"rrf({', '.join(sorted(expected(lost) - {'graph'}, key='vector bm25 fts'.index))}"
    text += ")" if "graph" in lost else ", 1.5*graph)"
    own = searcher.config
    strategy = str(own.strategy).replace("rrf(vector, bm25, 1.5*graph, ", text[:-1] + ", ")
    after = tuple(name for name in ("vector", "bm25", "fts") if name in expected(lost))
    graph = replace(own.retrievers["graph"], after=after)
    plain = replace(
        own.with_strategy(parse_strategy(strategy)),
        retrievers=own.retrievers | {"graph": graph},
        finish=own.finish[1:] if "rerank" in lost else own.finish,
    )
    alive = Dies("letters", "{title}\n{text}", {t: letters(t) for t in ASKED})
    never = Searcher(searcher.store, plain, alive, clock=lambda: NOW, reranker=Lengths()).search(ASKED[0])
    assert [(hit.entry.id, hit.score) for hit in found.hits] == [(hit.entry.id, hit.score) for hit in never.hits]


def test_what_comes_back_is_used_again(searcher, monkeypatch):
    kill(searcher, PARTS, monkeypatch)
    searcher.search(ASKED[0])
    monkeypatch.undo()
    searcher._sources.embedders[0].dead = searcher.reranker.dead = False
    back = searcher.search(ASKED[1])
    assert not back.degraded
    assert searcher.degraded == 1


def merged(lists, if_none):
    """The ids of one query's list by fts after the merge; memory and fts are the two retrievers."""
    found = {name: [ScoredId(id_, 1.0 / at, at) for at, id_ in enumerate(own, 1)] for name, own in lists.items()}
    table = join([Query("q")], [NOW], [found], {}, None)
    rows = [table.entries.index(id_) for id_ in lists["fts"]]
    scores = np.array([1.0 / at for at in range(1, len(rows) + 1)])
    ranking = Ranking(np.array([0, len(rows)]), np.array(rows, dtype=np.int64), scores)
    return ids(table, Merge("memory", score=0.0, if_none=if_none)(table, ranking).row)


def test_at_most_so_many_join_a_list_without_any_and_none_joins_one_that_has():
    assert merged({"fts": ["x", "y"], "memory": ["c", "b", "a"]}, 2) == ["x", "y", "c", "b"]
    assert merged({"fts": ["x", "b"], "memory": ["c", "b", "a"]}, 2) == ["x", "b"]
