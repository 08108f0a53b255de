"""What system-spec-kit's document promises, searched as a user would."""

import json
import math
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from tables import Spy, merged
from tests.unit.shared import tabled, vault_with

from steelyard import Entry, Filters, Query, RecordedEmbedder, Searcher, find_system, parse_strategy
from steelyard.base.errors import ConfigError, VaultError
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.finish import Floor, Mmr
from steelyard.memory.entry import read_entry
from steelyard.retrievers.keywords import Bm25Index
from steelyard.signals import PRIORS
from steelyard.signals.formulas import PROMISED
from steelyard.stores.base import ScoredId
from steelyard.stores.postings import ScopedPostings
from steelyard.systems.spec_kit import DOCUMENTED, enhanced
from steelyard.systems.spec_kit.words import INTENTS, STOP_WORDS, intent, intent_shipped, tokens_documented
from steelyard.table.join import join

RECIPE = "{title}\n{text}"
SENTENCES = Path(__file__).parents[1] / "data" / "intents.jsonl"
SAMPLES = json.loads(Path(__file__).with_name("spec_kit.json").read_text("utf-8"))
NOW = 1_770_000_000.0
DAY = 86_400.0


def fused(ranks, strategy):
    """The score of the entry x, which each list holds at a rank."""
    lists = {
        name: [("x" if at == rank else f"{name}{at}", 1 - at / 100) for at in range(1, rank + 1)]
        for name, rank in ranks.items()
    }
    return dict(merged(parse_strategy(strategy), [], **lists))["x"]


class TestFigures:
    def test_reciprocal_rank_fusion(self):
        """Vector rank 2, BM25 rank 5, graph rank 1: 0.0561, and 0.0617 with the convergence bonus."""
        ranks = {"vector": 2, "bm25": 5, "graph": 1}
        assert fused(ranks, "rrf(vector, bm25, 1.5*graph, k=60)") == pytest.approx(1 / 62 + 1 / 65 + 1.5 / 61)
        assert round(fused(ranks, "rrf(vector, bm25, 1.5*graph, k=60)"), 4) == 0.0561
        assert round(fused(ranks, "rrf(vector, bm25, 1.5*graph, k=60, bonus=times(0.1))"), 4) == 0.0617
        assert str(DOCUMENTED.searching.strategy.expr) == "rrf(vector, bm25, 1.5*graph, k=60, bonus=times(0.1))"

    @pytest.mark.parametrize(("query", "name", "scores"), SAMPLES["weighed"])
    def test_keyword_weighting(self, query, name, scores):
        """fix 2, crash 2, login 1. No parts of words, whole words in any regular ending; below 3 the default.

        A pattern stands in for the secondary keyword of a query that has none: 2 + 1, never 2 + 1 + 1. Among
        equals another intent goes before the default: plan 2 and 1, what is 2 and 1.
        """
        found = intent(query)
        assert (found.name, {one: found.scores[one] for one in scores}) == (name, scores)
        assert 0 <= found.confidence <= 1

    @pytest.mark.parametrize(
        ("classifier", "right"), [(intent, (7, 5, 3, 6, 10, 5, 3)), (intent_shipped, (7, 1, 2, 3, 10, 4, 2))]
    )
    def test_seventy_sentences_ten_an_intent(self, classifier, right):
        """Written before the lists were looked at; 21 of them were right before the lists were completed."""
        rows = [json.loads(line) for line in SENTENCES.read_text().splitlines()]
        found = Counter(row["intent"] for row in rows if classifier(row["query"]).name == row["intent"])
        assert tuple(found[intent] for intent in INTENTS) == right

    def test_tokens(self):
        assert tokens_documented("user_authentication_flow") == ["user", "authent", "flow"]
        assert len(STOP_WORDS) == 44

    def test_bm25(self):
        """log((N - n + 0.5) / (n + 0.5) + 1) * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * |D| / avgdl))."""
        counted = ScopedPostings.of([("a", (["jwt", "jwt", "flow"], ())), ("b", (["flow"], ()))])
        index = Bm25Index(counted, 1.2, 0.75)
        idf = math.log((2 - 1 + 0.5) / (1 + 0.5) + 1)
        assert index.scores(["jwt"])[0] == pytest.approx(idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2)))

    @tabled
    def test_priors_by_hand(self, prior, count, value):
        """Of so many characters, and of so many uses at no known time."""
        entry = {"length": Entry("a", text="x" * count), "popularity": Entry("a", access_count=count)}[prior]
        found = [{"fts": [ScoredId("a", 1.0, 1)]}]
        table = join([Query("q")], [NOW], found, {}, lambda *_: [entry])
        assert PRIORS[prior](table, {}).values[0] == pytest.approx(value)


