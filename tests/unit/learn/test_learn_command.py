"""learn, simulate, act, interleave and feedback from the command line, on the starter set."""

import gzip
import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from steelyard.config.search_config import SearchConfig
from steelyard.feedback.log import ACTIONS
from steelyard_eval.cli.commands.act import ACTS
from steelyard_eval.cli.commands.learn import MODELS as NAMED
from steelyard_eval.cli.demonstration import starter
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load
from steelyard_eval.datasets.labels import JudgedPool
from steelyard_eval.learn import learn
from steelyard_eval.learn.clicks import MODELS
from steelyard_eval.learn.simulation import simulate_log
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


def test_the_starter_log_is_learned_from(learned):
    record = learned.record
    assert record["log"]["queries"] >= 150
    assert record["log"]["simulated"]
    assert record["verdict"] == "ship"
    assert [policy["how"] for policy in record["policies"]] == ["replayed"]
    assert record["policies"][0]["agreement"] == 1.0
    assert all(view["gain"] - 3 * view["error"] > 0 for view in record["views"])
    lifts = {row["kind"]: row["lift"] for row in record["acts"]["kinds"]}
    assert lifts["accepted"] > lifts["opened"] > 1 > lifts["dismissed"]
    assert {row["half"] for row in record["halves"]} == {"earlier", "later"}
    assert learned.config.provenance["learned_from"] == "feedback"


def test_what_is_learned_is_better_by_the_labels_that_made_the_log(learned, data):
    found = data.compare([learned.config, learned.record["current"]["strategy"]], timed=False)
    values = [row["mean"] for row in found.record["results"] if row["metric"] == "nDCG@10"]
    assert values[0] > values[1] + 0.03


def test_the_command_prints_the_same_and_writes_the_weights(tmp_path):
    found = run("learn", starter(), "--out", tmp_path / "w.json", "--document", tmp_path / "d.json")
    assert found.exit_code == 0, found.stderr
    assert found.stdout.startswith("Use weighted_sum(")
    assert "pooled with 59 labelled" in found.stdout.replace("\n", " ")
    assert "this log is simulated" in found.stderr
    assert "naive" in found.stdout
    document = json.loads((tmp_path / "d.json").read_text())
    assert SearchConfig.load(tmp_path / "w.json").provenance["verdict"] == document["verdict"] == "ship"


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"sampled": "failing"}, "do not stand for the others"),
        ({"pool": JudgedPool(("bm25",), 10)}, "the first 10 of bm25 alone was judged"),
        ({"pool": JudgedPool(("bm25", "vector"), 5)}, "the first 5 of bm25, vector alone was judged"),
    ],
)
def test_labels_that_were_chosen_are_no_proof_and_promise_nothing(data, about, reason):
    found = learn(replace(data.dataset, **about))
    assert found.record["verdict"] == "try"
    assert str(found.config.strategy) == found.record["current"]["strategy"]
    assert str(found.attempt.strategy) == found.record["chosen"]["strategy"]
    assert found.sentence.startswith("Try weighted_sum(")
    assert reason in found.sentence
    assert "expected" not in found.sentence


@pytest.mark.parametrize(
    "pool", [JudgedPool(), JudgedPool(("bm25", "vector"), 10), JudgedPool(("echovault",), 10)]
)
def test_labels_of_a_pool_that_holds_what_is_used_ship(data, pool):
    assert learn(replace(data.dataset, sampled="log", pool=pool)).record["verdict"] == "ship"


def test_a_log_alone_does_not_ask_how_labels_came_about(data):
    found = learn(replace(data.dataset, sampled="failing"), labels=False)
    assert found.record["verdict"] == "ship"


def test_simple_rules_and_the_adaptive_one_never_ship(data, tmp_path):
    found = data.learn(rule="ips")
    assert found.record["verdict"] == "keep"
    assert found.attempt != found.config
    assert "proves nothing" in found.sentence
    result = run("learn", starter(), "--rule", "adaptive", "--out", tmp_path / "w.json")
    assert result.exit_code == 2
    assert "documents no rule that adapts weights" in result.stderr


def test_the_adaptive_rule_of_soleri_counts_and_moves_one_weight(tmp_path):
    """seeds/soleri.txt, adaptive weights: (rate - .5) * 2 * .15 is what the weight of tfidf moves by."""
    log = tmp_path / "s.jsonl"
    made = run("simulate", starter(), "--policy", "soleri", "--sessions", 400, "--act", "accepted", "-o", log)
    assert made.exit_code == 0, made.stderr
    found = run("learn", starter(), "--feedback", log, "--rule", "adaptive", "-o", tmp_path / "w.json", "--json")
    record = json.loads(found.stdout)
    assert record["counted"]["rate"] == 1.0
    moved = dict.fromkeys(["tfidf"], 0.25 + 0.15)
    assert f"{moved['tfidf']:g}*tfidf" in record["chosen"]["strategy"]


