"""The commands on vault files: what they take, print, keep and say."""

import json
import re
import sys

import numpy as np
import pytest
from beside import table
from command_line import document, run
from written_set import write_set

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.embedders.embed import LAYER_RECIPES
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import visible_to
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard_eval.common.configurations import written_name
from steelyard_eval.compare.contenders import read
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.measures.metrics import Measure, evaluate_lists
from steelyard_eval.vaults import index_dataset, reindex_vault, vault_embedder, visible_vault
from steelyard_eval.vaults.arguments import layered_entries, parse_filters

WORDS = ("red apple", "green pear", "red pear", "blue plum", "green apple")


def folder_of(path, entries):
    """A data set of these entries, with one judged query."""
    return write_set(path, entries, ["red"], f"q1 0 {entries[0]['id']} 1\n", text_for_embedding="{title}")


def fruit(**more):
    return [{"id": f"m{at}", "title": text, "text": text, **more} for at, text in enumerate(WORDS)]


def ids(rows):
    return [row["id"] for row in rows]


class TestDashes:
    def test_a_dash_is_an_exclusion_where_the_system_has_them(self, vault):
        ids = {hit["id"] for hit in document("search", vault, "-incident", "--system", "moltnet")["hits"]}
        assert ids
        assert "team-incident-review" not in ids

    def test_the_value_of_an_option_may_begin_with_a_dash(self, vault):
        result = run("search", vault, "keys", "--set", "domain=-x", "-h")
        assert result.exit_code == 0
        assert result.stdout.startswith("Usage: ")


class TestFilters:
    DAYS = (
        "2025-12-31T23:59:59Z",
        "2026-01-01",
        "2026-03-31T12:00:00Z",
        "2026-12-31T23:59:59.5Z",
        "2027-01-01",
        None,
    )

    def chosen(self, tmp_path, *filters):
        entries = [
            {"id": f"m{at}", "text": "x", **({"created_at": day} if day else {})}
            for at, day in enumerate(self.DAYS)
        ]
        path = tmp_path / "v.db"
        index_dataset(load(folder_of(tmp_path / "set", entries)), str(path), "none")
        words = [word for text in filters for word in ("--filter", text)]
        return sorted(entry["id"] for entry in document("vault", "list", path, *words)["entries"])

    @table("filters ids")
    def test_a_year_a_month_or_a_day_stands_for_all_of_it(self, tmp_path, filters, ids):
        assert self.chosen(tmp_path, *filters) == [f"m{at}" for at in ids]

    @pytest.mark.parametrize(
        ("texts", "rule"),
        [
            *(([f"created_at={day}"], "be a number") for day in ("0000", "2026-13", "2026-02-30", "9999")),
            (["created_at=2025", "created_at=2026"], "two bounds"),
            (["created_at!=2026"], "is a time"),
        ],
    )
    def test_what_is_no_time_is_refused(self, texts, rule):
        with pytest.raises(ConfigError, match=rule):
            parse_filters(texts)


class TestIndex:
    def test_entries_that_left_are_named_and_pruned(self, tmp_path):
        path = tmp_path / "v.db"
        run("index", folder_of(tmp_path / "set", fruit()), path)
        smaller = folder_of(tmp_path / "set", fruit()[:3])
        kept = run("index", smaller, path, "--json")
        assert "mine; --prune removes" in kept.stderr
        counts = json.loads(kept.stdout)
        assert (counts["entries"], counts["outside"], counts["removed"]) == (5, 2, 0)
        pruned = run("index", smaller, path, "--prune")
        assert "3 entries" in pruned.stdout and "2 removed" in pruned.stdout
        assert pruned.stderr == ""
        assert ids(document("vault", "list", path)["entries"]) == ["m0", "m1", "m2"]
        with Vault(path) as store:  # every vector of what left is gone too
            assert {len(store.vectors(space, parse_filters([]))[0]) for space, _ in store.spaces()} == {3}

    def test_entries_that_say_the_same_are_named(self, tmp_path):
        twins = [
            {"id": "a", "title": " Red ", "tags": ["x", "y"]},
            {"id": "b", "title": "Red", "tags": ["y", "x"]},
        ]
        folder = folder_of(tmp_path / "set", [*twins, *fruit(), {"id": "empty1"}, {"id": "empty2"}])
        assert document("check", folder)["duplicates"] == [["a", "b"]]
        result = run("index", folder, tmp_path / "v.db", "--json")
        assert "another: 'a', 'b'" in result.stderr
        assert json.loads(result.stdout)["duplicates"] == [["a", "b"]]


class TestNotes:
    def test_a_list_that_is_longer_than_its_limit_says_why(self, vault):
        found = document("search", vault, "rotate keys", "--system", "soleri", "--limit", 1)
        (note,) = found["notes"]
        assert len(found["hits"]) > 1
        assert note.startswith(f"{len(found['hits'])} hits, not 1: soleri:documented keeps a list whole")


