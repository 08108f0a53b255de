"""learn and act from the command line, on the starter set."""

import gzip
import json
from dataclasses import replace
from itertools import cycle
from types import SimpleNamespace

import numpy as np
import pytest
from shared import STARTER, document, done, tabled, write_lines

from steelyard import Query, SearchConfig, find_system
from steelyard.base.errors import DataError
from steelyard_eval.datasets.labels import JudgedPool
from steelyard_eval.learn import learn
from steelyard_eval.learn.decision import LogDecision, _sampled
from steelyard_eval.learn.result import evidence, judge_log
from steelyard_eval.result.document import read
from steelyard_eval.vaults.read import RankedBy

LOG = STARTER / "feedback.jsonl.gz"
pytestmark = pytest.mark.usefixtures("opened_once")


def facts(found, key):
    """The facts of what is said under a key."""
    said = [*found.result.notices, *found.result.answer.because]
    return next(one.facts for one in said if one.key == key)


@pytest.fixture
def few_logged(monkeypatch):
    """Candidates are valued on few logged queries, where the verdict does not depend on how many."""
    monkeypatch.setattr("steelyard_eval.learn.decision.MAX_LOGGED_QUERIES", 40)


def test_acts_alone_suggest_a_try_and_ship_nothing(data, few_logged):
    learned = data.learn(labels=False)
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


def test_labels_decide_and_acts_make_them_worth_more(tmp_path):
    found = done("learn", STARTER, "--current", "echovault", "--out", tmp_path / "w.json", "--json")
    assert "log is simulated" in found.stderr
    result = read(found.stdout.encode())
    assert SearchConfig.load(tmp_path / "w.json").provenance["verdict"] == result.decision.verdict == "ship"
    worth, without = result.answer.because  # recommend ships on these labels alone, too (docs/start.md)
    assert (without.key, without.facts.get("verdict", "ship")) == ("learn_alone", "ship")
    assert (worth.key, worth.facts["labelled"], worth.facts["distinct"]) == ("learn_worth", 59, 157)
    assert 0 < worth.facts["share"] <= 1
    assert worth.facts["worth"] > 59
    alone, both = result.table("gains")[:2]
    assert (alone["by"], alone["queries"], both["by"], both["queries"]) == ("by_labels", 59, "by_both", 98)
    assert both["error"] < alone["error"]
    assert {row["follows"] for row in result.table("follows")} >= {"the label", "vector"}


def test_labels_that_were_chosen_are_no_proof(data, few_logged):
    few = {query: data.dataset.qrels[query] for query in [*data.dataset.qrels][:25]}
    found = learn(replace(data.dataset, qrels=few, pool=JudgedPool(("bm25",), 10)), current="echovault")
    assert found.result.decision.verdict == "try"
    assert str(found.config.strategy) == found.result.rows[0].strategy
    assert found.result.answer.key == "try_pool_misses"


TALLY = ("accepted",) * 18 + ("modified",) * 4 + ("dismissed",) * 10 + ("failed",)


def tally(tmp_path, actions):
    """A log of acts on single entries, such as Soleri keeps, of the starter's queries and relevant entries."""
    texts = {q["id"]: q["text"] for q in map(json.loads, (STARTER / "queries.jsonl").read_text().splitlines())}
    pairs = [line.split()[::2] for line in (STARTER / "qrels.txt").read_text().splitlines()]
    same = {"schema_version": 1, "timestamp": "2026-07-01T10:00:00Z", "policy": "soleri"}
    rows = [
        {**same, "query_id": str(at), "client_id": str(at), "user_query": texts[query]}
        | {"hits": [{"object_id": entry, "position": 1}]}
        | {"actions": [{"object_id": entry, "action_name": action}]}
        for at, (action, (query, entry)) in enumerate(zip(actions, cycle(pairs), strict=False))
    ]
    return write_lines(tmp_path / "tally.jsonl", rows)


def test_acts_without_lists_change_nothing_and_say_why(tmp_path, data):
    learned = data.learn(tally(tmp_path, TALLY), "soleri", labels=False)
    (tmp_path / "w.try.json").write_text("{}")
    assert learned.save_weights(tmp_path / "w.json") == [tmp_path / "w.json"]
    assert (tmp_path / "w.try.json").read_text() == "{}"  # what recommend found stays
    result = learned.result
    assert (result.decision.verdict, result.answer.key) == ("keep", "learn_no_lists")
    assert result.answer.facts["acts"] == 33


@pytest.mark.parametrize(("actions", "weight"), [(TALLY, 0.2875), (TALLY[:18] + TALLY[22:], 0.25)])
def test_soleri_s_rule_counts_them_from_30_on(tmp_path, actions, weight):
    """By its document: (18 + 4 / 2) / 32 = 0.625 moves 0.25 by (0.625 - 0.5) * 2 * 0.15; 28 of them by nothing."""
    words = ("--current", "soleri", "--rule", "adaptive", "--out", tmp_path / "w.json")
    record = document("learn", STARTER, "--feedback", tally(tmp_path, actions), *words)
    assert "18 accepted" in record["answer"]["facts"]["counts"]
    assert f"weighted_sum({weight:g}*tfidf" in record["answer"]["formula"]


BROKEN = (
    b"[" * 99_999 + b'\n{"actions": [{"action_name": "accepted"}, 1]}\n{"actions": [{"action_name": "accepted"}]}'
)
"""A deep line, one with an act that is none, and one that its writer has not ended."""