def test_a_log_of_other_queries_is_foreign(tmp_path, data):
    hits = []

    def shifted(record):
        hits.append(record["hits"])
        return {**record, "hits": hits[len(hits) // 2]}

    path = changed(tmp_path, shifted)
    found = run("learn", starter(), "--feedback", path, "-o", tmp_path / "w.json")
    assert found.exit_code == 2
    assert "the log is foreign" in found.stderr
    assert not (tmp_path / "w.json").exists()


def test_places_from_0_and_the_future_are_named(tmp_path):
    zero = changed(
        tmp_path, lambda r: {**r, "hits": [{**hit, "position": hit["position"] - 1} for hit in r["hits"]]}
    )
    found = run("learn", starter(), "--feedback", zero, "-o", tmp_path / "w.json")
    assert (found.exit_code, "Expected `int` >= 1" in found.stderr) == (2, True)
    late = changed(tmp_path, lambda r: {**r, "timestamp": "2099-01-01T00:00:00Z"})
    found = run("learn", starter(), "--feedback", late, "-o", tmp_path / "w.json")
    assert (found.exit_code, "3000 has a timestamp in the future" in found.stderr) == (2, True)


def test_ten_thousand_acts_of_one_client_change_nothing(tmp_path, data, learned):
    with gzip.open(LOG, "rt") as stream:
        lines = stream.read()
    shown = next(json.loads(text) for text in lines.splitlines() if '"hits"' in text)
    acts = [{"object_id": shown["hits"][-1]["object_id"], "action_name": "accepted"}]
    path = tmp_path / "flooded.jsonl"
    path.write_text(lines + (json.dumps({**shown, "client_id": "bot", "actions": acts}) + "\n") * 10_000)
    found = data.learn(path, labels=False)
    assert (found.record["verdict"], found.record["chosen"]) == ("ship", learned.record["chosen"])
    aside = {row["rule"]: row["count"] for row in found.record["log"]["set_aside"]}
    assert sum(aside.values()) - sum(row["count"] for row in learned.record["log"]["set_aside"]) == 9_999


def test_an_unknown_policy_is_reconstructed_from_its_lists(tmp_path):
    path = tmp_path / "unnamed.jsonl"
    with gzip.open(LOG, "rt") as stream:
        lines = [json.loads(text) for text in stream]
    kept = [{**one, "policy": "unknown"} for one in lines if "hits" in one]
    path.write_text("".join(json.dumps(one) + "\n" for one in kept))
    found = learn(load(starter()), path, "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)", labels=False)
    [policy] = found.record["policies"]
    assert (policy["name"], policy["how"]) == ("unknown", "reconstructed")
    assert policy["agreement"] == 1.0


def test_simulation_is_deterministic(tmp_path):
    for name in "ab":
        words = ("--sessions", 200, "--explore", "interleave", "--seed", 7, "-o", tmp_path / name)
        assert run("simulate", starter(), "--policy", "bm25", *words).exit_code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert json.loads((tmp_path / "a").read_text().split("\n")[0]) == {"schema_version": 1, "simulated": True}


def test_a_search_is_logged_acted_upon_and_compared(tmp_path):
    vault, log = tmp_path / "m.db", tmp_path / "log.jsonl"
    assert run("index", starter(), vault, "--embedder", "none").exit_code == 0
    found = run("search", vault, "rotate keys", "--system", "bm25", "--log", log, "--client", "me", "--json")
    query_id = json.loads(found.stdout)["query_id"]
    first = json.loads(found.stdout)["hits"][0]["id"]
    assert run("act", log, query_id, first, "--action", "cited").exit_code == 0
    assert run("act", log, "gone", first).exit_code == 2
    found = run("interleave", log, vault, "session tokens", "--system", "bm25", "--json")
    assert found.exit_code == 0, found.stderr
    assert (
        "no list of this log" in run("interleave", log).stdout or "all together" in run("interleave", log).stdout
    )
    assert len(log.read_text().splitlines()) >= 4


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
    before = weight_of(found.record["current"]["strategy"], "tags")
    assert found.record["refusal"] is None
    assert weight_of(found.record["best"]["strategy"], "tags") > 1.5 * before
    ruled = tagged.learn(log, rule="adaptive", labels=False)
    assert weight_of(ruled.record["chosen"]["strategy"], "tags") < before


def test_the_command_line_names_every_act_and_click_model():
    """It has its own lists, because the modules behind them are imported only when they are used."""
    assert ACTS == ACTIONS
    assert tuple(MODELS) == NAMED
