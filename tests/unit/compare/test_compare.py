"""Comparing: what is shared, what is left out, and text that means harm."""

import dataclasses
import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from shared import STARTER, document, done, tabled

import steelyard_eval as sy
from steelyard import Filters, Query, find_system, parse_strategy
from steelyard.base.extensions import installing
from steelyard.config import RerankConfig, open_reranker
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare import compare
from steelyard_eval.compare.answer import answer, effective_number, few, one_scope, unjudged, without_relevant
from steelyard_eval.compare.contenders import Contender, distinct, read_all, usable
from steelyard_eval.compare.lists_and_latency import Latencies
from steelyard_eval.compare.result import agreement
from steelyard_eval.compare.score_scales import merged
from steelyard_eval.datasets import load
from steelyard_eval.datasets.groups import PROPOSED, nearly
from steelyard_eval.recording import workspace
from steelyard_eval.recording.provenance import with_certificate
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Estimate, Message, Paired, Row


def of_words(dataset, *given, **options):
    """A comparison without vectors and clocks."""
    return compare(dataset, given, embedder="none", timed=False, **options)


def test_a_query_without_judgments_is_left_out_and_counted(dataset):
    extra = dataclasses.replace(dataset, queries=(*dataset.queries, Query("rotate keys", id="unjudged")))
    found = of_words(extra, "bm25")
    data, count = found.result.provenance.data, len(dataset.split("all"))
    assert ("unjudged" in found.queries, data.queries, data.judged) == (False, count + 1, count)


def test_alone_it_names_the_command_that_compares_with_what_is_used(dataset):
    """Starter's dataset.json says "system": "echovault", which the command takes; bm25 stands in for none."""
    for system, used in (("echovault", "echovault"), ("", "bm25")):
        found = of_words(dataclasses.replace(dataset, system=system), "fts")
        (step,) = found.result.answer.steps
        assert (step.key, step.facts) == ("compare_today", {"today": used})
        assert step.command[-3:] == ["fts", "--current", used]
    shown = document("compare", STARTER, "fts", "--embedder", "none")
    assert shown["provenance"]["baseline"] == "echovault"


def test_the_limit_is_the_largest_cutoff_unless_it_is_given_and_judged_is_always_told(dataset):
    found = of_words(dataset, "bm25", metrics=("nDCG@3", "R@7")).result
    assert (found.provenance.limit, found.metric) == (7, "nDCG@3")
    found = of_words(dataset, "fts", metrics=("nDCG@10",), limit=5).result
    assert found.rows[0].means.keys() == {"nDCG@10", "Judged@10"}
    (told,) = [notice for notice in found.notices if notice.key == "shallow"]
    assert told.facts == {"limit": 5, "metrics": ["nDCG@10", "Judged@10"]}


# What is compared: labels, and what is left of a configuration on a data set


@pytest.fixture(scope="module")
def without_vectors():
    return Workspace.open(load(STARTER), "none")


def contenders(systems, strategies, limit, model):
    named = distinct(read_all([*systems, *strategies]))
    return [Contender(one.label, one.config(Setting(limit, model)), one.kind) for one in named]


