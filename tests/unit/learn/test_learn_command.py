"""learn and act from the command line, on the starter set."""

import gzip
import json
import re
from dataclasses import replace
from itertools import cycle

import pytest
from click.testing import CliRunner
from simulation import simulate_log

from steelyard.base.errors import DataError
from steelyard.config import SearchConfig
from steelyard.feedback import ACTIONS
from steelyard_eval.cli.index_vault_doctor import act
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load
from steelyard_eval.datasets.labels import JudgedPool
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.learn import learn
from steelyard_eval.result import document
from steelyard_eval.workbench import Workbench

LOG = starter() / "feedback.jsonl.gz"


def run(*words):
    return CliRunner().invoke(main, list(map(str, words)))


@pytest.fixture(scope="module")
def data():
    return Workbench(load(starter()))


@pytest.fixture(scope="module")
def learned(data):
    return data.learn(labels=False)


def changed(tmp_path, change):
    """The starter's log with every impression changed."""
    path = tmp_path / "changed.jsonl"
    with gzip.open(LOG, "rt") as stream, path.open("w") as out:
        for text in stream:
            record = json.loads(text)
            out.write(json.dumps(change(record) if "hits" in record else record) + "\n")
    return path


def facts(found, key):
    """The facts of what is said under a key."""
    said = [*found.result.notices, *found.result.answer.because]
    return next(one.facts for one in said if one.key == key)


def test_acts_alone_suggest_a_try_and_ship_nothing(learned):
    result = learned.result
    log = facts(learned, "learn_log")
    assert log["distinct"] >= 150
    assert log["simulated"]
    assert (result.decision.verdict, result.answer.key) == ("try", "learn_try")
    assert {row["by"] for row in result.table("gains")} == {"by_acts"}
    assert all(row["gain_by"] - 2 * row["error"] > 0 for row in result.table("gains"))
    lifts = {row["act"]: row["lift"] for row in result.table("acts")}
    assert lifts["accepted"] > lifts["opened"] > 1 > lifts["dismissed"]
    assert facts(learned, "learn_clients")["clients"] == 40
    *_, judge, turns = result.answer.steps
    assert (judge.key, judge.facts["count"], judge.command[1]) == ("learn_judge_log", 30, "judge")
    assert turns.key == "learn_turns"
    both = ["--weights", "search-weights.current.json", "--explore", "search-weights.try.json"]
    assert turns.command[3:7] == both
    assert learned.config.provenance["learned_from"] == "feedback"
    assert str(learned.config.strategy) == result.rows[0].strategy


def test_what_is_learned_is_read_back_and_drawn(learned):
    assert document.read(document.render(learned.result).encode()) == learned.result
    for what in ("gains", "places"):
        assert learned.plot(what=what).axes
    assert "by_acts" not in str(learned)


def test_what_is_suggested_is_better_by_the_labels_that_made_the_log(learned, data):
    found = data.compare([learned.attempt, learned.result.rows[0].strategy], timed=False)
    suggested, current = (row.means["nDCG@10"].mean for row in found.result.rows)
    assert suggested > current + 0.03


def test_labels_decide_and_acts_make_them_worth_more(tmp_path):
    found = run("learn", starter(), "--current", "echovault", "--out", tmp_path / "w.json", "--json")
    assert found.exit_code == 0, found.stderr
    assert "log is simulated" in found.stderr
    result = document.read(found.stdout.encode())
    assert SearchConfig.load(tmp_path / "w.json").provenance["verdict"] == result.decision.verdict == "ship"
    (worth,) = result.answer.because
    assert (worth.key, worth.facts["labelled"], worth.facts["distinct"]) == ("learn_worth", 59, 157)
    assert 0 < worth.facts["share"] <= 1
    assert worth.facts["worth"] > 59
    alone, both = result.table("gains")[:2]
    assert (alone["by"], alone["queries"], both["by"], both["queries"]) == ("by_labels", 59, "by_both", 98)
    assert both["error"] < alone["error"]
    assert {row["follows"] for row in result.table("follows")} >= {"the label", "vector"}


def test_labels_that_were_chosen_are_no_proof(data):
    found = learn(replace(data.dataset, pool=JudgedPool(("bm25",), 10)), current="echovault")
    assert found.result.decision.verdict == "try"
    assert str(found.config.strategy) == found.result.rows[0].strategy
    assert "bm25 alone" in found.sentence


def test_the_adaptive_rule_is_that_of_a_system_that_documents_one(tmp_path):
    result = run("learn", starter(), "--rule", "adaptive", "--out", tmp_path / "w.json")
    assert result.exit_code == 2
    assert "documents no rule" in result.stderr


