"""The commands on vault files: what they take, print, keep and say."""

import json
import re
import sys

import numpy as np
import pytest
from shared import STARTER, document, done, run, tabled, write_set

from steelyard import Entry, SearchConfig, Searcher, Vault, find_system
from steelyard.base.errors import ConfigError
from steelyard.base.fields import parse_time
from steelyard.embedders.embed import LAYER_RECIPES
from steelyard.memory.entry import Hit
from steelyard.memory.query import visible_to
from steelyard_eval.cli.vault_text import hits
from steelyard_eval.common.configurations import written_name
from steelyard_eval.compare.contenders import read
from steelyard_eval.measures.metrics import Measure, evaluate_lists
from steelyard_eval.vaults import reindex_vault, vault_embedder, visible_vault
from steelyard_eval.vaults.arguments import layered_entries, parse_filters, parse_tier

WORDS = ("red apple", "green pear", "red pear", "blue plum", "green apple")


def folder_of(path, entries):
    """A data set of these entries, with one judged query."""
    return write_set(path, entries, ["red"], f"q1 0 {entries[0]['id']} 1\n", text_for_embedding="{title}")


def fruit(**more):
    return [{"id": f"m{at}", "title": text, "text": text, **more} for at, text in enumerate(WORDS)]


def test_a_model_whose_vectors_are_of_other_texts_is_not_called_missing(tmp_path):
    for name in ("moltnet", "soleri"):
        find_system(name).config(10, "lsa").save(tmp_path / f"{name}.json")
    done("index", STARTER, tmp_path / "v.db", "--weights", tmp_path / "soleri.json")
    log, weights = tmp_path / "log.jsonl", tmp_path / "moltnet.json"
    ran = done("search", tmp_path / "v.db", "rotate keys", "--weights", weights, "--log", log, "--json")
    assert "no vectors" in ran.stderr and "'lsa'" not in ran.stderr
    assert json.loads(ran.stdout)["degraded"]  # and the log says it, whatever moved the list
    assert json.loads(log.read_text().splitlines()[-1])["degraded"]


def test_a_filter_that_no_entry_passes_is_named(tmp_path):
    done("index", STARTER, tmp_path / "v.db", "--embedder", "none")
    found = document("search", tmp_path / "v.db", "rotate keys", "--filter", "kind=fix", "--system", "bm25")
    assert (found["hits"], "kind is 'fix'" in found["notes"][0], found["degraded"]) == ([], True, False)