LETTERS = "acdeginorstu"


def embed(text):
    return np.array([text.lower().count(letter) for letter in LETTERS], dtype=np.float32)


NOTES = [read_entry(row)[0] for row in SAMPLES["notes"]]


@pytest.fixture
def vault():
    store = vault_with(*[replace(entry, created_at=NOW - 30 * DAY) for entry in NOTES])
    embed_missing(store, embedder(), space_of(embedder(), "text", RECIPE))
    with store:
        yield store


QUERIES = ("jwt", "jwt validation", "fix jwt", "seach jwt", "fts", "sign all")


def embedder(*more):
    texts = [*(f"{e.title}\n{e.text}" for e in (*NOTES, *more)), *QUERIES]
    return RecordedEmbedder("letters", RECIPE, {text: embed(text) for text in texts})


def searcher(vault, system="spec_kit", environ=None, own=None, **options):
    config = find_system(system).config(4, environ=environ or {})
    return Searcher(vault, config, own or embedder(), clock=lambda: NOW, **options)


def ids(result):
    return [hit.entry.id for hit in result.hits]


class TestSearch:
    def test_three_sources_and_what_the_result_shows(self, vault):
        result = searcher(vault).search("jwt validation")
        first = DOCUMENTED.showing.show(result.hits[0], result)
        by_id = {hit.entry.id: DOCUMENTED.showing.show(hit, result) for hit in result.hits}

        assert first["id"] == "jwt"
        assert set(first["sources"]) >= {"vector", "bm25"}
        assert (first["vectorRank"], first["bm25Rank"]) == (1, 1)
        weights = {"vectorRank": 1, "bm25Rank": 1, "graphRank": 1.5}
        parts = [own / (60 + first[rank]) for rank, own in weights.items() if first[rank] is not None]
        assert first["rrfScore"] == first["score"] == pytest.approx(1.1 * sum(parts))
        assert by_id["incident"]["graphRank"] is not None
        assert all(shown["sourceCount"] == len(shown["sources"]) for shown in by_id.values())
        assert "JWT" in first["snippet"]

    def test_the_rrf_score_is_the_one_before_factors(self, vault):
        """1 / 66 for a place of one list; how old an entry is multiplies `score` alone."""
        config = searcher(vault).config
        decayed = config.with_strategy(parse_strategy("boost(rrf(vector, k=65), decay)"))
        own = replace(config, by_intent={"fix_bug": parse_strategy("boost(rrf(vector, k=9), promised)")})
        plain = searcher(vault, environ={"ENABLE_RRF_FUSION": "false"}).config
        for asked, expected in ((decayed, pytest.approx(1 / 66)), (own, pytest.approx(1 / 10)), (plain, None)):
            result = Searcher(vault, asked, embedder(), clock=lambda: NOW).search(Query("jwt", intent="fix_bug"))
            shown = DOCUMENTED.showing.show(result.hits[0], result)
            assert shown["rrfScore"] == expected
            if asked is decayed:
                assert shown["score"] == pytest.approx(result.fused[result.row(result.hits[0])])
                assert shown["score"] != pytest.approx(shown["rrfScore"])

    @tabled
    def test_a_result_says_how_sure_the_classifier_was(self, vault, given, intent, sure):
        """The document's example, 5.0: s / (s + 1)."""
        query = "fix login crash after update"
        own = RecordedEmbedder("letters", RECIPE, {query: embed("jwt")})
        result = searcher(vault, own=own).search(Query(query, intent=given))
        shown = DOCUMENTED.showing.show(result.hits[0], result)
        assert (shown["intent"], shown["intentConfidence"]) == (intent, sure and pytest.approx(sure))

    def test_a_folder_bounds_every_source(self, vault):
        inside = Filters.of({"project": "specs/007-auth"})
        assert set(ids(searcher(vault).search(Query("jwt", filters=inside)))) <= {"jwt", "session"}

    def test_one_keyword_hit_earns_no_bonus(self, vault):
        """FTS5 and BM25 are one source: only one of them is asked."""
        result = searcher(vault, environ={"ENABLE_BM25": "false"}).search("jwt")
        assert "bm25" not in result.table.columns
        assert "fts" in result.table.columns
        assert "fts" not in searcher(vault).search("jwt").table.columns
        shown = DOCUMENTED.showing.show(result.hits[0], result)
        assert (shown["bm25Rank"], shown["ftsRank"]) == (None, 1)
        assert set(shown["sources"]) >= {"fts"} and "bm25" not in shown["sources"]
        both = searcher(vault).search("jwt")
        assert "ftsRank" not in DOCUMENTED.showing.show(both.hits[0], both)

    @pytest.mark.parametrize("intent", sorted(PROMISED))
    def test_each_intent_promotes_what_it_promises(self, intent):
        for name, words in PROMISED[intent].items():
            other = "readme" if name == "document_type" else "other"
            entries = [Entry("a", **{name: other}), Entry("b", **{name: words[0]})]
            found = [{"vector": [ScoredId("a", 0.9, 1), ScoredId("b", 0.8, 2)]}]
            table = join([Query("q", intent=intent)], [NOW], found, {}, lambda *_, own=entries: own)
            assert PRIORS["promised"](table, {}).values.tolist() == [1.0, 1.5]

    def test_a_given_intent_wins_over_the_classifier(self, vault):
        assert searcher(vault).search("fix jwt").query.intent == "fix_bug"
        assert searcher(vault).search(Query("fix jwt", intent="find_spec")).query.intent == "find_spec"

    @tabled
    def test_an_intent_of_no_system_is_refused_with_the_list(self, vault, system, count):
        with pytest.raises(ConfigError, match="intent 'nonsense'") as told:
            searcher(vault, system).admitted(Query("jwt", intent="nonsense"))
        assert len(str(told.value).split("valid: ")[1].split(", ")) == count

    def test_typos_are_mended_where_words_match_and_not_where_meaning_does(self, vault):
        asked = searcher(vault).search("seach jwt").query
        assert asked.text == "seach jwt"
        assert asked.matched.startswith("search jwt")
        assert "Full Text Search" in searcher(vault).search("fts").query.matched
        assert enhanced("Databasse js").endswith(" JavaScript ECMAScript database")
        assert [enhanced(word) for word in ("functions", "is", "index")] == ["functions", "is", "index"]