class TestContenders:
    @tabled
    def test_what_cannot_be_compared_is_told(self, systems, strategies, message):
        with pytest.raises(sy.ConfigError, match=message):
            contenders(systems, strategies, 10, "minilm")

    def test_a_re_ranker_that_nobody_is_leaves_its_stage_out_and_is_told(self, without_vectors, monkeypatch):
        """As in live search; a provider that was named and has no key is an error in both."""

        def gone(config, environ):
            return SimpleNamespace(score=lambda *_: (_ for _ in ()).throw(sy.RerankError("there is no model")))

        for name in ("VOYAGE_API_KEY", "COHERE_API_KEY", "CROSS_ENCODER_PROVIDER"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(workspace, "open_reranker", gone)
        config = find_system("spec_kit").config(10, environ={"ENABLE_CROSS_ENCODER": "true"})
        left, notices = usable(without_vectors, Contender("spec_kit", config, "system"))
        assert [str(stage) for stage in left.config.finish] == ["cut(10)"]
        assert (notices[-1].key, notices[-1].facts["label"]) == ("not_reranked", "spec_kit")
        monkeypatch.setenv("VOYAGE_API_KEY", "key")
        assert usable(without_vectors, Contender("spec_kit", config, "system"))[0].config.finish == config.finish
        with pytest.raises(sy.ConfigError, match=r"VOYAGE_API_KEY is not"):
            open_reranker(RerankConfig("voyage"), {})

    def test_what_a_data_set_cannot_give_is_left_out_and_told(self, without_vectors):
        [row] = contenders([], ["weighted_sum(0.3*bm25, 0.7*vector, normalize=max)"], 10, "")
        left, notices = usable(without_vectors, row)
        assert str(left.config.strategy) == "weighted_sum(0.3*bm25, normalize=max)"
        assert left.label == row.label
        facts = notices[0].facts
        assert (notices[0].key, facts["missing"], facts["model"]) == ("reduced", ["vector"], "none")

    @tabled
    def test_weights_that_were_tuned_with_other_vectors_are_refused(self, tmp_path, embedder, model, message):
        file = tmp_path / "w.json"
        find_system("plain").config(10, model).save(file)
        data = sy.load(STARTER, embedder=embedder)
        with pytest.raises(sy.ConfigError, match=f"w.json was tuned with the vectors of {model}, .*{message}"):
            data.compare([file, "bm25"], timed=False)

    def test_a_model_that_is_missing_is_named_with_what_installs_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr("steelyard_eval.compare.contenders.missing_modules", lambda extra: [extra])
        file = tmp_path / "w.json"
        find_system("plain").config(10, "minilm-int8").save(file)
        with pytest.raises(
            sy.ConfigError, match=rf"minilm-int8, which needs {re.escape(installing('onnx'))}, or tune"
        ):
            sy.load(STARTER, embedder="none").compare([file, "bm25"], timed=False)

    @tabled
    def test_a_command_takes_the_vectors_that_a_weights_file_was_tuned_with(self, tmp_path, monkeypatch, words):
        monkeypatch.chdir(tmp_path)
        shutil.copytree(STARTER, "mine")
        find_system("plain").config(10, "lsa").with_strategy(parse_strategy("vector")).save("w.json")
        shutil.copy("w.json", "search-weights.json")
        assert "was tuned with the vectors" not in done(*words.split()).output


# What is said before the table, and instead of one where there are no labels

QUERIES = [Query(f"text {at}", id=f"q{at}") for at in range(30)]
NOTHING = np.zeros(30)
TEXTS = [chr(ord("a") + at % 26) * (1 + at // 26) for at in range(30)]


def test_queries_without_a_relevant_entry_cap_the_mean():
    labels = {query.id: {"m": int(at > 5)} for at, query in enumerate(QUERIES)}
    (told,) = without_relevant(SimpleNamespace(qrels=labels), QUERIES, "nDCG@10")
    known = {"none": 6, "queries": 30, "metric": "nDCG@10", "ids": [f"q{at}" for at in range(6)]}
    assert told.facts == {**known, "most": pytest.approx(0.8)}


def test_of_alike_sums_one_note_is_left_and_what_finds_nothing_comes_first():
    sums = [Message("apart", {"labels": [name], "reached": [name], "metric": "nDCG@10"}) for name in "ab"]
    dead = Message("silent", {"labels": ["c"], "signal": "bm25"})
    both = Message("apart", {"labels": ["a", "b"], "reached": ["a"], "metric": "nDCG@10"})
    assert [*merged([*sums, dead])] == [dead, both]


def test_too_few_queries_are_told_with_what_they_miss():
    outcomes = [Paired(Estimate(mean), "open", 1, 1, 0, 0, 0, detectable=0.4 - mean) for mean in (0, 0.1, -0.1)]
    assert few(QUERIES, outcomes) == [Message("few_queries", {"queries": 30, "detectable": pytest.approx(0.3)})]
    again = [Query(f"text {at % 8}", id=f"q{at}") for at in range(40)]  # few questions asked often are few
    assert few(again, []) == [Message("tell_little", {"queries": 40})]


def test_hits_that_are_judged_less_often_are_told_on_either_side():
    shares = {"bm25": 0.8, "vector": 0.7, "c": 0.9, "d": 0.82}
    judged = {label: np.full(30, share) for label, share in shares.items()}
    (told,) = unjudged(judged, "bm25")
    assert told.facts["share"] == pytest.approx(0.8)
    assert (told.facts["fewer"], told.facts["more"]) == (["vector"], ["c"])


@pytest.mark.parametrize("complete", [True, False])
def test_where_all_is_judged_an_unjudged_hit_is_no_doubt(dataset, complete):
    """docs/data.md: with a complete pool, as starter says of its own, what has no label is not relevant."""
    own = dataset if complete else dataclasses.replace(dataset, pool=None)
    found = compare(own, ("fts", "vector"), timed=False).result
    assert any(notice.key == "unjudged" for notice in found.notices) is not complete


def scoped(count, scopes, group=""):
    filters = [Filters.of({"project": f"p{at % scopes}"}) for at in range(count)]
    return [Query(f"text {at}", id=f"q{at}", filters=own, group=group) for at, own in enumerate(filters)]


def test_scopes_that_vary_together_are_counted_by_the_differences():
    queries = scoped(60, 6)
    by_scope = np.array([0.1, 0.5, 0.9, 0.2, 0.6, 0.4])[np.arange(60) % 6]
    (told,) = one_scope(queries, {"a": np.zeros(60), "b": by_scope}, "a")
    # Ten equal values a scope: six observations, times (n - 1) / n and g / (g - 1) of the two variances.
    assert effective_number(by_scope, [str(query.filters) for query in queries]) == pytest.approx(60 * 5 / 59)
    assert told == Message("scopes", {"queries": 60, "worth": pytest.approx(60 * 5 / 59), "scopes": 6})
    assert one_scope(scoped(60, 6, "g"), {"a": NOTHING, "b": by_scope}, "a") == []
    assert one_scope(scoped(60, 30), {"a": np.zeros(60), "b": by_scope}, "a") == []


def test_queries_that_ask_nearly_the_same_count_as_one_and_are_named():
    groups = [f"{PROPOSED}{at // 2}" if at < 4 else "" for at in range(30)]
    (told,) = nearly([Query(text, id=text, group=group) for text, group in zip(TEXTS, groups, strict=True)])
    assert (told.key, told.facts["pairs"]) == ("nearly", ["'a' and 'b'", "'c' and 'd'"])
    assert (told.facts["count"], told.facts["queries"], told.facts["units"]) == (2, 30, 28)


def test_what_varies_together_is_worth_less():
    # Kish: alone 4 / 29 / 30, together (2^2 + 2^2) * 28 / 27 / 30^2, so 30 * .00460 / .00922 = 14.96.
    values = np.where(np.arange(30) < 4, [1.0, 1.0, -1.0, -1.0, *[0.0] * 26], 0.0)
    unit = np.array([0, 0, 1, 1, *range(2, 28)])
    assert effective_number(values, unit) == pytest.approx(14.96, abs=0.01)
    assert effective_number(np.array([0.1, 0.2]), ["g", "g"]) == 1.0  # one group is one


class TestWithoutLabels:
    def test_agreement_is_the_mean_over_queries(self):
        lists = {"one": [["a", "b"], ["x", "y"]], "other": [["a", "b"], ["z", "y"]]}
        table, disagreement = agreement(lists)
        # The second query: agreements 0 and 1/2, so .5 * .9^2 + (.1 / .9) * (.5 * .9^2) = .45; the first is 1.
        assert table.rows == [["one", "other", pytest.approx(0.725)]]
        assert disagreement == pytest.approx(0.275)

    def test_compare_without_judgments_says_who_agrees_and_what_to_label(self, dataset, tmp_path):
        bare = dataclasses.replace(dataset, qrels={})
        found = compare(bare, ["bm25", "echovault"], timed=False, runs=tmp_path / "runs")
        assert found.result.answer.key == "disagree"
        footer = f" (all): {len(dataset.split('all'))} queries, none labelled, limit 10"
        assert footer in " ".join(str(found).split())
        assert found.result.queries == [] and not any(row.means or row.against for row in found.result.rows)
        assert found.to_frame()[["one", "other"]].values.tolist() == [["bm25", "echovault"]]
        assert "RBO" in found._repr_html_()
        written = sorted(path.name for path in (tmp_path / "runs").iterdir())
        assert written == ["bm25.documented.run", "echovault.documented.run"]
        with pytest.raises(sy.ConfigError, match="no labels to plot"):
            found.plot()
        page = found.report(tmp_path / "report")[0].read_text("utf-8")
        assert 'id="agreement"' in page
        assert 'id="contenders"' not in page

    @tabled
    def test_weights_that_were_chosen_by_the_labels_that_they_are_looked_at_with(
        self, tmp_path, split, queries, facts, key, told
    ):
        asked = [{"id": f"q{at}", "text": "red", "split": "train" if at < 3 else "test"} for at in range(5)]
        data = sy.load({"a": "red", "b": "blue"}, asked, {query["id"]: ["a"] for query in asked})
        weights, config = tmp_path / "search-weights.json", find_system("bm25").config(10)
        known = {"dataset": data.dataset.name, "dataset_sha256": data.dataset.sha256, **facts}
        config = dataclasses.replace(config, provenance=known)
        if queries:
            config = with_certificate(
                config, known | {"in_sample": {"value": 1, "low": 1, "high": 1, "queries": queries}}
            )
        config.save(weights)
        notices = data.compare([str(weights), "fts"], timed=False, split=split).result.notices
        found = [notice for notice in notices if notice.key.startswith("tuned_")]
        assert [notice.key for notice in found] == ([key] if key else [])
        assert all(told.items() <= notice.facts.items() for notice in found)

    def test_weights_that_were_edited_are_not_said_to_be_tuned(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        data = sy.load(STARTER)
        file = data.tune("weighted_sum(0.9*bm25, 0.1*vector, normalize=minmax)").save_weights("w.json")[-1]
        record = json.loads(file.read_text())
        for strategy, said in ((record["strategy"], "tuned_here"), ("bm25", "tuned_edited")):
            file.write_text(json.dumps({**record, "strategy": strategy}))
            notices = data.compare({"w": str(file), "fts": "fts"}, timed=False, split="all").result.notices
            assert said in {notice.key for notice in notices if notice.facts.get("label") == "w"}

    def test_of_an_empty_list_it_is_not_known_how_much_is_judged(self, dataset, tmp_path):
        first, second = list(dataset.qrels)[:2]
        own = dataclasses.replace(dataset, qrels={query: dataset.qrels[query] for query in (first, second)})
        (tmp_path / "one.run").write_text(f"{first} Q0 {next(iter(dataset.qrels[first]))} 1 1.0 mine\n")
        found = of_words(own, str(tmp_path / "one.run"), "bm25", verify=True)
        assert found.result.rows[0].means["Judged@10"].mean == 1.0  # of one place, whose entry is judged
        (table,) = [table for table in found.result.tables if table.key == "verification"]
        assert all(not row[1] for row in table.rows)
        with pytest.raises(sy.ConfigError, match="nDCG@10"):
            of_words(own, "bm25", metrics="Judged@10")


# What a comparison answers first

DATA = load(STARTER)
WHY = Message("p_proves_nothing_alone")


@pytest.fixture(autouse=True)
def every_model_is_installed(monkeypatch):
    monkeypatch.setattr("steelyard_eval.recording.next_steps.installed_first", lambda steps, again=(): steps)


WORDS = {name: name for name in ("bm25", "fts", "large", "proven")}


def outcome(mean, low, high, verdict, **facts):
    """A test with wins, whose p is 0.01 unless it is given."""
    given = {"p": 0.01, "p_holm": 0.01, "wins": 9, "ties": 0, "losses": 3, "worse": 0.2} | facts
    return Paired(Estimate(mean, low, high), verdict, **given)


def row(label, test=None, **facts):
    given = {"kind": "system", "strategy": label} | facts
    return Row(label, means={"nDCG@10": Estimate(0.5, 0.4, 0.6)}, against=test, **given)


def asked(*rows, words=WORDS, options=None, **facts):
    return answer([row("bm25"), *rows], "bm25", "nDCG@10", DATA, words, options or {}, queries=59, **facts)


def test_what_is_proven_goes_before_what_only_looks_larger():
    """The larger difference has an interval with 0 in it, so the smaller one is the answer."""
    large = row("large", outcome(0.098, -0.01, 0.206, "open"))
    proven = row("proven", outcome(0.066, 0.02, 0.112, "better"))
    found = asked(large, proven)
    assert (found.key, found.facts["choice"], found.facts["one_of"]) == ("better", "proven", 2)
    without = asked(large, row("proven", outcome(0.066, 0.02, 0.112, "open")))
    assert (without.key, without.facts["choice"], without.facts["best_of"]) == ("open", "large", 2)
    assert "tried" not in without.facts
    corrected = row("large", outcome(0.098, -0.01, 0.206, "open", p=0.03, p_holm=0.06, why=WHY))
    found = asked(corrected, row("other", outcome(0.01, -0.1, 0.1, "open")))
    assert (found.facts["tried"], found.because) == (2, [WHY])


class TestAnswer:
    @tabled
    def test_what_is_proven_is_tuned_and_what_is_not_looked_for(self, verdict, key):
        (step,) = asked(row("fts", outcome(0.066, 0.02, 0.112, verdict))).steps
        assert (step.key, step.command[:2]) == (key, ["steelyard", "recommend"])
        assert step.command[-2:] == ["--current", "bm25"]

    def test_weights_that_are_better_are_searched_with(self):
        better = outcome(0.066, 0.02, 0.112, "better")
        named = {"bm25": "bm25", "fts": "mine=w.json"}
        tuned = row("fts", better, tuned=True)
        found = asked(tuned, words=named, model="minilm")
        index, search = found.steps
        assert index.command[-3:] == ["starter.db", "--weights", "w.json"]
        assert search.key == "search_tuned"  # what was tuned already is not to be tuned again
        assert Message("flattered") in found.because
        rows = [row("bm25", tuned=True), tuned]  # as optimistic as each other
        assert answer(rows, "bm25", "nDCG@10", DATA, named, {}, queries=59).because == []
        edited = row("fts", better, tuned=True, edited=True, system="echovault", strategy="fts at its best")
        found = asked(edited, words=named, options={"--embedder": "wordllama"})
        assert found.formula == "echovault with fts at its best"
        assert found.because == []  # nobody tuned what was edited since
        index, search, step = found.steps
        assert search.command[-2:] == ["--weights", "w.json"]
        assert step.command[-4:] == ["--current", "mine=w.json", "--embedder", "wordllama"]

    def test_of_two_that_are_equal_on_every_query_no_more_labels_are_asked_for(self):
        found = asked(row("fts", outcome(0.0, -0.02, 0.02, "open", wins=0, losses=0)))
        assert (found.key, found.steps) == ("equal", [])

    @tabled
    def test_no_command_replaces_the_weights_that_were_compared(self, verdict, old, new, out):
        found = asked(row("new", outcome(0.066, 0.02, 0.112, verdict)), words={"bm25": old, "new": new})
        assert found.steps[-1].command[-1] == out

    @pytest.mark.parametrize("word", [None, "mine=a.run"])
    def test_lists_that_are_better_have_no_weights_to_look_for(self, word):
        mine = row("mine", outcome(0.066, 0.02, 0.112, "better"), kind="lists", strategy="a Pipeline")
        found = asked(mine, words={"bm25": "bm25", "mine": word})
        (step,) = found.steps
        assert (found.formula, step.key) == ("", "only_lists")
        assert step.command[-2:] == (["--current", word] if word else [])

    def test_as_many_new_queries_are_asked_for_as_the_difference_needs(self):
        step, *_ = asked(row("fts", outcome(0.06, -0.01, 0.12, "open", needed=94))).steps
        assert (step.key, step.facts["more"]) == ("write_queries", 40)  # 94 - 59 = 35, to tens

    def test_an_interval_wider_than_the_metric_says_nothing(self):
        found = asked(row("fts", outcome(0.3, -0.4, 1.0, "open")))
        assert (found.facts["vague"], found.facts["worse"]) == (True, None)

    def test_the_baseline_is_what_the_data_set_uses_today_else_it_is_not_yours(self):
        """The starter's dataset.json names echovault."""
        for given, baseline, fact, named in (
            (["bm25", "echovault"], None, "used", "echovault"),
            (["bm25", "fts"], None, "baseline", "bm25"),
            (["bm25", "fts"], "bm25", "used", "bm25"),
        ):
            found = compare(STARTER, given, baseline=baseline, timed=False).result
            assert (found.provenance.baseline, found.answer.facts[fact]) == (named, named)


def test_percentiles_of_times_and_none_of_no_search():
    """Between the two times around a percentile, in proportion: 2 + 0.9 * (3 - 2)."""
    found = Latencies([1.0, 2.0, 3.0], {"l0": [4.0]}).summary()
    assert (found.p50_ms, found.p95_ms, found.layers["l0"].p50_ms) == (2.0, pytest.approx(2.9), 4.0)
    assert Latencies([]).summary() is None