class TestIntents:
    @pytest.fixture
    def weights(self, tmp_path):
        record = find_system("plain").config(5).to_json() | {"strategy": "fts", "by_intent": {"fix_bug": "bm25"}}
        (tmp_path / "w.json").write_text(json.dumps(record))
        return tmp_path / "w.json"

    def test_the_strategy_of_the_intent_answers(self, vault, weights):
        default = document("search", vault, "rotate keys", "--weights", weights)
        asked = document("search", vault, "rotate keys", "--weights", weights, "--intent", "fix_bug")
        plain = document("search", vault, "rotate keys", "--system", "bm25", "--limit", 5)
        assert [hit["score"] for hit in asked["hits"]] == [hit["score"] for hit in plain["hits"]]
        assert [hit["score"] for hit in asked["hits"]] != [hit["score"] for hit in default["hits"]]


class TestWeights:
    STRATEGY = "weighted_sum(1*rrf(vector, fts, k=60), 0.2*recency(half_life={}h, since=access), 0.1*importance)"

    def test_the_weights_of_the_document_are_options_and_keys(self, vault, tmp_path):
        system = find_system("moltnet")
        half_life = str(system.searching.strategy).partition("half_life=")[2].partition("h")[0]
        changed = ("--set", "w_recency=0.2", "--set", "importance=0.1")
        found = document("search", vault, "rotate keys", "--system", "moltnet", *changed)
        record = system.config(10, "lsa").to_json() | {"weights": {"w_recency": 0.2, "w_importance": 0.1}}
        (tmp_path / "w.json").write_text(json.dumps(record))
        assert found["strategy"] == self.STRATEGY.format(half_life)
        by_file = document("search", vault, "rotate keys", "--weights", tmp_path / "w.json")
        assert (by_file["strategy"], ids(by_file["hits"])) == (found["strategy"], ids(found["hits"]))
        config = SearchConfig.load(tmp_path / "w.json")
        assert str(config.strategy) == found["strategy"]
        assert "weights" not in config.to_json()  # they are in the strategy now
        by_file = document("vault", "context", vault, "rotate keys", "--weights", tmp_path / "w.json")["entries"]
        own = document("vault", "context", vault, "rotate keys", "--system", "moltnet")["entries"]
        asked = document("vault", "context", vault, "rotate keys", "--system", "moltnet", *changed)["entries"]
        assert ids(by_file) == ids(asked) != ids(own)  # scores follow the clock, so that they are not compared

    @table("text problem")
    def test_a_weight_that_cannot_be_is_refused(self, vault, text, problem):
        result = run("search", vault, "keys", "--system", "moltnet", "--set", text)
        assert result.exit_code == 2
        assert problem in result.stderr

    def test_a_weight_reaches_every_term_of_its_name(self, vault):
        """Factors of boost, lists of rrf, and sums inside tiers."""
        for system, weight, expected in (
            ("spec_kit", "graph=0", "0*graph, k=60"),
            ("spec_kit", "decay=1", ", decay, "),
            ("moltnet", "fts=3", "1*rrf(vector, 3*fts, k=60)"),
            ("echovault", "fts=0.5", "weighted_sum(0.5*fts, 0.7*vector"),
        ):
            shown = document("search", vault, "rotate keys", "--system", system, "--set", weight)
            assert expected in shown["strategy"]


class TestStrategies:
    def test_a_strategy_is_searched_over_all_retrievers_as_in_compare(self, vault):
        shown = document("search", vault, "rotate keys", "--strategy", "rrf(bm25, 2*vector, graph)")
        assert shown["system"] == "plain:documented"
        assert shown["strategy"] == "rrf(bm25, 2*vector, graph, k=60)"
        assert shown["hits"]

    def test_a_strategy_over_a_system_has_its_retrievers(self, vault):
        shown = document("search", vault, "rotate keys", "--strategy", "rrf(fts, vector)", "--system", "moltnet")
        assert shown["system"] == "moltnet:documented"
        refused = run("search", vault, "rotate keys", "--strategy", "bm25", "--system", "moltnet")
        assert refused.exit_code == 2
        assert "such retriever" in refused.stderr


class TestParameters:
    """The parameters of retrievers, in brackets behind the name of a system."""

    @table("name problem")
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