@pytest.mark.parametrize(("words", "weight"), [((), 0.4375), (("--set", "adaptive=false"), 0.4)])
def test_soleri_s_search_follows_its_log_from_30_acts_on(tmp_path, words, weight):
    """Without vectors 0.4 moves by 0.0375; the others share 0.5625 / 4 each. Nothing but a search follows acts."""
    vault, log = tmp_path / "m.db", tally(tmp_path, TALLY)
    done("index", STARTER, vault, "--embedder", "none")
    log.write_bytes(log.read_bytes() * 2 + BROKEN)  # an act counts once
    asked = ("search", vault, "rotate keys", "--system", "soleri", *words)
    logs = ((), ("--log", log, "--explain"), ("--log", log, "--set", "recency=0.2"))
    found = [document(*asked, *more) for more in logs]
    assert [one["strategy"][13:].partition("*")[0] for one in found] == ["0.4", f"{weight:g}", "0.4"]
    told = [f"weights moved by 32 acts (18 accepted, 10 dismissed, 4 modified, 1 failed): {found[1]['strategy']}"]
    assert [note for note in found[1]["notes"] if "moved" in note] == (told if weight > 0.4 else [])
    shown = "moved by 32 acts" in found[1]["explanations"][0]["text"], "0.140625*sev" in found[1]["strategy"]
    assert shown == (weight > 0.4, weight > 0.4)


def test_another_system_documents_no_such_rule_and_evaluations_follow_no_acts(tmp_path, data):
    assert data.dataset.feedback is not None
    assert data.compare("soleri").result.rows[0].strategy == str(find_system("soleri").config().effective)
    find_system("soleri").config().save(weights := tmp_path / "w.json")
    done("search", "gone.db", "x", "--log", "l", "--system", "bm25", "--set", "adaptive=true", code=2)
    by = RankedBy.of(str(weights))
    assert (by.following("l", None).follower, by.following("l", True).follower is None) == (None, False)


@pytest.mark.filterwarnings("error")
def test_a_log_of_another_memory_is_one_message(tmp_path, data):
    """The starter's log, with other ids and no acts."""
    records = [json.loads(text) for text in gzip.decompress(LOG.read_bytes()).splitlines()]
    for record in records:
        for hit in record.get("hits", ()):
            hit["object_id"] = f"gone-{hit['object_id']}"
        record["actions"] = []
    changed = write_lines(tmp_path / "changed.jsonl", [record for record in records if "hits" in record])
    with pytest.raises(DataError, match=r"changed\.jsonl' shows"):
        data.learn(changed, labels=False)


def test_a_search_is_logged_and_acted_upon_by_command(tmp_path):
    vault, log = tmp_path / "m.db", tmp_path / "log.jsonl"
    done("index", STARTER, vault, "--embedder", "none")
    found = document("search", vault, "rotate keys", "--system", "bm25", "--log", log, "--client", "me")
    first = found["hits"][0]["id"]
    done("vault", "act", log, found["query_id"], first, "--action", "cited")
    assert json.loads(log.read_text().splitlines()[-1])["actions"][0]["action_name"] == "cited"
    done("vault", "act", log, "gone", first, code=2)


# Why a log took no part in a decision by labels

LABELLED = tuple(Query(f"question {at}", id=f"q{at}") for at in range(16))


def decision(logged, others, again, second=None, listless=False, few=0):
    """Labels of sixteen queries, and a log of some of them, of others, and of copies of the first one."""
    queries = [*LABELLED[:logged], *(Query(f"other {at}", id=f"o{at}") for at in range(others))]
    queries += [Query(LABELLED[0].text, id=f"a{at}") for at in range(again)]
    hits, log = SimpleNamespace(listless=listless), SimpleNamespace(census=SimpleNamespace(impressions=40))
    config = find_system("echovault").config(10)
    learned = SimpleNamespace(cells=SimpleNamespace(queries=np.arange(len(queries))))
    case = SimpleNamespace(queries=tuple(queries), learned=learned, log=log, hits=hits, config=config)
    choice = SimpleNamespace(second=second, scored=SimpleNamespace(share=0.0))
    labelled, made = ((), None) if few else (LABELLED, SimpleNamespace(choice=choice))
    return LogDecision(case, labelled, np.arange(len(queries)), None, (), None, made, few)


@tabled
def test_the_reason_is_that_which_holds(log, case, counts, key, facts):
    found = decision(*log, **case)
    (told,) = evidence(found)
    assert (len(found.logged), found.others) == tuple(counts)
    assert told.key == key
    assert facts.items() <= told.facts.items()


@tabled
def test_what_is_asked_for_is_what_labels_lack(data, known, logged, key, facts):
    asked = data.dataset.queries
    dataset = replace(data.dataset, qrels={query.id: data.dataset.qrels[query.id] for query in asked[:known]})
    space, cells = SimpleNamespace(dataset=dataset), SimpleNamespace(queries=np.arange(*logged))
    case = SimpleNamespace(space=space, queries=asked, learned=SimpleNamespace(cells=cells), file="")
    case.config = find_system("bm25").config(10)
    step = judge_log(case, "settle")
    assert (step.key, {name: step.facts.get(name) for name in facts}) == (key, facts)


def test_of_the_logged_queries_every_labelled_one_is_used_and_so_many_others(monkeypatch):
    """Of these five 0, 2 and 3 have acts; 0 and 1 are labelled."""
    monkeypatch.setattr("steelyard_eval.learn.decision.MAX_LOGGED_QUERIES", 1)
    queries = [Query("text", id=str(at)) for at in range(5)]
    learned = SimpleNamespace(cells=SimpleNamespace(queries=np.array([0, 2, 3])))
    case = SimpleNamespace(queries=queries, learned=learned)
    assert _sampled(case, queries[:2]).tolist() in ([0, 2], [0, 3])