def test_the_adaptive_rule_of_soleri_counts_and_moves_one_weight(tmp_path):
    """seeds/soleri.txt, adaptive weights: (rate - .5) * 2 * .15 is what the weight of tfidf moves by."""
    log = tmp_path / "s.jsonl"
    simulate_log(load(starter()), ["soleri"], sessions=100, act="accepted").save(log)
    found = run(
        "learn", starter(), "--feedback", log, "--rule", "adaptive", "--out", tmp_path / "w.json", "--json"
    )
    record = json.loads(found.stdout)
    assert any(count.endswith(" accepted") for count in record["answer"]["facts"]["counts"])
    moved = dict.fromkeys(["tfidf"], 0.25 + 0.15)
    assert f"{moved['tfidf']:g}*tfidf" in record["answer"]["formula"]


def test_lists_of_another_engine_are_learned_from(tmp_path, data, learned):
    """The same lists upside down under another name: entries, places and acts are all that is needed."""

    def other(record):
        hits = [{**hit, "position": len(record["hits"]) - at} for at, hit in enumerate(record["hits"])]
        return {**record, "policy": "elsewhere", "hits": hits}

    found = data.learn(changed(tmp_path, other), "echovault")
    assert found.result.decision.blocker is None
    assert facts(found, "learn_worth")["share"] > 0


def test_a_log_may_name_no_policy(tmp_path, data):
    """Then what is used today is what the data set names."""
    bare = changed(tmp_path, lambda record: {name: value for name, value in record.items() if name != "policy"})
    lines = [line for line in bare.read_text().splitlines() if '"hits"' in line]
    bare.write_text("\n".join(lines) + "\n")
    assert data.learn(bare).result.provenance.baseline == "echovault"


def test_over_a_fusion_it_takes_sixty_labels(tmp_path, data):
    """The starter has 59, and its log is of a fusion."""
    found = data.learn()
    assert found.result.decision.verdict != "ship"
    assert (facts(found, "learn_few_labels")["labelled"], facts(found, "learn_few_labels")["fewest"]) == (59, 60)


TALLY = ("accepted",) * 18 + ("modified",) * 4 + ("dismissed",) * 10 + ("failed",)


def tally(tmp_path, actions):
    """A log of acts on single entries, such as Soleri keeps, of the starter's queries and relevant entries."""
    texts = {q["id"]: q["text"] for q in map(json.loads, (starter() / "queries.jsonl").read_text().splitlines())}
    pairs = [line.split()[::2] for line in (starter() / "qrels.txt").read_text().splitlines()]
    rows = [
        {
            "schema_version": 1, "timestamp": "2026-07-01T10:00:00Z", "query_id": str(at), "client_id": str(at),
            "user_query": texts[query], "policy": "soleri", "hits": [{"object_id": entry, "position": 1}],
            "actions": [{"object_id": entry, "action_name": action}],
        }
        for at, (action, (query, entry)) in enumerate(zip(actions, cycle(pairs), strict=False))
    ]  # fmt: skip
    log = tmp_path / "tally.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return log


def test_acts_without_lists_change_nothing_and_say_why(tmp_path):
    found = run(
        *("learn", starter(), "--feedback", tally(tmp_path, TALLY), "--current", "soleri", "--no-labels"),
        *("--out", tmp_path / "w.json", "--json"),
    )
    record = json.loads(found.stdout)

    assert found.exit_code == 0
    assert (record["decision"]["verdict"], record["answer"]["key"]) == ("keep", "learn_no_lists")
    assert record["answer"]["facts"]["acts"] == 33
    assert "gains" not in {table["key"] for table in record["tables"]}


@pytest.mark.parametrize(("actions", "weight"), [(TALLY, 0.2875), (TALLY[:18] + TALLY[22:], 0.25)])
def test_soleri_s_rule_counts_them_from_30_on(tmp_path, actions, weight):
    """By its document: (18 + 4 / 2) / 32 = 0.625 moves 0.25 by (0.625 - 0.5) * 2 * 0.15; 28 of them by nothing."""
    log = tally(tmp_path, actions)
    out = tmp_path / "w.json"
    found = run(
        *(
            "learn",
            starter(),
            "--feedback",
            log,
            "--current",
            "soleri",
            "--rule",
            "adaptive",
            "--out",
            out,
            "--json",
        )
    )
    record = json.loads(found.stdout)

    assert "18 accepted" in record["answer"]["facts"]["counts"]
    assert f"weighted_sum({weight:g}*tfidf" in record["answer"]["formula"]


