"""The commands on vault files: what they take, print, keep and say."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import visible_to
from steelyard.stores.sqlite import Vault
from steelyard.systems import SYSTEMS, find_system
from steelyard_eval.cli.main import main
from steelyard_eval.common.configurations import written_name
from steelyard_eval.compare.contenders import read
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.vaults import index_dataset, reindex_vault, vault_embedder, visible_vault
from steelyard_eval.vaults.arguments import parse_filters
from steelyard_eval.vaults.read import RankedBy, open_searcher
from steelyard_eval.vaults.write import layered_entries

WORDS = ("red apple", "green pear", "red pear", "blue plum", "green apple")


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


def document(*words):
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def folder_of(path, entries):
    """A data set of these entries, with one judged query."""
    path.mkdir(exist_ok=True)
    (path / "corpus.jsonl").write_text("\n".join(map(json.dumps, entries)))
    (path / "queries.jsonl").write_text(json.dumps({"id": "q1", "text": "red"}))
    (path / "qrels.txt").write_text(f"q1 0 {entries[0]['id']} 1\n")
    (path / "dataset.json").write_text('{"name": "mine", "text_for_embedding": "{title}"}')
    return path


def fruit(**more):
    return [{"id": f"m{at}", "title": text, "text": text, **more} for at, text in enumerate(WORDS)]


def ids(rows):
    return [row["id"] for row in rows]


@pytest.fixture(scope="module")
def vault(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("vault") / "memory.db"
    assert run("index", starter(), path).exit_code == 0
    return path


class TestModes:
    def test_a_scan_prints_the_token_estimate_and_the_snippet(self, vault):
        [hit] = document(
            "search", vault, "jwt signing keys", "--system", "bm25", "--limit", 1, "--set", "mode=scan"
        )["hits"]
        lines = run("search", vault, "jwt signing keys", "--system", "bm25", "--limit", 1, "--set", "mode=scan")

        head, *look = lines.stdout.splitlines()
        assert hit["id"] in head
        # A quarter of the characters of title, text, context and why, rounded up (Soleri's document).
        entry = document("vault", "get", vault, hit["id"])["entries"][0]
        size = sum(len(entry.get(name, "")) for name in ("title", "text", "context", "why"))
        assert (
            " ".join(line.strip() for line in look)
            == f"~{-(-size // 4)} tokens, {entry['type']}: {entry['text'][:120].rstrip()}"
        )

    def test_the_full_form_prints_the_breakdown(self, vault):
        [hit] = document("search", vault, "jwt signing keys", "--system", "soleri", "--limit", 20)["hits"][:1]
        lines = run("search", vault, "jwt signing keys", "--system", "soleri", "--limit", 20).stdout.splitlines()

        breakdown = next(line for line in lines if "severity" in line).split()
        shown = dict(zip(breakdown[::2], breakdown[1::2], strict=True))
        assert shown["severity"] == f"{hit['breakdown']['severity']:.4f}"
        assert shown["tfidf"] == f"{hit['breakdown']['semantic']:.4f}"


class TestDashes:
    @pytest.mark.parametrize("command", [("search",), ("vault", "context")])
    @pytest.mark.parametrize(
        "words",
        [("-incident",), ("--", "-incident"), ("-incident", "--limit", "3"), ("--limit", "3", "-incident")],
    )
    def test_a_query_may_begin_with_a_dash(self, vault, command, words):
        found = (
            run(*command, vault, *words, "--json") if "--" not in words else run(*command, "--json", vault, *words)
        )
        asked = run(*command, vault, "incident", *(["--limit", "3"] if "3" in words else []), "--json")

        assert found.exit_code == 0, found.output
        assert json.loads(found.stdout) == json.loads(asked.stdout)  # EchoVault's words are the same

    def test_a_dash_is_an_exclusion_where_the_system_has_them(self, vault):
        ids = {hit["id"] for hit in document("search", vault, "-incident", "--system", "moltnet")["hits"]}
        assert ids
        assert "team-incident-review" not in ids

    def test_an_option_that_there_is_none_of_is_refused_still(self, vault):
        result = run("search", vault, "keys", "--limt", "3")
        assert result.exit_code == 2
        assert "--limit" in result.stderr

    def test_the_value_of_an_option_may_begin_with_a_dash(self, vault):
        result = run("search", vault, "keys", "--set", "domain=-x", "-h")
        assert result.exit_code == 0
        assert result.stdout.startswith("Usage: ")

    @pytest.mark.parametrize("text", ["--incident report", "-h elp", "-", "-5"])
    def test_what_can_be_no_option_is_text(self, vault, text):
        assert run("search", vault, text).exit_code == 0


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

    @pytest.mark.parametrize(
        ("filters", "ids"),
        [
            (["created_at=2026"], "123"),
            (["created_at>=2026"], "1234"),
            (["created_at>2026"], "4"),
            (["created_at<2026"], "0"),
            (["created_at<=2026"], "0123"),
            (["created_at=2026-03"], "2"),
            (["created_at=2026-12"], "3"),
            (["created_at=2026-03-31"], "2"),
            (["created_at>2026-03-30", "created_at<=2026-03-31"], "2"),
            (["created_at=2026-01-01T00:00:00Z"], "1"),
            (["created_at=1767225600"], "1"),  # 2026-01-01 in seconds, by `date -d 2026-01-01Z +%s`
        ],
    )
    def test_a_year_a_month_or_a_day_stands_for_all_of_it(self, tmp_path, filters, ids):
        assert self.chosen(tmp_path, *filters) == [f"m{at}" for at in ids]

    @pytest.mark.parametrize("text", ["0000", "2026-13", "2026-02-30", "9999"])
    def test_a_day_that_there_is_not_is_refused(self, text):
        with pytest.raises(ConfigError, match="be a number"):
            parse_filters([f"created_at={text}"])

    @pytest.mark.parametrize(
        ("texts", "rule"),
        [(["created_at=2025", "created_at=2026"], "two bounds"), (["created_at!=2026"], "is a time")],
    )
    def test_two_years_at_once_are_refused_and_all_but_one(self, texts, rule):
        with pytest.raises(ConfigError, match=rule):
            parse_filters(texts)

    def test_a_number_field_keeps_its_numbers(self):
        assert parse_filters(["importance>=2026"]) == parse_filters(["importance>=2026.0"])


class TestIndex:
    def test_entries_that_left_are_named_and_pruned(self, tmp_path):
        path = tmp_path / "v.db"
        run("index", folder_of(tmp_path / "set", fruit()), path)
        smaller = folder_of(tmp_path / "set", fruit()[:3])

        kept = run("index", smaller, path, "--json")
        assert "mine; --prune removes" in kept.stderr
        assert {name: json.loads(kept.stdout)[name] for name in ("entries", "outside", "removed")} == {
            "entries": 5,
            "outside": 2,
            "removed": 0,
        }
        pruned = run("index", smaller, path, "--prune")
        assert "3 entries" in pruned.stdout
        assert "2 removed" in pruned.stdout
        assert pruned.stderr == ""
        assert [entry["id"] for entry in document("vault", "list", path)["entries"]] == ["m0", "m1", "m2"]
        with Vault(path) as store:  # every vector of what left is gone too
            assert {len(store.vectors(space, parse_filters([]))[0]) for space, _ in store.spaces()} == {3}

    def test_entries_that_say_the_same_are_named(self, tmp_path):
        twins = [
            {"id": "a", "title": " Red ", "tags": ["x", "y"]},
            {"id": "b", "title": "Red", "tags": ["y", "x"]},
        ]
        folder = folder_of(tmp_path / "set", [*twins, *fruit(), {"id": "empty1"}, {"id": "empty2"}])

        result = run("check", folder)
        assert "another: 'a', 'b'" in result.stdout
        assert document("check", folder)["duplicates"] == [["a", "b"]]
        result = run("index", folder, tmp_path / "v.db", "--json")
        assert "another: 'a', 'b'" in result.stderr
        assert json.loads(result.stdout)["duplicates"] == [["a", "b"]]

    def test_times_are_shown_as_a_data_set_writes_them(self, vault):
        written = {
            entry["id"]: entry for entry in map(json.loads, (starter() / "corpus.jsonl").read_text().splitlines())
        }
        entry = document("vault", "get", vault, "api-jwt-rotation")["entries"][0]
        assert entry["created_at"] == written["api-jwt-rotation"]["created_at"] == "2026-02-11T14:20:00Z"
        assert '"created_at": "2026-02-11T14:20:00Z"' in run("vault", "get", vault, "api-jwt-rotation").stdout
        listed = document("vault", "list", vault, "--limit", 1)["entries"][0]
        assert listed["created_at"] == written[listed["id"]]["created_at"]


class TestNotes:
    def test_a_list_that_is_longer_than_its_limit_says_why(self, vault):
        result = run("search", vault, "rotate keys", "--system", "soleri", "--limit", 1, "--json")
        found = json.loads(result.stdout)

        count = len(found["hits"])
        assert count > 1
        assert found["notes"] == [
            f"{count} hits, not 1: soleri:documented keeps a list whole when it has fewer than 50 candidates "
            "and the limit would drop more than half of them (cut(1, all_below=50, counting=fts))"
        ]
        assert result.stderr == f"note: {found['notes'][0]}\n"

    def test_a_list_of_its_limit_says_nothing(self, vault):
        assert document("search", vault, "rotate keys", "--limit", 1)["notes"] == []


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

    def test_an_intent_without_a_strategy_is_named(self, vault, weights):
        notes = document("search", vault, "keys", "--weights", weights, "--intent", "fix_bg")["notes"]
        assert notes == [
            "plain:documented has another strategy only for fix_bug, so the default answered for 'fix_bg'"
        ]
        notes = document("search", vault, "keys", "--intent", "fix_bug")["notes"]
        assert "intent at all" in notes[0]

    def test_what_a_system_reads_needs_no_note_and_what_it_does_not_know_is_refused(self, vault):
        """`promised` raises by the intent of spec_kit, and the last sorting of its program goes by it."""
        for system in ("spec_kit", "spec_kit:shipped"):
            assert document("search", vault, "keys", "--system", system, "--intent", "fix_bug")["notes"] == []
        notes = document("search", vault, "keys", "--system", "spec_kit:js", "--intent", "fix_bug")["notes"]
        assert "intent at all" in notes[0]
        for system, known in (("spec_kit", "find_decision"), ("cortex_mem", "relational")):
            refused = run("search", vault, "keys", "--system", system, "--intent", "nonsense")
            assert refused.exit_code == 2
            assert "intent 'nonsense'; valid:" in refused.stderr and known in refused.stderr


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

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("w_recncy=1", "'w_recncy'; did you mean 'recency'?"),
            ("w_recency=much", "a number"),
            ("w_recency=nan", "a number"),
            ("w_recency=-1", "-1"),
        ],
    )
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

    def test_a_weight_reaches_the_strategy_of_every_intent(self):
        config = find_system("plain").config(5)
        by_intent = {"b": parse_strategy("rrf(fts, 2*vector)"), "a": parse_strategy("rrf(bm25, vector)")}
        changed = replace(config, by_intent=by_intent).with_weights({"vector": 4})
        assert {name: str(expr) for name, expr in changed.by_intent.items()} == {
            "a": "rrf(bm25, 4*vector, k=60)",
            "b": "rrf(fts, 4*vector, k=60)",
        }
        assert str(changed.strategy) == "rrf(fts, 4*vector, k=60)"

    def test_a_name_that_one_sum_has_twice_is_refused(self):
        config = find_system("plain").config(5)
        twice = "weighted_sum(0.5*recency(half_life=1d), 0.2*recency(half_life=30d), 1*fts)"
        with pytest.raises(ConfigError, match="single term 'recency'"):
            config.with_strategy(parse_strategy(twice)).with_weights({"recency": 1})

    def test_a_strategy_without_terms_has_no_weights(self, vault, tmp_path):
        result = run("search", vault, "keys", "--system", "fts", "--set", "fts=1")
        assert result.exit_code == 2
        assert "strategy instead" in result.stderr
        record = find_system("moltnet").config(10).to_json() | {"weights": {"w_rec": 1}}
        with pytest.raises(ConfigError, match=r"single term 'w_rec'"):
            SearchConfig.from_json(record)

    def test_soleri_is_weighed_with_and_without_vectors(self):
        config = find_system("soleri").config(5).with_weights({"severity": 0.5, "vector": 0.3})
        assert "0.5*severity" in str(config.strategy)
        assert "0.3*cosine" in str(config.strategy)
        assert "0.5*severity" in str(config.keywords_only)


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

    def test_a_strategy_beside_a_weights_file_is_refused(self, vault, tmp_path):
        refused = run("search", vault, "keys", "--strategy", "fts", "--weights", tmp_path / "w.json")
        assert (refused.exit_code, "leave --strategy out" in refused.stderr) == (2, True)


class TestParameters:
    """The parameters of retrievers, in brackets behind the name of a system."""

    NOTES = (
        {"id": "a", "text": "alpha", "relations": [{"type": "caused", "target": "b"}]},
        {"id": "b", "text": "beta", "relations": [{"type": "caused", "target": "c"}]},
        {"id": "c", "text": "gamma"},
    )

    @pytest.fixture
    def chain(self, tmp_path):
        folder_of(tmp_path / "chain", self.NOTES)
        run("index", tmp_path / "chain", tmp_path / "chain.db", "--embedder", "none")
        return tmp_path / "chain.db"

    @pytest.mark.parametrize(
        ("given", "found"),
        [
            ("", {"b": 0.5, "c": 0.25}),
            ("[graph.hops=1]", {"b": 0.5}),
            ("[graph.decay=0.2]", {"b": 0.2, "c": 0.04}),
        ],
    )
    def test_hops_and_decay_of_the_graph(self, chain, given, found):
        """a leads to b and b to c with the strength 1; 0.5 is left of an activation after each, or 0.2."""
        with open_searcher([str(chain)], RankedBy(f"plain{given}", "rrf(fts, graph)"), 5) as searcher:
            hits = searcher.search("alpha").hits
        assert {hit.entry.id: hit.signals["graph"] for hit in hits if hit.signals["graph"]} == pytest.approx(found)

    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            ("spec_kit[graph.hop=1]", "no parameter 'graph.hop'; did you mean 'graph.hops'?"),
            ("spec_kit[graph.hops=0]", "must lie between 1 and 10"),
            ("spec_kit[graph.hops=many]", "not RETRIEVER.PARAMETER=NUMBER"),
            ("spec_kit[]", "unknown system"),
            ("moltnet[graph.hops=1]", "moltnet has no parameter"),
        ],
    )
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

    def test_a_context_is_filled_up_unless_the_file_turns_that_off(self, vault, weights):
        # EchoVault's config.yaml: context.topup_recent, true by default; an option still beats it.
        assert len(document("vault", "context", vault, "incident", "--weights", weights())["entries"]) == 10
        alone = document("vault", "context", vault, "incident", "--weights", weights(topup_recent=False))[
            "entries"
        ]
        assert 0 < len(alone) < 10
        assert all(entry["score"] is not None for entry in alone)
        path = weights(topup_recent=False)
        assert (
            len(
                document("vault", "context", vault, "incident", "--weights", path, "--set", "topup=true")[
                    "entries"
                ]
            )
            == 10
        )

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

    def test_settings_come_back_from_the_file(self, weights, tmp_path):
        config = SearchConfig.load(weights(semantic="never", topup_recent=False))
        config.save(tmp_path / "again.json")
        assert SearchConfig.load(tmp_path / "again.json") == config
        assert "context" not in find_system("echovault").config().to_json()

    def test_the_limit_of_the_file_is_the_limit(self, vault, weights, tmp_path):
        record = json.loads(weights().read_text()) | {"limit": 3, "finish": ["cut(3)"]}
        (tmp_path / "three.json").write_text(json.dumps(record))
        assert (
            len(document("vault", "context", vault, "keys", "--weights", tmp_path / "three.json")["entries"]) == 3
        )


class TestVerify:
    def test_every_metric_is_computed_again_by_ir_measures(self, tmp_path):
        metrics = "nDCG@10,RR@10,AP,P@5,Judged@10,RecallAll@10"
        found = document("compare", starter(), "fts,bm25", "--metrics", metrics, "--verify")
        (table,) = [table for table in found["tables"] if table["key"] == "verification"]
        largest = {row[0]: row[1] for row in table["rows"]}

        assert list(largest) == metrics.split(",")
        assert [name for name, value in largest.items() if value is None] == ["RecallAll@10"]
        assert max(value for value in largest.values() if value is not None) <= 1e-9
        printed = run("compare", starter(), "fts", "--verify", "--write-runs", tmp_path).stdout
        assert "difference from ir_measures" in printed
        # What dataset.json says is used stands beside a contender that is alone.
        assert {path.name for path in tmp_path.iterdir()} == {"echovault.documented.run", "fts.documented.run"}

    def test_a_value_that_is_wrong_ends_with_2_and_is_named(self, monkeypatch):
        values, measured = Ranked.metrics, []

        def wrong(*arguments):
            measured.append(values(*arguments))
            if len(measured) == 2:  # fts comes first, then bm25
                measured[1][Measure("nDCG", 10)][4] += 1e-6
            return measured[-1]

        monkeypatch.setattr(Ranked, "metrics", wrong)
        result = run("compare", starter(), "fts,bm25", "--verify", "--json")
        assert result.exit_code == 2
        (table,) = [one for one in json.loads(result.stdout)["tables"] if one["key"] == "verification"]
        assert table["rows"][0] == ["nDCG@10", pytest.approx(1e-6), "bm25", "q05"]
        assert "'q05' by 1e-06" in result.stderr


def test_a_data_set_is_indexed_as_before(tmp_path):
    """The vault of a folder that only grew: nothing is outside, nothing removed."""
    folder = tmp_path / "set"
    shutil.copytree(starter(), folder)
    counts = document("index", folder, tmp_path / "v.db", "--prune")
    assert (counts["entries"], counts["changed"], counts["removed"], counts["outside"]) == (131, 131, 0, 0)
    assert counts["models"] == ["lsa"]


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


def test_a_vault_is_searched_with_the_model_that_it_has(tmp_path):
    path = str(tmp_path / "v.db")
    with Vault(path, create=True) as vault:
        vault.upsert(Entry(f"e{at}", text=text) for at, text in enumerate(WORDS))
    reindex_vault(path, "lsa")
    with open_searcher([path], RankedBy("moltnet"), None) as searcher:
        assert searcher.config.retrievers["vector"].model == "lsa"


@pytest.mark.parametrize("query", ["rotate keys", "how do we rotate keys"])
@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_the_queries_of_the_readme_find_something_in_every_system(vault, system, query):
    assert query in (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    assert document("search", vault, query, "--system", system)["hits"]


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