class Stub:
    """A re-ranker with fixed scores."""

    name = "stub"

    def __init__(self, scores):
        self.scores, self.calls = scores, 0

    def score(self, query, documents):
        self.calls += 1
        return np.array([self.scores.get(document.id, 0.1) for document in documents])


RERANK = {"ENABLE_CROSS_ENCODER": "true"}


class TestReranking:
    def test_the_final_score_orders_and_is_shown(self, vault):
        stub = Stub({"cache": 0.9, "jwt": 0.5})
        result = searcher(vault, environ=RERANK, reranker=stub).search("jwt validation")
        shown = DOCUMENTED.showing.show(result.hits[0], result)
        assert stub.calls == 1
        scores = [hit.score for hit in result.hits]
        assert scores == sorted(scores, reverse=True)
        assert shown["finalScore"] == pytest.approx(shown["crossEncoderScore"] * shown["lengthPenalty"])
        assert shown["lengthPenalty"] == pytest.approx(0.8 + 0.2 * len(result.hits[0].entry.text) / 100)

    def test_behind_the_reranked_ones_scores_are_compared_on_one_scale(self, vault):
        """`finalScore` sorts the first two; `score` is that of the fusion for all."""
        stub = Stub({"jwt": 0.001, "session": 0.002})
        environ = RERANK | {"MAX_RERANK_CANDIDATES": "2"}
        result = searcher(vault, environ=environ, reranker=stub).search("jwt validation")
        shown = [DOCUMENTED.showing.show(hit, result) for hit in result.hits]
        fused = {hit.entry.id: hit.score for hit in searcher(vault).search("jwt validation").hits}
        assert {row["id"]: row["score"] for row in shown} == pytest.approx(fused)
        assert ["finalScore" in row for row in shown[:3]] == [True, True, False]
        assert shown[0]["finalScore"] >= shown[1]["finalScore"]


def dies(*args, **options):
    raise VaultError("gone")