@pytest.mark.filterwarnings("error")
def test_a_log_of_another_memory_is_one_message(tmp_path, data):
    def of_another(record):
        hits = [{**hit, "object_id": f"gone-{hit['object_id']}"} for hit in record["hits"]]
        return {**record, "hits": hits, "actions": []}

    with pytest.raises(DataError, match=r"changed\.jsonl' shows"):
        data.learn(changed(tmp_path, of_another), labels=False)


def test_places_from_0_and_the_future_are_named(tmp_path):
    zero = changed(
        tmp_path, lambda r: {**r, "hits": [{**hit, "position": hit["position"] - 1} for hit in r["hits"]]}
    )
    found = run("learn", starter(), "--feedback", zero, "--out", tmp_path / "w.json")
    assert (found.exit_code, "`int` >= 1" in found.stderr) == (2, True)
    late = changed(tmp_path, lambda r: {**r, "timestamp": "2099-01-01T00:00:00Z"})
    found = run("learn", starter(), "--feedback", late, "--out", tmp_path / "w.json")
    assert (found.exit_code, "3000 has a" in found.stderr) == (2, True)


def test_ten_thousand_acts_of_one_client_change_nothing(tmp_path, data, learned):
    with gzip.open(LOG, "rt") as stream:
        lines = stream.read()
    shown = next(json.loads(text) for text in lines.splitlines() if '"hits"' in text)
    acts = [{"object_id": shown["hits"][-1]["object_id"], "action_name": "accepted"}]
    path = tmp_path / "flooded.jsonl"
    path.write_text(lines + (json.dumps({**shown, "client_id": "bot", "actions": acts}) + "\n") * 10_000)
    found = data.learn(path, labels=False)
    assert (found.result.decision.verdict, found.attempt.effective) == ("try", learned.attempt.effective)
    aside, before = (sum(row["set_aside"] for row in of.result.table("set_aside")) for of in (found, learned))
    assert aside - before == 9_999


def test_a_search_is_logged_acted_upon_and_compared(tmp_path):
    vault, log = tmp_path / "m.db", tmp_path / "log.jsonl"
    assert run("index", starter(), vault, "--embedder", "none").exit_code == 0
    found = run("search", vault, "rotate keys", "--system", "bm25", "--log", log, "--client", "me", "--json")
    query_id = json.loads(found.stdout)["query_id"]
    first = json.loads(found.stdout)["hits"][0]["id"]
    assert run("vault", "act", log, query_id, first, "--action", "cited").exit_code == 0
    assert run("vault", "act", log, "gone", first).exit_code == 2
    assert len(log.read_text().splitlines()) >= 3


@pytest.fixture(scope="module")
def tagged():
    """200 queries with a tag over 60 entries of 10 tags; every entry has the words of every query."""
    import steelyard_eval as sy

    words = ["rotate", "signing", "keys", "session", "tokens", "database", "index", "backup", "restore", "deploy"]
    corpus = [
        {"id": f"e{at:02}", "title": " ".join(words[at % 7 :]), "text": " ".join(words), "tags": [f"t{at % 10}"]}
        for at in range(60)
    ]
    queries = [
        {"id": f"q{at:03}", "text": f"{words[at % 10]} {words[at % 9]} {at}", "tags": [f"t{at % 10}"]}
        for at in range(200)
    ]
    qrels = {f"q{at:03}": {f"e{own:02}": 1 for own in range(at % 10, 60, 10)} for at in range(200)}
    return sy.load(corpus, queries, qrels, embedder="none")


def weight_of(strategy, signal):
    found = re.search(rf"([\d.]+)\*{signal}", strategy)
    return float(found[1]) if found else 0.0


def test_a_user_who_prefers_tag_matches_shifts_the_weights_towards_tags(tagged, tmp_path):
    """seeds/soleri.txt, adaptive weights. True of the learner; the rule moves tfidf, and tags follow downwards."""
    log = tmp_path / "tags.jsonl"
    simulate_log(tagged.dataset, ["soleri"], model="tags", signal="tags", sessions=4000, act="accepted",
                 workspace=tagged.workspace).save(log)  # fmt: skip
    found = tagged.learn(log, labels=False)
    current, best = (row.strategy for row in found.result.rows)
    before = weight_of(current, "tags")
    assert found.result.decision.blocker is None
    assert "tags" in best
    assert weight_of(best, "tags") > before
    ruled = tagged.learn(log, rule="adaptive", labels=False)
    assert weight_of(ruled.result.answer.formula, "tags") < before


def test_the_command_line_names_every_act():
    """It has its own list, because the module behind it is imported only when it is used."""
    (option,) = [one for one in act.params if one.name == "action"]
    assert tuple(option.type.choices) == tuple(ACTIONS)