class TestContextSettings:
    @pytest.fixture
    def weights(self, tmp_path):
        def write(**context):
            record = find_system("echovault").config(10, "lsa").to_json() | {"context": context}
            (tmp_path / "w.json").write_text(json.dumps(record))
            return tmp_path / "w.json"

        return write

    def test_the_semantic_mode_of_the_file_is_used(self, vault, weights):
        """A word that is in no entry: keywords find too little, so the mode decides whether it is embedded."""
        with Vault(vault) as store:
            calls = {}
            for mode in ("never", "always"):
                config = SearchConfig.load(weights(semantic=mode))
                searcher = Searcher(store, config, vault_embedder(store))
                hits, _ = searcher.context("xylophone")
                calls[mode] = searcher._sources.embedding_calls
                assert hits
        assert calls == {"never": 0, "always": 1}
        assert run("vault", "context", vault, "x", "--weights", weights(semantic="sometimes")).exit_code == 2


class TestVerify:
    def test_a_value_that_is_wrong_ends_with_2_and_is_named(self, monkeypatch):
        values, measured = evaluate_lists, []

        def wrong(*arguments):
            measured.append(values(*arguments))
            if len(measured) == 2:  # fts comes first, then bm25
                measured[1][Measure("nDCG", 10)][4] += 1e-6
            return measured[-1]

        monkeypatch.setattr(sys.modules["steelyard_eval.compare.compare"], "evaluate_lists", wrong)
        result = run("compare", starter(), "fts,bm25", "--verify", "--json")
        assert result.exit_code == 2
        (table,) = [one for one in json.loads(result.stdout)["tables"] if one["key"] == "verification"]
        assert table["rows"][0] == ["nDCG@10", pytest.approx(1e-6), "bm25", "q05"]
        assert "'q05' by 1e-06" in result.stderr


def test_the_model_of_what_a_caller_may_see_is_fitted_on_nothing_else(tmp_path):
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


@pytest.mark.parametrize(("layers", "abstract"), [("extractive", "Rotate them."), ("none", "")])
def test_abstracts_are_made_where_they_are_asked_for(layers, abstract):
    (entry,) = layered_entries([Entry("m1", "Rotate them. Ask ops.")], layers)
    assert entry.l0 == abstract


def test_abstracts_by_a_model_need_an_endpoint(monkeypatch):
    monkeypatch.delenv("LLM_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="endpoint for --layers"):
        layered_entries([Entry("m1", "Rotate them.")], "llm")


@pytest.mark.parametrize(
    ("model", "named", "embedder"),
    [("minilm-int8", (), "minilm-int8"), ("lsa", (), "lsa"), ("", (), None), ("x", ("--embedder", "lsa"), "lsa")],
)
def test_a_vault_is_indexed_with_the_vectors_that_a_weights_file_searches(
    tmp_path, monkeypatch, model, named, embedder
):
    asked = []
    counts = {"entries": 5, "outside": 0, "duplicates": [], "stale": []}
    monkeypatch.setattr(
        "steelyard_eval.vaults.index_dataset",
        lambda data, vault, embedder, **options: asked.append(embedder) or counts,
    )
    find_system("echovault").config(10, model).save(tmp_path / "w.json")
    made = folder_of(tmp_path / "mine", fruit())
    assert run("index", made, tmp_path / "m.db", "--weights", tmp_path / "w.json", *named).exit_code == 0
    assert asked == [embedder]


def test_vectors_of_a_weights_file_that_no_embedder_makes_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    find_system("echovault").config(10, "x").save(tmp_path / "w.json")
    made = folder_of(tmp_path / "mine", fruit())
    result = run("index", made, tmp_path / "m.db", "--weights", tmp_path / "w.json")
    assert result.exit_code == 2
    assert "vectors of 'x';" in result.stderr
    assert not (tmp_path / "m.db").exists()


@pytest.mark.parametrize(("system", "layers"), [("echovault", {"text"}), ("cortex_mem", {"text", *LAYER_RECIPES})])
def test_weights_need_no_vectors_that_they_do_not_read(tmp_path, system, layers):
    weights = tmp_path / "w.json"
    find_system(system).config(10, "lsa").save(weights)
    for name, more in (("all.db", ()), ("own.db", ("--weights", weights))):
        assert run("index", starter(), tmp_path / name, *more).exit_code == 0
    made = (tmp_path / name for name in ("all.db", "own.db"))
    found = [run("search", vault, "rotate keys", "--weights", weights, "--json") for vault in made]
    assert json.loads(found[0].stdout)["hits"] == json.loads(found[1].stdout)["hits"] != []
    assert found[0].stderr == found[1].stderr
    with Vault(tmp_path / "own.db") as own, Vault(tmp_path / "all.db") as whole:
        spaces, before = [{space for space, _ in vault.spaces()} for vault in (own, whole)]
    assert ({space.layer for space in spaces}, len(spaces) < len(before)) == (layers, True)
    assert run("index", starter(), tmp_path / "all.db", "--weights", weights).exit_code == 0  # what is there stays
    with Vault(tmp_path / "all.db") as whole:
        assert {space for space, _ in whole.spaces()} == before