class TestDegradation:
    def test_without_embedder_keywords_and_graph_answer(self, vault):
        config = find_system("spec_kit").config(4)
        result = Searcher(vault, config, None, clock=lambda: NOW).search("jwt")
        assert ids(result)[0] in ("jwt", "incident")
        assert "vector" not in result.table.columns
        vault.upsert([replace(entry, relations=()) for entry in NOTES], keep_vectors=True)
        assert Searcher(vault, config, embedder(), clock=lambda: NOW).search("jwt").hits

    @pytest.mark.parametrize("lacked", [{"bm25"}, {"vectors"}, {"bm25", "vectors"}])
    def test_a_note_names_what_a_stage_lacked(self, vault, monkeypatch, lacked):
        config = replace(find_system("spec_kit").config(4), finish=(Floor(0.1), Mmr(3)))
        own = Spy("letters", down=True) if "vectors" in lacked else embedder()
        asked = Searcher(vault, config, own, clock=lambda: NOW)
        if "bm25" in lacked:
            monkeypatch.setattr(vault, "counted", dies)
        notes = [why for note in asked.search("jwt").notes if (why := note.partition(" was left out: ")[2])]
        told = [{"bm25", "vectors"}.intersection(why.split()) for why in notes]
        assert told == [names for names in (lacked, lacked - {"bm25"}) if names]

    def test_a_retriever_that_no_system_can_spare_is_an_error(self, vault, monkeypatch):
        monkeypatch.setattr(vault, "keyword", dies)
        with pytest.raises(VaultError, match="gone"):
            Searcher(vault, find_system("echovault").config(4), None).search("jwt")


class TestEnvironment:
    def config(self, **environ):
        return find_system("spec_kit").config(10, environ=environ)

    @tabled
    def test_variables_set_what_they_name(self, tmp_path, environ, holds):
        config = self.config(**environ)
        told = {
            "usual": config == find_system("spec_kit").config(10),
            "strategy": str(config.strategy),
            "keywords": sorted({"bm25", "fts"} & config.retrievers.keys()),
            "signals": sorted({"bm25", "fts"} & config.strategy.signals),
            "after": list(config.retrievers["graph"].after),
            "first": str(config.finish[0]),
            "rerank": asdict(config.rerank),
            "sizes": [find_system("spec_kit").config().limit, config.retrievers["vector"].depth],
        }
        assert told == told | holds
        config.save(tmp_path / "w.json")  # a weights file holds what was resolved
        assert type(config).load(tmp_path / "w.json") == config

    def test_fuzzy_matching(self, vault):
        asked = Searcher(vault, self.config(ENABLE_FUZZY_MATCH="false"), None, clock=lambda: NOW)
        assert asked.search("seach jwt").query.matched == "seach jwt"

    def test_every_bad_value_is_named(self):
        with pytest.raises(ConfigError) as caught:
            self.config(ENABLE_BM25="maybe", MAX_RERANK_CANDIDATES="0", RERANK_CACHE_SIZE="many")
        for name in ("ENABLE_BM25", "MAX_RERANK_CANDIDATES", "RERANK_CACHE_SIZE"):
            assert name in str(caught.value)


class TestShipped:
    """The second sorting by the weights of understand: recency 0.2, importance 0.3, similarity 0.5. All dates are
    equal here, so that everything is as new as can be, and an importance that is not given is 0.5.
    """

    @pytest.fixture
    def asked(self, vault):
        tiered = [read_entry(row)[0] for row in SAMPLES["tiered"]]
        vault.upsert(replace(entry, created_at=NOW - 30 * DAY) for entry in tiered)
        own = embedder(*tiered)
        embed_missing(vault, own, space_of(own, "text", RECIPE))
        return Searcher(vault, find_system("spec_kit:shipped").config(6), own, clock=lambda: NOW)

    def test_tiers_that_are_hidden_from_vectors_are_found_by_keywords(self, asked):
        result = asked.search("jwt validation")
        found = dict(zip(result.table.entries, result.table.columns["vector"], strict=True))
        assert np.isnan([found["old"], found["rule"], found["other"]]).all()
        assert not np.isnan([found[entry.id] for entry in NOTES]).any()
        assert "old" in ids(result)

    def test_constitutional_entries_join_a_list_without_any(self, asked):
        assert {"rule", "other"} <= set(ids(asked.search("jwt validation")))
        assert len(asked.search("jwt validation").hits) == 4 + 1 + 2  # by vectors, by keywords alone, joined
        by_keywords = ids(asked.search("sign all"))
        assert "other" in by_keywords and "rule" not in by_keywords

    def test_similarity_is_a_hundredth_of_the_keyword_score_where_vectors_found_nothing(self, asked):
        result = asked.search("jwt validation")
        score = {hit.entry.id: hit.score for hit in result.hits}
        at = {id_: row for row, id_ in enumerate(result.table.entries)}
        keywords, cosine = result.table.columns["fts"], result.table.columns["cosine"]
        assert score["old"] == pytest.approx(0.2 + 0.3 * 0.5 + 0.5 * keywords[at["old"]] / 100)
        assert score["rule"] == pytest.approx(0.2 + 0.3 * 1.0 + 0.5 * (1 + cosine[at["rule"]]) / 2)
        assert score["jwt"] == pytest.approx(0.2 + 0.3 * 0.5 + 0.5 * (1 + cosine[at["jwt"]]) / 2)