def test_a_hit_fits_its_lines_and_names_the_signals_that_add_to_it(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    found = Hit(1, 2.5, Entry("a1", "t" * 99, "text " * 99), {"bm25": 2.5, "fts": 0.0})
    head, *below = hits([found]).splitlines()
    assert len(head) == 60  # cut with its mark of it
    assert len(below) == 5 and max(map(len, below)) <= 60 and below[-1].strip() == "bm25 2.5000"


def ids(rows):
    return [row["id"] for row in rows]


@pytest.mark.parametrize("words", ["index mine mine.db --embedder auto", "vault act log q m1 --action liked"])
def test_a_word_that_is_none_of_those_that_are_declared_is_refused(words):
    assert "is not one of" in done(*words.split(), code=2).stderr


DAYS = ("2025-12-31T23:59:59Z", "2026-01-01", "2026-03-31T12:00:00Z", "2026-12-31T23:59:59.5Z", "2027-01-01")


class TestVault:
    @tabled
    def test_a_year_a_month_or_a_day_stands_for_all_of_it(self, filters, places):
        asked = parse_filters(filters)
        entries = [*(Entry(str(at), created_at=parse_time(day)) for at, day in enumerate(DAYS)), Entry("undated")]
        assert "".join(entry.id for entry in entries if not asked.failed(entry)) == places

    @tabled
    def test_what_is_no_filter_is_refused(self, texts, rule):
        with pytest.raises(ConfigError, match=rule):
            parse_filters(texts)

    def test_entries_that_left_are_named_and_pruned(self, tmp_path):
        path = tmp_path / "v.db"
        done("index", folder_of(tmp_path / "set", fruit()), path)
        smaller = folder_of(tmp_path / "set", fruit()[:3])
        counts = document("index", smaller, path)
        assert (counts["entries"], counts["outside"], counts["removed"]) == (5, 2, 0)
        pruned = done("index", smaller, path, "--prune", "--json")
        counts = json.loads(pruned.stdout)
        assert (counts["entries"], counts["outside"], counts["removed"], pruned.stderr) == (3, 0, 2, "")
        assert ids(document("vault", "list", path)["entries"]) == ["m0", "m1", "m2"]
        with Vault(path) as store:  # every vector of what left is gone too
            assert {len(store.vectors(space, parse_filters([]))[0]) for space, _ in store.spaces()} == {3}

    def test_entries_that_say_the_same_are_named(self, tmp_path):
        one = {"id": "a", "title": " Red ", "tags": ["x", "y"]}
        other = {"id": "b", "title": "Red", "tags": ["y", "x"]}
        folder = folder_of(tmp_path / "set", [one, other, *fruit(), {"id": "empty1"}, {"id": "empty2"}])
        for words in (("check", folder), ("index", folder, tmp_path / "v.db")):
            assert document(*words)["duplicates"] == [["a", "b"]]

    def test_a_list_that_is_longer_than_its_limit_says_why(self, vault):
        found = document("search", vault, "rotate keys", "--system", "soleri", "--limit", 1)
        (note,) = found["notes"]
        assert len(found["hits"]) > 1
        assert note.startswith(f"{len(found['hits'])} hits, not 1: soleri:documented keeps a list whole")

    def test_the_strategy_of_the_intent_answers(self, vault, tmp_path):
        record = find_system("plain").config(5).to_json() | {"strategy": "fts", "by_intent": {"fix_bug": "bm25"}}
        (tmp_path / "w.json").write_text(json.dumps(record))
        weights = ("--weights", tmp_path / "w.json")
        default, asked, plain = (
            [hit["score"] for hit in document("search", vault, "rotate keys", *words)["hits"]]
            for words in (weights, (*weights, "--intent", "fix_bug"), ("--system", "bm25", "--limit", 5))
        )
        assert plain == asked != default


MOLTNET = "weighted_sum(1*rrf(vector, fts, k=60), 0.2*recency(half_life={}h, since=access), 0.1*importance)"


def test_the_weights_of_the_document_are_options_and_keys(vault, tmp_path):
    system = find_system("moltnet")
    half_life = str(system.searching.strategy).partition("half_life=")[2].partition("h")[0]
    by_options = ("--system", "moltnet", "--set", "w_recency=0.2", "--set", "importance=0.1")
    record = system.config(10, "lsa").to_json() | {"weights": {"w_recency": 0.2, "w_importance": 0.1}}
    (tmp_path / "w.json").write_text(json.dumps(record))
    by_file = ("--weights", tmp_path / "w.json")
    found = [document("search", vault, "rotate keys", *words) for words in (by_options, by_file)]
    config = SearchConfig.load(tmp_path / "w.json")
    assert {one["strategy"] for one in found} == {str(config.strategy)} == {MOLTNET.format(half_life)}
    assert ids(found[0]["hits"]) == ids(found[1]["hits"])
    assert "weights" not in config.to_json()  # they are in the strategy now
    own, first, second = (
        ids(document("vault", "context", vault, "rotate keys", *words)["entries"])
        for words in (("--system", "moltnet"), by_options, by_file)
    )
    assert first == second != own  # scores follow the clock, so that they are not compared


@tabled
def test_what_is_searched_is_named_by_its_system_and_strategy(vault, words, system, strategy):
    """A weight reaches every term of its name: factors of boost, lists of rrf, and sums inside tiers."""
    shown = document("search", vault, "rotate keys", *words)
    assert shown["system"] == f"{system}:documented"
    assert strategy in shown["strategy"]
    assert shown["hits"]


# The parameters of retrievers, in brackets behind the name of a system


class TestParameters:
    @tabled
    def test_what_is_no_parameter_is_refused(self, name, problem):
        with pytest.raises(ConfigError, match=re.escape(problem)):
            find_system(name)

    def test_comparisons_and_commands_name_them(self):
        (one, other) = (read(text) for text in ("spec_kit[graph.hops=1, graph.seeds=3]", "spec_kit"))
        assert [row.kind for row in (one, other)] == ["system", "system"]
        config = find_system(one.given).config(10)
        assert config.retrievers["graph"].parameters == {"hops": 1, "seeds": 3}
        assert written_name(config) == "spec_kit[graph.hops=1, graph.seeds=3]"
        assert written_name(find_system("spec_kit:shipped").config(10)) == "spec_kit:shipped"

    def test_the_semantic_mode_of_a_weights_file_is_used(self, vault, tmp_path):
        """A word that is in no entry: keywords find too little, so the mode decides whether it is embedded."""
        weights, calls = tmp_path / "w.json", {}
        for mode in ("never", "always", "sometimes"):
            record = find_system("echovault").config(10, "lsa").to_json() | {"context": {"semantic": mode}}
            weights.write_text(json.dumps(record))
            if mode == "sometimes":
                done("vault", "context", vault, "x", "--weights", weights, code=2)
                continue
            with Vault(vault) as store:
                searcher = Searcher(store, SearchConfig.load(weights), vault_embedder(store))
                assert searcher.context("xylophone")[0]
                calls[mode] = searcher._sources.embedding_calls
        assert calls == {"never": 0, "always": 1}

    def test_a_value_that_is_wrong_ends_with_2_and_is_named(self, monkeypatch):
        values, measured = evaluate_lists, []

        def wrong(*arguments):
            measured.append(values(*arguments))
            if len(measured) == 2:  # fts comes first, then bm25
                measured[1][Measure("nDCG", 10)][4] += 1e-6
            return measured[-1]

        monkeypatch.setattr(sys.modules["steelyard_eval.compare.compare"], "evaluate_lists", wrong)
        tables = json.loads(done("compare", STARTER, "fts,bm25", "--verify", "--json", code=2).stdout)["tables"]
        (verified,) = [one for one in tables if one["key"] == "verification"]
        assert verified["rows"][0] == ["nDCG@10", pytest.approx(1e-6), "bm25", "q05"]

    def test_the_model_of_what_a_caller_may_see_is_fitted_on_nothing_else(self, tmp_path):
        path = tmp_path / "v.db"
        with Vault(path, create=True) as vault:
            for name in ("mine", "foreign"):
                texts = (f"{name} {a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS[:2])
                vault.upsert([Entry(f"{name}{at}", text=text, vault=name) for at, text in enumerate(texts)])
        reindex_vault(str(path))
        with Vault(path) as vault, visible_vault(vault, visible_to({"vault": ("mine",)})) as seen:
            fitted, whole = vault_embedder(seen), vault_embedder(vault)
            assert np.any(whole.embed(["foreign"]))
            assert np.any(fitted.embed(["mine pear"]))
            assert not np.any(fitted.embed(["foreign"]))

    def test_a_database_gives_its_name_to_a_tier(self):
        addresses = ("postgresql://host/notes?sslmode=require", "postgresql:///?host=h")
        assert [parse_tier(address)[0] for address in addresses] == ["notes", "postgres"]

    def test_abstracts_are_made_where_they_are_asked_for_and_by_a_model_with_an_endpoint(self, monkeypatch):
        monkeypatch.delenv("LLM_BASE_URL", raising=False)
        entries = [Entry("m1", "Rotate them. Ask ops.")]
        assert [layered_entries(entries, how)[0].l0 for how in ("extractive", "none")] == ["Rotate them.", ""]
        with pytest.raises(ConfigError, match="layers llm needs an endpoint"):
            layered_entries(entries, "llm")

    @tabled
    def test_a_vault_has_the_vectors_of_a_weights_file(self, tmp_path, monkeypatch, model, named, embedder):
        asked = []
        counts = {"entries": 5, "outside": 0, "duplicates": [], "stale": []}
        monkeypatch.setattr(
            "steelyard_eval.vaults.index_dataset",
            lambda data, vault, embedder, **options: asked.append(embedder) or counts,
        )
        find_system("echovault").config(10, model).save(tmp_path / "w.json")
        folder = folder_of(tmp_path / "mine", fruit())
        words = ("index", folder, tmp_path / "m.db", "--weights", tmp_path / "w.json")
        unknown = embedder == "x"  # which no embedder makes
        done(*words, *named, code=2 if unknown else 0)
        assert asked == ([] if unknown else [embedder])

    @pytest.mark.parametrize(
        ("system", "layers"), [("echovault", {"text"}), ("cortex_mem", {"text", *LAYER_RECIPES})]
    )
    def test_weights_need_no_vectors_that_they_do_not_read(self, tmp_path, system, layers):
        weights = tmp_path / "w.json"
        find_system(system).config(10, "lsa").save(weights)
        for name, more in (("all.db", ()), ("own.db", ("--weights", weights))):
            done("index", STARTER, tmp_path / name, *more)
        made = (tmp_path / name for name in ("all.db", "own.db"))
        found = [run("search", vault, "rotate keys", "--weights", weights, "--json") for vault in made]
        assert json.loads(found[0].stdout)["hits"] == json.loads(found[1].stdout)["hits"] != []
        assert found[0].stderr == found[1].stderr
        with Vault(tmp_path / "own.db") as own, Vault(tmp_path / "all.db") as whole:
            spaces, before = [{space for space, _ in vault.spaces()} for vault in (own, whole)]
        assert ({space.layer for space in spaces}, len(spaces) < len(before)) == (layers, True)
        done("index", STARTER, tmp_path / "all.db", "--weights", weights)  # what is there stays
        with Vault(tmp_path / "all.db") as whole:
            assert {space for space, _ in whole.spaces()} == before
